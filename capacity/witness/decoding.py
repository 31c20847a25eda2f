"""Cuts of a layer that writes, as programs of ranks: a grid of weights that stay, and who keeps the caches.

    parts = cut(x, ups, down, ranks=8, width_ranks=2)
    run(stationary, parts, 2).results                       # each rank's columns of feed(x, ups, down)

    run(by_heads, [layer]*4)                                # all caches on each rank, heads and experts shared out
    run(by_owner, [layer]*4)                                # each rank its own sequences; tokens travel to experts

A witness: it knows arrays and messages, and no formula.
"""
from typing import NamedTuple

import numpy as np

from .attention import Latents, Tally, absorbed
from .collectives import pairwise_all_to_all, ring_all_gather, ring_all_reduce, ring_reduce_scatter


def silu(x):
    """x times the logistic function of x."""
    return x/(1 + np.exp(-x))


def feed(x, ups, down):
    """A feed-forward layer on one device; with two matrices in `ups` the first is the gate."""
    inner = silu(x @ ups[0])
    for up in ups[1:]:
        inner = inner*(x @ up)
    return inner @ down


def cut(x, ups, down, ranks, width_ranks):
    """What each rank of a grid starts from: columns of x, and a block of each matrix.

    width_ranks of them share the width of x, the others the inner width.  Both must divide what they share.
    """
    inner_ranks, parts = ranks//width_ranks, []
    columns = np.split(x, ranks, 1)
    for r in range(ranks):
        i, j = divmod(r, inner_ranks)
        block = [np.split(np.split(up, width_ranks, 0)[i], inner_ranks, 1)[j] for up in ups]
        parts.append((columns[r], block, np.split(np.split(down, inner_ranks, 0)[j], width_ranks, 1)[i]))
    return parts


def stationary(comm, part, width_ranks):
    """This rank's columns of the layer: inputs are gathered and sums scattered, along one side of the grid or the other."""
    x, ups, down = part
    inner_ranks = comm.size//width_ranks
    i, j = divmod(comm.rank, inner_ranks)
    row = comm.group([i*inner_ranks + k for k in range(inner_ranks)])
    column = comm.group([k*inner_ranks + j for k in range(width_ranks)])
    x = np.concatenate(ring_all_gather(row, x), 1)
    sums = [ring_reduce_scatter(column, np.split(x @ up, width_ranks, 1)) for up in ups]
    inner = silu(sums[0])
    for more in sums[1:]:
        inner = inner*more
    inner = np.concatenate(ring_all_gather(column, inner), 1)
    return ring_reduce_scatter(row, np.split(inner @ down, inner_ranks, 1))


class Layer(NamedTuple):
    """Sequences with latent caches, the matrix behind their heads, and experts."""
    sequences: list                                          # Latents, one query each
    output: np.ndarray                                       # (a, d, h)
    experts: np.ndarray                                      # (E, h, h)
    chosen: np.ndarray                                       # (sequences, k) experts of each


def attended(layer, these, heads=slice(None)):
    """The rows (sequences, h) behind some of the heads, for some of the sequences; numbers cached for it."""
    tally = Tally()
    for b in these:
        tally.hold(layer.sequences[b].cache, layer.sequences[b].k_rotated)
    rows = [np.einsum("sad,adh->sh", absorbed(tally, Latents.heads(layer.sequences[b], heads)), layer.output[heads])
            for b in these]
    return np.concatenate(rows), tally.held


def whole(layer):
    """The layer on one device."""
    x, _ = attended(layer, range(len(layer.sequences)))
    return np.stack([sum(np.tanh(row @ layer.experts[e]) for e in chosen) for row, chosen in zip(x, layer.chosen)])


def by_heads(comm, layer):
    """(all rows, numbers cached): each rank some heads of every sequence, then some experts for every row."""
    def summed(x):
        return np.concatenate(ring_all_reduce(comm, np.split(x, comm.size, 1)), 1)

    heads = np.split(np.arange(layer.output.shape[0]), comm.size)[comm.rank]
    x, held = attended(layer, range(len(layer.sequences)), heads)
    x = summed(x)
    mine = np.split(np.arange(len(layer.experts)), comm.size)[comm.rank]
    part = np.zeros_like(x)
    for b, chosen in enumerate(layer.chosen):
        for e in np.intersect1d(chosen, mine):
            part[b] += np.tanh(x[b] @ layer.experts[e])
    return summed(part), held


def by_owner(comm, layer, there=float):
    """(its own rows, numbers cached): all heads of its own sequences; a copy of a row goes to each expert and back.

    there: the type in which rows travel to the experts.
    """
    per_rank = len(layer.experts)//comm.size
    own = np.split(np.arange(len(layer.sequences)), comm.size)
    x, held = attended(layer, own[comm.rank])

    def visits(source, to):
        """(place among the source's rows, expert) of what it has for the experts of a rank."""
        return [(i, e) for i, b in enumerate(own[source]) for e in layer.chosen[b] if e//per_rank == to]

    def copies(source):
        """Arrays like those that a rank sends here."""
        return np.empty((len(visits(source, comm.rank)), x.shape[1]), there)

    ranks = range(comm.size)
    sent = [np.array([x[i] for i, _ in visits(comm.rank, to)]).reshape(-1, x.shape[1]).astype(there) for to in ranks]
    came = pairwise_all_to_all(comm, sent, like=[copies(source) for source in ranks])
    done = [np.array([np.tanh(row @ layer.experts[e]) for row, (_, e) in zip(rows, visits(source, comm.rank))]).reshape(
        -1, x.shape[1]).astype(float) for source, rows in enumerate(came)]
    back = pairwise_all_to_all(comm, done, like=[np.empty(rows.shape) for rows in sent])
    y = np.zeros_like(x)
    for to, rows in enumerate(back):
        for row, (i, _) in zip(rows, visits(comm.rank, to)):
            y[i] += row
    return y, held
