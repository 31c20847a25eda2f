"""Drawings of chapter 15: a layer cut over devices."""
from ..diagram import Box, Sketch

WORD = {"all_gather": "all-\ngather", "all_reduce": "all-\nreduce", "reduce_scatter": "reduce-\nscatter",
        "slice": "slice", "all_to_all": "all-to-\nall"}
SMALL = 13
AXES = "tokens width inner out".split()          # of X, of what lies inside the layer, of Y


def held(placement):
    """How devices hold an array: copy, columns, rows or term, from its placement ("tokens inner/t")."""
    if placement.partial:
        return "term"
    first, second = placement.cuts.values()
    return "rows" if first else "columns" if second else "copy"


def narrow(s):
    return s.W < 400


def states(W):
    """The three ways to hold an array, and the collectives that turn one into another, with what they cost."""
    s = Sketch(W)
    slim = narrow(s)
    w, h = (62, 58) if slim else (100, 68)
    gap = (W - 2 - 3*w)/2
    top = 62
    term, part, copy = (s.array(1 + k*(w + gap), top, w, h, how) for k, how in enumerate(("term", "columns", "copy")))
    means = (("terms", "their sum is", "the array"), ("parts", "device r", "has slice r"), ("copies", "each device", "has all of it"))
    for box, (word, *rest) in zip((term, part, copy), means):
        s.text(box.cx, top + h + 20, word, bold=True)
        x, anchor = (box.x, "start") if box is term else (box.right, "end") if box is copy else (box.cx, "middle")
        for k, line in enumerate(rest if slim else [" ".join(rest)]):
            s.text(x, top + h + 38 + 17*k, line, anchor, soft=True, size=SMALL)
    for a, b, word in ((term, part, "reduce-scatter"), (part, copy, "all-gather")):
        s.arrow(a, b, word.replace("-", "-\n") if slim else word, "1 unit", "network", 2.5, 6)
    y, ink = 22, "network"                                              # the long way round, above
    s.line(f"M{term.cx:.1f} {top - 8}V{y}H{copy.cx:.1f}V{top - 13}", ink, 2.5)
    s.head(copy.cx, top - 6, "down", ink, 5.2)
    s.text(W/2, y - 7, "all-reduce, 2 units: one after the other", color=ink, bold=True, size=SMALL)
    y = top + h + (82 if slim else 64)
    s.line(f"M{copy.cx:.1f} {y - 16}V{y}H{part.cx:.1f}V{y - 11}", opacity=.6)
    s.head(part.cx, y - 16, "up", opacity=.6)
    s.text((part.cx + copy.cx)/2, y + 17, "slice, free", soft=True, size=SMALL)
    s.key(y + (26 if slim else 6), x=0)
    return s


def count(units):
    return f"{units:g} unit" + ("" if units == 1 else "s")


def moved(s, a, b, moves, unit, gap=7):
    """The arrow between two arrays: the collective and what it costs, or nothing."""
    if not moves:
        s.arrow(a, b, opacity=.35, gap=gap)
        return
    m = moves[0]
    paid = m.nbytes > 0
    s.arrow(a, b, WORD[m.collective], count(m.nbytes/unit) if paid else "free",
            "network" if paid else "other", 2.5 if paid else 1.5, gap, 1 if paid else .6)


def stages(found):
    """The moves of a layout before the first product, around σ (before, after) and behind the second product."""
    by = {axis: [m for m in found.moves if axis in m.source.cuts] for axis in AXES[1:]}
    product = "columns" if held(found.choice[0]) == "columns" else "term"
    to_sigma = by["inner"][:1] if held(found.choice[1]) != product else []
    return by["width"], to_sigma, by["inner"][len(to_sigma):], by["out"]


