"""P ranks in one process, each running the same plain Python program, with every message counted.

    from capacity.witness.spmd import Link, run

    def shift(comm, x):
        return comm.sendrecv(x, to=(comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)

    run(shift, inputs=[10, 11, 12]).results        # [12, 10, 11]

A witness: it knows programs and messages, and no formula.  The ranks take turns in one thread, so a run is
deterministic and nothing hangs: a program that cannot go on ends at once, with what every rank waits for, and one
that sends messages forever ends after a million.  (A loop without messages is yours to interrupt.)
"""
import contextlib
import copy
import inspect
import math
from bisect import bisect_right, insort_right
from collections import defaultdict, deque
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Number
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from greenlet import getcurrent, greenlet


class ProgramError(RuntimeError):
    """The program cannot go on; the message names the ranks and what each was waiting for."""


class Deadlock(ProgramError):
    """Every unfinished rank waits for another, or a message was sent that nobody received."""


class Mismatch(ProgramError):
    """A message is not what its receiver asked for: another tag, shape or type."""


@dataclass(frozen=True)
class Link:
    """One kind of hop: n bytes arrive alpha + n/beta after they left.

    alpha in seconds, beta in bytes per second and direction.  The sender's port is taken for the part
    `overhead` of alpha (all of it unless told) and for n/beta; the rest of alpha passes on the wire, where
    other messages may follow.  Numbers, Fractions (times are exact then) or positive symbols.  Ports are per name.
    ValueError for a negative or infinite alpha, a beta that is not above 0, an overhead above alpha.
    """
    alpha: Any = 0
    beta: Any = math.inf
    name: str = "link"
    overhead: Any = None

    def __post_init__(self):
        if self.overhead is None:
            object.__setattr__(self, "overhead", self.alpha)
        for name, ok, allowed in (
                ("alpha", lambda alpha: 0 <= alpha < math.inf, "seconds, at least 0"),
                ("beta", lambda beta: beta > 0, "bytes per second, above 0"),
                ("overhead", lambda overhead: 0 <= overhead <= self.alpha, f"0 to alpha = {self.alpha}"),
                ("name", lambda name: isinstance(name, str), "a text")):
            with contextlib.suppress(TypeError, ValueError):             # what cannot be compared is no number
                if ok(getattr(self, name)):
                    continue
            raise ValueError(f"Link: {name} = {getattr(self, name)!r}; allowed: {allowed}")


def two_level(node_size, inside, across):
    """The link between two ranks when ranks 0..G-1 share a node, G..2G-1 the next, and so on.

    Links of one name share their ports and are counted together.  ValueError for a node_size that is not 1, 2, ...
    """
    if not _whole(node_size):
        raise ValueError(f"node_size = {node_size!r}; allowed: 1, 2, ...")
    return lambda a, b: inside if a//node_size == b//node_size else across


class Message(NamedTuple):
    """One message: who sent what to whom, on which link, when it left and when it was in."""
    source: int
    to: int
    nbytes: int
    tag: Any
    link: str
    round: int                          # 1, 2, ...: when it is in if every message takes one unit of time
    left: Any
    arrived: Any


@dataclass(repr=False)
class Run:
    """What a run left behind: results and clocks by rank, all messages, and what the ranks said they hold.

    `results`, `clock` (seconds) and the arrays of `sent()`, `received()` and `count()` have one entry per rank.
    These three take the name of a link, or a Link; ValueError if no message went over it.

    `holdings` lists (round, rank, state) for every `comm.holds(state)`, of up to 32 ranks: what the rank holds when
    that round is over, in which what it had sent and received before was in.
    """
    size: int
    results: list = field(default_factory=list)
    clock: list = field(default_factory=list)
    messages: list = field(default_factory=list)
    holdings: list = field(default_factory=list)

    def __repr__(self):
        return f"<run of {self.size} ranks: {len(self.messages)} messages in {self.rounds} rounds, time {self.time}>"

    @property
    def time(self):
        """When the last rank finished, in seconds of the virtual clock."""
        return max(self.clock)

    @property
    def rounds(self):
        """Rounds of messages one after the other: the time if every message took 1, whatever its size."""
        return max((m.round for m in self.messages), default=0)

    def sent(self, link=None):
        """Bytes each rank sent, as an array of P; with `link`, over links of that name only."""
        return self._sum("source", link)

    def received(self, link=None):
        """Bytes each rank received, as an array of P; with `link`, over links of that name only."""
        return self._sum("to", link)

    def count(self, link=None):
        """Messages each rank sent, as an array of P; with `link`, over links of that name only."""
        return self._sum("source", link, lambda m: 1)

    def _sum(self, end, link, amount=lambda m: m.nbytes):
        known, link = {m.link for m in self.messages}, getattr(link, "name", link)
        if link is not None and link not in known:
            raise ValueError(f"link = {link!r}; the messages went over {', '.join(sorted(known)) or 'no link'}")
        total = np.zeros(self.size, dtype=int)
        for m in self.messages:
            if link in (None, m.link):
                total[getattr(m, end)] += amount(m)
        return total


