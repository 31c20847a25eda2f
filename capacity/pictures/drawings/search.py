"""Drawings of chapter 27: layouts as a map of two degrees, and what each rule leaves of them."""
from ..diagram import LEAST, Sketch
from ..shapes import width


def ground(W, columns, rows, seconds, best, *, across, up):
    """A map: seconds of the best layout in each cell, darker where slower; None where nothing fits, absent where nothing is legal.

    seconds: {(column, row): float or None};  best: the cell of the best one.
    """
    s = Sketch(W)
    left, top = 34, 14
    w, h = (W - left - 8)/len(columns), 30
    known = [v for v in seconds.values() if v]
    low, high = min(known), max(known)
    for j, row in enumerate(reversed(rows)):
        y = top + j*h
        s.text(left - 8, y + h/2 + 4, str(row), "end", soft=True, size=LEAST)
        for i, column in enumerate(columns):
            if (column, row) not in seconds:
                continue
            x, v = left + i*w, seconds[column, row]
            s.rect(x + 1, y + 1, w - 2, h - 2, "compute" if v else "", "other" if not v else "",
                   opacity=.12 + .5*(v - low)/(high - low or 1) if v else 1, line_opacity=.3, dash="" if v else "2 3")
            if (column, row) == best:
                s.rect(x + 1, y + 1, w - 2, h - 2, "", "limit", weight=2.5)
            said = f"{v:.1f}" if v else "full"
            if width(said, LEAST) < w - 4:
                s.text(x + w/2, y + h/2 + 4, said, size=LEAST, soft=not v, bold=(column, row) == best)
    y = top + h*len(rows)
    for i, column in enumerate(columns):
        s.text(left + (i + .5)*w, y + 16, str(column), soft=True, size=LEAST)
    s.text(left + w*len(columns)/2, y + 34, across, soft=True, size=LEAST)
    s.text(4, 10, up, "start", soft=True, size=LEAST)
    return s


def funnel(W, counts):
    """Bars on a logarithmic scale, [(what is left, how many)]."""
    import math
    s = Sketch(W)
    most = math.log(max(n for _, n in counts) + 1)
    beside = 0 if W < 520 else 250
    y = 6
    for what, n in counts:
        w = max(3, (W - beside - 110)*math.log(max(n, 1) + 1)/most)
        if beside:
            s.text(beside - 10, y + 15, what, "end")
            s.rect(beside, y, w, 21, "compute", opacity=.35)
            s.text(beside + w + 8, y + 15, f"{n:,}", "start", bold=True)
            y += 27
        else:
            s.text(0, y + 12, what, "start", size=LEAST)
            s.rect(0, y + 18, w, 16, "compute", opacity=.35)
            s.text(w + 8, y + 31, f"{n:,}", "start", bold=True)
            y += 42
    return s
