"""FSDP2 and three micro-batches: how often it gathers and scatters, with resharding after the forward pass and without.

    torchrun --standalone --nproc-per-node=4 labs/recipes/20_fsdp.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.profiler import profile

U, M = 6, 3                                     # units, micro-batches


def collectives(reshard, hold=False):
    """Calls in one step, by name."""
    # hybrid: a mesh ("cuda", (8, 8)), first replicate, then shard
    # the library
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    net = nn.Sequential(*[nn.TransformerEncoderLayer(64, 4, 128)
                          for _ in range(U)])
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                reduce_dtype=torch.float32)
    for unit in [*net, net]:        # blocks first, then the rest
        fully_shard(unit, mesh=mesh, mp_policy=half,
                    reshard_after_forward=reshard)
    # end
    with profile() as seen:
        for j in range(M):
            net.set_requires_gradient_sync(not hold or j == M - 1)
            net.set_reshard_after_backward(not hold or j == M - 1)
            net(torch.randn(8, 4, 64)).sum().backward()
    calls = {e.key: e.count for e in seen.key_averages()}
    return calls["c10d::_allgather_base_"], calls["c10d::_reduce_scatter_base_"]


dist.init_process_group("gloo")
assert collectives(True) == (2*U*M, U*M)        # ZeRO-3: m (2 b_w + b_g)
assert collectives(False) == (U*M, U*M)         # weights kept until the backward pass
assert collectives(False, hold=True) == (U, U)  # weights and gradients kept over micro-batches
if dist.get_rank() == 0:
    print(f"{U} units, {M} micro-batches: {2*U*M}, {U*M} and {U} gathers; {U*M}, {U*M} and {U} scatters")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