def feed_forward(W, found, unit, best, back, most):
    """The layer X → XW₁ → σ(XW₁) → σ(XW₁)W₂ in one layout, as `search` found it, with the collectives that it needs."""
    s = Sketch(W)
    slim = narrow(s)
    one, at, two = map(held, found.choice)
    H, F, T = (28, 54, 50) if slim else (32, 62, 56)
    before, to_sigma, to_two, after = stages(found)
    product = "columns" if one == "columns" else "term"
    into = "columns" if two == "rows" else "copy"
    out = "term" if two == "rows" else "columns"
    mid, far = (63, 62) if slim else (60, 60)

    def put(x, cy, w, h, how, name, note=""):
        return s.array(x, cy - h/2, w, h, how, name, note)

    cy, x = 60, 1
    X = put(x, cy, H, T, "columns" if before else "copy", "X")
    s.text(X.right + 6, cy + 4, "·")
    first = put(X.right + 12, cy, F, H, one, "W₁")
    s.text(first.right + 9, cy + 4, "=")
    h = put(first.right + 18, cy, F, T, product, "XW₁")
    if slim:
        sigma = put(h.right + mid, cy, F, T, at, "σ")
        moved(s, h, sigma, to_sigma, unit)
        cy, x = 178, 1
        moved(s, Box(x - 8, cy, 8, 0), Box(x + 58, cy, 0, 0), to_two, unit, 3)
        enters = put(x + 60, cy, F, T, into, "σ")
    elif to_two:
        sigma = put(h.right + mid, cy, F, T, at, "σ(XW₁)")
        moved(s, h, sigma, to_sigma, unit)
        enters = put(sigma.right + far, cy, F, T, into, "σ(XW₁)")
        moved(s, sigma, enters, to_two, unit)
    else:                                                              # what σ makes goes into the second product
        enters = put(h.right + mid + F + far, cy, F, T, into, "σ(XW₁)")
        moved(s, h, enters, to_sigma, unit)
    s.text(enters.right + 6, cy + 4, "·")
    second = put(enters.right + 12, cy, H, F, two, "W₂")
    s.text(second.right + 9, cy + 4, "=")
    terms = put(second.right + 18, cy, H, T, out, "Y")
    Y = put(terms.right + far, cy, H, T, "copy", "Y")
    moved(s, terms, Y, after, unit)
    if before:
        s.text(X.x, X.y - 8, "slice: free", "start", soft=True, size=SMALL)
    return bill(s, cy + 68, found.cost/unit, back.cost/unit, best, most)


def bill(s, y, forward, backward, best, most):
    """What a layout sends, on one scale for all of them, with a mark at the least."""
    total = forward + backward
    k = (s.W - 78)/most
    for v in range(0, most + 1, 2):
        s.line(f"M{1 + k*v:.1f} {y + 26}v4", opacity=.4, weight=1)
        if v % 4 == 0 and k*abs(v - best) > 64 - 8*(v == 0):
            s.text(1 + k*v, y + 45, str(v), "start" if v == 0 else "middle", soft=True, size=SMALL)
    s.rect(1, y, k*forward, 24, "network", "paper", radius=3, opacity=.6)
    s.rect(1 + k*forward, y, k*backward, 24, "network", "paper", radius=3, opacity=.3)
    for at, n, word in ((1, forward, "forward"), (1 + k*forward, backward, "backward")):
        text = f"{word} {n:g}" if k*n > 86 else f"{n:g}"
        s.text(at + k*n/2, y + 17, text, size=SMALL, bold=True)
    s.text(1 + k*total + 7, y + 17, count(total), "start", bold=True)
    s.line(f"M{1 + k*best:.1f} {y - 7}v6M{1 + k*best:.1f} {y + 25}v9", "memory", 2.5)
    s.text(1 + k*best, y + 48, f"the least: {best:g}", color="memory", size=SMALL, bold=True)
    return s


def by_hand(W, X, W1, relu):
    """One token on two devices with its numbers: cut by columns σ sees entries, cut by rows it sees terms."""
    s = Sketch(W)
    slim, c = narrow(s), 30

    def cells(x, y, values, ranks):
        """A matrix of numbers, each cell in the colour of the device that holds it."""
        for i, row in enumerate(values):
            for j, v in enumerate(row):
                s.sheet(x + c*j + 1, y + c*i + 1, c - 2, c - 2, ranks[i][j])
                s.text(x + c*j + c/2, y + c*i + c/2 + 4.5, f"{v}".replace("-", "−"), bold=True, halo=ranks[i][j] is not None)
        return x + c*len(values[0])

    def panel(x, y, title, weights, x_ranks, terms, verdict, good):
        s.text(x, y + 12, title, "start", bold=True)
        y += 34
        right = cells(x, y + c/2, X.tolist(), [x_ranks])
        s.text(right + 9, y + c + 4, "·")
        right = cells(right + 18, y, W1.tolist(), weights)
        s.text(right + 11, y + c + 4, "=")
        at = right + 22
        for k, (values, ranks) in enumerate(terms):
            if k:
                s.text(at + 8, y + c + 4, "+")
                at += 16
            at = cells(at, y + c/2, values, [ranks])
        y += 2*c + 14
        s.text(x, y + c/2 + 4.5, "σ on each device", "start", soft=True)
        at = right + 22
        for k, (values, ranks) in enumerate(terms):
            if k:
                s.text(at + 8, y + c/2 + 4, "+")
                at += 16
            at = cells(at, y, relu(values).tolist(), [ranks])
        s.text(x, y + c + 24, ("✓ " if good else "✗ ") + verdict, "start", color="memory" if good else "network", bold=True)
        return y + c + 34

    whole = relu(X @ W1).tolist()[0]
    rows = [X[:, [r]] @ W1[[r]] for r in (0, 1)]
    wrong = sum(map(relu, rows)).tolist()[0]
    low = panel(0, 0, "by columns: parts of XW₁", [[0, 1]]*2, [None, None], [(X @ W1, [0, 1])],
                f"[{whole[0]}  {whole[1]}] is σ(XW₁)", True)
    panel(0 if slim else W/2 + 14, low + 12 if slim else 0, "by rows: terms of XW₁", [[0, 0], [1, 1]], [0, 1],
          [(rows[0], [0, 0]), (rows[1], [1, 1])], f"the sum is [{wrong[0]}  {wrong[1]}], not [{whole[0]}  {whole[1]}]", False)
    s.key(s.low + 8, t=2)
    return s


