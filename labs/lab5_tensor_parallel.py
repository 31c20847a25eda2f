"""Lab 5. Tensor parallelism: one transformer block on all ranks, alone and with sequence parallelism.

    torchrun --standalone --nproc-per-node=4 labs/lab5_tensor_parallel.py

The block is plain PyTorch; `parallelize_module` splits it. Its output and every gradient are compared with the block on
one process, in fp64, its collectives and their bytes with the formulas.

Before you look (chapter 15): two sequences of 24 tokens, 32 numbers of eight bytes a token, one block cut over four ranks. How
many bytes does a rank send in a forward and a backward pass?

Break it: the plan forgets one layer, `ffn.down`, which stays whole on every rank.
"""
import copy

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.nn.functional import scaled_dot_product_attention, silu

from capacity import tensor_parallel_bytes
from counting import Count
from asking import answer, broken
from processes import check, equal, lab, summed

BATCH, HEAD, FP64 = 2, 4, 8
NORMS = "attention_norm", "ffn_norm"


class Attention(nn.Module):
    """Causal attention, two query heads to a key-value head. A rank that has some of the heads runs the same lines."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.q, self.o = linear(hidden, heads*HEAD), linear(heads*HEAD, hidden)
        self.k, self.v = linear(hidden, heads//2*HEAD), linear(hidden, heads//2*HEAD)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate, self.up, self.down = linear(hidden, ffn), linear(hidden, ffn), linear(ffn, hidden)

    def forward(self, x):
        return self.down(silu(self.gate(x))*self.up(x))


class Block(nn.Module):
    def __init__(self, P):
        super().__init__()
        hidden = 8*P
        self.attention_norm, self.attention = nn.RMSNorm(hidden, eps=1e-6), Attention(hidden, 2*P)
        self.ffn_norm, self.ffn = nn.RMSNorm(hidden, eps=1e-6), SwiGLU(hidden, 12*P)
        for name in NORMS:
            nn.init.normal_(self.get_submodule(name).weight, mean=1, std=0.1)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


COLUMNS_THEN_ROWS = {"attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(),
                     "attention.v": ColwiseParallel(), "attention.o": RowwiseParallel(),
                     "ffn.gate": ColwiseParallel(), "ffn.up": ColwiseParallel(), "ffn.down": RowwiseParallel()}


def enter(placement):
    """Megatron's f: x becomes one replicated tensor, however many layers read it inside."""
    return PrepareModuleInput(input_layouts=placement, desired_input_layouts=Replicate())


LEAVE = RowwiseParallel(output_layouts=Shard(1))
TENSOR = {"attention": enter(Replicate()), "ffn": enter(Replicate()), **COLUMNS_THEN_ROWS}
SEQUENCE = {"attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel(),
            "attention": enter(Shard(1)), "ffn": enter(Shard(1)), **COLUMNS_THEN_ROWS,
            "attention.o": LEAVE, "ffn.down": LEAVE}


def run(block, x, dy):
    """Output, gradient of x, and the collectives of the two passes."""
    x = x.detach().clone().requires_grad_()
    with Count() as forward:
        y = block(x)
    with Count() as backward:
        y.backward(dy)
    return y.detach(), x.grad, forward, backward


def gradients(block):
    """name -> gradient, whole: parts are gathered, partial sums are added up."""
    return {name: getattr(p.grad, "full_tensor", lambda g=p.grad: g)() for name, p in block.named_parameters()}


