"""Schedules of a pipeline as plain data, and the clock that runs them.

    simulate(one_f_one_b(p=4, m=8), F=1, I=1, W=1).makespan        # 33 = (m + p - 1)(F + I + W)

A schedule is an order of operations for each device.  Nothing in it says when: an operation starts
as soon as its device is free and what it needs is there.  Any order that is typed in is checked.

A witness: it knows orders and clocks, and no formula.  Letters: p devices, m micro-batches,
v chunks of the model on a device, so p v stages, numbered 0, 1, ... as the forward meets them.
"""
from collections import defaultdict, deque
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate, chain, count, product
from math import inf
from numbers import Integral
from operator import add, sub
from typing import Any, NamedTuple


class Infeasible(ValueError):
    """No clock can run this order: the message says which operation is wrong, or who waits."""


class Op(NamedTuple):
    """One operation on one micro-batch: kind "F" forward, "B" backward, or the two halves of "B":
    "I" the gradient of the input, for which the stage before waits, "W" that of the weights."""
    kind: str
    stage: int
    microbatch: int

    def __str__(self):
        return f"{self.kind}(stage {self.stage}, micro-batch {self.microbatch})"


@dataclass(frozen=True, repr=False)
class Schedule:
    """orders[d]: what device d does, in this order: an Op, or a tuple of Ops run overlapped as one.

    chunks: stages on each device.  The stages lie where the orders put them, each on one device; or
    on two, if the second half of the micro-batches goes through the mirrored devices p-1-d.
    """
    name: str
    orders: tuple
    chunks: int = 1

    def __post_init__(self):
        object.__setattr__(self, "orders", tuple(map(tuple, self.orders)))

    @cached_property
    def slots(self):
        """The orders with every slot as a tuple of Ops.  ValueError for an Op or a slot that is none."""
        stages = len(self.orders)*self.chunks
        return tuple(tuple(_slot(slot, d, stages) for slot in order) for d, order in enumerate(self.orders))

    @cached_property
    def _plan(self):
        """What no duration changes: each op's device; each device's slots, with (op, what it needs, whether that is
        of this device) for all that they need; the most activations each holds."""
        home = _homes(self.slots, len(self.orders)*self.chunks)

        def needs(op):
            kind, s, j = op
            if kind == "F":
                return [("F", s-1, j)] if s else []
            if kind == "W":
                return [("I", s, j)]
            return [("F", s, j), *(x for x in (("B", s+1, j), ("I", s+1, j)) if x in home)]
        return (home, [[(slot, [(op, x, home[x] == d) for op in slot for x in needs(op)]) for slot in order]
                       for d, order in enumerate(self.slots)],
                [_peak(order, self.chunks) for order in self.slots])

    @property
    def microbatches(self):
        """How many micro-batches there are: one more than the largest number of one."""
        return 1 + max((op.microbatch for order in self.slots for slot in order for op in slot), default=-1)

    def __repr__(self):
        return f"<{self.name} on {len(self.orders)} devices; simulate(it) gives the times>"


# The schedules.  ValueError for a p, m or v that is not 1, 2, ... or that the schedule cannot do.

def gpipe(p, m):
    """All forwards, then all backwards: m activations on every device."""
    _counts(p=p, m=m)
    return Schedule("GPipe", [_play("F0 "*m + "B0 "*m, [(s, 0)]) for s in range(p)])


def one_f_one_b(p, m):
    """Device s does p-s-1 forwards, then forward and backward in turn: min(m, p-s) activations."""
    _counts(p=p, m=m)
    return Schedule("1F1B", [
        _play(_alternate(["F0"]*m, ["B0"]*m, p-s-1), [(s, 0)]) for s in range(p)])


