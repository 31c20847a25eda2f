"""Where a step's bytes are: the small transformer of `tiny`, run under a ledger that sees every array come and go.

    t = record(layers=4)                    # forward, backward, Adam
    t.peak()                                # Peak(bytes=..., instant=..., kinds={...})

Nothing says what is stored.  An array enters the ledger when NumPy makes its buffer, and leaves when Python lets go of
it; what a closure of `tiny` still needs for its backward pass is alive for that reason and no other.  Views share the
buffer of their base and count once.  What a kind is follows from how long a buffer lives: born in the forward pass and
alive when it ends, an activation; born in the backward pass and alive when it ends, a gradient; else a workspace.  What is
made to be sent is traffic.

Widths: NumPy has no bfloat16, so float32 stands for it and float64 for float32: every byte counts double.  Each buffer
also knows the letters of its shape, (s, h) or (s, g, j, d), so the same step can be read at any sizes: `at(sizes)`.

Second half: a caching allocator by PyTorch's rules, that replays such a ledger and shows what rounding and splitting add.

A witness: it knows arrays and who holds them, and no formula.
"""
import functools
import weakref
from bisect import bisect_left, insort
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from . import tiny

NARROW, WIDE = np.float32, np.float64
KINDS = "weights", "gradients", "optimizer", "traffic", "activations", "logits", "workspace", "data"
SIZES = {"s": 6, "h": 11, "a": 8, "g": 2, "j": 4, "d": 5, "f": 13, "v": 17, "r": 3}    # all different: a size names its letter
BYTES = {"float32": 4, "float64": 8, "int64": 8, "bool": 1}                             # of NumPy
REAL = {"float32": 2, "float64": 4, "int64": 8, "bool": 1}                              # of what they stand for


class Buffer(NamedTuple):
    """One buffer: place where it was made ("block 3"), phase, letters of its shape, dtype; born and died are instants."""
    place: str
    phase: str
    shape: tuple
    dtype: str
    kind: str
    born: int
    died: int


@functools.cache
def _name(dtype):
    return dtype.name


class Ledger:
    """Sees buffers come and go.  An instant is one of these events; `marks` are the instants at which a phase began."""

    def __init__(self, letters):
        self.letters = {size: letter for letter, size in letters.items()} | {1: ""}
        self.seen, self.buffers, self.instant, self.place, self.phase, self.marks = {}, [], 0, "", "", {}

    def see(self, array):
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if id(owner) in self.seen or not owner.nbytes:
            return
        shape = tuple(filter(None, (self.letters[n] for n in array.shape)))
        assert prod(array.shape)*array.itemsize == owner.nbytes, "the first sight of a buffer is the whole of it"
        k = self.seen[id(owner)] = len(self.buffers)
        self.buffers.append([self.place, self.phase, shape, _name(array.dtype), self.instant, None])
        self.instant += 1
        weakref.finalize(owner, self._gone, id(owner), k)

    def _gone(self, owner, k):
        del self.seen[owner]
        self.buffers[k][-1] = self.instant
        self.instant += 1

    def begin(self, phase):
        self.phase = phase
        self.marks[phase] = self.instant

    @contextmanager
    def at(self, place):
        before, self.place = self.place, place
        yield
        self.place = before


class Counted(np.ndarray):
    """An array whose buffer, and that of everything computed from it, stands in the open ledger."""
    ledger = None

    def __array_finalize__(self, source):
        if Counted.ledger is not None:
            Counted.ledger.see(self)

    def __array_function__(self, function, types, args, kwargs):
        return _counted(super().__array_function__(function, types, args, kwargs))


def _counted(made):
    return made.view(Counted) if type(made) is np.ndarray else made


@dataclass(frozen=True, repr=False)
class Peak:
    """The most that lived at once: bytes, the instant, the phase and place of the buffer that made it so, bytes by kind."""
    bytes: Any
    instant: int
    phase: str
    place: str
    kinds: dict

    def __repr__(self):
        return f"<{self.bytes:,} bytes at instant {self.instant}, {self.phase}, {self.place}>"


