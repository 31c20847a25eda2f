"""Drawings of chapter 31a: caches to scale and cut, who reads which head, two routes through a latent, a cone, a halo."""
from ..diagram import LEAST, Sketch, rank

SMALL = LEAST


def shelves(W, designs, t):
    """What a token leaves in one layer, to scale, cut over t ranks by heads: [(name, key heads, numbers each, role)].

    A bar that is longer than the sheet runs off it and says how long it is.
    """
    s = Sketch(W)
    kept = [size*max(1, heads/t) for _, heads, size, _ in designs]
    left = 0 if s.narrow else 150
    full = 2304                                             # numbers that the sheet is wide
    w, y = W - left - (4 if s.narrow else 70), 4
    for (name, heads, size, role), mine in zip(designs, kept):
        whole = heads*size
        s.text(0, y + (13 if s.narrow else 20), name, "start", bold=True, color=role, size=SMALL)
        at = y + (20 if s.narrow else 0)
        long = whole > full
        s.rect(left, at, w if long else w*whole/full, 30, "", role, opacity=1, line_opacity=.6, dash="" if long else "3 3")
        s.rect(left, at, min(w, w*mine/full), 30, role, "", opacity=.6)
        if long:
            s.head(left + w, at + 15, "right", role, 8)
        copies = t/heads if t > heads else 0
        note = f"{mine:,.0f} of {whole:,} on each rank" if t > 1 else f"{whole:,}"
        if copies and t > 1:
            note += f"; each head {copies:.0f} times"
        s.text(left, at + 47, note, "start", soft=True, size=SMALL)
        y = at + 62
    words = "numbers of one token and layer" if s.narrow else "numbers that one token leaves in one layer"
    s.text(left, y + 8, words, "start", soft=True, size=SMALL)
    return s


def readers(W):
    """Four query heads above the key-value heads that they read, in four designs."""
    s = Sketch(W)
    designs = [("multi-head", 4, "limit"), ("grouped", 2, "compute"), ("multi-query", 1, "memory"),
               ("latent", 1, "network")]
    across = 2 if s.narrow else 4
    gap = 18 if s.narrow else 28
    w = (W - gap*(across - 1))/across
    for n, (name, heads, role) in enumerate(designs):
        x0, y0 = (n % across)*(w + gap), (n//across)*150
        s.text(x0 + w/2, y0 + 14, name, bold=True, color=role, size=SMALL)
        q = [x0 + w*(j + .5)/4 for j in range(4)]
        width = min(22, w/4 - 4)
        k = [x0 + w*(i + .5)/heads for i in range(heads)]
        wide = w - 6 if name.startswith("latent") else width
        for j, x in enumerate(q):
            s.line(f"M{x:.1f} {y0 + 50}L{k[j*heads//4]:.1f} {y0 + 92}", role, 1.6, opacity=.7)
            s.rect(x - width/2, y0 + 28, width, 22, "other", "other", opacity=.12, line_opacity=.6)
        for x in k:
            s.rect(x - wide/2, y0 + 92, wide, 22, role, role, opacity=.45)
        words = ("each has its own", "two share one", "all share one", "all share a wide one")[n]
        s.text(x0 + w/2, y0 + 132, words, soft=True, size=SMALL)
    return s


def routes(W, r=512, d=128):
    """From a query and a cached latent to their score: up to a head's key, or down to the latent."""
    s = Sketch(W)
    bw, bh, mw = (104, 42, 92) if s.narrow else (150, 46, 130)
    for name, y, role in (("expanded", 18, "limit"), ("absorbed", 152, "network")):
        down = name == "absorbed"
        s.text(0, y, f"{name}: for each {'query' if down else 'key'}", "start", bold=True, color=role, size=SMALL)
        a = s.box(2, y + 14, bw, bh, f"latent, {r}", "memory")
        b = s.box(W - bw - 2, y + 14, bw, bh, f"query, {d}", "compute")
        mid = s.box(W/2 - mw/2, y + 76, mw, 36, f"query, {r}" if down else f"key, {d}", role)
        for box, edge, way, out, makes in ((a, mid.x, "right", -6, not down), (b, mid.right, "left", 6, down)):
            s.line(f"M{box.cx:.1f} {box.bottom + 4}V{mid.cy:.1f}H{edge + (2*out if makes else out):.1f}", role if makes else "other",
                   2 if makes else 1.5)
            if makes:
                s.head(edge + out, mid.cy, way, role, 5)
            word = ("Uᵀ" if down else "U") if makes else "score"
            s.text((box.cx + edge)/2, mid.cy - 8, word, bold=makes, soft=not makes, color=role if makes else None, size=SMALL)
    return s


def cone(W, layers=4, window=4, tokens=17):
    """What the last token's output can depend on: a column per token, a row per layer, windows between them."""
    s = Sketch(W)
    left, step = (4 if s.narrow else 110), 46
    w = (W - left - 4)/tokens
    size = min(20, w - 4)
    for layer in range(layers, -1, -1):
        y = 8 + step*(layers - layer)
        if not s.narrow:
            s.text(0, y + 14, "output" if layer == layers else "input" if layer == 0 else f"after layer {layer}", "start",
                   soft=True, size=SMALL)
        reach = (layers - layer)*(window - 1)
        for i in range(tokens):
            x = left + w*(i + .5)
            on = tokens - 1 - reach <= i
            s.rect(x - size/2, y, size, size, "network" if on else "other", "network" if on else "other",
                   opacity=.55 if on else .07, line_opacity=.8 if on else .4, radius=3)
            if on and layer:
                low = y + step
                far = left + w*(max(0, i - window + 1) + .5)
                s.line(f"M{x:.1f} {y + size}L{far:.1f} {low:.1f}M{x:.1f} {y + size}V{low:.1f}", "network", 1, opacity=.35)
    s.text(left + w*tokens/2, 8 + step*layers + size + 18, f"{layers}·({window} - 1) + 1 = {layers*(window - 1) + 1} inputs",
           color="network", bold=True, size=SMALL)
    return s


def halo(W, P=4, tokens=8, window=4):
    """Chunks of a sequence on P ranks; the end of each goes to the next rank."""
    s = Sketch(W)
    gap = 10 if s.narrow else 26
    w = (W - gap*(P - 1))/P
    c = w/(tokens + window - 1)
    for r in range(P):
        x0 = r*(w + gap)
        s.text(x0 + w/2, 14, f"rank {r}", bold=True, size=SMALL)
        for i in range(window - 1):
            if r:
                s.rect(x0 + c*i, 26, c - 1, 26, rank(r - 1), rank(r - 1), opacity=.25, line_opacity=.8, radius=0, dash="2 2")
        for i in range(tokens):
            s.rect(x0 + c*(window - 1 + i), 26, c - 1, 26, rank(r), "", opacity=.8, radius=0)
        if r < P - 1:
            a, b = x0 + c*(tokens + window - 1 - (window - 1)/2), x0 + w + gap + c*(window - 1)/2
            s.line(f"M{a:.1f} 58V78H{b:.1f}V70", "network", 2)
            s.head(b, 62, "up", "network", 5)
    words = f"{window - 1} tokens to the next rank" + ("" if s.narrow else ", however many ranks")
    s.text(W/2, 100, words, color="network", bold=True, size=SMALL)
    return s
