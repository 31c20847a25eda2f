"""Lab 1. The programs of chapter 12, the same text, on real processes.

    torchrun --standalone --nproc-per-node=4 labs/lab1_ring.py

A program over processes is compared with what does not know of it: PyTorch's own collective, the formula, and the
same program on the simulated ranks of `capacity.witness.spmd`.

Before you look (chapter 12): four ranks add up 1,000,003 numbers of eight bytes each in a ring all-reduce. How many bytes
does a rank send?

Break it: the numbers are no longer whole, `whole = torch.arange(n)*(comm.rank + 1) % 1009/7`.
"""
import inspect
from fractions import Fraction
from operator import or_

import torch
import torch.distributed as dist

from capacity.witness import collectives as a
from capacity import all_reduce_total_bytes, ring_all_reduce_time
from capacity.witness import spmd
from asking import answer, broken
from processes import Comm, Objects, Raw, check, lab


def numbers(rank, n):
    """n random floats, the same for a rank wherever they are made."""
    return torch.randn(n, generator=torch.Generator().manual_seed(rank))


def same(x, y):
    """Equal to the last bit, tensor by tensor."""
    if isinstance(x, torch.Tensor):
        return torch.equal(x.cpu(), y)
    return type(x) is type(y) and (x == y if x is None else all(map(same, x, y)))


def ring(comm):
    """Chapter 12's ring: its sums are those of dist.all_reduce, its bytes and messages those of the formulas."""
    P, n = comm.size, 1_000_003                              # a prime: the blocks differ in size
    whole = torch.arange(n)*(comm.rank + 1) % 1009
    if broken():
        whole = whole/7
    x = whole.to(comm.device)
    raw = comm.raw
    result = torch.cat(a.ring_all_reduce(raw, list(x.tensor_split(P))))
    dist.all_reduce(x)
    check(comm, f"ring_all_reduce on {P} processes is dist.all_reduce: {n:,} integers", torch.equal(result, x))

    sent = torch.tensor(sum(nbytes for _, nbytes in raw.log))
    dist.all_reduce(sent)
    check(comm, f"together they sent 2 n (P - 1) = {sent:,} bytes", sent == all_reduce_total_bytes(n=8*n, P=P))
    answer(sent/P, "bytes")
    check(comm, f"each in 2 (P - 1) = {len(raw.log)} messages, the formula's time for alpha = 1 and no bytes",
          len(raw.log) == ring_all_reduce_time(n=0, P=P, alpha=1, beta=1))


