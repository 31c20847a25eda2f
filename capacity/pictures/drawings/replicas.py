"""Drawings of chapter 14: what a token weighs in a mean of means, buckets that leave during the backward pass, in turn."""
from ...units import show
from ..diagram import LEAST, Sketch
from .messages import GAP, HIGH, arrival, clock

LANE = HIGH + GAP
GROUPS = 20                             # bars of a lane with more than twice as many jobs


def weighing(W, counts):
    """Tokens of each rank as bars of their weight: in the mean of all tokens, and in the mean of the ranks' means."""
    s = Sketch(W)
    n, P = sum(counts), len(counts)
    left, gap, unit = (0, 22, 70) if s.narrow else (150, 40, 70)
    step = (W - left - gap*(P - 1) - 2)/n
    rows = (("mean of all tokens", [1/n]*P), ("mean of the means", [1/(P*c) for c in counts]))
    most, y = max(w for _, ws in rows for w in ws), 0
    for title, weights in rows:
        s.text(0, y + (13 if s.narrow else 40), title, "start", bold=True, size=LEAST)
        y += 20 if s.narrow else 4
        x = left
        for r, (c, w) in enumerate(zip(counts, weights)):
            high = unit*w/most
            for k in range(c):
                s.sheet(x + step*k + 1, y + unit - high, step - 2, high, r)
            s.text(x + step*c/2, y + unit + 17, f"1/{round(1/w)} each", soft=True, size=LEAST)
            x += step*c + gap
        y += unit + 30
    x = left
    for r, c in enumerate(counts):
        for k, words in enumerate((f"rank {r}", f"{c} tokens")):
            s.text(x + step*c/2, y + 10 + 17*k, words, size=LEAST, bold=not k)
        x += step*c + gap
    return s


def bars(durations, ends):
    """(start, end) of each job, or of GROUPS runs of many: as long as their jobs are, ending when the last of them does."""
    n = len(durations)
    groups = n if n <= 2*GROUPS else GROUPS
    cuts = [round(n*g/groups) for g in range(groups + 1)]
    return [(ends[b - 1] - sum(durations[a:b]), ends[b - 1]) for a, b in zip(cuts, cuts[1:])]


def step(W, forward, backs, sends, latency, ends, ticks, names=()):
    """One step: passes above, buckets of the gradient below, each from when it may leave; gray is latency.

    backs, sends: times of each bucket's backward pass and message; ends: when each message has arrived, after the
    forward pass; latency: the share of a message that is latency; names: (bucket, word) to write beside its bar.
    """
    s = Sketch(W)
    x, y = 66, 26
    passes, end = forward + sum(backs), forward + ends[-1]
    scale = (W - x - 8)/max(passes, end)
    for row, name in enumerate(("GPU", "network")):
        s.text(x - 8, y + row*LANE + 15, name, "end", soft=True, size=LEAST)
    if forward:
        b = s.rect(x, y, scale*forward, HIGH, "idle", "idle", opacity=.35, weight=.8, radius=0)
        if b.w > 60:
            s.text(b.cx, b.cy + 5, "forward", size=LEAST, halo=True, spoken=False)
    done = [sum(backs[:k + 1]) for k in range(len(backs))]
    for i, (a, z) in enumerate(bars(backs, done)):
        s.rect(x + scale*(forward + a), y, scale*(z - a), HIGH, "compute", "compute", opacity=.35 if i % 2 else .65,
               weight=.8, radius=0)
    for i, (a, z) in enumerate(bars(sends, ends)):
        at, w = x + scale*(forward + a), scale*(z - a)
        if latency:
            s.rect(at, y + LANE, w*latency, HIGH, "idle", "idle", opacity=.3, weight=.6, radius=0)
        s.rect(at + w*latency, y + LANE, w*(1 - latency), HIGH, "network", "network", opacity=.4 if i % 2 else .75,
               weight=.6, radius=0)
    if end > passes*1.001:
        b = s.rect(x + scale*passes, y, scale*(end - passes), HIGH, "limit", "limit", opacity=.18, weight=1, dash="3 3")
        if b.w > 52:
            s.text(b.cx, y + 15, "waits", soft=True, size=LEAST, spoken=False)
    low = y + 2*LANE
    for k, word in names:
        s.text(x + scale*(forward + ends[k]), low + 12, word, "end", soft=True, size=LEAST)
    low += 18 if names else 0
    clock(s, x, low, W - x - 8, max(passes, end), ticks)
    arrival(s, x + scale*end, 22, y + 2*LANE - GAP, show(end, "s"), W)
    at, low = 0, low + 32
    for word, color, opacity, w in (("backward", "compute", .65, 84), ("latency", "idle", .3, 72), ("bytes", "network", .75, 0)):
        s.rect(at, low, 15, 13, color, color, opacity=opacity, weight=.8, radius=0)
        s.text(at + 21, low + 11, word, "start", soft=True, size=LEAST)
        at += w + 20
    return s


def moment(W, backs, sends, now, end):
    """Buckets in turn, up to a moment: what has happened is filled, what is still to come is dashed."""
    s = Sketch(W)
    x, y, made, free = 66, 26, 0, 0
    scale = (W - x - 8)/end

    def bar(a, z, top, color, name):
        s.rect(x + scale*a, top, scale*(z - a), HIGH, "", color, weight=.8, dash="3 3", radius=0)
        if now > a:
            s.rect(x + scale*a, top, scale*(min(z, now) - a), HIGH, color, color, opacity=.65, weight=.8, radius=0)
        s.text(x + scale*(a + z)/2, top + 15, name, size=LEAST, halo=True, spoken=False)
    for row, name in enumerate(("GPU", "network")):
        s.text(x - 8, y + row*LANE + 15, name, "end", soft=True, size=LEAST)
    for k, (back, sent) in enumerate(zip(backs, sends)):
        bar(made, made + back, y, "compute", str(k + 1))
        made += back
        free = max(free, made)
        bar(free, free + sent, y + LANE, "network", str(k + 1))
        free += sent
    arrival(s, x + scale*now, 22, y + 2*LANE - GAP, show(now, "s"), W)
    s.legend(y + 2*LANE + 8, [("backward", "compute", .65), ("bytes of a bucket", "network", .65)])
    return s
