"""Two meshes over the same ranks: one for attention, t*c*d of them, one for the experts, e*te*de of them.

    fold = Fold(t=2, c=1, d=4, te=1, e=4)                       # eight ranks; de is what is left: 2
    parts = [shard(w, r, fold) for r in range(fold.ranks)]
    run(loss, parts, Each([samples(batch, r, fold) for r in range(8)]), fold, k=2)

Rank r has the coordinates (d, c, t) in the first mesh and (de, e, te) in the second, the last one the fastest.
Outside of the mixtures `tensor` cuts heads and words, `context` the sequence; a mixture is `expert`'s, over the ranks
of one e, and each of its experts is cut over te.  Letters of the shapes as in `capacity.witness.tiny`.
"""
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from .. import tiny
from ..collectives import window_all_reduce
from . import context, data, expert, tensor

AXES = {"dense": ("d", "c", "t"), "experts": ("de", "e", "te")}


class Fold(NamedTuple):
    """Degrees of both meshes.  ValueError where te*e does not divide t*c*d."""
    t: int = 1
    c: int = 1
    d: int = 1
    te: int = 1
    e: int = 1

    @property
    def ranks(self):
        return self.t*self.c*self.d

    @property
    def de(self):
        """Ranks that hold the same part of the same experts."""
        if self.ranks % (self.te*self.e):
            raise ValueError(f"te*e = {self.te*self.e}; allowed: a divisor of t*c*d = {self.ranks}")
        return self.ranks//(self.te*self.e)

    def place(self, rank):
        """The rank's coordinates on all six axes."""
        out = {}
        for axes in AXES.values():
            sizes = [getattr(self, a) for a in axes]
            out |= dict(zip(axes, map(int, np.unravel_index(rank, sizes))))
        return out

    def groups(self, comm):
        """This rank's neighbors along each of the six axes."""
        return {a: g for axes in AXES.values() for a, g in zip(axes, comm.grid(*(getattr(self, a) for a in axes)))}


def shard(w, rank, fold):
    """Rank `rank`'s part of the weights: 1/t of every matrix outside of the experts, and 1/te of 1/e of the experts."""
    at = fold.place(rank)
    part = tensor.shard({k: v for k, v in w.items() if not expert.is_expert(k)}, at["t"], fold.t)
    for name, value in w.items():
        if expert.is_expert(name):
            mine = np.split(value, fold.e)[at["e"]]
            part[name] = np.split(mine, fold.te, 1 + tensor.AXIS[name.split(".")[-1]])[at["te"]]
    return part


def unshard(parts, fold):
    """The whole weights, or gradients, from all ranks' parts; of what several hold, the first one's."""
    at = [fold.place(r) for r in range(fold.ranks)]
    whole = tensor.unshard([{k: v for k, v in parts[r].items() if not expert.is_expert(k)} for r in range(fold.t)])
    for name in filter(expert.is_expert, parts[0]):
        axis = 1 + tensor.AXIS[name.split(".")[-1]]
        held = {(at[r]["e"], at[r]["te"]): parts[r][name] for r in reversed(range(fold.ranks))}
        whole[name] = np.concatenate([np.concatenate([held[e, te] for te in range(fold.te)], axis)
                                      for e in range(fold.e)])
    return whole


def samples(batch, rank, fold):
    """The tokens that a rank works on: a share of the sequences for d, and of each sequence for c; t shares them."""
    at = fold.place(rank)
    return context.shard(data.shard(batch, at["d"], fold.d), at["c"], places(batch, fold))


def places(batch, fold):
    """Positions of each context rank's tokens."""
    return context.zigzag(batch[0].shape[1], fold.c)


# The experts' layer.

class Cut(expert.Direct):
    """As Direct, to experts each of which the ranks of `inner` share: what came to one of them goes to all."""

    def __init__(self, comm, chosen, n, inner):
        super().__init__(comm, chosen, n)
        self.inner, own = inner, self.expert
        self.expert = np.concatenate(parts := expert.exchange(inner, [own]*inner.size, "numbers"))
        self.cuts = np.cumsum([len(p) for p in parts])[:-1]

    def gather(self, rows, tag):
        return np.concatenate(expert.exchange(self.inner, [rows]*self.inner.size, tag + " inside"))

    def scatter(self, terms, tag):
        return sum(expert.exchange(self.inner, np.split(terms, self.cuts), tag + " inside"))

    def send(self, x, tag):
        return self.gather(super().send(x, tag), tag)

    def sum(self, rows, tag):
        return super().sum(self.scatter(rows, tag), tag)

    def send_gates(self, gates):
        return self.gather(super().send_gates(gates), "gates")

    def sum_gates(self, values):
        return super().sum_gates(self.scatter(values, "gates back"))


def own_share(layer, rank, size):
    """A layer for ranks that all hold the same tokens: each takes its share and leaves 0 for the others, a term."""
    def feed(x, w):
        flat = x.reshape(-1, x.shape[-1])
        mine = np.array_split(np.arange(len(flat)), size)[rank]
        y, back_layer = layer(flat[mine], w)

        def spread(rows):
            out = np.zeros_like(flat)
            out[mine] = rows
            return out.reshape(x.shape)

        def back(dy):
            dx, dw = back_layer(dy.reshape(flat.shape)[mine])
            return spread(dx), dw
        return spread(y), back
    return feed


# The program of one rank.

def summed_over(name, between):
    """The axes over which the gradient of a weight is a sum of terms: ranks that hold it and saw other tokens.

    between: as for `loss`.  Dispatch has brought an expert the tokens of all ranks of its e and te.
    """
    if expert.is_expert(name):
        return ("de",)
    apart = name.endswith("router") or between is tensor.sequence_parallel and name.endswith("norm")
    return ("t", "c", "d") if apart else ("c", "d")


def loss(comm, part, samples, fold, k, positions, between=tensor.sequence_parallel, summed_over=summed_over,
         share=own_share, method=context.ring_attention):
    """The loss, summed over all tokens, and the gradients of this rank's part of the weights.

    part, samples: as from `shard` and `samples`; positions: of `places`.  between: `tensor.tensor_parallel` or
    `tensor.sequence_parallel`.  What may be exchanged for a mistake: summed_over, share.
    """
    at = fold.groups(comm)
    layer = expert.spread(at["e"], k, way=partial(Cut, inner=at["te"]))
    feed = share(layer, at["t"].rank, fold.t)
    total, back = tiny.loss(part, *samples, feed=feed, **tensor.hooks(at["t"], between),
                            **context.hooks(at["c"], positions, method))
    grads = {name: reduce(lambda g, axis: window_all_reduce(at[axis], g), summed_over(name, between), g)
             for name, g in back().items()}
    return reduce(lambda x, axis: window_all_reduce(at[axis], x), ("c", "d"), total), grads
