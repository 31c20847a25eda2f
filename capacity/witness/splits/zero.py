"""Sharding: every rank has its own samples, and of weights, gradients and optimizer state its part, or all.

    plan = step(stage=3, units=units(w), microbatches=2)       # one training step as a list of events
    part = shard(w, r, 4)                                      # the master weights of rank r
    run(train, parts, units(w), Each(samples), plan)           # on every rank: its part after ten Adam steps

The stages of ZeRO are lists of events, and a rank is a machine that executes one.  A unit is what is gathered at a
time: the embedding, a block, the head.  Its weights are one vector, cut into equal parts, zeros at the end.

    stage 0   everything on every rank; gradients are all-reduced once
    stage 1   optimizer state is cut; gradients are reduce-scattered once, weights gathered after the update
    stage 2   gradients are cut too: reduce-scattered behind the backward pass of every micro-batch
    stage 3   weights are cut too: a unit is gathered before it is used and released after

A released buffer is filled with NaN: whoever uses a unit that is not there gets what he deserves.  Bytes are those of
the arrays: `train` writes down after every event how many it keeps of each kind.
"""
import math
from typing import NamedTuple

import numpy as np

from .. import tiny
from ..collectives import bruck_all_gather, ring_all_gather, ring_all_reduce, ring_reduce_scatter
from .data import shard as share


class Event(NamedTuple):
    """One thing that a rank does in a step; `microbatch` counts from 0.

    what: gather, forward, backward, release, scatter (a gradient: reduced, cut and let go), reduce (all-reduced),
    update (of everything; without a unit).
    """
    what: str
    unit: str = ""
    microbatch: int = 0


# What is cut.

def units(w):
    """The shapes of weights w, unit by unit: {unit: {name: shape}}, in the order of the forward pass."""
    out = {}
    for name, value in w.items():
        unit = name.split(".")[0] if "." in name else "embed" if name == "embed" else "head"
        out.setdefault(unit, {})[name] = np.shape(value)
    return out


def length(shapes, size=1):
    """Numbers in a unit, with zeros at the end so that `size` ranks have equal parts."""
    return math.ceil(sum(map(math.prod, shapes.values()))/size)*size


def flat(arrays, shapes, size=1):
    """A unit's arrays as one vector with zeros at the end."""
    vector = np.concatenate([np.ravel(arrays[name]) for name in shapes])
    return np.pad(vector, (0, length(shapes, size) - len(vector)))


def views(vector, shapes):
    """The arrays of a unit as views of its vector."""
    out, at = {}, 0
    for name, shape in shapes.items():
        out[name] = vector[at:at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)
    return out


def shard(w, rank, size):
    """Rank `rank`'s part of the weights, or of gradients: {unit: vector}."""
    return {unit: np.split(flat(w, shapes, size), size)[rank].copy() for unit, shapes in units(w).items()}


def unshard(parts, shapes):
    """The whole weights from all parts, shapes as of `units`."""
    return {name: value for unit in shapes
            for name, value in views(np.concatenate([p[unit] for p in parts]), shapes[unit]).items()}


# Steps.

def step(stage, units, microbatches=1, keep=(), hold=False, prefetch=0):
    """The events of one step of a ZeRO stage, 0 to 3.

    keep: units that stage 3 does not release between the forward and the backward pass; hold: it gathers every unit
    once a step and scatters its gradient once, and keeps both whole meanwhile; prefetch: units gathered ahead of the
    one in use, inside a pass.  ValueError for another stage.
    """
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage = {stage!r}; allowed: 0, 1, 2 or 3")
    units = list(units)
    keep = units if hold else keep
    out = [Event("gather", unit) for unit in units if stage in (1, 2)]
    for j in range(microbatches):
        ends = not hold or j == microbatches - 1             # of what is held
        there = set(units if stage < 3 or hold and j else ())
        for what, order in (("forward", units), ("backward", units[::-1])):
            for k, unit in enumerate(order):
                for ahead in order[k:k + 1 + prefetch]:
                    if ahead not in there:
                        out.append(Event("gather", ahead, j))
                        there.add(ahead)
                out.append(Event(what, unit, j))
                if stage == 3 and ends and (what == "backward" or unit not in keep):
                    out.append(Event("release", unit, j))
                    there.discard(unit)
                if what == "backward" and stage > 1 and ends:
                    out.append(Event("scatter", unit, j))
    last = microbatches - 1
    if stage < 2:
        out += [Event("scatter" if stage else "reduce", unit, last) for unit in reversed(units)]
    return out + [Event("update", "", last)]


# Optimizers: what one does with a number, and what it does with a matrix.

