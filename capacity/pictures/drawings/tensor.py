"""Drawings of chapter 15: a layer cut over devices."""
from ..svg import PAPER, ink
from ..diagram import Box, Sketch

HELD = {"B D": "copy", "B F": "copy", "B E": "copy", "B D/t": "columns", "B F/t": "columns", "B E/t": "columns",
        "B/t D": "rows", "B/t E": "rows", "B D {t}": "term", "B F {t}": "term", "B E {t}": "term",
        "D F/t": "columns", "D/t F": "rows", "F E/t": "columns", "F/t E": "rows"}
WORD = {"all_gather": "all-\ngather", "all_reduce": "all-\nreduce", "reduce_scatter": "reduce-\nscatter", "slice": "slice",
        "all_to_all": "all-to-\nall"}


def held(placement):
    return HELD[str(placement)]


def placements(W):
    """The three ways to hold an array, as the chapter's text names them."""
    s, narrow = Sketch(W), W < 400
    items = [("copy", "copy", "B F", "each device has all of it"), ("columns", "part", "B F/t", "device r has slice r"),
             ("term", "term", "B F {t}", "the sum of all is the array")]
    step = W/3
    for k, (how, word, code, means) in enumerate(items):
        w, h = (76, 52) if narrow else (104, 64)
        x = step*k + (step - w)/2
        s.array(x, 10, w, h, how)
        s.text(x + w/2, 32 + h, word, bold=True)
        s.text(x + w/2, 49 + h, code, soft=True, size=11.5)
        if not narrow:
            s.text(x + w/2, 66 + h, means, soft=True, size=11.5)
    s.key(s.low + 8, x=W/2 - 95)
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


def feed_forward(W, found, unit, best, back):
    """The layer X → XA → σ(XA) → σ(XA)B in one layout, as `search` found it, with the collectives that it needs."""
    s, narrow = Sketch(W), W < 400
    a, at, b = found.choice
    H, F, T = (32, 60, 58) if narrow else (34, 66, 64)
    before = [m for m in found.moves if set(m.source.cuts) == set("BD")]
    middle = [m for m in found.moves if set(m.source.cuts) == set("BF")]
    after = [m for m in found.moves if set(m.source.cuts) == set("BE")]
    product = "columns" if held(a) == "columns" else "term"
    to_sigma = middle[:1] if held(at) != product else []
    to_b = middle[len(to_sigma):]
    into = "columns" if held(b) == "rows" else "copy"
    out = "term" if held(b) == "rows" else "columns"
    mid, far = (60, 60) if narrow else (64, 62)

    def put(x, cy, w, h, how, name, note=""):
        return s.array(x, cy - h/2, w, h, how, name, note)

    cy, x = 56, 2
    X = put(x, cy, H, T, "columns" if before else "copy", "X", "tokens" if not narrow else "")
    s.text(X.right + 6, cy + 4, "·")
    A = put(X.right + 12, cy, F, H, held(a), "A")
    s.text(A.right + (7 if narrow else 9), cy + 4, "=")
    h = put(A.right + (14 if narrow else 17), cy, F, T, product, "XA")
    sig = put(h.right + mid, cy, F, T, held(at), "σ(XA)")
    moved(s, h, sig, to_sigma, unit)
    if narrow:
        cy, x = 172, 2
        moved(s, Box(x - 8, cy, 8, 0), Box(x + 58, cy, 0, 0), to_b, unit, 3)
        inn = put(x + 62, cy, F, T, into, "σ(XA)")
    else:
        inn = put(sig.right + far, cy, F, T, into, "σ(XA)")
        moved(s, sig, inn, to_b, unit)
    s.text(inn.right + 6, cy + 4, "·")
    B = put(inn.right + 12, cy, H, F, held(b), "B")
    s.text(B.right + (7 if narrow else 9), cy + 4, "=")
    Yp = put(B.right + (16 if narrow else 20), cy, H, T, out, "Y")
    Y = put(Yp.right + far, cy, H, T, "copy", "Y", "copies" if not narrow else "")
    moved(s, Yp, Y, after, unit)
    if before:
        s.text(X.cx, X.y - 8, "slice" if narrow else "slice, free", soft=True, size=11)
    y = cy + (74 if narrow else 78)
    s.key(y - 6, x=0)
    return bill(s, y + 22, found.cost/unit, back.cost/unit, best)


