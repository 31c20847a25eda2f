"""Workers that do not wait for each other: a parameter server event by event, gradients that come late, local steps.

Time.  `server` lets workers read the weights, compute for as long as they take, and write; it counts how many updates
others wrote meanwhile.

    log = server([steady(1.0), steady(2.0)], 100)              # two workers, the second at half the speed
    log[-1].staleness

Values.  `asynchronous` trains along such a log, each gradient taken at the weights that its worker had read.  `late`
does it with one fixed delay on a parabola, and `limit` finds by simulation the largest rate that converges.  `local`
lets workers step alone and then synchronises them, by the mean or by an outer optimizer.  `Blobs` is a small network
with its data, alike for all workers or sorted by label.

Students of `capacity.witness.students` in several copies: `students` gives their gradients, for `local`; `train_local`
samples; `expected_local` takes the mean over all samples without sampling.

A witness: it knows clocks, arrays and gradient steps, and no formula.
"""
import heapq
from typing import NamedTuple

import numpy as np


# ---- time
class Update(NamedTuple):
    """One worker read the weights at `start`, wrote its step at `stop`; `staleness` updates by others lie between."""
    worker: int
    start: float
    stop: float
    staleness: int


def steady(seconds):
    """A worker whose steps all take as long."""
    return lambda: seconds


def random(seconds, rng):
    """A worker whose steps take an exponential time with this mean."""
    return lambda: rng.exponential(seconds)


def server(workers, updates):
    """The first updates, in order of time, of workers that read, compute for worker() seconds, write, and read again."""
    queue = [(worker(), i, 0.0, 0) for i, worker in enumerate(workers)]       # stop, who, start, updates it had seen
    heapq.heapify(queue)
    log = []
    for written in range(updates):
        stop, i, start, seen = queue[0]
        log.append(Update(i, start, stop, written - seen))
        heapq.heapreplace(queue, (stop + workers[i](), i, stop, written + 1))
    return log


def barrier(workers, steps):
    """Seconds of each step if all wait for the slowest."""
    return np.array([max(worker() for worker in workers) for _ in range(steps)])


# ---- gradients that come late
def asynchronous(gradient, w, rate, log):
    """Weights after each update of a log, an array; gradient(w, worker) is taken at what the worker had read."""
    first, read, seen = w, {}, []
    for update in log:
        w = w - rate*gradient(read.get(update.worker, first), update.worker)
        read[update.worker] = w
        seen.append(w)
    return np.array(seen)


