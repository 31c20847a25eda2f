"""The painter of shapes as SVG text, and what a figure in HTML needs around it.

`static/cx.js` paints the same shapes to the same text in JavaScript; a test compares them.
"""
import json
import math
import re
from html import escape

from ..units import show
from .shapes import COLORS, FONT, Group, Path, Rect, Text, role_of, width  # noqa: F401  (width: for those who import it here)

PAPER = "var(--cx-paper,var(--jp-layout-color0,#fff))"
HALO = f'paint-order="stroke" stroke="{PAPER}" stroke-width="4" stroke-linejoin="round"'


# ---- roles as colours --------------------------------------------------------------------------
def ink(role):
    """The colour of what is filled or drawn in a role.  ValueError for a role without a colour."""
    if role.startswith("on:"):
        return on(role_of(role))
    if role_of(role) in ("other", "paper"):
        return "currentColor" if role == "other" else PAPER
    return f"var(--cx-{role.replace('rank', 'r')},{COLORS[role]})"


def pen(role):
    """The colour for text: the role's, drawn towards the page's own so that it can be read."""
    return f"color-mix(in srgb,{ink(role)} 58%,currentColor)" if role in COLORS else ink(role)


def on(role):
    """The colour for text that stands on a filled role."""
    return {"compute": "var(--cx-on-compute,#fff)", "rank0": "var(--cx-on-compute,#fff)", "other": PAPER,
            "paper": "currentColor"}.get(role, "#111")


# ---- shapes as text ----------------------------------------------------------------------------
def paint(shapes):
    """Shapes as SVG text, in their order.  ValueError for a role without a colour."""
    return "".join(PAINT[type(shape)](shape) for shape in shapes)


def frame(shapes, W, H, label):
    """Shapes as a picture of W by H pixels that is read out as `label`."""
    return (f'<svg viewBox="0 0 {W} {math.ceil(H)}" width="{W}" height="{math.ceil(H)}" role="img" fill="none" '
            f'font-size="{FONT}" aria-label="{escape(label)}">{paint(shapes)}</svg>')


def _fill(color, opacity):
    return f' fill="{color}"' + (f' fill-opacity="{opacity:g}"' if opacity != 1 else "")


def _style(s):
    """Fill and outline of a Rect or Path."""
    out = _fill(ink(s.fill), s.opacity) if s.fill else ""
    if s.line:
        out += f' stroke="{ink(s.line)}" stroke-width="{s.weight:g}"'
        out += f' stroke-opacity="{s.line_opacity:g}"' if s.line_opacity != 1 else ""
        out += f' stroke-dasharray="{s.dash}"' if s.dash else ""
    return out


def _rect(s):
    rx = f' rx="{s.radius:g}"' if s.radius else ""
    end = f"><title>{escape(s.title)}</title></rect>" if s.title else "/>"
    return f'<rect x="{s.x:.1f}" y="{s.y:.1f}" width="{s.w:.1f}" height="{s.h:.1f}"{rx}{_style(s)}{end}'


def _path(s):
    return f'<path d="{s.d}"{_style(s)}/>'


def _text(s):
    more = f' font-size="{s.size:g}"' if s.size != FONT else ""
    more += ' font-weight="600"' if s.bold else ""
    more += ' font-style="italic" font-family="Georgia,serif"' if s.italic else ""
    more += f" {HALO}" if s.halo else ""
    more += "" if s.spoken else ' aria-hidden="true"'
    return (f'<text x="{s.x:.1f}" y="{s.y:.1f}" text-anchor="{s.anchor}"{_fill(pen(s.color), s.opacity)}{more}>'
            f"{escape(s.text)}</text>")


def _group(s):
    name = f' class="{s.name}"' if s.name else ""
    if s.clip:
        w, h = s.clip
        return (f'<svg{name} x="{s.x:.1f}" y="{s.y:.1f}" width="{w:.1f}" height="{h:.1f}" stroke-linejoin="round">'
                f"{paint(s.shapes)}</svg>")
    move = f' transform="translate({s.x:.1f} {s.y:.1f})"' if s.x or s.y else ""
    return f"<g{name}{move}>{paint(s.shapes)}</g>"


PAINT = {Rect: _rect, Path: _path, Text: _text, Group: _group}


# ---- figures in HTML ---------------------------------------------------------------------------
def slug(kind, name):
    """`name`, if it can be the id of a figure; ValueError naming it otherwise."""
    if not (isinstance(name, str) and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)):
        raise ValueError(f"{kind} name {name!r}; allowed: lower-case words and hyphens")
    return name