class Adam:
    """Adam of one vector: every number for itself."""
    slots = 2

    def __init__(self, rate=0.01, decay=(0.9, 0.99), eps=1e-8):
        self.rate, self.decay, self.eps = rate, decay, eps

    def __call__(self, master, slots, grad, t, whole):
        mean, square = slots
        a, b = self.decay
        mean += (1 - a)*(grad - mean)
        square += (1 - b)*(grad*grad - square)
        master -= self.rate*(mean/(1 - a**t))/(np.sqrt(square/(1 - b**t)) + self.eps)


class ByMatrix:
    """Momentum, then a function of every matrix: `orthogonal` is Muon, `shampoo` Shampoo after one gradient.

    It needs whole matrices, so the ranks gather the momentum of a unit.  alone: they do not, and each applies the
    function to the numbers that it has, zeros in place of the others.
    """
    slots = 1

    def __init__(self, function, rate=0.01, decay=0.9, alone=False):
        self.function, self.rate, self.decay, self.alone = function, rate, decay, alone

    def __call__(self, master, slots, grad, t, whole):
        slots[0] *= self.decay
        slots[0] += grad
        master -= self.rate*whole(slots[0], self.function, self.alone)


def orthogonal(matrix, rounds=30):
    """The orthogonal matrix nearest to a matrix, by Newton and Schulz: X <- (3 X - X Xᵀ X)/2."""
    x = matrix/np.linalg.norm(matrix)
    for _ in range(rounds):
        x = (3*x - x @ x.T @ x)/2
    return x


def shampoo(matrix, eps=1e-6):
    """Shampoo's direction after one gradient G: (G Gᵀ)^(-1/4) G (Gᵀ G)^(-1/4)."""
    def root(square):
        values, vectors = np.linalg.eigh(square)
        return (vectors*(np.maximum(values, 0) + eps)**-0.25) @ vectors.T
    return root(matrix @ matrix.T) @ matrix @ root(matrix.T @ matrix)


def by_matrix(vector, shapes, function):
    """A unit's vector with `function` of every matrix; what has another number of axes is a matrix of its rows."""
    out = np.zeros_like(vector)
    for name, value in views(vector, shapes).items():
        m = value.reshape(len(value), -1)
        if np.any(m):
            views(out, shapes)[name][...] = function(m).reshape(value.shape)
    return out


# One rank.

def norm(comm, grads):
    """The norm of a gradient of which every rank of comm has a part; without a comm, all."""
    mine = sum(float(g @ g) for g in grads.values())
    return math.sqrt(sum(bruck_all_gather(comm, mine)) if comm else mine)


