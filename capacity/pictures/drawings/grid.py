"""Drawings of chapter 24: a cube of ranks, a map of layouts, steps as rows of causes."""
from ..diagram import LEAST, Sketch

AXES = {"tensor": "compute", "pipeline": "network", "data": "memory"}
CAUSES = {"products": "compute", "between": "memory", "tensor": "network", "messages": "measured", "head": "limit", "bubble": "idle",
          "gradients": "other"}


def cube(W, groups):
    """Eight ranks, 2 x 2 x 2, joined along the axis of `groups`: tensor to the right, pipeline up, data to the back."""
    s = Sketch(W)
    slim = s.narrow
    wide, tall, back, rise, r = (112, 92, 60, 46, 17) if slim else (190, 100, 150, 52, 18)
    left = max((W - wide - back)/2, 78)                     # "layers" stands before it

    def at(d, p, t):
        return left + wide*t + back*d, 20 + tall*(1 - p) + rise*(1 - d)
    ranks = [(d, p, t) for d in (1, 0) for p in (0, 1) for t in (0, 1)]
    for axis, name in enumerate(("data", "pipeline", "tensor")):
        for a in ranks:
            if a[axis] == 0:
                b = tuple(1 if k == axis else c for k, c in enumerate(a))
                (x, y), (u, v) = at(*a), at(*b)
                on = name == groups
                s.line(f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}", AXES[name] if on else "other", 5 if on else 1,
                       opacity=.9 if on else .3, bottom=max(y, v))
    for a in ranks:
        x, y = at(*a)
        d, p, t = a
        s.rect(x - r, y - r + 3, 2*r, 2*r - 6, "paper", "")
        s.rect(x - r, y - r + 3, 2*r, 2*r - 6, AXES[groups], AXES[groups], opacity=.14, radius=5)
        s.text(x, y + 5, str(4*d + 2*p + t), bold=True)
    (x, y), (u, _) = at(0, 0, 0), at(0, 0, 1)
    s.text((x + u)/2, y + 34, "features →", soft=True, size=LEAST)
    s.text(x - r - 6, (y + at(0, 1, 0)[1])/2 + 4, "layers ↑", "end", soft=True, size=LEAST)
    (x, y), (u, v) = at(0, 0, 1), at(1, 0, 1)
    s.text((x + u)/2 + 12, (y + v)/2 + 20, "samples ↗", "start", soft=True, size=LEAST)
    return s


def field(W, cells, degrees, limit=1.05):
    """The best step of each (t, p), t to the right, p up: cells = {(t, p): (seconds, bytes or None)}; None: not legal.

    seconds None: nothing fits. The darker, the closer to the best; framed: within `limit` of it.
    """
    s = Sketch(W)
    slim = s.narrow
    left, gap = (26, 3) if slim else (92, 4)
    w = (W - left - gap*(len(degrees) - 1))/len(degrees)
    h = 40 if slim else 42
    best = min(v[0] for v in cells.values() if v and v[0])
    for i, p in enumerate(reversed(degrees)):
        y = i*(h + gap)
        s.text(left - 8, y + h/2 + 5, f"{p}" if slim else f"{p} stage{'s'*(p > 1)}", "end", soft=True, size=LEAST)
        for j, t in enumerate(degrees):
            x, cell = left + j*(w + gap), cells.get((t, p))
            if cell is None or cell[0] is None:
                s.rect(x, y, w, h, "", "other", line_opacity=.3, dash="2 3")
                s.text(x + w/2, y + h/2 + 5, "full" if cell else "–", soft=True, size=LEAST)
                continue
            ratio = cell[0]/best
            s.rect(x, y, w, h, "compute", "compute" if ratio <= limit else "", opacity=max(.05, .55 - 1.1*(ratio - 1)),
                   weight=2.2)
            s.text(x + w/2, y + h/2 - 3, f"{cell[0]:.1f}" + " s"*(not slim), bold=ratio <= limit, size=LEAST)
            s.text(x + w/2, y + h/2 + 14, f"{cell[1]/1e9:.0f}" + " GB"*(not slim), size=LEAST)
    y = len(degrees)*(h + gap) + 14
    for j, t in enumerate(degrees):
        s.text(left + j*(w + gap) + w/2, y, str(t), soft=True, size=LEAST)
    s.text(left + (W - left)/2, y + 19, "GPUs that share a layer", soft=True, size=LEAST)
    return s


def steps(W, rows):
    """Steps as rows of causes, each over its measured time: rows = [(name, {cause: share}), ...]; the line is the measured one."""
    s = Sketch(W)
    slim = s.narrow
    left, h = (52 if slim else 92), 17
    names = [c for c in CAUSES if any(parts.get(c, 0) > 0 for _, parts in rows)]
    y = s.legend(0, [(name, CAUSES[name], .75) for name in names]) + 13
    most = max(sum(parts.values()) for _, parts in rows)
    scale, top = (W - left - 56)/max(most, 1), y
    for name, parts in rows:
        s.text(left - 8, y + 13, name, "end", size=LEAST)
        x = left
        for cause in names:
            w = scale*parts.get(cause, 0)
            if w > .2:
                s.rect(x, y, w, h, CAUSES[cause], "", opacity=.75, radius=0)
            x += w
        total = sum(parts.values())
        s.text(max(x, left + scale) + 6, y + 13, f"{100*(total - 1):+.0f} %".replace("-", "−"), "start", soft=True, size=LEAST)
        y += h + 6
    s.line(f"M{left + scale:.1f} {top - 6:.1f}V{y:.1f}", "other", 1.6, dash="4 3", bottom=y)
    s.text(left + scale, y + 14, "measured", soft=True, size=LEAST)
    return s
