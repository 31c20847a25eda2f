"""Tensors on a mesh of ranks, and the moves that change where their parts are, as programs of messages.

    held = place(tensor, source, mesh)                                       # what each rank has
    did = run(perform, held, route, mesh, shape)                             # a route of moves, on every rank
    gathered(did.results, target, mesh, shape)                               # the tensor again

A placement is anything with `cuts`, `partial`, `used`, `where` and `slices`, a move anything with `collective`, `axis`,
`source` and `target`.  A mesh is a dict from axis to size; ranks count its coordinates, the last axis fastest.
"""
import itertools

import numpy as np

from .collectives import pairwise_all_to_all, ring_all_gather, ring_all_reduce, ring_reduce_scatter


def coordinates(mesh, rank):
    """Where a rank stands on each axis, found by counting."""
    every = itertools.product(*map(range, mesh.values()))
    return dict(zip(mesh, next(itertools.islice(every, rank, None))))


def groups(mesh, axes):
    """The ranks that differ along these axes alone, group by group, in the order of the ranks."""
    found = {}
    for r in range(np.prod([*mesh.values()], dtype=int)):
        found.setdefault(tuple(c for x, c in coordinates(mesh, r).items() if x not in axes), []).append(r)
    return list(found.values())


def place(tensor, placement, mesh, seed=0):
    """What each rank holds: the same on ranks that are replicas, random integer terms where partial."""
    rng, terms, held = np.random.default_rng(seed), {}, []
    shape = dict(zip(placement.cuts, tensor.shape))
    at = [coordinates(mesh, r) for r in range(np.prod([*mesh.values()], dtype=int))]
    for c in at:
        terms.setdefault(tuple(c[x] for x in placement.partial), rng.integers(-99, 99, tensor.shape))
    last = max(terms)
    terms[last] = tensor - sum(t for k, t in terms.items() if k != last)
    for r, c in enumerate(at):
        held.append(terms[tuple(c[x] for x in placement.partial)][placement.slices(shape, mesh, r)].copy())
    return held


def gathered(held, placement, mesh, shape):
    """The tensor that these local arrays stand for; AssertionError if replicas differ."""
    copies, whole = {}, np.zeros(tuple(shape.values()), held[0].dtype)
    for r, value in enumerate(held):
        c = coordinates(mesh, r)
        key = tuple((x, c[x]) for x in placement.used)
        if key in copies:
            assert np.array_equal(copies[key], value), "replicas differ"
        else:
            copies[key] = value
            whole[placement.slices(shape, mesh, r)] += value
    return whole


def perform(comm, value, route, mesh, shape):
    """Run the moves of a route on one rank."""
    for move in route:
        value = step(comm, value, move, mesh, shape)
    return value


def step(comm, value, move, mesh, shape):
    """Run one move on one rank."""
    at, axes, crossed = coordinates(mesh, comm.rank), list(shape), move.axis.split()
    line = next(g for g in groups(mesh, crossed) if comm.rank in g)
    if move.collective == "permute":
        wants = [move.target.slices(shape, mesh, r) for r in range(comm.size)]
        has = [move.source.slices(shape, mesh, r) for r in range(comm.size)]
        to = next(r for r in line if wants[r] == has[comm.rank])
        source = next(r for r in line if has[r] == wants[comm.rank])
        return value if to == comm.rank else comm.sendrecv(value, to, source)
    x, k, group = move.axis, mesh[move.axis], comm.group(line)
    before, after = (axes.index(p.where(x)) if p.where(x) in axes else None for p in (move.source, move.target))
    match move.collective:
        case "all_gather":
            return np.concatenate(ring_all_gather(group, value), before)
        case "reduce_scatter":
            return ring_reduce_scatter(group, np.split(value, k, after))
        case "all_reduce":
            parts = ring_all_reduce(group, np.array_split(value.ravel(), k))
            return np.concatenate(parts).reshape(value.shape)
        case "all_to_all":
            return np.concatenate(pairwise_all_to_all(group, np.split(value, k, after)), before)
        case "slice":
            return np.split(value, k, after)[at[x]]
        case "zero_pad":
            return np.concatenate([value*(i == at[x]) for i in range(k)], before)
        case "mask":
            return value*(at[x] == 0)
    raise ValueError(f"collective {move.collective!r}; allowed: one of a Move")
