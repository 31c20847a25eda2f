"""A mesh of three axes: tensor parallelism inside two pipeline stages, replicas with what is left, against one process.

    torchrun --standalone --nproc-per-node=4 labs/recipes/24_three_axes.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

H, M, ROWS = 16, 4, 2                           # width, micro-batches, rows of one
PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}


def block():
    return nn.Sequential(nn.Linear(H, 4*H), nn.GELU(), nn.Linear(4*H, H))


def loss(y, goal):
    return (y - goal).square().sum()


def trained(net):
    """This rank's stage, and its gradients after one step, whole."""
    # the library
    mesh = init_device_mesh("cpu", (N//4, 2, 2),
                            mesh_dim_names=("dp", "pp", "tp"))
    p = mesh["pp"].get_local_rank()
    part = parallelize_module(net[p], mesh["tp"], PLAN)
    fully_shard(part, mesh=mesh["dp"])      # replicas share the state
    stage = PipelineStage(part, p, 2, torch.device("cpu"),
                          group=mesh["pp"].get_group())
    step = Schedule1F1B(stage, M, loss_fn=loss, scale_grads=False).step
    # end
    x, goal = (z.chunk(N//4)[mesh["dp"].get_local_rank()] for z in batch())
    step(*[x][p:], target=goal if p else None)
    return p, [w.grad.full_tensor() for w in part.parameters()]


def batch():
    torch.manual_seed(1)
    return torch.randn(2, N//4*M*ROWS, H, dtype=torch.float64)


dist.init_process_group("gloo")
N = dist.get_world_size()
torch.manual_seed(0)
net, serial = nn.Sequential(block(), block()).double(), nn.Sequential(block(), block()).double()
serial.load_state_dict(net.state_dict())
p, got = trained(net)
loss(serial(batch()[0]), batch()[1]).backward()
for g, w in zip(got, serial[p].parameters()):
    assert torch.allclose(g*(N//4), w.grad, rtol=0, atol=1e-10)       # FSDP takes the mean of the replicas' sums
if dist.get_rank() == 0:
    print(f"{N//4} x 2 x 2 processes: the gradients of one process, to 1e-10")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