def bill(s, y, forward, backward, best, most=18):
    """What a layout sends, on one scale for all of them, with a mark at the least."""
    total = forward + backward
    x0, x1 = 0, s.W - 66
    k = (x1 - x0)/most
    for v in range(0, most + 1, 2):
        s.line(f"M{x0 + k*v:.1f} {y + 26}v4", opacity=.4, weight=1)
    s.rect(x0, y, k*forward, 24, ink("network"), PAPER, radius=3)
    s.rect(x0 + k*forward, y, k*backward, 24, ink("network"), PAPER, radius=3, opacity=.5)
    for at, n, word in ((x0, forward, "forward"), (x0 + k*forward, backward, "backward")):
        text = f"{word} {n:g}" if k*n > 74 else f"{n:g}"
        s.text(at + k*n/2, y + 16.5, text, size=11.5, bold=True, fill="#111")
    s.text(x0 + k*total + 7, y + 17, f"{total:g} units", "start", bold=True)
    s.line(f"M{x0 + k*best:.1f} {y - 7}v6M{x0 + k*best:.1f} {y + 25}v9", "memory", 2.5)
    s.text(x0 + k*best, y + 46, f"the least: {best:g}", color="memory", size=11.5, bold=True)
    return s


def by_hand(W, X, A, relu):
    """One token on two devices with its numbers: cut by columns σ sees entries, cut by rows it sees terms."""
    s, narrow = Sketch(W), W < 400
    c = 30

    def cells(x, y, values, ranks):
        """A matrix of numbers, each cell in the colour of the device that holds it."""
        for i, row in enumerate(values):
            for j, v in enumerate(row):
                s.sheet(x + c*j + 1, y + c*i + 1, c - 2, c - 2, ranks[i][j])
                s.text(x + c*j + c/2, y + c*i + c/2 + 4.5, f"{v}".replace("-", "−"), bold=True)
        return x + c*len(values[0])

    def panel(x, y, title, weights, x_ranks, terms, verdict, good):
        s.text(x, y + 12, title, "start", bold=True)
        y += 34
        right = cells(x, y + c/2, X.tolist(), [x_ranks])
        s.text(right + 9, y + c + 4, "·")
        right = cells(right + 18, y, A.tolist(), weights)
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
        color = "memory" if good else "network"
        s.text(x, y + c + 24, ("✓ " if good else "✗ ") + verdict, "start", color=color, bold=True)
        return y + c + 34

    whole = relu(X @ A).tolist()[0]
    cols = X @ A
    rows = [X[:, [r]] @ A[[r]] for r in (0, 1)]
    wrong = sum(map(relu, rows)).tolist()[0]
    low = panel(0, 0, "cut by columns: parts", [[0, 1]]*2, [None, None], [(cols, [0, 1])],
                f"[{whole[0]}  {whole[1]}], which is σ(XA)", True)
    panel(0 if narrow else W/2 + 14, low + 12 if narrow else 0, "cut by rows: terms", [[0, 0], [1, 1]], [0, 1],
          [(rows[0], [0, 0]), (rows[1], [1, 1])], f"the sum is [{wrong[0]}  {wrong[1]}], not [{whole[0]}  {whole[1]}]", False)
    s.key(s.low + 8, t=2)
    return s