@dataclass(frozen=True, repr=False)
class Steps:
    """What a ledger saw: buffers, the instants at which phases and places began, and how to price a shape."""
    buffers: tuple
    marks: dict
    end: int
    sizes: dict
    widths: dict

    def __repr__(self):
        return f"<{len(self.buffers)} buffers, {self.end} instants>"

    def at(self, sizes, widths=REAL):
        """The same step read at other sizes {letter: number} and widths {dtype: bytes}."""
        return replace(self, sizes={"": 1, **self.sizes, **sizes}, widths=widths)

    def nbytes(self, buffer):
        """Bytes of a buffer."""
        return prod(self.sizes[letter] for letter in buffer.shape)*self.widths[buffer.dtype]

    def events(self):
        """(instant, place, kind, bytes): plus when a buffer is made, minus when it goes, in order."""
        made = [(b.born, b.place, b.kind, self.nbytes(b)) for b in self.buffers]
        gone = [(b.died, b.place, b.kind, -self.nbytes(b)) for b in self.buffers if b.died is not None]
        return sorted(made + gone)

    def living(self):
        """{kind: array}: bytes of each kind that live after instant 0, 1, ..."""
        change = {kind: [0]*self.end for kind in KINDS}
        price = {}
        for b in self.buffers:
            n = price.get((b.shape, b.dtype)) or price.setdefault((b.shape, b.dtype), self.nbytes(b))
            change[b.kind][b.born] += n
            if b.died is not None:
                change[b.kind][b.died] -= n
        return {kind: np.cumsum(np.array(n, dtype=np.int64)) for kind, n in change.items()}

    def total(self):
        """Bytes that live after instant 0, 1, ..., an array."""
        return sum(self.living().values())

    def peak(self):
        """The `Peak`; of equal ones the first."""
        kinds = self.living()
        total = sum(kinds.values())
        instant = int(total.argmax())
        made = next(b for b in self.buffers if b.born == instant)
        return Peak(int(total[instant]), instant, made.phase, made.place,
                    {kind: int(n[instant]) for kind, n in kinds.items()})

    def stored(self, place):
        """Buffers of the activations made at a place."""
        return [b for b in self.buffers if b.place == place and b.kind in ("activations", "logits")
                and b.born < self.marks["backward"] < b.died]


def flash(rows):
    """Attention that stores no scores: queries, keys, values, output and one number a row; `rows` queries at a time."""
    def attend(q, k, v, q_at, k_at):
        split = (*q.shape[:2], k.shape[2], -1, q.shape[3])
        q, scale, shape = q.reshape(split), q.shape[3]**-0.5, q.shape
        out, logsum = np.empty_like(q), np.empty_like(q[..., 0], dtype=WIDE)

        def scores(i):
            seen = q_at[i:i + rows, None] >= k_at
            return np.where(seen, np.einsum("bsgjd,btgd->bgjst", q[:, i:i + rows], k)*scale, -np.inf)

        for i in range(0, len(q_at), rows):
            z = scores(i)
            top = z.max(-1, keepdims=True)
            p = np.exp(z - top)
            total = p.sum(-1, keepdims=True)
            out[:, i:i + rows] = np.einsum("bgjst,btgd->bsgjd", p/total, v)
            logsum[:, i:i + rows] = np.moveaxis((top + np.log(total))[..., 0], -1, 1)
        del z, top, p, total

        def back(do):
            do = do.reshape(split)
            dq, dk, dv = np.empty_like(q), np.zeros_like(k), np.zeros_like(v)
            for i in range(0, len(q_at), rows):
                mine = slice(i, i + rows)
                p = np.exp(scores(i) - np.moveaxis(logsum[:, mine], 1, -1)[..., None].astype(NARROW))
                inner = np.moveaxis((do[:, mine]*out[:, mine]).sum(-1), 1, -1)[..., None]
                dz = p*(np.einsum("bsgjd,btgd->bgjst", do[:, mine], v) - inner)*scale
                dq[:, mine] = np.einsum("bgjst,btgd->bsgjd", dz, k)
                dk += np.einsum("bgjst,bsgjd->btgd", dz, q[:, mine])
                dv += np.einsum("bgjst,bsgjd->btgd", p, do[:, mine])
            return dq.reshape(shape), dk, dv
        return out.reshape(shape), back
    return attend


def fused_swiglu(x, w):
    """`tiny.swiglu` that stores gate, up and product, and works silu out again."""
    gate, back_gate = tiny.linear(x, w["gate"])
    up, back_up = tiny.linear(x, w["up"])
    y, back_down = tiny.linear(gate/(1 + np.exp(-gate))*up, w["down"])

    def back(dy):
        dz, ddown = back_down(dy)
        share = 1/(1 + np.exp(-gate))
        dx1, dgate = back_gate(dz*up*share*(1 + gate*(1 - share)))
        dx2, dup = back_up(dz*gate*share)
        return dx1 + dx2, lambda: {"gate": dgate(), "up": dup(), "down": ddown()}
    return y, back


