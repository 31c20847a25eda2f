"""Lab 14. Compressed gradients: the programs of `capacity.witness.compression` on processes, and PowerSGD by hand.

    torchrun --standalone --nproc-per-node=4 labs/lab14_compression.py

Results, messages and bytes against the simulated ranks; error feedback over forty steps; what gathering and adding send.

Before you look (chapter 28): four ranks keep the largest 2 % of their 16-bit numbers and gather them, each with its place in 32
bits. How many times those bytes does a dense sum send?

Break it: the places keep PyTorch's own type of 64 bits, `at = x.abs().float().topk(k).indices`.
"""
import numpy as np
import torch
import torch.distributed as dist

from capacity import powersgd_ratio, sparse_all_gather_gain
from capacity.witness import compression as comp
from capacity.witness import spmd
from counting import Count
from asking import answer, broken
from processes import check, equal, lab, summed

D, K = 960, 24


def vectors(P, dtype=np.float64):
    return [np.random.default_rng(r).normal(size=D).astype(dtype) for r in range(P)]


def same(a, b):
    """Whether nested lists and tuples of arrays are equal to the last bit."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b)


def programs(comm):
    """Every road, with every compressor that may take it: the bits and the bytes of the simulated ranks."""
    xs = vectors(comm.size)
    matrices = [x.reshape(32, 30) for x in xs]
    start = np.random.default_rng(14).normal(size=(30, 3))
    for name, program, inputs, *how in (
            ("top-k, gathered", comp.gathered, xs, comp.TopK(K)),
            ("signs, gathered", comp.gathered, xs, comp.Sign()),
            ("levels, gathered", comp.gathered, xs, comp.Levels(7), 5),
            ("top-k, added in a sparse ring", comp.sparse_ring, xs, comp.TopK(K)),
            ("places of one seed, added", comp.summed, xs, comp.RandomK(K), 5),
            ("top-k, owners add and compress again", comp.two_sided, xs, comp.TopK(K//4)),
            ("signs, owners add and compress again", comp.two_sided, xs, comp.Sign()),
            ("PowerSGD", comp.low_rank, matrices, start),
            ("all numbers, added", comp.added, xs)):
        before = len(comm.log)
        mine = program(comm, inputs[comm.rank], *how)
        sent = sum(nbytes for _, nbytes in comm.log[before:])
        there = spmd.run(program, inputs, *how)
        check(comm, f"{name}: the bits of the simulated ranks, and their {there.sent().sum():,} bytes in all",
              same(mine, there.results[comm.rank]) and sent == there.sent()[comm.rank])


def feedback(comm):
    """Forty steps on bowls, one a rank: the weights less what is held back are plain SGD."""
    bowls = [comp.three((-3, 2, 2))[r % 3] for r in range(comm.size)]
    mean = lambda x: sum(g(x) for g in bowls)/comm.size
    for name, way in (("top-1", lambda: comp.Gathered(comp.TopK(1))), ("signs", lambda: comp.Gathered(comp.Sign())),
                      ("one seed", lambda: comp.Summed(comp.RandomK(1))),
                      ("owners", lambda: comp.TwoSided(comp.TopK(1))),
                      ("PowerSGD", lambda: comp.LowRank((3, 1), 1))):
        path = comp.train(comm, bowls[comm.rank], np.ones(3), way, .01, 40)
        moved = []
        for x, lost, owned in path:
            late = summed(torch.tensor(np.stack([lost/comm.size, owned]))).sum(0)
            moved.append(x - late.numpy())
        off = max(np.abs(b - a + .01*mean(x)).max() for a, b, (x, _, _) in zip(moved, moved[1:], path))
        check(comm, f"{name}: for forty steps the weights less what is held back are plain SGD, to 1e-12", off < 1e-12)


def by_hand(comm):
    """PowerSGD in torch: two all-reduces of the library, one worker's result, and the bytes of the formula."""
    a, b, r = 96, 64, 4
    at = torch.Generator().manual_seed(0)
    every = [torch.randn(a, b, generator=at, dtype=torch.float64) for _ in range(comm.size)]
    Q = torch.linalg.qr(torch.randn(b, r, generator=at, dtype=torch.float64))[0]

    def step(A, reduce):
        U = torch.linalg.qr(reduce(A @ Q))[0]
        return U @ reduce(A.T @ U).T

    with Count() as seen:
        got = step(every[comm.rank], summed)/comm.size
    alone = step(sum(every), lambda x: x)/comm.size
    check(comm, "PowerSGD over two all-reduces is one worker's step on the mean, to 1e-12", equal(got, alone))
    nbytes = sum(seen.nbytes.values())
    dense = 2*(comm.size - 1)*8*a*b/comm.size
    check(comm, f"it sends {float(nbytes/dense):.3f} of the dense ring's bytes, the formula's ratio",
          sum(seen.calls.values()) == 2 and abs(float(nbytes)/dense - powersgd_ratio(a, b, r)) < 1e-12)


def gathered(comm):
    """Top-k of 16-bit numbers over the library's all-gather, against the formula, and the place where it stops paying."""
    P, x = comm.size, torch.tensor(vectors(comm.size)[comm.rank]).half()
    for kept in (.02, .1, .5):
        k = round(kept*D)
        at = x.abs().float().topk(k).indices.to(torch.int64 if broken() else torch.int32)
        with Count() as sparse:
            places, values = torch.empty(P*k, dtype=at.dtype), torch.empty(P*k, dtype=torch.float16)
            dist.all_gather_into_tensor(places, at)
            dist.all_gather_into_tensor(values, x[at.long()])
        with Count() as dense:
            summed(x.float()).half()
        total = torch.zeros(D).index_add_(0, places.long(), values.float())
        there = sum(comp.TopK(k).decode(comp.TopK(k).encode(v), D) for v in vectors(P, np.float16))
        gain = float(sum(dense.nbytes.values()))/2/float(sum(sparse.nbytes.values()))     # fp32 sums, 16 bits counted
        if kept == .02:
            answer(gain, "times the bytes")
        check(comm, f"the largest {100*kept:g} % of {P} ranks: a dense sum of 16 bits sends {gain:.2f} times the bytes",
              abs(gain/sparse_all_gather_gain(P, k/D, 2) - 1) < 1e-9 and np.allclose(total.numpy(), there, atol=1e-6))


def main(comm):
    for part in (gathered, programs, feedback, by_hand):
        part(comm)


if __name__ == "__main__":
    lab(main)
