"""Drawings of chapter 3: four boxes on their network with a line around some of the GPUs, and who hears and tells."""
from ..diagram import LEAST, Sketch
from ..shapes import Path

BOXES, GPUS = 4, 8


def squares(at, size):
    """A path of squares with these corners."""
    return "".join(f"M{x:.1f} {y:.1f}h{size:.1f}v{size:.1f}h{-size:.1f}Z" for x, y in at)


def boxes(W, around, working, says, thinness=1):
    """Four boxes of eight GPUs, `working` cards of each box in use, a dashed line around "a GPU", "a box" or "two boxes".

    Card r of every box hangs on rail r; the shaded halves of a box are its sockets.  says: the bandwidth of the cut, in words,
    written above it.  thinness: bandwidth that enters the spine over what it passes.
    """
    s, gap, pitch = Sketch(W), 12, 6
    per = 2 if s.narrow else BOXES
    w, tall, y = (W - 20 - gap*(per - 1))/per, 96, 24
    step, top = (w - 12)/GPUS, y + tall + 14
    low, size, card = top + pitch*(GPUS - 1), min(15, step - 3), 7
    s.text(1, 14, f"around {around}: {says}", "start", color="limit", bold=True, size=LEAST)
    stubs, gpus, on, off, wires, rest = "", [], [], [], "", ""
    for b in range(BOXES):
        flip = b >= per
        x, at = 2 + b % per*(w + gap), y if b < per else low + 14
        put = (lambda dy, h, at=at: at + tall - dy - h) if flip else (lambda dy, h, at=at: at + dy)
        s.rect(x, at, w, tall, line_opacity=.4, radius=8)
        s.text(x + 8, put(4, 16) + 13, f"box {b}", "start", soft=True, size=LEAST)
        for half in range(2):
            s.rect(x + 7 + half*GPUS/2*step, put(47, 47), GPUS/2*step - 2, 47, "memory", "", opacity=.13, radius=4)
        bar = s.rect(x + 6, put(22, 20), w - 12, 20, "compute", "compute", opacity=.2, radius=5)
        s.text(bar.cx, bar.cy + 4.6, "450 GB/s", color="compute", bold=True, size=LEAST)
        for r in range(GPUS):
            cx = x + 6 + step*(r + .5)
            stubs += f"M{cx:.1f} {put(42, 0):.1f}V{put(52, 0):.1f}"
            gpus.append((cx - size/2, put(52, size)))
            (on if r < working else off).append((cx - card/2, put(84, card)))
            wire = (f"M{cx:.1f} {put(52 + size, 0):.1f}V{put(84, 0):.1f}"
                    f"M{cx:.1f} {put(84 + card, 0):.1f}V{top + pitch*r:.1f}h.01")
            wires, rest = (wires + wire, rest) if r < working else (wires, rest + wire)
    rails = "".join(f"M2 {top + pitch*r:.1f}H{W - 12:.1f}" for r in range(GPUS))
    for d, fill, color, opacity, weight in (
            (stubs, "", "compute", 1, 2.2), (rails, "", "network", .45, 1.5), (rest, "", "idle", 1, 1),
            (wires, "", "network", 1, 1.2), (squares(gpus, size), "other", "other", .12, 1),
            (squares(off, card), "paper", "idle", 1, 1), (squares(on, card), "network", "network", 1, .6)):
        s.shapes += [Path(d, fill, color, opacity if fill else 1, 1 if fill else opacity, weight)]*bool(d)
    s.rect(W - 13, top - 4, 9/thinness, low - top + 8, "limit", "limit", opacity=.6, radius=min(6, 4/thinness))
    side = size + 9
    first = (8 + step/2 - side/2, y + 47, side, side + 3)
    s.rect(*(first if around == "a GPU" else (0, y - 2, w + 4 + (w + gap)*(around == "two boxes"), tall + 5)), "", "limit",
           weight=2.4, dash="6 4", radius=6)
    s.words(1, max(s.low, low) + 8, W - 2, "Card r of every box hangs on rail r, 50 GB/s each; at the right, the spine. "
            "Shaded: the two sockets of a box, each with the PCIe of four GPUs and their cards.", size=LEAST, soft=True)
    return s


def heard_and_told(W, ranks=4):
    """One number on its way down a chain: every rank adds its own, then every rank but one is told the sum."""
    s = Sketch(W)
    x0, size = (0, 30) if s.narrow else (0, 34)
    rows = [("heard", list(range(ranks)), "1, 2, 3: each adds its own"),
            ("told", [ranks - 1, *range(ranks - 1)], "4, 5, 6: the sum")]
    for row, (name, order, words) in enumerate(rows):
        y = 8 + 74*row
        s.text(x0, y + 21, name, "start", bold=True)
        left = 58 if s.narrow else 80
        step = (W - left - size - 4)/(ranks - 1)
        places = [s.box(left + step*k, y, size, size, str(r)) for k, r in enumerate(order)]
        for k, (a, b) in enumerate(zip(places, places[1:])):
            s.arrow(a, b, str(row*(ranks - 1) + k + 1), color="network", gap=4)
        s.text(left, y + size + 19, f"{words}", "start", soft=True, size=LEAST)
    return s
