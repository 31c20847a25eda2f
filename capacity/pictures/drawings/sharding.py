"""Drawings of chapter 20: what a rank keeps of weights, gradients and optimizer state, and when."""
from ..diagram import LEAST, Sketch
from ..shapes import Path

KINDS = {"weights": "compute", "gathered": "network", "gradients": "measured", "optimizer": "memory"}
BYTES = {"weights": 2, "gradients": 2, "optimizer": 12}      # of mixed-precision Adam, per parameter


def kept(s, x, y, w, rank, cut, scale, ranks):
    """One rank's column: weights, gradients, optimizer state to scale, whole or this rank's slice of them."""
    for kind, nbytes in BYTES.items():
        h = scale*nbytes
        if kind in cut:
            s.rect(x, y, w, h, "", "other", line_opacity=.35, dash="2 3", radius=2)
            s.sheet(x, y + h*rank/ranks, w, h/ranks, rank)
        else:
            s.sheet(x, y, w, h)
        y += h + 6
    return y


def course(s, x, y, w, h, trace, most, marks=True):
    """Bytes that a rank holds after each event of a step, stacked by kind, against `most`; returns the bottom."""
    step, floor = w/len(trace), [0]*len(trace)
    for kind in ("optimizer", "weights", "gradients", "gathered"):
        top = [low + held[kind]*h/most for low, (*_, held) in zip(floor, trace)]
        if max(held[kind] for *_, held in trace):
            s.shapes.append(Path(stairs(x, y + h, step, top, floor), KINDS[kind], "", .62))
        floor = top
    s.line(f"M{x:.1f} {y + h:.1f}h{w:.1f}", opacity=.5, weight=1, bottom=y + h)
    s.line(f"M{x:.1f} {y:.1f}h{w:.1f}", "limit", 1.2, dash="4 3", opacity=.8)
    passes = [event.what for _, event, _ in trace]
    for name, first, last in spans(passes):
        a, b = x + first*step, x + (last + 1)*step
        s.line(f"M{a:.1f} {y + h + 2:.1f}v7M{b:.1f} {y + h + 2:.1f}v7", opacity=.4, weight=1)
        if marks and b - a > 7*len(name) + 4:
            s.text((a + b)/2, y + h + 17, name, soft=True, size=LEAST)
    return y + h + 24


def stairs(x, y, step, top, floor):
    """The outline of a band between two stairs that go up from y, one stair an event."""
    def walk(heights, places):
        out = ""
        for k, high in zip(places, heights):
            if not out or f"V{y - high:.1f}" not in out[-9:]:
                out += f"H{x + k*step:.1f}V{y - high:.1f}"
        return out
    n = len(top)
    back = walk(floor[::-1], range(n, 0, -1))
    return f"M{x:.1f} {y - top[0]:.1f}" + walk(top, range(n)) + f"H{x + n*step:.1f}" + back[back.index("V"):] + f"H{x:.1f}Z"


def spans(passes):
    """(name, first, last) of the forward and backward passes in a list of events."""
    out = []
    for k, what in enumerate(passes):
        if what in ("forward", "backward"):
            if out and out[-1][0] == what:
                out[-1][2] = k
            else:
                out.append([what, k, k])
    return out


def stage(W, cut, trace, most, ranks=4):
    """What four ranks keep, and what one of them holds during a step of the small transformer.

    cut: the kinds of state that are cut.  trace: of `zero.train`, one step.  most: bytes of a whole copy and whole
    gradients.
    """
    s = Sketch(W)
    slim = s.narrow
    left, gap = (86, 10) if slim else (112, 22)
    w = (W - left - 8 - gap*(ranks - 1))/ranks
    scale, top = 6.5, 24
    for r in range(ranks):
        x = left + r*(w + gap)
        s.text(x + w/2, 14, f"rank {r}" if not slim else str(r), soft=True, size=LEAST)
        low = kept(s, x, top, w, r, cut, scale, ranks)
    y = top
    for kind, nbytes in BYTES.items():
        middle = y + scale*nbytes/2 + 4.5
        s.text(0, middle, f"{kind}, {nbytes} B" if not slim else kind, "start", bold=True, size=LEAST,
               color=KINDS[kind])
        y += scale*nbytes + 6
    words = f"rank 0 during a step{'' if slim else '; dashed: a whole copy'}"
    s.text(0, low + 20, words, "start", bold=True, size=LEAST)
    low = course(s, 0, low + 30, W, 96, trace, most)
    return key(s, low)


def key(s, y):
    """Which colour is which kind."""
    s.legend(y, [(kind, color, .62) for kind, color in KINDS.items()])
    return s


