"""Tensor parallelism in PyTorch: a feed-forward layer by hand, then a block by the library's plan.

    torchrun --standalone --nproc-per-node=4 labs/recipes/15_tensor_parallel.py

Both are compared with the same layer on one process, in fp64, and their collectives are counted.
"""
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.nn.functional import gelu


# f and g
class Enter(torch.autograd.Function):          # Megatron's f
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)                    # copies go in
    @staticmethod
    def backward(ctx, dx):
        return total(dx)                       # terms come back

class Leave(torch.autograd.Function):          # Megatron's g
    @staticmethod
    def forward(ctx, y):
        return total(y)                        # terms go out
    @staticmethod
    def backward(ctx, dy):
        return dy                              # copies come back

def total(x):
    x = x.clone()
    dist.all_reduce(x)
    return x

def layer(x, w1, w2):                          # my columns, my rows
    return Leave.apply(gelu(Enter.apply(x) @ w1) @ w2)
# end


class FeedForward(nn.Module):
    """What stands between a norm and a residual."""

    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(gelu(self.up(x)))


class Block(nn.Module):
    """x + ffn(norm(x)), the half of a transformer block."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm, self.ffn = nn.LayerNorm(width), FeedForward(width, inner)

    def forward(self, x):
        return x + self.ffn(self.norm(x))


def by_library(block, t):
    """Cuts the block for t ranks: the eight lines of the chapter."""
    # the library
    mesh, tokens = init_device_mesh("cpu", (t,)), Shard(1)
    plan = {"norm": SequenceParallel(),        # (batch, tokens, width)
            "ffn": PrepareModuleInput(
                input_layouts=tokens, desired_input_layouts=Replicate()),
            "ffn.up": ColwiseParallel(),
            "ffn.down": RowwiseParallel(output_layouts=tokens)}
    parallelize_module(block, mesh, plan)
    # end


def by_hand(t, r):
    """Output and gradients of `layer` against one process; without f the gradient of x is a term."""
    x, w1, w2 = (torch.randn(s).requires_grad_() for s in ((6, 8), (8, 32), (32, 8)))
    whole = gelu(x @ w1) @ w2
    want = torch.autograd.grad(whole.square().sum(), (x, w1, w2))
    parts = w1.chunk(t, 1)[r].detach().requires_grad_(), w2.chunk(t, 0)[r].detach().requires_grad_()
    for f, right in ((Enter.apply, True), (lambda x: x, False)):
        y = Leave.apply(gelu(f(x) @ parts[0]) @ parts[1])
        dx, dw1, dw2 = torch.autograd.grad(y.square().sum(), (x, *parts))
        assert torch.allclose(y, whole), "the output"
        assert torch.allclose(dw1, want[1].chunk(t, 1)[r]) and torch.allclose(dw2, want[2].chunk(t, 0)[r])
        assert torch.allclose(dx, want[0]) == right, "the gradient of x needs f"
        assert torch.allclose(total(dx), want[0]) != right, "and is a term without it"
    assert torch.allclose(layer(x, *parts), whole)


def main():
    dist.init_process_group("gloo")
    t, r = dist.get_world_size(), dist.get_rank()
    assert t > 1, "tensor parallelism needs two processes or more: torchrun --nproc-per-node=4"
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(15)                      # the same weights and data on every rank
    by_hand(t, r)

    alone = Block(8, 32)
    x = torch.randn(2, 3*t, 8)
    want = alone(x)
    want.square().sum().backward()
    block = copy.deepcopy(alone)
    by_library(block, t)
    mine = x.chunk(t, 1)[r].clone().requires_grad_()   # some of the tokens
    with CommDebugMode() as seen:
        y = block(mine)
        y.square().sum().backward()
    assert torch.allclose(y, want.chunk(t, 1)[r]), "the output"
    grads = dict(alone.named_parameters())
    for name, p in block.named_parameters():
        assert isinstance(p.grad, DTensor)
        if name.startswith("norm"):
            assert p.grad.placements[0].is_partial(), "a norm's gradient is a term until it is summed"
        assert torch.allclose(p.grad.full_tensor(), grads[name].grad), name
    counts = {str(k).split(".")[-1]: n for k, n in seen.get_comm_counts().items()}
    assert counts == {"all_gather_into_tensor": 2, "reduce_scatter_tensor": 2}, counts
    if r == 0:
        print(f"{t} processes: output and gradients agree; forward and backward each one all-gather, one reduce-scatter")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
