"""A machine with links, host memory, drives and a GPU, simulated; and a model whose weights really live elsewhere.

Time.  A Task stands in one queue, as a kernel or a copy stands in a CUDA stream; a queue runs its tasks in order, one at
a time.  A task starts when its queue is free and the tasks that it waits for are done.  While it runs it draws on
resources (seconds of a GPU, bytes of a link, bytes of host memory), and resources are shared fairly by those who draw
at once.  It is done `delay` after it has left its queue.

    trace = simulate([Task("fetch 0", "copy", {"link": 5e8}, delay=1e-5), Task("layer 0", "gpu", {"gpu": .02}, ["fetch 0"])],
                     {"link": 50e9, "gpu": 1})
    trace["layer 0"].stop                                             # 0.03001

Values.  `Store` is the host: it keeps named arrays and counts what crosses the link.  `step` trains `witness.tiny` with
weights that are fetched into a few buffers and overwritten there, and sends gradients back; `adam_by_tiles` updates
state that is brought in tile by tile.

A witness: it knows arrays and no formula.
"""
import heapq
import itertools
from collections import deque
from typing import NamedTuple

import numpy as np

from . import tiny


# ---- time
class Task(NamedTuple):
    """Work in a queue: draws {resource: amount}, waits for tasks by name, is done `delay` after it left the queue."""
    name: str
    queue: str
    draws: dict
    after: tuple = ()
    delay: float = 0.0


class Span(NamedTuple):
    """When a task started, left its queue and was done."""
    queue: str
    start: float
    stop: float
    done: float


def fair(drawing, capacity):
    """How fast each task advances, as shares of it per second: nobody can gain but at the cost of one who has less.

    drawing: {task: {resource: amount}}.  Every round all tasks rise together, in the unit of their largest amount; those
    that draw on the resource that is full first stay at that rate.
    """
    rate, left, rising = {}, dict(capacity), {name: (max(draws.values()), draws) for name, draws in drawing.items()}
    while rising:
        need = dict.fromkeys(left, 0.0)
        for most, draws in rising.values():
            for resource, amount in draws.items():
                need[resource] += amount/most
        level, full = min((left[r]/need[r], r) for r in left if need[r] > 0)
        for name in [n for n, (_, draws) in rising.items() if draws.get(full)]:
            most, draws = rising.pop(name)
            rate[name] = level/most
            for resource, amount in draws.items():
                left[resource] -= level*amount/most
    return rate


def simulate(tasks, capacity):
    """{name: Span} of all tasks, on resources of these capacities per second.  ValueError for what can never start."""
    queues, waits, followers = {}, {}, {}
    for task in tasks:
        queues.setdefault(task.queue, deque()).append(task)
        waits[task.name] = len(task.after)
        for name in task.after:
            followers.setdefault(name, []).append(task)
    spans, started, running, finished, now = {}, {}, {}, [], 0.0
    look, rate = deque(queues), None                              # queues whose first task may start

    def leave(task):
        spans[task.name] = Span(task.queue, started[task.name], now, now + task.delay)
        heapq.heappush(finished, (now + task.delay, task.name))
        queues[task.queue].popleft()
        look.append(task.queue)

    while True:
        while look or finished and finished[0][0] <= now:
            if not look:                                          # what is done by now lets others start
                for task in followers.get(heapq.heappop(finished)[1], ()):
                    waits[task.name] -= 1
                    look.append(task.queue)
                continue
            task = next(iter(queues[look.popleft()]), None)
            if task and task.name not in started and not waits[task.name]:
                started[task.name], rate = now, None
                draws = {r: v for r, v in task.draws.items() if v > 0}
                if draws:
                    running[task.name] = [1.0, draws, task]
                else:
                    leave(task)
        if not running and not finished:
            break
        if rate is None:
            rate = fair({name: draws for name, (_, draws, _) in running.items()}, capacity)
        ends = {name: now + share/rate[name] for name, (share, _, _) in running.items()}
        then = min([*ends.values(), *(t for t, _ in finished[:1])])
        for name, entry in running.items():
            entry[0] -= rate[name]*(then - now)
        now = then
        for name in [n for n, end in ends.items() if end <= then*(1 + 1e-14)]:
            rate = None
            leave(running.pop(name)[2])
    if len(spans) < len(waits):
        raise ValueError(f"tasks that can never start: {', '.join(sorted(set(waits) - set(spans)))}")
    return spans


