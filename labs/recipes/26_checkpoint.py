"""PyTorch's distributed checkpoint: written beside the work by all ranks, read back by half of them, in another layout.

    torchrun --standalone --nproc-per-node=4 labs/recipes/26_checkpoint.py
"""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import async_save, load
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

# the library
def save(net, adam, folder, own):     # own = dist.new_group("gloo")
    state = dict(zip(("net", "adam"), get_state_dict(net, adam)))
    return async_save(state, checkpoint_id=folder, process_group=own)
def read(net, adam, folder, group):           # under any layout
    part = dict(zip(("net", "adam"), get_state_dict(net, adam)))
    load(part, checkpoint_id=folder, process_group=group)
    set_state_dict(net, adam, model_state_dict=part["net"],
                   optim_state_dict=part["adam"])
# end


def build(ranks, seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(*(torch.nn.Linear(24, 24) for _ in range(3)))
    fully_shard(model, mesh=ranks)
    return model, torch.optim.AdamW(model.parameters(), fused=True)


def step(model, adam):
    x = torch.linspace(-1, 1, 48).view(2, 24)                 # the same on every rank
    loss = model(x).square().mean()
    loss.backward()
    adam.step(), adam.zero_grad()
    return loss.item()


dist.init_process_group("gloo")
rank, n = dist.get_rank(), dist.get_world_size()
half = DeviceMesh("cpu", list(range(max(n//2, 1))))           # every rank takes part in making it
own = dist.new_group(backend="gloo")                       # a thread talks beside the training: not in its group
box = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(box)
model, adam = build(DeviceMesh("cpu", list(range(n))), seed=26)
for _ in range(3):
    step(model, adam)
writing = save(model, adam, box[0], own)
weights = [p.full_tensor().clone() for p in model.parameters()]
went_on = [step(model, adam) for _ in range(3)]               # beside the writing
writing.result()
dist.barrier()
if rank < len(half.mesh):
    model, adam = build(half, seed=1)                         # other weights
    read(model, adam, box[0], half.get_group())
    for p, want in zip(model.parameters(), weights, strict=True):
        assert torch.equal(p.full_tensor(), want), "the weights of the save, not of later steps"
    again = [step(model, adam) for _ in range(3)]
    assert torch.allclose(torch.tensor(again), torch.tensor(went_on), rtol=1e-6), (again, went_on)
    print(f"rank {rank} of {len(half.mesh)}: what {n} ranks saved, and the three losses that followed")
dist.barrier()
if rank == 0:
    shutil.rmtree(box[0])
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
