"""Context parallelism in PyTorch: tokens dealt out in zigzag, keys and values gathered, a mask of true positions.

    torchrun --standalone --nproc-per-node=4 labs/recipes/17_context.py

Output and gradients are compared with one process, in fp64, the pairs of each rank are counted, and the order is that in
which PyTorch's own `context_parallel` deals out. All names are public; that one is a prototype in 2.13.
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.functional import embedding, scaled_dot_product_attention

S, HEADS, DIM, WORDS = 32, 2, 4, 11


def split(x):
    """(b, s, heads·d) as (b, heads, s, d)."""
    return x.unflatten(-1, (HEADS, DIM)).transpose(1, 2)


def zigzag(S, P):
    """All positions, rank by rank: rank r has the half-chunks r and 2P - 1 - r of 2P."""
    half = torch.arange(S).chunk(2*P)
    return torch.cat([half[i] for r in range(P) for i in (r, -1 - r)])


def main():
    dist.init_process_group("gloo")
    world, rank = dist.get_world_size(), dist.get_rank()
    mesh = init_device_mesh("cpu", (world,))
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(17)                      # the same weights and tokens on every rank
    tokens = torch.randint(WORDS, (2, S))
    table, w = (torch.randn(s).requires_grad_() for s in ((WORDS, HEADS*DIM), (3, HEADS*DIM, HEADS*DIM)))
    places = torch.randn(S, HEADS*DIM)         # what a position adds
    x = embedding(tokens, table) + places
    q, k, v = (split(x @ m) for m in w)
    whole = scaled_dot_product_attention(q, k, v, is_causal=True)
    want = torch.autograd.grad(whole.square().sum(), (table, w))

    # the library
    order = zigzag(S, world)
    mine = order.chunk(world)[rank]            # my positions
    x = embedding(tokens[:, mine], table) + places[mine]
    q, k, v = (split(x @ m) for m in w)
    k, v = (DTensor.from_local(t, mesh, [Shard(2)]) for t in (k, v))
    k, v = (t.full_tensor(grad_placements=[Partial()]) for t in (k, v))
    seen = mine[:, None] >= order              # by true positions
    y = scaled_dot_product_attention(q, k, v, attn_mask=seen)
    # end
    assert torch.allclose(y, whole[:, :, mine]), "the output"
    grads = torch.autograd.grad(y.square().sum(), (table, w))
    for g, right in zip(grads, want):
        assert not torch.allclose(g, right), "a rank has its tokens' part of a weight's gradient"
        dist.all_reduce(g)
        assert torch.allclose(g, right), "and the parts add up"
    wrong, = torch.autograd.grad(DTensor.from_local(x, mesh, [Shard(1)]).full_tensor()[:, 0].sum(), x)
    right, = torch.autograd.grad(DTensor.from_local(x, mesh, [Shard(1)]).full_tensor(grad_placements=[Partial()])[:, 0].sum(), x)
    assert torch.allclose(right, world*wrong), "without Partial the gradients of the other ranks are lost"
    at = torch.arange(S)
    with context_parallel(mesh, buffers=[at], buffer_seq_dims=[0]):
        assert at.equal(mine), "PyTorch deals out in the same order"
        assert torch.nn.functional.scaled_dot_product_attention is not scaled_dot_product_attention, "and replaces one name"
    local = torch.arange(len(mine))
    blind = scaled_dot_product_attention(q, k, v, attn_mask=local[:, None] >= torch.arange(S))
    assert not torch.allclose(blind, whole[:, :, mine]), "positions counted from zero are wrong"
    pairs = seen.sum()
    every = [torch.empty_like(pairs) for _ in range(world)]
    dist.all_gather(every, pairs)
    assert len({int(n) for n in every}) == 1, "zigzag is balanced"
    if rank == 0:
        print(f"{world} processes: output and gradients agree; {int(pairs)} pairs on each rank")
    dist.destroy_process_group()
    os._exit(0)                                # at once: gloo's threads may outlive Python, and abort


if __name__ == "__main__":
    main()
