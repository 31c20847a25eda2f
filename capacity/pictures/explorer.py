"""explore(): one call, one figure with sliders, alive wherever the book is read.

* JupyterLab with a kernel: ipywidgets; a move evaluates the expressions in numpy and draws an SVG.
* The HTML book: the same SVG drawn by `capacity/pictures/static/explorer.js`, from JavaScript compiled out of the
  same expressions; no kernel, no network.
* No JavaScript, an untrusted notebook: the table inside the figure. PDF: the PNG beside it.

    explore("ring-vs-tree", title="Trees win for small messages, rings for large ones",
            x=Axis("n", 1*kB, 1*GB, "message", "B"), y=Y("time", "s"),
            curves={"ring": ring_all_reduce_time,
                    "recursive doubling": (recursive_doubling_all_reduce_time, "network")},
            sliders=[Slider("P", 2, 4096, 64, "ranks"),
                     Slider("alpha", 1*us, 100*us, 10*us, "latency", "s", scale="log"),
                     Slider("beta", 1*GB, 1*TB, 50*GB, "bandwidth", "B/s", scale="log")],
            readouts=[("The two cost the same at {}.", crossover_size, "B")])

An expression is a Formula, a sympy expression or a number. Symbols are sympy symbols or the
argument names of the formulas. All values are SI floats of the symbol itself; a log slider never
speaks in exponents.
"""
import base64
import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..grammar import Formula, expression
from ..units import Unit, show
from . import graphs
from .axes import nice_step, rungs, ten
from .alive import live
from .svg import LAB, attribute, frame, short, slug

POINTS = 120                                              # of each curve
PALETTE = ["compute", "network", "memory", "measured", "limit", "other", "idle"]
DASHES = ["", "8 4", "2 3", "10 4 2 4", "4 3", "14 4", "6 3 2 3 2 3"]
ROLES = PALETTE


def _finite(who, **values):
    """Raise ValueError, naming it, for a value that is no finite number; None passes."""
    for name, v in values.items():
        try:
            good = v is None or not isinstance(v, (str, bool)) and math.isfinite(v)
        except (TypeError, OverflowError):
            good = False
        if not good:
            raise ValueError(f"{who}: {name} is {v!r}; allowed: finite numbers")