def block(W, names, forth, duals):
    """A transformer block as boxes: between them the placements forward, and those of the cotangents backward."""
    s, narrow = Sketch(W), W < 400
    n = len(names)
    if narrow:
        bw, bh, gap, x = 92, 30, 54, W/2 - 46
        y = 24
        s.text(W/2 - 84, 14, "forward ↓", soft=True, size=11.5)
        s.text(W/2 + 84, 14, "backward ↑", soft=True, size=11.5)
        for i, name in enumerate(names):
            b = s.box(x, y, bw, bh, name, "network" if name in "fg" else None)
            if name in "fg":
                s.text(W/2 + (-1 if name == "g" else 1)*100, y + 19, "all-reduce", color="network", bold=True, size=11.5)
            lo = y + bh + gap
            s.line(f"M{W/2 - 30:.1f} {y + bh + 5}V{lo - 10}")
            s.head(W/2 - 30, lo - 5, "down")
            s.line(f"M{W/2 + 30:.1f} {y + bh + 10}V{lo - 5}")
            s.head(W/2 + 30, y + bh + 5, "up")
            s.array(W/2 - 98, y + bh + 13, 46, 28, held_any(forth[i]))
            s.array(W/2 + 52, y + bh + 13, 46, 28, held_any(duals[i]))
            y = lo
        return s
    bw, gap, bh, cy = 58, 54, 38, 90
    x = (W - n*bw - n*gap)/2 + 4
    s.text(0, 15, "forward →", "start", soft=True, size=11.5)
    s.text(0, 2*cy - 4, "← backward", "start", soft=True, size=11.5)
    for i, name in enumerate(names):
        s.box(x, cy - bh/2, bw, bh, name, "network" if name in "fg" else None)
        right = x + bw + gap
        s.line(f"M{x + bw + 6} {cy - 9}H{right - 10}")
        s.head(right - 5, cy - 9, "right")
        s.line(f"M{x + bw + 10} {cy + 9}H{right - 6}")
        s.head(x + bw + 5, cy + 9, "left")
        s.array(x + bw + 6, cy - 62, gap - 12, 34, held_any(forth[i]))
        s.array(x + bw + 6, cy + 28, gap - 12, 34, held_any(duals[i]))
        if name == "g":
            s.text(x + bw/2, cy - 40, "all-", color="network", bold=True, size=11.5)
            s.text(x + bw/2, cy - 27, "reduce", color="network", bold=True, size=11.5)
        if name == "f":
            s.text(x + bw/2, cy + 34, "all-", color="network", bold=True, size=11.5)
            s.text(x + bw/2, cy + 47, "reduce", color="network", bold=True, size=11.5)
        x = right
    s.key(2*cy + 6, x=0)
    return s


def held_any(p):
    p = str(p)
    return "term" if "{" in p else "columns" if "/t" in p else "copy"


def between_layers(W):
    """The same bytes, other ends: an all-reduce leaves copies of all tokens, its halves leave a part of them between."""
    s, narrow = Sketch(W), W < 400
    H, T = (30, 60) if narrow else (40, 76)
    big = 62 if narrow else 92
    gap = 58 if narrow else 84
    for k, (title, end, enter, leave, note) in enumerate((
            ("tensor parallelism", "copy", "", "all-\nreduce", "all y tokens"),
            ("with sequence parallelism", "rows", "all-\ngather", "reduce-\nscatter", "y/t tokens"))):
        y = k*(T + 84)
        s.text(0, y + 12, title, "start", bold=True)
        y += 34
        total = 2*H + 2*big + 3*gap
        x = max(0, (W - total)/2)
        first = s.array(x, y, H, T, end, "", note)
        full = s.array(first.right + gap, y, big, T, "columns", "XA", "inside the layer")
        term = s.array(full.right + (34 if narrow else gap - 10), y, H, T, "term", "Y")
        last = s.array(term.right + gap, y, H, T, end, "", note)
        s.arrow(first, full, enter, "1 unit" if enter else "", "network" if enter else "other", 2.5 if enter else 1.5,
                opacity=1 if enter else .45)
        s.arrow(full, term, "" if narrow else "B", opacity=.45)
        s.arrow(term, last, leave, "2 units" if k == 0 else "1 unit", "network", 2.5, gap=9)
    s.text(W/2, s.low + 20, "norm, dropout and residual work on the ends: on all tokens, or on a slice of them",
           soft=True, size=11.5) if not narrow else s.text(
        W/2, s.low + 20, "norm, dropout, residual work on the ends", soft=True, size=11.5)
    s.key(s.low + 8, x=0)
    return s


