"""How long does a trainer wait for PyTorch's DataLoader?  Four settings with the same times, one a process.

    torchrun --standalone --nproc-per-node=4 labs/recipes/03a_loader.py [batches [seed]]

Workers and trainer sleep for exponential times; the workers together are 1.2 times as fast.  Beside each share stands that
of a simulation with the same times (capacity.witness.loading), which knows PyTorch's rule and no clock.  Among 150 batches the start of the
processes is seen; the chapter shows 2,000.

The shares are printed, not asserted: a busy machine may stretch any of them.  Asserted is the rule itself, which no clock moves: when
the j-th batch is taken, workers*ahead + j are given; in order, batch j comes from worker j mod workers.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, get_worker_info

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", ".."))
from capacity.witness import loading     # noqa: E402


# the library
def at_work(loader, step):
    wait = work = 0.0
    batches, clock = iter(loader), time.perf_counter
    for _ in range(len(loader)):
        a, batch, b = clock(), next(batches), clock()
        step(batch)
        wait, work = wait + b - a, work + clock() - b
    return work/(wait + work)
# end


class Sleeper(Dataset):
    """Sample i takes load[i] seconds; it is its own number, and that of the worker that makes it."""

    def __init__(self, load):
        self.load = load

    def __len__(self):
        return len(self.load)

    def __getitem__(self, i):
        time.sleep(self.load[i])
        return i, get_worker_info().id


class Given:
    """The numbers 0 ... n-1, and how many of them the loader has given to its workers."""

    def __init__(self, n):
        self.n, self.count = n, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        for i in range(self.n):
            self.count += 1
            yield i


dist.init_process_group("gloo")
rank, n, unit = dist.get_rank(), int(sys.argv[1]) if len(sys.argv) > 1 else 150, .01
torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
unit *= 2 if n > 500 else 1
workers, ahead, kept = [(1, 8, True), (4, 2, True), (4, 8, True), (4, 2, False)][rank % 4]
load, train = (torch.empty(n).exponential_()*unit).tolist(), (torch.empty(n).exponential_()*unit).tolist()
load = [x*workers/1.2 for x in load]
seen, given = [], Given(n)


def step(batch):
    i, worker = batch
    seen.append(i)
    assert given.count == min(n, workers*ahead + len(seen)), "one more is given when one is taken"
    assert not kept or worker == i % workers, "in turn"
    time.sleep(train[len(seen) - 1])


loader = DataLoader(Sleeper(load), batch_size=None, sampler=given, num_workers=workers, prefetch_factor=ahead, in_order=kept)
share = at_work(loader, step)
assert sorted(seen) == list(range(n)), "every batch once"
assert not kept or seen == list(range(n)), "in their order"
want = (loading.in_turn if kept else loading.as_ready)(load, train, workers, ahead).busy()
rows = [None]*dist.get_world_size()
dist.all_gather_object(rows, (workers, ahead, kept, share, float(want), sum(a > b for a, b in zip(seen, seen[1:]))))
if rank == 0:
    print(f"{n} batches of {unit*1e3:.0f} ms, PyTorch {torch.__version__}")
    for w, f, kept, share, want, late in rows:
        print(f"{w} workers, {f} ahead, order {'kept' if kept else 'given up'}: at work {share:.1%}, simulated {want:.1%}; "
              f"{late} batches after a later one")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort
