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


def fit(sizes, times, weights):
    """Latency and bandwidth of the line with the least squares of errors, each times its weight."""
    (alpha, slope), *_ = np.linalg.lstsq(np.column_stack([weights, sizes*weights]), times*weights, rcond=None)
    return alpha, 1/slope


# shown in the chapter
sizes = 4.0**np.arange(3, 16 if gpus else 13)    # to 1 GiB or 16 MiB
buffers = [torch.zeros(int(n)//4, device=device) for n in sizes]
times = np.array([seconds(dist.all_reduce, x) for x in buffers])
alpha, beta = fit(sizes[:8], times[:8], 1/times[:8])     # to 1 MiB
alpha_long, beta_long = fit(sizes[7:], times[7:], 1/times[7:])
small = torch.zeros(100, 250, device=device)     # 100 tensors, 1 kB
apart = seconds(lambda x: [*map(dist.all_reduce, x)], small, calls=2)
merged = seconds(dist.all_reduce, small)
# end

if dist.get_rank() == 0:
    P = dist.get_world_size()
    print(f"{P} ranks, {dist.get_backend()}, PyTorch {torch.__version__}")
    print(f"{'buffer':>14} {'time':>13} {'busbw':>12} {'the line is off':>16}")
    for i, (n, t) in enumerate(zip(sizes, times)):
        line = alpha + n/beta if i < 8 else alpha_long + n/beta_long
        print(f"{n:12,.0f} B {t*1e6:10.1f} µs {n/t*2*(P - 1)/P/1e9:7.3f} GB/s {100*(line/t - 1):+6.0f} %")
    for name, a, b in (("to 1 MiB", alpha, beta), ("from 1 MiB", alpha_long, beta_long)):
        print(f"{name}: a call {a*1e6:.1f} µs, then {b/1e9:.2f} GB/s of buffer")
    print(f"100 tensors of 1 kB: apart {apart*1e3:.1f} ms, merged {merged*1e3:.2f} ms; "
          f"a seam costs {(apart - merged)/99*1e6:.1f} µs")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
