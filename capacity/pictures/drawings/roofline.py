"""Drawings of chapter 2: who waits for whom, the pipes of a device, tiles in a cache, what three ways to split send."""
from ...units import show
from ..diagram import LEAST, Sketch
from .messages import GAP, HIGH, arrival, clock

LANE = HIGH + GAP


def shade(s, x, y, w, color, i=0, h=HIGH):
    """A piece of work; two shades of a colour take turns."""
    return s.rect(x, y, w, h, color, color, opacity=.35 if i % 2 else .65, weight=.8, radius=0)


def overlap(W, forward, backward, comm, buckets, end, ticks):
    """One step: passes above, the gradient below; a bucket leaves when its backward is done and the link is free."""
    s = Sketch(W)
    x, y = 66, 26
    scale = (W - x - 8)/end
    for row, name in enumerate(("GPU", "network")):
        s.text(x - 8, y + row*LANE + 15, name, "end", soft=True, size=LEAST)
    b = shade(s, x, y, scale*forward, "idle")
    if b.w > 60:
        s.text(b.cx, b.cy + 5, "forward", size=LEAST, halo=True, spoken=False)
    free = 0
    for i in range(buckets):
        shade(s, x + scale*(forward + backward*i/buckets), y, scale*backward/buckets, "compute", i)
        start = max(free, forward + backward*(i + 1)/buckets)
        free = start + comm/buckets
        shade(s, x + scale*start, y + LANE, scale*(free - start), "network", i)
    low = y + 2*LANE
    passes = forward + backward
    if free > passes*1.001:
        s.rect(x + scale*passes, y, scale*(free - passes), HIGH, "limit", "limit", opacity=.18, weight=1, dash="3 3")
        if scale*(free - passes) > 76:
            s.text(x + scale*(passes + free)/2, y + 15, "sticks out", soft=True, size=LEAST, spoken=False)
    clock(s, x, low, W - x - 8, end, ticks)
    arrival(s, x + scale*free, 22, low - GAP, show(free, "s"), W)
    x, y = 0, low + 32
    for words, color, w in (("forward", "idle", 76), ("backward", "compute", 88), ("gradient", "network", 0)):
        shade(s, x, y, 15, color, h=13)
        s.text(x + 21, y + 11, words, "start", soft=True, size=LEAST)
        x += w + 20
    return s


def in_turn_or_at_once(W, busy, unit="ms"):
    """The same busy times twice: each resource waits for the one before, and nobody waits."""
    s = Sketch(W)
    x = 88
    total = sum(busy.values())
    scale, y = (W - x - 40)/total, 0
    colors = ("compute", "memory", "network")
    for title, turn in (("in turn", True), ("at once", False)):
        s.text(0, y + 13, title, "start", bold=True, size=LEAST)
        top, at = y + 22, 0
        for (name, t), color in zip(busy.items(), colors):
            s.text(x - 8, top + 15, name, "end", soft=True, size=LEAST)
            b = shade(s, x + scale*at, top, scale*t, color)
            s.text(b.cx, b.cy + 5, str(t), size=LEAST, halo=True, spoken=False)
            at += t*turn
            top += 22
        end = x + scale*(total if turn else max(busy.values()))
        s.line(f"M{end:.1f} {y + 20}V{top}", "other", 1.2, dash="3 3", opacity=.7, bottom=top)
        s.text(end, y + 14, f"{total if turn else max(busy.values())} {unit}", bold=True, size=LEAST)
        y = top + 12
    return s


def pipes(W, peak, rows):
    """A device and what feeds it, to scale: rows of (bytes per second, what it leads to), each with its ridge."""
    s = Sketch(W)
    left, right = (84, 92) if s.narrow else (140, 150)
    scale, y = 76/max(rate for rate, _ in rows), 4
    places = []
    for rate, name in rows:
        h = max(46, scale*rate + 4)
        places.append((y, h, rate, name))
        y += h + 22
    s.rect(0, 0, left, y - 14, "compute", "compute", opacity=.16, radius=6)
    s.words(6, y/2 - 36, left - 12, show(peak, "FLOP/s") + " of arithmetic", anchor="middle", bold=True, size=LEAST)
    for y, h, rate, name in places:
        thick = scale*rate
        b = s.rect(left + 2, y + h/2 - thick/2, W - left - right - 4, thick, "memory" if rate is rows[0][0] else "network",
                   "", opacity=.55, radius=0)
        at = b.cy + 5 if thick > 40 else b.y - 6
        need = f"{peak/rate:,.0f} FLOP a byte"
        said = show(rate, "B/s")
        s.text(b.cx, at - (9 if thick > 40 else 0), said, bold=True, size=LEAST, halo=thick > 40)
        s.text(b.cx, at + 9 if thick > 40 else b.bottom + 16, need, soft=True, size=LEAST, halo=thick > 40)
        box = s.rect(W - right, y, right - 1, h, "", "other", line_opacity=.5, radius=6)
        lines = 2 if s.narrow else 1
        s.words(box.x + 4, box.cy - 9*lines - (0 if lines > 1 else -1), right - 9, name, anchor="middle", size=LEAST)
    return s


SPLITS = (("Data: a copy each, own tokens", "gradients", "once a step", "all"),
          ("Tensor: a part of each matrix", "sums", "4 times a layer", "columns"),
          ("Pipeline: some of the layers", "one layer's output", "there and back", "rows"))


