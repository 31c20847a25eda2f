"""A training job that fails, is repaired and goes on, event by event; a disk that loses power; a training that resumes.

Time.  `job` runs one: it trains, stops to save, loses what was not saved when a failure strikes, restarts.  Who strikes
is a function of the clock: `poisson`, `weibull` (each start is as good as new), or `devices`, where every device of the
machine draws its own life and the first one that ends stops them all.

    done = job(54*86400, poisson(3*3600, rng), [(800, 30, 300)])     # save every 800 s, for 30 s; 300 s to restart
    done.goodput, done.failures

Bytes.  `Disk` keeps files and loses power after any number of operations; `commit` and `overwrite` write a checkpoint
of several shards to it, and `load` reads the newest one that is whole.

Values.  `train` trains a small network with dropout and a shuffled sampler from a state, and returns the state.

A witness: it knows clocks, files and arrays, and no formula.
"""
import copy
import heapq
import math
import zlib
from typing import NamedTuple

import numpy as np


# ---- time
class Span(NamedTuple):
    """What the job did from `start` to `stop`: train, lost, save, restart or wait; and its work before and after."""
    start: float
    stop: float
    kind: str
    before: float = 0.0
    after: float = 0.0


class Done(NamedTuple):
    """The spans of a job, its failures, and the share of the time that became training that stayed."""
    spans: list
    failures: int
    goodput: float

    def seconds(self, kind):
        return sum(s.stop - s.start for s in self.spans if s.kind == kind)


def poisson(mtbf, rng, far=0.0):
    """Strikes without memory; a share `far` of them takes the near copies, too."""
    return lambda now: (now + rng.exponential(mtbf), int(rng.random() < far))


def weibull(mtbf, shape, rng):
    """Strikes whose gap, from work again to the next, is Weibull with this mean; below shape 1 early ones are likely."""
    scale = mtbf/math.gamma(1 + 1/shape)
    return lambda now: (now + scale*rng.weibull(shape), 0)


def devices(count, mtbf, rng, shape=1.0):
    """Each device has a life of its own, Weibull with this mean; a dead one is replaced by a new one at once."""
    scale = mtbf/math.gamma(1 + 1/shape)
    ends = (scale*rng.weibull(shape, count)).tolist()
    heapq.heapify(ends)

    def strike(now):
        while ends[0] <= now:
            heapq.heapreplace(ends, ends[0] + scale*rng.weibull(shape))
        return ends[0], 0
    return strike


def job(horizon, strike, levels, *, drain=0.0, slowdown=0.0, spares=math.inf, repair=0.0):
    """A job of `horizon` seconds.  levels: [(work between saves, seconds of a save, seconds of a restart)], near to far.

    A save stops the work.  With a drain it is safe only so much later, and until then training loses a share `slowdown`
    of its speed; one at a time.  strike(now) is the next failure, (time, level that survives it); none strikes during a
    restart.  A failure takes one of `spares` nodes, back after `repair`; without one the job waits.
    """
    now = work = 0.0
    spans, failures, away = [], 0, []
    safe, due = [0.0]*len(levels), [level[0] for level in levels]
    writing = None                                                # (when it is safe, its work)
    hit, survives = strike(now)
    while now < horizon:
        left = min(due) - work
        if left <= 1e-6 and not writing:
            level = len(due) - 1
            while work < due[level] - 1e-6:
                level -= 1
            end = now + levels[level][1]
            if end <= hit:
                spans.append(Span(now, end, "save"))
                now = end
                if drain and level == 0:
                    writing = now + drain, work
                for i in range(level + 1):
                    due[i] = work + levels[i][0]
                    if not writing:
                        safe[i] = work                            # a far copy serves as a near one
                continue
            spans.append(Span(now, hit, "save"))
            now = hit
        else:
            speed = 1 - slowdown if writing else 1.0
            end = now + left/speed if left > 1e-6 else math.inf
            end = min(hit, horizon, end, writing[0]) if writing else min(hit, horizon, end)
            after = work + (end - now)*speed
            spans.append(Span(now, end, "train", work, after))
            work, now = after, end
            if writing and now >= writing[0]:
                safe[0], writing = writing[1], None
        if now < hit:
            continue
        failures, writing = failures + 1, None
        work = max(safe[survives:])
        lose(spans, work)
        safe[:survives] = [work]*survives
        due = [work + interval for interval, *_ in levels]
        away = [back for back in away if back > now]
        if len(away) >= spares:
            back = sorted(away)[len(away) - int(spares)]
            spans.append(Span(now, back, "wait"))
            now = back
        away.append(now + repair)
        spans.append(Span(now, now + levels[survives][2], "restart"))
        now = spans[-1].stop
        hit, survives = strike(now)
    return Done(spans, failures, work/now)


def jobs(gaps, interval, save, restart):
    """Goodputs of many jobs, a row of `gaps` for each: the times from work again to the next failure, the last its end.

    What `job` counts with one level and nothing in the background: a failure leaves the whole segments before it.
    """
    segments = np.floor(gaps/(interval + save)).sum(-1)
    return segments*interval/(gaps + restart).sum(-1)


def lose(spans, kept):
    """Training beyond `kept` was in vain: its spans become "lost", the one across is cut."""
    for i in reversed(range(len(spans))):
        s = spans[i]
        if s.kind == "train":
            if s.after <= kept:
                break
            if s.before >= kept:
                spans[i] = s._replace(kind="lost")
            else:
                cut = s.start + (s.stop - s.start)*(kept - s.before)/(s.after - s.before)
                spans[i:i + 1] = [s._replace(stop=cut, after=kept), s._replace(start=cut, before=kept, kind="lost")]


