"""DDP with PowerSGD and error feedback, against PowerSGD by hand over two all-reduces.

    torchrun --standalone --nproc-per-node=4 labs/recipes/28_powersgd.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SIDE, RANK, START, STEPS = 256, 4, 2, 6
dist.init_process_group("gloo")
rank, P = dist.get_rank(), dist.get_world_size()


def compressed(model):
    # the library
    from torch.distributed.algorithms.ddp_comm_hooks import (
        powerSGD_hook as power)
    net = DDP(model)
    state = power.PowerSGDState(process_group=None,
        matrix_approximation_rank=RANK, start_powerSGD_iter=START)
    net.register_comm_hook(state, power.powerSGD_hook)
    # end
    return net, state


def sample(step):
    at = torch.Generator().manual_seed(1000*step + rank)
    return torch.randn(32, SIDE, generator=at, dtype=torch.float64)


def gradient(model, x):
    """This rank's own gradient, no message."""
    return [g.detach() for g in torch.autograd.grad(model(x).square().mean(), list(model.parameters()))]


def added(x):
    dist.all_reduce(x)
    return x


torch.manual_seed(28)                           # the same weights everywhere
model = nn.Sequential(nn.Linear(SIDE, SIDE, bias=False)).double()
net, state = compressed(model)
weight, held = model[0].weight, torch.zeros(SIDE, SIDE, dtype=torch.float64)
shadow = weight.detach().clone()
for step in range(STEPS):
    own = gradient(model, sample(step))[0]
    wanted = own + held
    Q = state.q_memory_dict[0].view(SIDE, RANK).clone() if 0 in state.q_memory_dict else None
    weight.grad = None
    net(sample(step)).square().mean().backward()
    mean = added(own.clone())/P
    if step < START:
        assert torch.allclose(weight.grad, mean), "dense until the hook starts"
    else:
        got = weight.grad
        assert torch.linalg.matrix_rank(got) == RANK < torch.linalg.matrix_rank(mean)
        if Q is not None:                       # by hand, from the factor of the step before
            U = torch.linalg.qr(added(wanted @ torch.linalg.qr(Q)[0]))[0]
            ours = U @ added(wanted.T @ U).T/P
            assert torch.allclose(ours, got, atol=1e-12), "the hook is PowerSGD"
        held = wanted - got                     # what the hook holds back
        assert torch.allclose(held, state.error_dict[0].view_as(held), atol=1e-12)
    with torch.no_grad():
        weight -= .5*weight.grad
    shadow -= .5*mean                           # plain SGD with these gradients
    late = weight.detach() - .5*added(held.clone())/P
    assert torch.allclose(late, shadow, atol=1e-12), "the shadow is plain SGD"
stats = state.compression_stats()
if rank == 0:
    print(f"{P} ranks, rank {RANK} of {SIDE}: {stats[1]:,} numbers became {stats[2]:,}, {stats[0]:.0f} times fewer")
assert stats[1] == stats[0]*stats[2] and stats[0] == SIDE**2/(RANK*2*SIDE)
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