def main(comm):
    P = comm.size
    mesh, length, hidden = init_device_mesh(comm.device.type, (P,)), 6*P, 8*P
    torch.manual_seed(0)
    serial = Block(P).double().to(comm.device)
    x, dy = torch.randn(2, BATCH, length, hidden, dtype=torch.float64).to(comm.device)
    y, dx, _, _ = run(serial, x, dy)
    want = gradients(serial)

    def split(plan):
        return parallelize_module(copy.deepcopy(serial), mesh,
                                  {name: way for name, way in plan.items() if not (broken() and name == "ffn.down")})

    def all_equal(block):
        got = gradients(block)
        return got.keys() == want.keys() and all(equal(got[name], want[name]) for name in want)

    nbytes = tensor_parallel_bytes(microbatch_tokens=BATCH*length, hidden=hidden, tp=P, element_bytes=FP64,
                                   all_reduces=4)
    block = split(TENSOR)
    got_y, got_dx, forward, backward = run(block, x, dy)
    check(comm, f"tensor parallelism over {P}: output and gradient of the input as in one process",
          equal(got_y, y) and equal(got_dx, dx))
    check(comm, f"all {len(want)} gradients of weights too; a rank keeps the P-th part of each matrix",
          all_equal(block) and all(P*p.to_local().numel() == p.numel() for p in block.parameters() if p.dim() == 2))
    check(comm, f"two all-reduces forward, two backward: a rank sends {nbytes:,.0f} bytes",
          all(c.calls == {("all_reduce", P): 2} and sum(c.nbytes.values()) == nbytes/2 for c in (forward, backward)))

    answer(sum(forward.nbytes.values()) + sum(backward.nbytes.values()), "bytes")
    got_y, got_dx, forward, backward = run(split(COLUMNS_THEN_ROWS), x, dy)
    check(comm, "without `enter`, q, k, v, gate and up reduce the gradient of their input each on its own: five "
                "all-reduces backward, the same result",
          equal(got_y, y) and equal(got_dx, dx) and forward.calls == {("all_reduce", P): 2} and
          backward.calls == {("all_reduce", P): 5} and sum(backward.nbytes.values()) == 5*nbytes/4)

    without_f(comm, serial.ffn, x, dy)
    sequence(comm, split(SEQUENCE), serial, x, dy, nbytes)


def without_f(comm, serial, x, dy):
    """The feed-forward layer by hand: columns, rows, and the all-reduce that follows, but none for the gradient."""
    P, r = comm.size, comm.rank
    y, dx, _, _ = run(serial, x, dy)
    part = copy.deepcopy(serial)
    for layer, dim in ((part.gate, 0), (part.up, 0), (part.down, 1)):
        layer.weight = nn.Parameter(layer.weight.detach().chunk(P, dim)[r].contiguous())
    part_y, part_dx, _, _ = run(part, x, dy)
    check(comm, "the ranks' outputs add up to the layer's, and the gradient of the input is wrong on every rank "
                "until it is summed too",
          equal(summed(part_y), y) and not equal(part_dx, dx) and equal(summed(part_dx), dx))


def sequence(comm, block, serial, x, dy, nbytes):
    """Sequence parallelism: between the layers, and in the norms, each rank has the P-th part of the positions."""
    P, r = comm.size, comm.rank
    mine = slice(r*x.shape[1]//P, (r + 1)*x.shape[1]//P)
    seen = {}

    def keep(norm, _, h):
        h.retain_grad()
        seen[norm] = h

    for name in NORMS:
        serial.get_submodule(name).register_forward_hook(keep)
    serial.zero_grad()
    y, dx, _, _ = run(serial, x, dy)
    want = gradients(serial)
    got_y, got_dx, forward, backward = run(block, x[:, mine], dy[:, mine])
    check(comm, "with sequence parallelism: output and gradient of the input are this rank's positions",
          equal(got_y, y[:, mine]) and equal(got_dx, dx[:, mine]))
    check(comm, "two all-gathers and two reduce-scatters forward, two and two backward: the same bytes",
          all(c.calls == {("all_gather", P): 2, ("reduce_scatter", P): 2} and
              set(c.nbytes.values()) == {nbytes/4} for c in (forward, backward)))

    for name in NORMS:
        norm = serial.get_submodule(name)
        each = (seen[norm]/norm.weight*seen[norm].grad).detach()         # every token's part of the gradient
        local = block.get_submodule(name).weight.grad.to_local()
        check(comm, f"the gradient of {name}'s weights is wrong on every rank: it knows its positions only",
              equal(local, each[:, mine].sum((0, 1))) and not equal(local, want[f"{name}.weight"]))
    with Count() as count:
        got = gradients(block)
    check(comm, f"summed by an all-reduce each, they are right, and so are all {len(want)} gradients",
          all(equal(got[name], want[name]) for name in want) and count.calls["all_reduce", P] == len(NORMS))


if __name__ == "__main__":
    lab(main)