class Each(NamedTuple):
    """An argument of a program that differs from rank to rank: values[r] is rank r's."""
    values: Any


def run(program, inputs, *shared, link=Link(), ports=1, limit=10**6):
    """Run `program(comm, inputs[r], *shared)` on ranks r = 0..P-1, P = len(inputs), and return a `Run`.

    Where one of shared is an `Each`, rank r gets its values[r].

    link: a `Link` (one of capacity.hardware, too), or a function (source, to) -> Link.  ports: how many messages a
    rank can send, and receive, at once over links of one name.  A rank takes messages in as they come, asked for or
    not yet.  limit: how many messages a program may begin before it is taken for one that never ends.

    An exception of one rank ends the run: ProgramError from it.  ProgramError beyond the limit; Deadlock and
    Mismatch are ProgramErrors.  ValueError for a program, inputs, link, ports or limit that are none, and for an
    Each that has not one value for each rank.
    """
    if not callable(program) or inspect.isgeneratorfunction(program) or inspect.iscoroutinefunction(program):
        raise ValueError(f"program = {program!r}; allowed: a function of (comm, input, ...) without yield or async")
    if isinstance(inputs, (dict, set, frozenset)) or not hasattr(inputs, "__iter__"):
        raise ValueError(f"inputs = {inputs!r}; allowed: a list, one input for each rank")
    inputs = list(inputs)
    if not inputs:
        raise ValueError("inputs is empty; allowed: one input for each rank")
    for more in shared:
        if isinstance(more, Each) and len(more.values) != len(inputs):
            raise ValueError(f"an Each of {len(more.values)} values; allowed: {len(inputs)}, one for each rank")
    for name, value in (("ports", ports), ("limit", limit)):
        if not _whole(value):
            raise ValueError(f"{name} = {value!r}; allowed: 1, 2, ...")
    one = None if callable(link) else _link(link)
    return _World(len(inputs), link if one is None else lambda a, b: one, ports, limit).run(program, inputs, shared)


def _whole(n):
    return isinstance(n, (int, np.integer)) and n >= 1


def _link(link):
    """As a Link of this module: anything with an alpha, a beta and a name is one."""
    if isinstance(link, Link):
        return link
    if not all(hasattr(link, a) for a in ("alpha", "beta", "name")):
        raise ValueError(f"link = {link!r}; allowed: a Link, or a function (source, to) -> Link")
    return Link(link.alpha, link.beta, link.name)