def attribute(spec):
    """A specification as JSON inside data-spec='...'."""
    text = json.dumps(spec, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")

def short(v):
    """A float as JSON writes it shortest."""
    return int(v) if v == int(v) and abs(v) < 2**53 else v


LAB = """<style>
.cx-lab { font-family: var(--jp-ui-font-family); color: var(--jp-content-font-color1, inherit);
  line-height: 1.3; }
.cx-lab svg { overflow: visible; max-width: 100%; }
.cx-lab svg svg { overflow: hidden; }
.cx-lab p { margin: .3em 0 !important; }
.cx-lab :is(th, td) { padding: .1em 1em .1em 0; text-align: left; }
[data-jp-theme-light="false"] .cx-lab { --cx-compute: #5CB3F2; --cx-network: #FF8A47;
  --cx-memory: #35C79B; --cx-measured: #EBA3CB; --cx-limit: #F2BD3E; --cx-idle: #A8A8A8;
  --cx-on-compute: #111; }
</style>"""                     # of a figure in JupyterLab


ROW, WIDE = 19, 520
BLACK = 'fill="currentColor"'
SOFT, BOLD = f'{BLACK} fill-opacity=".8"', f'{BLACK} font-weight="600" {HALO}'
YEAR = 365.25*86400
LONG = [60, 600, 3600, 36000, 172800, 864000, 8640000] \
    + [YEAR*m for m in (2, 10, 100, 1e3, 1e4, 1e5)]
FINE = [60*m for m in (1, 2, 5, 10, 20, 40)] + [3600*m for m in (1, 2, 5, 10, 20)] \
    + [86400*m for m in (2, 5, 10, 20, 50, 100, 200)] + [YEAR*m for m in (1, 2, 5, 10, 20, 50, 100)]


# ---- numbers on an axis ------------------------------------------------------------------------
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


def words(x, y, text, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def stroke(d, color, weight, dash="", more=""):
    return (f'<path d="{d}" stroke="{color}" stroke-width="{weight}" '
            f'stroke-dasharray="{dash}" {more}/>')


def framed(S, W, H, inner, says):
    return (f'<svg viewBox="0 0 {W} {H:.0f}" width="{W}" height="{H:.0f}" role="img" fill="none" '
            f'font-size="{FONT}" aria-label="{escape(S["title"] + ". " + says)}">{inner}</svg>')


def legend(items, W):
    """Rows of 'sample, name' that fill the width, and their height; items: label, color, dash."""
    out, x, y = "", 0, 13
    for label, color, dash in items:
        w = 30 + width(label)
        if x and x + w > W:
            x, y = 0, y + ROW
        block = dash is None
        out += (f'<rect x="{x:.1f}" y="{y - 10}" width="12" height="12" rx="2" '
                f'fill="{ink(color)}"/>' if block else stroke(f"M{x:.1f} {y - 4}h24", ink(color), 2.5, dash))
        out += words(x + (18 if block else 30), y, label, more=BLACK)
        x += w + (6 if block else 18)
    return out, y + 9


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


def grid(X, Y, x0, x1, y0, y1, xs, ys, xunit, yunit, W):
    """Light lines at the ticks, the ticks themselves and the base line."""
    def line(d, opacity):
        return stroke(d, "currentColor", 1, more=f'stroke-opacity="{opacity}"')
    out = ""
    for v in xs:
        text = show(v, xunit)
        half = width(text)/2
        out += line(f"M{X(v):.1f} {y0}V{y1}", .11)
        out += words(max(min(X(v), W - half), half), y1 + 17, text, "middle", BLACK)
    for v in ys:
        out += line(f"M{x0:.1f} {Y(v):.1f}H{x1:.1f}", .16)
        out += words(x0 - 7, Y(v) + 4, show(v, yunit), "end", BLACK)
    return out + line(f"M{x0:.1f} {y1}H{x1:.1f}", .55)


def widest(values, unit):
    return max((width(show(v, unit)) for v in values), default=0)


def thin(axis, n, pixels):
    """As many ticks, at most n, as fit side by side."""
    while n > 2:
        out = ticks(axis, n)
        if (len(out) - 1)*(widest(out, axis["unit"]) + 14) <= pixels:
            return out
        n -= 1
    return ticks(axis, 2)


# ---- lines and points --------------------------------------------------------------------------
def lines(S, D, W):
    """Curves over x with marked points, as an SVG W pixels wide."""
    x, y, curves = S["x"], S["y"], S["curves"]
    log, wide = y["scale"] == "log", W >= WIDE
    room = max(width(c["label"]) for c in curves) + 16
    beside = wide and room <= .3*W and len(curves) <= 9
    names = [(c["label"], c["color"], c["dash"]) for c in curves]
    head, top = ("", 0) if beside else legend(names, W)
    y0, h = top + 26, 270 if wide else 215
    y1 = y0 + h
    n = 7 if wide else 6
    lo, hi = span([v for c in D["curves"] for v in c] + [p[1] for p in D["points"]], y, n)
    ys = ticks({**y, "lo": lo, "hi": hi}, n)
    x0, x1 = widest(ys, y["unit"]) + 8, W - (room if beside else 10)
    X, Y = scaler(x, x["lo"], x["hi"], x0, x1), scaler(y, lo, hi, y1, y0)
    xs = thin(x, 7 if wide else 5, x1 - x0)
    out = head + words(0, top + 13, y["label"], more=SOFT)
    out += grid(X, Y, x0, x1, y0, y1, xs, ys, x["unit"], y["unit"], W)
    out += words((x0 + x1)/2, y1 + 37, x["label"], "middle", SOFT)

    px, marks, ends, says = [X(v) for v in D["xs"]], [], [], []
    inner = ""
    for c, values in zip(curves, D["curves"]):
        d, pencil, end = "", "M", None
        for u, v in zip(px, values):
            if math.isfinite(v) and (v > 0 or not log):
                w = min(max(Y(v), y0 - 400), y1 + 400)  # what leaves the picture is cut off
                d += f"{pencil}{u:.1f} {w:.1f}"
                pencil = "L"
                if y0 - 1 <= w <= y1 + 1:
                    end = (u, w)
                    marks.append(end)
            else:
                pencil = "M"
        inner += stroke(d, ink(c["color"]), 2.4, c["dash"])
        ends.append(end)
        says.append(f"{c['label']}: {show(values[0], y['unit'])} to {show(values[-1], y['unit'])}")
    out += (f'<svg class="cx-lines" x="0" y="{y0 - 2}" width="{W}" height="{h + 4}" '
            f'viewBox="0 {y0 - 2} {W} {h + 4}" stroke-linejoin="round">{inner}</svg>')
    if beside:
        seen = [i for i, e in enumerate(ends) if e]
        for i, v in zip(seen, spread([ends[i][1] for i in seen], 16, y0, y1)):
            (u, w), (name, color, _) = ends[i], names[i]
            if abs(v - w) > 3 or u < x1 - 3:
                d = f"M{u + 2:.1f} {w:.1f}L{x1 + 8:.1f} {v:.1f}"
                out += stroke(d, ink(color), 1, more='stroke-opacity="0.6"')
            out += words(x1 + 10, v + 4, name, more=f'fill="{pen(color)}"')
    out += dots(S, D, X, Y, x0, x1, y0, y1, marks)
    return framed(S, W, y1 + 44, out, "; ".join(says))


SIDES = (("start", 9, 4), ("end", -9, 4), ("middle", 0, -10), ("middle", 0, 19),
         ("start", 7, -8), ("start", 7, 17), ("end", -7, -8), ("end", -7, 17))


def dots(S, D, X, Y, x0, x1, y0, y1, marks):
    """Marked points, each labelled on the side where its label covers least."""
    def on_scale(v, axis):
        return math.isfinite(v) and (v > 0 or axis["scale"] != "log")

    def overlap(a, b):
        return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    seen = [(p, X(u), Y(v)) for p, (u, v) in zip(S["points"], D["points"])
            if on_scale(u, S["x"]) and on_scale(v, S["y"])]
    seen = [(p, u, v) for p, u, v in seen if x0 - 1 <= u <= x1 + 1 and y0 - 1 <= v <= y1 + 1]
    boxes, out = [(u - 6, v - 6, u + 6, v + 6) for _, u, v in seen], ""
    for p, u, v in seen:
        w, best, least = width(p["label"]), None, math.inf
        for anchor, dx, dy in SIDES:
            left = u + dx - {"start": 0, "middle": w/2, "end": w}[anchor]
            box = (left - 2, v + dy - 11, left + w + 2, v + dy + 4)
            cost = sum(box[0] < a < box[2] and box[1] < b < box[3] for a, b in marks)
            cost += 20*sum(overlap(box, b) for b in boxes)
            cost += 100*(box[0] < x0 or box[2] > x1 + 10 or box[1] < y0 - 12 or box[3] > y1)
            if cost < least:
                least, best = cost, (anchor, dx, dy, box)
        anchor, dx, dy, box = best
        boxes.append(box)
        out += f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4.5" fill="{ink(p["color"])}" {HALO}/>'
        out += words(u + dx, v + dy, p["label"], anchor, f'fill="{pen(p["color"])}" {HALO}')
    return out


# ---- bars --------------------------------------------------------------------------------------
def bars(S, D, W):
    """Horizontal stacked bars of named parts with totals and an optional limit line."""
    y, limit, wide = S["y"], S["limit"], W >= WIDE
    unit, totals = y["unit"], [math.fsum(b) for b in D["bars"]]
    one = len(S["bars"]) == 1
    parts = {}
    for b, values in zip(S["bars"], D["bars"]):
        for p, v in zip(b["parts"], values):
            name = f"{p['label']} {show(v, unit)}" if one else p["label"]
            parts.setdefault(p["label"], (name, p["color"], None))
    head, top = legend(parts.values(), W)
    y0 = top + (26 if limit else 6)
    names = [b["label"] for b in S["bars"]]
    longest = max(map(width, names))
    beside = wide and longest <= .3*W
    x0 = longest*1.06 + 10 if beside else 0
    step = 44 if beside else 62
    y1 = y0 + step*len(names) + (0 if beside else 4)
    lo, hi = span([*totals, *([D["limit"]] if limit else [])], y, 6)
    x1 = W - widest(totals, unit)*1.1 - 12
    X = scaler(y, lo, hi, x0, x1)
    xs = thin({**y, "lo": lo, "hi": hi}, 6, x1 - x0)
    out = head + grid(X, None, x0, x1, y0 - 4, y1, xs, [], unit, "", W)
    out += words((x0 + x1)/2, y1 + 37, y["label"], "middle", SOFT)
    inner = cut = ""
    if limit:
        text = limit["label"].replace("{}", show(D["limit"], unit))
        u, half = X(D["limit"]), width(text)/2
        out += words(max(min(u, W - half), half), y0 - 11, text, "middle", f'fill="{pen("limit")}"')
        d = f"M{u:.1f} {y0 - 6}V{y1}"
        cut = stroke(d, PAPER, 4.5) + stroke(d, ink("limit"), 2.5, "6 4")
    for k, (b, values, total) in enumerate(zip(S["bars"], D["bars"], totals)):
        v = y0 + step*k + (6 if beside else 24)
        cut += (words(x0 - 9, v + 20, b["label"], "end", BLACK) if beside
                else words(0, v - 6, b["label"], more=f"{BLACK} {HALO}"))
        at = 0
        for p, value in zip(b["parts"], values):
            if not (math.isfinite(value) and value > 0):
                continue
            u, w = X(at), X(at + value) - X(at)
            at += value
            text = show(value, unit)
            inner += (f'<rect x="{u:.1f}" y="{v}" width="{w:.1f}" height="30" '
                      f'fill="{ink(p["color"])}" stroke="{PAPER}">'
                      f'<title>{escape(p["label"])}: {text}</title></rect>')
            if width(text) + 10 < w:
                style = f'fill="{on(p["color"])}" font-weight="600" aria-hidden="true"'
                inner += words(u + w/2, v + 20, text, "middle", style)
        cut += words(X(at) + 7, v + 20, show(total, unit), more=BOLD)
    out += f'<g class="cx-lines">{inner}</g>{cut}'
    says = "; ".join(f"{n}: {show(t, unit)}" for n, t in zip(names, totals))
    return framed(S, W, y1 + 44, out, says)


def picture(S, D, W=640):
    """The picture of an explorer as SVG text; empty if it has only readouts."""
    return lines(S, D, W) if S["curves"] else bars(S, D, W) if S["bars"] else ""


# ---- words -------------------------------------------------------------------------------------
def readouts(S, D):
    """One paragraph per readout, its value in bold."""
    out = ""
    for r, v in zip(S["readouts"], D["readouts"]):
        before, after = map(escape, r["text"].split("{}"))
        value = r["words"][v.index(True)]["label"] if "words" in r else show(v, r["unit"])
        out += f"<p>{before}<strong>{escape(value)}</strong>{after}</p>"
    return out


def rows(S, D, values_at):
    """The inside of the table of values: values_at(x) gives every curve at one x."""
    def row(head, cells, more="", scope="row", tag="td"):
        return (f'<tr><th scope="{scope}">{escape(head)}</th>'
                + "".join(f"<{tag}{more}>{escape(c)}</{tag}>" for c in cells) + "</tr>")

    def say(values):
        return [show(v, S["y"]["unit"]) for v in values]
    columns = S["bars"] or S["curves"]
    if S["bars"]:
        parts = [dict(zip((p["label"] for p in b["parts"]), say(v)))
                 for b, v in zip(S["bars"], D["bars"])]
        names = dict.fromkeys(n for p in parts for n in p)
        body = [row(n, [p.get(n, "") for p in parts]) for n in names]
        body.append(row("total", say(map(math.fsum, D["bars"]))))
        if S["limit"]:
            name = S["limit"]["label"].replace("{}", "").strip()
            body.append(row(name, say([D["limit"]]*len(columns))))
    else:
        at, wide = S["x"]["unit"], f' colspan="{len(columns)}"'
        body = [row(show(v, at), say(values_at(v))) for v in ticks(S["x"], 7)]
        body += [row(f"{p['label']} at {show(u, at)}", say([v]), wide)
                 for p, (u, v) in zip(S["points"], D["points"])]
    head = row((S.get("x") or S["y"])["label"], [c["label"] for c in columns], "", "col", "th")
    return f"<thead>{head}</thead><tbody>{''.join(body)}</tbody>"
