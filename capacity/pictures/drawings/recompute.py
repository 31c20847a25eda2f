"""Drawings of chapter 21: a schedule as it runs, layers upwards and time to the right."""
from ..diagram import Sketch

SMALL = 13


def lanes(s, x, y, w, h, done, layers, most):
    """One schedule: dots are runs forward, bars the kept inputs and tapes while they live, squares the gradient's steps.

    done: rows (action, i, bytes, states kept, tapes kept); most: rows of the longest schedule.
    """
    step, row = w/most, h/layers
    at = lambda i: y + h - (i + 1)*row                              # noqa: E731  layer 0 at the bottom
    s.rect(x, y, w, h, line_opacity=.25)
    alive = {}
    for t, (states, tapes) in enumerate([*(r[3:] for r in done), ((), ())]):
        now = {("state", j) for j in states} | {("tape", j) for j in tapes}
        for key in [k for k in alive if k not in now]:
            first, (kind, j) = alive.pop(key), key
            if kind == "tape":
                s.rect(x + first*step, at(j) + .12*row, max((t - first)*step, 1), .76*row, "memory", "", opacity=.75, radius=0)
            else:
                s.rect(x + first*step, at(j) + .66*row, max((t - first)*step, 1), .24*row, "network", "", radius=0)
        for key in now - alive.keys():
            alive[key] = t
    d = "".join(f"M{x + t*step:.1f} {at(i) + row/2:.1f}h{max(step, .8):.1f}" for t, (a, i, *_) in enumerate(done) if a in ("run", "tape"))
    s.line(d, "compute", max(2, min(.42*row, 4)))
    d = "".join(f"M{x + t*step:.1f} {at(i) + row/2:.1f}h{max(step, .8):.1f}" for t, (a, i, *_) in enumerate(done) if a == "back")
    s.line(d, "other", max(2, min(.42*row, 4)))
    return x + len(done)*step


def schedules(W, shown, layers):
    """Schedules on one time scale: shown = [(name, what it costs, Done), ...]; only runs and steps of the gradient take time."""
    s = Sketch(W)
    slim = s.narrow
    every = [(name, costs, [r for r in d.rows if r[0] in ("run", "tape", "back")]) for name, costs, d in shown]
    most = max(len(rows) for *_, rows in every)
    h, y = (74, 0) if slim else (84, 0)
    for name, costs, rows in every:
        s.text(0, y + 12, name, "start", bold=True)
        if slim:
            s.text(0, y + 30, costs, "start", soft=True, size=SMALL)
            y += 18
        else:
            s.text(W, y + 12, costs, "end", soft=True, size=SMALL)
        y += 20
        lanes(s, 0, y, W - 1, h, rows, layers, most)
        y += h + 14
    s.text(0, y + 8, "layers upwards", "start", soft=True, size=SMALL)
    s.text(W, y + 8, "time →", "end", soft=True, size=SMALL)
    y += 22
    x = 0
    parts = ("compute", "runs forward", 106), ("other", "gradient passes", 124), ("network", "kept input", 92), ("memory", "tape", 60)
    for k, (color, word, wide) in enumerate(parts):
        if slim and k == 2:
            x, y = 0, y + 20
        thin = color in ("compute", "other")
        s.rect(x, y + (5 if thin or color == "network" else 1), 14, 4 if thin or color == "network" else 11, color, "",
               opacity=.75 if color == "memory" else 1, radius=0)
        s.text(x + 20, y + 11, word, "start", size=SMALL)
        x += wide + 40
    return s


def ladder(W, rungs, unit):
    """Bars of memory on one scale: rungs = [(name, note, value), ...], the least one marked."""
    s = Sketch(W)
    slim = s.narrow
    left = 0 if slim else 186
    top = max(v for *_, v in rungs)
    least = min(v for *_, v in rungs)
    y = 0
    for name, note, v in rungs:
        if slim:
            s.text(0, y + 12, name, "start")
            y += 18
        else:
            s.text(left - 10, y + 17, name, "end")
        w = (W - left - (58 if slim else 64))*v/top
        s.rect(left, y, max(w, 2), 24, "memory", "", opacity=1 if v == least else .55, radius=3)
        s.text(left + w + 7, y + 17, f"{v:g}", "start", bold=v == least)
        inside = w > 8*len(note) + 16
        if note and inside:
            s.text(left + 8, y + 17, note, "start", size=SMALL, halo=True)
        y += 36
    s.text(left, y + 8, unit, "start", soft=True, size=SMALL)
    return s