def wide_cross_entropy(logits, targets):
    """`tiny.cross_entropy` in the wide format: a wide copy of the logits is stored, its gradient is made wide and narrowed."""
    z = logits.astype(WIDE)
    z -= z.max(-1, keepdims=True)
    logsum = np.log(np.exp(z).sum(-1))
    total = float((logsum - np.take_along_axis(z, targets[..., None], -1)[..., 0]).sum())

    def back(scale=1.0):
        d = z - logsum[..., None]
        np.exp(d, out=d)
        np.put_along_axis(d, targets[..., None], np.take_along_axis(d, targets[..., None], -1) - 1, -1)
        d *= scale
        return d.astype(NARROW)
    return total, back


FUSED = dict(attend=flash(SIZES["r"]), feed=fused_swiglu)
EAGER = {}


def record(layers=4, *, fused=True, gradients="made", traffic=None, microbatches=1, sizes=SIZES, seed=0):
    """One step of Adam on `microbatches` sequences, one after the other -> Steps.

    fused: kernels that store no scores and no silu; else those of `tiny`.  gradients: "made" narrow as the backward
    pass comes to them, and freed after the step; or added into buffers that are there before it, "narrow" or "wide".
    traffic: where gradients are when they travel to other ranks.  "kept": in buffers of their own for every one of them,
    there before the step; "passing": in copies of one place's gradients, from the moment they are made until those of the
    next are; None: nowhere.  Between two sequences nothing is kept but weights, state and gradients.
    """
    if gradients not in (made := ("made", "narrow", "wide")):
        raise ValueError(f"gradients = {gradients!r}; allowed: {', '.join(made)}")
    if traffic not in (ways := (None, "kept", "passing")):
        raise ValueError(f"traffic = {traffic!r}; allowed: {', '.join(map(str, ways))}")
    if traffic == "passing" and gradients == "made":
        raise ValueError("traffic = 'passing' is added up where it arrives: gradients = 'made'; allowed: narrow, wide")
    held = {"narrow": NARROW, "wide": WIDE}.get(gradients)
    z = dict(sizes)
    names = {1: "", **{n: k for k, n in z.items()}}
    assert len(names) == len(z) + 1, "two letters have one size"
    raw = tiny.weights(layers, z["h"], z["a"], z["g"], z["d"], z["f"], z["v"], seed)
    tokens, targets = tiny.data(microbatches, z["s"], z["v"], seed)
    ledger = Counted.ledger = Ledger(z)
    try:
        ledger.begin("start")

        def make(place, arrays):
            with ledger.at(place):
                return {name: a.view(Counted) for name, a in arrays.items()}

        w = make("weights", {name: a.astype(NARROW) for name, a in raw.items()})
        shapes = {name: a.shape for name, a in raw.items()}
        grads = make("gradients", {n: np.zeros(s, held) for n, s in shapes.items()}) if held else {}
        state = [make("optimizer", {n: a.astype(WIDE) for n, a in raw.items()}),
                 *(make("optimizer", {n: np.zeros(s, WIDE) for n, s in shapes.items()}) for _ in range(2))]
        sent = make("traffic", {n: np.zeros(s, NARROW) for n, s in shapes.items()}) if traffic == "kept" else traffic
        del raw
        for x, y in zip(tokens, targets):
            with ledger.at("data"):
                x, y = (a[None].copy().view(Counted) for a in (x, y))
            _sequence(ledger, w, x, y, grads, sent, FUSED if fused else EAGER)
            del x, y
        ledger.begin("update")
        with ledger.at("Adam"):
            for name in w:
                _adam(w[name], grads[name] if held else grads.pop(name), *(part[name] for part in state))
        ledger.begin("end")
        end = ledger.instant
    finally:
        Counted.ledger = None
    return Steps(tuple(_kind(b, ledger.marks) for b in ledger.buffers), dict(ledger.marks), end,
                 {"": 1, **z}, BYTES)


