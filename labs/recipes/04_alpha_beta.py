"""Measure the latency and the bandwidth of an all-reduce, and what it saves to merge a hundred of them.

    torchrun --standalone --nproc-per-node=4 labs/recipes/04_alpha_beta.py

It runs on gloo, or on NCCL where every process has a GPU, for a few seconds.  Chapter 4 explains the fit.
"""
import os
import time

import numpy as np
import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", rank) if gpus else torch.device("cpu")
if gpus:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if gpus else "gloo")


def seconds(program, x, calls=20):
    """Time of program(x), the mean of 20 calls after 3 that are not timed."""
    for _ in range(3):
        program(x)
    dist.barrier()
    if gpus:
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        program(x)
    if gpus:
        torch.cuda.synchronize()
    return (time.perf_counter() - start)/calls


# shown in the chapter
sizes = 4.0**np.arange(3, 12)                     # 64 B to 4 MiB
buffers = [torch.zeros(int(n)//4, device=device) for n in sizes]
times = np.array([seconds(dist.all_reduce, x) for x in buffers])
weighted = np.column_stack([1/times, sizes/times])
alpha, slope = np.linalg.lstsq(weighted, np.ones(9))[0]
small = torch.zeros(100, 250, device=device)      # 100 tensors, 1 kB
apart = seconds(lambda x: [*map(dist.all_reduce, x)], small, 2)
merged = seconds(dist.all_reduce, small)
# end

if dist.get_rank() == 0:
    print(f"{dist.get_world_size()} ranks, {dist.get_backend()}, PyTorch {torch.__version__}")
    for n, t in zip(sizes, times):
        print(f"{n:12,.0f} B {t*1e6:10.1f} µs {100*((alpha + slope*n)/t - 1):+6.0f} %")
    print(f"a call {alpha*1e6:.1f} µs, then {1e-9/slope:.2f} GB/s: half of the rate at {alpha/slope/1e3:,.0f} kB")
    print(f"100 tensors of 1 kB: apart {apart*1e3:.1f} ms, merged {merged*1e3:.2f} ms; "
          f"a seam costs {(apart - merged)/99*1e6:.1f} µs")
dist.destroy_process_group()
