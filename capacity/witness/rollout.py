"""Engines that write rollouts, a buffer, a trainer that learns from them, and weights that change hands; no formula.

    seconds = decode([5, 1, 3], read, cached)                  # one engine writes three rollouts together
    run = simulate(lengths, engines=2, slots=4, batch=8, lead=1, train=20.0, read=read, cached=cached)
    run.ages                                                   # versions between start and use, one for each rollout
    moves(shards(12, 4), shards(12, 3))                        # who sends which slice to whom, between two layouts

A step of an engine takes `read` seconds, and `cached` seconds for each token that it looks back at: the n-th token of a
rollout looks at n.  Prompts take no time.  A version is one batch that was trained on.
"""
import heapq
import itertools
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np


def decode(lengths, read, cached):
    """Seconds of an engine that writes rollouts of so many tokens together, each step counted; array of lengths -> float."""
    lengths = np.asarray(lengths, int)
    if lengths.size == 0 or lengths.min() < 1:
        raise ValueError(f"lengths = {lengths}; allowed: one rollout or more, of one token or more each")
    ended = np.cumsum(np.bincount(lengths))                       # rollouts of at most n tokens
    step = np.arange(1, lengths.max() + 1)
    active = lengths.size - ended[:-1]
    return float(np.sum(read + cached*step*active))


def barrier(batches, engines, slots, read, cached):
    """Seconds until the last rollout of a batch is written, for each batch; slots that are free take the next one."""
    return [simulate(b, engines, slots, len(b), 0, 0.0, read, cached).published[0] for b in batches]


def lockstep(batches, engines, slots, train, read, cached):
    """Seconds of each step of a trainer that learns from the batch before while engines write the next; both wait."""
    return [max(seconds, train) for seconds in barrier(batches, engines, slots, read, cached)]


class Span(NamedTuple):
    """A rollout in an engine: its number, seconds from `start` to `stop`, the versions at both ends."""
    number: int
    engine: int
    start: float
    stop: float
    began: int
    ended: int


class History(NamedTuple):
    """What happened: spans by number, the batch that used each rollout, seconds at which each version was published."""
    spans: list
    used: np.ndarray
    published: list

    @property
    def ages(self):
        """Versions between the start of each rollout and its use."""
        return self.used - np.array([s.began for s in self.spans])

    @property
    def step(self):
        """Seconds from version to version, in the middle half of the run."""
        a, b = len(self.published)//4, 3*len(self.published)//4
        return (self.published[b] - self.published[a])/(b - a)


class Engine:
    """Slots that write together, step by step; it leaps from one step at which something happens to the next."""

    def __init__(self, slots, read, cached):
        self.slots, self.read, self.cached = slots, read, cached
        self.now, self.step, self.tokens, self.ends, self.leaps = 0.0, 0, 0, [], 0

    def seconds(self, steps):
        """Of so many more steps with the rollouts that are here."""
        looked = steps*self.tokens + len(self.ends)*steps*(steps + 1)//2
        return steps*self.read + self.cached*looked

    def due(self):
        """When the next rollout ends."""
        return self.now + self.seconds(self.ends[0][0] - self.step)

    def leap(self, steps):
        """Go on; [(number, length), ...] of those that end."""
        self.now += self.seconds(steps)
        self.step, self.tokens, self.leaps = self.step + steps, self.tokens + steps*len(self.ends), self.leaps + 1
        done = []
        while self.ends and self.ends[0][0] == self.step:
            _, number, length = heapq.heappop(self.ends)
            self.tokens -= length
            done.append((number, length))
        return done

    def until(self, when):
        """Go on to the end of the step that is being computed at that time."""
        if not self.ends or self.now >= when:
            self.now = max(self.now, when)
            return []
        b = self.read + self.cached*(self.tokens + len(self.ends)/2)
        a = self.cached*len(self.ends)/2
        guess = 2*(when - self.now)/(b + sqrt(b*b + 4*a*(when - self.now)))
        return self.leap(min(max(1, ceil(guess - 1e-9)), self.ends[0][0] - self.step))

    def take(self, number, length):
        heapq.heappush(self.ends, (self.step + length, number, length))
        self.leaps += 1


ORDERS = ("oldest", "first", "last", "batch")