def _sequence(ledger, w, tokens, targets, grads, sent, hooks):
    """Forward and backward of one sequence, block by block: what a block stored is freed when its gradients are there."""
    at = np.arange(tokens.shape[1])
    ledger.begin("forward")
    with ledger.at("embedding"):
        x, back = tiny.embed(tokens, w)
    backs = [("embedding", "", back)]
    for i in tiny.blocks(w):
        with ledger.at(f"block {i}"):
            x, back = tiny.block(x, tiny.block_weights(w, i), at, **hooks)
        backs.append((f"block {i}", f"{i}.", back))
    with ledger.at("head"):
        loss, back = tiny.head(x, w, targets, wide_cross_entropy if hooks else tiny.cross_entropy)
    backs.append(("head", "", back))
    del x, back
    ledger.begin("backward")
    dy, flying = 1/targets.size, {}
    while backs:
        place, prefix, back = backs.pop()
        ledger.marks[f"back to {place}"] = ledger.instant
        with ledger.at(place):
            dy, dw = back(dy)
            made = dw()
            del dw, back
        _arrive(grads, flying)
        if sent == "passing":
            with ledger.at("traffic"):
                for name in list(made):
                    flying[prefix + name] = made.pop(name).copy()
            continue
        with ledger.at(place):
            for name in made if sent else ():
                sent[prefix + name][:] = made[name]
                made[name][:] = sent[prefix + name]
            _arrive(grads, {prefix + name: made.pop(name) for name in list(made)})
    _arrive(grads, flying)
    ledger.marks["back at the start"] = ledger.instant


def _arrive(grads, come):
    """Adds what has come, name by name, and lets go of it."""
    for name in list(come):
        if name in grads:
            grads[name] += come.pop(name)
        else:
            grads[name] = come.pop(name)


def _adam(w, g, master, mean, square, rate=1e-3, decay=(0.9, 0.95), step=1):
    """One parameter of Adam, row by row, so that it needs a row of workspace and not a copy."""
    for row in range(len(w)):
        d = g[row].astype(WIDE)
        mean[row] += (1 - decay[0])*(d - mean[row])
        square[row] += (1 - decay[1])*(d*d - square[row])
        master[row] -= rate*mean[row]/(1 - decay[0]**step)/(np.sqrt(square[row]/(1 - decay[1]**step)) + 1e-8)
        w[row] = master[row]


def _kind(b, marks):
    place, phase, shape, dtype, born, died = b
    if phase == "start" or place in ("data", "traffic"):
        kind = place
    elif "v" in shape and "s" in shape:
        kind = "logits"
    elif phase == "forward" and (died is None or died > marks["backward"]):
        kind = "activations"
    elif phase == "backward" and (died is None or died > marks["update"]):
        kind = "gradients"
    else:
        kind = "workspace"
    return Buffer(place, phase, shape, dtype, kind, born, died)


# The second world: an allocator between program and device.

KiB, MiB = 2**10, 2**20
BLOCK, SMALL, SMALL_SEGMENT, LARGE, LARGE_SEGMENT, ROUND = 512, MiB, 2*MiB, 10*MiB, 20*MiB, 2*MiB