class Comm:
    """One rank's view of its group: `rank`, `size` and the messages it can send and receive.

    Values are copied on the way.  A send returns when its receiver has asked for the message; the same program
    on real processes may return sooner, so one that ends here does not depend on buffers there.
    """

    def __init__(self, world, ranks, rank):
        self._world, self._ranks, self.rank, self.size = world, ranks, rank, len(ranks)
        self._me = ranks[rank]

    def __repr__(self):
        return f"rank {self.rank} of {self.size}"

    def isend(self, value, to, tag=None):
        """Start to send `value` to rank `to`; the handle's wait() ends when it is received."""
        return self._world.send(self._me, self._global("to", to), value, tag)

    def irecv(self, source, like=None, tag=None):
        """Start to receive from rank `source`; the handle's wait() returns the value.

        like: an array of the shape and type that must come, or a list of them (None: anything); tag: the tag
        that must come.  Mismatch otherwise.
        """
        return self._world.recv(self._global("source", source), self._me, like, tag)

    def send(self, value, to, tag=None):
        """Send `value` to rank `to`."""
        self.isend(value, to, tag).wait()

    def recv(self, source, like=None, tag=None):
        """Receive from rank `source`; see `irecv`."""
        return self.irecv(source, like, tag).wait()

    def sendrecv(self, value, to, source, like=None, sendtag=None, recvtag=None):
        """Send `value` to rank `to` while receiving from rank `source`, and return what came."""
        out = self.isend(value, to, sendtag)
        got = self.irecv(source, like, recvtag).wait()
        out.wait()
        return got

    def barrier(self):
        """Wait until every rank of the group has come: empty messages over 1, 2, 4, ... ranks."""
        d = 1
        while d < self.size:
            self.sendrecv(None, (self.rank + d) % self.size, (self.rank - d) % self.size, sendtag="barrier")
            d *= 2

    def group(self, ranks):
        """The same rank seen from a smaller group: ranks[i] becomes rank i.

        ValueError if this rank is not in it, a rank is in it twice or is none.
        """
        ranks = list(ranks)
        if self.rank not in ranks:
            raise ValueError(f"ranks = {ranks}; allowed: a group that rank {self.rank} is in")
        if len(set(ranks)) < len(ranks) or not set(ranks) <= set(range(self.size)):
            raise ValueError(f"ranks = {ranks}; allowed: different ranks of 0 to {self.size - 1}")
        return Comm(self._world, [self._ranks[r] for r in ranks], ranks.index(self.rank))

    def grid(self, *sizes):
        """This rank's groups along each axis of a grid of the ranks; those of the last axis are next to each other.

        ValueError for sizes that are not 1, 2, ... with the number of ranks as their product.
        """
        if not all(map(_whole, sizes)) or math.prod(sizes) != self.size:
            raise ValueError(f"sizes = {sizes}; allowed: 1, 2, ... with the product {self.size}")
        ranks = np.arange(self.size).reshape(sizes)
        at = np.argwhere(ranks == self.rank)[0]
        return [self.group(ranks[(*at[:i], slice(None), *at[i + 1:])].tolist()) for i in range(len(sizes))]

    def holds(self, state):
        """Write down, for a `stepper`, what this rank holds from now on; above 32 ranks nothing is written down."""
        self._world.hold(self._me, state)

    def _global(self, name, r):
        if not (isinstance(r, (int, np.integer)) and 0 <= r < self.size) or r == self.rank:
            raise ValueError(f"{name} = {r!r} on rank {self.rank}; allowed: another rank of 0 to {self.size - 1}")
        return self._ranks[r]


class _Handle:
    """A message under way, seen from one of its ends."""
    __slots__ = "world", "rank", "other", "tag", "done", "value", "ends"

    def __init__(self, world, rank, other, tag):
        self.world, self.rank, self.other, self.tag = world, rank, other, tag
        self.done, self.value = False, None

    def wait(self):
        return self.world.wait(self)


class _Send(_Handle):
    __slots__ = "nbytes", "parcel", "leaves"

    def __str__(self):
        return f"until rank {self.other} receives {_what(self.nbytes, self.tag)}"


class _Recv(_Handle):
    __slots__ = "like",

    def __str__(self):
        return f"to receive {_what(None, self.tag)} from rank {self.other}"


class _Clock:
    """When each rank is free, and each of its ports."""

    def __init__(self, P, link, ports):
        self.link, self.now = link, [0]*P
        self.out = defaultdict(lambda: [0]*ports)                         # when a port is free to send
        self.into = defaultdict(lambda: [_Port() for _ in range(ports)])

    def leave(self, a, b, nbytes):
        """(leaves, sender free, arrives, how long a port is taken)"""
        link = _link(self.link(a, b))
        port, wire = self.out[a, link.name], 0 if link.beta == math.inf else nbytes/link.beta
        i = port.index(min(port))
        start, taken = max(self.now[a], port[i]), link.overhead + wire
        port[i] = start + taken
        return start, port[i], start + link.alpha + wire, taken, link.name

    def arrive(self, b, arrival, taken, name):
        """When a message that is there at `arrival` is in: at once, or when one of the ports is free so long."""
        ports, there = self.into[b, name], arrival - taken
        starts = [port.free(there, taken) for port in ports]
        start = min(starts)
        ports[starts.index(start)].take(start, taken)
        return arrival if start == there else start + taken


