"""The picture of an explorer as shapes, its table and its readouts, from numbers.

`static/explorer.js` is the same in JavaScript, function by function: a reader sees one picture with a kernel and
without.  A test compares the two.  Nothing here knows sympy or widgets.

Letters: S the specification, Explorer.spec(), or what live() made of it; D the numbers at one setting,
Explorer.numbers(); W the width of the picture in pixels; X, Y maps from values to pixels; (x0, x1) by (y0, y1) the
field inside the axes; u, v pixels of a place.  A picture is (shapes, W, height, what is read out).
"""
import math
from html import escape

from ..units import show
from .axes import grid, scaler, span, spread, thin, ticks, widest
from .shapes import Group, Path, Rect, Text, legend, width

WIDE = 520                      # from this width on, names stand beside the lines
SIDES = (("start", 9, 4), ("end", -9, 4), ("middle", 0, -10), ("middle", 0, 19),
         ("start", 7, -8), ("start", 7, 17), ("end", -7, -8), ("end", -7, 17))


def picture(S, D, W):
    """The picture of an explorer: lines or bars."""
    return (lines if S["curves"] else bars)(S, D, W)


# ---- lines and points --------------------------------------------------------------------------
def lines(S, D, W):
    """Curves over x with marked points."""
    x, y, curves = S["x"], S["y"], S["curves"]
    log, wide = y["scale"] == "log", W >= WIDE
    room = max(width(c["label"]) for c in curves) + 16
    beside = wide and room <= .3*W and len(curves) <= 9
    head, top = ([], 0) if beside else legend([(c["label"], c["color"], c["dash"]) for c in curves], W)
    y0, high = top + 26, 270 if wide else 215
    y1, n = y0 + high, 7 if wide else 6
    lo, hi = S.get("rest") or span([v for c in D["curves"] for v in c] + [p[1] for p in D["points"]], y, n)
    ys = ticks({**y, "lo": lo, "hi": hi}, n)
    x0, x1 = widest(ys, y["unit"]) + 8, W - (room if beside else 10)
    X, Y = scaler(x, x["lo"], x["hi"], x0, x1), scaler(y, lo, hi, y1, y0)
    xs = thin(x, 7 if wide else 5, x1 - x0, W - x1)
    out = [*head, Text(0, top + 13, y["label"], opacity=.8)]
    out += grid(X, Y, x0, x1, y0, y1, xs, ys, x["unit"], y["unit"], W)
    out.append(Text((x0 + x1)/2, y1 + 37, x["label"], "middle", opacity=.8))

    px, inside, ends, marks, says, gone = [X(v) for v in D["xs"]], [], [], [], [], []
    for c, values in zip(curves, D["curves"]):
        d, pencil, end, past = "", "M", None, None
        for u, value in zip(px, values):
            if math.isfinite(value) and (value > 0 or not log):
                v = min(max(Y(value), y0 - 400), y1 + 400)          # what leaves the picture is cut off
                d += f"{pencil}{u:.1f} {v - y0 + 2:.1f}"
                pencil = "L"
                if y0 - 1 <= v <= y1 + 1:
                    end = (u, v)
                    marks.append(end)
                else:
                    past = v
            else:
                pencil = "M"
        if past is not None and not end:                                       # all of it left: an arrow says where
            up = past < y0
            end = x1, y0 if up else y1
            gone.append(Text(x1 - 6 - 16*len(gone), y0 + 13 if up else y1 - 5, "↑" if up else "↓", "end", c["color"], bold=True))
        inside.append(Path(d, line=c["color"], weight=2.4, dash=c["dash"]))
        ends.append(end)
        says.append(f"{c['label']}: {show(values[0], y['unit'])} to {show(values[-1], y['unit'])}")
    out.append(Group(inside, 0, y0 - 2, "cx-lines", (W, high + 4)))
    if beside:
        seen = [i for i, end in enumerate(ends) if end]
        for i, at in zip(seen, spread([ends[i][1] for i in seen], 16, y0, y1)):
            (u, v), c = ends[i], curves[i]
            if abs(at - v) > 3 or u < x1 - 3:
                out.append(Path(f"M{u + 2:.1f} {v:.1f}L{x1 + 8:.1f} {at:.1f}", line=c["color"], line_opacity=.6))
            out.append(Text(x1 + 10, at + 4, c["label"], color=c["color"]))
    out += gone + dots(S, D, X, Y, x0, x1, y0, y1, marks)
    return out, W, y1 + 44, f"{S['title']}. {'; '.join(says)}"