def prefetching(compute, transfer, latency, buffers):
    """Tasks of layers that are fetched in order into buffers and then computed: (tasks, capacities).

    compute, transfer: seconds of each layer, two sequences.  A buffer is free again when its layer is computed.
    """
    tasks = []
    for i, (c, t) in enumerate(zip(compute, transfer)):
        free = (f"compute {i - buffers}",) if i >= buffers else ()
        tasks += [Task(f"fetch {i}", "copy", {"link": float(t)}, free, latency),
                  Task(f"compute {i}", "gpu", {"gpu": float(c)}, (f"fetch {i}",))]
    return tasks, {"link": 1.0, "gpu": 1.0}


def layer_period(compute, transfer, latency, buffers, layers=240):
    """Seconds per layer in the long run, from the second half of a simulated chain; a number or a draw for each layer."""
    layers -= layers % (2*buffers)
    compute, transfer = (np.broadcast_to(v, layers) for v in (compute, transfer))
    trace = simulate(*prefetching(compute, transfer, latency, buffers))
    half = layers//2
    return (trace[f"compute {layers - 1}"].stop - trace[f"compute {half - 1}"].stop)/(layers - half)


def jittered(mean, variation, layers, rng):
    """Positive random times of this mean, with this standard deviation in units of the mean: gamma draws."""
    return rng.gamma(variation**-2, mean*variation**2, layers) if variation else np.full(layers, float(mean))


def cycle_mean(arcs):
    """Largest mean of the simple cycles of a graph, [(from, to, seconds, layers), ...]: seconds over layers.

    It is the time per layer of the events that wait for each other so.  Every simple cycle is tried.
    """
    nodes, best = sorted({a for a, *_ in arcs} | {b for _, b, *_ in arcs}), -np.inf

    def walk(first, node, seen, seconds, layers):
        nonlocal best
        for a, b, time, lag in arcs:
            if a == node and b == first:
                best = max(best, (seconds + time)/(layers + lag))
            elif a == node and b > first and b not in seen:
                walk(first, b, seen | {b}, seconds + time, layers + lag)
    for node in nodes:
        walk(node, node, {node}, 0, 0)
    return best


def streaming(gpus, layers, layer_bytes, compute, links, host, shared, buffers=2):
    """Tasks of GPUs that go forward through layers whose weights lie in host memory: (tasks, capacities).

    links: bytes per second of each GPU's link; host: of the memory that all of them read.  shared: each GPU fetches its
    share of a layer and all wait for all shares; otherwise each fetches the layer.
    """
    tasks, part = [], layer_bytes/gpus if shared else layer_bytes
    for g, i in itertools.product(range(gpus), range(layers)):
        free = (f"compute {g} {i - buffers}",) if i >= buffers else ()
        tasks.append(Task(f"fetch {g} {i}", f"copy {g}", {f"link {g}": part, "host": part}, free))
        need = tuple(f"fetch {other} {i}" for other in range(gpus)) if shared else (f"fetch {g} {i}",)
        tasks.append(Task(f"compute {g} {i}", f"gpu {g}", {f"gpu {g}": compute}, need))
    return tasks, {"host": host} | {f"{what} {g}": rate for g in range(gpus) for what, rate in (("link", links), ("gpu", 1.0))}


