"""Lab 4. Data parallelism: sums may be split over ranks and over time; means, norms and statistics may not.

    torchrun --standalone --nproc-per-node=4 labs/lab4_data_parallel.py

Every rank has another number of tokens. What DDP and FSDP2 compute is compared with one process that has them all,
in fp64. Gradients are written as one vector, that of all weights.

Before you look (chapter 14): four ranks have 10, 100, 370 and 820 tokens, and DDP takes the mean of their means. How many times
its share does a token of rank 0 weigh?

Break it: the sum over the count forgets that DDP divides by P: `loss(ddp, mine)/count`.
"""
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from capacity import all_reduce_egress, fsdp_egress
from counting import Count
from asking import answer, broken
from processes import check, lab, summed

MICRO, FP64 = 3, 8                                           # micro-batches of a rank; bytes of a number


def model(comm, norm=None):
    """Token to next token; every layer has rows for all ranks. The same weights on every rank."""
    torch.manual_seed(0)
    vocab, width, hidden = 8*comm.size, 4*comm.size, 16*comm.size
    layers = [nn.Embedding(vocab, width), nn.Linear(width, hidden, bias=False), nn.Tanh(),
              nn.Linear(hidden, vocab, bias=False)]
    return nn.Sequential(*layers[:2], *([norm(hidden)] if norm else []), *layers[2:]).double().to(comm.device)


