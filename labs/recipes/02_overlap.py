"""How much of the gradients' sum hides behind the backward pass: a step, the step without sums, the sums alone.

    torchrun --standalone --nproc-per-node=4 labs/recipes/02_overlap.py

It runs on gloo, or on NCCL where every process has a GPU.  Times are printed, not checked.  Chapter 2 explains them.
"""
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", rank) if gpus else torch.device("cpu")
if gpus:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if gpus else "gloo")
torch.manual_seed(0)
width, layers, tokens = (8192, 12, 8192) if gpus else (256, 6, 512)
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)]).to(device)
inputs = torch.randn(tokens, width, device=device) + dist.get_rank()


def step(net):
    net.zero_grad()
    net(inputs).square().mean().backward()


def seconds(program, times=10):
    """Time of program(), the mean of ten calls after three that are not timed."""
    for k in range(3 + times):
        if k == 3:
            if gpus:
                torch.cuda.synchronize()
            dist.barrier()
            start = time.perf_counter()
        program()
    if gpus:
        torch.cuda.synchronize()
    return (time.perf_counter() - start)/times


def alike(net):
    """Whether all ranks have the same gradient."""
    mine = torch.stack([p.grad.abs().sum() for p in net.parameters()])
    low, high = mine.clone(), mine.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return torch.allclose(low, high, rtol=1e-5)


def measure():
    # the library
    net = DistributedDataParallel(model, bucket_cap_mb=25)
    both = seconds(lambda: step(net))      # sums leave in buckets
    with net.no_sync():
        passes = seconds(lambda: step(net))       # nothing is sent
    grads = [torch.zeros_like(p) for p in net.parameters()]
    sums = seconds(lambda: [*map(dist.all_reduce, grads)])
    hidden = 1 - (both - passes)/sums
    # end
    step(net)
    assert alike(net)                      # with sums all ranks hold one gradient
    with net.no_sync():
        step(net)
    assert not alike(net)                  # without, each its own: nothing was sent
    return f"step {both*1e3:.1f} ms, passes {passes*1e3:.1f} ms, sums {sums*1e3:.1f} ms: {hidden:.0%} of the sums hide"


said = measure()
if dist.get_rank() == 0:
    print(said)
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
