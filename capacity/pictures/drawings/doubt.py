"""Drawings of chapter 6: what each doubt does to an estimate, and products of guesses that err to either side."""
from ...units import show
from ..diagram import LEAST, Sketch

TALL = 340                       # pixels of a spread of one


def doubts(W, parts, rest, time, bet, held, room):
    """A step as boxes: as wide as a constant's part of the step, as tall as its spread; below them what no constant explains.

    parts: [(name, part of the step, spread, role)];  rest: a spread that moves the whole step;  time: seconds
    bet: (low, high) seconds, two to one;  held, room: bytes needed, and of the device
    """
    s = Sketch(W)
    wide = W - 2
    s.text(0, 13, f"a device: {show(held, 'B')} of {show(room, 'B')}", "start", size=LEAST)
    s.rect(1, 20, wide, 14, "", "other", line_opacity=.5)
    s.rect(1, 20, wide*min(held/room, 1), 14, "memory" if held <= room else "limit", "", opacity=.5)
    base = 46 + max(TALL*spread for _, _, spread, _ in parts)
    x, whole = 1, sum(part for _, part, *_ in parts)
    for _, part, spread, color in parts:
        w = wide*part/whole
        s.rect(x, base - TALL*spread, w, TALL*spread, color, color, opacity=.45, radius=0)
        x += w
    s.rect(1, base + 2, wide, TALL*rest, "limit", "limit", opacity=.3, radius=0)
    s.text(W/2, base + 6 + TALL*rest/2, "what no constant explains", bold=True, size=LEAST)
    y = base + TALL*rest + 24
    ends = (W - 150, W - 70, W - 2) if s.narrow else (W - 330, W - 170, W - 2)
    heads = ("part", "doubt", "moves") if s.narrow else ("part of the step", "its doubt", "moves the step by")
    for end, word in zip(ends, heads):
        s.text(end, y, word, "end", soft=True, size=LEAST)
    for name, part, spread, color in [*parts, ("no constant", 1, rest, "limit")]:
        y += 19
        s.rect(1, y - 10, 12, 11, color, "", opacity=.6, radius=1)
        s.text(19, y, name, "start", size=LEAST)
        for end, v in zip(ends, (part, spread, part*spread)):
            s.text(end, y, show(v, "%", 2), "end", size=LEAST, math=False)
    y += 16
    place = s.scale(1, y + 16, wide, 20, "s")
    low, high = map(place, bet)
    s.rect(low, y, high - low, 14, "measured", "measured", opacity=.35, radius=1)
    s.line(f"M{place(time):.1f} {y - 3:.1f}v20", "measured", 3, bottom=y + 17)
    return s


def outcomes(W, products, inside):
    """Products of guesses on a logarithmic line from a half to two, one dot each, stacked where they coincide."""
    import math
    s = Sketch(W)
    y, left, right = 92, 30, W - 30

    def place(v):
        return left + (right - left)*(math.log2(v) + 1)/2
    a, b = map(place, inside)
    s.rect(a, 12, b - a, y - 12, "measured", "", opacity=.15, radius=3)
    s.line(f"M{left:.1f} {y}H{right:.1f}", weight=1)
    for v, word in ((.5, "half"), (.8, "0.8"), (1, "right"), (1.25, "1.25"), (2, "twice")):
        s.line(f"M{place(v):.1f} {y}v5", weight=1)
        s.text(place(v), y + 19, word, soft=True, size=LEAST, math=False)
    seen = {}
    for v in products:
        at = round(place(v))
        n = seen[at] = seen.get(at, 0) + 1
        s.rect(at - 9, y - 24*n, 18, 18, "compute", "compute", opacity=.6, radius=9)
    return s
