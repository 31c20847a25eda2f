"""Drawings of chapter 17: a causal mask dealt out to ranks, and tokens traded for heads."""
from ..diagram import LEAST, Sketch, rank
from ..shapes import Path


def owners(places):
    """The rank that has each position."""
    return {int(i): r for r, at in enumerate(places) for i in at}


def runs(flags):
    """(first, length) of each run of true flags."""
    out = []
    for j, flag in enumerate(flags):
        if flag and out and sum(out[-1]) == j:
            out[-1] = out[-1][0], out[-1][1] + 1
        elif flag:
            out.append((j, 1))
    return out


def firsts(S, lengths=None):
    """The first position that each of S positions may see: that of its document, if there are lengths of documents."""
    return [sum(lengths[:d]) for d, n in enumerate(lengths) for _ in range(n)] if lengths else [0]*S


def pairs(places, step=None, lengths=None):
    """Pairs that each rank computes, in round `step` of the ring or in all rounds; lengths: of documents, None for one."""
    P, own = len(places), owners(places)
    first = firsts(len(own), lengths)
    rounds = [(own[i] - own[j]) % P for i in own for j in range(first[i], i + 1)]
    ranks = [own[i] for i in own for j in range(first[i], i + 1)]
    return [sum(r == q and (step is None or k == step) for q, k in zip(ranks, rounds)) for r in range(P)]


def mask(W, places, step=None, lengths=None):
    """Queries down, keys across, a cell for each pair that the mask leaves, in the colour of the query's rank.

    step: the round of the ring whose pairs are drawn strongly, all of them if None.  lengths: of documents, None for one.
    """
    s = Sketch(W)
    own, P = owners(places), len(places)
    S = len(own)
    first = firsts(S, lengths)
    cell = (W - 40)/S if s.narrow else min(17, W*.45/S)
    x, y = 34, 34
    s.text(x + S*cell/2, 13, "keys", soft=True, size=LEAST)
    s.text(0, 13, "queries ↓", "start", soft=True, size=LEAST)
    for j in range(S):
        s.rect(x + j*cell, 20, cell - 1, 9, rank(own[j]), "", opacity=.8, radius=0)
        s.rect(20, y + j*cell, 9, cell - 1, rank(own[j]), "", opacity=.8, radius=0)
    for r in range(P):
        for strong in (True, False):
            d = "".join(f"M{x + a*cell:.1f} {y + i*cell:.1f}h{n*cell - 1:.1f}v{cell - 1:.1f}h{1 - n*cell:.1f}Z"
                        for i in range(S) if own[i] == r
                        for a, n in runs([j >= first[i] and ((r - own[j]) % P == step or step is None) == strong
                                          for j in range(i + 1)]))
            if d:
                s.shapes.append(Path(d, rank(r), "", .9 if strong else .17))
    s.rect(x - 1, y - 1, S*cell + 1, S*cell + 1, "", "other", line_opacity=.35, radius=0)
    left, top = (0, y + S*cell + 14) if s.narrow else (x + S*cell + 34, y + 20)
    counts = pairs(places, step, lengths)
    most = S*S/P/2*1.8 if step is None else (S/P)**2
    s.text(left, top + 6, "pairs of each rank" if step is None else "pairs of each rank, this round", "start", bold=True, size=LEAST)
    full = W - left - 110
    for r, n in enumerate(counts):
        low = top + 20 + 28*r
        s.text(left, low + 14, f"rank {r}", "start", size=LEAST)
        s.rect(left + 56, low, max(1, full*n/most), 18, rank(r), "", opacity=.85, radius=0)
        s.text(left + 62 + full*n/most, low + 14, str(n), "start", size=LEAST)
    return s


def swap(W, P=4):
    """An array of tokens by heads, cut by tokens, becomes one cut by heads."""
    s = Sketch(W)
    side = min(150, (W - 110)/2)
    for x, flip in ((24, False), (W - side - 4 if s.narrow else 330, True)):
        s.text(x + side/2, 12, "heads", soft=True, size=LEAST)
        for i in range(P):
            for j in range(P):
                s.rect(x + j*side/P, 22 + i*side/P, side/P - 2, side/P - 2, rank(j if flip else i), "", opacity=.75, radius=0)
        s.text(x + side/2, side + 40, "cut by heads" if flip else "cut by tokens", bold=True, size=LEAST)
    a = 24 + side
    b = W - side - 4 if s.narrow else 330
    s.line(f"M{a + 8:.1f} {22 + side/2:.1f}H{b - 10:.1f}", "network", 1.5)
    s.head(b - 8, 22 + side/2, "right", "network")
    if not s.narrow:
        s.text((a + b)/2, 12 + side/2, "all-to-all", color="network", size=LEAST)
    return s
