"""Drawings of chapter 22: tiers of memory, the pulse of a step, a chain of fetched layers, its three cycles."""
from ...witness import offload
from ..diagram import LEAST, Sketch, room

SMALL = LEAST


def merged(spans, role, word="", gap=1e-9):
    """Spans of a trace as bars of a lane; those that touch become one: [(start, stop, word, role)]."""
    bars = []
    for s in sorted(spans, key=lambda s: s.start):
        if bars and s.start <= bars[-1][1] + gap:
            bars[-1][1] = max(bars[-1][1], s.stop)
        else:
            bars.append([s.start, s.stop])
    return [(a, b, word, role) for a, b in bars]


def pulse(trace, device=0):
    """Lanes of one step of `witness.offload.node_step`: one GPU, its link, the CPU and the drives, with their busy share."""
    def of(kind, queue):
        return [s for name, s in trace.items() if name.startswith(kind) and s.queue == queue]
    lanes = {"GPU": merged(of("forward", f"gpu {device}"), "compute") + merged(of("backward", f"gpu {device}"), "compute"),
             "link": merged([*of("gradient", f"down {device}"), *of("weights", f"up {device}")], "network"),
             "CPU": merged([*of("update", "cpu"), *of("add", f"cpu {device}")], "memory"),
             "drives": merged([*of("read", "read"), *of("write", "write")], "limit", "read and write state", .1)}
    end = max(b for bars in lanes.values() for _, b, *_ in bars)
    return {f"{name} {sum(b - a for a, b, *_ in bars)/end:.0%}".replace("%", " %"): bars for name, bars in lanes.items()}


def tiers(W, levels, trace=None):
    """Memory in tiers, fast above: [(name, size, rate, [what lives there]), ...]; below, the pulse of a step.

    Between two tiers stand the words of the lower one's rate: what passes to it per second.
    """
    s = Sketch(W)
    y, left = 2, (0 if s.narrow else 44)
    roles = ("compute", "memory", "limit")
    for k, (name, size, rate, lives) in enumerate(levels):
        if k:
            x = 40 if s.narrow else W/2
            s.line(f"M{x - 8:.1f} {y - 36}V{y - 11}", "network", 2.5)
            s.head(x - 8, y - 5, "down", "network", 5)
            s.line(f"M{x + 8:.1f} {y - 28}V{y - 5}", "network", 2.5)
            s.head(x + 8, y - 36, "up", "network", 5)
            s.text(x + 22, y - 15, rate, "start", color="network", bold=True, size=SMALL)
        inset = left*(2 - k)
        h = 30 + 24*(len(lives) if s.narrow else 1)
        s.rect(inset, y, W - 2*inset, h, roles[k], roles[k], opacity=.1, radius=8)
        s.text(inset + 12, y + 19, name, "start", bold=True)
        s.text(W - inset - 12, y + 19, size, "end", soft=True, size=SMALL)
        x = inset + 10
        for n, what in enumerate(lives):
            wide = room(what, SMALL) + 16 if not s.narrow else W - 20
            at = y + 27 + (24*n if s.narrow else 0)
            s.rect(x, at, wide, 21, roles[k], "", opacity=.28, radius=4)
            s.text(x + wide/2, at + 15, what, size=SMALL)
            x += 0 if s.narrow else wide + 8
        y += h + 42
    if trace:
        y -= 14
        s.text(0, y, "one step; the update is one step late", "start", soft=True, size=SMALL)
        s.lanes(y + 8, pulse(trace), unit="s")
    return s


def chain(W, compute, transfer, latency, buffers, layers=6, end=None):
    """The first layers of a chain that is fetched into buffers: what the link and the GPU do, in milliseconds."""
    trace = offload.simulate(*offload.prefetching([compute*1e-3]*layers, [transfer*1e-3]*layers, latency*1e-3, buffers))
    s = Sketch(W)
    lanes = {lane: [(*trace[f"{kind} {i}"][1:3], f"{i + 1}{'abcd'[i % buffers]}", f"rank{i % buffers}") for i in range(layers)]
             for lane, kind in (("link", "fetch"), ("GPU", "compute"))}
    s.lanes(2, lanes, unit="s", end=None if s.narrow else end)
    s.text(0, s.low + 20, "1a: layer 1, in buffer a", "start", soft=True, size=SMALL)
    return s


def cycles(W):
    """Two events of a layer, fetched and computed, and the three cycles of waiting between them."""
    s = Sketch(W)
    slim = s.narrow
    bw, bh, y = (92, 40, 84) if slim else (120, 44, 84)
    x0 = 34 if slim else W/2 - bw - 110
    x1 = W - bw - 34 if slim else W/2 + 110
    a, b = s.box(x0, y, bw, bh, "fetched", "network"), s.box(x1, y, bw, bh, "computed", "compute")
    for q, role, time in ((a, "network", "T_t"), (b, "compute", "T_c")):
        s.line(f"M{q.cx - 22:.1f} {q.y - 3}C{q.cx - 46:.1f} {q.y - 52} {q.cx + 46:.1f} {q.y - 52} {q.cx + 20:.1f} {q.y - 10}",
               role, 2)
        s.head(q.cx + 18, q.y - 3, "down", role, 5)
        s.text(q.cx, q.y - 62, {"T_t": "move a layer", "T_c": "compute a layer"}[time], color=role, bold=True, size=SMALL)
        s.text(q.cx, q.y - 46, "next layer", soft=True, size=SMALL)
    s.line(f"M{a.right + 6} {a.cy - 9}H{b.x - 12}", "other", 1.5)
    s.head(b.x - 6, a.cy - 9, "right", "other", 5)
    s.text((a.right + b.x)/2, a.cy - 18, "same layer", soft=True, size=SMALL)
    low = a.bottom + 34
    s.line(f"M{b.cx:.1f} {b.bottom + 3}V{low}H{a.cx:.1f}V{a.bottom + 11}", "memory", 2)
    s.head(a.cx, a.bottom + 5, "up", "memory", 5)
    s.text(W/2, low + 20, "the buffer is free again: it serves" if slim else "the buffer is free again: it serves the layer k + 1 later",
           color="memory", bold=True, size=SMALL, math=False)
    if slim:
        s.text(W/2, low + 37, "the layer k + 1 later", color="memory", bold=True, size=SMALL, math=False)
    return s


def homes(W, bars, room_, unit="B"):
    """Bars of named bytes against the room that host memory has."""
    s = Sketch(W)
    s.memory(2, bars, room_, unit=unit, limit="host memory")
    return s
