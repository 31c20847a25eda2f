"""Schedules that run layers again instead of keeping what they left, and a machine that obeys them.

A chain of L layers turns the state x_0 into x_1, ..., x_L.  A layer is a function x -> (y, back), as in `tiny`: what
`back` holds is the layer's tape, and back(dy) -> dx, dw.  A schedule is a list of actions:

    ("run", i)      x_i -> x_(i+1); the tape is dropped            ("save", i)   keep the current x_i
    ("tape", i)     the same, and the tape is kept                 ("load", i)   a kept x_i becomes the current state
    ("back", i)     the gradient passes layer i; its tape is gone  ("free", i)   drop a kept x_i

`execute` runs a schedule on real layers, counts the bytes that are alive and refuses what it does not hold.
`count` does the same for layers of which only sizes are known.  The rest finds schedules: in segments, by the
recursion of the binomial optimum, by a recursion for layers that differ, by trying everything, and by trying everything
for layers that read more than the state before them.

A witness: it knows arrays and lists, and no formula.
"""
import functools
import heapq
import itertools
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from . import tiny


class Missing(LookupError):
    """A schedule asks for a state or a tape that is not there."""


class Done(NamedTuple):
    """What a schedule did: runs forward (tapes included), tapes made, most bytes alive, a row for each action.

    rows: (action, i, bytes alive after it, states kept, tapes kept).  dx: gradient of x_0; dw: one for each layer.
    """
    runs: int
    tapes: int
    peak: float
    rows: list
    dx: Any = None
    dw: Any = None


def held(*things, known=()):
    """Bytes of the arrays that things hold: arrays, functions with what they enclose, tuples, lists, dicts.

    An array, or several views of one, counts once.  known: arrays that do not count, such as the weights.
    """
    skip = {id(_owner(a)) for a in known}
    found, seen, todo = {}, set(), list(things)
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            owner = _owner(thing)
            if id(owner) not in skip:
                found[id(owner)] = owner.nbytes
        elif isinstance(thing, dict):
            todo += thing.values()
        elif isinstance(thing, (tuple, list)):
            todo += thing
        elif callable(thing):
            todo += [c.cell_contents for c in getattr(thing, "__closure__", None) or ()]
            todo += getattr(thing, "__defaults__", None) or ()
    return sum(found.values())


def _owner(a):
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def execute(schedule, chain, x, dy, *, reads=None, known=(), rng=None, replay=True):
    """Runs a schedule on layers x -> (y, back); dy: the gradient of what the last layer returns.

    known: arrays that do not count as alive; None counts no bytes.  rng: the generator that layers draw from; with replay its state at the
    first run of a layer is set again at later ones.  Missing if a state or tape is asked for that is not there.
    reads: the states that each layer reads, such as (1, 3); it is called with them, current or kept, and its back returns
    a gradient for each.  By default the current state alone.
    """
    chain, states, tapes, saved, dw = list(chain), {}, {}, {}, {}
    at, rows, runs, made, gone, slopes = 0, [], 0, 0, len(chain), {len(chain): dy}
    for action, i in schedule:
        if action in (("save",) if reads else ("run", "tape", "save")) and at != i:
            raise Missing(f"{action} {i}: the current state is {'none' if at is None else f'x_{at}'}")
        if action in ("run", "tape"):
            if rng is not None:
                if replay and i in states:
                    rng.bit_generator.state = states[i]
                else:
                    states[i] = rng.bit_generator.state
            if lost := [r for r in (reads or {}) and reads[i] if r != at and r not in saved]:
                raise Missing(f"{action} {i}: x_{lost[0]} is neither current nor kept")
            x, back = chain[i](*(x if r == at else saved[r] for r in reads[i])) if reads else chain[i](x)
            at, runs = i + 1, runs + 1
            if action == "tape":
                tapes[i], made = back, made + 1
            del back
        elif action == "save":
            saved[i] = x
        elif action == "load":
            if i not in saved:
                raise Missing(f"load {i}: x_{i} is not kept")
            x, at = saved[i], i
        elif action == "free":
            if i not in saved:
                raise Missing(f"free {i}: x_{i} is not kept")
            del saved[i]
        elif action == "back":
            if i != gone - 1:
                raise Missing(f"back {i}: the gradient stands behind layer {gone - 1}")
            if i not in tapes:
                raise Missing(f"back {i}: no tape of layer {i}")
            dx, dw[i] = tapes.pop(i)(slopes.pop(i + 1))
            dw[i] = dw[i]() if callable(dw[i]) else dw[i]
            for r, d in zip(reads[i], dx, strict=True) if reads else [(i, dx)]:
                slopes[r] = slopes[r] + d if r in slopes else d
            x, at, gone = None, None, i
        else:
            raise ValueError(f"no action {action!r}; allowed: run, tape, save, load, back, free")
        alive = 0 if known is None else held(*saved.values(), *tapes.values(), known=known)
        rows.append((action, i, alive, (*saved,), (*tapes,)))
    if gone:
        raise Missing(f"the gradient stops behind layer {gone - 1}")
    return Done(runs, made, max(r[2] for r in rows), rows, slopes[0], [dw[i] for i in range(len(chain))])


