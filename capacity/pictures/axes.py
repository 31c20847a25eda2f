"""Numbers on an axis: round ticks, round ends, the map to pixels, and the grid.

An axis is a dict {scale: "linear" or "log", unit, lo, hi} with, where they hold, whole and binary.
`static/explorer.js` says the same in JavaScript, function by function; a test compares them.
"""
import math

from ..units import show
from .shapes import Path, Text, width

YEAR = 365.25*86400
LONG = [60, 600, 3600, 36000, 172800, 864000, 8640000] \
    + [YEAR*m for m in (2, 10, 100, 1e3, 1e4, 1e5)]
FINE = [60*m for m in (1, 2, 5, 10, 20, 40)] + [3600*m for m in (1, 2, 5, 10, 20)] \
    + [86400*m for m in (2, 5, 10, 20, 50, 100, 200)] + [YEAR*m for m in (1, 2, 5, 10, 20, 50, 100)]


def ten(power):
    return float(f"1e{power}")


def rungs(unit, lo, hi, steps=(1,)):
    """The round values of a log axis around lo..hi: steps of decades, or minutes, hours, days."""
    powers = range(math.floor(math.log10(lo)) - 1, math.ceil(math.log10(hi)) + 2)
    out = [m*ten(k) for k in powers for m in steps]
    if unit == "s" and hi > 120:
        out = [v for v in out if v < 60] + (LONG if len(steps) == 1 else FINE)
    return out


def nice_step(lo, hi, n, unit):
    """The smallest 1-2-5 step that cuts lo..hi into at most n parts, in the unit that is shown."""
    size = next((u for u in (YEAR, 86400, 3600, 60) if unit == "s" and hi >= 2*u), 1)
    raw = (hi - lo)/size/n
    p = ten(math.floor(math.log10(raw)))
    return size*p*next(m for m in (1, 2, 5, 10) if raw <= m*p*(1 + 1e-9))


def ticks(axis, n):
    """At most n round values inside axis = {scale, lo, hi, unit, whole}, in rising order."""
    lo, hi, unit = axis["lo"], axis["hi"], axis["unit"]
    if axis["scale"] != "log":
        s = max(nice_step(lo, hi, n - 1, unit), 1 if axis.get("whole") else 0)
        return [k*s for k in range(math.ceil(lo/s - 1e-9), math.floor(hi/s + 1e-9) + 1)]

    def inside(values):
        return [v for v in values if lo*(1 - 1e-9) <= v <= hi*(1 + 1e-9)]
    a, b = math.log2(lo), math.log2(hi)
    few = axis.get("binary") or b - a <= 20
    if axis.get("whole") and unit == "" and a % 1 == 0 and b % 1 == 0 and few:
        s = max(1, math.ceil((b - a)/(n - 1)))
        return [2.0**k for k in range(int(a), int(b) + 1, s)]
    coarse, long = inside(rungs(unit, lo, hi)), unit == "s" and hi > 120
    if len(coarse) < 4:
        fine = inside(rungs(unit, lo, hi, (1, 2, 5)))
        if len(fine) > n:
            fine = fine[::2] if long else inside(rungs(unit, lo, hi, (1, 3)))
        if len(fine) < 2:
            return ticks({**axis, "scale": "linear"}, n)
        return coarse if len(fine) > n else fine
    s = next(s for s in (1, 2, 3, 4, 6, 9, 12, 24) if -(-len(coarse)//s) <= n)
    if s > 1 and not long:
        return [v for v in coarse if round(math.log10(v)) % s == 0]
    return coarse[::s]


def span(values, axis, n):
    """The range of an axis that holds `values`, rounded outwards: it rests while a slider moves."""
    log, unit, lo, hi = axis["scale"] == "log", axis["unit"], axis.get("lo"), axis.get("hi")
    values = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    a, b = (min(values), max(values)) if values else (1, 10)
    if log:
        a = max(a, b*1e-12)
        r = rungs(unit, a, b)
        a = max((v for v in r if v <= a*(1 + 1e-9)), default=a)
        b = min((v for v in r if v >= b*(1 - 1e-9)), default=b)
        b = b if b > a else 10*a
    else:
        a, b = min(0, a), max(0, b)
        b = b if b > a else a + 1
        s = nice_step(a, b, n - 1, unit)
        a, b = s*math.floor(a/s + 1e-9), s*math.ceil(b/s - 1e-9)
    return (a if lo is None else lo), (b if hi is None else hi)


def scaler(axis, lo, hi, a, b):
    """The map from lo..hi on a linear or log axis to pixels a..b."""
    f = math.log10 if axis["scale"] == "log" else float
    u, k = f(lo), (b - a)/(f(hi) - f(lo))
    return lambda v: a + (f(v) - u)*k


def spread(ys, gap, top, bottom):
    """Positions near ys, at least `gap` apart, inside top..bottom."""
    order = sorted(range(len(ys)), key=lambda i: ys[i])
    out = list(ys)
    for a, b in zip(order, order[1:]):
        out[b] = max(out[b], out[a] + gap)
    limit = bottom
    for i in reversed(order):
        out[i] = max(min(out[i], limit), top)
        limit = out[i] - gap
    return out


def widest(values, unit):
    return max((width(show(v, unit)) for v in values), default=0)


def thin(axis, n, pixels, beyond):
    """As many ticks, at most n, as fit side by side; the picture ends `beyond` pixels right of the axis, and so does its last text."""
    X = scaler(axis, axis["lo"], axis["hi"], 0, pixels)
    while n > 2:
        out = ticks(axis, n)
        half = [width(show(v, axis["unit"]))/2 for v in out]
        last = min(X(out[-1]), pixels + beyond - half[-1])
        if (len(out) - 1)*(2*max(half) + 14) <= pixels and (
                len(out) < 2 or last - X(out[-2]) >= half[-1] + half[-2] + 6):
            return out
        n -= 1
    return ticks(axis, 2)


def grid(X, Y, x0, x1, y0, y1, xs, ys, xunit, yunit, W):
    """Shapes of a grid: light lines at the ticks xs and ys, the ticks themselves and the base line.

    X, Y: value -> pixel; the field is x0..x1 by y0..y1 in a picture W wide.
    """
    out = []
    for v in xs:
        text = show(v, xunit)
        half = width(text)/2
        out.append(Path(f"M{X(v):.1f} {y0:.1f}V{y1:.1f}", line="other", line_opacity=.11))
        out.append(Text(max(min(X(v), W - half), half), y1 + 17, text, "middle"))
    for v in ys:
        out.append(Path(f"M{x0:.1f} {Y(v):.1f}H{x1:.1f}", line="other", line_opacity=.16))
        out.append(Text(x0 - 7, Y(v) + 4, show(v, yunit), "end"))
    return out + [Path(f"M{x0:.1f} {y1:.1f}H{x1:.1f}", line="other", line_opacity=.55)]