def node_step(gpus, layers, params, forward, links, host, drives, *, rounds=1, weights=2, grads=2, adding=6, state=12,
              touched=28, on_drives=1.0, waits="all", held=4, backward=2):
    """Tasks of one training step whose optimizer state lies on drives and is updated by the CPU: (tasks, capacities).

    forward: seconds of a layer and micro-batch on a GPU; backward takes `backward` times as long, 3 if the layer is computed
    again; `rounds` micro-batches.  After a layer's backward each GPU sends the gradients of its share down its link, and
    they are added to those of earlier micro-batches (`adding` bytes of host memory a parameter).  Then the state of a layer
    is read (a share on_drives of `state` bytes a parameter), updated (`touched` bytes of host memory), written, and its new
    weights go up; `held` layers find room in host memory at a time.  drives: bytes per second of all drives, reads and
    writes together.
    waits: an update begins after "all" gradients, as clipping asks, after its "own" layer's, or with the step, on
    gradients of the step before ("none").  ValueError for another.
    """
    if waits not in ("all", "own", "none"):
        raise ValueError(f"waits = {waits!r}; allowed: 'all', 'own', 'none'")
    share, whole, tasks = params/layers/gpus, params/layers, []
    every, down = range(gpus), list(reversed(range(layers)))
    for r in range(rounds):
        tasks += [Task(f"forward {r} {g} {i}", f"gpu {g}", {f"gpu {g}": forward}) for g in every for i in range(layers)]
        for i, g in itertools.product(down, every):
            tasks += [Task(f"backward {r} {g} {i}", f"gpu {g}", {f"gpu {g}": backward*forward}),
                      Task(f"gradient {r} {g} {i}", f"down {g}", {f"down {g}": grads*share, "host": grads*share},
                           (f"backward {r} {g} {i}",)),
                      Task(f"add {r} {g} {i}", f"cpu {g}", {"host": adding*share}, (f"gradient {r} {g} {i}",))]
    moved = on_drives*state*whole
    for n, i in enumerate(down):
        last = {"all": 0, "own": i, "none": None}[waits]
        need = () if last is None else tuple(f"add {rounds - 1} {g} {last}" for g in every)
        room = (f"write {i + held}",) if n >= held else ()
        tasks += [Task(f"read {i}", "read", {"drives": moved, "host": moved}, need + room),
                  Task(f"update {i}", "cpu", {"host": touched*whole}, (f"read {i}",)),
                  Task(f"write {i}", "write", {"drives": moved, "host": moved}, (f"update {i}",))]
        tasks += [Task(f"weights {g} {i}", f"up {g}", {f"up {g}": weights*share, "host": weights*share}, (f"update {i}",))
                  for g in every]
    capacity = {"host": host, "drives": drives}
    for g in every:
        capacity |= {f"gpu {g}": 1.0, f"down {g}": links, f"up {g}": links}
    return tasks, capacity


def span(trace, *queues):
    """First start and last stop of these queues (all queues without a name)."""
    chosen = [s for s in trace.values() if not queues or s.queue in queues]
    return min(s.start for s in chosen), max(s.stop for s in chosen)


# ---- space and wear
def place(items, tiers):
    """Items to tiers, the densest first into the fastest tier with room, cut where it ends: {item: {tier: bytes}}.

    items: {name: (bytes, touched bytes per step)}; tiers: [(name, room, bytes per second), ...], fastest first.
    ValueError if they do not fit.
    """
    room = [[name, space] for name, space, _ in tiers]
    placed = {}
    for item, (size, _) in sorted(items.items(), key=lambda kv: -kv[1][1]/kv[1][0]):
        placed[item] = {}
        for slot in room:
            part = min(size, slot[1])
            if part > 0:
                placed[item][slot[0]], slot[1], size = part, slot[1] - part, size - part
        if size > 1e-9*items[item][0]:
            raise ValueError(f"{item}: {size:g} bytes find no room")
    return placed


def access_time(placed, items, tiers):
    """Seconds per step of all accesses, one tier after the other, for what `place` returns."""
    rate = {name: speed for name, _, speed in tiers}
    return sum(part*items[item][1]/items[item][0]/rate[tier] for item, parts in placed.items() for tier, part in parts.items())


def best_place(items, tiers, pieces):
    """Least access time over every way to put equal pieces of the items into tiers: tried one by one.

    pieces: {item: number of pieces}.
    """
    loose = [(items[name][0]/n, items[name][1]/n) for name, n in pieces.items() for _ in range(n)]
    best = np.inf
    for choice in itertools.product(range(len(tiers)), repeat=len(loose)):
        used = [0.0]*len(tiers)
        for (size, _), tier in zip(loose, choice):
            used[tier] += size
        if all(u <= room*(1 + 1e-12) for u, (_, room, _) in zip(used, tiers)):
            best = min(best, sum(touched/tiers[tier][2] for (_, touched), tier in zip(loose, choice)))
    return best