def checked(segments, interval, check, restart, errors, rng):
    """Seconds per segment of `interval` that is found sound by a check at its end; errors are silent until then.

    errors: mean time between them.  A segment that fails its check is done again after `restart`.
    """
    total = 0.0
    for _ in range(segments):
        while rng.exponential(errors) < interval:
            total += interval + check + restart
        total += interval + check
    return total/segments


def away(nodes, mtbf, repair, horizon, rng, looks=4000):
    """How many of `nodes` are in repair at each of `looks` moments; repair(rng, n) draws how long n of them are away."""
    moments = np.linspace(.3*horizon, horizon, looks)             # the first part is left out: nobody is away at 0
    leave = []
    for _ in range(nodes):
        now = 0.0
        while (now := now + rng.exponential(mtbf)) < horizon:     # the spare works in its place, so the slot can fail
            leave.append(now)                                     # again at once
    back = np.array(leave) + repair(rng, len(leave))
    return np.searchsorted(np.sort(leave), moments) - np.searchsorted(np.sort(back), moments)


# ---- bytes
class PowerLost(Exception):
    """The disk does no more."""


class Disk:
    """Files by name; loses power after `operations` of them.  A write that power interrupts leaves half of its bytes."""

    def __init__(self, operations=math.inf):
        self.files, self.left, self.done = {}, operations, 0

    def _use(self):
        if self.left <= 0:
            return False
        self.left, self.done = self.left - 1, self.done + 1
        return True

    def write(self, name, data):
        if not self._use():
            self.files[name] = data[:len(data)//2]
            raise PowerLost
        self.files[name] = data

    def rename(self, old, new):
        """All or nothing: file systems promise it within one of them."""
        if not self._use():
            raise PowerLost
        self.files[new] = self.files.pop(old)

    def revive(self):
        self.left = math.inf
        return self


def overwrite(disk, step, shards):
    """Shards over the last ones, then a note: what goes wrong."""
    for rank, data in enumerate(shards):
        disk.write(f"shard {rank}", data)
    disk.write("newest", f"{step} {len(shards)}".encode())


def commit(disk, step, shards):
    """Shards into a place of their own, a manifest with their checksums, and one rename at the very end."""
    for rank, data in enumerate(shards):
        disk.write(f"{step}/shard {rank}", data)
    sums = " ".join(f"{zlib.crc32(data):08x}" for data in shards)
    disk.write(f"{step}/manifest.part", f"{step} {sums}".encode())
    disk.rename(f"{step}/manifest.part", f"{step}/manifest")


def load_overwritten(disk):
    """What a reader of `overwrite` takes for a checkpoint: (step, shards)."""
    step, ranks = map(int, disk.files["newest"].split())
    return step, [disk.files[f"shard {rank}"] for rank in range(ranks)]


def load(disk):
    """The newest whole checkpoint, (step, shards); a torn one, or one with a flipped bit, is refused."""
    manifests = [name for name in disk.files if name.endswith("/manifest")]
    for name in sorted(manifests, key=lambda name: -int(name.split("/")[0])):
        step, *sums = disk.files[name].decode().split()
        shards = [disk.files.get(f"{step}/shard {rank}", b"") for rank in range(len(sums))]
        if [f"{zlib.crc32(data):08x}" for data in shards] == sums:
            return int(step), shards
    raise ValueError("no whole checkpoint")


# ---- values
def start(seed=0, samples=24, width=6):
    """The whole state of a training: weights, Adam's moments, step, random numbers of dropout, sampler."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=width)
    return {"weights": w, "moments": np.zeros((2, width)), "step": 0, "dropout": rng.bit_generator.state,
            "sampler": {"order": np.random.default_rng(seed + 1).permutation(samples), "position": 0, "epoch": 0}}


def train(state, steps, batch=4):
    """(the state after so many steps, their losses); the state that came in is left alone."""
    state = copy.deepcopy(state)
    w, (mean, square), sampler = state["weights"], state["moments"], state["sampler"]
    samples = len(sampler["order"])
    x = np.sin(np.outer(np.arange(1, samples + 1), np.arange(1, len(w) + 1)))
    rng, losses = np.random.default_rng(), []
    rng.bit_generator.state = state["dropout"]
    for _ in range(steps):
        if sampler["position"] == samples:
            sampler["epoch"] += 1
            sampler["order"] = np.random.default_rng(sampler["epoch"]).permutation(samples)
            sampler["position"] = 0
        rows = x[sampler["order"][sampler["position"]:sampler["position"] + batch]]
        rows = rows*(rng.random(rows.shape) > .1)/.9              # dropout
        error = rows @ w - rows.sum(1)
        grad = 2*rows.T @ error/batch
        losses.append(float(error @ error/batch))
        sampler["position"] += batch
        state["step"] += 1
        mean += .1*(grad - mean)
        square += .01*(grad*grad - square)
        w -= .01*(mean/(1 - .9**state["step"]))/(np.sqrt(square/(1 - .99**state["step"])) + 1e-8)
    state["dropout"] = rng.bit_generator.state
    return state, losses


def resume(state, without=()):
    """The state as a checkpoint restores it that has left something out: that part is as it was at the start."""
    fresh = start(samples=len(state["sampler"]["order"]), width=len(state["weights"]))
    return copy.deepcopy({k: fresh[k] if k in without else v for k, v in state.items()})
