"""Drawings of chapter 3: four boxes on their network with a line around some of the GPUs, and who hears and tells."""
from ..diagram import LEAST, Sketch

BOXES, GPUS = 4, 8


def boxes(W, around, working, says):
    """Four boxes of eight GPUs, `working` cards of each box in use, a dashed line around "a GPU", "a box" or "two boxes".

    says: the bandwidth of that cut, in words, written above it.
    """
    s = Sketch(W)
    y = 24
    s.cluster(y, BOXES, GPUS, inside="450 GB/s", outside="50 GB/s each", spine="the spine",
              cards={(k, r) for k in range(BOXES) for r in range(working)})
    per, gap = 2 if s.narrow else 4, 12
    w = (W - 18 - gap*(per - 1))/per
    step = (w - 16)/GPUS
    if around == "a GPU":
        side = min(26, step - 2) + 5
        x, top, wide, tall = 9 + step/2 - side/2, y + 52, side, 32
    else:
        x, top, wide, tall = -1, y - 4, w + 4 + (w + gap)*(around == "two boxes"), 115
    s.rect(max(x, 0), top, wide, tall, "", "limit", weight=2.4, dash="6 4", radius=6)
    s.text(1, 14, f"around {around}: {says}", "start", color="limit", bold=True, size=LEAST)
    return s


def heard_and_told(W, ranks=4):
    """One number on its way down a chain: every rank adds its own, then every rank but one is told the sum."""
    s = Sketch(W)
    x0, size = (0, 30) if s.narrow else (0, 34)
    rows = [("heard", list(range(ranks)), "1, 2, 3: each adds its own"),
            ("told", [ranks - 1, *range(ranks - 1)], "4, 5, 6: the sum")]
    for row, (name, order, words) in enumerate(rows):
        y = 2 + 72*row
        s.text(x0, y + 21, name, "start", bold=True)
        left = 58 if s.narrow else 80
        step = (W - left - size - 4)/(ranks - 1)
        places = [s.box(left + step*k, y, size, size, str(r)) for k, r in enumerate(order)]
        for k, (a, b) in enumerate(zip(places, places[1:])):
            s.arrow(a, b, str(row*(ranks - 1) + k + 1), color="network", gap=4)
        s.text(left, y + size + 19, f"messages {words}", "start", soft=True, size=LEAST)
    return s
