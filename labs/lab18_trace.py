"""Lab 18. A recorded step, accounted for to the last nanosecond; and the slow rank, which is the one that waits least.

    torchrun --standalone --nproc-per-node=4 labs/lab18_trace.py
    torchrun --standalone --nproc-per-node=4 labs/lab18_trace.py --record capacity/specs/recorded/trace

Two stages of two replicas: rank 2 s + r is stage s of replica r.  A step reads a batch, runs four micro-batches through the
pipeline, all forward and then all backward, and sums a gradient over the replicas and a norm over all ranks.  torch.profiler
records four steps: as they are, and with one rank late in each.  The accelerator is a sleep, which needs no core, since four processes
that multiply would fight for the cores of one machine; loader, messages and host are real.

Before you look (chapter 32): two stages, four micro-batches, 8 ms forward and 16 ms backward each, all forward and then all
backward; 6 ms to read, 4 ms to update. How many milliseconds does a step take?

Break it: the second stage keeps the gradients for itself: `dist.send(grad, other)` is left out.
"""
import argparse
import datetime
import json
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

from asking import answer, broken
from capacity.witness import trace

MICRO, FORWARD, BACKWARD, READ, UPDATE, LATE = 4, 8, 16, 6, 4, 120      # milliseconds but the first
SLOW, STEPS = 2, 4                                               # the rank that is made late: stage 1 of replica 0
WIDTH = 4096


@torch.library.custom_op("accelerator::work", mutates_args=("x",))
def work(x: torch.Tensor, ms: float) -> None:
    """What an accelerator would do, without a core."""
    time.sleep(ms/1e3)


class Slow(Dataset):
    """Samples that take a while to read."""
    def __len__(self):
        return 100

    def __getitem__(self, i):
        time.sleep(READ/1e3)
        return torch.full((WIDTH,), float(i))


def step(comm, loader, pair, late):
    """One step of a rank; returns the norm that all ranks agree on."""
    stage, replica = divmod(comm.rank, 2)
    other = 2*(1 - stage) + replica
    x = next(loader)[0] if stage == 0 else torch.zeros(WIDTH)
    grad = torch.zeros(WIDTH)
    for _ in range(MICRO):
        if stage == 1:
            dist.recv(x, other)
        torch.ops.accelerator.work(x, float(FORWARD))
        if stage == 0:
            dist.send(x, other)
    for _ in range(MICRO):
        if stage == 0:
            dist.recv(grad, other)
        torch.ops.accelerator.work(grad, float(BACKWARD))
        if stage == 1 and not broken():
            dist.send(grad, other)
    if late:
        torch.ops.accelerator.work(grad, float(late))
    grad += comm.rank + 1
    dist.all_reduce(grad, group=pair)
    norm = grad.square().sum()
    dist.all_reduce(norm)
    torch.ops.accelerator.work(grad, float(UPDATE))
    return float(norm)


def recorded(comm, pair, late, folder):
    """Path of this rank's trace of STEPS steps, after two that are not recorded; and the norms."""
    loader = iter(DataLoader(Slow(), batch_size=1))
    norms = []
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=STEPS, repeat=1)) as seen:
        for _ in range(2 + STEPS):
            norms.append(step(comm, loader, pair, late if comm.rank == SLOW else 0))
            seen.step()
    path = Path(folder)/f"{comm.rank}.json"
    seen.export_chrome_trace(str(path))
    return path, norms


def moments(seen):
    """The account once more, by another way: every moment between two events asks the causes in turn."""
    cuts = sorted({seen.start, seen.stop, *(t for spans in seen.lanes.values() for ab in spans for t in ab
                                            if seen.start < t < seen.stop)})
    out = dict.fromkeys(trace.CAUSES, 0)
    for a, b in zip(cuts, cuts[1:]):
        out[next((cause for cause, spans in seen.lanes.items() if any(u <= a and b <= v for u, v in spans)), "idle")] += b - a
    return out


def main(comm):
    from lab2_alpha_beta import machine
    from processes import check
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", metavar="PREFIX", help="write traces to PREFIX-even-RANK.json.gz and PREFIX-late-...")
    args = parser.parse_args()
    pairs = [dist.new_group([2*s, 2*s + 1]) for s in (0, 1)]
    found = {}
    for name, late in (("even", 0), ("late", LATE)):
        with tempfile.TemporaryDirectory() as folder:
            path, norms = recorded(comm, pairs[comm.rank//2], late, folder)
            seen = trace.read(path)
            if args.record:
                trace.slim(path, f"{args.record}-{name}-{comm.rank}.json.gz")
        parts = trace.account(seen)
        check(comm, f"{name}: {STEPS} steps of each rank were recorded",
              seen.steps == STEPS and not seen.device)
        check(comm, f"{name}: six causes add up to the steps, to the nanosecond", sum(parts.values()) == seen.stop - seen.start)
        check(comm, f"{name}: asking every moment gives the same account", parts == moments(seen))
        check(comm, f"{name}: no arithmetic is shorter than the sleeps that stand for it",
              parts["arithmetic"] >= STEPS*1e6*(MICRO*(FORWARD + BACKWARD) + UPDATE + (late if comm.rank == SLOW else 0)))
        check(comm, f"{name}: the loader's time is seen where a batch is read, and there alone",
              (parts["input"] >= STEPS*READ*1e6) if comm.rank < 2 else parts["input"] == 0)
        check(comm, f"{name}: sends, receives and sums are seen", all(parts[k] > 0 for k in ("exposed", "bubble")))
        check(comm, f"{name}: all ranks agree on the norms", len(set(map(tuple, gathered(norms)))) == 1)
        found[name] = gathered((parts, trace.waited(seen), seen.stop - seen.start))
        if not late:
            answer(found[name][0][2]/STEPS/1e6, "ms")
        if comm.rank == 0:
            for r, (p, wait, total) in enumerate(found[name]):
                print(f"    {name}, rank {r}: step {total/STEPS/1e6:.1f} ms, waits {wait/1e6:.1f}; "
                      + ", ".join(f"{k} {v/STEPS/1e6:.1f}" for k, v in p.items()), flush=True)
    check(comm, f"late: rank {SLOW}, which is late, waits least, 3.5 robust deviations below the median or more",
          trace.slow([wait for _, wait, _ in found["late"]]) == SLOW)
    if comm.rank == 0 and args.record:
        record = {"machine": machine(comm), "date": str(datetime.date.today()), "ranks": comm.size, "steps": STEPS,
                  "milliseconds": {"forward": FORWARD, "backward": BACKWARD, "read": READ, "update": UPDATE, "late": LATE},
                  "micro_batches": MICRO, "slow_rank": SLOW,
                  "what": "two stages of two replicas, traces of torch.profiler; the accelerator is a sleep"}
        Path(f"{args.record}.json").write_text(json.dumps(record, indent=1) + "\n")


def gathered(value):
    """The value of every rank."""
    out = [None]*dist.get_world_size()
    dist.all_gather_object(out, value)
    return out


if __name__ == "__main__":
    from processes import lab
    lab(main, "four")