def life(W, plan, units, focus):
    """When each unit is whole on a rank in one step of ZeRO-3, read off its list of events."""
    s = Sketch(W)
    left, lane, gap = 76, 24, 8
    n = len(plan)
    step = (W - left - 6)/n
    there = {}
    names = {"embed": "embedding", "head": "head"}
    for i, unit in enumerate(units):
        y = 20 + i*(lane + gap)
        s.text(0, y + 17, names.get(unit, f"block {unit}"), "start", bold=unit == focus, size=LEAST)
        s.line(f"M{left} {y + lane:.1f}H{W}", weight=1, opacity=.2, bottom=y + lane)
    for k, event in enumerate(plan):
        if event.what == "update":
            s.line(f"M{left + (k + .5)*step:.1f} 14V{20 + len(units)*(lane + gap):.1f}", "memory", 1.5, dash="3 3")
            continue
        y = 20 + list(units).index(event.unit)*(lane + gap)
        x = left + k*step
        if event.what == "gather":
            there[event.unit] = k
        elif event.what == "release":
            a = left + there.pop(event.unit)*step
            s.rect(a, y, x + step - a, lane, "network", "network", opacity=.22, radius=3)
        if event.what in ("forward", "backward"):
            s.rect(x, y + 5, step, lane - 10, "compute", "", opacity=.75, radius=2)
        elif event.what in ("gather", "scatter"):
            color = "network" if event.what == "gather" else "measured"
            s.rect(x, y + 5, step, lane - 10, color, "", opacity=.8, radius=2)
    for name, first, last in spans([e.what for e in plan]):
        s.text(left + (first + last + 1)/2*step, 10, name, soft=True, size=LEAST)
    s.legend(s.low + 12, [("gathers", "network", .8), ("whole here", "network", .22), ("computes", "compute", .75),
                          ("scatters its gradient", "measured", .8), ("update", "memory", .8)])
    return s


def lattice(W, points, best):
    """The eight sets of what may be cut, in order of inclusion: {set of letters: (words, words)}; best: on the frontier."""
    s = Sketch(W)
    w, h, rise = (110, 48, 86) if s.narrow else (138, 50, 84)
    rows = [[""], ["W", "O", "G"], ["OW", "OG", "GW"], ["GOW"]]
    rows = [sorted(row, key=lambda k: {"W": 0, "O": 1, "G": 2, "OW": 0, "OG": 1, "GW": 2}.get(k, 0)) for row in rows]
    at = {}
    for i, row in enumerate(rows):
        for j, name in enumerate(row):
            x = W/2 if len(row) == 1 else w/2 + 1 + j*(W - w - 2)/2
            at[name] = (x, 2 + i*rise)
    for a, (x, y) in at.items():
        for b, (u, v) in at.items():
            if set(a) < set(b) and len(b) == len(a) + 1:
                chain = {a, b} <= {"", "O", "OG", "GOW"}
                s.line(f"M{x:.1f} {y + h:.1f}L{u:.1f} {v:.1f}", "network" if chain else "other", 2.5 if chain else 1,
                       opacity=1 if chain else .3, bottom=v)
    for name, (x, y) in at.items():
        good = name in best
        s.rect(x - w/2, y, w, h, "paper", "", radius=6)
        s.rect(x - w/2, y, w, h, "memory" if good else "", "memory" if good else "other", opacity=.18, weight=2 if good else 1,
               line_opacity=1 if good else .5, radius=6)
        title, note = points[name]
        s.text(x, y + 20, title, bold=True, size=LEAST)
        s.text(x, y + 39, note, soft=True, size=LEAST, math=False)
    return s


def groups(W, nodes, inside, size=8):
    """Hybrid sharding: the ranks of a node share one copy, and equal ranks of all nodes add their gradients."""
    s = Sketch(W)
    cell = min(38, (W - 78)/size)
    for n in range(nodes):
        y = 24 + n*58
        s.text(0, y + 22, f"node {n}", "start", bold=True, size=LEAST)
        s.rect(62, y - 4, size*cell + 10, 40, "compute", "compute", opacity=.1, line_opacity=.6, radius=8)
        for r in range(size):
            s.rect(67 + r*cell + 2, y, cell - 4, 32, "paper", "", radius=3)
            s.rect(67 + r*cell + 2, y, cell - 4, 32, "other", "other", opacity=.06, line_opacity=.4, radius=3)
            s.sheet(67 + r*cell + 4, y + 2 + 28*r/size, cell - 8, 28/size, r)
            if n:
                s.line(f"M{67 + (r + .5)*cell:.1f} {y - 24:.1f}v22", "network", 1.6)
    s.text(67, 12, f"gathers and scatters: {inside}", "start", color="compute", bold=True, size=LEAST)
    s.words(0, s.low + 8, W, "one all-reduce down each column: the gradients of one part, between its owners",
            color="network", bold=True, size=LEAST)
    return s


def bars(W, cases, capacity):
    """Named bytes of one rank against its memory."""
    s = Sketch(W)
    s.memory(0, cases, capacity, limit="an H100 has")
    return s