@dataclass(frozen=True)
class Slider:
    """A symbol that the reader moves through stops between lo and hi, starting at value.

    symbol: sympy symbol, or the name of a formula's argument.  lo, hi, value: its SI values.
    label: what the reader sees (the symbol's name by default).  unit: as for capacity.show.
    scale: "linear" or "log".  stops: how many, equally spaced on that scale; without it they are
    round values (1-2-5 on a log slider, or powers of two for a whole number between two of them).
    lo, hi and value are always stops.  choices: instead of all that, a list of values or a dict
    {"what the reader sees": value}; value must be one of them, or a key of the dict.
    Raises ValueError naming the slider if lo, hi, value or a choice is no finite number, or if value
    is not between lo and hi or not a choice.
    """
    symbol: object
    lo: float = None
    hi: float = None
    value: float = None
    label: str = None
    unit: str = ""
    scale: str = "linear"
    stops: int = None
    choices: object = None

    def __post_init__(self):
        if self.scale not in ("linear", "log"):
            raise ValueError(f"slider {self.name}: scale is {self.scale!r}, not linear or log")
        _finite(f"slider {self.name}", lo=self.lo, hi=self.hi)
        if not isinstance(self.value, str):
            _finite(f"slider {self.name}", value=self.value)
        if self.choices is not None:
            named = isinstance(self.choices, Mapping)
            for v in self.choices.values() if named else self.choices:
                _finite(f"slider {self.name}", choice=v)
            known = self.choices if isinstance(self.value, str) else self.choices_as_floats()
            if self.value not in known:
                raise ValueError(f"slider {self.name}: value {self.value!r} is none of the choices "
                                 f"{list(self.choices)}")
        elif None in (self.lo, self.hi, self.value):
            raise ValueError(f"slider {self.name} needs lo, hi and value, or choices and value")
        elif not self.lo < self.hi:
            raise ValueError(f"slider {self.name}: lo {self.lo:g} must be below hi {self.hi:g}")
        elif not self.lo <= self.value <= self.hi:
            raise ValueError(f"slider {self.name}: value {self.value:g} is outside "
                             f"{self.lo:g} to {self.hi:g}")
        elif self.scale == "log" and self.lo <= 0:
            raise ValueError(f"slider {self.name}: lo {self.lo:g} must be above 0 on a log scale")
        elif self.stops is not None and (type(self.stops) is not int or self.stops < 2):
            raise ValueError(f"slider {self.name}: stops is {self.stops!r}; allowed: 2, 3, ...")

    @property
    def name(self):
        return str(self.symbol)

    @property
    def text(self):
        return self.label or self.name.lstrip("\\")

    @property
    def start(self):
        """The value as a float; a key of `choices` stands for its value."""
        return float(self.choices[self.value] if isinstance(self.value, str) else self.value)

    def choices_as_floats(self):
        named = isinstance(self.choices, Mapping)
        return [float(v) for v in (self.choices.values() if named else self.choices)]

    def positions(self, whole=False, binary=False):
        """The stops in order, as floats; whole numbers, or powers of two, if the symbol is one."""
        if self.choices is not None:
            return self.choices_as_floats()
        lo, hi = float(self.lo), float(self.hi)
        log, round_values = self.scale == "log", self.stops is None
        twos = _power_of_two(lo) and _power_of_two(hi)
        if binary or whole and log and round_values and twos:
            inner = [2.0**k for k in range(math.ceil(math.log2(lo)), math.floor(math.log2(hi)) + 1)]
        elif not round_values:
            inner = (np.geomspace if log else np.linspace)(lo, hi, self.stops).tolist()
        elif log and self.unit == "s" and hi > 120:
            inner = rungs("s", lo, hi, (1, 2, 5))
        elif log:
            digits = (1, 2, 5) if hi/lo > 1.1e4 else (1, 1.5, 2, 3, 5, 7)
            powers = range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1)
            inner = [float(f"{m*ten(k):.12g}") for k in powers for m in digits]
        else:
            step = nice_step(lo, hi, 50, self.unit)
            step = max(step, 1.0) if whole else step
            inner = [float(f"{k*step:.12g}")
                     for k in range(math.ceil(lo/step), math.floor(hi/step) + 1)]
        if whole and not binary:
            inner = [float(round(v)) for v in inner]
        return sorted({v for v in inner if lo < v < hi} | {lo, hi, float(self.value)})


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: a symbol from lo to hi in SI units, on a "log" or a "linear" scale."""
    symbol: object
    lo: float
    hi: float
    label: str
    unit: str = ""
    scale: str = "log"

    def __post_init__(self):
        if self.scale not in ("linear", "log"):
            raise ValueError(f"axis {self.symbol}: scale is {self.scale!r}, not log or linear")
        _finite(f"axis {self.symbol}", lo=self.lo, hi=self.hi)
        if not self.lo < self.hi:
            raise ValueError(f"axis {self.symbol}: lo {self.lo:g} must be below hi {self.hi:g}")
        if self.scale == "log" and self.lo <= 0:
            raise ValueError(f"axis {self.symbol}: lo {self.lo:g} must be above 0 on a log scale")


@dataclass(frozen=True)
class Y:
    """The axis of values: of curves ("log" unless told) or of bars (always "linear").

    lo and hi fix its ends; without them it holds what is drawn, rounded outwards, and where sliders
    move what is drawn at any setting; a linear axis starts at 0.
    """
    label: str
    unit: str = ""
    scale: str = None
    lo: float = None
    hi: float = None

    def __post_init__(self):
        if self.scale not in ("linear", "log", None):
            raise ValueError(f"y axis: scale is {self.scale!r}, not log or linear")
        _finite("y axis", lo=self.lo, hi=self.hi)
        if None not in (self.lo, self.hi) and not self.lo < self.hi:
            raise ValueError(f"y axis: lo {self.lo:g} must be below hi {self.hi:g}")


def explore(name, *, title, sliders, x=None, y=None, curves=None, bars=None, points=None,
            readouts=None, limit=None):
    """A figure with sliders that works in JupyterLab, in the built book, on a phone and on paper.

    name      slug, unique on its page: lower case, digits, hyphens
    title     the finding, as a sentence
    sliders   [Slider, ...], one for each free symbol
    x, y      Axis and Y
    curves    {"label": expr} lines over x
    bars      {"bar": {"part": expr}} horizontal stacked bars with totals, instead of curves
    limit     ("{} of HBM", expr): a line across the bars; {} becomes its value
    points    {"label": (expr, expr)} marked places on a picture of curves
    readouts  [("It takes {}.", expr, "s"), ("The run is {}.", {"short": cond, "long": True})]
              the first condition that holds gives the word; the last must be True
    Where an expression stands, (expr, "network") also names its colour: compute, memory, network,
    idle, measured, limit or other; a point is (x, y, "measured").
    A Formula brings the domain of each argument; of a formula that was called on symbols nothing is
    left but what these symbols assume (positive, integer).
    Raises ValueError naming what is wrong: a symbol without a slider, two sliders on one symbol, a
    slider that moves nothing, stops outside a symbol's domain, an empty title, a doubled label.
    Raises NotImplementedError naming an expression that JavaScript cannot state.
    """
    return Explorer(name, title, list(sliders), x, y, curves, bars, points, list(readouts or []),
                    limit)


class Explorer:
    """A checked explorer: .spec() for JavaScript, .numbers(setting), .svg(setting), .widget()."""

    def __init__(self, name, title, sliders, x, y, curves, bars, points, readouts, limit):
        self.name, self.title, self.sliders, self.x, self.y = name, title, sliders, x, y
        slug("explorer", name)
        if not title or not title.strip():
            raise ValueError(f"{name}: the title is empty; it states the finding")
        for s in sliders:
            _is_a(Slider, name, "a slider", s)
        _is_a(Axis, name, "x", x)
        _is_a(Y, name, "y", y)
        for what, named in dict(curves=curves, bars=bars, points=points).items():
            _is_a(Mapping, name, what, named)
        curves, bars, points = dict(curves or {}), dict(bars or {}), dict(points or {})
        if bool(curves) + bool(bars) != 1 and not (readouts and not bars):
            raise ValueError(f"{name}: needs curves or bars, and not both")
        if curves and x is None:
            raise ValueError(f"{name}: curves need x=Axis(...)")
        if (curves or bars) and y is None:
            raise ValueError(f"{name}: {'curves' if curves else 'bars'} need y=Y(label, unit)")
        if x is not None and not curves:
            raise ValueError(f"{name}: x is given, but no curves")
        if points and not curves:
            raise ValueError(f"{name}: points need curves")
        if limit and not bars:
            raise ValueError(f"{name}: a limit needs bars")
        if bars and y.scale == "log":
            raise ValueError(f"{name}: parts of a bar do not add on a log scale; use 'linear'")

        self._formulas = []                             # every Formula seen: it knows domains
        self.curves = [self._item(k, v, i) for i, (k, v) in enumerate(curves.items())]
        for i, c in enumerate(self.curves):
            c["dash"] = DASHES[i % len(DASHES)]
        self.bars = [{"label": k, "parts": [self._item(p, e, None) for p, e in parts.items()]}
                     for k, parts in bars.items()]
        self._paint_parts()
        self.points = [self._point(k, v) for k, v in points.items()]
        self.readouts = [self._readout(r) for r in readouts]
        self.limit = self._item(limit[0], limit[1], None) if limit else None
        self._bind()
        self._compile()

    # ---- reading the arguments -------------------------------------------------------------
    def _expr(self, value, what):
        if isinstance(value, Formula):
            self._formulas.append(value)
        return expression(value, f"{self.name}: {what}")

    def _color(self, role, what):
        if role not in ROLES:
            raise ValueError(f"{self.name}: the colour of {what} is {role!r}; allowed: "
                             f"{', '.join(ROLES)}")
        return role

    def _item(self, label, value, index):
        value, role = value if isinstance(value, tuple) else (value, None)
        color = (self._color(role, label) if role else
                 PALETTE[index % len(PALETTE)] if index is not None else None)
        return {"label": label, "color": color, "expr": self._expr(value, label)}

    def _paint_parts(self):
        """Give a part one colour in every bar, which no other part has."""
        colors = {}
        parts = [p for b in self.bars for p in b["parts"]]
        for p in parts:
            if p["color"] and colors.setdefault(p["label"], p["color"]) != p["color"]:
                raise ValueError(f"{self.name}: the part {p['label']!r} has two colours")
        spare = [c for c in PALETTE if c not in colors.values()]
        for p in parts:
            if p["label"] not in colors:
                if not spare:
                    raise ValueError(f"{self.name}: no colour is left for the part {p['label']!r}; "
                                     f"{len(PALETTE)} parts at most")
                colors[p["label"]] = spare.pop(0)
            p["color"] = colors[p["label"]]
        for a in colors:
            for b in colors:
                if a != b and colors[a] == colors[b]:
                    raise ValueError(f"{self.name}: the parts {a!r} and {b!r} are both "
                                     f"{colors[a]!r}")

    def _point(self, label, value):
        px, py, *role = value
        return {"label": label, "color": self._color(role[0], label) if role else "other",
                "x": self._expr(px, label), "y": self._expr(py, label)}

    def _readout(self, value):
        text, what, *unit = value
        if text.count("{}") != 1:
            raise ValueError(f"{self.name}: the readout {text!r} needs exactly one {{}}")
        if isinstance(what, Mapping):
            words = [{"label": k, "expr": self._expr(c, text)} for k, c in what.items()]
            if not words or words[-1]["expr"] != True:    # noqa: E712  (sympy's true)
                raise ValueError(f"{self.name}: the last word of the readout {text!r} must have "
                                 "the condition True")
            return {"text": text, "words": words}
        return {"text": text, "unit": unit[0] if unit else "", "expr": self._expr(what, text)}

    def _exprs(self):
        """Every expression with what it belongs to."""
        for c in self.curves:
            yield "curve " + c["label"], c
        for b in self.bars:
            for p in b["parts"]:
                yield f"part {p['label']} of {b['label']}", p
        for r in self.readouts:
            for w in r.get("words", [r]):
                yield "readout " + r["text"], w
        if self.limit:
            yield "limit " + self.limit["label"], self.limit

    # ---- symbols, domains, stops ----------------------------------------------------------
    def _bind(self):
        free = {s: what for what, e in self._exprs() for s in e["expr"].free_symbols}
        for p in self.points:
            free |= {s: "point " + p["label"] for s in p["x"].free_symbols | p["y"].free_symbols}
        in_curves = {s for c in self.curves for s in c["expr"].free_symbols}
        self.args, owner, self._kinds = [], {}, []
        for control in [*self.sliders, *([self.x] if self.x else [])]:
            kind = f"the x axis {control.symbol}" if control is self.x else f"slider {control.symbol}"
            symbols = self._named(control.symbol, free)
            for s in symbols:
                if s in owner:
                    raise ValueError(f"{self.name}: {owner[s]} and {kind} both move the symbol "
                                     f"{self._argument(s)}")
                owner[s] = kind
            if not symbols & (in_curves if control is self.x else set(free)):
                known = ", ".join(sorted(map(self._argument, in_curves if control is self.x else free)))
                place = "curve" if control is self.x else "expression"
                raise ValueError(f"{self.name}: {kind} is in no {place}; the symbols are {known or 'none'}")
            self.args.append(tuple(sorted(symbols, key=str)))
            self._kinds.append(self._domain(symbols))
        for s, what in sorted(free.items(), key=lambda item: str(item[0])):
            if s not in owner:
                twin = next((f" ({k} moves another symbol of that name, with other assumptions)"
                             for o, k in owner.items() if o.name == s.name), "")
                raise ValueError(f"{self.name}: no slider for the symbol {self._argument(s)} of the {what}{twin}")
        if self.x:
            fixed = [(what, e["expr"].free_symbols) for what, e in self._exprs()
                     if not what.startswith("curve")]
            fixed += [("point " + p["label"], p["x"].free_symbols | p["y"].free_symbols)
                      for p in self.points]
            for what, symbols in fixed:
                if symbols & set(self.args[-1]):
                    raise ValueError(f"{self.name}: the {what} depends on the x axis "
                                     f"{self.x.symbol}")
        labels = [s.text for s in self.sliders]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"{self.name}: two sliders have the label {label!r}")
        self.stops = []
        for s, kind in zip(self.sliders, self._kinds):
            stops = s.positions(kind["whole"], kind["binary"])
            for v in stops:
                self._inside(f"slider {s.symbol}", v, kind)
            self.stops.append(stops)
        if self.x:
            self._inside(f"the x axis {self.x.symbol}", float(self.x.lo), self._kinds[-1])
            self._inside(f"the x axis {self.x.symbol}", float(self.x.hi), self._kinds[-1])

    def _argument(self, symbol):
        """How the symbol is written in Slider(...): the name of a formula's argument, or its own."""
        named = {s: k for f in self._formulas for k, s in f.symbols.items()}
        return named.get(symbol, symbol.name.lstrip("\\"))

    def _named(self, symbol, free):
        """The sympy symbols that `symbol`, a symbol or a name, stands for."""
        if not isinstance(symbol, str):
            return {symbol}
        return ({f.symbols[symbol] for f in self._formulas if symbol in f.symbols}
                | {s for s in free if s.name.lstrip("\\") == symbol})

    def _domain(self, symbols):
        """What all of `symbols` allow: least and most (inclusive), above0, whole, binary."""
        units = [f.units[k] for f in self._formulas for k, s in f.symbols.items() if s in symbols]
        units.append(Unit(least=-math.inf))
        return {"least": max([u.least for u in units] + [0.0 for s in symbols if s.is_nonnegative]),
                "most": min(u.most for u in units), "above0": any(s.is_positive for s in symbols),
                "whole": any(s.is_integer for s in symbols) or any(u.whole for u in units),
                "binary": any(u.binary for u in units)}

    def _inside(self, who, v, kind):
        need = ("a power of two" if kind["binary"] and not _power_of_two(v)
                else "a whole number" if kind["whole"] and v != int(v)
                else "above 0" if kind["above0"] and v <= 0
                else f"at least {kind['least']:g}" if v < kind["least"]
                else f"at most {kind['most']:g}" if v > kind["most"] else None)
        if need:
            raise ValueError(f"{self.name}: {who} reaches {v:g}, but its symbol must be {need}")

    # ---- numbers ---------------------------------------------------------------------------
    def _compile(self):
        from ..js import function
        self._calls = {id(e): function(self.args, e["expr"]) for _, e in self._exprs()}
        self._places = [(function(self.args, p["x"]), function(self.args, p["y"]))
                        for p in self.points]
        self.xs = self._grid() if self.x else np.empty(0)
        self._spec = self.spec()                          # raises now what JavaScript cannot state

    def _grid(self):
        kind, lo, hi = self._kinds[-1], float(self.x.lo), float(self.x.hi)
        if kind["binary"]:
            return np.array([2.0**k for k in range(round(math.log2(lo)), round(math.log2(hi)) + 1)])
        t = np.arange(POINTS)/(POINTS - 1)
        xs = lo*(hi/lo)**t if self.x.scale == "log" else lo + (hi - lo)*t
        if kind["whole"]:
            xs = np.unique(np.floor(xs + 0.5))
        xs[0], xs[-1] = lo, hi
        return xs

    @property
    def start(self):
        """The values of the sliders before anybody moves them."""
        return [s.start for s in self.sliders]

    def numbers(self, setting=None):
        """All numbers of the picture at a setting, one float per slider, for graphs.picture()."""
        v = [np.float64(s) for s in (self.start if setting is None else setting)]

        def one(f):
            return float(f(v))
        with np.errstate(all="ignore"):
            return {
                "xs": self.xs.tolist(),
                "curves": [self.curve(c, setting, self.xs).tolist() for c in self.curves],
                "points": [(one(fx), one(fy)) for fx, fy in self._places],
                "bars": [[one(self._calls[id(p)]) for p in b["parts"]] for b in self.bars],
                "limit": one(self._calls[id(self.limit)]) if self.limit else None,
                "readouts": [[bool(self._calls[id(w)](v)) for w in r["words"]] if "words" in r
                             else one(self._calls[id(r)]) for r in self.readouts],
            }

    def curve(self, c, setting, xs):
        """One curve at an array of x, as an array of the same length."""
        v = [np.float64(s) for s in (self.start if setting is None else setting)]
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(self._calls[id(c)]([*v, xs]), float), np.shape(xs))

    # ---- the specification -----------------------------------------------------------------
    def spec(self):
        """The explorer as JSON: what explorer.js and graphs.py draw from.  NotImplementedError."""
        from ..js import javascript
        names = {s: f"v[{i}]" for i, group in enumerate(self.args) for s in group}

        def js(expr):
            return javascript(expr, names)

        def item(c):
            return {k: c[k] for k in ("label", "color", "dash") if c.get(k) is not None} \
                | {"js": js(c["expr"])}
        out = {"title": self.title, "sliders": [
            {"label": s.text, "unit": s.unit, "stops": [short(v) for v in stops],
             "at": stops.index(s.start)}
            | ({"names": list(s.choices)} if isinstance(s.choices, Mapping) else {})
            for s, stops in zip(self.sliders, self.stops)]}
        if self.x:
            kind = {k: True for k in ("whole", "binary") if self._kinds[-1][k]}
            out["x"] = {"label": self.x.label, "unit": self.x.unit, "scale": self.x.scale,
                        "lo": short(float(self.x.lo)), "hi": short(float(self.x.hi))} | kind
        if self.y:
            out["y"] = {"label": self.y.label, "unit": self.y.unit,
                        "scale": self.y.scale or ("log" if self.curves else "linear")}
            ends = {"lo": self.y.lo, "hi": self.y.hi}
            out["y"] |= {k: short(float(v)) for k, v in ends.items() if v is not None}
        out["curves"] = [item(c) for c in self.curves]
        out["bars"] = [{"label": b["label"], "parts": [item(p) for p in b["parts"]]}
                       for b in self.bars]
        out["points"] = [p | {"x": js(p["x"]), "y": js(p["y"])} for p in self.points]
        out["readouts"] = [{"text": r["text"], "words": [item(w) for w in r["words"]]}
                           if "words" in r else
                           {"text": r["text"], "unit": r["unit"], "js": js(r["expr"])}
                           for r in self.readouts]
        out["limit"] = item(self.limit) if self.limit else None
        return out

    def traces(self):
        """The same expressions for a test: {"args": [[srepr, ...], ...], "exprs": [srepr, ...]}.

        In the order curves, parts of bars, points (x, then y), readouts, limit.  A notebook keeps
        them as the plain text of the output, which nobody sees where a figure can be shown.
        """
        import sympy as sp
        return {"args": [[sp.srepr(s) for s in group] for group in self.args],
                "exprs": [sp.srepr(e) for e in self._ordered()]}

    def _ordered(self):
        return [*(c["expr"] for c in self.curves),
                *(p["expr"] for b in self.bars for p in b["parts"]),
                *(e for p in self.points for e in (p["x"], p["y"])),
                *(w["expr"] for r in self.readouts for w in r.get("words", [r])),
                *([self.limit["expr"]] if self.limit else [])]

    def live(self):
        """The specification of a figure whose sliders move, alive.live()."""
        return live(self._spec, self.args, self._ordered())

    # ---- pictures --------------------------------------------------------------------------
    def svg(self, setting=None, width=640):
        """The picture at a setting, as SVG text, `width` pixels wide; empty if there are only readouts."""
        return self._drawn(self.numbers(setting), width)

    def _drawn(self, D, width=640, spec=None):
        return frame(*graphs.picture(spec or self._spec, D, width)) if self.y else ""

    def words(self, setting=None):
        """The readouts at a setting, as HTML paragraphs."""
        return graphs.readouts(self._spec, self.numbers(setting))

    def table(self, setting=None, spec=None):
        """The table of values at a setting, as HTML; empty without a picture."""
        if not self.y:
            return ""

        def at(x):
            return [float(self.curve(c, setting, np.float64(x))) for c in self.curves]
        return f"<table>{graphs.rows(spec or self._spec, self.numbers(setting), at)}</table>"

    def setting_text(self):
        """'ranks = 64, latency = 10 µs': the sliders before anybody moves them."""
        return ", ".join(f"{s['label']} = {_stop_text(s, s['at'])}" for s in self._spec["sliders"])

    def to_html(self):
        """The figure of the built book; readable as a table where no script runs."""
        return (f"<figure class=\"cx-explore\" id=\"{self.name}\" data-spec='{attribute(self._spec)}'>\n"
                f"<figcaption>{html.escape(self.title)}</figcaption>\n"
                f"<p>{html.escape(self.setting_text())}</p>\n"
                f"{self.table()}\n{self.words()}\n</figure>")

    def png(self, dpi=144):
        """The picture for paper at the first setting, with title, setting and readouts, as the bytes of a PNG."""
        from .paper import sheet
        D = self.numbers()
        drawn = graphs.picture(self._spec, D, 640)[:3] if self.y else ([], 640, 0)
        said = [before + value + after for before, after, value in graphs.said(self._spec, D)]
        return sheet(self.title, self.setting_text(), drawn, said, dpi)

    # ---- ipywidgets ------------------------------------------------------------------------
    def widget(self):
        """Sliders, picture, readouts and table, recomputed by the kernel."""
        import ipywidgets as W
        S, wide = self.live(), W.Layout(width="100%", max_width="640px")
        style = {"description_width": f"{max((len(s['label']) for s in S['sliders']), default=0)}ch"}
        controls = [W.SelectionSlider(
            options=[(_stop_text(s, i), v) for i, v in enumerate(s["stops"])], index=s["at"],
            description=s["label"], style=style, layout=wide)
            for s in S["sliders"]]
        title = W.HTML(f"{LAB}<strong>{html.escape(self.title)}</strong>")
        picture, table = W.HTML(), W.HTML()
        drawer = W.Accordion([table], titles=("Values as a table",), layout=wide)

        def redraw(_=None):                   # one message a move; the table only while it is seen
            setting = [float(c.value) for c in controls]
            D = self.numbers(setting)
            said = graphs.readouts(S, D)
            picture.value = (f'<div class="cx-lab">{self._drawn(D, spec=S)}'
                             f'<div aria-live="polite">{said}</div></div>')
            if drawer.selected_index == 0:
                table.value = f'<div class="cx-lab">{self.table(setting, S)}</div>'
        for c in controls:
            c.observe(redraw, "value")
        drawer.observe(redraw, "selected_index")
        redraw()
        return W.VBox([title, *controls, picture, *([drawer] if self.y else [])])

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": f"{self!r}\n{json.dumps(self.traces())}", "text/html": self.to_html(),
                "image/png": base64.b64encode(self.png()).decode()}
        self._widget = self.widget()                      # keeps its callbacks alive
        view = self._widget._repr_mimebundle_()
        return data | {k: v for k, v in view.items() if "widget-view" in k}

    def __repr__(self):
        return f"explore({self.name!r})"


def _stop_text(slider, i):
    return slider["names"][i] if "names" in slider else show(slider["stops"][i], slider["unit"])


def _is_a(kind, name, what, value):
    if value is not None and not isinstance(value, kind):
        wanted = "a dict of labels" if kind is Mapping else kind.__name__ + "(...)"
        raise ValueError(f"{name}: {what} is {value!r}; allowed: {wanted}")


def _power_of_two(v):
    return v > 0 and math.log2(v) % 1 == 0