def tokens(comm, r, j, n):
    """n tokens and their targets: micro-batch j of rank r. Each rank has its favorite tokens."""
    at = torch.Generator().manual_seed(100*r + j)
    vocab = 8*comm.size
    return [(torch.randint(vocab//2, (n,), generator=at) + 4*r*k).to(comm.device) % vocab for k in (1, 2)]


def loss(net, batch, reduction="sum"):
    return cross_entropy(net(batch[0]), batch[1], reduction=reduction)


def gradient(net, total=None):
    """The gradient of all weights as one vector: that of `total`, or what backward passes have left."""
    if total is not None:
        net.zero_grad()
        total.backward()
    return torch.cat([p.grad.flatten() for p in net.parameters()])


def off(x, y):
    """Distance of x from y, as a part of y."""
    return float((x - y).norm()/y.norm())


def sum_up(_, bucket):
    """What DDP does with a bucket of gradients, but for its division by P, and in sight of Count."""
    done = torch.futures.Future()
    done.set_result(summed(bucket.buffer()))
    return done


def mean_of_means(comm, net, batches):
    """DDP averages the gradients of the ranks. It is right if each is its rank's share, not its rank's mean."""
    P, mine, n = comm.size, batches[comm.rank], torch.tensor([len(x) for x, _ in batches], device=comm.device)
    w, N = n/n.sum().double(), n.sum()
    serial = gradient(net, sum(loss(net, b) for b in batches)/N)
    means = torch.stack([gradient(net, loss(net, b, "mean")) for b in batches])
    ddp = DistributedDataParallel(copy.deepcopy(net))

    got = gradient(ddp, loss(ddp, mine, "mean"))
    check(comm, f"tokens {n.tolist()}: the mean of the ranks' means is no mean: its gradient is off by "
                f"{off(got, serial):.0%}", off(got, serial) > 0.1)
    weigh = torch.linalg.lstsq(means.T, got).solution         # DDP's gradient as a sum of the ranks' means
    answer(weigh[0]/w[0], "times its share")
    check(comm, "what is missing is the sum of (w_i - 1/P) g_i", off(serial - got, (w - 1/P) @ means) < 1e-12)

    count = summed(n[comm.rank])
    got = gradient(ddp, loss(ddp, mine)*(1 if broken() else P)/count)
    check(comm, f"sum and count: the ranks' sums over the count of all, {count:,}: the serial gradient to 1e-12",
          count == N and off(got, serial) < 1e-12)
    first = got.clone()
    dist.broadcast(first, 0)
    check(comm, "all ranks have the same bits", torch.equal(got, first))


def accumulation(comm, net, batches):
    """The same in time: micro-batches of different sizes, one reduction after the last of them."""
    P, mine, every = comm.size, batches[comm.rank], [b for rank in batches for b in rank]
    n = torch.tensor([len(x) for x, _ in every], device=comm.device)
    w, N, parts = n/n.sum().double(), n.sum(), P*MICRO
    serial = gradient(net, sum(loss(net, b) for b in every)/N)
    means = torch.stack([gradient(net, loss(net, b, "mean")) for b in every])
    ddp = DistributedDataParallel(copy.deepcopy(net))
    ddp.register_comm_hook(None, sum_up)

    def step(total):
        ddp.zero_grad()
        with ddp.no_sync():
            for batch in mine[:-1]:
                total(batch).backward()
        total(mine[-1]).backward()
        return gradient(ddp)

    got = step(lambda b: loss(ddp, b, "mean")/parts)
    check(comm, f"{MICRO} micro-batches a rank: the mean of {parts} means is off by {off(got, serial):.0%}, "
                f"by the sum of (w_i - 1/{parts}) g_i",
          off(got, serial) > 0.1 and off(serial - got, (w - 1/parts) @ means) < 1e-12)
    count = summed(n[comm.rank*MICRO:(comm.rank + 1)*MICRO].sum())
    got = step(lambda b: loss(ddp, b)/count)
    check(comm, "sums over the count of all: the serial gradient to 1e-12", off(got, serial) < 1e-12)
    n = FP64*got.numel()
    with Count() as counted:                                 # now that DDP has arranged its buckets
        step(lambda b: loss(ddp, b)/count)
    check(comm, f"the bytes of one all-reduce of {n:,} for {MICRO} micro-batches",
          counted.nbytes == {("all_reduce", P): all_reduce_egress(n=n, P=P)})


def statistics(comm, batches):
    """BatchNorm's loss is no sum over tokens: each looks at the others of its batch."""
    P, N = comm.size, sum(len(x) for x, _ in batches)
    whole = [torch.cat(x) for x in zip(*batches)]
    for norm, additive in ((nn.LayerNorm, True), (nn.BatchNorm1d, False)):
        net = model(comm, norm)
        ddp = DistributedDataParallel(copy.deepcopy(net))
        got = gradient(ddp, loss(ddp, batches[comm.rank])*P/N)
        serial, parts = (gradient(net, sum(loss(net, b) for b in split)/N) for split in ([whole], batches))
        error = off(got, serial)
        check(comm, f"{norm.__name__}: " + ("as in one process" if additive else
                                            f"off by {error:.0%}; it is one process that normalizes {P} parts"),
              (error < 1e-12) == additive and (error > 0.01) != additive and off(got, parts) < 1e-12)


def clipping(comm, net):
    """The norm of a sum is not the sum of the norms: clip what has been reduced."""
    P, batches = comm.size, [tokens(comm, r, 0, 32) for r in range(comm.size)]
    each = torch.stack([gradient(net, loss(net, b, "mean")) for b in batches])
    serial, own = each.mean(0), gradient(net, loss(net, batches[comm.rank], "mean"))
    bound = float(serial.norm())*1.01                        # which the serial gradient keeps

    def clip(g):
        return g*min(1, bound/float(g.norm()))

    after, before = clip(summed(own)/P), summed(clip(own))/P
    check(comm, "clipping after the all-reduce is the serial clipping", off(after, clip(serial)) < 1e-12)
    check(comm, f"clipping before it takes {off(before, serial):.0%} of a gradient that keeps the bound, as predicted",
          off(before, serial) > 0.1 and off(before, sum(map(clip, each))/P) < 1e-12)


def sharded(comm, net, batches):
    """FSDP2: each rank keeps the P-th part of the weights of every layer."""
    P, N = comm.size, sum(len(x) for x, _ in batches)
    serial = gradient(net, sum(loss(net, b) for b in batches)/N)
    n, layers = FP64*serial.numel(), [layer for layer in net if list(layer.parameters())]
    mesh = init_device_mesh(comm.device.type, (P,))
    for layer in [*layers, net]:
        fully_shard(layer, mesh=mesh)
    with Count() as counted:
        (loss(net, batches[comm.rank])*P/N).backward()
    got = torch.cat([p.grad.full_tensor().flatten() for p in net.parameters()])
    check(comm, "FSDP2: the serial gradient to 1e-12; each rank keeps the P-th part of it",
          off(got, serial) < 1e-12 and sum(p.grad.to_local().nbytes for p in net.parameters())*P == n)
    check(comm, f"FSDP2 gathers each of {len(layers)} layers twice and scatters its gradient once",
          counted.calls == {("all_gather", P): 2*len(layers), ("reduce_scatter", P): len(layers)})
    check(comm, f"it sends 3 (P - 1)/P of {n:,} bytes, 3/2 of DDP's",
          sum(counted.nbytes.values()) == fsdp_egress(n=n, P=P) == 1.5*all_reduce_egress(n=n, P=P))


def main(comm):
    P, net = comm.size, model(comm)
    batches = [[tokens(comm, r, j, 10 + 90*r*r + 40*j) for j in range(MICRO)] for r in range(P)]
    first = [rank[0] for rank in batches]
    mean_of_means(comm, net, first)
    accumulation(comm, net, batches)
    statistics(comm, first)
    clipping(comm, net)
    sharded(comm, net, first)


if __name__ == "__main__":
    lab(main)
