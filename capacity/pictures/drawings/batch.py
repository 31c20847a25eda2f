"""Drawings of chapter 10: a step and the sum of its gradients, a gradient among its noisy estimates."""
from math import cos, hypot, pi, sin

from ..diagram import LEAST, Sketch, room


def step(W, forward, backward, sends, span):
    """Arithmetic above, network card below, over one step; sends: [(start, end), ...] of the buckets; span: the axis, s."""
    s = Sketch(W)
    left = 12 if s.narrow else 88
    unit = (W - left - 12)/span
    end = max(forward + backward, sends[-1][1])
    for k, name in enumerate(("arithmetic", "card")):
        y = 22 + 62*k
        s.text(left if s.narrow else left - 10, y - 6 if s.narrow else y + 20, name, "start" if s.narrow else "end",
               soft=True, size=LEAST)
        s.rect(left, y, end*unit, 30, "idle", "", opacity=.4, radius=0)
    for at, long, name, opacity in ((0, forward, "forward", .45), (forward, backward, "backward", .8)):
        b = s.rect(left + at*unit, 22, long*unit, 30, "compute", "paper", opacity=opacity, radius=0)
        if room(name) + 8 < b.w:
            s.text(b.cx, 42, name, size=LEAST, halo=True)
    for a, b in sends:
        s.rect(left + a*unit, 84, max((b - a)*unit, .4), 30, "network", "", opacity=.85, radius=0)
    s.line(f"M{left} 124h{span*unit:.1f}", weight=1, opacity=.5)
    tick = .2 if s.narrow else .1
    for j in range(int(span/tick + 1e-9) + 1):
        x = left + j*tick*unit
        s.line(f"M{x:.1f} 124v5", weight=1, opacity=.5)
        side = "start" if not j else "end" if x + 18 > W else "middle"
        s.text(x, 143, f"{j*tick:.1f} s" if j else "0", side, soft=True, size=LEAST, spoken=False)
    return s


def arrows(W, true, estimates, ring):
    """A gradient, eight estimates of it from one starting point, and a ring of radius `ring` about its tip."""
    s = Sketch(W)
    tall, x, y = 230, W*.36, 130
    unit = min(W*.16, 62)

    def arrow(to, color, weight, opacity=1):
        dx, dy = to[0]*unit, -to[1]*unit
        s.line(f"M{x:.1f} {y}L{x + dx:.1f} {y + dy:.1f}", color, weight, opacity=opacity, bottom=tall)
        long = hypot(dx, dy)
        a, b = dx/long, dy/long
        s.line(f"M{x + dx - 8*a + 4*b:.1f} {y + dy - 8*b - 4*a:.1f}L{x + dx:.1f} {y + dy:.1f}"
               f"L{x + dx - 8*a - 4*b:.1f} {y + dy - 8*b + 4*a:.1f}", color, weight, opacity=opacity)

    tip, r = (x + true[0]*unit, y - true[1]*unit), ring*unit
    around = [(tip[0] + r*cos(pi*j/24), tip[1] + r*sin(pi*j/24)) for j in range(49)]
    s.line("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in around), "limit", 1.5, dash="4 3", bottom=tall)
    for e in estimates:
        arrow(e, "network", 1.3, .75)
    arrow(true, "compute", 3)
    s.text(4, tall + 16, "true gradient", "start", color="compute", size=LEAST)
    s.text(W*.36, tall + 16, "eight batches", "start", color="network", size=LEAST)
    s.text(W*.68, tall + 16, "their spread", "start", color="limit", size=LEAST)
    return s
