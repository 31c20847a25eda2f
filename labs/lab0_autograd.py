"""Lab 0. Two transposes of one all-reduce: chapter 11's theorem in autograd.

    torchrun --standalone --nproc-per-node=2 labs/lab0_autograd.py

The layer y = relu(x W1) W2 is cut over P ranks: columns of W1, rows of W2. Every rank computes a partial y, and an
all-reduce sums them. All weights are small integers, so gradients can be compared for equality.

Before you look (chapter 11): one loss, computed on each of four ranks, and an all-reduce backward as well as forward.
How many times too large is every gradient?

Break it: in `Copy.backward` the line `dist.all_reduce(grad)` is left out.
"""
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as differentiable

from asking import answer, broken
from processes import check, lab

IN, HIDDEN, OUT, ROWS = 3, 8, 5, 4                           # HIDDEN is that of each rank


class Sum(torch.autograd.Function):
    """B^T, from P partial sums to one vector. Its transpose B copies, and every rank has the cotangent already."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Copy(torch.autograd.Function):
    """B, from one vector to P copies, which costs nothing. Its transpose B^T sums the cotangents of the copies."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        if not broken():
            dist.all_reduce(grad)
        return grad


def integers(*shape, seed):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).double()


def loss(y, r):
    """The loss of rank r: every rank wants something else."""
    return (y*integers(*y.shape, seed=100 + r)).sum()


def gradients(total, *leaves):
    return torch.autograd.grad(total, leaves)


def main(comm):
    P, r = comm.size, comm.rank
    x, w1, w2 = integers(ROWS, IN, seed=1), integers(IN, P*HIDDEN, seed=2), integers(P*HIDDEN, OUT, seed=3)
    x, w1, w2 = (t.to(comm.device).requires_grad_() for t in (x, w1, w2))
    mine = slice(r*HIDDEN, (r + 1)*HIDDEN)
    up, down = (t.detach().clone().requires_grad_() for t in (w1[:, mine], w2[mine]))

    def serial(total):
        """What one device computes: gradients of x, of this rank's columns of W1 and of its rows of W2."""
        gx, g1, g2 = gradients(total(torch.relu(x @ w1) @ w2), x, w1, w2)
        return gx, g1[:, mine], g2[mine]

    def parallel(enter, leave, total):
        return gradients(total(leave(torch.relu(enter(x) @ up) @ down)), x, up, down)

    def everywhere(t):
        """PyTorch's own: all-reduce forward and backward."""
        return differentiable.all_reduce(t, "sum", dist.group.WORLD)

    def equal(got, want, factor=1):
        return all(torch.equal(a, factor*b) for a, b in zip(got, want)) and all(b.any() for b in want)

    one = serial(lambda y: loss(y.cpu(), 0))
    got = parallel(Copy.apply, Sum.apply, lambda y: loss(y.cpu(), 0))
    check(comm, "one loss, computed on every rank: all-reduce forward, identity backward is right", equal(got, one))

    got = parallel(Copy.apply, everywhere, lambda y: loss(y.cpu(), 0))
    check(comm, f"the same loss, all-reduce forward and backward: every gradient is {P} times too large",
          equal(got, one, P))
    answer(got[0].abs().sum()/one[0].abs().sum(), "times")

    each = serial(lambda y: sum(loss(y.cpu(), q) for q in range(P)))
    got = parallel(Copy.apply, everywhere, lambda y: loss(y.cpu(), r))
    check(comm, "the sum of P losses, one on each rank: all-reduce forward and backward is right", equal(got, each))

    got = parallel(Copy.apply, Sum.apply, lambda y: loss(y.cpu(), r))
    check(comm, "the same losses, identity backward: wrong, each rank forgets the losses of the others",
          P == 1 or not equal(got, each))


if __name__ == "__main__":
    lab(main)
