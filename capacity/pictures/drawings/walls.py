"""Drawings of chapter 1: three limits on one axis of devices, a sum dealt to two devices, a layer and its work."""
import math

from ...units import show
from ..diagram import LEAST, SIZE, Sketch, room


def rulers(W, holds, finishes, rent, most=1e5):
    """How many devices memory, the deadline and the rent allow, on one logarithmic axis from 1 to `most`."""
    s = Sketch(W)
    x = 78 if s.narrow else 92
    w = W - x - (20 if s.narrow else 30)
    place = lambda n: x + w*math.log(n)/math.log(most)
    for k, (name, wall, color, why) in enumerate((
            ("memory", holds, "memory", "does not fit"), ("deadline", finishes, "compute", "too late"))):
        y = 6 + 50*k
        s.text(x - 10, y + 22, name, "end", color=color, bold=True)
        s.line(f"M{x} {y + 32}H{x + w}", opacity=.4, weight=1)
        b = s.rect(x, y + 4, max(place(wall) - x, 2), 28, color, "", opacity=.22, radius=0)
        s.line(f"M{b.right:.1f} {y}V{y + 36}", color, 3)
        wide = 8 + room(f"{wall:,}", SIZE, bold=True)
        inside = b.right + wide > W
        s.text(b.right + (-8 if inside else 8), y + 22, f"{wall:,}", "end" if inside else "start", bold=True)
        free = b.w - wide*inside
        if room(why) + 10 < free:
            s.text(b.x + free/2, y + 22, why, soft=True, size=LEAST)
    y, least = 106, max(holds, finishes)
    s.text(x - 10, y + 22, "rent", "end", color="limit", bold=True)
    s.rect(x, y + 6, w, 24, "limit", "", opacity=.22, radius=0)
    s.text(x + 10, y + 22, f"{show(rent, '$', 3)}, however many", "start", size=LEAST)
    y = 156
    s.text(x - 10, y + 12, "ask for", "end", bold=True)
    s.line(f"M{place(least):.1f} 6V{y + 12}", opacity=.6, dash="3 3", weight=1.2)
    s.line(f"M{place(least):.1f} {y + 8}H{x + w - 4}", weight=2.5)
    s.head(x + w + 3, y + 8, "right", size=6)
    s.line(f"M{x} {y + 28}h{w}" + "".join(f"M{place(10**k):.1f} {y + 28}v5" for k in range(round(math.log10(most)) + 1)),
           opacity=.55, weight=1)
    for k in range(round(math.log10(most)) + 1):
        if not s.narrow or k % 2 == 0:
            s.text(place(10**k), y + 48, f"{10**k:,}", soft=True, size=LEAST, spoken=False)
    s.text(x + w, y + 66, "H100s, logarithmic", "end", soft=True, size=LEAST)
    return s


def terms(W, numbers=((3, 2), (1, -5), (4, 1), (2, -3)), owner=(0, 1, 0, 1)):
    """One output of a product: its terms dealt to two devices, added up there, added up again; and what ReLU makes of it."""
    s = Sketch(W)
    n, step = len(numbers), (W - 8)/len(numbers)
    wide = min(step - 14, 104)
    ends, values = [], [a*b for a, b in numbers]
    for k, ((a, b), r) in enumerate(zip(numbers, owner)):
        box = s.sheet(4 + step*(k + .5) - wide/2, 4, wide, 34, r)
        s.text(box.cx, 26, f"{a}·{b}".replace("-", "−"), bold=True, halo=True)
        ends.append(box)
        if k < n - 1:
            s.text(4 + step*(k + 1), 26, "+")
    sums = [sum(v for v, o in zip(values, owner) if o == r) for r in (0, 1)]
    at = [W*.27, W*.73]
    for r in (0, 1):
        for box, o in zip(ends, owner):
            if o == r:
                s.line(f"M{box.cx:.1f} 40L{at[r]:.1f} 78", f"rank{r}", 1.6)
        b = s.sheet(at[r] - 58, 80, 116, 34, r)
        s.text(b.cx, 102, f"device {r}: {sums[r]}".replace("-", "−"), bold=True, halo=True)
    minus = lambda v: str(v).replace("-", "−")
    relu = [max(v, 0) for v in sums]
    rows = [("add, then ReLU", f"ReLU({minus(sum(sums))}) = {max(sum(sums), 0)}", "right"),
            ("ReLU, then add", f"{relu[0]} + {relu[1]} = {sum(relu)}", "wrong")]
    for k, (what, so, verdict) in enumerate(rows):
        y = 146 + 24*k
        s.text(0 if s.narrow else 60, y, what, "start", soft=True, size=LEAST)
        s.text(W*.62, y, so, bold=True, math=False)
        s.text(W - (2 if s.narrow else 60), y, verdict, "end", soft=True, size=LEAST)
    return s


def layer(W, parts, most, matrix):
    """A layer, part by part: its matrix to scale, and the work of a token; parts are (name, rows, columns, FLOP).

    A part of 0 rows has no weights.  `most`: FLOP at the end of the bars.  `matrix`: numbers on a side that 14 pixels draw.
    """
    s = Sketch(W)
    x0, x1 = (98, 172) if s.narrow else (150, 270)
    end = W - (62 if s.narrow else 80)
    k, y = 14/matrix, 30
    s.text(x0, 14, "weights" if s.narrow else "weights, to scale", "start", soft=True, size=LEAST)
    s.text(x1, 14, "work of a token" if s.narrow else "work of a token, forward and backward", "start", soft=True, size=LEAST)
    for name, rows, cols, flop in parts:
        tall = max(20, rows*k)
        s.text(x0 - 12, y + tall/2 + 5, name, "end", size=LEAST)
        if rows:
            s.rect(x0, y + (tall - rows*k)/2, max(cols*k, 2), rows*k, "memory", "memory", opacity=.5, radius=0)
        else:
            s.text(x0, y + tall/2 + 5, "none", "start", soft=True, size=LEAST)
        b = s.rect(x1, y + tall/2 - 8, max((end - x1)*flop/most, 1.5), 16, "compute" if rows else "measured", "",
                   opacity=.8, radius=0)
        s.text(b.right + 6, y + tall/2 + 5, f"{flop/1e9:.2f} G", "start", size=LEAST, math=False)
        y += tall + 8
    total = sum(p[3] for p in parts)
    free = sum(p[3] for p in parts if not p[1])
    s.words(0, y + 2, W, f"Without weights: {free/total:.0%} of the work".replace("%", " %"), bold=True, color="measured")
    return s
