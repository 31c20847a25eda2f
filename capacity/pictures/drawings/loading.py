"""Drawings of chapter 3a: workers and their trainer in time, who waits for whom, the states of a buffer."""
from ..diagram import LEAST, Sketch, room

LANE, GAP = 24, 6


def bars(s, spans, y, h, place, color, numbers=None):
    """Spans of time in a lane, in two shades; the number of each where there is room."""
    for k, (a, b, j) in enumerate(spans):
        x, X = place(a), place(b)
        if X <= x:
            continue
        s.rect(x, y, max(X - x - 1, .8), h, color, "", opacity=.75 if k % 2 == 0 else .45, radius=1)
        if numbers and X - x > room(str(j), LEAST) + 4:
            s.text((x + X)/2, y + h/2 + 4.8, str(j), size=LEAST, halo=True, spoken=False)


def lanes(W, run, workers, end, unit="steps"):
    """A lane for each worker and one for the trainer; under a worker's lane the batches that are ready and wait."""
    s = Sketch(W)
    left = 66 if s.narrow else 82
    place = lambda t: left + (W - left - 8)*min(t, end)/end
    by, number = run.worker or [j % workers for j in range(len(run.begun))], run.batch or range(len(run.begun))
    for q in range(workers):
        y = q*(LANE + GAP)
        s.text(0, y + 16, f"worker {q + 1}", "start", soft=True, size=LEAST)
        own = [j for j in range(len(by)) if by[j] == q]
        bars(s, [(run.begun[j], run.ready[j], number[j] + 1) for j in sorted(own, key=lambda j: run.begun[j])], y, LANE - 8, place,
             "network", True)
        d = "".join(f"M{place(run.ready[j]):.1f} {y + LANE - 4}H{place(run.taken[j]):.1f}" for j in own
                    if place(run.taken[j]) > place(run.ready[j]) + 1)
        if d:
            s.line(d, "memory", 4, bottom=y + LANE)
    y = workers*(LANE + GAP) + 4
    s.text(0, y + 17, "trainer", "start", bold=True, size=LEAST)
    done = 0
    for a, b in zip(run.taken, run.ended):
        if min(a, end) > done + end/400:
            s.rect(place(done), y, place(a) - place(done), LANE, "limit", "limit", opacity=.14, weight=1, dash="3 2", radius=0)
        done = b
    bars(s, [(a, b, j + 1) for j, a, b in zip(number, run.taken, run.ended)], y, LANE, place, "compute", True)
    s.scale(left, y + LANE + 6, W - left - 8, end, "")
    x, y = 0, y + LANE + 34
    for words, color, opacity in (("loads", "network", .75), ("ready, waits", "memory", 1), ("trains", "compute", .75),
                                  ("no batch: idle", "limit", .3)):
        wide = 20 + room(words) + 16
        if x + wide > W + 16:
            x, y = 0, y + 20
        s.rect(x, y, 14, 11, color, "", opacity=opacity, radius=1)
        s.text(x + 20, y + 10.5, words, "start", soft=True, size=LEAST)
        x += wide
    return s


def graph(W, workers=1, slots=2):
    """Loading and training of batches as events; an arrow leads to what waits for it.

    A worker is free for the batch that comes `workers` later, a slot for the one that comes `slots` later.
    """
    s = Sketch(W)
    n = 4 if s.narrow else 5
    step = W/n
    wide, tall, top, low = min(74, step - 18), 34, 34, 180
    up, down = [], []
    for j in range(n):
        x = step*j + (step - wide)/2
        up.append(s.box(x, top, wide, tall, f"load {j + 1}", "network"))
        down.append(s.box(x, low, wide, tall, f"train {j + 1}", "compute"))
    for a, b in zip(down, down[1:]):
        s.arrow(a, b, color="compute", gap=2)
    for j, (a, b) in enumerate(zip(up, up[workers:])):
        if workers == 1:
            s.arrow(a, b, color="network", gap=2)
        else:
            y = top - 10 - 10*(j % workers)
            s.line(f"M{a.cx + 8:.1f} {top - 2}V{y}H{b.cx - 8:.1f}V{top - 8}", "network", 1.5)
            s.head(b.cx - 8, top - 2, "down", "network", 4.8)
    for a in up:
        x = a.cx + .2*wide
        s.line(f"M{x:.1f} {a.bottom + 3:.1f}V{low - 9:.1f}")
        s.head(x, low - 3, "down", "other", 4.8)
    for j, (a, b) in enumerate(zip(down, up[slots:])):
        x, X, y = a.cx - .36*wide, b.cx - .1*wide, 152 - 26*(j % 3)
        s.line(f"M{x:.1f} {low - 3:.1f}V{y:.1f}H{X:.1f}V{b.bottom + 9:.1f}", "memory", 2.4)
        s.head(X, b.bottom + 3, "up", "memory", 5.2)
    y = 226
    for words, color in (("a worker is free", "network"), ("the batch is there", "other"), ("the trainer is free", "compute"),
                         ("a slot is free", "memory")):
        x = 0 if s.narrow and color in ("network", "compute") else {"network": 0, "other": W/4, "compute": W/2,
                                                                   "memory": 3*W/4}[color]
        if s.narrow and color in ("other", "memory"):
            x = W/2
        s.line(f"M{x:.1f} {y + 6}h18", color, 2.4 if color == "memory" else 1.6, bottom=y + 12)
        s.text(x + 24, y + 10.5, words, "start", soft=True, size=LEAST)
        y += 20 if s.narrow and color == "other" else 0
    return s


def states(W, slots=4):
    """How many batches are loaded, as a chain of states: up at the loader's rate, down at the trainer's."""
    s = Sketch(W)
    step = (W - 8)/(slots + 1)
    wide = min(58, step - 30)
    boxes = []
    for k in range(slots + 1):
        x = 4 + step*k + (step - wide)/2
        boxes.append(s.box(x, 30, wide, 44, str(k), "limit" if k == 0 else "memory" if k == slots else None))
    for a, b in zip(boxes, boxes[1:]):
        u, v = a.right + 3, b.x - 3
        for y, way, color, word, at in ((42, "right", "network", "ρ", 32), (62, "left", "compute", "1", 84)):
            s.line(f"M{u if way == 'right' else v:.1f} {y}H{v - 5 if way == 'right' else u + 5:.1f}", color, 1.6)
            s.head(v if way == "right" else u, y, way, color, 4.8)
            s.text((u + v)/2, at, word, color=color, bold=True, size=LEAST)
    s.text(0, 104, "empty: the trainer waits", "start", size=LEAST, color="limit")
    s.text(W, 104 if W > 400 else 124, "full: the loader waits", "end", size=LEAST, color="memory")
    return s
