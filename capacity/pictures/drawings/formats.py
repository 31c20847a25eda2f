"""Drawings of chapter 30: a weight on a ruler of marks, the marks of a format, scales of blocks, a promoted sum."""
import numpy as np

from ...witness import formats
from ..diagram import LEAST, Sketch, room

SMALL = LEAST


def walk(update, way, seed=3, top=1.048, fmt="bf16"):
    """The weight after each of the updates that should take it from 1 to 1.03: exact, or kept in bf16."""
    f, rng = formats.FORMATS[fmt], np.random.default_rng(seed)
    keep = {"exact": float, "to the nearest": lambda x: float(formats.nearest(x, f)),
            "at random": lambda x: float(formats.at_random(np.float64(x), f, rng))}[way]
    path = [1.0]
    for _ in range(round(.03/update)):
        path.append(keep(path[-1] + update))
    return path


def ladder(W, update, way):
    """A weight on the marks of bf16 above 1, against its updates: where it should be, and where it is."""
    s = Sketch(W)
    left, right, low, high = (62 if s.narrow else 84), W - 10, 232, 26
    marks = [m for m in 1 + np.arange(7)/128]

    def y(v):
        return low - (low - high)*(v - 1)/(marks[-1] - 1)
    for m in marks:
        s.line(f"M{left} {y(m):.1f}H{right}", "other", 1, opacity=.35)
        s.text(left - 8, y(m) + 4, f"{m:.4f}", "end", soft=True, size=SMALL, math=False)
    s.text(0, 12, "marks of bf16", "start", soft=True, size=SMALL)
    exact, path = walk(update, "exact"), walk(update, way)
    n = len(path) - 1

    def x(i):
        return left + (right - left - 6)*i/n
    s.line(f"M{x(0):.1f} {y(exact[0]):.1f}L{x(n):.1f} {y(exact[-1]):.1f}", "idle", 2, dash="5 4")
    d = f"M{x(0):.1f} {y(path[0]):.1f}"
    for i in range(1, n + 1):
        d += f"H{x(i):.1f}" + (f"V{y(path[i]):.1f}" if path[i] != path[i - 1] else "")
    s.line(d, "limit" if way == "to the nearest" else "compute", 3)
    s.text((left + right)/2, low + 24, f"{n} updates", soft=True, size=SMALL)
    s.line(f"M{left} {low + 44}h26", "idle", 2, dash="5 4")
    s.text(left + 32, low + 48, "exact", "start", soft=True, size=SMALL)
    at, below = (left, low + 68) if s.narrow else (left + 32 + room("exact") + 18, low + 48)
    s.line(f"M{at:.1f} {below - 4}h26", "limit" if way == "to the nearest" else "compute", 3)
    s.text(at + 32, below, f"rounded {way}", "start", soft=True, size=SMALL)
    return s


def marks(W, names=("e2m1", "e2m3", "e3m2", "e4m3", "e5m2")):
    """All positive marks of small formats over one axis of powers of two."""
    s = Sketch(W)
    left, right, lo, hi = 58, W - 8, -16.6, 16.4

    def x(v):
        return left + (right - left)*(np.log2(v) - lo)/(hi - lo)
    for k, name in enumerate(names):
        f, y = formats.FORMATS[name], 12 + 40*k
        v = formats.marks(f)[1:]
        first = 2.0**(1 - f.bias)
        s.text(0, y + 16, name.upper(), "start", bold=True, size=SMALL, math=False)
        s.line(f"M{left} {y + 24}H{right}", "other", 1, opacity=.25)
        for part, role in ((v[v < first], "limit"), (v[v >= first], "compute")):
            s.line("".join(f"M{x(m):.1f} {y}v24" for m in part), role, 1.1 if len(v) > 40 else 1.8)
    y = 12 + 40*len(names)
    step = 8 if s.narrow else 4
    for e in range(-16, 17, step):
        s.line(f"M{x(2.0**e):.1f} {y - 8}v5", "other", 1, opacity=.6)
        s.text(x(2.0**e), y + 12, f"2{raised(e)}" if e else "1",
               soft=True, size=SMALL, math=False, spoken=False)
    s.line(f"M{left} {y + 30}h18", "compute", 2)
    s.text(left + 24, y + 34, "with a leading one", "start", soft=True, size=SMALL)
    below = y + (54 if s.narrow else 34)
    at = left if s.narrow else left + 24 + room("with a leading one") + 24
    s.line(f"M{at:.1f} {below - 4}h18", "limit", 2)
    s.text(at + 24, below, "below it: equal steps to zero", "start", soft=True, size=SMALL)
    return s


