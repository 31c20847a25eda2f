"""Tensor parallelism in PyTorch: a feed-forward layer by hand, then a model by the library's plan.

    torchrun --standalone --nproc-per-node=4 labs/recipes/15_tensor_parallel.py

Both are compared with one process, in fp64, and the collectives of the second are counted.  On NCCL where every process
has a GPU, else on gloo.
"""
import copy
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.nn.functional import gelu, scaled_dot_product_attention, silu


# f and g
class Enter(torch.autograd.Function):          # Megatron's f
    @staticmethod
    def forward(ctx, copies):
        return copies.view_as(copies)
    @staticmethod
    def backward(ctx, terms):
        return total(terms)

class Leave(torch.autograd.Function):          # Megatron's g
    @staticmethod
    def forward(ctx, terms):
        return total(terms)
    @staticmethod
    def backward(ctx, copies):
        return copies

def total(x):
    x = x.clone()
    dist.all_reduce(x)
    return x

def layer(x, w1, w2):                          # my columns, my rows
    return Leave.apply(gelu(Enter.apply(x) @ w1) @ w2)
# end


class Attention(nn.Module):
    """Causal attention with grouped queries; how many heads it has, the widths of what it holds say."""

    def __init__(self, width, head, kv):
        super().__init__()
        self.head, line = head, lambda a, b: nn.Linear(a, b, bias=False)
        self.wq, self.wk, self.wv, self.wo = line(width, width), line(width, kv*head), line(width, kv*head), line(width, width)

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """The gated layer of Llama."""

    def __init__(self, width, inner):
        super().__init__()
        self.w1, self.w3 = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.w2(silu(self.w1(x))*self.w3(x))


class Block(nn.Module):
    """A transformer block, with the names of Llama's published code."""

    def __init__(self, width, head, kv, inner):
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(width), Attention(width, head, kv)
        self.ffn_norm, self.feed_forward = nn.RMSNorm(width), FeedForward(width, inner)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Model(nn.Module):
    """Embedding, one block, norm and output head."""

    def __init__(self, words, width, **shape):
        super().__init__()
        self.tok_embeddings, self.block = nn.Embedding(words, width), Block(width, **shape)
        self.norm, self.output = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        return self.output(self.norm(self.block(self.tok_embeddings(tokens))))


def cut_block(block, mesh):
    """Cuts a block over the ranks of a mesh: the lines of the chapter."""
    # the library
    Col, tokens = ColwiseParallel, Shard(1)    # (batch, tokens, width)
    row = RowwiseParallel(output_layouts=tokens)
    gather = PrepareModuleInput(input_layouts=tokens,
                                desired_input_layouts=Replicate())
    parallelize_module(block, mesh["tp"], {
        "*_norm": SequenceParallel(), "attention": gather,
        "attention.w[qkv]": Col(), "attention.wo": row,
        "feed_forward": gather, "feed_forward.w[13]": Col(),
        "feed_forward.w2": row})
    # end


def cut_ends(model, mesh):
    """Cuts the embedding and the head by words; the logits stay parts, as `loss_parallel` takes them."""
    parallelize_module(model, mesh["tp"], {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1))})


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
    ranks, here = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    kind = "cuda" if gpus else "cpu"
    if gpus:
        torch.cuda.set_device(here)
    dist.init_process_group("nccl" if gpus else "gloo")
    assert ranks % 2 == 0 and ranks > 2, "two replicas of two ranks or more: torchrun --nproc-per-node=4"
    t = ranks//2
    mesh = init_device_mesh(kind, (2, t), mesh_dim_names=("dp", "tp"))
    torch.set_default_device(kind)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(15)                      # the same weights and data on every rank
    by_hand(ranks, dist.get_rank())

    r = mesh["tp"].get_local_rank()
    alone = Model(8*t, width=8*t, head=4, kv=t, inner=16*t)
    tokens = torch.randint(8*t, (2, 3*t))
    want = alone(tokens)
    want.square().sum().backward()
    model = copy.deepcopy(alone)
    cut_block(model.block, mesh)
    cut_ends(model, mesh)
    with CommDebugMode() as forward:
        y = model(tokens)
    with CommDebugMode() as backward:
        y.square().sum().backward()            # of the rank's own words
    assert torch.allclose(y, want.chunk(t, -1)[r]), "the logits"
    grads = dict(alone.named_parameters())
    for name, p in model.named_parameters():
        assert isinstance(p.grad, DTensor)
        if "norm" in name:
            assert p.grad.placements[0].is_partial(), "a norm's gradient is a term until it is summed"
        assert torch.allclose(p.grad.full_tensor(), grads[name].grad), name
    counts = [{str(k).split(".")[-1]: n for k, n in seen.get_comm_counts().items()} for seen in (forward, backward)]
    each = {"all_gather_into_tensor": 3, "reduce_scatter_tensor": 3}       # two of the block, one of the ends
    assert counts == [each, each], counts
    if dist.get_rank() == 0:
        print(f"{ranks} processes: logits and gradients agree; a block sends two all-gathers and two reduce-scatters each way")
    dist.destroy_process_group()
    os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort


if __name__ == "__main__":
    main()