def late(x, delay, steps):
    """How the size of w[t + 1] = w[t] - x*w[t - delay] grows per step, as a logarithm, over the second half of the steps.

    x: rate times curvature, a number or an array.
    """
    x = np.asarray(x, float)
    past = [np.ones_like(x)]*(delay + 1)
    size = np.zeros_like(x)
    for t in range(steps):
        past = past[1:] + [past[-1] - x*past[0]]
        if t % 50 == 49:                                           # keep the numbers small
            norm = np.sqrt(sum(p*p for p in past))
            past = [p/norm for p in past]
            size = size + np.where(t >= steps//2, np.log(norm), 0)
    return size/(steps - steps//2)


def limit(delay, rounds=4, tries=33):
    """The rate times curvature at which `late` stops to converge: a grid, refined."""
    low, high = 0.0, 3.0
    for _ in range(rounds):
        x = np.linspace(low, high, tries)[1:]
        k = int(np.argmax(late(x, delay, 2000*(delay + 1)) > 0))
        low, high = (x[k - 1] if k else low), x[k]
    return (low + high)/2


# ---- local steps
def local(gradients, w, rate, workers, every, rounds, outer=(1.0, 0.0), inner=0.0):
    """Weights after each synchronisation.  In a round every worker takes `every` steps alone.

    gradients(own): own[i] are the weights of worker i, and so is the result; outer: rate and Nesterov's momentum of the
    outer optimizer, (1, 0) is the mean of the workers' weights; inner: Nesterov's momentum of each worker, whose velocity
    is never averaged.
    """
    rate_o, momentum = outer
    w = np.asarray(w, float)
    velocity, speed, seen = np.zeros_like(w), 0.0, []
    for _ in range(rounds):
        own = np.broadcast_to(w, (workers, *w.shape))
        for _ in range(every):
            slope = gradients(own)
            speed = inner*speed + slope
            own = own - rate*(slope + inner*speed)
        change = w - own.mean(0)
        velocity = momentum*velocity + change
        w = w - rate_o*(change + momentum*velocity)
        seen.append(w)
    return np.array(seen)


class Blobs:
    """A network of one hidden layer that tells four kinds of points apart; its weights are one vector.

    workers: how many share the data; skew: the share of a worker's points that are of its own kind, above what
    chance gives; 0: alike.  All points are drawn once, by the seed.
    """
    kinds, inputs, hidden = 4, 6, 16

    def __init__(self, workers=4, skew=0.0, batch=16, points=4096, seed=0):
        rng = np.random.default_rng(seed)
        teacher = rng.normal(size=(self.inputs, 24)), rng.normal(size=(24, self.kinds))
        x = rng.normal(size=(points, self.inputs))
        scores = np.tanh(x @ teacher[0]) @ teacher[1]
        y = (scores - scores.mean(0)).argmax(1)
        self.x, self.y, self.test = x[1024:], y[1024:], (x[:1024], y[:1024])
        self.batch, self.skew, self.rng = batch, skew, np.random.default_rng(seed + 1)
        of = [np.flatnonzero(self.y == k) for k in range(self.kinds)]
        self.of = np.stack([k[:min(map(len, of))] for k in of])
        self.start = .3*rng.normal(size=(self.inputs + self.kinds)*self.hidden)

    def draw(self, workers):
        """Which points the given workers see next, an array of (workers, batch)."""
        shape = len(workers), self.batch
        own_kind = self.of[np.array(workers) % self.kinds][np.arange(shape[0])[:, None],
                                                           self.rng.integers(self.of.shape[1], size=shape)]
        return np.where(self.rng.random(shape) < self.skew, own_kind, self.rng.integers(len(self.y), size=shape))

    def _forward(self, w, x):
        cut = self.inputs*self.hidden
        a, b = w[..., :cut].reshape(*w.shape[:-1], self.inputs, -1), w[..., cut:].reshape(*w.shape[:-1], self.hidden, -1)
        h = np.tanh(x @ a)
        z = h @ b
        z = z - z.max(-1, keepdims=True)
        return b, h, z - np.log(np.exp(z).sum(-1, keepdims=True))

    def loss(self, w):
        """Cross-entropy of the points that nobody trains on, nats; w (..., n) -> (...)."""
        x, y = self.test
        return -self._forward(w, x)[2][..., np.arange(len(y)), y].mean(-1)

    def gradients(self, w, workers=None):
        """The gradients of the loss of a fresh batch of each worker's points: w (workers, ..., n) -> the same shape.

        The axes between are models that see the same points.
        """
        pick = self.draw(range(len(w)) if workers is None else workers)
        pick = pick.reshape(len(w), *[1]*(w.ndim - 2), -1)
        x, y = self.x[pick], self.y[pick]
        b, h, logs = self._forward(w, x)
        dz = (np.exp(logs) - (y[..., None] == np.arange(self.kinds)))/self.batch
        da = np.swapaxes(x, -1, -2) @ ((dz @ np.swapaxes(b, -1, -2))*(1 - h*h))
        return np.concatenate([m.reshape(*w.shape[:-1], -1) for m in (da, np.swapaxes(h, -1, -2) @ dz)], -1)

    def gradient(self, w, worker=0):
        """`gradients` of one worker: w (..., n) -> (..., n)."""
        return self.gradients(w[None], [worker])[0]


# ---- students
def students(size, workers, batch, variances, seeds):
    """The gradients of students on fresh batches: own (workers, seeds, models, size) -> the same shape.

    size, batch, variances: as in `train_local`, which draws the same examples for a seed; all models of a worker see them.
    own: the errors of the weights.
    """
    draws = [np.random.default_rng(seed) for seed in seeds]
    scale, hidden = np.sqrt(variances[:size]), np.sqrt(variances[size:].sum())

    def gradients(own):
        fresh = [(rng.normal(size=(workers, batch, size)), rng.normal(size=(workers, 1, batch))) for rng in draws]
        x, unseen = (np.stack(part, 1) for part in zip(*fresh))
        x = x*scale
        return (own @ np.swapaxes(x, -1, -2) + hidden*unseen) @ x/batch
    return gradients


def train_local(size, steps, every, workers, batch, rate, variances, noise=0.0, seed=0):
    """Losses of the mean of the workers' weights, before and after each synchronisation: students that step alone.

    size, batch, rate, variances, noise: as in `capacity.witness.students.train`, each worker with batches of its own.
    """
    rng = np.random.default_rng(seed)
    seen, hidden = variances[:size], variances[size:].sum() + noise**2
    error, losses = np.ones((workers, size)), [seen.sum() + hidden]
    for step in range(1, steps + 1):
        x = rng.normal(size=(workers, batch, size))*np.sqrt(seen)
        unseen = rng.normal(size=(workers, batch))*np.sqrt(hidden)
        miss = np.einsum("wbs,ws->wb", x, error) + unseen
        error = error - rate*np.einsum("wbs,wb->ws", x, miss)/batch
        if step % every == 0:
            error = np.broadcast_to(error.mean(0), error.shape)
            losses.append(seen @ error[0]**2 + hidden)
    return np.array(losses)


def expected_local(size, steps, every, workers, batch, rate, variances, noise=0.0):
    """The mean of `train_local` over all samples, without sampling.

    Two numbers a direction are enough: the mean square of one worker's error, and the mean product of two workers'.
    """
    seen, hidden = variances[:size], variances[size:].sum() + noise**2
    own, pair, losses = np.ones(size), np.ones(size), [seen.sum() + hidden]
    for step in range(1, steps + 1):
        miss = seen @ own + hidden
        own = own*(1 - 2*rate*seen + (1 + 1/batch)*(rate*seen)**2) + rate**2/batch*seen*miss
        pair = pair*(1 - rate*seen)**2
        if step % every == 0:
            own = pair = own/workers + pair*(1 - 1/workers)
            losses.append(seen @ own + hidden)
    return np.array(losses)
