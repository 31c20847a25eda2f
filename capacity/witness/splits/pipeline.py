"""Pipeline parallelism: every rank has some of the layers and runs the orders of a schedule, whatever they are.

    schedule = one_f_one_b(p=4, m=8)
    did = run(loss, [shard(w, r, schedule) for r in range(4)], samples, schedule)
    total(did)                                             # the loss and every gradient

A stage is a contiguous part of the weights: a flat dict with the names that the model has.  A rank keeps the
pullback of every micro-batch it has seen forwards until it has its weight gradient; the most it keeps at once is
what the schedule costs in memory.  What passes between stages is one activation forwards, one gradient backwards.
"""
from itertools import chain
from typing import NamedTuple

import numpy as np

from .. import tiny
from ..schedule import Op
from . import data


class Part(NamedTuple):
    """A rank's part of the weights: its stages, and the names of which rank p-1-r has copies."""
    stages: dict                                           # {number: weights}
    shared: list


def stages(w, n):
    """The weights w cut into n stages, as even as its blocks allow: embed is in the first, norm and head in the last.

    If w has no head, its embed is in the last stage, too (tied).  ValueError for more stages than blocks.
    """
    numbers = tiny.blocks(w)
    if not 1 <= n <= len(numbers):
        raise ValueError(f"n = {n}; allowed: 1 to {len(numbers)} stages, for as many blocks")
    parts = [{name: value for name, value in w.items() if "." in name and int(name.split(".")[0]) in mine}
             for mine in (numbers[len(numbers)*s//n:len(numbers)*(s + 1)//n] for s in range(n))]
    parts[0]["embed"] = w["embed"]
    last = "head" if "head" in w else "embed"
    parts[-1] |= {"norm": w["norm"], last: w[last]}
    return parts


def ops(order):
    """The operations of an order one by one; those of an overlapped slot in their order there."""
    return chain.from_iterable([slot] if isinstance(slot, Op) else slot for slot in order)


def shard(w, rank, schedule):
    """Rank `rank`'s part of the weights, as its orders need it.

    A name is on two ranks if the schedule runs in both directions, or if the model is tied.
    """
    parts = stages(w, len(schedule.orders)*schedule.chunks)
    here, there = ({op.stage: parts[op.stage] for op in ops(schedule.orders[r])} for r in (rank, -1 - rank))
    lonely = 2*rank + 1 == len(schedule.orders)
    return Part(here, [] if lonely else sorted(set(chain(*here.values())) & set(chain(*there.values()))))


def message(op, home, last):
    """What an op waits for from another stage: the op that makes it, or None."""
    kind, s, j = op
    if kind == "F" and s > 0:
        return Op("F", s - 1, j)
    if kind in "BI" and s < last:
        return Op("B" if ("B", s + 1, j) in home else "I", s + 1, j)


def loss(comm, part, samples, schedule, at=None, **hooks):
    """Run this rank's order -> the loss of its stages (0 without the last), the gradients of its part of the weights.

    samples: (tokens, targets), (b, s), everybody's; each rank cuts them into the schedule's micro-batches.
    at, hooks: of `tiny.stage`.  Sends never wait for their receiver before the end, and receives are posted in the
    order of the sender.  What it keeps, it says: see `peaks`.
    """
    at = np.arange(samples[0].shape[1]) if at is None else at
    home = {op: d for d, order in enumerate(schedule.orders) for op in ops(order)}
    last, m = max(op.stage for op in home), 1 + max(op.microbatch for op in home)
    needs = {message(op, home, last) for op in ops(schedule.orders[comm.rank])}
    inbox = {op: comm.irecv(d, tag=str(op)) for d, order in enumerate(schedule.orders) if d != comm.rank
             for op in ops(order) if op in needs}
    outbox, here, kept, grads, losses = [], {}, {}, {}, 0.0

    def get(op):
        source = message(op, home, last)
        return inbox[source].wait() if source in inbox else here.pop(source)

    def put(op, value, to):
        if to in home and home[to] != comm.rank:
            outbox.append(comm.isend(value, home[to], tag=str(op)))
        else:
            here[op] = value

    for op in ops(schedule.orders[comm.rank]):
        kind, s, j = op
        if kind == "F":
            tokens, targets = data.shard(samples, j, m)
            x, goal = get(op) if s else tokens, targets if s == last else None
            y, kept[s, j] = tiny.stage(part.stages[s], x, goal, at, **hooks)
            comm.holds(frozenset(kept))
            if s < last:
                put(op, y, Op("F", s + 1, j))
            else:
                losses += y
        if kind in "BI":
            dx, kept[s, j] = kept[s, j](get(op) if s < last else 1.0)
            if s:
                put(op, dx, Op("B", s - 1, j) if ("B", s - 1, j) in home else Op("I", s - 1, j))
        if kind in "BW":
            grads = tiny.add(grads, kept.pop((s, j))())
    for handle in outbox:
        handle.wait()
    if part.shared:
        other = comm.size - 1 - comm.rank
        copies = {name: grads[name] for name in part.shared}
        grads = tiny.add(grads, comm.sendrecv(copies, other, other, sendtag="copies"))
    return losses, grads


def total(did):
    """The loss and all gradients of a run, each from one of the ranks that have it."""
    losses, grads = zip(*did.results)
    return sum(losses), dict(chain.from_iterable(g.items() for g in grads))


def peaks(did):
    """The most that each rank of a run kept at once, in activations of one stage and micro-batch; up to 32 ranks."""
    return [max(len(kept) for _, r, kept in did.holdings if r == rank and isinstance(kept, frozenset))
            for rank in range(did.size)]