class Rank:
    """What one rank keeps, unit by unit, and does.

    master, slots   of the optimizer, in fp64: its part, or all if nothing is cut
    weight          its part of the weights as they travel, if they are released
    buffer, live    whole weights, and the units of which they are there
    grad, sums      gradients: whole ones of this rank, and this rank's part of the summed ones
    """

    def __init__(self, comm, part, shapes, plan, optimizer, replicas, weight, grad, hooks):
        self.across, self.inside = comm.grid(replicas, comm.size//replicas)
        self.shapes, self.optimizer, self.hooks, self.t = shapes, optimizer, hooks, 0
        self.cut = any(e.what == "scatter" for e in plan)
        self.freed = any(e.what == "release" for e in plan)
        self.weight_dtype, self.grad_dtype = weight, grad
        self.master = {u: v.copy() for u, v in part.items()}
        self.slots = {u: [np.zeros_like(v) for _ in range(optimizer.slots)] for u, v in part.items()}
        self.weight = {u: v.astype(weight) for u, v in part.items()} if self.freed else {}
        self.buffer = {u: np.full(length(s, self.inside.size), np.nan, weight) for u, s in shapes.items()}
        self.live, self.grad, self.sums, self.backs, self.flow = set(), {}, {}, {}, {}
        if not self.cut:
            self.buffer = {u: v.astype(weight) for u, v in part.items()}
            self.live = set(shapes)

    def held(self):
        """Bytes of each kind that are there now."""
        def size(*dicts):
            return sum(a.nbytes for d in dicts for a in d.values())
        there = size({u: self.buffer[u] for u in self.live})
        return {"weights": size(self.weight) + there*(not self.freed), "gathered": there*self.freed,
                "gradients": size(self.grad, self.sums),
                "optimizer": size(self.master, *({i: x for i, x in enumerate(s)} for s in self.slots.values()))}

    def do(self, event, samples, scale):
        """One event but the update; samples: of its micro-batch."""
        u, j, inside = event.unit, event.microbatch, self.inside
        if event.what == "gather":
            mine = self.weight[u] if self.freed else self.master[u].astype(self.weight_dtype)
            self.buffer[u][:] = np.concatenate(ring_all_gather(inside, mine))
            self.live.add(u)
        elif event.what == "release":
            self.buffer[u][:] = np.nan
            self.live.discard(u)
        elif event.what == "forward":
            self.flow[j], self.backs[u, j] = self.forward(u, self.flow.get(j), *samples)
        elif event.what == "backward":
            self.flow[j], dw = self.backs.pop((u, j))(scale if u == "head" else self.flow[j])
            prefix = "" if u in ("embed", "head") else f"{u}."
            new = flat({prefix + name: value for name, value in dw().items()}, self.shapes[u],
                       inside.size if self.cut else 1).astype(self.grad_dtype)
            self.grad[u] = self.grad[u] + new if u in self.grad else new
        elif event.what == "scatter":
            mine = ring_reduce_scatter(inside, np.split(self.grad.pop(u), inside.size))
            self.sums[u] = self.sums[u] + mine if u in self.sums else mine
        elif event.what == "reduce":
            self.sums[u] = all_reduce(inside, self.grad.pop(u))

    def forward(self, unit, x, tokens, targets):
        w, hooks = views(self.buffer[unit], self.shapes[unit]), dict(self.hooks)
        embed, cross = hooks.pop("embed", tiny.embed), hooks.pop("cross_entropy", tiny.cross_entropy)
        if unit == "embed":
            return embed(tokens, w)
        if unit == "head":
            return tiny.head(x, w, targets, cross, hooks.get("enter", tiny.identity))
        return tiny.block(x, tiny.block_weights(w, int(unit)), np.arange(tokens.shape[1]), **hooks)

    def reduced(self, clip, norm):
        """The summed gradient, clipped, this rank's part; copies add theirs."""
        if self.across.size > 1:
            self.sums = {u: all_reduce(self.across, g) for u, g in self.sums.items()}
        factor = 1 if clip is None else min(1, clip/norm(self.inside if self.cut else None, self.sums))
        return {u: factor*g.astype(float) for u, g in self.sums.items()}

    def update(self, grads):
        self.t += 1
        for u, g in grads.items():
            self.optimizer(self.master[u], self.slots[u], g, self.t,
                           lambda mine, function, alone, u=u: self.as_a_whole(u, mine, function, alone))
            for copy in (self.weight.get(u), None if self.cut else self.buffer[u]):
                if copy is not None:
                    copy[:] = self.master[u]
        self.sums = {}

    def as_a_whole(self, unit, mine, function, alone):
        """This rank's part of `by_matrix` of the vector of which `mine` is its part."""
        comm, parts = self.inside, [mine]
        if self.cut:
            parts = [mine if r == comm.rank else 0*mine for r in range(comm.size)] if alone else ring_all_gather(comm, mine)
        out = by_matrix(np.concatenate(parts), self.shapes[unit], function)
        return np.split(out, len(parts))[comm.rank if self.cut else 0]


def all_reduce(comm, x):
    """The sum of all ranks' vectors, on every rank."""
    return np.concatenate(ring_all_reduce(comm, np.array_split(x, comm.size)))


def train(comm, part, shapes, samples, plan, steps=10, *, optimizer=None, replicas=1, weight=float, grad=float,
          clip=None, norm=norm, count=None, **hooks):
    """Steps of training.  part: as `shard` cuts it for the ranks that share a copy; uncut for stage 0.

    shapes: of `units`; samples: this rank's (tokens, targets) of all micro-batches; plan: of `step`, or a function
    from the number of the step to one; replicas: copies, each of ranks next to each other (hybrid sharding); weight,
    grad: dtypes in which weights and gradients are kept and travel; clip: bound of the gradient's norm, as `norm`
    has it; count: what the summed loss is divided by, the tokens of a rank times the ranks unless told; hooks: of
    `tiny.stage`.  Returns {"master": this rank's part of the weights, "trace": a list of (step, event, bytes of each
    kind after it)}.
    """
    plans = plan if callable(plan) else lambda t: plan
    rank = Rank(comm, part, shapes, plans(0), optimizer or Adam(), replicas, weight, grad, hooks)
    scale, trace = 1/(count or comm.size*np.sum(samples[1] >= 0)), []
    for t in range(steps):
        for event in plans(t):
            if event.what == "update":
                rank.update(rank.reduced(clip, norm))
            else:
                rank.do(event, share(samples, event.microbatch, plans(t)[-1].microbatch + 1), scale)
            trace.append((t, event, rank.held()))
    return {"master": rank.master, "trace": trace}


def loss(comm, part, shapes, samples, plan, replicas=1, **hooks):
    """This rank's part of the gradients of the mean loss, by unit; arguments of `train`."""
    rank = Rank(comm, part, shapes, plan, Adam(), replicas, float, float, hooks)
    for event in plan[:-1]:
        rank.do(event, share(samples, event.microbatch, plan[-1].microbatch + 1), 1/(comm.size*np.sum(samples[1] >= 0)))
    return rank.reduced(None, norm)