def nodes(W, inside, outside, n=2, g=8):
    """Two nodes: eight GPUs on NVLink each, and a network card for each GPU."""
    s, narrow = Sketch(W), W < 400
    w = W - 2 if narrow else (W - 28)/2
    size, step = (25, 37) if narrow else (26, (w - 26)/g)
    for k in range(n):
        x, y = (1, k*136) if narrow else (1 + k*(w + 26), 0)
        s.rect(x, y + 1, w, 112, line_opacity=.35, radius=10)
        s.text(x + 14, y + 20, f"node {k}", "start", soft=True, size=11.5)
        s.rect(x + 13, y + 30, w - 26, 13, ink("compute"), ink("compute"), opacity=.25, radius=6)
        s.text(x + w - 14, y + 20, f"NVLink, {inside} a GPU", "end", color="compute", bold=True, size=11.5)
        for r in range(g):
            gx = x + 13 + step*r + (step - size)/2
            s.line(f"M{gx + size/2:.1f} {y + 43}v11", "compute", 2.5)
            s.rect(gx, y + 54, size, size, rank_fill(), "currentColor", opacity=.08, line_opacity=.6, radius=4)
            s.text(gx + size/2, y + 71.5, str(k*g + r), bold=True, size=11.5)
            s.line(f"M{gx + size/2:.1f} {y + 54 + size}v10", "network", 1)
            s.rect(gx + size/2 - 6, y + 90, 12, 8, ink("network"), "none", radius=2)
            s.line(f"M{gx + size/2:.1f} {y + 98}v24", "network", 1)
        s.rect(x, y + 121, w + (0 if narrow or k else 27), 4, ink("network"), "none", opacity=.8, radius=2)
    s.text(0, s.low + 16, f"network: a card of {outside} for each GPU", "start", color="network", bold=True, size=11.5)
    return s


def rank_fill():
    return "currentColor"


def hidden(W, cases, horizon):
    """Lanes of time: chunks travel, and each is multiplied when it has arrived; cases: title, product, travel, good."""
    s, t = Sketch(W), 4
    k = (W - 64)/horizon
    y = 0
    for title, product, travel, good in cases:
        s.text(0, y + 13, title, "start", bold=True, color="memory" if good else "network")
        y += 24
        for row, (name, color) in enumerate((("links", "network"), ("math", "compute"))):
            s.text(0, y + 19 + 32*row, name, "start", soft=True, size=11.5)
            s.line(f"M48 {y + 28 + 32*row}H{W}", weight=1, opacity=.18)
        done = 0
        for c in range(t):
            if c:
                x = 50 + k*travel*(c - 1)
                s.rect(x, y + 2, k*travel - 1.5, 24, ink("network"), "none", opacity=.75, radius=3)
                s.text(x + k*travel/2, y + 18.5, f"{c}", bold=True, size=11.5, fill="#111")
            begin = max(done, travel*c)
            if begin > done + 1e-9:
                s.rect(50 + k*done, y + 34, k*(begin - done) - 1.5, 24, "none", ink("limit"), dash="3 3", radius=3)
                if k*(begin - done) > 30:
                    s.text(50 + k*(begin + done)/2, y + 50.5, "waits", soft=True, size=11)
            done = begin + product
            s.rect(50 + k*begin, y + 34, k*product - 1.5, 24, ink("compute"), "none", opacity=.75, radius=3)
            s.text(50 + k*(begin + product/2), y + 50.5, f"{c}", bold=True, size=11.5, fill="var(--cx-on-compute,#fff)")
        y += 78
    return s