def dots(S, D, X, Y, x0, x1, y0, y1, marks):
    """Marked points, each labelled on the side where its label covers least; marks: places of the curves."""
    def on_scale(v, axis):
        return math.isfinite(v) and (v > 0 or axis["scale"] != "log")

    def overlap(a, b):
        return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    seen = [(p, X(u), Y(v)) for p, (u, v) in zip(S["points"], D["points"])
            if on_scale(u, S["x"]) and on_scale(v, S["y"])]
    seen = [(p, u, v) for p, u, v in seen if x0 - 1 <= u <= x1 + 1 and y0 - 1 <= v <= y1 + 1]
    boxes, out = [(u - 6, v - 6, u + 6, v + 6) for _, u, v in seen], []
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
        out.append(Rect(u - 5.5, v - 5.5, 11, 11, p["color"], "paper", weight=2, radius=5.5))
        out.append(Text(u + dx, v + dy, p["label"], anchor, p["color"], halo=True))
    return out


# ---- bars --------------------------------------------------------------------------------------
def beside_line(u, w, line):
    """The rooms of a bar's part from u to w that the limit line leaves for its number."""
    return [(u, line - 4), (line + 4, w)] if u + 4 < line < w - 4 else [(u, w)]


def bars(S, D, W):
    """Horizontal stacked bars of named parts with totals and an optional limit line."""
    y, limit, wide = S["y"], S["limit"], W >= WIDE
    unit, totals, names = y["unit"], [math.fsum(b) for b in D["bars"]], [b["label"] for b in S["bars"]]
    parts = {}
    for b, values in zip(S["bars"], D["bars"]):
        for p, value in zip(b["parts"], values):
            name = f"{p['label']} {show(value, unit)}" if len(names) == 1 else p["label"]
            parts.setdefault(p["label"], (name, p["color"], None))
    head, top = legend(parts.values(), W)
    y0, longest = top + (26 if limit else 6), max(map(width, names))
    beside = wide and longest <= .3*W
    x0, step = longest*1.06 + 10 if beside else 0, 44 if beside else 62
    y1 = y0 + step*len(names) + (0 if beside else 4)
    lo, hi = S.get("rest") or span([*totals, *([D["limit"]] if limit else [])], y, 6)
    x1 = W - (S.get("room") or widest(totals, unit))*1.1 - 12
    X = scaler(y, lo, hi, x0, x1)
    xs = thin({**y, "lo": lo, "hi": hi}, 6, x1 - x0, W - x1)
    out = [*head, *grid(X, None, x0, x1, y0 - 4, y1, xs, [], unit, "", W)]
    out.append(Text((x0 + x1)/2, y1 + 37, y["label"], "middle", opacity=.8))
    inside, above, line = [], [], X(D["limit"]) if limit else math.nan
    if limit:
        text = limit["label"].replace("{}", show(D["limit"], unit))
        half = width(text)/2
        out.append(Text(max(min(line, W - half), half), y0 - 11, text, "middle", "limit"))
        d = f"M{line:.1f} {y0 - 6}V{y1}"
        above += [Path(d, line="paper", weight=4.5), Path(d, line="limit", weight=2.5, dash="6 4")]
    for k, (b, values, total) in enumerate(zip(S["bars"], D["bars"], totals)):
        v, at = y0 + step*k + (6 if beside else 24), 0
        above.append(Text(x0 - 9, v + 20, b["label"], "end") if beside else Text(0, v - 6, b["label"], halo=True))
        for p, value in zip(b["parts"], values):
            if not (math.isfinite(value) and value > 0):
                continue
            u, w = X(at), min(X(at + value), x1) - X(at)
            at += value
            if w <= 0:
                continue
            text = show(value, unit)
            inside.append(Rect(u, v, w, 30, p["color"], "paper", title=f"{p['label']}: {text}"))
            start, stop = max(beside_line(u, u + w, line), key=lambda room: room[1] - room[0])
            if width(text) + 10 < stop - start:
                inside.append(Text((start + stop)/2, v + 20, text, "middle", "on:" + p["color"], bold=True, spoken=False))
        if X(at) > x1 + 1:                                          # torn off: the number says how long it is
            above.append(Path(f"M{x1 - 9:.1f} {v + 33}l7 -36m6 0l-7 36", line="paper", weight=3))
        text, end = show(total, unit), min(X(at), x1) + 7
        off = end - 5 < line < end + width(text) + 4 and line + 7 + width(text) < W
        above.append(Text(line + 7 if off else end, v + 20, text, bold=True, halo=True))
    says = "; ".join(f"{n}: {show(t, unit)}" for n, t in zip(names, totals))
    return [*out, Group(inside, name="cx-lines"), *above], W, y1 + 44, f"{S['title']}. {says}"


# ---- words -------------------------------------------------------------------------------------
def said(S, D):
    """[(text before, text after, value)] of the readouts."""
    values = [r["words"][v.index(True)]["label"] if "words" in r else show(v, r["unit"])
              for r, v in zip(S["readouts"], D["readouts"])]
    return [(*r["text"].split("{}"), value) for r, value in zip(S["readouts"], values)]


def readouts(S, D):
    """One paragraph per readout, its value in bold."""
    return "".join(f"<p>{escape(before)}<strong>{escape(value)}</strong>{escape(after)}</p>"
                   for before, after, value in said(S, D))


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
