"""Offloading in PyTorch: FSDP2 keeps weights, gradients and Adam's state on the host; activations wait there, too.

Run by `torchrun --standalone --nproc-per-node=4`: three steps against one process that offloads nothing.
"""
import os

import torch
import torch.distributed as dist
from torch.autograd.graph import save_on_cpu
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard


def offloaded(model, mesh, pin):
    # the library
    home = CPUOffloadPolicy(pin_memory=pin)
    how = dict(mesh=mesh, offload_policy=home)
    for layer in model:
        fully_shard(layer, **how)
    fully_shard(model, **how)
    weights = model.parameters()
    return torch.optim.AdamW(weights, fused=True)
    # end

def train(model, adam, x, hooks):
    for _ in range(3):
        with hooks():                              # saved tensors go to the host, and come back
            loss = model(x).square().sum()
        loss.backward()
        adam.step(), adam.zero_grad()

dist.init_process_group("gloo")
torch.manual_seed(22)                              # the same weights and data on every rank
n, pin, x = dist.get_world_size(), torch.cuda.is_available(), torch.randn(8, 32)
alone, model = (torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(4))) for _ in range(2))
model.load_state_dict(alone.state_dict())
train(alone, torch.optim.AdamW(alone.parameters()), x, torch.enable_grad)
train(model, adam := offloaded(model, init_device_mesh("cpu", (n,)), pin), x, lambda: save_on_cpu(pin_memory=pin))
for p, want in zip(model.parameters(), alone.parameters(), strict=True):
    assert torch.allclose(p.full_tensor(), want, rtol=0, atol=1e-6), "the weights of one process"
    assert all(v.device.type == "cpu" and v.to_local().numel()*n == v.numel() for v in [p, *adam.state[p].values()] if v.ndim)
print(f"rank {dist.get_rank()} of {n}: weights agree, and weights and state lie on the host, a share each")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