def steps_until_worn(written, drives, rated):
    """Steps before one of the drives has been written more than `rated` bytes; each step's bytes are striped over all."""
    worn, steps = [0.0]*drives, 0
    while all(w + written/drives <= rated for w in worn):
        worn = [w + written/drives for w in worn]
        steps += 1
    return steps


# ---- values
class Store:
    """The host: named arrays, and the bytes that crossed the link to the device (`down`) and back (`up`)."""

    def __init__(self, arrays):
        self.arrays, self.down, self.up = {k: v.copy() for k, v in arrays.items()}, 0, 0

    def fetch(self, name, buffer):
        """Copy an array into a buffer on the device."""
        buffer[...] = self.arrays[name]
        self.down += buffer.nbytes

    def send(self, name, array):
        """Copy an array from the device to the host, added to what is there under this name."""
        self.arrays[name] = self.arrays[name] + array if name in self.arrays else array.copy()
        self.up += array.nbytes


def step(w, tokens, targets, buffers, ahead=None, ahead_back=None, offload_inputs=False):
    """Loss and gradients with the blocks' weights on the host: (loss, gradients, weights' Store, inputs' Store).

    Block i computes in buffer i % buffers, forward and then backward, so its weights are fetched twice.  ahead: how many
    blocks are already being fetched while one computes forward, ahead_back backward; buffers - 1 unless told, and one
    more overwrites the block that computes.  offload_inputs: blocks keep nothing; their inputs go to the host, come
    back, and the block is computed again.
    """
    host, kept = Store({k: v for k, v in w.items() if "." in k}), Store({})
    names = tiny.blocks(w)
    forth = buffers - 1 if ahead is None else ahead
    back_by = buffers - 1 if ahead_back is None else ahead_back
    device = [{k: np.empty_like(v) for k, v in tiny.block_weights(w, names[0]).items()} for _ in range(buffers)]

    def fetch(i):
        for k, buffer in device[i % buffers].items():
            host.fetch(f"{names[i]}.{k}", buffer)

    at, n, backs = np.arange(tokens.shape[1]), len(names), []
    x, back_embed = tiny.embed(tokens, w)
    for i in range(min(forth, n)):
        fetch(i)
    for i in range(n):
        if i + forth < n:
            fetch(i + forth)
        if offload_inputs:
            kept.send(f"input {i}", x)
        x, back = tiny.block(x, device[i % buffers], at)
        backs.append(None if offload_inputs else back)
    total, back_head = tiny.head(x, w, targets)
    dy, dw = back_head(1.0)
    grads, sent = dw(), Store({})
    for i in range(n - 1, max(n - 1 - back_by, -1), -1):
        fetch(i)
    for i in reversed(range(n)):
        if i - back_by >= 0:
            fetch(i - back_by)
        back = backs[i]
        if offload_inputs:
            buffer = np.empty_like(kept.arrays[f"input {i}"])
            kept.fetch(f"input {i}", buffer)
            _, back = tiny.block(buffer, device[i % buffers], at)
        dy, dw = back(dy)
        for k, g in dw().items():
            sent.send(f"{names[i]}.{k}", g)
    host.up = sent.up
    return total, sent.arrays | tiny.add(grads, back_embed(dy)[1]()), host, kept


def adam(w, m, v, g, t, rate=1e-3, b1=.9, b2=.999, eps=1e-8):
    """New weights and moments of flat arrays after step t = 1, 2, ..."""
    m, v = b1*m + (1 - b1)*g, b2*v + (1 - b2)*g*g
    return w - rate*(m/(1 - b1**t))/(np.sqrt(v/(1 - b2**t)) + eps), m, v


def adam_by_tiles(drive, g, t, tile):
    """The same step on a Store of "w", "m", "v", in place, with one tile of each in memory at a time."""
    for i in range(0, len(g), tile):
        part = slice(i, i + tile)
        held = [drive.arrays[k][part].copy() for k in "wmv"]
        drive.down += sum(a.nbytes for a in held)
        for k, new in zip("wmv", adam(*held, g[part], t)):
            drive.arrays[k][part] = new
            drive.up += new.nbytes
