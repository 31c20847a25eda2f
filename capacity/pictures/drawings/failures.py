"""Drawings of chapter 26: a day of a job that fails, where a checkpoint lies, what two ranks' fused parts become."""
from ...witness import failures
from ..diagram import LEAST, Sketch

SMALL = LEAST
ROLES = {"train": ("compute", .8), "lost": ("limit", .95), "restart": ("other", .75), "save": ("measured", .95)}
WORDS = {"train": "training that stays", "lost": "lost, done again", "restart": "restart", "save": "save"}


def key(s, y, kinds):
    """What the colours mean."""
    s.legend(y, [(WORDS[kind], *ROLES[kind]) for kind in kinds])


def day(W, done, hours=24):
    """The spans of a job, a row for every four hours, two on a narrow sheet."""
    s = Sketch(W)
    per, h, left = (2, 15, 46) if s.narrow else (4, 26, 56)
    rows = hours//per
    step = h + (4 if s.narrow else 7)
    wide = (W - left)/(per*3600)
    for row in range(rows):
        y = row*step
        s.text(0, y + h/2 + 4.5, f"{row*per} h", "start", soft=True, size=SMALL, math=False)
        s.rect(left, y, W - left, h, "other", "", opacity=.06, radius=0)
        lo, hi = row*per*3600, (row + 1)*per*3600
        for kind in ("train", "lost", "restart", "save"):
            color, opacity = ROLES[kind]
            d = ""
            for a, b, k, *_ in done.spans:
                a, b = max(a, lo), min(b, hi)
                if k == kind and a < b:
                    d += f"M{left + (a - lo)*wide:.1f} {y + h/2:.1f}h{max((b - a)*wide, .7):.1f}"
            if d:
                s.line(d, color, h if kind != "save" else h - 6, opacity=opacity, bottom=y + h)
    key(s, rows*step + 8, ("train", "lost", "restart", "save"))
    return s


def levels(W, places):
    """Where copies lie, near to far: [(name, who keeps it, pause, what it survives), ...]."""
    s = Sketch(W)
    roles = ("compute", "memory", "limit")
    y = 2
    for k, (name, keeps, pause, survives) in enumerate(places):
        inset = 0 if s.narrow else 26*k
        tall = 66 if s.narrow else 46
        s.rect(inset, y, W - inset, tall, roles[k], roles[k], opacity=.12, radius=8)
        s.text(inset + 12, y + 19, name, "start", bold=True)
        s.text(W - 12, y + 19, pause, "end", soft=True, size=SMALL)
        s.text(inset + 12, y + 38, keeps, "start", size=SMALL)
        if s.narrow:
            s.text(inset + 12, y + 57, survives, "start", size=SMALL, soft=True)
        else:
            s.text(W - 12, y + 38, survives, "end", size=SMALL, soft=True)
        y += tall + 8
    return s


def fused(W):
    """Two ranks keep [gate; up] of their rows; laid end to end the parts are in the wrong order."""
    s = Sketch(W)
    cell = min(62, (W - 96)/4)
    names = ["G₀", "U₀", "G₁", "U₁"]
    x0 = (W - 4*cell - 14)/2
    lines = [("saved", [0, 1, 2, 3], True), ("end to end", [0, 1, 2, 3], False), ("right", [0, 2, 1, 3], False)]
    for row, (word, order, apart) in enumerate(lines):
        y = 22 + row*62
        s.text(W/2, y - 7, {"saved": "rank 0 and rank 1, as saved", "end to end": "laid end to end: wrong",
                            "right": "taken apart, then laid: right"}[word], soft=row == 0, bold=row > 0, size=SMALL,
               color=None if row == 0 else ("limit" if row == 1 else "memory"))
        for place, part in enumerate(order):
            x = x0 + place*cell + (14 if apart and place > 1 else 0 if apart else 7)
            color = "compute" if part % 2 == 0 else "measured"
            s.rect(x, y, cell - 3, 26, color, color, opacity=.25)
            s.text(x + cell/2 - 1.5, y + 18, names[part], size=SMALL, math=False)
    return s


def told(done):
    """A sentence about a simulated job."""
    saves = sum(span.kind == "save" for span in done.spans)
    share = done.seconds("lost")/done.spans[-1].stop
    return (f"{done.failures} failure{'s'*(done.failures != 1)}, {saves:,} saves. {done.goodput:.0%} of the day is training that "
            f"stays; {share:.0%} is lost work.").replace("%", " %")


def simulated(mtbf, interval, save, restart, seed, hours=24):
    """A day of a job, drawn by a seed."""
    import numpy as np
    return failures.job(hours*3600, failures.poisson(mtbf, np.random.default_rng(seed)), [(interval, save, restart)])
