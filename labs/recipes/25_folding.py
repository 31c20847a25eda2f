"""Two meshes over the same processes: a router's gradient over all of them, an expert's over the copies of the expert.

    torchrun --standalone --nproc-per-node=4 labs/recipes/25_folding.py

Each process has four tokens and one of two experts; expert and router are one number each, so that the sums can be checked.
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

E = 2                                            # experts, and ranks that share them


def main():
    dist.init_process_group("gloo")
    world, rank = dist.get_world_size(), dist.get_rank()
    assert world % E == 0 and world > E, "torchrun --nproc-per-node=4"
    every = torch.arange(4*world, dtype=torch.float64) + 1            # all tokens; the first half of four go to expert 0
    tokens, came = every[4*rank:4*rank + 4].clone(), torch.empty(4, dtype=torch.float64)
    # the library
    dense = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    sparse = init_device_mesh("cpu", (world//E, E),
                              mesh_dim_names=("edp", "ep"))
    dist.all_to_all_single(came, tokens, group=sparse.get_group("ep"))
    router, expert = tokens.sum(), came.sum()    # gradients so far
    dist.all_reduce(router, group=dense.get_group("dp"))
    dist.all_reduce(expert, group=sparse.get_group("edp"))
    # end
    mine = every.reshape(world, E, 4//E)[:, rank % E].sum()
    assert router == every.sum() and expert == mine
    wrong = came.sum()
    dist.all_reduce(wrong, group=dense.get_group("dp"))               # mixes the experts
    assert wrong == every.sum() != mine
    groups = [dist.get_process_group_ranks(sparse.get_group(name)) for name in ("ep", "edp")]
    assert groups == [list(range(rank//E*E, rank//E*E + E)), list(range(rank % E, world, E))]
    if rank == 0:
        print(f"{world} processes: a router's gradient is a sum over {world}, an expert's over {world//E}")
    dist.destroy_process_group()
    os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort


if __name__ == "__main__":
    main()