def raised(n):
    return str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def tensor(size=32, seed=4, outlier=40.0, at=21):
    """Numbers of a normal distribution with one outlier."""
    x = np.random.default_rng(seed).normal(size=size)
    x[at] = outlier
    return x


def blocks(W, block, name="e2m1"):
    """A tensor with an outlier, rounded with one scale for each block: what is left of every number."""
    s = Sketch(W)
    x = tensor()
    y = formats.scaled(x, formats.FORMATS[name], block)
    n, mid, wide = len(x), 70, W/len(x)
    for i, (a, b) in enumerate(zip(x, y)):
        at = i*wide
        for v, role, share in ((a, "idle", .38), (b, "compute" if b else "limit", .38)):
            h = min(abs(v)*17, 54)
            left = at + (1 if role == "idle" else wide*.46)
            s.rect(left, mid - h if v > 0 else mid, wide*share, max(h, .5), role, "", opacity=.45 if role == "idle" else 1, radius=0)
        if b == 0:
            a, b, y0, y1 = at + wide*.3, at + wide*.7, mid + 60, mid + 60 + wide*.4
            s.line(f"M{a:.1f} {y0}L{b:.1f} {y1:.1f}M{a:.1f} {y1:.1f}L{b:.1f} {y0}", "limit", 1.6)
    s.line(f"M0 {mid}H{W}", "other", 1, opacity=.6)
    if abs(x).max()*17 > 54:
        k = int(np.abs(x).argmax())
        s.text((k + .5)*wide, 10, f"{x[k]:g}", bold=True, size=SMALL)
    for k in range(0, n, block or n):
        a, b = k*wide + 2, (k + (block or n))*wide - 2
        s.line(f"M{a:.1f} {mid + 82}v6H{b:.1f}v-6", "memory", 1.8)
    s.text(W/2, mid + 108, "one scale" if not block else f"one scale for each {block}", color="memory", size=SMALL, bold=True)
    return s


def promotion(W):
    """A dot product on a tensor core: groups of 32 into a narrow sum, every 128 terms into a wide one."""
    s = Sketch(W)
    slim = s.narrow
    w = (W - 8)/4
    for k in range(4):
        x = 4 + k*w
        s.rect(x, 4, w - 6, 30, "compute", "compute", opacity=.2)
        s.text(x + w/2 - 3, 24, "32" if slim else "32 products", size=SMALL)
        s.line(f"M{x + w/2 - 3:.1f} 36V52", "compute", 1.6)
        s.head(x + w/2 - 3, 56, "down", "compute", 5)
    s.rect(4, 60, W - 14, 30, "limit", "limit", opacity=.25)
    s.text(W/2, 80, "a sum cut to 13 bits" if slim else "a sum cut to 13 bits behind its leading one", size=SMALL, bold=True)
    s.line(f"M{W/2:.1f} 92V124", "memory", 2)
    s.head(W/2, 128, "down", "memory", 5)
    s.text(W/2 + 10, 112, "after every 128 terms", "start", soft=True, size=SMALL)
    s.rect(4, 132, W - 14, 30, "memory", "memory", opacity=.25)
    s.text(W/2, 152, "a sum in fp32", size=SMALL, bold=True)
    return s
