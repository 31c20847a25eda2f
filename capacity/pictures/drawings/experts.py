"""Drawings of chapter 18: where the copies of a token go, and which rank has which terms."""
from ..diagram import LEAST, Sketch, rank


def crossing(W, experts, each, nodes=8, devices=8, per_device=4):
    """The experts of one token of node 0 on their nodes, and the copies that cross to each node.

    experts: their numbers, by node and device.  each: a copy crosses for each expert, not one for each node.
    """
    s = Sketch(W)
    row = 4 if s.narrow else nodes
    w, gap = W/row, 8
    for n in range(nodes):
        x, y = n % row*w + gap/2, 6 + n//row*118
        mine = [e % (devices*per_device) for e in experts if e//(devices*per_device) == n]
        crossed = 0 if n == 0 else len(mine) if each else min(1, len(mine))
        for k in range(crossed):
            s.rect(x + 3 + 9*k, y, 7, 7, "network", "", radius=1)
        s.rect(x, y + 12, w - gap, 62, "network" if crossed else "", "network" if crossed else "other", opacity=.07,
               line_opacity=1 if crossed else .5, radius=5)
        cell, high = (w - gap - 8)/4, 27
        for d in range(devices):
            left, top = x + 4 + d % 4*cell, y + 16 + d//4*high
            s.rect(left + 1, top + 1, cell - 2, high - 2, "", "other", line_opacity=.3, radius=1)
            for k in (e % per_device for e in mine if e//per_device == d):
                s.rect(left + 3 + k % 2*(cell/2 - 2), top + 4 + k//2*10, 6, 7, "memory", "", radius=1)
        if n == 0:
            s.text(x + 4 + cell/2, y + 34, "t", bold=True, halo=True, size=LEAST)
        s.text(x + (w - gap)/2, y + 90, f"node {n}", soft=True, size=LEAST)
    y = 6 + (nodes - 1)//row*118 + 104
    s.rect(2, y + 2, 7, 7, "network", "", radius=1)
    s.text(14, y + 11, "a copy crosses", "start", soft=True, size=LEAST)
    s.rect(124, y + 2, 6, 7, "memory", "", radius=1)
    s.text(136, y + 11, "one of its experts", "start", soft=True, size=LEAST)
    return s


def loads(chosen, experts, ranks):
    """Terms that each rank computes: `chosen` are the experts of each token, and neighbouring experts share a rank."""
    return [sum(e*ranks//experts == r for row in chosen for e in row) for r in range(ranks)]


def matrix(W, chosen, experts, ranks=4):
    """Tokens down, experts across, a mark in its rank's colour for each term that is not zero; beside it the ranks' loads."""
    s = Sketch(W)
    cell = min(17, (W - 40)/experts)
    x, y = 34, 36
    s.text(x + experts*cell/2, 13, "experts", soft=True, size=LEAST)
    s.text(0, 13, "tokens ↓", "start", soft=True, size=LEAST)
    for e in range(experts):
        s.rect(x + e*cell, 20, cell - 1, 9, rank(e*ranks//experts), "", opacity=.8, radius=0)
    for i, row in enumerate(chosen):
        s.rect(x, y + i*cell, experts*cell - 1, cell - 1, "other", "", opacity=.06, radius=0)
        for e in row:
            s.rect(x + e*cell, y + i*cell, cell - 1, cell - 1, rank(e*ranks//experts), "", opacity=.9, radius=0)
    tall = len(chosen)*cell
    left, top = (0, y + tall + 14) if s.narrow else (x + experts*cell + 34, y + 20)
    s.text(left, top + 6, "terms of each rank", "start", bold=True, size=LEAST)
    terms, full = loads(chosen, experts, ranks), W - left - 110
    for r, n in enumerate(terms):
        low = top + 20 + 28*r
        s.text(left, low + 14, f"rank {r}", "start", size=LEAST)
        s.rect(left + 56, low, max(1, full*n/sum(terms)), 18, rank(r), "", opacity=.85, radius=0)
        s.text(left + 62 + full*n/sum(terms), low + 14, str(n), "start", size=LEAST)
    return s
