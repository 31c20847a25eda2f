"""Lab 19. Three sick jobs: a rank with another seed, a rank that is slow, a rank that hangs; each is named.

    torchrun --standalone --nproc-per-node=4 labs/lab19_diagnosis.py

Numbers of layers, rounds and names are compared; times only with a sleep that is many times longer than they are.

Before you look (chapter 33): of 80 layers all from the 27th on are wrong on one rank. In how many rounds of one number a rank is
the first wrong layer found?

Break it: every rank projects in its own direction, `torch.Generator().manual_seed(comm.rank)`.
"""
import re
import time
from datetime import timedelta
from math import ceil, log2

import torch
import torch.distributed as dist
from torch import nn

from capacity import bisection_tests
from asking import answer, broken
from processes import check, lab, summed

WIDTH, LATE = 32, .2


def network(layers, seed):
    """Linear layers; layer by layer from one seed."""
    torch.manual_seed(seed)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(layers)])


def number(model, first, last):
    """Layers from `first` to before `last` as one number, a random projection that is the same on all ranks."""
    g = torch.Generator().manual_seed(dist.get_rank() if broken() else 1)
    total = torch.zeros((), dtype=torch.double)
    for layer in model[first:last]:
        for p in layer.parameters():
            total += p.detach().double().flatten() @ torch.randn(p.numel(), generator=g, dtype=torch.double)
    return total


def apart(x):
    """Whether the ranks hold different numbers: the largest and the smallest of them."""
    low, high = x.clone(), x.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return bool((low != high).any())


def seeds(comm):
    """One rank began with another seed: which, and from which layer on."""
    odd = comm.size - 1
    for layers in (1, 7, 32, 80):
        check(comm, f"{layers} layers from one seed: no rank differs", not apart(number(network(layers, 0), 0, layers)))
        for first in {0, layers//3, layers - 1}:
            model = network(layers, 0)
            if comm.rank == odd:                             # layers from `first` on are another seed's
                model = nn.Sequential(*model[:first], *network(layers, 7)[first:])
            low, high, rounds = 0, layers, 0
            while high - low > 1:                            # the first wrong layer is below `high`, and not below `low`
                middle = (low + high)//2
                low, high = (low, middle) if apart(number(model, 0, middle)) else (middle, high)
                rounds += 1
            if first == layers//3:
                answer(rounds, "rounds")
                check(comm, f"{layers} layers, wrong from {first} on: found in {rounds} rounds, at most {bisection_tests(layers):.0f}",
                      low == first and rounds <= bisection_tests(layers) == (ceil(log2(layers)) if layers > 1 else 0))
            else:
                assert low == first and rounds <= bisection_tests(layers)
    mine = torch.zeros(comm.size, dtype=torch.double)
    mine[comm.rank] = number(network(8, 7 if comm.rank == odd else 0), 0, 8)
    every = summed(mine)
    alone = [r for r in range(comm.size) if (every != every[r]).sum() == comm.size - 1]
    check(comm, f"rank {odd} is the one whose number differs from all others", alone == [odd] if comm.size > 2 else odd in alone)

    model, x = network(3, 0), torch.ones(4, WIDTH)
    model(x).square().mean().backward()
    for p in model.parameters():
        if comm.rank == odd:
            p.grad[0] += 1e3                                 # wrong before the sum
        dist.all_reduce(p.grad)
        p.data -= .01*p.grad/comm.size
    check(comm, "a gradient that is wrong before the all-reduce leaves no replica different", not apart(number(model, 0, 3)))


def slowest(comm):
    """One rank works longer; it waits least in the collective."""
    late, waits = 1 % comm.size, []
    for _ in range(5):
        dist.barrier()
        if comm.rank == late:
            time.sleep(LATE)
        start = time.perf_counter()
        dist.all_reduce(torch.ones(WIDTH))
        waits.append(time.perf_counter() - start)
    mine = torch.zeros(comm.size, dtype=torch.double)
    mine[comm.rank] = sorted(waits)[2]
    every = summed(mine)
    check(comm, f"rank {late}, which sleeps before each all-reduce, waits least in it", int(every.argmin()) == late)
    others = [float(every[r]) for r in range(comm.size) if r != late]
    check(comm, "each other rank waits more than half of its sleep", all(w > LATE/2 for w in others))


def hang(comm):
    """One rank does not come to a barrier; when time is out, rank 0 can say which."""
    away, said = comm.size - 1, ""
    group = dist.new_group(backend="gloo")
    if comm.rank != away:
        try:
            dist.monitored_barrier(group, timeout=timedelta(seconds=2), wait_all_ranks=True)
        except RuntimeError as error:
            said = str(error)
    comm.barrier()
    names = re.findall(r"[Rr]anks? ([\d, ]+) failed", said)
    check(comm, f"rank {away} hangs; after two seconds the monitored barrier of rank 0 names it, and no other",
          comm.rank > 0 or [n.strip(" ,") for n in names[:1]] == [str(away)])


def main(comm):
    seeds(comm)
    slowest(comm)
    hang(comm)


if __name__ == "__main__":
    lab(main)