def programs(P):
    """name -> program(comm, x): every program of `capacity.witness.collectives`; x is one tensor of 24 P numbers."""
    def cut(x, k=P):
        return list(x.tensor_split(k))

    side = next((d for d in range(2, P) if P % d == 0), P)
    yield "binomial_broadcast", lambda c, x: a.binomial_broadcast(c, x, root=P - 1)
    yield "binomial_reduce", lambda c, x: a.binomial_reduce(c, x, root=P - 1)
    yield "binomial_scatter", lambda c, x: a.binomial_scatter(c, cut(x), root=P - 1)
    yield "binomial_gather", lambda c, x: a.binomial_gather(c, x, root=P - 1)
    yield "chain_broadcast", lambda c, x: a.chain_broadcast(c, cut(x, 6))
    yield "ring_reduce_scatter", lambda c, x: a.ring_reduce_scatter(c, cut(x))
    yield "ring_all_gather", lambda c, x: a.ring_all_gather(c, x)
    yield "ring_all_reduce", lambda c, x: a.ring_all_reduce(c, cut(x))
    yield "bidirectional_ring_all_reduce", lambda c, x: a.bidirectional_ring_all_reduce(c, [cut(b, 2) for b in cut(x)])
    if P & (P - 1) == 0:
        yield "recursive_doubling_all_reduce", a.recursive_doubling_all_reduce
    yield "halving_doubling_all_reduce", lambda c, x: a.halving_doubling_all_reduce(c, cut(x, 24))
    yield "bruck_all_gather", lambda c, x: a.bruck_all_gather(c, x)
    yield "bruck_reduce_scatter", lambda c, x: a.bruck_reduce_scatter(c, cut(x))
    yield "bruck_all_reduce", lambda c, x: a.bruck_all_reduce(c, cut(x))
    yield "window_all_reduce", a.window_all_reduce
    yield "double_tree_all_reduce", lambda c, x: a.double_tree_all_reduce(c, cut(x, 8))
    yield "pairwise_all_to_all", lambda c, x: a.pairwise_all_to_all(c, cut(x))
    yield "bruck_all_to_all", lambda c, x: a.bruck_all_to_all(c, cut(x))
    yield "torus_all_reduce", lambda c, x: a.torus_all_reduce(c, cut(x), (P//side, side))
    yield "torus_all_gather", lambda c, x: a.torus_all_gather(c, x, (P//side, side))
    yield "hierarchical_all_reduce", lambda c, x: a.hierarchical_all_reduce(c, cut(x), side)
    yield "grouped_all_reduce", lambda c, x: a.grouped_all_reduce(c, cut(x, side))


def every_program(comm):
    """Each program three times: with objects, with raw tensors, and with raw tensors sent as NCCL wants them."""
    worlds = [Objects(comm.device, []), comm.raw._world]
    if comm.device.type == "cpu":
        worlds.append(Raw(comm.device, [], directions=(dist.new_group(), dist.new_group())))
    known = {name for name, f in inspect.getmembers(a, inspect.isfunction)
             if name[0] != "_" and next(iter(inspect.signature(f).parameters)) == "comm"}
    missing = known - {name for P in (comm.size, 4) for name, _ in programs(P)}
    check(comm, f"all {len(known)} programs of capacity.witness.collectives follow", not missing)
    inputs = [numbers(r, 24*comm.size) for r in range(comm.size)]
    x = inputs[comm.rank].to(comm.device)
    for name, program in programs(comm.size):
        simulated = spmd.run(program, inputs, ports=2)
        messages = [(m.to, m.nbytes) for m in simulated.messages if m.source == comm.rank]
        ok = True
        for world in worlds:
            world.log = []
            result = program(Comm(world, list(range(comm.size)), comm.rank), x)
            ok = ok and same(result, simulated.results[comm.rank]) and sorted(world.log) == sorted(messages)
        check(comm, f"{name}: results to the last bit and all messages as simulated, "
                    f"{len(simulated.messages)} with {simulated.sent().sum():,} bytes", ok)


def refused(comm, value, **asked):
    """Whether a message around the ring is refused by a receiver that asked for something else."""
    try:
        comm.sendrecv(value, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size, sendtag="a", **asked)
    except spmd.Mismatch:
        return True
    return False


def other_values(comm):
    """What is no tensor travels too, and a group of ranks is a smaller world."""
    P = comm.size
    sets = a.ring_all_reduce(comm, [frozenset([comm.rank])]*P, op=or_)
    thirds = a.window_all_reduce(comm, Fraction(comm.rank, 3))
    check(comm, "sets and fractions", sets == [frozenset(range(P))]*P and thirds == Fraction(P*(P - 1), 6))
    group = comm.group(range(comm.rank % 2, P, 2))
    total = a.window_all_reduce(group, comm.rank)
    check(comm, "even and odd ranks as two groups", total == sum(range(comm.rank % 2, P, 2)))
    if P > 1:
        x, y = torch.ones(2), torch.ones(3)
        check(comm, "a message of another tag or shape is refused",
              refused(comm, x, recvtag="b") and refused(comm, x, like=y) and not refused(comm, x, like=y[:2]))


def main(comm):
    ring(comm)
    every_program(comm)
    other_values(comm)


if __name__ == "__main__":
    lab(main)
