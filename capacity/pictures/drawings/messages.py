"""Drawings of chapter 4: messages in space and time.  A message is its latency, gray, and then its bytes, coloured."""
import math

from ...units import show
from ..diagram import LEAST, Sketch
from ..shapes import width

HIGH, GAP = 20, 5                       # of a lane, between lanes


def bar(s, x, y, w, alpha, h=HIGH, text="", strong=True):
    """One message of w pixels, the first `alpha` of which are latency; a text in its bytes where there is room."""
    s.rect(x, y, alpha, h, "idle", "idle", opacity=.3, weight=.8, radius=0)
    s.rect(x + alpha, y, w - alpha, h, "network", "network", opacity=.75 if strong else .4, weight=.8, radius=0)
    if text and w - alpha > width(text, LEAST) + 4:
        s.text(x + (alpha + w)/2, y + h/2 + 5, text, size=LEAST, halo=True, spoken=False)


def lanes(s, run, alpha, x, y, w, end, of, names, text=lambda m: "", strong=lambda m: True):
    """The messages of a run in the lanes `of(message)`, time to the right, `end` seconds on w pixels; the last y."""
    for r, name in enumerate(names):
        top = y + r*(HIGH + GAP)
        s.text(x - 8, top + HIGH - 5, name, "end", soft=True, size=LEAST)
        s.line(f"M{x:.1f} {top + HIGH:.1f}h{w:.1f}", "idle", .6, opacity=.6, bottom=top + HIGH)
    for m in run.messages:
        bar(s, x + w*m.left/end, y + of(m)*(HIGH + GAP), w*(m.arrived - m.left)/end, w*alpha/end, text=text(m),
            strong=strong(m))
    return y + len(names)*(HIGH + GAP)


def clock(s, x, y, w, end, ticks):
    """A time axis: its ticks in seconds."""
    for t in ticks:
        at = x + w*t/end
        s.line(f"M{at:.1f} {y - 2:.1f}v5", "other", 1, opacity=.5, bottom=y + 3)
        s.text(at, y + 17, show(t, "s") if t else "0", "middle" if t else "start", soft=True, size=LEAST)


def arrival(s, x, y, low, text, W):
    """A dashed line at the moment when all is done, with its time above."""
    s.line(f"M{x:.1f} {y:.1f}V{low:.1f}", "other", 1.2, dash="3 3", opacity=.7, bottom=low)
    right = x + width(text, LEAST)/2 > W - 2
    s.text(W - 2 if right else x, y - 5, text, "end" if right else "middle", bold=True, size=LEAST)


def key(s, x, y):
    """What gray and the two shades of colour mean."""
    s.rect(x, y, 15, 13, "idle", "idle", opacity=.3, weight=.8, radius=0)
    s.text(x + 21, y + 11, "latency", "start", soft=True, size=LEAST)
    for k, opacity in enumerate((.75, .4)):
        s.rect(x + 84 + 15*k, y, 15, 13, "network", "network", opacity=opacity, weight=.8, radius=0)
    s.text(x + 120, y + 11, "bytes, by piece", "start", soft=True, size=LEAST)


def chain(W, run, alpha, end, ticks):
    """A broadcast down a chain: a lane for each link, the pieces numbered, shaded in turn."""
    s = Sketch(W)
    x = 44 if s.narrow else 62
    w = W - x - 8
    names = [f"{r} → {r + 1}" for r in range(run.size - 1)]
    low = lanes(s, run, alpha, x, 26, w, end, lambda m: m.source, names, lambda m: str(m.tag + 1), lambda m: m.tag % 2 == 0)
    clock(s, x, low, w, end, ticks)
    arrival(s, x + w*run.time/end, 22, low - GAP, show(run.time, "s"), W)
    key(s, x, s.low + 8)
    return s


def cuts(W):
    """One message, and the same bytes in two and in four: each cut adds a latency."""
    s = Sketch(W)
    x, alpha, size = (74, 18, 150) if s.narrow else (112, 34, 380)
    for row, parts in enumerate([[1], [.5, .5], [.2, .8], [.25]*4]):
        y, at = 4 + row*30, x
        s.text(x - 10, y + 15, ("whole", "2 halves", "cut early", "4 pieces")[row], "end", soft=True, size=LEAST)
        for k, part in enumerate(parts):
            bar(s, at, y, alpha + part*size, alpha, text="", strong=k % 2 == 0)
            if k:
                s.text(at + alpha/2, y + 15, "α", bold=True, size=LEAST, halo=True)
            at += alpha + part*size
        if row:
            s.text(at + 7, y + 15, f"+{len(parts) - 1}α" if row == 3 else "+α", "start", bold=True, size=LEAST)
    s.line(f"M{x + alpha + size:.1f} 0V{s.low:.1f}", "other", 1, dash="3 3", opacity=.6, bottom=s.low)
    return s