def block(W, names, forth, duals):
    """A transformer block as boxes: between them the placements forward, and those of the gradients backward."""
    s = Sketch(W)
    n = len(names)
    if narrow(s):
        bw, bh, gap, y = 92, 30, 54, 24
        x = W/2 - bw/2
        s.text(W/2 - 84, 14, "forward ↓", soft=True, size=SMALL)
        s.text(W/2 + 84, 14, "backward ↑", soft=True, size=SMALL)
        for i, name in enumerate(names):
            s.box(x, y, bw, bh, name, "network" if name in "fg" else None)
            if name in "fg":
                s.text(W/2 + (-1 if name == "g" else 1)*100, y + 19, "all-reduce", color="network", bold=True, size=SMALL)
            lo = y + bh + gap
            s.line(f"M{W/2 - 30:.1f} {y + bh + 5}V{lo - 10}")
            s.head(W/2 - 30, lo - 5, "down")
            s.line(f"M{W/2 + 30:.1f} {y + bh + 10}V{lo - 5}")
            s.head(W/2 + 30, y + bh + 5, "up")
            s.array(W/2 - 98, y + bh + 13, 46, 28, held(forth[i]))
            s.array(W/2 + 52, y + bh + 13, 46, 28, held(duals[i]))
            y = lo
        s.key(s.low + 14, x=0)
        return s
    bw, gap, bh, cy = 58, 54, 38, 92
    x = (W - n*bw - n*gap)/2 + 4
    s.text(0, 15, "forward →", "start", soft=True, size=SMALL)
    s.text(0, 2*cy, "← backward", "start", soft=True, size=SMALL)
    for i, name in enumerate(names):
        s.box(x, cy - bh/2, bw, bh, name, "network" if name in "fg" else None)
        right = x + bw + gap
        s.line(f"M{x + bw + 6} {cy - 9}H{right - 10}")
        s.head(right - 5, cy - 9, "right")
        s.line(f"M{x + bw + 10} {cy + 9}H{right - 6}")
        s.head(x + bw + 5, cy + 9, "left")
        s.array(x + bw + 6, cy - 64, gap - 12, 36, held(forth[i]))
        s.array(x + bw + 6, cy + 28, gap - 12, 36, held(duals[i]))
        if name in "fg":
            at = cy - 42 if name == "g" else cy + 35
            s.text(x + bw/2, at, "all-", color="network", bold=True, size=SMALL)
            s.text(x + bw/2, at + 15, "reduce", color="network", bold=True, size=SMALL)
        x = right
    s.key(2*cy + 12, x=0)
    return s


def between_layers(W):
    """The same bytes, other ends: an all-reduce leaves copies of all tokens, its halves leave a part of them between."""
    s = Sketch(W)
    slim = narrow(s)
    H, T = (30, 60) if slim else (40, 76)
    big = 62 if slim else 92
    gap = 60 if slim else 84
    for k, (title, end, enter, leave, note) in enumerate((
            ("tensor parallelism", "copy", "", "all-\nreduce", "all tokens"),
            ("with sequence parallelism", "rows", "all-\ngather", "reduce-\nscatter", "1/t of them"))):
        y = k*(T + 88)
        s.text(0, y + 12, title, "start", bold=True)
        y += 36
        x = max(0, (W - 2*H - 2*big - 3*gap)/2)
        first = s.array(x, y, H, T, end)
        full = s.array(first.right + gap, y, big, T, "columns", "σ(XW₁)" if not slim else "σ")
        term = s.array(full.right + (34 if slim else gap - 10), y, H, T, "term", "Y")
        last = s.array(term.right + gap, y, H, T, end)
        s.text(first.x, y + T + 17, note, "start", soft=True, size=SMALL)
        s.text(last.right, y + T + 17, note, "end", soft=True, size=SMALL)
        s.arrow(first, full, enter, "1 unit" if enter else "", "network" if enter else "other", 2.5 if enter else 1.5,
                opacity=1 if enter else .45)
        s.arrow(full, term, "" if slim else "W₂", opacity=.45)
        s.arrow(term, last, leave, "2 units" if k == 0 else "1 unit", "network", 2.5, gap=9)
    s.words(0, s.low + 6, .85*W, "Norm, dropout and residual work on the two ends: on all tokens, or on a slice of them.",
            soft=True, size=SMALL)
    s.key(s.low + 10, x=0)
    return s


