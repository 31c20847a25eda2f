"""Task 2. Cut a layer by columns and rows (chapter 15): three blanks, one forward and two backward.

    torchrun --standalone --nproc-per-node=4 labs/task2_tensor_parallel.py

y = relu(x A) B on P ranks: rank r has a P-th part of the columns of A and the same part of the rows of B, and all ranks have x.
`Enter` stands before A, `Leave` behind B. Each of the two sums over the ranks in one direction and leaves its argument alone in
the other. Fill the three lines that end in `...`, with `summed(...)` where the ranks must add; the check says what is wrong.
"""
import torch

from processes import equal, lab, summed                     # noqa: F401  summed(x): the sum of all ranks' x


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return ...                                           # BLANK 1


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return ...                                           # BLANK 2

    @staticmethod
    def backward(ctx, grad):
        return ...                                           # BLANK 3


def main(comm):
    P, r = comm.size, comm.rank
    torch.manual_seed(0)
    x, A, B = (torch.randn(*shape, dtype=torch.float64) for shape in ((5, 6), (6, 4*P), (4*P, 3)))
    dy = torch.randn(5, 3, dtype=torch.float64)
    whole = [t.clone().requires_grad_() for t in (x, A, B)]
    y = torch.relu(whole[0] @ whole[1]) @ whole[2]
    y.backward(dy)
    want = whole[0].grad, whole[1].grad.chunk(P, 1)[r], whole[2].grad.chunk(P)[r]

    mine = [t.clone().requires_grad_() for t in (x, A.chunk(P, 1)[r].contiguous(), B.chunk(P)[r].contiguous())]
    for f, way, arguments in ((Leave, "forward", [x]), (Leave, "backward", [None, x]), (Enter, "backward", [None, x])):
        value = getattr(f, way)(*([None, x] if way == "forward" else arguments))
        if value is ...:
            raise SystemExit(f"{f.__name__}.{way} is blank: it returns its argument, or the sum of all ranks' arguments")
    got = Leave.apply(torch.relu(Enter.apply(mine[0]) @ mine[1]) @ mine[2])
    got.backward(dy)
    judge(comm, "the output is", got, y, "`Leave` forward: each rank has one term of it")
    for name, t, g, hint in zip("ABx", (mine[1], mine[2], mine[0]), (want[1], want[2], want[0]),
                                ("`Leave` backward: the gradient is on every rank already",)*2 +
                                ("`Enter` backward: each rank knows what its own columns want",)):
        judge(comm, f"the gradient of {name} is", t.grad, g, hint)


def judge(comm, what, got, want, hint):
    """`ok`, or a sentence with the factor if there is one."""
    with torch.no_grad():
        right = torch.tensor([float(equal(got, want))])
        if summed(right) < comm.size:
            times = got.norm()/want.norm()
            factor = f", {float(times):.3g} times too large" if equal(got, times*want) else ""
            factors = [None]*comm.size
            torch.distributed.all_gather_object(factors, factor)
            raise SystemExit(f"not yet: {what} wrong{max(factors)}. Look at {hint}")
    if comm.rank == 0:
        print(f"ok  {what} that of one process", flush=True)


if __name__ == "__main__":
    lab(main)