class _Port:
    """When a port is busy with what comes in: spans (start, end) in order.

    Ranks take turns in another order than their clocks tell, so a message may have to go between earlier ones.
    """

    def __init__(self):
        self.busy = []

    def free(self, start, length):
        """The earliest time from `start` on at which nothing comes in for `length`."""
        if not self.busy or self.busy[-1][1] <= start:
            return start
        slack = length/10**9                                              # a gap of the right size, up to rounding
        for begin, end in self.busy[bisect_right(self.busy, start, key=_end):]:
            if begin >= start + length - slack:
                break
            start = end
        return start

    def take(self, start, length):
        if length:
            busy, span = self.busy, (start, start + length)
            if not busy or busy[-1][1] <= span[1]:
                busy.append(span)
            else:
                insort_right(busy, span, key=_end)


class _World:
    """The ranks, the messages between them and whose turn it is."""

    def __init__(self, P, link, ports, limit):
        self.out, self.limit, self.ends = Run(P), limit, 0   # ends: sends and receives begun
        self.clock, self.count = _Clock(P, link, ports), _Clock(P, lambda a, b: _ROUND, ports)
        self.sends, self.recvs = (defaultdict(deque) for _ in range(2))
        self.waits = [None]*P                                # the handle that a rank waits for
        self.told = [0]*P                                    # the round in which the last thing it sent came in
        self.ready = deque(range(P))

    def run(self, program, inputs, shared):
        self.hub, P = getcurrent(), self.out.size
        ranks = range(P)
        everyone = list(ranks)
        self.turns = [greenlet(program) for _ in ranks]
        self.out.results = [None]*P
        args = [(Comm(self, everyone, r), inputs[r], *(x.values[r] if isinstance(x, Each) else x for x in shared))
                for r in ranks]
        try:
            while self.ready:
                r = self.ready.popleft()
                first, args[r] = args[r], ()
                try:
                    value = self.turns[r].switch(*first)
                except ProgramError:
                    raise
                except Exception as error:
                    raise ProgramError(f"rank {r} raised {type(error).__name__}: {error}" + self._others(r)) from error
                if self.ends > 2*self.limit:
                    raise ProgramError(f"{self.limit} messages and no end; allowed: up to limit = {self.limit}, "
                                       "an argument of run" + self._others())
                if self.turns[r].dead:
                    self.out.results[r] = value
            if any(not t.dead for t in self.turns):
                raise Deadlock("no rank can go on" + self._others())
            lost = [s for queue in (*self.sends.values(), *self.recvs.values()) for s in queue]
            if lost:
                raise Deadlock("all ranks finished, but " + "; ".join(
                    f"rank {s.rank} still waits {s}" for s in lost))
        finally:
            for t in self.turns*FAREWELLS:
                with contextlib.suppress(Exception):
                    if not t.dead:
                        t.throw()
        self.out.clock = self.clock.now
        return self.out

    def _others(self, but=None):
        def line(r):
            if self.turns[r].dead:
                return "has finished"
            return f"waits {self.waits[r]}" if self.waits[r] else "was about to go on"
        return "".join(f"\n  rank {r} {line(r)}" for r in range(self.out.size) if r != but)

    def wait(self, handle):
        while not handle.done:
            if getcurrent() is not self.turns[handle.rank]:
                raise ProgramError(f"rank {handle.rank} waits {handle}; allowed: while its run goes on, in the "
                                   "program it runs, not in another thread, rank or run")
            self.waits[handle.rank] = handle
            self.hub.switch()
        end, count = handle.ends
        now, counted = self.clock.now, self.count.now
        now[handle.rank], counted[handle.rank] = max(now[handle.rank], end), max(counted[handle.rank], count)
        return handle.value

    def send(self, a, b, value, tag):
        s = _Send(self, a, b, tag)
        s.nbytes, s.parcel = size_of(value), _copy(value)
        s.leaves = timed, counted = self.clock.leave(a, b, s.nbytes), self.count.leave(a, b, s.nbytes)
        s.ends = timed[1], counted[1]
        self.sends[a, b].append(s)
        self._match(a, b)
        return s

    def recv(self, a, b, like, tag):
        r = _Recv(self, b, a, tag)
        r.like = like
        self.recvs[a, b].append(r)
        self._match(a, b)
        return r

    def _match(self, a, b):
        self.ends += 1
        if self.ends > 2*self.limit:
            self.hub.switch()                                # and never back
        sends, recvs = self.sends[a, b], self.recvs[a, b]
        if not (sends and recvs):
            return
        s, r = sends.popleft(), recvs.popleft()
        if r.tag is not None and r.tag != s.tag:
            raise Mismatch(f"rank {b} waits {r}, which sent it {_what(s.nbytes, s.tag)}" + self._others(b))
        if not _fits(s.parcel, r.like):
            raise Mismatch(f"rank {b} waits to receive {_form(r.like)} from rank {a}, which sent it "
                           f"{_form(s.parcel)}" + self._others(b))
        r.value = s.parcel
        (left, _, arrival, taken, link), counted = s.leaves
        r.ends = there, count = self.clock.arrive(b, arrival, taken, link), self.count.arrive(b, *counted[2:])
        self.told[a] = max(self.told[a], count)
        self.out.messages.append(Message(a, b, s.nbytes, s.tag, link, count, left, there))
        for h in (s, r):
            h.done = True
            if self.waits[h.rank] is h:
                self.waits[h.rank] = None
                self.ready.append(h.rank)

    def hold(self, rank, state):
        if self.out.size <= 32:                              # a picture of more is none
            self.out.holdings.append((max(self.count.now[rank], self.told[rank]), rank, _copy(state)))


