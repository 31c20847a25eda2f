"""Requests, slots and pages: small simulations of a machine that writes answers, without a formula.

    occupy([5, 1, 1, 3], 2, refill=True)          # which slot writes which answer, from when to when
    serve(requests, slots, step, "apart")         # times of the first and of the next tokens, under load
    store(lengths, room, page=16)                 # how many sequences a cache holds, and how much of it is empty

Time is whatever the caller's `step` says that an iteration takes.  A witness: it knows queues and who holds what.
"""
import heapq
from bisect import insort
from collections import deque
from typing import NamedTuple

import numpy as np


class Span(NamedTuple):
    """An answer in a slot, from step `start` to step `stop`."""
    answer: int
    slot: int
    start: int
    stop: int


def occupy(answers, slots, refill):
    """Spans of answers of so many tokens, taken in order: into a slot as it becomes free, or a batch when all are done."""
    if slots < 1 or min(answers, default=1) < 1:
        raise ValueError(f"slots = {slots}, answers = {list(answers)[:5]}...: allowed are one slot or more, answers of one token "
                         "or more")
    spans, free = [], [(0, s) for s in range(slots)]
    for i, tokens in enumerate(answers):
        if not refill and i % slots == 0:
            free = [(max(t for t, _ in free), s) for s in range(slots)]
        start, slot = heapq.heappop(free)
        spans.append(Span(i, slot, start, start + int(tokens)))
        heapq.heappush(free, (start + int(tokens), slot))
    return spans


def steps(spans):
    """Steps until the last answer is done."""
    return max(s.stop for s in spans)


# ---- under load
class Request(NamedTuple):
    """When it comes, tokens of its prompt, tokens that it will be answered with."""
    at: float
    prompt: int
    answer: int


class Served(NamedTuple):
    """When it came, its first token and its last, the tokens of its answer, and the longest wait between two of them."""
    at: float
    first: float
    last: float
    answer: int
    gap: float


def requests(rng, count, rate, prompt, answer):
    """Requests at random times, `rate` a second, all with the same prompt; answers geometric around their mean."""
    at = np.cumsum(rng.exponential(1/rate, count))
    return [Request(float(t), prompt, int(g)) for t, g in zip(at, rng.geometric(1/answer, count))]


def serve(arrivals, slots, step, how, chunk=512):
    """[Served, ...] by a server of so many slots; step(sequences, cached tokens, prompt tokens) is the time of an iteration.

    how = "whole"   a prompt is read whole, in an iteration of the sequences that are being written
          "chunks"  at most `chunk` tokens of it in one iteration
          "apart"   by a server of its own, that only reads; the slots only write
    A prompt's last iteration yields the first token.
    """
    if how not in ("whole", "chunks", "apart"):
        raise ValueError(f"how = {how!r}; allowed: whole, chunks, apart")
    done, waiting, active, now, reader = [], deque(sorted(arrivals)), [], 0.0, 0.0
    kept, ready = 0, deque()                           # tokens in the cache; read elsewhere: (when, request)
    if how == "apart":
        for r in waiting:
            reader = max(reader, r.at) + step(0, 0, r.prompt)
            ready.append((reader, r))
        waiting = deque()
    reading = None                                     # [request, tokens of its prompt still to be read]
    while waiting or ready or active or reading:
        if not active and not reading:                 # nothing to do before the next one comes
            now = max(now, waiting[0].at if waiting else ready[0][0] if ready else now)
        while ready and ready[0][0] <= now and len(active) < slots:
            at, r = ready.popleft()
            active.append([r, at, at, 1, 0.0])         # request, first, last token, tokens, longest gap
            kept += r.prompt + 1
        if not reading and waiting and waiting[0].at <= now and len(active) < slots:
            r = waiting.popleft()
            reading = [r, r.prompt]
        part = min(reading[1], chunk if how == "chunks" else reading[1]) if reading else 0
        now += step(len(active), kept, part)
        kept += len(active)
        for a in active:
            a[3], a[4], a[2] = a[3] + 1, max(a[4], now - a[2]), now
        if reading:
            reading[1] -= part
            if not reading[1]:
                active.append([reading[0], now, now, 1, 0.0])
                kept += reading[0].prompt + 1
                reading = None
        ended = [a for a in active if a[3] >= a[0].answer]
        kept -= sum(a[0].prompt + a[3] for a in ended)
        done += [Served(a[0].at, a[1], a[2], a[0].answer, a[4]) for a in ended]
        active = [a for a in active if a[3] < a[0].answer]
    return done


def waits(served):
    """(times to the first token, times per token after it, longest gaps), arrays; one-token answers have the first alone."""
    first = np.array([s.first - s.at for s in served])
    more = [s for s in served if s.answer > 1]
    return first, np.array([(s.last - s.first)/(s.answer - 1) for s in more]), np.array([s.gap for s in more])


def tandem(readers, writers, read, slots, write, answers):
    """Requests a second of servers that read one prompt at a time and servers with slots that write; all wait at the start.

    read: seconds of a prompt; write: seconds of a step with all slots taken; answers: tokens of each answer.
    """
    free, ends = [0.0]*readers, []
    slot = [0.0]*(writers*slots)
    heapq.heapify(free), heapq.heapify(slot)
    for tokens in answers:
        ready = heapq.heappop(free) + read
        heapq.heappush(free, ready)
        end = max(ready, heapq.heappop(slot)) + tokens*write
        heapq.heappush(slot, end)
        ends.append(end)
    ends.sort()
    a, b = len(ends)//5, 4*len(ends)//5                 # without filling and draining
    return (b - a)/(ends[b] - ends[a])