def simulate(lengths, engines, slots, batch, lead, train, read, cached, order="oldest"):
    """A History: engines write rollouts of these lengths in order, a trainer learns from `batch` of them at a time.

    lead    rollout j may begin while j//batch is at most the version plus `lead`
    train   seconds of a batch, then a new version is there at once, also in rollouts that are being written
    order   what the trainer takes next: the oldest that are done, the first or the last done, or batches as they began
    """
    if order not in ORDERS:
        raise ValueError(f"order = {order!r}; allowed: {', '.join(ORDERS)}")
    if len(lengths) % batch or not len(lengths):
        raise ValueError(f"{len(lengths)} lengths; allowed: a multiple of the batch, {batch}")
    crew = [Engine(slots, read, cached) for _ in range(engines)]
    version, following, events, buffer = 0, 0, [], []
    begun, spans, used, published = {}, {}, np.full(len(lengths), -1), []
    busy = False

    def fill(engine):
        nonlocal following
        e = crew[engine]
        if len(e.ends) < slots and following < len(lengths) and following//batch <= version + lead:
            begun[following] = (engine, e.now, version)
            e.take(following, int(lengths[following]))
            following += 1
            return True

    def finish(engine, done):
        for number, _ in done:
            where, start, began = begun.pop(number)
            spans[number] = Span(number, where, start, crew[engine].now, began, version)
            key = {"oldest": number, "first": len(spans), "last": -len(spans), "batch": number}[order]
            heapq.heappush(buffer, (key, number))

    def plan(engine):
        e = crew[engine]
        if e.ends:
            heapq.heappush(events, (e.due(), engine, e.leaps))

    def learn(now):
        nonlocal busy
        first = len(published)*batch
        if busy or len(buffer) < batch:
            return
        if order == "batch" and any(n not in spans for n in range(first, first + batch)):
            return
        for _ in range(batch):
            used[heapq.heappop(buffer)[1]] = version
        busy = True
        heapq.heappush(events, (now + train, -1, 0))

    def admit(when):
        free = waiting = [k for k, e in enumerate(crew) if len(e.ends) < slots]
        for k in waiting:
            finish(k, crew[k].until(when))
        while free:                                               # one each in turn
            free = [k for k in free if fill(k)]
        for k in waiting:
            plan(k)

    admit(0.0)
    while events:
        now, engine, leaps = heapq.heappop(events)
        if engine < 0:
            version, busy = version + 1, False
            published.append(now)
            admit(now)
        else:
            e = crew[engine]
            if leaps != e.leaps or not e.ends:
                continue                                          # an older plan
            finish(engine, e.leap(e.ends[0][0] - e.step))
            while fill(engine):
                pass
            plan(engine)
        learn(now)
    return History([spans[n] for n in range(len(lengths))], used, published)


# ---- weights change hands
def shards(size, ranks):
    """Half-open intervals [(start, stop)] of a vector, one list for each rank, cut in contiguous parts."""
    cuts = [size*r//ranks for r in range(ranks + 1)]
    return [[(a, b)] for a, b in zip(cuts, cuts[1:])]


def columns(rows, cols, ranks):
    """The same for a matrix stored row by row and cut by columns: a rank has one interval in each row."""
    cuts = [cols*r//ranks for r in range(ranks + 1)]
    return [[(i*cols + a, i*cols + b) for i in range(rows)] for a, b in zip(cuts, cuts[1:])]


def moves(have, want):
    """[(sender, receiver, start, stop), ...]: what each receiver wants, from the first sender that has it."""
    out = []
    for receiver, wanted in enumerate(want):
        for a, b in wanted:
            for sender, held in enumerate(have):
                out += [(sender, receiver, max(a, c), min(b, d)) for c, d in held if max(a, c) < min(b, d)]
    return out


def missing(have, want):
    """Numbers that each rank must fetch if rank r has have[r] and wants want[r], both lists of intervals."""
    got = [sum(max(0, min(b, d) - max(a, c)) for (a, b), (c, d) in itertools.product(h, w)) for h, w in zip(have, want)]
    return [sum(d - c for c, d in w) - g for w, g in zip(want, got)]


# ---- learning from what an older policy wrote
def strings(logits):
    """All strings of a policy with its own logits at each place, (places, words) -> (strings, their probabilities)."""
    law = np.exp(logits - logits.max(1, keepdims=True))
    law /= law.sum(1, keepdims=True)
    every = np.array(list(itertools.product(range(logits.shape[1]), repeat=logits.shape[0])))
    return every, law[np.arange(len(law)), every].prod(1)


def policy_gradient(now, old, reward, weigh=None):
    """Expected estimate of the gradient at logits `now` from strings of `old`, by summing over all strings.

    reward: array, one for each string in the order of `strings`; weigh(ratios of the two policies, (strings, places))
    -> a weight for each place, or one for each string, (strings, 1)
    """
    every, _ = strings(now)
    _, q = strings(old)
    laws = [np.exp(x - x.max(1, keepdims=True)) for x in (now, old)]
    laws = [x/x.sum(1, keepdims=True) for x in laws]
    places = np.arange(now.shape[0])
    ratios = laws[0][places, every]/laws[1][places, every]
    weights = np.ones_like(ratios) if weigh is None else np.broadcast_to(weigh(ratios), ratios.shape)
    score = np.eye(now.shape[1])[every] - laws[0]                 # gradients of the log-probability, place by place
    return np.einsum("s,sp,spw->pw", q*reward, weights, score)
