"""Drawings of chapter 29: who waits for whom, what passes through an average, how the reads and writes of workers lie in time."""
import numpy as np

from ..diagram import LEAST, Sketch

ROLES = {"step": ("compute", .8), "wait": ("other", .25), "send": ("network", .9)}
WORDS = {"step": "computes", "send": "sends", "wait": "waits"}
LASTS = 24.0                              # of the drawn time, in steps


def spans(how, speeds, sending=1.0, every=4, seed=29):
    """[(start, stop, kind), ...] of each of four workers: how = "all wait", "nobody waits" or "alone for four steps"."""
    rng = np.random.default_rng(seed)
    mean = {"equal": [1, 1, 1, 1], "random": [1, 1, 1, 1], "one slow": [1, 1, 1, 1.7]}[speeds]
    draw = lambda i: mean[i]*(rng.uniform(.5, 1.5) if speeds == "random" else 1)
    rows, now = [[] for _ in mean], [0.0]*len(mean)
    steps = {"all wait": 1, "nobody waits": 1, "alone for four steps": every}[how]
    while min(now) < LASTS:
        for i, row in enumerate(rows):
            for _ in range(steps):
                took = draw(i)
                row.append((now[i], now[i] + took, "step"))
                now[i] += took
        meet = max(now)
        for i, row in enumerate(rows):
            if how != "nobody waits":
                row.append((now[i], meet, "wait"))
                now[i] = meet
            row.append((now[i], now[i] + sending, "send"))
            now[i] += sending
    return [[(a, min(b, LASTS), k) for a, b, k in row if a < min(b, LASTS)] for row in rows]


def ways(W, rows):
    """A lane of time for each worker."""
    s = Sketch(W)
    left, h, step = (22, 24, 30) if s.narrow else (70, 30, 38)
    wide = (W - left)/LASTS
    for i, row in enumerate(rows):
        y = i*step
        s.text(0, y + h/2 + 4.5, str(i) if s.narrow else f"worker {i}", "start", soft=True, size=LEAST, math=False)
        for a, b, kind in row:
            color, opacity = ROLES[kind]
            s.rect(left + a*wide, y, max((b - a)*wide - 1, .6), h, color, "", opacity=opacity, radius=1)
    s.legend(len(rows)*step + 6, [(WORDS[kind], *role) for kind, role in ROLES.items()])
    return s


def told(rows):
    """A sentence about what `ways` draws."""
    share = {k: sum(b - a for row in rows for a, b, kind in row if kind == k)/LASTS/len(rows) for k in ROLES}
    done = sum(kind == "step" for row in rows for *_, kind in row)
    return (f"{share['step']:.0%} of the time is computing, {share['send']:.0%} sending, {share['wait']:.0%} waiting for others; "
            f"{done} steps are done or begun.").replace("%", " %")


def commute(W):
    """Step and average in the two orders: one square of arrows."""
    s = Sketch(W)
    w, h = (min(150, W*.4), 52)
    x1, y1 = W - w - 4, 128
    a, b = s.box(4, 22, w, h, "", "compute"), s.box(x1, 22, w, h, "", "compute")
    c, d = s.box(4, 22 + y1, w, h, "", "memory"), s.box(x1, 22 + y1, w, h, "", "memory")
    for box, words in ((a, ("weights of", "P workers")), (b, ("each has", "stepped")), (c, ("their", "average")),
                       (d, ("the same", "weights"))):
        s.text(box.cx, box.cy - 3, words[0], size=LEAST, math=False)
        s.text(box.cx, box.cy + 15, words[1], size=LEAST, math=False)
    s.arrow(a, b, "step", color="compute")
    s.arrow(c, d, "step", color="compute")
    s.arrow(a, c, color="network")
    s.arrow(b, d, color="network")
    s.text(a.cx + 10, 22 + (y1 + h)/2 + 4, "average", "start", size=LEAST, color="network")
    s.text(d.cx - 10, 22 + (y1 + h)/2 + 4, "average", "end", size=LEAST, color="network")
    return s


def tiling(W, log, until):
    """What each worker has under way, read to write, as bars that leave no gap; one write and the bars above and below it."""
    s = Sketch(W)
    left, h, step = (22, 24, 34) if s.narrow else (70, 30, 42)
    wide = (W - left)/until
    workers = sorted({u.worker for u in log})
    marked = next(u for u in log if u.worker == 0 and u.stop > .5*until)
    top = 20
    for u in log:
        y = top + u.worker*step
        hit = u.worker != marked.worker and u.start < marked.stop < u.stop
        stop = min(u.stop, until)
        if u.start < until:
            s.rect(left + u.start*wide + 1, y, (stop - u.start)*wide - 2, h, "compute" if not hit else "measured", "",
                   opacity=.75 if hit or u is marked else .3, radius=2)
            if (stop - u.start)*wide > 22 and u.stop < until:
                s.text(left + (u.start + stop)/2*wide, y + h/2 + 5, str(u.staleness), size=LEAST)
    for i in workers:
        s.text(0, top + i*step + h/2 + 4.5, str(i) if s.narrow else f"worker {i}", "start", soft=True, size=LEAST, math=False)
    x = left + marked.stop*wide
    s.line(f"M{x:.1f} {top - 4}V{top + len(workers)*step - 6}", "limit", 2, bottom=top + len(workers)*step - 6)
    s.text(x, top - 8, "one write", color="limit", size=LEAST)
    return s