FAREWELLS = 9                       # a run that ends ends so many waits of a rank, one after the other as it cleans up
_end = itemgetter(1)
_ROUND = Link(alpha=1, name="round")


def size_of(value):
    """Bytes of a payload: an array's own, 8 for a number or symbol, 0 for None, a text's in UTF-8.

    Lists, tuples and sets count their items, dicts their values.  ValueError for anything else.
    """
    if type(value) in (list, tuple):
        return sum(map(size_of, value))
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if value is None:
        return 0
    if isinstance(value, Number) or hasattr(value, "free_symbols"):
        return 8
    if isinstance(value, dict):
        return sum(size_of(v) for v in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sum(map(size_of, value))
    if isinstance(value, (str, bytes)):
        return len(value.encode() if isinstance(value, str) else value)
    raise ValueError(f"a payload of type {type(value).__name__}; allowed: arrays, numbers, text, None, and lists, "
                     "tuples, sets or dicts of them")


def _copy(value):
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(_copy, value))
    return value if isinstance(value, _FIXED) else copy.deepcopy(value)


_FIXED = (int, float, complex, str, bytes, frozenset, Fraction, np.generic, type(None))


def _fits(value, like):
    """Is this what `like` shows?  Arrays by type and shape, lists item by item; a number is any single value."""
    if like is None:
        return True
    if type(like) in (list, tuple):
        return type(value) in (list, tuple) and len(value) == len(like) and all(map(_fits, value, like))
    return type(value) not in (list, tuple) and _array(value) == _array(like)


def _array(value):
    return (value.dtype, value.shape) if getattr(value, "shape", ()) else None


def _form(value):
    if type(value) in (list, tuple):
        return f"a list of {len(value)}" + (f", first {_form(value[0])}" if value else "")
    return "a {} array of shape {}".format(*_array(value)) if _array(value) else f"one {type(value).__name__}"


def _what(nbytes, tag):
    return ("a message" if nbytes is None else f"{nbytes} bytes") + (f" (tag {tag!r})" if tag is not None else "")