def splits(W):
    """Two GPUs share a model in three ways: what each holds of its four layers, and what travels between them."""
    s = Sketch(W)
    w, h = (74, 62) if s.narrow else (104, 62)
    x1 = min(W - w - 2, 2 + 2.9*w + 100)
    for row, (title, what, often, part) in enumerate(SPLITS):
        y = row*112
        s.text(0, y + 13, title, "start", bold=True, size=LEAST)
        y += 24
        ends = []
        for r, x in enumerate((2, x1)):
            for k in range(4):
                s.rect(x, y + k*h/4, w, h/4, "", "other", line_opacity=.35, radius=0, dash="2 2")
            box = {"all": (x, y, w, h), "columns": (x + r*w/2, y, w/2, h), "rows": (x, y + r*h/2, w, h/2)}[part]
            s.sheet(*box, r)
            for k in range(4):
                if box[1] <= y + k*h/4 < box[1] + box[3]:
                    s.line(f"M{box[0]:.1f} {y + k*h/4:.1f}h{box[2]:.1f}", f"rank{r}", .8, opacity=.6)
            ends.append(s.rect(x, y, w, h, "", "other", line_opacity=0))
            s.text(x + w/2, y + h + 16, f"GPU {r}", soft=True, size=LEAST)
        a, b = ends
        mid, u, v = y + h/2, a.right + 8, b.x - 8
        s.line(f"M{u + 5:.1f} {mid:.1f}H{v - 5:.1f}", "network", 1.8, bottom=mid)
        s.head(v, mid, "right", "network")
        s.head(u, mid, "left", "network")
        s.text((u + v)/2, mid - 9, what, color="network", bold=True, size=LEAST)
        s.text((u + v)/2, mid + 19, often, soft=True, size=LEAST)
    return s


def few_rows(W):
    """A product of few rows with a large matrix: the matrix is moved for them alone."""
    s = Sketch(W)
    side, r = (104, 16) if s.narrow else (150, 20)
    x, gap = 26, 30 if s.narrow else 54
    top = 24
    a = s.rect(x, top + side/2 - r/2, side, r, "compute", "compute", opacity=.35)
    b = s.rect(a.right + gap, top, side, side, "memory", "memory", opacity=.35)
    right = b.right + gap
    wide = min(side, W - right - 4)
    if s.narrow:                            # the result below the weights
        c = s.rect(b.x, b.bottom + 34, side, r, "other", "other", opacity=.1)
    else:
        c = s.rect(right, a.y, wide, r, "other", "other", opacity=.1)
    s.text(a.right + gap/2, a.cy + 5, "×", bold=True)
    s.text(b.cx if s.narrow else b.right + gap/2, b.bottom + 24 if s.narrow else a.cy + 5, "=", bold=True)
    s.text(a.x - 8, a.cy + 5, "r", "end", math=True)
    s.text(a.cx, a.y - 8, "tokens", soft=True, size=LEAST)
    s.text(b.cx, b.y - 8, "q × c weights", soft=True, size=LEAST)
    s.text(b.cx, b.cy + 5, "each read once", size=LEAST, halo=True)
    s.text(c.cx, c.bottom + 17, "outputs", soft=True, size=LEAST)
    return s


def tiles(side, edge):
    """The products of a tiled loop, in turn: where (i, j, k), and the numbers read and written when it is done."""
    n = side//edge
    turns = [(i, j, k) for i in range(n) for j in range(n) for k in range(n)]
    return [(turn, 2*edge**2*(m + 1), edge**2*((m + 1)//n)) for m, turn in enumerate(turns)]


def tile_walk(W, side, edge, m):
    """Product m of two matrices, tile by tile: the tiles in the cache, the finished ones, and what has moved so far."""
    s = Sketch(W)
    (i, j, k), read, written = tiles(side, edge)[m]
    n, cell, left = side//edge, 13 if s.narrow else 21, 126
    wide, gap = side*cell, (W - 3*side*cell - 4)/2
    finished = [(t, u) for t in range(n) for u in range(n) if (t*n + u + 1)*n <= m + 1]
    parts = (("left factor", "memory", (i, k), []), ("right factor", "memory", (k, j), []),
             ("sums", "compute", (i, j), finished))
    for c, (name, color, here, done) in enumerate(parts):
        x, y = 1 + c*(wide + gap), 24
        s.text(x + wide/2, 13, name, bold=True, size=LEAST)
        for row, col in done:
            s.rect(x + col*edge*cell, y + row*edge*cell, edge*cell, edge*cell, color, "", opacity=.2, radius=0)
        s.rect(x + here[1]*edge*cell, y + here[0]*edge*cell, edge*cell, edge*cell, color, "", opacity=.75, radius=0)
        grid = "".join(f"M{x + r*cell} {y}v{wide}M{x} {y + r*cell}h{wide}" for r in range(side + 1))
        s.line(grid, "other", .7, opacity=.35, bottom=y + wide)
        if c:
            s.text(x - gap/2, y + wide/2 + 5, "×="[c - 1], bold=True)
    y = 24 + wide + 16
    s.text(0, y + 14, "in the cache", "start", bold=True, size=LEAST)
    x = left
    for color in ("memory", "memory", "compute"):
        q = s.rect(x, y, edge*cell, edge*cell, color, color, opacity=.55, radius=0)
        x = q.right + 8
    y += 3*cell + 18
    most, last = tiles(side, 1)[-1], tiles(side, edge)[-1]
    scale = (W - left - 4)/(most[1] + most[2])
    s.text(0, y + 14, "numbers moved", "start", bold=True, size=LEAST)
    a = s.rect(left, y, scale*read, 18, "memory", "", opacity=.75, radius=0)
    s.rect(a.right, y, scale*written, 18, "compute", "", opacity=.75, radius=0)
    s.rect(left, y, scale*(last[1] + last[2]), 18, "", "other", line_opacity=.6, dash="3 3", radius=0)
    s.text(left, y + 36, f"dashed: all {last[1] + last[2]}", "start", soft=True, size=LEAST)
    return s
