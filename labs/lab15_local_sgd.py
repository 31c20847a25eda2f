"""Lab 15. Local SGD and DiLoCo: what rare averages send, what they cost, and when they cost nothing.

    torchrun --standalone --nproc-per-node=4 labs/lab15_local_sgd.py

Every rank is an island. Its steps are its own; now and then the ranks average the change of their weights and an outer
optimizer applies it. The link is made slow inside the program: a bucket of tokens lets so many bytes pass in a second.

Before you look (chapter 29): 268 weights of eight bytes, four ranks, 32 steps, an average after every eighth. How many bytes does a
rank send in all?

Break it: the change is summed and not averaged: `change /= comm.size` is left out.
"""
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from capacity import local_saving
from counting import Count
from asking import answer, broken
from processes import check, equal, lab, summed

KINDS, FP64 = 4, 8


class Link:
    """A slow link: before a message leaves, its bytes are taken from a bucket that fills at `rate` bytes a second."""

    def __init__(self, rate):
        self.rate, self.tokens, self.seen = rate, 0.0, time.monotonic()

    def wait_for(self, nbytes):
        now = time.monotonic()
        self.tokens = min(self.tokens + self.rate*(now - self.seen), self.rate/100)       # a small bucket
        self.seen = now
        if nbytes > self.tokens:
            time.sleep((nbytes - self.tokens)/self.rate)
        self.tokens -= nbytes


def network(seed=15):
    """A classifier of points, the same on every rank."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, KINDS)).double()


def points(n, seed):
    """Points, and which of four kinds each one is."""
    at = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=at, dtype=torch.float64)
    made = torch.Generator().manual_seed(0)
    a, b = (torch.randn(*shape, generator=made, dtype=torch.float64) for shape in ((6, 24), (24, KINDS)))
    scores = torch.tanh(x @ a) @ b
    return x, (scores - scores.mean(0)).argmax(1)


def batches(rank, skew, batch=16):
    """Endless batches of a rank; a share `skew` of the points is of its own kind."""
    x, y = points(4096, 1)
    own, at = torch.nonzero(y == rank % KINDS).flatten(), torch.Generator().manual_seed(50 + rank)
    while True:
        mine = torch.rand(batch, generator=at) < skew
        pick = torch.where(mine, own[torch.randint(len(own), (batch,), generator=at)],
                           torch.randint(len(y), (batch,), generator=at))
        yield x[pick], y[pick]


def flat(tensors):
    return torch.cat([t.detach().flatten() for t in tensors])


def diloco(comm, data, H, steps, rate=1.0, outer=(1.0, 0.0), loss=cross_entropy, net=None, link=None):
    """Weights of the last average after so many steps, H of them alone at a time."""
    net = net or network()
    inner = torch.optim.SGD(net.parameters(), lr=rate)
    shared = [p.detach().clone() for p in net.parameters()]
    outer = torch.optim.SGD(shared, lr=outer[0], momentum=outer[1], nesterov=outer[1] > 0)
    for step in range(1, steps + 1):
        x, y = next(data)
        inner.zero_grad()
        loss(net(x), y).backward()
        inner.step()
        if step % H == 0:
            change = flat(shared) - flat(net.parameters())
            if link:
                link.wait_for(change.nbytes)
            dist.all_reduce(change)
            change /= 1 if broken() else comm.size
            for w, part in zip(shared, change.split([w.numel() for w in shared])):
                w.grad = part.view_as(w)
            outer.step()
            with torch.no_grad():
                for w, p in zip(shared, net.parameters()):
                    p.copy_(w)
    return flat(shared)


def data_parallel(comm, data, steps, rate=1.0):
    """The same steps by PyTorch's own data parallelism."""
    net = DistributedDataParallel(network())
    sgd = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(steps):
        x, y = next(data)
        sgd.zero_grad()
        cross_entropy(net(x), y).backward()
        sgd.step()
    return flat(net.parameters())