def count(schedule, layers, state=1, tape=0):
    """The same for layers that are sizes: bytes of a state and of a tape, numbers or one for each layer.

    A tape counts whole, so a layer whose input is kept as well has it twice.
    """
    state, tape = (np.broadcast_to(v, layers).tolist() for v in (state, tape))
    done = execute(schedule, [lambda x: (x, lambda dy: (dy, None))]*layers, None, None, known=None)
    rows, alive, before = [], 0, ((), ())
    for action, i, _, *now in done.rows:
        alive += sum((len(new) - len(old))*size[i] for old, new, size in zip(before, now, (state, tape)))
        rows.append((action, i, alive, *now))
        before = now
    return done._replace(rows=rows, peak=max(r[2] for r in rows))


# ---- schedules
def keep_all(layers):
    """Every tape is kept, no layer runs twice."""
    return [("tape", i) for i in range(layers)] + [("back", i) for i in reversed(range(layers))]


def segments(lengths, keep_last=False):
    """The input of each segment is kept; a segment runs again, with tapes, when the gradient arrives.

    keep_last: the last segment keeps its tapes in the first sweep, and does not run again.
    """
    starts = [0, *itertools.accumulate(lengths)]
    out, end = [], starts[-1]
    for first, after in itertools.pairwise(starts):
        last = keep_last and after == end
        out += [] if last else [("save", first)]
        out += [("tape" if last else "run", i) for i in range(first, after)]
    for first, after in reversed([*itertools.pairwise(starts)]):
        if not (keep_last and after == end):
            out += [("load", first), *(("tape", i) for i in range(first, after))]
        out += [("back", i) for i in reversed(range(first, after))]
        out += [] if keep_last and after == end else [("free", first)]
    return out


