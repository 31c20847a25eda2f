"""What a figure with sliders has to know of all its settings: axes that rest, and where its sentences point.

S the specification, Explorer.spec(); args the symbols of each slider, then those of x; exprs the expressions in the
order of Explorer.traces().  The committed files hold S as it is; a page and a kernel draw live(S, args, exprs).
"""
import math
import random
import re

import numpy as np

from ..js import function
from ..units import show
from .axes import rungs, span
from .shapes import width

FAR = {"log": 10, "linear": 2}            # no axis goes further beyond what is drawn at the start: it would lie flat
COUNTED = re.compile(r"\b(parameters|tokens|count|largest unit)\b")
UNITS = {"s", "B", "B/s", "FLOP", "FLOP/s", "FLOP/B", "%", "$"}
WHOLE = "devices", "H100s"                # of these nobody has a part


def live(S, args, exprs):
    """S with `rest` (the axis of values at every setting), `room` (of the numbers beside bars), `reads` and units of counts.

    reads: [[k, c, x], ...] says that readout k is a value of curve c at x, or is itself the place (x None) where that
    curve crosses another, turns or has one and the same value at every setting.
    """
    S, F = counted(S), Functions(S, args, exprs)
    if not S.get("y"):
        return S
    if S["bars"]:
        S["room"] = round(max(width(show(v, S["y"]["unit"])) for v in F.totals()), 1)
    if not {"lo", "hi"} <= S["y"].keys():
        S["rest"] = F.rest()
    reads = F.reads() if S["curves"] else []
    return S | ({"reads": reads} if reads else {})


def counted(S):
    """A copy of S in which a million parameters are 1 M, a billion 1 B, and devices are whole."""
    def unit(thing):
        if thing["label"] in WHOLE:
            return {"unit": "⌈"}
        return {"unit": "#"} if not thing["unit"] and not thing.get("whole") and COUNTED.search(thing["label"]) else {}
    S = S | {k: S[k] | unit(S[k]) for k in ("x", "y") if S.get(k)} | {"sliders": [s | unit(s) for s in S["sliders"]]}
    return S | {"readouts": [r if "words" in r else r | {"unit": "⌈" + r["unit"]} if r["unit"] in WHOLE else
                             r | {"unit": "#" + r["unit"]} if r["unit"] in ("tokens", "parameters") or re.search(
                                 r"\{\} (tokens|parameters)", r["text"]) and not r["unit"] else r for r in S["readouts"]]}


