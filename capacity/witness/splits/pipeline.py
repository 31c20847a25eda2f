"""Pipeline parallelism: every rank has some of the layers and runs the orders of a schedule, whatever they are.

    schedule = one_f_one_b(p=4, m=8)
    did = run(pipeline, place(schedule, stages(w, 4)), schedule, microbatches(tokens, targets, 8))
    loss, gradients = total(did)

A stage is a contiguous part of the weights: a flat dict with the names that the model has.  A rank keeps the
pullback of every micro-batch it has seen forwards until it has its weight gradient; the most it keeps at once is
what the schedule costs in memory.  What passes between stages is one activation forwards, one gradient backwards.
"""
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .. import tiny
from ..schedule import Op


class Part(NamedTuple):
    """What one rank has in the end: its stages' losses, gradients by name, and the most activations it held."""
    loss: Any
    grads: dict
    peak: int


def stages(w, n, tied=False):
    """The weights w cut into n stages, as even as its blocks allow: embed is in the first, norm and head in the last.

    tied: w has no head; its embed is in the last stage, too.  ValueError for more stages than blocks.
    """
    layers = tiny.layers(w)
    if not 1 <= n <= layers:
        raise ValueError(f"n = {n}; allowed: 1 to {layers} stages, for as many blocks")
    cuts = [layers*s//n for s in range(n + 1)]
    parts = [{name: value for name, value in w.items() if "." in name and a <= int(name.split(".")[0]) < b}
             for a, b in zip(cuts, cuts[1:])]
    parts[0]["embed"] = w["embed"]
    last = "embed" if tied else "head"
    parts[-1] |= {"norm": w["norm"], last: w[last]}
    return parts


def stage(w, x, targets=None):
    """One stage: tokens, or the activations before it, -> activations, or the loss if there are targets.

    back(dy) -> (dx, dw), with dx None for tokens; dw() -> gradients by name, computed when they are asked for.
    """
    backs, at, tokens = [], np.arange(x.shape[1]), x.dtype.kind == "i"
    if tokens:
        x, back_embed = tiny.embed(x, w["embed"])
    for i in sorted({int(name.split(".")[0]) for name in w if "." in name}):
        x, back = tiny.block(x, tiny.block_weights(w, i), at)
        backs.append((f"{i}.", back))
    if targets is not None:
        x, back_norm = tiny.rms_norm(x, w["norm"])
        x, back_head = tiny.linear(x, w["head"] if "head" in w else w["embed"].T)
        x, back_loss = tiny.cross_entropy(x, targets)

    def back(dy):
        dws = []
        if targets is not None:
            dx, dhead = back_head(back_loss(dy))
            dy, dnorm = back_norm(dx)
            dws.append(lambda: {"norm": dnorm()} | ({"head": dhead()} if "head" in w else {"embed": dhead().T}))
        for name, back_block in reversed(backs):
            dy, dw = back_block(dy)
            dws.append(lambda name=name, dw=dw: {name + k: value for k, value in dw().items()})
        if tokens:
            dembed, dy = back_embed(dy), None
            dws.append(lambda: {"embed": dembed()})

        def dw():
            grads = {}
            for one in dws:
                add(grads, one())
            return grads
        return dy, dw
    return x, back


def add(grads, more):
    """Add gradients by name, in place."""
    for name, value in more.items():
        grads[name] = grads[name] + value if name in grads else value


def microbatches(tokens, targets, m):
    """A batch cut into m pairs (tokens, targets)."""
    return list(zip(np.array_split(tokens, m), np.array_split(targets, m)))


def ops(order):
    """The operations of an order one by one; those of an overlapped slot in their order there."""
    return chain.from_iterable([slot] if isinstance(slot, Op) else slot for slot in order)


def place(schedule, parts):
    """For each device: its stages {stage: weights}, and the names that device p-1-d has copies of.

    A name is on two devices if a schedule runs in both directions, or if embed is tied to the head.
    """
    held = [{op.stage: parts[op.stage] for op in ops(order)} for order in schedule.orders]
    names = [set(chain(*mine.values())) for mine in held]
    return [(mine, sorted(here & there)) if here is not there else (mine, [])
            for mine, here, there in zip(held, names, reversed(names))]


def message(op, home, last):
    """What an op waits for from another stage: the op that makes it, or None."""
    kind, s, j = op
    if kind == "F" and s > 0:
        return Op("F", s - 1, j)
    if kind in "BI" and s < last:
        return Op("B" if ("B", s + 1, j) in home else "I", s + 1, j)


def pipeline(comm, mine, schedule, batch):
    """Run this rank's order: mine as from `place`, batch as from `microbatches`; -> Part.

    Sends never wait for their receiver before the end, and receives are posted in the order of the sender.
    """
    held, shared = mine
    home = {op: d for d, order in enumerate(schedule.orders) for op in ops(order)}
    last = max(op.stage for op in home)
    needs = {message(op, home, last) for op in ops(schedule.orders[comm.rank])}
    inbox = {op: comm.irecv(d, tag=str(op)) for d, order in enumerate(schedule.orders) if d != comm.rank
             for op in ops(order) if op in needs}
    outbox, here, kept, grads, loss, peak = [], {}, {}, {}, 0.0, 0

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
        tokens, targets = batch[j]
        if kind == "F":
            x = get(op) if s else tokens
            y, kept[s, j] = stage(held[s], x, targets if s == last else None)
            peak = max(peak, len(kept))
            if s < last:
                put(op, y, Op("F", s + 1, j))
            else:
                loss += y
        if kind in "BI":
            dx, kept[s, j] = kept[s, j](get(op) if s < last else 1.0)
            if s:
                put(op, dx, Op("B", s - 1, j) if ("B", s - 1, j) in home else Op("I", s - 1, j))
        if kind in "BW":
            add(grads, kept.pop((s, j))())
    for handle in outbox:
        handle.wait()
    if shared:
        other = comm.size - 1 - comm.rank
        add(grads, comm.sendrecv({name: grads[name] for name in shared}, other, other, sendtag="copies"))
    return Part(loss, grads, peak)


def total(did):
    """The loss and all gradients of a run, each from one of the ranks that have it."""
    grads = {}
    for part in did.results:
        grads |= part.grads
    return sum(part.loss for part in did.results), grads
