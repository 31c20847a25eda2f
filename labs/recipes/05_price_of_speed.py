"""Measure P_0: the same batch on 1, 2 and 4 processes, and a straight line through the device-seconds of a step.

    torchrun --standalone --nproc-per-node=4 labs/recipes/05_price_of_speed.py

It runs on gloo for a few seconds.  Processes that share cores wait for each other, so P_0 is small on a laptop.
"""
import os
import time

import numpy as np
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(5)
net = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
batch = torch.randn(8192, 256)
sizes = [p for p in (1, 2, 4, 8) if p <= world]
groups = {p: dist.new_group(list(range(p))) for p in sizes}      # every rank takes part in making each


def gradient(P):
    """The gradient of the whole batch: each of P processes takes its rows, then all of them sum."""
    rows = batch[rank::P]
    grads = torch.autograd.grad(net(rows).square().sum(), list(net.parameters()))
    flat = torch.cat([g.flatten() for g in grads])
    if P > 1:
        dist.all_reduce(flat, group=groups[P])
    return flat


def seconds(P, steps=10):
    gradient(P)                                                   # warm-up
    dist.barrier(groups[P])
    start = time.perf_counter()
    for _ in range(steps):
        gradient(P)
    dist.barrier(groups[P])
    return (time.perf_counter() - start)/steps


took = {}
whole = torch.cat([g.flatten() for g in torch.autograd.grad(net(batch).square().sum(), list(net.parameters()))])
for p in sizes:
    if rank < p:
        assert torch.allclose(gradient(p), whole, rtol=1e-3, atol=1e-2*float(whole.abs().max())), "the same gradient"
        took[p] = seconds(p)
    dist.barrier()

if rank == 0 and world > 1:
    # shown in the chapter
    P = np.array(sorted(took))               # 1, 2, 4 processes
    step = np.array([took[p] for p in P])    # seconds, same batch
    pause, work = np.polyfit(P, P*step, 1)   # device-seconds: a line
    print(f"work {work*1e3:.1f} ms, pause {pause*1e3:.1f} ms a step")
    if 0 < pause and 0 < work:
        print(f"P_0 = {work/pause:.1f} processes")
    # end
    for p in P:
        print(f"{p} processes: {took[p]*1e3:.1f} ms a step, {p*took[p]*1e3:.1f} device-ms, "
              f"the line says {(work + p*pause)*1e3:.1f}")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
