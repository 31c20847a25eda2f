"""A loader with several workers and a trainer, as PyTorch's DataLoader runs them, on times that are given.

Each worker has `ahead` batches: given to it and not yet taken by the trainer.  A batch that is taken makes room for one more.
Times are arrays whose first axis counts the batches; what is simulated along further axes is independent.
"""
import heapq
from typing import NamedTuple

import numpy as np


class Loaded(NamedTuple):
    """When each batch is begun, ready, taken and trained, in the order in which they are taken.

    worker and batch: who loads it, and its number; None: batch j is the j-th, loaded by worker j mod w.
    """
    begun: np.ndarray
    ready: np.ndarray
    taken: np.ndarray
    ended: np.ndarray
    worker: list = None
    batch: list = None

    def busy(self, first=0):
        """Share of the time that the trainer works, from the batch `first` on."""
        work = (self.ended - self.taken)[first:].sum(axis=0)
        return work/(self.ended[-1] - (self.ended[first - 1] if first else 0))


def in_turn(load, train, workers, ahead):
    """Batches are given to the workers in turn and taken in their order."""
    load, train = np.broadcast_arrays(np.asarray(load, float), np.asarray(train, float))
    begun, ready, taken, ended = times = [np.zeros_like(load) for _ in range(4)]
    now = 0
    one_by_one = [list(x[..., None]) for x in (train, ready, taken, ended)]             # views of each batch
    for first in range(0, len(load), workers):                      # in one turn no worker waits for another
        turn, last = slice(first, first + workers), min(first + workers, len(load))

        def before(x, batches):
            return x[first - batches:last - batches] if first >= batches else 0
        begun[turn] = np.maximum(before(taken, workers*ahead), before(ready, workers))
        np.add(begun[turn], load[turn], out=ready[turn])
        for train_j, ready_j, taken_j, ended_j in zip(*(x[turn] for x in one_by_one)):
            np.maximum(ready_j, now, out=taken_j)
            now = np.add(taken_j, train_j, out=ended_j)
    return Loaded(*times)


def as_ready(load, train, workers, ahead):
    """Batches are taken in the order in which they get ready; the worker of the batch that is taken gets the next one."""
    n, free, waiting, by = len(load), [0.0]*workers, [], []
    begun, ready, taken, ended = (np.zeros(n) for _ in range(4))

    def give(j, q, at):
        begun[j] = max(free[q], at)
        ready[j] = free[q] = begun[j] + load[j]
        heapq.heappush(waiting, (ready[j], j, q))
        by.append(q)
    for j in range(min(n, workers*ahead)):
        give(j, j % workers, 0)
    now = 0
    while waiting:
        at, j, q = heapq.heappop(waiting)
        taken[j] = max(at, now)
        if len(by) < n:
            give(len(by), q, taken[j])
        now = ended[j] = taken[j] + train[j]
    order = np.argsort(taken)
    return Loaded(begun[order], ready[order], taken[order], ended[order], [by[j] for j in order], order.tolist())


def as_free(load, train, workers, ahead):
    """Batches are given to the worker that is free first, and taken in their order."""
    n, free = len(load), [0.0]*workers
    begun, ready, taken, ended = (np.zeros(n) for _ in range(4))
    for j in range(n):
        q = free.index(min(free))
        begun[j] = max(free[q], taken[j - workers*ahead] if j >= workers*ahead else 0)
        free[q] = ready[j] = begun[j] + load[j]
        taken[j] = max(ready[j], ended[j - 1] if j else 0)
        ended[j] = taken[j] + train[j]
    return Loaded(begun, ready, taken, ended)


def in_step(load, workers, ahead, first=0):
    """Share of work, from the batch `first` on, of trainers along the last axis that begin each step of one second together.

    Each has a loader of its own, whose batches are given in turn and taken in order.
    """
    load = np.asarray(load, float)
    ready, taken, now = np.zeros_like(load), np.zeros(len(load)), 0
    for j in range(len(load)):
        given = taken[j - workers*ahead] if j >= workers*ahead else 0
        ready[j] = np.maximum(given, ready[j - workers] if j >= workers else 0) + load[j]
        taken[j] = max(ready[j].max(), now)
        now = taken[j] + 1
    return (len(load) - first)/(now - (taken[first - 1] + 1 if first else 0))
