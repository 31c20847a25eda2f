"""A windowed sequence on four processes: the end of each chunk goes to the next rank, grouped heads are not copied.

    torchrun --standalone --nproc-per-node=4 labs/recipes/31a_halo.py

The output is compared with one process's, in fp64; without the halo it is wrong.
"""
import os

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention

S, HEADS, GROUPS, DIM, W = 32, 8, 2, 4, 6


def sees(q_at, k_at):
    """A query's own key and the W - 1 before it; places before the sequence are no keys."""
    return (k_at >= 0) & (k_at <= q_at[:, None]) & (k_at > q_at[:, None] - W)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(31)                      # the same on every rank
    q, kv, at = torch.randn(1, HEADS, S, DIM), torch.randn(2, 1, GROUPS, S, DIM), torch.arange(S)
    copied = (x.repeat_interleave(HEADS//GROUPS, 1) for x in kv)
    whole = scaled_dot_product_attention(q, *copied, attn_mask=sees(at, at))
    mine = at.chunk(world)[rank]               # my places
    q, own, halo = q[:, :, mine], kv[..., mine, :], torch.zeros(2, 1, GROUPS, W - 1, DIM)
    tail, seen = own[..., 1 - W:, :].contiguous(), sees(mine, torch.arange(mine[0] - W + 1, mine[-1] + 1))

    # the library
    send = dist.P2POp(dist.isend, tail, (rank + 1) % world)
    take = dist.P2POp(dist.irecv, halo, (rank - 1) % world)
    for request in dist.batch_isend_irecv([send, take]):
        request.wait()
    k, v = torch.cat([halo, own], -2)
    y = scaled_dot_product_attention(q, k, v, attn_mask=seen,
                                     enable_gqa=True)
    # end
    assert torch.allclose(y, whole[:, :, mine]), "the output"
    alone = scaled_dot_product_attention(q, *own, attn_mask=sees(mine, mine), enable_gqa=True)
    assert rank == 0 or not torch.allclose(alone, whole[:, :, mine]), "without the halo it is wrong"
    if rank == 0:
        print(f"{world} processes, {GROUPS} key-value heads for {HEADS}: the output is one process's; "
              f"{tail.numel()*tail.element_size()} bytes sent by each, {own.numel()*own.element_size()*(world - 1)} by a gather")
    dist.destroy_process_group()
    os._exit(0)                                # at once: gloo's threads may outlive Python, and abort


if __name__ == "__main__":
    main()