# ---- room
class Full(RuntimeError):
    """No page is free."""


class Pages:
    """A cache of `room` tokens in pages: each sequence has a table of the pages that hold its tokens, in order.

    Sequences that begin alike may share pages; a shared page is copied before it is written.
    """

    def __init__(self, room, page):
        if page < 1 or room < page:
            raise ValueError(f"room = {room}, page = {page}; allowed: a page of one token or more, and room for one page")
        self.page, self.free = page, list(range(room//page))[::-1]
        self.table, self.length, self.owners, self.copied = {}, {}, {}, []

    def _take(self):
        if not self.free:
            raise Full("no page is free")
        page = self.free.pop()
        self.owners[page] = 1
        return page

    def append(self, name):
        """Room for one more token of a sequence (a new one, if it has none): (page, place in it).  Full if there is none."""
        table, n = self.table.setdefault(name, []), self.length.get(name, 0)
        if n % self.page == 0:
            table.append(self._take())
        elif self.owners[table[-1]] > 1:               # others read it: write into a copy
            mine = self._take()
            self.owners[table[-1]] -= 1
            self.copied.append((table[-1], mine))
            table[-1] = mine
        self.length[name] = n + 1
        return table[-1], n % self.page

    def fork(self, name, new):
        """A second sequence that begins like the first: the same pages, no copy."""
        self.table[new], self.length[new] = list(self.table[name]), self.length[name]
        for page in self.table[new]:
            self.owners[page] += 1

    def drop(self, name):
        """A sequence leaves; its pages that nobody shares are free."""
        for page in self.table.pop(name):
            self.owners[page] -= 1
            if not self.owners[page]:
                del self.owners[page]
                self.free.append(page)
        del self.length[name]

    @property
    def given(self):
        """Tokens that the pages in use could hold."""
        return self.page*len(self.owners)

    @property
    def held(self):
        """Tokens in the pages in use, those of a shared page once."""
        fill = {}
        for name, table in self.table.items():
            for k, page in enumerate(table):
                fill[page] = max(fill.get(page, 0), min(self.page, self.length[name] - k*self.page))
        return sum(fill.values())


class Row:
    """A cache of `room` tokens given out in one piece for each sequence, first fit."""

    def __init__(self, room):
        self.holes, self.at = [(0, room)], {}

    def start(self, name, size):
        """A piece of so many tokens; Full if no hole is as long."""
        for k, (start, hole) in enumerate(self.holes):
            if hole >= size:
                self.holes[k:k + 1] = [(start + size, hole - size)] if hole > size else []
                self.at[name] = start, size
                return
        raise Full("no hole is long enough")

    def drop(self, name):
        """A sequence leaves; its piece is a hole."""
        insort(self.holes, self.at.pop(name))
        joined = []
        for start, size in self.holes:                 # holes that touch become one
            if joined and sum(joined[-1]) == start:
                joined[-1] = joined[-1][0], joined[-1][1] + size
            else:
                joined.append((start, size))
        self.holes = joined


class Room(NamedTuple):
    """Averages over the steps: tokens held, tokens given out, sequences; and how often one was sent back."""
    held: float
    given: float
    sequences: float
    evicted: int


def store(lengths, room, page=None, reserve=None, spare=.1):
    """Fill a cache of `room` tokens with growing sequences, as many as it takes; counted from the time when a third of them
    has left until a tenth of them is left.

    lengths   tokens that each sequence will have; it begins with one, and gets one a step
    page      tokens of a page; a sequence that finds none free sends the youngest back to the queue, to begin again
    spare     share of the pages that must be free before one more sequence begins
    reserve   instead: tokens given to each at its start, one after the other in memory; a number or a list
    """
    if (page is None) == (reserve is None):
        raise ValueError(f"page = {page}, reserve = {reserve}; allowed: one of them")
    pieces = None if page else [reserve]*len(lengths) if np.ndim(reserve) == 0 else list(reserve)
    cache = Pages(room, page) if page else Row(room)
    waiting, active = deque(range(len(lengths))), {}    # active: {sequence: its tokens}
    held = given = sequences = ticks = evicted = left = 0
    while len(waiting) > len(lengths)//10:
        while waiting and (not page or len(cache.free) > spare*(room//page)):
            try:
                cache.append(waiting[0]) if page else cache.start(waiting[0], pieces[waiting[0]])
            except Full:
                break
            active[waiting.popleft()] = 1
            if page:                                    # one a step: not all at once, at the start
                break
        if left > len(lengths)//3:
            ticks, sequences = ticks + 1, sequences + len(active)
            held += sum(active.values())
            given += cache.given if page else sum(pieces[i] for i in active)
        for i in list(active):
            if i not in active:
                continue
            if active[i] >= lengths[i]:
                cache.drop(i)
                del active[i]
                left += 1
                continue
            while page and i in active:
                try:
                    cache.append(i)
                    break
                except Full:
                    last = next(reversed(active))
                    cache.drop(last)
                    del active[last]
                    waiting.appendleft(last)
                    evicted += left > len(lengths)//3
            if i in active:
                active[i] += 1
    return Room(held/ticks, given/ticks, sequences/ticks, evicted)