class Functions:
    """The expressions of a figure, at one setting or over all stops."""

    def __init__(self, S, args, exprs):
        self.S, self.args, rest = S, args, iter(exprs)
        self.stops = [np.array(s["stops"], float) for s in S["sliders"]]
        self.at = [stops[s["at"]] for s, stops in zip(S["sliders"], self.stops)]

        def take(n):
            return [self._expr(next(rest)) for _ in range(n)]
        self.curves = take(len(S["curves"]))
        self.bars = [take(len(b["parts"])) for b in S["bars"]]
        self.points = [take(2) for _ in S["points"]]
        self.readouts = [take(len(r.get("words", "1"))) for r in S["readouts"]]
        self.limit = take(1) if S["limit"] else []
        self.xs = _grid(S["x"]) if S.get("x") else np.empty(0)

    def _expr(self, e):
        return function(self.args, e), {i for i, group in enumerate(self.args) if set(group) & e.free_symbols}

    def _over(self, terms):
        """The sum of `terms` over every stop of the sliders that move it, and over x, as arrays."""
        n = len(self.stops)
        first, *others = sorted(set().union(*(used for _, used in terms)) - {n}) or [0]
        v = [*self.at, *([self.xs] if self.S.get("x") else [])]
        for i, grid in zip(others, np.meshgrid(*(self.stops[i] for i in others), indexing="ij", sparse=True)):
            v[i] = grid[..., None]
        for u in self.stops[first]:
            v[first] = u
            with np.errstate(all="ignore"):
                yield sum(np.asarray(f(v), float) for f, _ in terms)

    def _drawn(self):
        """What stands on the axis of values, each as a list of terms."""
        return [*([c] for c in self.curves), *([p[1]] for p in self.points), *self.bars, *([self.limit] if self.limit else [])]

    def _ends(self, arrays):
        lo, hi = math.inf, -math.inf
        for a in arrays:
            a = a[np.isfinite(a) & ((a > 0) | (self.S["y"]["scale"] != "log"))]
            lo, hi = (min(lo, a.min()), max(hi, a.max())) if a.size else (lo, hi)
        return lo, hi

    def start(self):
        """(lo, hi) of what is drawn at the start."""
        v = [*self.at, self.xs]
        with np.errstate(all="ignore"):
            return self._ends([sum(np.asarray(f(v), float) for f, _ in terms) for terms in self._drawn()])

    def reach(self):
        """(lo, hi) of what is drawn at any setting."""
        return self._ends(a for terms in self._drawn() for a in self._over(terms))

    def rest(self):
        """Round ends of an axis that holds what is drawn at any setting, as far as the start can still be read on it."""
        y = self.S["y"]
        (a, b), (lo, hi), scale = self.start(), self.reach(), y["scale"]
        if lo > hi:
            return span((), y, 6)
        most = FAR[scale]*(b if scale == "log" else max(abs(a), abs(b)))
        if self.limit:
            most = max(most, self._ends(self._over(self.limit))[1])
        lo, hi = max(lo, a/FAR[scale] if scale == "log" else -most), min(hi, most)
        if scale == "linear":
            return span((lo, hi), y, 6)
        steps = rungs(y["unit"], lo, hi, (1, 2, 5)) + rungs(y["unit"], lo, hi)
        return [y.get("lo", max((v for v in steps if v <= lo*(1 + 1e-9)), default=lo)),
                y.get("hi", min((v for v in steps if v >= hi*(1 - 1e-9)), default=hi))]

    def totals(self):
        """Totals of bars, from the least to the greatest."""
        values = np.unique(np.concatenate([a.ravel() for b in self.bars for a in self._over(b)]))
        values = values[np.isfinite(values)]
        return values[np.linspace(0, len(values) - 1, min(len(values), 400)).astype(int)]

    # ---- where a sentence points
    def reads(self):
        """See live(). What holds at the start and at seven other settings, to six digits, holds."""
        rng, out = random.Random(0), []
        settings = [self.at] + [[rng.choice(s) for s in self.stops] for _ in range(7)]
        with np.errstate(all="ignore"):
            for k, (r, terms) in enumerate(zip(self.S["readouts"], self.readouts)):
                if "words" not in r:
                    f, used = terms[0]
                    whole = math.ceil if r["unit"] in WHOLE else float
                    out += [[k, c, x] for c, x in self._value(f, settings, whole)
                            or self._comparable(r) and self._place(f, used, settings) or []]
        return out

    def _comparable(self, r):
        return not (r["unit"] in UNITS and r["unit"] != self.S["x"]["unit"] or re.search(r"\b(factor|times)\b", r["text"]))

    def _value(self, f, settings, whole):
        """[(c, x)] of the curve whose value at x the readout is, at each setting."""
        for c, (g, used) in enumerate(self.curves):
            if len(self.stops) in used:
                for x in self._roots(lambda x: float(g([*self.at, x])) - float(f(self.at))):
                    if all(_same(whole(g([*v, x])), whole(f(v))) for v in settings):
                        return [(c, x)]
        return []

    def _roots(self, h):
        """Round x of the axis where h can be 0: between two points of the curve, or a power of two, where it may only touch."""
        yield from (2.0**k for k in range(21) if self.xs[0] <= 2**k <= self.xs[-1])
        ys = [h(x) for x in self.xs]
        for a, b, u, v in zip(self.xs, self.xs[1:], ys, ys[1:]):
            if u == 0 or u*v <= 0 and math.isfinite(u*v):
                for _ in range(60):
                    m = (a + b)/2
                    a, b, u = (m, b, h(m)) if u*h(m) > 0 else (a, m, u)
                yield from (float(f"{b:.{digits}g}") for digits in (1, 2, 3, 6))

    def _place(self, f, used, settings):
        """[(c, None)] of the curve that crosses another, turns or has one value where the readout says."""
        x, lo, hi = len(self.stops), self.S["x"]["lo"], self.S["x"]["hi"]
        seen = [(v, float(f(v))) for v in settings + [[*self.at[:i], u, *self.at[i + 1:]] for i in sorted(used) for u in self.stops[i]]]
        seen = [(v, u) for v, u in seen if lo < u < hi]
        if len({u for _, u in seen}) < 3:
            return []
        values = [[float(g([*v, u])) for g, _ in self.curves] for v, u in seen]
        for c, (g, used) in enumerate(self.curves):
            if x not in used:
                continue
            own = [row[c] for row in values]
            crossed = any(d != c and all(_same(row[c], row[d]) for row in values) for d in range(len(self.curves)))
            if crossed or all(_same(u, own[0]) for u in own) or self._turns(g, seen, own):
                return [(c, None)]
        return []

    def _turns(self, g, seen, own):
        grids = [np.broadcast_to(np.asarray(g([*v, self.xs]), float), self.xs.shape) for v, _ in seen]
        return any(all(sign*y <= (sign*ys).min() + 1e-3*abs(y) and (sign*ys).max() > sign*y + .05*abs(y)
                       for ys, y in zip(grids, own)) for sign in (1, -1))


def _grid(x):
    lo, hi, n = x["lo"], x["hi"], 120
    if x.get("binary"):
        return 2.0**np.arange(round(math.log2(lo)), round(math.log2(hi)) + 1)
    xs = np.geomspace(lo, hi, n) if x["scale"] == "log" else np.linspace(lo, hi, n)
    return np.unique(np.floor(xs + .5)) if x.get("whole") else xs


def _same(a, b):
    return abs(a - b) <= 1e-6*max(abs(a), abs(b))