def grid(W, t, nodes=4, size=8, layers=80):
    """Nodes of GPUs cut into stages of t; the t GPUs of the first stage are coloured, for they share its layers."""
    s = Sketch(W)
    slim = narrow(s)
    w, side = (W - 2 if slim else (W - 26)/2), 26
    each = size//t
    deep = layers*t//(nodes*size)
    for k in range(nodes):
        x, y = (1, 82*k) if slim else (1 + (w + 24)*(k % 2), 88*(k//2))
        s.text(x, y + 13, f"node {k}", "start", soft=True, size=SMALL)
        part = (w - 8*(each - 1))/each
        for j in range(each):
            n, left = k*each + j, x + j*(part + 8)
            s.rect(left, y + 20, part, 54, "other", "other", opacity=.04, line_opacity=.6, radius=8)
            s.text(left + part/2, y + 36, f"layers {n*deep + 1} to {(n + 1)*deep}", size=SMALL)
            step = (part - 16)/t
            for r in range(t):
                s.sheet(left + 8 + step*r + (step - side)/2, y + 43, side, side, None if n else r)
                if not n:
                    s.text(left + 8 + step*(r + .5), y + 61, str(r), bold=True, size=SMALL, halo=True)
    s.words(0, s.low + 8, W, "A box is a stage.", soft=True, size=SMALL)
    return s


def in_flight(W, stages=4):
    """What each stage starts before the first gradient reaches it; a backward pass takes two forward passes' time."""
    s = Sketch(W)
    left, h = (62, 24) if narrow(s) else (70, 26)
    unit = (W - left - 2)/(3*stages)
    for k in range(stages):
        y = 1 + k*(h + 6)
        s.text(0, y + h/2 + 4.6, f"stage {k}", "start", soft=True, size=SMALL)
        s.line(f"M{left} {y + h + 2:.1f}H{W - 1}", opacity=.18, weight=1)
        for j in range(stages - k):
            q = s.rect(left + (k + j)*unit, y, unit - 1.5, h, "compute", "", radius=3)
            s.text(q.cx, q.cy + 4.7, str(j), bold=True, size=SMALL)
        q = s.rect(left + (stages + 2*(stages - 1 - k))*unit, y, 2*unit - 1.5, h, "limit", "", opacity=.75, radius=3)
        s.text(q.cx, q.cy + 4.7, "0", bold=True, size=SMALL)
    s.legend(s.low + 8, [("forward", "compute", 1), ("backward, twice as long", "limit", .75)])
    return s


def hidden(W, cases, horizon):
    """Lanes of time: chunks travel, and each is multiplied when it has arrived; cases: title, product, travel, good."""
    s, t = Sketch(W), 4
    k = (W - 64)/horizon
    y = 0
    for title, product, travel, good in cases:
        s.text(0, y + 13, title, "start", bold=True, color="memory" if good else "network")
        y += 24
        for row, name in enumerate(("links", "math")):
            s.text(0, y + 19 + 32*row, name, "start", soft=True, size=SMALL)
            s.line(f"M48 {y + 28 + 32*row}H{W}", weight=1, opacity=.18)
        done, waited = 0, []
        for c in range(t):
            if c:
                x = 50 + k*travel*(c - 1)
                s.rect(x, y + 2, k*travel - 1.5, 24, "network", "", opacity=.55, radius=3)
                s.text(x + k*travel/2, y + 18.5, str(c), bold=True, size=SMALL)
            begin = max(done, travel*c)
            if begin > done + 1e-9:
                waited.append(begin - done)
                s.rect(50 + k*done, y + 34, k*(begin - done) - 1.5, 24, "", "limit", dash="3 3", radius=3)
                if k*(begin - done) > 38:
                    s.text(50 + k*(begin + done)/2, y + 50.5, "waits", soft=True, size=SMALL)
            done = begin + product
            s.rect(50 + k*begin, y + 34, k*product - 1.5, 24, "compute", "", opacity=.45, radius=3)
            s.text(50 + k*(begin + product/2), y + 50.5, str(c), bold=True, size=SMALL)
            end = begin + product
        if waited and k*max(waited) <= 38:                             # no room inside: said once, behind the last
            s.rect(50 + k*end + 12, y + 34, 16, 24, "", "limit", dash="3 3", radius=3)
            s.text(50 + k*end + 34, y + 50.5, "waits", "start", soft=True, size=SMALL)
        y += 78
    return s


def fits(W, bars, capacity):
    """The bytes that a GPU stores at each number of ranks, against those that it may store."""
    s = Sketch(W)
    s.memory(0, bars, capacity, limit="may store")
    return s
