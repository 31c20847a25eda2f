"""Drawings of chapter 4: messages in space and time.  A message is its latency, gray, and then its bytes, coloured."""
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
    """What gray and coloured mean."""
    s.rect(x, y, 15, 13, "idle", "idle", opacity=.3, weight=.8, radius=0)
    s.text(x + 21, y + 11, "latency", "start", soft=True, size=LEAST)
    s.rect(x + 84, y, 15, 13, "network", "network", opacity=.75, weight=.8, radius=0)
    s.text(x + 105, y + 11, "bytes", "start", soft=True, size=LEAST)


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
    """Three all-reduces of the same buffer on the same time axis; a lane for what each rank sends."""
    s = Sketch(W)
    x = 16 if s.narrow else 22
    end = max(run.time for run in runs.values())
    w, y = W - x - 8, 0
    for name, run in runs.items():
        s.text(0, y + 13, f"{name}: {run.rounds} rounds, {show(run.time, 's')}", "start", bold=True, size=LEAST)
        y = lanes(s, run, alpha, x, y + 22, w, end, lambda m: m.source, map(str, range(run.size)).__iter__() and
                  [str(r) for r in range(run.size)]) + 6
    key(s, x, y + 2)
    return s


def ring_of_ranks(W, P=8):
    """Ranks on a physical ring: neighbors who talk load each link once, ranks half the ring apart P/2 times."""
    import math
    s = Sketch(W)
    half = W/2
    for k, (d, title) in enumerate(((1, "to the neighbor"), (P//2, "to the far side"))):
        cx, cy, R = half*(k + .5), 108, 62 if s.narrow else 74
        at = [(cx + R*math.sin(2*math.pi*r/P), cy - R*math.cos(2*math.pi*r/P)) for r in range(P)]
        load = 1 if d == 1 else P//2//2
        for r in range(P):
            (a, b), (c, e) = at[r], at[(r + 1) % P]
            s.line(f"M{a:.1f} {b:.1f}L{c:.1f} {e:.1f}", "network", 1.8*load if load > 1 else 2, opacity=.8)
        for r, (a, b) in enumerate(at):
            s.rect(a - 11, b - 11, 22, 22, "paper", "other", radius=11)
            s.text(a, b + 5, str(r), size=LEAST)
        s.text(cx, 16, title, bold=True, size=LEAST)
        s.text(cx, cy + 5, f"load {load}", size=LEAST, color="network", bold=True)
    s.low = max(s.low, 108 + 90)
    return s
