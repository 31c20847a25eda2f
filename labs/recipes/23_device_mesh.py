"""A mesh of two axes, and two ways from terms on all ranks to copies: axis by axis, and the shortest.

    torchrun --standalone --nproc-per-node=4 labs/recipes/23_device_mesh.py
"""
import os
import logging

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode

logging.disable(logging.WARNING)                # PyTorch warns of the first way, and is right


def calls(seen):
    """How often each collective was called, by its name."""
    return {str(op).partition(".")[2]: n for op, n in seen.get_comm_counts().items()}


def ways(local):
    # the library
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("node", "gpu"))
    terms = DTensor.from_local(local, mesh, [Partial(), Partial()])
    with CommDebugMode() as plain:
        one = terms.redistribute(mesh, [Replicate(), Replicate()])
    with CommDebugMode() as short:
        two = terms.redistribute(mesh, [Partial(), Shard(0)])
        two = two.redistribute(mesh, [Replicate(), Shard(0)])
        two = two.redistribute(mesh, [Replicate(), Replicate()])
    # end
    return one.to_local(), two.to_local(), calls(plain), calls(short)


dist.init_process_group("gloo")
local = torch.randn(8, 6, generator=torch.Generator().manual_seed(dist.get_rank())).double()
one, two, plain, short = ways(local)
dist.all_reduce(local)
assert torch.allclose(one, local) and torch.allclose(two, local)
assert plain == {"all_reduce": 2}, plain
assert short == {"reduce_scatter_tensor": 1, "all_reduce": 1, "all_gather_into_tensor": 1}, short
if dist.get_rank() == 0:
    print("2 all-reduces of everything, or a reduce-scatter, an all-reduce of half and an all-gather: the same copies")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
