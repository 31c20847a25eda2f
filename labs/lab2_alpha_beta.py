"""Lab 2. alpha and beta of this machine, and what they predict.

    torchrun --standalone --nproc-per-node=4 labs/lab2_alpha_beta.py
    torchrun --standalone --nproc-per-node=4 labs/lab2_alpha_beta.py --record labs/recorded/mine.json

Two ways to measure one message of b bytes: a ping-pong of two ranks while the others wait, and one round of a ring in
which all ranks send at once. Each gives an alpha and a beta, and these the time of the ring all-reduce of P b bytes,
which is 2 (P - 1) such messages. The checks are about results and bytes; times are printed, never judged.

Before you look (chapter 4): rank 0 sends 64 bytes to rank 1 on this machine and gets them back. How many microseconds is half
of that, at best?

Break it: in `library` the buffer of the all-reduce is one block, `whole = block.clone()`.
"""
import argparse
import datetime
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from capacity import ring_all_reduce_time, show, us
from capacity.witness.collectives import ring_all_reduce
from fit import fit
from asking import answer, broken
from processes import check, lab

SIZES = 4**np.arange(3, 12)                                  # bytes of one message: 64 B to 4 MiB
TURNS = 4                                                    # operations between two looks at the clock


def ping_pong(comm, block):
    """Half a round trip between ranks 0 and 1."""
    if comm.rank == 0:
        comm.send(block, 1)
        comm.recv(1, like=block)
    elif comm.rank == 1:
        comm.send(comm.recv(0, like=block), 0)


def shift(comm, block):
    """One message from every rank to the next, all at once."""
    comm.sendrecv(block, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size, like=block)


def ring(comm, block):
    return ring_all_reduce(comm, [block]*comm.size)


def library(comm, block):
    whole = block.clone() if broken() else block.repeat(comm.size)
    dist.all_reduce(whole)
    return whole


def seconds(operation, comm, nbytes):
    """Time of one operation: the mean of TURNS one after the other, on this rank."""
    block = torch.ones(int(nbytes)//4, device=comm.device)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(TURNS):
        operation(comm, block)
    if comm.device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start)/TURNS/(2 if operation is ping_pong else 1)


def measure(comm, repetitions):
    """{operation: {"least": times by size, "median": times by size}}, of the slowest rank.

    Repetitions are the outer loop, so that a busy moment of the machine spoils one of each and not all of one.
    """
    operations = ping_pong, shift, ring, library
    times = torch.tensor([[[seconds(operation, comm, n) for n in SIZES] for operation in operations]
                          for _ in range(repetitions)], dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    least, median = times.amin(0).tolist(), times.median(0).values.tolist()
    return {f.__name__: {"least": a, "median": b} for f, a, b in zip(operations, least, median)}


def right(comm, n):
    """Of one size: the ring's sum is that of dist.all_reduce, and its bytes are the formula's."""
    block = torch.arange(int(n)//4, device=comm.device) % 97. + comm.rank
    before, P = len(comm.log), comm.size
    equal = torch.equal(torch.cat(ring(comm, block)), library(comm, block))
    return equal and sum(b for _, b in comm.log[before:]) == ring_all_reduce_time(n=P*int(n), P=P, alpha=0, beta=1)


def report(comm, times):
    """Print the two fits, and the measured ring over what each of them predicts."""
    P = comm.size
    models = {name: fit(SIZES, times[name]["least"]) for name in ("ping_pong", "shift")}
    for name, (alpha, beta) in models.items():
        print(f"{name:10} alpha = {show(alpha, 's')}, beta = {show(beta, 'B/s')}")
    print(f"{'all-reduce of':>14} {'ring':>9} {'by ping-pong':>13} {'by shift':>9} {'dist.all_reduce':>16}")
    for i, n in enumerate(SIZES):
        measured = times["ring"]["least"][i]
        by = [measured/ring_all_reduce_time(n=P*int(n), P=P, alpha=a, beta=b) for a, b in models.values()]
        print(f"{show(P*int(n), 'B'):>14} {show(measured, 's'):>9} {by[0]:>12.2f}x {by[1]:>8.2f}x "
              f"{show(times['library']['least'][i], 's'):>16}")


def processor():
    """The model of the CPU, as the kernel or Python names it."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")] \
        if info.exists() else []
    return (names or [platform.processor() or platform.machine()])[0]


def machine(comm):
    """What the times belong to: no host name, no path."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    device = torch.cuda.get_device_name() if comm.device.type == "cuda" else f"{processor()}, {cores} cores"
    return {"device": device, "system": f"{platform.system()} {platform.machine()}",
            "backend": "nccl" if comm.device.type == "cuda" else "gloo",
            "nodes": comm.size//int(os.environ.get("LOCAL_WORLD_SIZE", comm.size)), "torch": torch.__version__}


def main(comm):
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", metavar="FILE", help="measure longer and write the times to FILE")
    parser.add_argument("--repetitions", type=int, metavar="N")
    args = parser.parse_args()
    repetitions = args.repetitions or (60 if args.record else 4)

    raw = comm.raw
    check(comm, f"ring all-reduce of {len(SIZES)} sizes: equal to dist.all_reduce, each rank sends 2 n (P - 1)/P bytes",
          all([right(raw, n) for n in SIZES]))
    a, b = fit(SIZES, 3*us + SIZES/2e9)
    check(comm, "the fit finds the alpha and beta of exact times", abs(a/(3*us) - 1) + abs(b/2e9 - 1) < 1e-9)
    times = measure(raw, repetitions)
    answer(times["ping_pong"]["least"][0]/us, "µs")
    if comm.rank == 0:
        report(comm, times)
        if args.record:
            record = {"machine": machine(comm), "date": str(datetime.date.today()), "ranks": comm.size,
                      "repetitions": repetitions, "message_bytes": SIZES.tolist(), "seconds": times}
            Path(args.record).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    lab(main)