def interleaved(p, m, v):
    """1F1B in groups of p micro-batches, with stages s, p+s, 2p+s, ... on device s: as Megatron.

    Device s does 2(p-s-1) + (v-1)p forwards first, so device 0 holds min(m, p + (p-1)/v)
    activations: with v = 1 more than 1F1B, for nothing.  ValueError unless p divides m.
    """
    _counts(p=p, m=m, v=v)
    if m % p:
        raise ValueError(f"m = {m}; allowed: a multiple of p = {p}")
    forwards, backwards = ([f"{kind}{c}" for c in chunks for _ in range(p)]*(m//p)
                           for kind, chunks in (("F", range(v)), ("B", reversed(range(v)))))
    return Schedule("Interleaved 1F1B", [
        _play(_alternate(forwards, backwards, 2*(p-s-1) + (v-1)*p),
              [(c*p + s, 0) for c in range(v)]) for s in range(p)], chunks=v)


def zb_h1(p, m):
    """1F1B with the backward split; device s does its weight gradients s micro-batches late.

    min(m, p) activations on every device.  The handcrafted order of Qi et al., arXiv:2401.10241.
    """
    _counts(p=p, m=m)
    return Schedule("ZB-H1", [_lagging(s, m, warmup=p-s-1, lag=s) for s in range(p)])


def zb_h2(p, m):
    """ZB-H1 with lag 2s, and 2(p-s)-1 forwards before a backward: min(m, 2p-1) activations."""
    _counts(p=p, m=m)
    return Schedule("ZB-H2", [_lagging(s, m, warmup=2*(p-s-1), lag=2*s) for s in range(p)])


def zb_v(p, m):
    """Stages d and 2p-1-d on device d, the backward split: p activations on every device.

    Made for m >= 2p-1; a smaller m takes what it has of that order, which is not always the best one
    for so few (7 of two devices and two micro-batches, where 6.5 can be had).  Qi et al., arXiv:2405.15362.
    """
    _counts(p=p, m=m)
    n = max(m, 2*p-1)

    def order(d):
        r = p - d
        program = ("F0 "*(2*r-1) + "F1 F0 "*d + "F1 I1 W1 "*r
                   + "F0 I0 W0 F1 I1 W1 "*(n-p-r+1) + "I0 W0 F1 I1 W1 "*(r-1)
                   + "I0 I1 "*d + "I0 W0 "*r + "W1 "*d + "W0 "*d)
        return [op for op in _play(program, [(d, 0), (2*p-1-d, 0)]) if op.microbatch < m]
    return Schedule("ZB-V", map(order, range(p)), chunks=2)


def dualpipe(p, m):
    """Half of the micro-batches enter at each end; forwards run overlapped with backwards.

    p+1 activations on every device, and stages d and p-1-d: the parameters twice.  The eight steps
    of github.com/deepseek-ai/DualPipe.  ValueError unless p and m are even and m is at least 2p.
    """
    _counts(p=p, m=m)
    if p % 2:
        raise ValueError(f"p = {p}; allowed: 2, 4, ...")
    if m % 2 or m < 2*p:
        raise ValueError(f"m = {m}; allowed: an even number, at least 2p = {2*p}")

    def order(d):
        near = min(d, p-1-d)                               # devices between this one and the end
        far = p//2 - 1 - near                              # and between it and the middle
        ways = [(d, 0), (p-1-d, m//2)]
        program = ("F0 "*2*far + "F0 F1 "*(near+1) + "I1 W F1 "*far
                   + ("F0&B1 " if far else "F0 B1 ") + "F1&B0 " + "F0&B1 F1&B0 "*(m//2 - p + near)
                   + "B1 F1&B0 "*far
                   + ("B1 B0 "*p)[:3*(near+1)] + ("I1 I0 "*p)[-3*(near+1):]
                   + "W I0 "*far + "W "*(near+1))
        return _play(program, ways if d == near else ways[::-1])
    return Schedule("DualPipe", map(order, range(p)))


def _counts(**counts):
    for name, value in counts.items():
        if not (isinstance(value, Integral) and value >= 1):
            raise ValueError(f"{name} = {value!r}; allowed: 1, 2, ...")


def _alternate(forwards, backwards, warmup):
    """The program: `warmup` forwards, forward and backward in turn, the backwards left over."""
    warmup = min(warmup, len(forwards))
    pairs = chain(*zip(forwards[warmup:], backwards))
    return " ".join([*forwards[:warmup], *pairs, *backwards[len(forwards) - warmup:]])


def _lagging(s, m, warmup, lag):
    """The slots of a stage whose weight gradient comes `lag` micro-batches after the input's."""
    lag = min(lag, m)
    program = _alternate(["F0"]*m, ["I0"]*lag + ["I0 W0"]*(m-lag), warmup) + " W0"*lag
    return _play(program, [(s, 0)])


def _play(program, ways):
    """The slots of a program: F0 the next forward on way 0, W the oldest weight gradient owed,
    F0&B1 both at once; ways: the stage and the first micro-batch of way 0, 1, ..."""
    turn = {f"{kind}{way}": count(first) for way, (_, first) in enumerate(ways) for kind in "FBW"}
    owed = deque()

    def op(step):
        if step == "W":
            return owed.popleft()
        stage, j = ways[int(step[1:])][0], next(turn[step.replace("I", "B")])
        if step[0] == "I":
            owed.append(Op("W", stage, j))
        return Op(step[0], stage, j)
    return [tuple(map(op, slot.split("&"))) if "&" in slot else op(slot)
            for slot in program.split()]


# The clock.

@dataclass(frozen=True, repr=False)
class Timeline:
    """When everything happened, in the unit of the durations; lists have an entry for each device.

    start, end: dicts from Op to time.  makespan: when the last device is done.  spans: from a
    device's first start to its last end; busy: what it worked of that.  peak_activations: the most
    it held, of one micro-batch on one device: 1/chunks more at every F, less at every B or W.
    """
    schedule: Schedule
    start: dict
    end: dict
    makespan: Any
    spans: list
    busy: list
    peak_activations: list

    def __repr__(self):
        return f"<{self.schedule.name} on {len(self.busy)} devices: time {self.makespan}>"

    def idle(self, of="total"):
        """Idle time up to the makespan, over all time ("total") or the work ("ideal")."""
        if of not in ("total", "ideal"):
            raise ValueError(f"of = {of!r}; allowed: 'total', 'ideal'")
        total, work = len(self.busy)*self.makespan, sum(self.busy)
        return (total - work)/(total if of == "total" else work)


def simulate(schedule, F=1, I=1, W=1, B=None, pair=None, send=0, maximum=max):
    """Run a schedule: a slot starts when its device is free and all it needs is there.  -> Timeline

    F(s, j) needs F(s-1, j); B and I need F(s, j) and B or I of (s+1, j); W needs I.

    F, I, W, B: time of one micro-batch on one device, of which a chunk takes 1/chunks; or a list,
    the time of each stage.  B None: I + W.  pair: time of an overlapped slot; None: the sum of its
    parts.  send: added when what is needed comes from another device.  All in one unit: numbers,
    Fractions (times are exact then) or symbols, with maximum=sympy.Max.

    Infeasible for an order with an operation missing, twice, on the wrong device, or that waits for
    itself.  ValueError for a time below 0, a list of another length, an Op or slot that is none.
    """
    p, v = len(schedule.orders), schedule.chunks
    _counts(devices=p, chunks=v)
    home, orders, peaks = schedule._plan
    times = {kind: _times(kind, time, v, p*v) for kind, time in zip("FIW", (F, I, W))}
    times["B"] = [*map(add, times["I"], times["W"])] if B is None else _times("B", B, v, p*v)
    pair, send = pair if pair is None else _part("pair", pair, v), _part("send", send, 1)

    start, end, busy = {}, {}, [0]*p
    done, free, first = [0]*p, [0]*p, [0]*p                # slots done, when free, the first start
    waits, wake, ready = {}, defaultdict(list), deque(range(p))
    while ready:
        d = ready.popleft()
        waits.pop(d, None)
        while done[d] < len(orders[d]):
            slot, needed = orders[d][done[d]]
            there = [free[d]]
            for op, x, near in needed:
                if x not in end:
                    waits[d] = op, x
                    wake[x].append(d)
                    break
                there.append(end[x] if near else end[x] + send)
            if d in waits:
                break
            begin = reduce(maximum, there)
            took = pair if pair is not None and len(slot) > 1 else sum([times[op.kind][op.stage] for op in slot])
            first[d] = first[d] if done[d] else begin
            free[d], busy[d], done[d] = begin + took, busy[d] + took, done[d] + 1
            for op in slot:
                start[op], end[op] = begin, free[d]
                ready.extend(wake.pop(op, ()))
    if waits:
        raise Infeasible(_cycle(waits, home))
    return Timeline(schedule, start, end, reduce(maximum, free), [*map(sub, free, first)], busy,
                    [*peaks])


def flow_shop(first, second, maximum=max):
    """When the second machine ends each job, taking them in the order in which the first ends them.

    first, second: times of job 0, 1, ... on the two machines, in one unit.  ValueError for lists of
    different lengths, or a time below 0.
    """
    if len(first) != len(second):
        raise ValueError(f"second has {len(second)} times; allowed: {len(first)}, as first")
    ends, end = [], 0
    for there, time in zip(accumulate(_part("first", t, 1) for t in first), second):
        end = maximum(there, end) + _part("second", time, 1)
        ends.append(end)
    return ends


def _slot(slot, device, stages):
    """As a tuple of Ops."""
    ops = (slot,) if isinstance(slot, Op) else slot
    if not (isinstance(ops, (tuple, list)) and ops and all(isinstance(op, Op) for op in ops)):
        raise ValueError(f"slot {slot!r} on device {device}; allowed: an Op, or a tuple of Ops")
    for op in ops:
        if op.kind not in ("F", "B", "I", "W"):
            raise ValueError(f"kind = {op.kind!r} on device {device}; allowed: 'F', 'B', 'I', 'W'")
        if op.stage not in range(stages):
            raise ValueError(f"stage = {op.stage!r} on device {device}; allowed: 0 to {stages - 1}")
        if not (isinstance(op.microbatch, (int, Integral)) and op.microbatch >= 0):
            raise ValueError(f"microbatch = {op.microbatch!r} on device {device}; "
                             "allowed: 0, 1, ...")
    return tuple(ops)


def _homes(orders, stages):
    """The device of each op.  Infeasible unless every op is there, once, and where its stage is."""
    home = {}
    for d, order in enumerate(orders):
        for op in chain(*order):
            if op in home:
                raise Infeasible(f"{op} is there twice: on device {home[op]} and on device {d}")
            home[op] = d
    m = 1 + max((op.microbatch for op in home), default=0)
    for j, s in product(range(m), range(stages)):
        kinds = [kind for kind in "FBIW" if (kind, s, j) in home]
        if "".join(kinds) not in ("FB", "FIW"):
            raise Infeasible(f"stage {s}, micro-batch {j} has {' and '.join(kinds) or 'nothing'}; "
                             "allowed: F and B, or F and I and W")
    there = [home["F", s, 0] for s in range(stages)]
    mirror = [len(orders) - 1 - d for d in there]
    last = mirror if [home["F", s, m-1] for s in range(stages)] == mirror else there
    for (kind, s, j), d in home.items():
        where = (last if 2*j >= m else there)[s]
        if d != where:
            raise Infeasible(f"{Op(kind, s, j)} is on device {d}; its stage is on device {where}")
    return home


def _times(name, time, chunks, stages):
    """The time of one micro-batch on each stage."""
    if not hasattr(time, "__len__"):
        return [_part(name, time, chunks)]*stages
    if len(time) != stages:
        raise ValueError(f"{name} has {len(time)} times; allowed: one for each of {stages} stages")
    return [_part(name, t, 1) for t in time]


def _part(name, time, chunks):
    """time/chunks, exact for ints."""
    try:
        ok = bool(0 <= time < inf)
    except TypeError:                                      # a symbol cannot tell
        ok = hasattr(time, "free_symbols")
    if not ok:
        raise ValueError(f"{name} = {time!r}; allowed: a time, at least 0")
    if chunks == 1:
        return time
    return Fraction(time, chunks) if isinstance(time, int) else time/chunks


def _peak(order, chunks):
    """The most activations held; in a slot the new one comes before the old one goes."""
    held = accumulate(change for slot in order for change in sorted(
        [(op.kind == "F") - (op.kind in "BW") for op in slot], reverse=True))
    peak = max(held, default=0)
    return peak if chunks == 1 else Fraction(peak, chunks)


def _cycle(waits, home):
    """The circle of devices in words; waits: device -> (op at its head, op it waits for)."""
    path, d = [], next(iter(waits))
    while d not in path:
        path.append(d)
        d = home[waits[d][1]]
    steps = [f"waits at {waits[d][0]} for {Op(*waits[d][1])} on device {home[waits[d][1]]}"
             for d in path[path.index(d):]]
    return f"device {d} " + ", which ".join(steps)
