"""Data parallelism: every rank has all of the weights and some of the samples.

    run(loss, [w]*4, Each([shard(samples, r, 4) for r in range(4)]))        # every rank: the mean loss, its gradients

What samples add up to is a pair: sums (of their losses, of every gradient) and the number of counted tokens.  Pairs
may be added over ranks, over micro-batches and bucket by bucket, in any order; the division comes last.  A pair is
one flat dict: "count", "loss", and the sum of gradients of every weight under its name.
"""
from functools import reduce

import numpy as np

from .. import tiny
from ..collectives import ring_all_reduce


def shard(samples, rank, size):
    """Rank `rank`'s sequences of samples (tokens, targets), (b, s) both; in time, micro-batch `rank` of `size`."""
    return tuple(np.array_split(x, size)[rank] for x in samples)


def pair(samples, loss, grads):
    """The sums of some samples and their number."""
    return {"count": np.sum(samples[1] >= 0), "loss": loss, **grads}


def sums(w, samples, **hooks):
    """The pair of samples (tokens, targets), (b, s) both; hooks of `tiny.stage`."""
    loss, back = tiny.loss(w, *samples, **hooks)
    return pair(samples, loss, back())


def mean(x):
    """The mean loss per counted token and its gradients: the only division.  x: a pair, not of no tokens."""
    means = {name: value/x["count"] for name, value in x.items() if name != "count"}
    return means.pop("loss"), means


def accumulate(w, samples, microbatches=1, **hooks):
    """The pair of a batch, taken in so many micro-batches one after the other."""
    return reduce(tiny.add, (sums(w, shard(samples, j, microbatches), **hooks) for j in range(microbatches)))


def buckets(x, limit, first=None):
    """Names of x, last first as a backward pass ends them, in lists that are full with `limit` bytes or more.

    first: the same for the first list, `limit` unless told.
    """
    out, room = [], 0
    for name in reversed(x):
        if room <= 0:
            room = limit if out or first is None else first
            out.append([])
        out[-1].append(name)
        room -= np.asarray(x[name]).nbytes
    return out


def all_reduce(comm, x, limit=np.inf):
    """The sum of all ranks' pairs, the same bits on each: one ring for each bucket."""
    out = dict.fromkeys(x)
    for names in buckets(x, limit):
        flat = np.concatenate([np.ravel(x[name]) for name in names])
        flat = np.concatenate(ring_all_reduce(comm, np.array_split(flat, comm.size)))
        for name in names:
            out[name], flat = flat[:np.size(x[name])].reshape(np.shape(x[name])), flat[np.size(x[name]):]
    return out


def loss(comm, w, samples, microbatches=1, limit=np.inf, **hooks):
    """samples: this rank's (tokens, targets), of any number -> mean loss and gradients over the samples of all."""
    return mean(all_reduce(comm, accumulate(w, samples, microbatches, **hooks), limit))