def lengths(layers, memory, state, tape):
    """Segments, longest first, whose peak stays within memory; the j-th has room for (memory - j state)/tape tapes.

    ValueError if there is no room for all layers.
    """
    out = []
    while sum(out) < layers:
        room = int((memory - (len(out) + 1)*state)//tape)
        if room < 1:
            raise ValueError(f"{layers} layers do not fit into {memory}")
        out.append(min(room, layers - sum(out)))
    return out


@cache
def advances(layers, slots):
    """Least runs forward, tapes not counted, that take the gradient through a chain with slots kept states.

    x_0 takes one of the slots.  Advance to some x_k and keep it; go back to it with one slot fewer; then again from x_0.
    """
    if layers == 1:
        return 0
    if slots == 1:
        return advances(layers - 1, 1) + layers - 1
    return min(k + advances(layers - k, slots - 1) + advances(k, slots) for k in range(1, layers))


def binomial(layers, slots):
    """A schedule with that many runs."""
    def reverse(first, after, slots):
        while after - first > 1 and slots > 1:
            n = after - first
            k = min(range(1, n), key=lambda k: k + advances(n - k, slots - 1) + advances(k, slots))
            yield from (("run", i) for i in range(first, first + k))
            yield ("save", first + k)
            yield from reverse(first + k, after, slots - 1)
            yield from (("free", first + k), ("load", first))
            after = first + k
        while after > first:
            yield from (("run", i) for i in range(first, after - 1))
            yield from (("tape", after - 1), ("back", after - 1))
            after -= 1
            if after > first:
                yield ("load", first)
    return [("save", 0), *reverse(0, layers, slots), ("free", 0)]


def least_time(times, states, tapes, memory):
    """Least seconds of runs, tapes included, for layers that differ, and the schedule; (inf, None) if nothing fits.

    times, states, tapes: of each layer a run, the bytes of its input, of its tape; memory: bytes.
    Nested schedules: what is kept on the way forward stays until the gradient is there.  Take a tape, or run ahead to x_k
    and come back; x_k may be kept or be the input of a tape.
    """
    states, L = tuple(states), len(times)
    ahead = (0, *itertools.accumulate(times))

    @cache
    def best(i, j, m, kept):
        """Layers i to j - 1, x_i current and, if kept, also saved: seconds and the first move."""
        if i == j:
            return 0, None
        out = (np.inf, None)
        if tapes[i] <= m:
            out = min(out, (times[i] + best(i + 1, j, m - tapes[i], False)[0], ("tape",)), key=lambda o: o[0])
        if kept:
            for k in range(i + 1, j):
                cost = ahead[k] - ahead[i] + best(k, j, m, False)[0] + best(i, k, m, True)[0]
                out = min(out, (cost, ("ahead", k)), key=lambda o: o[0])
        elif states[i] <= m:
            out = min(out, (best(i, j, m - states[i], True)[0], ("save",)), key=lambda o: o[0])
        return out

    def actions(i, j, m, kept):
        if i == j:
            return
        move = best(i, j, m, kept)[1]
        if move[0] == "tape":
            yield ("tape", i)
            yield from actions(i + 1, j, m - tapes[i], False)
            yield ("back", i)
        elif move[0] == "save":
            yield ("save", i)
            yield from actions(i, j, m - states[i], True)
            yield ("free", i)
        else:
            k = move[1]
            yield from (("run", n) for n in range(i, k))
            yield from actions(k, j, m, False)
            yield ("load", i)
            yield from actions(i, k, m, True)

    cost = best(0, L, memory, False)[0]
    return (cost, [*actions(0, L, memory, False)]) if cost < np.inf else (cost, None)


def front(layers, state, tape, memories, *, once=False):
    """`least_time` for equal layers of one second and whole bytes, for each of the memories: a list of runs.

    once: a kept input counts no more when its tape, which holds it, is alive.
    """
    M = max(memories) + 1
    big = 10**9

    def less(row, by):                                   # the same row with `by` bytes fewer
        return np.concatenate([np.full(min(by, M), big), row[:max(M - by, 0)]])

    kept, free = [np.zeros(M, int)], [np.zeros(M, int)]
    for n in range(1, layers + 1):
        tape_first = 1 + less(free[n - 1], tape)
        ways = [1 + less(free[n - 1], tape - state) if once else tape_first] + [k + free[n - k] + kept[k] for k in range(1, n)]
        kept.append(np.minimum(np.min(ways, 0), big))
        free.append(np.minimum(np.minimum(tape_first, less(kept[n], state)), big))
    return [int(free[layers][m]) for m in memories]


def try_everything(layers, memory, times=1, state=1, tape=0, *, unit=False, anywhere=False, once=False):
    """Least seconds of runs within memory by search, over all schedules of the machine that hold a kept input until its
    layer is done; inf if there is none.

    anywhere: over all schedules, which may free a kept input at any time and make it again.
    unit: the gradient passes a layer whose input is the current state, and takes no tape and no run.
    once: as in `front`.  For a few layers: there are about 4**layers states.
    """
    times, state, tape = (np.broadcast_to(v, layers) for v in (times, state, tape))

    def size(saved, tapes):
        saved &= ~tapes if once else -1
        return sum(state[i] for i in range(layers) if saved >> i & 1) + sum(tape[i] for i in range(layers) if tapes >> i & 1)

    start = (0, 0, 0, layers)                            # saved, tapes, current state (-1: none), layers still to pass
    least, todo = {start: 0}, [(0, start)]
    while todo:
        cost, now = heapq.heappop(todo)
        saved, tapes, at, left = now
        if left == 0:
            return cost
        if cost > least[now]:
            continue
        moves = [(0, (saved & ~(1 << i), tapes, at, left)) for i in range(0 if anywhere else left, layers) if saved >> i & 1]
        moves += [(0, (saved, tapes, i, left)) for i in range(layers) if saved >> i & 1]
        if 0 <= at < left:
            moves.append((0, (saved | 1 << at, tapes, at, left)))
            moves.append((times[at], (saved, tapes, at + 1, left)))
            if not unit:
                moves.append((times[at], (saved, tapes | 1 << at, at + 1, left)))
        if unit and at == left - 1 or tapes >> left - 1 & 1:
            moves.append((0, (saved, tapes & ~(1 << left - 1), -1, left - 1)))
        for more, then in moves:
            if cost + more < least.get(then, np.inf) and size(then[0], then[1]) <= memory:
                least[then] = cost + more
                heapq.heappush(todo, (cost + more, then))
    return np.inf


def graph_least(times, states, tapes, reads, memory, *, anywhere=False):
    """Least seconds of runs within memory, and a schedule, for a graph of at most twelve layers; (inf, None) if nothing fits.

    reads: the states that each layer reads: layer i makes x_(i+1) of some of x_0, ..., x_i.  times, states, tapes: of each layer a
    run, the bytes of x_i, of its tape.  A layer runs when what it reads is current or kept; gradients come back from the last layer
    to the first.  Over all schedules that hold a kept state until the layers that read it are done; anywhere: over all.
    By search from the cheapest on (Checkmate asks an integer program); what a state still has to pay is at least one run,
    with tape, of each layer that has none.
    """
    L = len(times)
    if not 0 < L <= 12:
        raise ValueError(f"times has {L} layers; allowed: 1 to 12")
    if wrong := [i for i in range(L) if not reads[i] or not 0 <= min(reads[i]) <= max(reads[i]) <= i]:
        raise ValueError(f"reads[{wrong[0]}] = {reads[wrong[0]]!r}; allowed: some of the states 0 to {wrong[0]}")
    needs = [sum(1 << r for r in set(reads[i])) for i in range(L)]
    wanted = [functools.reduce(int.__or__, needs[:left], 0) for left in range(L + 1)]      # by layers that are still to pass
    weigh = cache(lambda mask, sizes: sum(n for i, n in enumerate(sizes) if mask >> i & 1))
    times, states, tapes = tuple(times), tuple(states), tuple(tapes)

    def owed(taped, left):
        return weigh((1 << left) - 1 & ~taped, times)

    start = (0, 0, 0, L)                                 # kept, taped, current state (-1: none), layers still to pass
    least, came, todo = {start: 0}, {}, [(owed(0, L), start)]
    while todo:
        bound, now = heapq.heappop(todo)
        kept, taped, at, left = now
        if left == 0:
            return least[now], _way(came, now)
        if bound > least[now] + owed(taped, left):
            continue
        moves = [(0, ("load", i), (kept, taped, i, left)) for i in range(L) if kept >> i & 1 and i != at]
        if anywhere:
            moves += [(0, ("free", i), (kept & ~(1 << i), taped, at, left)) for i in range(L) if kept >> i & 1]
        if at >= 0 and wanted[left] >> at & 1 and not kept >> at & 1:
            moves.append((0, ("save", at), (kept | 1 << at, taped, at, left)))
        here = kept | (1 << at if at >= 0 else 0)
        for i in range(left):
            if not needs[i] & ~here:
                moves.append((times[i], ("run", i), (kept, taped, i + 1, left)))
                if not taped >> i & 1:
                    moves.append((times[i], ("tape", i), (kept, taped | 1 << i, i + 1, left)))
        if taped >> left - 1 & 1:
            moves.append((0, ("back", left - 1), (kept & wanted[left - 1], taped & ~(1 << left - 1), -1, left - 1)))
        for cost, move, then in moves:
            cost += least[now]
            if cost < least.get(then, np.inf) and weigh(then[0], states) + weigh(then[1], tapes) <= memory:
                least[then], came[then] = cost, (move, now)
                heapq.heappush(todo, (cost + owed(then[1], then[3]), then))
    return np.inf, None


def _way(came, now):
    """The moves that led to a state; what is kept and no more wanted is freed where a gradient passes."""
    out = []
    while now in came:
        move, before = came[now]
        gone = before[0] & ~now[0] if move[0] == "back" else 0
        out += [("free", i) for i in range(gone.bit_length()) if gone >> i & 1] + [move]
        now = before
    return out[::-1]


# ---- which tensors of a layer
def by_ratio(tensors):
    """Names of tensors {name: (bytes, cost)}, most bytes freed for the cost of making them again first."""
    return sorted(tensors, key=lambda name: -tensors[name][0]/tensors[name][1])


def take(order, tensors, need):
    """The first names of an order that free need bytes together; ValueError if all do not."""
    out = []
    for name in order:
        if sum(tensors[n][0] for n in out) >= need:
            break
        out.append(name)
    if sum(tensors[n][0] for n in out) < need:
        raise ValueError(f"all tensors free less than {need}")
    return out


def cheapest(tensors, need):
    """The least cost at which some of the tensors free need bytes, over all subsets."""
    sets = itertools.chain.from_iterable(itertools.combinations(tensors.values(), n) for n in range(len(tensors) + 1))
    return min((sum(c for _, c in s) for s in sets if sum(b for b, _ in s) >= need), default=np.inf)


# ---- layers of `tiny` that keep less
def again(layer):
    """The same layer, whose tape is its input: back runs it once more."""
    def thrifty(*args):
        y, _ = layer(*args)
        return y, lambda dy: layer(*args)[1](dy)
    return thrifty


def block(x, w, at, drop=()):
    """`tiny.block` that makes some tensors again: "norms" and "product" (the input of down), and "attention".

    dw must be asked for before the layer's weights change.
    """
    attend = again(tiny.attention) if "attention" in drop else tiny.attention

    def linear(make, w, axes=1):
        """`tiny.linear` of make(), which back makes again."""
        y, _ = tiny.linear(make(), w, axes)
        return y, lambda dy: tiny.linear(make(), w, axes)[1](dy)

    def source(value, make, name):
        return make if name in drop else lambda: value

    def attention(x):
        h, back_norm = tiny.rms_norm(x, w["attention_norm"])
        make = source(h if "norms" not in drop else None, lambda: tiny.rms_norm(x, w["attention_norm"])[0], "norms")
        (q, back_q), (k, back_k), (v, back_v) = (linear(make, w[n]) for n in "qkv")
        out, back_attend = attend(q, k, v, at, at)
        y, back_o = tiny.linear(out, w["o"], axes=2)

        def back(dy):
            dout, do = back_o(dy)
            (dx1, dq), (dx2, dk), (dx3, dv) = (f(dz) for f, dz in zip((back_q, back_k, back_v), back_attend(dout)))
            dx, dgain = back_norm(dx1 + dx2 + dx3)
            return dy + dx, lambda: {"attention_norm": dgain(), "q": dq(), "k": dk(), "v": dv(), "o": do()}
        return x + y, back

    def feed(x):
        h, back_norm = tiny.rms_norm(x, w["ffn_norm"])
        make = source(h if "norms" not in drop else None, lambda: tiny.rms_norm(x, w["ffn_norm"])[0], "norms")
        (gate, back_gate), (up, back_up) = (linear(make, w[n]) for n in ("gate", "up"))

        def product():
            return gate*(1/(1 + np.exp(-gate)))*up
        y, back_down = linear(source(None if "product" in drop else product(), product, "product"), w["down"])

        def back(dy):
            dz, ddown = back_down(dy)
            share = 1/(1 + np.exp(-gate))
            dx1, dgate = back_gate(dz*up*share*(1 + gate*(1 - share)))
            dx2, dup = back_up(dz*gate*share)
            dx, dgain = back_norm(dx1 + dx2)
            return dy + dx, lambda: {"ffn_norm": dgain(), "gate": dgate(), "up": dup(), "down": ddown()}
        return x + y, back

    x, back_attention = attention(x)
    x, back_ffn = feed(x)

    def back(dy):
        dx, ffn = back_ffn(dy)
        dx, first = back_attention(dx)
        return dx, lambda: first() | ffn()
    return x, back


def dropout(layer, rng, rate=0.5):
    """The layer, and numbers of its output set to 0 with a mask that is drawn from rng and kept on the tape."""
    def noisy(x):
        y, back = layer(x)
        mask = (rng.random(y.shape) >= rate)/(1 - rate)
        return y*mask, lambda dy: back(dy*mask)
    return noisy


def chain(layers=8, sequences=2, length=6, seed=0, **sizes):
    """Blocks of `tiny` as a chain: layers x -> (y, back), the first x, a gradient dy, and the weights to leave uncounted."""
    w = tiny.weights(layers, seed=seed, **sizes)
    rng, at = np.random.default_rng(seed + 1), np.arange(length)
    blocks = [tiny.block_weights(w, i) for i in range(layers)]
    x, dy = rng.normal(size=(2, sequences, length, len(w["norm"])))
    x, dy = x.copy(), dy.copy()
    return [lambda x, v=v: tiny.block(x, v, at) for v in blocks], x, dy, [*w.values(), at]
