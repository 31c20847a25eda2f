"""Drawings of chapter 19: bytes over one step, bars of bytes against a device, addresses of an allocator."""
from ..diagram import Sketch
from ..shapes import Path

COLOR = {"weights": "compute", "optimizer": "idle", "gradients": "limit", "activations": "memory", "logits": "measured",
         "workspace": "network", "communication": "other"}
SMALL = 13
SHARES = {"forward": .42, "backward": .46, "update": .12}


def columns(total, phases, room):
    """(place from 0 to 1, instant) of the most that lives in each of about `room` slices of the phases {name: (from, to)}."""
    out, left = [], 0
    scale = sum(SHARES[name] for name in phases)
    for name, (first, last) in phases.items():
        share = SHARES[name]/scale
        n = min(last - first, max(1, round(room*share)))
        for k in range(n):
            a, b = first + k*(last - first)//n, first + (k + 1)*(last - first)//n
            out.append((left + share*k/n, a + int(total[a:b].argmax())))
        left += share
    return out + [(1.0, out[-1][1])], scale


def timeline(W, living, phases, *, capacity=0, device="", unit=1e9, word="GB", order=tuple(COLOR), peak="peak"):
    """What lives over one step, stacked by kind: `living` {kind: array over instants}, `phases` {name: (from, to)}.

    In each slice of the picture stands the instant at which most lives.  `capacity`: bytes of a device, a line.
    """
    s = Sketch(W)
    slim = W < 500
    kinds = [k for k in order if k in living and max(living[k]) > 0]
    total = sum(living[k] for k in living)
    places, scale = columns(total, phases, 120 if slim else 260)
    top, tall = 50, 250 if slim else 300
    left, right = 30, (W - 4 if slim else W - 136)
    high = max(float(total.max()), capacity)*1.04
    X = lambda u: left + (right - left)*u
    Y = lambda n: top + tall - tall*float(n)/high
    step = next(d for d in (10, 20, 25, 50, 100, 200) if high/unit/d <= 7)
    for v in range(0, int(high/unit) + 1, step):
        s.line(f"M{left} {Y(v*unit):.1f}H{right:.1f}", opacity=.15, weight=1)
        s.text(left - 5, Y(v*unit) + 4, f"{v}", "end", soft=True, size=SMALL)
    s.text(0, 14, word, "start", soft=True, size=SMALL)
    below = 0*total
    ends = []
    for kind in kinds:
        above = below + living[kind]
        d = "".join(f"{'L' if k else 'M'}{X(u):.1f} {Y(above[i]):.1f}H{X(places[min(k + 1, len(places) - 1)][0]):.1f}"
                    for k, (u, i) in enumerate(places))
        back = "".join(f"L{X(places[min(k + 1, len(places) - 1)][0]):.1f} {Y(below[i]):.1f}H{X(u):.1f}"
                       for k, (u, i) in reversed(list(enumerate(places))))
        s._put(Path(d + back + "Z", COLOR[kind], "", .82), top + tall)
        ends.append((kind, below, above))
        below = above
    instant = int(total.argmax())
    for name, (first, last) in phases.items():
        u = next(u for u, i in places if first <= i < last)
        w = SHARES[name]/scale
        if u:
            s.line(f"M{X(u):.1f} {top - 4}V{top + tall}", opacity=.5, weight=1, dash="3 3")
        if not (slim and name == "update"):
            s.text(X(u + w/2), top + tall + 18, name, size=SMALL, soft=True)
    if capacity:
        s.line(f"M{left} {Y(capacity):.1f}H{right:.1f}", "other", 2, dash="6 4")
        s.text(right - 2, Y(capacity) - 6, device, "end", size=SMALL, bold=True, halo=True)
    at = max((u, i) for u, i in places if total[i] == total[instant])[0] if instant in [i for _, i in places] else 0
    x, y = X(at), Y(total[instant])
    s.line(f"M{x:.1f} {y - 16}V{y - 3}", "other", 2)
    s.head(x, y - 2, "down", "other", 4.5)
    s.text(min(max(x, left + 90), right - 60), y - 22, f"{peak}: {total[instant]/unit:.1f} {word}", bold=True, halo=True)
    here = {kind: living[kind][instant]/unit for kind in kinds}        # as they stand at the peak
    says = {kind: f"{kind} {n:.1f}" if n >= .05 else f"{kind} < 0.1" for kind, n in here.items()}
    if slim:
        s.legend(top + tall + 34, [(says[kind], COLOR[kind], .82) for kind in reversed(kinds)])
        return s
    floor = top + tall + 6                                             # labels at the right, as they stand at the peak
    for kind, low, up in ends:
        middle = Y((low[instant] + up[instant])/2) + 4
        floor = min(middle, floor - 17)
        s.rect(right + 8, floor - 10, 11, 11, COLOR[kind], "", radius=2, opacity=.82)
        s.text(right + 23, floor, says[kind], "start", size=SMALL)
    return s


def bars(W, rows, capacity, limit="the device", colors=COLOR):
    """Stacked bars {name: {kind: bytes}} against a device."""
    s = Sketch(W)
    s.memory(0, {name: [(kind, n, colors.get(kind, "other")) for kind, n in parts.items() if n] for name, parts in rows.items()},
             capacity, limit=limit)
    return s


def addresses(W, layouts, unit=1e9):
    """Segments of an allocator, one strip for each name: {name: [(bytes, [(start, bytes, in use)])]}."""
    s = Sketch(W)
    most = max(sum(n for n, _ in segments) for segments in layouts.values())
    y = 16
    for name, segments in layouts.items():
        reserved = sum(n for n, _ in segments)
        used = sum(n for _, blocks in segments for _, n, busy in blocks if busy)
        s.text(0, y, name, "start", size=SMALL, bold=True)
        s.text(W, y, f"{used/unit:.1f} of {reserved/unit:.1f} GB", "end", size=SMALL)
        x, k = 1, (W - 2)/most
        for n, blocks in sorted(segments, key=lambda segment: -segment[0]):
            for start, size, busy in blocks:
                if busy and size*k > .1:
                    s.rect(x + start*k, y + 10, size*k, 30, "memory", "", radius=0, opacity=.85)
            if n*k > 2:
                s.rect(x, y + 10, n*k, 30, "", "other", radius=0, line_opacity=.55)
            x += n*k
        y += 70
    return s