def round_block(n):
    """Bytes of the block that a request of n bytes gets: a multiple of 512."""
    return max(BLOCK, -(-n//BLOCK)*BLOCK)


def round_segment(n):
    """Bytes of the segment that is asked of the device for a block of n bytes."""
    return SMALL_SEGMENT if n <= SMALL else LARGE_SEGMENT if n < LARGE else -(-n//ROUND)*ROUND


class Caching:
    """A caching allocator by the rules of c10/cuda/CUDACachingAllocator.cpp, one stream.

    Blocks up to 1 MiB come from segments of 2 MiB, up to 10 MiB from segments of 20, larger ones from segments of their
    own size.  The smallest free block that is large enough is taken, and split where enough is left: 512 bytes of a
    small one, more than 1 MiB of a large one.  A freed block joins its free neighbours in the segment.  A segment goes
    back when the device, of `limit` bytes, is full: then all that are wholly free do, which is a retry, and if that is
    not enough, MemoryError.
    expandable: one segment that grows, by 2 or 20 MiB at a time, splits down to 512 bytes, and gives nothing back.

    reserved: bytes of segments; allocated: of blocks in use; requested: asked for; retries: how often it ran full.
    """

    def __init__(self, expandable=False, limit=inf):
        self.expandable, self.limit, self.retries = expandable, limit, 0
        self.reserved = self.allocated = self.requested = 0
        self.free = {True: [], False: []}                  # by pool: (size, segment, start), the smallest first
        self.starts, self.ends = {}, {}                    # the same blocks by (segment, address): size, start
        self.used, self.sizes, self.names = {}, [], count()
        self.grown = {}                                    # the one segment of each pool, where it grows

    def _put(self, small, size, segment, start):
        insort(self.free[small], (size, segment, start))
        self.starts[segment, start], self.ends[segment, start + size] = size, start

    def _take(self, small, size, segment, start):
        pool = self.free[small]
        del pool[bisect_left(pool, (size, segment, start))]
        del self.starts[segment, start], self.ends[segment, start + size]

    def malloc(self, n):
        """A name for a block of at least n bytes."""
        size = round_block(n)
        small = size <= SMALL
        pool = self.free[small]
        k = bisect_left(pool, (size,))
        if k < len(pool):
            room, segment, start = pool[k]
            self._take(small, *pool[k])
        else:
            room, segment, start = self._segment(size, small)
        left = room - size
        if left >= BLOCK if small or self.expandable else left > SMALL:
            self._put(small, left, segment, start + size)
        else:
            size = room
        name = next(self.names)
        self.used[name] = size, segment, start, small, n
        self.allocated += size
        self.requested += n
        return name

    def _segment(self, size, small):
        """(size, segment, start) of a fresh block: a segment of its own, or the growing segment's end."""
        if not self.expandable:
            room = round_segment(size)
            if self.reserved + room > self.limit:
                self._give_back()
            self._reserve(room, size)
            self.sizes.append(room)
            return room, len(self.sizes) - 1, 0
        segment = self.grown.setdefault(small, len(self.grown))
        if segment == len(self.sizes):
            self.sizes.append(0)
        end = self.sizes[segment]
        start = self.ends.get((segment, end), end)
        if start < end:
            self._take(small, end - start, segment, start)
        step = SMALL_SEGMENT if small else LARGE_SEGMENT
        more = -(-(size - (end - start))//step)*step
        self._reserve(more, size)
        self.sizes[segment] += more
        return end - start + more, segment, start

    def _reserve(self, n, size):
        if self.reserved + n > self.limit:
            raise MemoryError(f"{size:,} bytes asked for; {self.limit:,} on the device, {self.reserved:,} reserved, "
                              f"{self.allocated:,} in use")
        self.reserved += n

    def _give_back(self):
        self.retries += 1
        for small, pool in self.free.items():
            for block in [b for b in pool if b[0] == self.sizes[b[1]]]:
                self._take(small, *block)
                self.reserved -= block[0]
                self.sizes[block[1]] = 0

    def release(self, name):
        """Gives a block back."""
        size, segment, start, small, n = self.used.pop(name)
        self.allocated -= size
        self.requested -= n
        if (segment, start) in self.ends:
            before = self.ends[segment, start]
            self._take(small, start - before, segment, before)
            size, start = size + start - before, before
        if (segment, start + size) in self.starts:
            after = self.starts[segment, start + size]
            self._take(small, after, segment, start + size)
            size += after
        self._put(small, size, segment, start)

    @property
    def split(self):
        """Free bytes in segments that are partly in use ("inactive split"): nobody can have them as a segment."""
        busy = {segment for _, segment, *_ in self.used.values()}
        return sum(size for pool in self.free.values() for size, segment, _ in pool if segment in busy)

    def layout(self):
        """[(segment bytes, [(start, bytes, in use)])], in order: the map of the addresses."""
        blocks = [(segment, start, size, False) for pool in self.free.values() for size, segment, start in pool]
        blocks += [(segment, start, size, True) for size, segment, start, *_ in self.used.values()]
        out = [(n, []) for n in self.sizes]
        for segment, start, size, busy in sorted(blocks):
            out[segment][1].append((start, size, busy))
        return [segment for segment in out if segment[0]]


class Replay(NamedTuple):
    """Peaks of a replay: reserved, allocated and requested bytes at their greatest, inactive split bytes when reserved is."""
    reserved: int
    allocated: int
    requested: int
    split: int
    retries: int


def replay(events, allocator=None):
    """Events (key, bytes), bytes > 0 to allocate under a key and 0 to free it, through an allocator -> Replay."""
    allocator = allocator or Caching()
    names, reserved, allocated, requested, split = {}, 0, 0, 0, 0
    for key, n in events:
        if n:
            names[key] = allocator.malloc(n)
            if allocator.reserved > reserved:
                reserved, split = allocator.reserved, allocator.split
            allocated, requested = max(allocated, allocator.allocated), max(requested, allocator.requested)
        else:
            allocator.release(names.pop(key))
    return Replay(reserved, allocated, requested, split, allocator.retries)


def requests(steps, phases=("start", "forward", "backward", "update")):
    """The events of some phases of `Steps`, for `replay`; what lives at the end is not freed."""
    mine = [(k, b) for k, b in enumerate(steps.buffers) if b.phase in phases]
    order = [(b.born, k, steps.nbytes(b)) for k, b in mine] + [(b.died, k, 0) for k, b in mine if b.died is not None]
    return [(k, n) for _, k, n in sorted(order)]