def all_reduces(W, runs, alpha):
    """All-reduces of the same buffer on one time axis, {name: run}; a lane for what each rank sends."""
    s = Sketch(W)
    x = 16 if s.narrow else 22
    end = max(run.time for run in runs.values())
    w, y = W - x - 8, 0
    for name, run in runs.items():
        s.text(0, y + 13, f"{name}: {run.rounds} rounds, {show(run.time, 's')}", "start", bold=True, size=LEAST)
        y = lanes(s, run, alpha, x, y + 22, w, end, lambda m: m.source, [str(r) for r in range(run.size)]) + 6
    key(s, x, y + 2)
    return s


def buckets(W, cases=((1, 100), (4, 100), (16, 100), (4, 180)), alpha=5, total=90):
    """Backward above, buckets below: each bucket leaves when its piece of backward is done and the link is free.

    cases: (number of buckets, length of backward) of each pair of lanes.
    """
    s = Sketch(W)
    x = 96 if s.narrow else 110
    scale = (W - x - 8)/max(backward + total/k + alpha for k, backward in cases)
    for row, (k, backward) in enumerate(cases):
        y, free = 4 + 60*row, 0
        s.text(x - 10, y + 15, "backward" if backward == cases[0][1] else "a longer one", "end", soft=True, size=LEAST)
        s.text(x - 10, y + 40, f"{k} bucket" + ("s" if k > 1 else ""), "end", bold=True, size=LEAST)
        for i in range(k):
            s.rect(x + scale*backward*i/k, y, scale*backward/k, HIGH, "compute", "compute", weight=.8, radius=0,
                   opacity=.6 if i % 2 == 0 else .35)
            start = max(free, backward*(i + 1)/k)
            free = start + alpha + total/k
            bar(s, x + scale*start, y + 25, scale*(free - start), scale*alpha, strong=i % 2 == 0)
        s.line(f"M{x + scale*free:.1f} {y}v{45}", "other", 1.2, dash="3 3", opacity=.7, bottom=y + 45)
    key(s, x, s.low + 10)
    return s


def ring_of_ranks(W, ranks=8):
    """Ranks on a physical ring; a stroke for each message that a link carries at a time."""
    s = Sketch(W)
    radius, cy = (54, 94) if s.narrow else (64, 104)
    for side, (title, load, said) in enumerate([("to the neighbor", 1, "1"),
                                                ("to the far side", ranks//2, f"{ranks//4} each way")]):
        cx = W*(side + .5)/2
        turn = [2*math.pi*r/ranks for r in range(ranks)]
        for stroke in range(load):
            r, way = radius + 6*(stroke - (load - 1)/2), 1 if stroke < max(load/2, 1) else -1
            at = [(cx + r*math.sin(t), cy - r*math.cos(t)) for t in turn]
            s.line("M" + "L".join(f"{u:.1f} {v:.1f}" for u, v in at) + "Z", "network", 1.6)
            for t in turn:                                # a tip in the middle of each link: with the clock, or against
                mid, edge = t + math.pi/ranks, r*math.cos(math.pi/ranks)
                u, v = cx + edge*math.sin(mid), cy - edge*math.cos(mid)
                du, dv = way*math.cos(mid), way*math.sin(mid)
                s.line(f"M{u - 4*du - 3*dv:.1f} {v - 4*dv + 3*du:.1f}L{u + 3*du:.1f} {v + 3*dv:.1f}"
                       f"L{u - 4*du + 3*dv:.1f} {v - 4*dv - 3*du:.1f}", "network", 1.6)
        for r, t in enumerate(turn):
            u, v = cx + radius*math.sin(t), cy - radius*math.cos(t)
            s.rect(u - 12, v - 12, 24, 24, "paper", "other", radius=12)
            s.text(u, v + 5, str(r), size=LEAST, spoken=False)
        s.text(cx, 14, title, bold=True, size=LEAST)
        s.text(cx, cy + radius + 32, f"{said} on each link", size=LEAST)
    return s
