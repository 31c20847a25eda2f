"""Drawings of chapter 25: two meshes over one line of ranks, what lies on which axis, causal work of each rank."""
from ..diagram import LEAST, Sketch, room

HOLDS = {"part": "memory", "copy": "other", "term": "network"}


def two_meshes(W, fold, experts=8):
    """What eight ranks see and hold: their tokens, their part of attention, their experts.

    fold: a Fold of the witness; where it is not legal the experts' row says why.  Lines join rank 0 with the ranks that
    hold what it holds.
    """
    s, n = Sketch(W), fold.ranks
    w, gap = W/n, 3 if W < 400 else 6
    at = [fold.place(r) for r in range(n)] if not n % (fold.te*fold.e) else None
    dense = at or [fold._replace(te=1, e=1).place(r) for r in range(n)]
    for r in range(n):
        s.text((r + .5)*w, 12, str(r) if s.narrow else f"rank {r}", soft=True, size=LEAST)
    y = head(s, 18, "tokens of a rank" + (f", shared by {fold.t}" if fold.t > 1 else ""))
    for r, p in enumerate(dense):
        k = p["d"]*fold.c + p["c"]
        s.rect(r*w + gap/2, y, w - gap, 26, "paper", "other", line_opacity=.4)
        s.sheet(r*w + gap/2, y, w - gap, 26, k % 4)
        s.text((r + .5)*w, y + 18, str(k), bold=True, size=LEAST, halo=True)
    y = head(s, y + 34, f"attention: 1/{fold.t} of every matrix" if fold.t > 1 else "attention: every matrix whole")
    for r, p in enumerate(dense):
        share(s, r*w + gap/2, y, w - gap, 40, p["t"], fold.t)
    y = joined(s, y + 44, w, [r for r, p in enumerate(dense) if p["t"] == 0])
    cut = f", 1/{fold.te} of each" if fold.te > 1 else ""
    y = head(s, y + 10, f"experts: {experts//fold.e} of {experts}{cut}")
    if at is None:
        s.words(0, y + 4, W, f"e·tₑ = {fold.e*fold.te} does not divide {n} ranks: no such fold", color="limit", bold=True)
        return s
    for r, p in enumerate(at):
        cell, mine = (w - gap)/2, experts//fold.e
        for k in range(experts):
            x, top = r*w + gap/2 + cell*(k % 2), y + 15*(k//2)
            s.rect(x, top, cell, 15, "", "other", line_opacity=.3, radius=0)
            if k//mine == p["e"]:
                s.rect(x + cell*p["te"]/fold.te, top, cell/fold.te, 15, "memory", "", opacity=.75, radius=0)
    joined(s, y + 64, w, [r for r, p in enumerate(at) if p["e"] == p["te"] == 0])
    return s


def head(s, y, words):
    """A row's name; returns where the row begins."""
    s.text(0, y + 14, words, "start", bold=True, size=LEAST)
    return y + 22


def share(s, x, y, w, h, k, parts):
    """A matrix of which the k-th of `parts` slices is there."""
    s.rect(x, y, w, h, "", "other", line_opacity=.35, dash="2 3")
    s.rect(x + w*k/parts, y, w/parts, h, "compute", "", opacity=.6, radius=0)


def joined(s, y, w, ranks):
    """A line that joins ranks, and over how many the gradient is summed; returns the bottom."""
    a, b = (ranks[0] + .5)*w, (ranks[-1] + .5)*w
    ticks = "".join(f"M{(r + .5)*w:.1f} {y:.1f}v7" for r in ranks)
    s.line(f"{ticks}M{a:.1f} {y + 7:.1f}H{b:.1f}", "network", 2, bottom=y + 8)
    words = f"gradient summed over {len(ranks)}" if len(ranks) > 1 else "nobody else holds this"
    s.text(0, y + 23, words, "start", color="network", bold=True, size=LEAST)
    return y + 28


def placement(W, columns, rows):
    """What lies on each axis: rows {name: words}, a word of HOLDS for each column, or a blank."""
    s = Sketch(W)
    left = max(room(name, LEAST) for name in rows) + 6
    w, h = min((W - left)/len(columns), 76), 32
    for j, name in enumerate(columns):
        s.text(left + (j + .5)*w, 16, name, bold=True, math=False)
    for i, (name, words) in enumerate(rows.items()):
        y = 26 + i*h
        s.text(0, y + h/2 + 4, name, "start", size=LEAST)
        for j, word in enumerate(words):
            x = left + j*w
            s.rect(x + 1, y + 1, w - 2, h - 2, "", "other", line_opacity=.25, radius=3)
            if word in HOLDS:
                color = HOLDS[word]
                s.rect(x + 1, y + 1, w - 2, h - 2, color, color, opacity=.1 if word == "copy" else .3, radius=3,
                       line_opacity=.7)
                s.text(x + w/2, y + h/2 + 5, word, bold=word == "term", math=False, size=LEAST)
    return s


def loads(W, work):
    """Bars of causal work, a bar a rank: {layout: query-key pairs of each rank}; the dashed line is the mean."""
    s, high = Sketch(W), 84
    most = max(max(v) for v in work.values())
    y = 0
    for name, pairs in work.items():
        mean = sum(pairs)/len(pairs)
        y = head(s, y, f"{name}, busiest: {max(pairs)/mean:.3g} × the mean")
        w = W/len(pairs)
        for r, v in enumerate(pairs):
            h = high*v/most
            s.rect(r*w + 4, y + high - h, w - 8, h, "limit" if v == max(pairs) > min(pairs) else "compute", "", opacity=.65)
            s.text((r + .5)*w, y + high + 15, str(r), soft=True, size=LEAST)
        top = y + high*(1 - mean/most)
        s.line(f"M0 {top:.1f}H{W:.1f}", "limit", 1.4, dash="5 4", bottom=y + high)
        y += high + 28
    return s
