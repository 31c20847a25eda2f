"""Drawings of chapter 23: ranks on nodes coloured by group, sets of axes, and the ways from one layout to another."""
import itertools

from ..diagram import LEAST, Sketch, room
from ..shapes import Path


def groups_of(groups):
    """rank -> number of its group."""
    return {r: k for k, group in enumerate(groups) for r in group}


def nodes(W, groups, size=8):
    """GPUs in their nodes, each with the number of its group, and below them the cards, coloured by who uses them.

    A group that leaves the node uses as many cards as the groups that leave it leave to each; one that stays, none.
    """
    s, of = Sketch(W), groups_of(groups)
    per = 1 if s.narrow else 2
    w = (W - 2 - 18*(per - 1))/per
    cell, count = (w - 12)/size, len(of)//size
    full, idle, numbers = [""]*4, "", []

    def box(x, y, h, gap):
        return f"M{x + gap:.0f} {y:.0f}h{cell - 2*gap:.0f}v{h}h{2*gap - cell:.0f}Z"
    for node in range(count):
        x, y = 1 + (node % per)*(w + 18), 84*(node//per)
        here = range(node*size, (node + 1)*size)
        leaving = [k for k in dict.fromkeys(of[r] for r in here) if not set(groups[k]) <= set(here)]
        s.rect(x, y, w, 74, line_opacity=.4, radius=8)
        for i, r in enumerate(here):
            at = x + 6 + i*cell
            full[of[r] % 4] += box(at, y + 7, 32, 2)
            numbers.append((round(at + cell/2), y + 28, of[r]))
            if leaving:
                full[leaving[i*len(leaving)//size] % 4] += box(at, y + 47, 17, 6)
            else:
                idle += box(at, y + 47, 17, 6)
    s.shapes += [Path(d, f"rank{k}", f"rank{k}", .3, 1, 1.3) for k, d in enumerate(full) if d]
    s.shapes += [Path(idle, "", "other", 1, .4, 1, "2 2")]*bool(idle)
    for x, y, k in numbers:
        s.text(x, y, str(k), bold=not k, size=LEAST, math=False, spoken=False)
    s.words(0, s.low + 6, W, "A box is a node of eight GPUs, their network cards below. Equal numbers: one group.",
            size=LEAST, soft=True)
    return s


def small_row(s, x, y, of, side):
    """Eight ranks in a row, coloured by group; a group of one is left grey."""
    alone = {k for k in of.values() if list(of.values()).count(k) == 1}
    for r, k in of.items():
        s.sheet(x + r*side, y, side - 2, 16, None if k in alone else k)


def subsets(W, partitions):
    """Sets of axes in order of inclusion, each with the groups that it makes of eight ranks.

    partitions: name of a set, one letter an axis -> its groups.
    """
    s = Sketch(W)
    w, h, rise = (108, 62, 92) if s.narrow else (150, 62, 92)
    rows = [[k for k in partitions if len(k) == n] for n in range(4)]
    at = {k: (w/2 + 1 + (W - w - 2)*(.5 if len(row) == 1 else j/2), 2 + rise*(3 - i))
          for i, row in enumerate(rows) for j, k in enumerate(row)}
    for a, b in itertools.permutations(at, 2):
        if set(a) < set(b) and len(b) == len(a) + 1:
            s.line(f"M{at[a][0]:.1f} {at[a][1]:.1f}L{at[b][0]:.1f} {at[b][1] + h:.1f}", weight=1.2, opacity=.4)
    side = (w - 14)/8
    for k, (x, y) in at.items():
        s.rect(x - w/2, y, w, h, "paper", "", radius=6)
        s.rect(x - w/2, y, w, h, line_opacity=.5, radius=6)
        s.text(x, y + 19, ", ".join(k) or "no axis", bold=True, size=LEAST, math=False)
        small_row(s, x - w/2 + 8, y + 32, groups_of(partitions[k]), side)
    return s


def automaton(W):
    """Four layouts of a matrix over one axis of a mesh, and the collectives between them with their bytes."""
    s = Sketch(W)
    if s.narrow:
        _downwards(s, W)
    else:
        _across(s, W)
    s.words(0, s.low + 14, W, "Against the arrows it is free: a rank keeps its part of a copy, or puts zeros around its part.",
            soft=True, size=LEAST)
    return s


def _way(s, x0, y0, x1, y1, head, both=False):
    """An arrow from one layout to another; both: and back."""
    s.line(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}", "network", 1.6)
    s.head(x1, y1, head, "network")
    if both:
        s.head(x0, y0, {"right": "left", "down": "up"}[head], "network")


def _called(s, x, y, words, anchor="middle"):
    """The name of a collective and below it what it sends."""
    for k, text in enumerate(words):
        s.text(x, y + 16*k, text, anchor, color="network", size=LEAST, bold=not k, math=False, halo=True)


def _across(s, W):
    """Terms at the left, copies at the right, the cuts between them."""
    w, h, top, gap = 92, 60, 70, 76
    term = s.array(1, top + (h + gap)/2, w, h, "term")
    rows = s.array((W - w)/2, top, w, h, "rows")
    cols = s.array((W - w)/2, top + h + gap, w, h, "columns")
    copy = s.array(W - w - 1, top + (h + gap)/2, w, h, "copy")
    for box, word, dy in ((term, "terms", h + 18), (copy, "copies", h + 18), (rows, "cut by rows", -8), (cols, "cut by columns", h + 18)):
        s.text(box.cx, box.y + dy, word, bold=True, size=LEAST)
    for box, side in ((rows, -1), (cols, 1)):
        y0, y1 = term.cy + side*12, box.cy
        y = (y0 + y1)/2 + (-26 if side < 0 else 24)
        _way(s, term.right + 6, y0, box.x - 7, y1, "right")
        _called(s, (term.right + box.x - 1)/2 - 14, y, ["reduce-scatter", "wn"])
        _way(s, box.right + 7, y1, copy.x - 7, y0, "right")
        _called(s, (box.right + copy.x)/2 + 14, y, ["all-gather", "wn"])
    _way(s, rows.cx, rows.bottom + 7, cols.cx, cols.y - 7, "down", both=True)
    _called(s, rows.cx + 9, (rows.bottom + cols.y)/2 - 2, ["all-to-all", "wn/q"], "start")
    s.line(f"M{term.cx:.1f} {term.y - 8:.1f}V24H{copy.cx:.1f}V{copy.y - 12:.1f}", "network", 1.6)
    s.head(copy.cx, copy.y - 7, "down", "network")
    s.text(W/2, 16, "all-reduce, 2wn", color="network", bold=True, size=LEAST, math=False)


def _downwards(s, W):
    """Terms at the top, copies at the bottom, the cuts between them; the all-reduce goes by at the right."""
    w, h, gap, end = 62, 50, 84, W - 5
    left, right, mid = 1, end - 21 - w, (end - 20)/2
    term = s.array(mid - w/2 - 4, 1, w, h, "term")
    rows = s.array(left, 1 + h + gap, w, h, "rows")
    cols = s.array(right, 1 + h + gap, w, h, "columns")
    copy = s.array(mid - w/2, 1 + 2*(h + gap), w, h, "copy")
    s.text(term.x - 10, term.cy + 5, "terms", "end", bold=True, size=LEAST)
    s.text(copy.x - 10, copy.cy + 5, "copies", "end", bold=True, size=LEAST)
    s.text(rows.x, rows.y - 14, "by rows", "start", bold=True, size=LEAST)
    s.text(cols.right, cols.y - 14, "by columns", "end", bold=True, size=LEAST)
    for box, edge, side in ((rows, rows.right + 7, -1), (cols, cols.x - 7, 1)):
        head = "left" if side < 0 else "right"
        _way(s, mid + 14*side, term.bottom + 10, edge, box.y + 9, head)
        _way(s, edge, box.bottom - 9, mid + 14*side, copy.y - 7, "down")
    _called(s, mid, term.bottom + 76, ["reduce-scatter", "wn each"])
    _way(s, rows.right + 7, rows.cy, cols.x - 7, cols.cy, "right", both=True)
    _called(s, mid, rows.cy + 17, ["all-to-all, wn/q"])
    _called(s, mid, rows.cy + 43, ["all-gather", "wn each"])
    s.line(f"M{term.right + 12:.1f} {term.cy:.1f}H{end}V{copy.cy:.1f}H{copy.right + 12:.1f}", "network", 1.6)
    s.head(copy.right + 7, copy.cy, "left", "network")
    s.text((term.right + end)/2 + 6, term.cy - 8, "all-reduce, 2wn", color="network", bold=True, size=LEAST, math=False)


def route(W, states, moves, bars, hi):
    """A route between layouts: what nodes and GPUs have in each, the moves, and the bytes of rival routes on one scale.

    states: pairs of words, for nodes and for GPUs.  moves: pairs of words, one fewer, the second "" if free.  bars: triples of a
    name, a number, whether it is best; hi: the largest number there is.
    """
    s = Sketch(W)
    slim = s.narrow
    w, h = (W - 2, 34) if slim else (112, 58)
    gap = 52 if slim else (W - 2 - 4*w)/3
    top = 1 if slim else 38
    for k, (x_has, y_has) in enumerate(states):
        x, y = (1, 1 + k*(h + gap)) if slim else (1 + k*(w + gap), top)
        s.rect(x, y, w, h, "other", "other", opacity=.05, line_opacity=.5, radius=6)
        s.text(x + 7, y + (22 if slim else 24), f"nodes: {x_has}", "start", bold=True, size=LEAST, math=False)
        s.text(x + (w/2 if slim else 0) + 7, y + (22 if slim else 44), f"GPUs: {y_has}", "start", bold=True, size=LEAST,
               math=False)
        if k == len(moves):
            continue
        name, cost = moves[k]
        paid = cost != "free"
        color, ink = ("network", "network") if paid else ("other", None)
        if slim:
            s.line(f"M20 {y + h + 6}V{y + h + gap - 10}", color, 2 if paid else 1.3)
            s.head(20, y + h + gap - 6, "down", color)
            s.text(36, y + h + gap/2 + 4, f"{name}, {cost}", "start", size=LEAST, bold=paid, math=False, color=ink, soft=not paid)
        else:
            mid = x + w + gap/2
            s.line(f"M{x + w + 6:.1f} {y + h/2}H{x + w + gap - 10:.1f}", color, 2 if paid else 1.3)
            s.head(x + w + gap - 6, y + h/2, "right", color)
            verb, _, over = name.partition(" over ")
            s.text(mid, 13, verb, size=LEAST, math=False, color=ink, soft=not paid)
            s.text(mid, 28, f"over {over}" if " " not in over else over, size=LEAST, math=False, color=ink, soft=not paid)
            s.text(mid, y + h/2 + 20, cost, size=LEAST, bold=paid, math=False, color=ink, soft=not paid)
    y = 4*(h + gap) - gap + 14 if slim else top + h + 24
    left = max(room(name, bold=True) for name, *_ in bars) + 10
    for name, value, best in bars:
        s.text(0, y + 14, name, "start", size=LEAST, bold=best)
        length = (W - left - 64)*value/hi
        s.rect(left, y + 1, max(length, 1), 17, "memory" if best else "network", "", opacity=.65)
        s.text(left + length + 7, y + 15, f"{value:.3f} n" if value else "nothing", "start", bold=best, size=LEAST, math=False)
        y += 26
    return s


def gather_order(W, parts, orders):
    """Numbers cut over nodes, then each part over GPUs, and what two orders of gathering make of them.

    parts: what each rank holds; orders: triples of a title, what a rank holds after one gather, and after both.
    """
    s = Sketch(W)
    slim = s.narrow
    side = 24 if not slim else 20

    def row(x, y, values, gap=14):
        for part in values:
            for v in part:
                s.sheet(x, y, side, side, v//2)
                s.text(x + side/2, y + side/2 + 4.6, str(v), size=LEAST, halo=True, spoken=False)
                x += side
            x += gap
        return x
    s.text(0, 14, "ranks 0 to 3 hold", "start", soft=True, size=LEAST)
    row(0 if slim else 210, 22 if slim else 0, parts)
    y = 60 if slim else 44
    for title, once, twice in orders:
        s.text(0, y + 16, title, "start", bold=True, size=LEAST)
        s.text(0 if slim else 210, y + (38 if slim else 16), "rank 0 after one:", "start", soft=True, size=LEAST)
        row(120 if slim else 330, y + (22 if slim else 0), [once])
        s.text(0 if slim else 440, y + (68 if slim else 16), "both:" if not slim else "after both:", "start", soft=True, size=LEAST)
        row(120 if slim else 482, y + (52 if slim else 0), [twice])
        y += 92 if slim else 40
    return s
