"""Drawings of chapter 7: the loss surface from above, and a cut along one budget.

loss(params, tokens) and tokens_at(loss, params) are the caller's; sizes and tokens lie on logarithmic axes.
"""
from math import log10

import numpy as np

from ..diagram import LEAST, Sketch

SIZES, TOKENS, LOSSES = (8, 12), (9, 13), (1.8, 3.0)        # powers of ten; nats
LEVELS = [1.95, 2.05, 2.15, 2.3, 2.6]


def curve(points, x, y, inside):
    """The path of a list of points, where `inside` holds."""
    d, down = "", False
    for p in points:
        if inside(*p):
            d += f"{'L' if down else 'M'}{x(p[0]):.1f} {y(p[1]):.1f}"
            down = True
        else:
            down = False
    return d


def power(n):
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] for c in str(n))


def valley(W, loss, tokens_at, budgets, chosen, best, floor):
    """Above, lines of equal loss and of equal compute over size and tokens; below, the loss along the chosen budget.

    budgets: FLOP of the lines;  best: {budget: (params, tokens)};  floor: the loss that nothing removes.
    """
    s = Sketch(W)
    left, right, high, low = 46, 10, 186 if s.narrow else 230, 120
    w, foot = W - left - right, 8 + high + 30
    sizes = np.geomspace(10**SIZES[0], 10**SIZES[1], 97)

    def x(size):
        return left + w*(log10(size) - SIZES[0])/(SIZES[1] - SIZES[0])

    def y(tokens):
        return 8 + high*(TOKENS[1] - log10(tokens))/(TOKENS[1] - TOKENS[0])

    def z(nats):
        return foot + low*(LOSSES[1] - nats)/(LOSSES[1] - LOSSES[0])

    def within(_, tokens):
        return 10**TOKENS[0] <= tokens <= 10**TOKENS[1]

    for top, tall in ((8, high), (foot, low)):
        s.rect(left, top, w, tall, line_opacity=.35, radius=0)
    for level in LEVELS:
        points = [(n, t) for n in sizes if np.isfinite(t := tokens_at(level, n))]
        s.line(curve(points, x, y, within), "idle", 1.2, bottom=8 + high)
        size, tokens = next(p for p in points if p[1] < 10**(TOKENS[1] - .3))
        s.text(x(size) + 3, y(tokens) + 1, f"{level:.2f}", "start", size=LEAST, soft=True, halo=True, spoken=False)
    n, d = best[chosen]
    for budget in budgets:
        s.line(curve([(m, budget/6/m) for m in sizes], x, y, within), "compute", 2.6 if budget == chosen else .9,
               opacity=1 if budget == chosen else .5, dash="" if budget == chosen else "4 3", bottom=8 + high)
    path = [best[b] for b in budgets]
    s.line(curve(path, x, y, within), "network", 1.4, dash="2 3", bottom=8 + high)
    for b in budgets:
        r = 5 if b == chosen else 3
        s.rect(x(best[b][0]) - r, y(best[b][1]) - r, 2*r, 2*r, "network", "network", radius=r)
    s.line(f"M{x(n):.1f} {y(d) + 6:.1f}V{foot + low:.1f}", "network", 1, dash="2 3", opacity=.8, bottom=foot + low)

    cut = [(m, loss(m, chosen/6/m)) for m in sizes]
    s.line(curve(cut, x, z, lambda _, nats: nats <= LOSSES[1]), "compute", 2.6, bottom=foot + low)
    s.line(f"M{left} {z(floor):.1f}h{w}", "limit", 1.2, dash="5 3", bottom=foot + low)
    s.text(left + 6, z(floor) - 5, "floor", "start", color="limit", size=LEAST)
    s.rect(x(n) - 5, z(loss(n, d)) - 5, 10, 10, "network", "network", radius=5)
    for k, word in ((.5, "½ ×"), (2, "2 ×")):
        s.rect(x(k*n) - 3, z(loss(k*n, d/k)) - 3, 6, 6, "compute", "compute", radius=3)
        s.text(x(k*n), z(loss(k*n, d/k)) - 9, word, "end" if k < 1 else "start", size=LEAST, halo=True, spoken=False)
    for p in range(TOKENS[0], TOKENS[1] + 1):
        s.text(left - 6, y(10**p) + (10 if p == TOKENS[1] else 4), power(p), "end", soft=True, size=LEAST, spoken=False)
    for nats in (2.0, 2.4, 2.8):
        s.text(left - 6, z(nats) + 4, f"{nats:.1f}", "end", soft=True, size=LEAST, spoken=False)
    for p in range(SIZES[0], SIZES[1] + 1):
        s.text(min(x(10**p), W - 16), foot + low + 17, power(p), soft=True, size=LEAST, spoken=False)
    s.text(left + 6, 8 + high - 8, "tokens, against parameters", "start", soft=True, size=LEAST, halo=True)
    s.text(left + w - 6, foot + 16, f"loss along {power(round(log10(chosen)))} FLOP", "end", soft=True, size=LEAST, halo=True)
    return s
