"""FSDP2 in mixed precision: fp32 weights in shares, gathered in bf16, gradients added in fp32 or, to compare, in bf16.

    torchrun --standalone --nproc-per-node=4 labs/recipes/30_precision.py
"""
import copy
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def sharded(model, mesh, sums):
    # the library
    how = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16,   # gathered
        reduce_dtype=sums)            # added
    for layer in model:
        fully_shard(layer, mesh=mesh, mp_policy=how)
    fully_shard(model, mesh=mesh, mp_policy=how)
    # end
    return model


dist.init_process_group("gloo")
rank, P = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (P,))
torch.manual_seed(30)                              # the same weights on every rank
model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
x = torch.randn(16, 64, generator=torch.Generator().manual_seed(rank))
mine = copy.deepcopy(model).bfloat16()             # what a rank computes: all in bf16
mine(x.bfloat16()).square().mean().backward()
want = []
for p in mine.parameters():                        # the mean over ranks, in 64 bits
    total = p.grad.double()
    dist.all_reduce(total)
    want.append(total/P)
wrong = {}
for sums in (torch.float32, torch.bfloat16):
    net = sharded(copy.deepcopy(model), mesh, sums)
    net(x).square().mean().backward()
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in net.parameters())      # the copy, and Adam's gradient
    wrong[sums] = max(float((p.grad.full_tensor().double() - g).norm()/g.norm()) for p, g in zip(net.parameters(), want))
if rank == 0:
    print(f"{P} ranks: error of the gradients added in fp32 {wrong[torch.float32]:.1e}, in bf16 {wrong[torch.bfloat16]:.1e}")
assert wrong[torch.float32] < 1e-5 and 1e-4 < wrong[torch.bfloat16] < 1e-2
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
