"""Data parallelism: every rank has all of the weights and some of the samples.

    run(data_parallel, [(tokens[:1], targets[:1]), (tokens[1:], targets[1:])], w)    # every rank: loss and gradients

What samples add up to is a pair: sums (of their losses, of every gradient) and the number of counted tokens.  Pairs
may be added over ranks, over micro-batches and bucket by bucket, in any order; the division comes last.  A pair is
one flat dict: "count", "loss", and the sum of gradients of every weight under its name.
"""
from functools import reduce

import numpy as np

from .. import tiny
from ..collectives import ring_all_reduce


def sums(w, tokens, targets, **hooks):
    """The pair of some sequences, in the order of w: tokens, targets (b, s); hooks of `tiny.loss`."""
    total, back = tiny.loss(w, tokens, targets, **hooks)
    grads = back()
    return {"count": np.sum(targets >= 0), "loss": total, **{name: grads[name] for name in w}}


def add(x, y):
    """The pair of the samples of both."""
    return {name: x[name] + y[name] for name in x}


def mean(x):
    """The mean loss per counted token and its gradients: the only division.  x: not of no tokens."""
    return {name: value/x["count"] for name, value in x.items() if name != "count"}


def accumulate(w, tokens, targets, microbatches=1, **hooks):
    """The pair of a batch, taken in so many micro-batches one after the other."""
    parts = zip(np.array_split(tokens, microbatches), np.array_split(targets, microbatches))
    return reduce(add, (sums(w, *part, **hooks) for part in parts))


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


def data_parallel(comm, samples, w, microbatches=1, limit=np.inf, **hooks):
    """samples: this rank's (tokens, targets), of any number -> mean loss and gradients over the samples of all."""
    return mean(all_reduce(comm, accumulate(w, *samples, microbatches, **hooks), limit))
