"""Matrices split: every rank keeps some heads, columns, rows and words, and sees every token.

    parts = [shard(w, r, 4) for r in range(4)]
    run(loss, parts, samples)                   # on every rank: the loss, the gradients of its part of the weights

Between a norm and a layer the ranks `enter`, between the layer and the residual they `leave`.  Letters of the shapes
as in `capacity.witness.tiny`; t ranks.
"""
import numpy as np

from .. import tiny
from ..collectives import ring_all_gather, ring_all_reduce, ring_reduce_scatter

AXIS = {"embed": 0, "q": 1, "k": 1, "v": 1, "o": 0, "gate": 1, "up": 1, "down": 0, "head": 1}    # the axis that is cut


def shard(w, rank, size):
    """Rank `rank`'s part of the weights: heads of q, k, v, o, columns of gate and up, rows of down, words of both
    vocabulary layers; norms whole.  ValueError for a `size` that does not divide an axis, key-value heads included."""
    part = {}
    for name, value in w.items():
        axis = AXIS.get(name.split(".")[-1])
        if axis is not None and value.shape[axis] % size:
            raise ValueError(f"size = {size}; allowed: a divisor of {value.shape[axis]}, the length of {name!r}")
        part[name] = value if axis is None else np.split(value, size, axis)[rank]
    return part


def unshard(parts):
    """The whole weights, or gradients, from all ranks' parts; of what every rank has, rank 0's."""
    axes = {name: AXIS.get(name.split(".")[-1]) for name in parts[0]}
    return {name: parts[0][name] if axis is None else np.concatenate([p[name] for p in parts], axis)
            for name, axis in axes.items()}


# Collectives on arrays.

def all_reduce(comm, x):
    """The sum of all ranks' x, on every rank."""
    return np.concatenate(ring_all_reduce(comm, np.array_split(x.ravel(), comm.size))).reshape(x.shape)


def all_gather(comm, x, axis=1):
    """All ranks' x one after the other; axis 1 is that of the tokens."""
    return np.concatenate(ring_all_gather(comm, x), axis)


def reduce_scatter(comm, x, axis=1):
    """This rank's part of the sum of all ranks' x."""
    return ring_reduce_scatter(comm, np.split(x, comm.size, axis))


# What enter and leave are: x -> (value, back).

def tensor_parallel(comm):
    """Megatron's f and g: copies go in and an all-reduce comes back; an all-reduce goes out and copies come back."""
    return {"enter": lambda x: (x, lambda dy: all_reduce(comm, dy)),
            "leave": lambda x: (all_reduce(comm, x), lambda dy: dy)}


def sequence_parallel(comm):
    """The same outside, with the tokens cut between the layers: all-gather and reduce-scatter, each other's back."""
    return {"enter": lambda x: (all_gather(comm, x), lambda dy: reduce_scatter(comm, dy)),
            "leave": lambda x: (reduce_scatter(comm, x), lambda dy: all_gather(comm, dy))}


# The two layers of the vocabulary.

def embed(comm, leave):
    """Every rank looks up the words of its part and takes zero for the others; `leave` adds."""
    def embed(tokens, w):
        mine = tokens - comm.rank*len(w["embed"])
        here = (0 <= mine) & (mine < len(w["embed"]))
        x, back = tiny.embed(np.where(here, mine, 0), w)
        x, back_leave = leave(x*here[..., None])
        return x, lambda dx: back(back_leave(dx)*here[..., None])
    return embed


def merge(a, b):
    """The logits of two parts of the vocabulary: (maximum, sum of exponentials over it, logit of the target) each."""
    top = np.maximum(a[0], b[0])
    return np.stack([top, a[1]*np.exp(a[0] - top) + b[1]*np.exp(b[0] - top), a[2] + b[2]])


def cross_entropy(comm):
    """`tiny.cross_entropy` of logits (b, s, v/t): three numbers of each token travel, whatever v is."""
    def cross_entropy(logits, targets):
        mine, counted = targets - comm.rank*logits.shape[-1], targets >= 0
        here = (0 <= mine) & (mine < logits.shape[-1])
        at = np.where(here, mine, 0)[..., None]
        hit = np.take_along_axis(logits, at, -1)[..., 0]*here
        m = logits.max(-1)
        state = np.stack([m, np.exp(logits - m[..., None]).sum(-1), hit]).reshape(3, -1)
        state = np.concatenate(ring_all_reduce(comm, np.array_split(state, comm.size, 1), merge), 1)
        logsum, hit = (state[0] + np.log(state[1])).reshape(m.shape), state[2].reshape(m.shape)

        def back(scale=1.0):
            d = np.exp(logits - logsum[..., None])
            np.put_along_axis(d, at, np.take_along_axis(d, at, -1) - here[..., None], -1)
            return d*counted[..., None]*scale
        return (logsum - hit)[counted].sum(), back
    return cross_entropy


# The program of one rank.

def sum_norms(comm, grads):
    """Under sequence parallelism a norm's gain met other tokens on every rank: its gradients are terms of a sum."""
    names = [name for name in grads if name.endswith("norm")]
    total = all_reduce(comm, np.concatenate([grads[name] for name in names]))
    return grads | dict(zip(names, np.split(total, len(names))))


def hooks(comm, between=tensor_parallel):
    """What the ranks of comm add to a `tiny.stage` of their parts of the weights, the vocabulary's layers included."""
    own = between(comm)
    return own | {"embed": embed(comm, own["leave"]), "cross_entropy": cross_entropy(comm)}


def loss(comm, part, samples, between=tensor_parallel, norms=sum_norms, **changed):
    """The loss and the gradients of this rank's part of the weights; samples: everybody's (tokens, targets), (b, s).

    between: `tensor_parallel` or `sequence_parallel`.  norms: what happens to the norms' gradients under the latter.
    changed: hooks to take instead.
    """
    total, back = tiny.loss(part, *samples, **hooks(comm, between) | changed)
    return total, norms(comm, back()) if between is sequence_parallel else back()