def tested(weights):
    """The loss on points that nobody trains on."""
    net, (x, y) = network(), points(1024, 2)
    for p, part in zip(net.parameters(), weights.split([p.numel() for p in net.parameters()])):
        p.data.copy_(part.view_as(p))
    with torch.no_grad():
        return float(cross_entropy(net(x), y))


def main(comm):
    P, rank = comm.size, comm.rank

    # H = 1, an outer rate of 1
    want = data_parallel(comm, batches(rank, 0), 32)
    got = diloco(comm, batches(rank, 0), 1, 32)
    check(comm, f"with H = 1 and outer SGD of rate 1, DiLoCo gives the weights of DDP on {P} ranks", equal(got, want))
    rare = diloco(comm, batches(rank, 0), 8, 32)
    check(comm, "with H = 8 it does not, for this network", P == 1 or not equal(rare, want))

    # the bytes
    sent = {}
    for H in (1, 8):
        with Count() as count:
            diloco(comm, batches(rank, 0), H, 32)
        sent[H] = sum(count.nbytes.values())
    size = len(want)
    answer(sent[8], "bytes")
    check(comm, f"a rank sends 2(P - 1)/P times {size*FP64} bytes in a round, and with H = 8 an eighth over all steps",
          sent[8]*P == 32//8*2*(P - 1)*size*FP64 and sent[1] == sent[8]*local_saving(8, FP64, FP64))

    # one straight gradient for all: nothing is lost
    fixed = torch.randn(16, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)

    def noisy():                                             # the same points everywhere, targets of each rank's own
        at = torch.Generator().manual_seed(70 + rank)
        while True:
            yield fixed, torch.randn(16, 2, generator=at, dtype=torch.float64)

    def straight():
        torch.manual_seed(4)
        return nn.Linear(6, 2, bias=False).double()

    def squares(z, y):
        return (z - y).square().mean()
    ends = [diloco(comm, noisy(), H, 64, .3, loss=squares, net=straight()) for H in (1, 8, 64)]
    check(comm, "where all ranks' gradients are one straight function up to constants, H = 8 and H = 64 give the weights of H = 1",
          all(equal(e, ends[0]) for e in ends))

    # what it costs otherwise
    loss = {}
    for skew in (0, .9):
        for H in (1, 8, 64):
            loss[skew, H] = tested(diloco(comm, batches(rank, skew), H, 256))
    if rank == 0:
        for skew, word in ((0, "alike"), (.9, "sorted")):
            print(f"    {word} data: loss {', '.join(f'{loss[skew, H]:.3f} with H = {H}' for H in (1, 8, 64))}")
    if P == 4:
        check(comm, "sorted data and 64 steps alone cost more than alike data, and more than averages in each step",
              loss[.9, 64] > loss[0, 64] and loss[.9, 64] > loss[.9, 1])
    outer = [tested(diloco(comm, batches(rank, 0), 8, 256, rate, (.7, .9))) for rate in (.3, 1.)]
    plain = [tested(diloco(comm, batches(rank, 0), 1, 256, rate)) for rate in (.3, 1., 2.)]
    if rank == 0:
        print(f"    outer step of 8: {outer[0]:.3f} and {outer[1]:.3f} at rates 0.3 and 1; average each step: "
              f"{', '.join(f'{v:.3f}' for v in plain)} at 0.3, 1 and 2")
    if P == 4:
        check(comm, "at rate 0.3 the outer step wins; a larger rate of plain averages takes two thirds of that, or more",
              outer[0] < plain[0] and min(plain) - min(outer) < (plain[0] - outer[0])/3)

    # a slow link
    if P > 1:
        took = {}
        for H in (1, 8):
            comm.barrier()
            start = time.monotonic()
            diloco(comm, batches(rank, 0), H, 64, link=Link(40*size*FP64))       # forty messages in a second
            took[H] = summed(torch.tensor(time.monotonic() - start)).item()/P
        check(comm, "over a slow link 64 steps with H = 8 end before 64 with H = 1", took[8] < took[1])


if __name__ == "__main__":
    lab(main)
