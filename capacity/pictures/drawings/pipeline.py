"""Drawings of chapter 16: what waits for what, schedules as charts with their spans, layers dealt to stages."""
from ..diagram import LEAST, Sketch
from ..shapes import Path, words_on

KINDS = {"F": "compute", "B": "limit", "I": "limit", "W": "measured"}
NAMES = {"F": "forward", "I": "gradient of the input", "B": "backward", "W": "gradient of the weights"}


def needs(W):
    """The operations of one micro-batch on three stages, with an arrow from each to what waits for it."""
    s = Sketch(W)
    slim = s.narrow
    left, w, h = (0, 62, 34) if slim else (170, 96, 38)
    gap = (W - left - 3*w - 2)/2
    top, step = 34 if not slim else 54, 78 if slim else 70
    boxes = {}
    for row, kind in enumerate("FIW"):
        y = top + row*step
        if not slim:
            s.text(0, y + h/2 + 5, NAMES[kind], "start", size=LEAST)
        for stage in range(3):
            boxes[kind, stage] = s.box(left + 1 + stage*(w + gap), y, w, h, f"{kind}{stage}", KINDS[kind])
    for stage in range(3):
        s.text(boxes["F", stage].cx, 14, f"stage {stage}", soft=True, size=LEAST)
        s.arrow(boxes["I", stage], boxes["W", stage], gap=5)
        s.arrow(boxes["F", stage], boxes["I", stage], gap=5, opacity=1 if stage == 2 else .5)
    for stage in (0, 1):
        s.arrow(boxes["F", stage], boxes["F", stage + 1], color="network", weight=2.5, gap=5)
        s.arrow(boxes["I", stage + 1], boxes["I", stage], color="network", weight=2.5, gap=5)
    if slim:
        s.text(0, 34, "F forward, I and W gradients", "start", soft=True, size=LEAST)
    s.text(W - 1, top + 2*step + h + 22, "from W no arrow leads on", "end", bold=True, size=LEAST, color="measured")
    return s


def charts(W, runs, row=17):
    """Timelines below each other on one scale: a row for each device, and below it the first one's span and the step.

    runs  pairs (what is said of it, timeline)
    """
    s = Sketch(W)
    left = 4 if s.narrow else 62
    end = max(float(t.makespan) for _, t in runs)
    k, y = (W - left - 4)/end, 0
    shortest = k*min(float(t.end[op] - t.start[op]) for _, t in runs for op in t.start)
    for name, t in runs:
        s.text(0, y + 14, name, "start", bold=True, size=LEAST)
        y += 22
        bars = {}
        for d, order in enumerate(t.schedule.slots):
            if not s.narrow:
                s.text(0, y + 12.5, f"device {d}", "start", soft=True, size=LEAST)
            for op, *_ in order:
                x, w = left + k*float(t.start[op]), k*float(t.end[op] - t.start[op])
                looks = KINDS[op.kind], .75 if op.stage < len(t.schedule.orders) else .4
                bars[looks] = bars.get(looks, "") + f"M{x:.1f} {y:.1f}h{max(w - 1, .8):.1f}v{row - 2}h{-max(w - 1, .8):.1f}Z"
                if shortest > 12:
                    s.text(x + (w - 1)/2, y + 12, str(op.microbatch), size=LEAST, color=words_on(*looks), math=False, spoken=False)
            y += row
        s.shapes[:0] = [Path(d, color, "", opacity) for (color, opacity), d in bars.items()]
        first, whole = float(t.spans[0]), float(t.makespan)
        for words, length in [("span of device 0", first)] + [("step", whole)]*(whole > first):
            said = f"{words} {length:g}" if whole > first else f"step, and span of device 0: {length:g}"
            s.line(f"M{left:.1f} {y + 2:.1f}v7M{left:.1f} {y + 6:.1f}h{k*length - 1:.1f}M{left + k*length - 1:.1f} {y + 2:.1f}v7",
                   "limit" if words == "step" else "other", 1.3)
            s.text(left + 6, y + 21, said, "start", soft=words != "step", size=LEAST)
            y += 24
        y += 10
    kinds = [x for x in "FBIW" if any(op.kind == x for _, t in runs for op in t.start)]
    names = {KINDS[kind]: "" for kind in kinds}
    for kind in kinds:
        names[KINDS[kind]] += (" or " if names[KINDS[kind]] else "") + NAMES[kind]
    s.legend(y, [(words, color, .75) for color, words in names.items()])
    return s


def dealt(W, cuts, layers, head):
    """Layers and an output matrix dealt to stages, as wide as their work: one row for each way to cut them.

    cuts  pairs (words, layers of each stage); the head is on the last
    """
    s = Sketch(W)
    y = 0
    for words, sizes in cuts:
        s.text(0, y + 14, words, "start", bold=True, size=LEAST)
        k, x = W/(layers + head), 0
        y += 24
        for stage, n in enumerate(sizes):
            last = stage == len(sizes) - 1
            w = k*(n + head*last)
            s.sheet(x + 1, y, w - 2, 34, stage)
            if last:
                s.rect(x + k*n, y, w - k*n - 1, 34, "limit", "", opacity=.5)
                s.text(W - 1, y + 50, "head", "end", soft=True, size=LEAST)
            s.text(x + k*n/2, y + 21.5, str(n), bold=True, halo=True)
            x += w
        y += 62
    return s
