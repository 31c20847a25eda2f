"""Drawings of chapter 28: places that ranks keep, three roads to a sum, a loss held back and sent later."""
from ..diagram import LEAST, Sketch, rank, room

SMALL = LEAST


def places(W, kept, d):
    """Strips of d numbers, one a rank, with the places that it sends; below, the places of the sum and how many sent each."""
    s = Sketch(W)
    left = 58
    w = min((W - left - 4)/d, 34)
    high, y = 19, 2
    for r, at in enumerate(kept):
        s.text(0, y + 14, f"rank {r}", "start", soft=True, size=SMALL)
        for i in range(d):
            x = left + w*i
            if i in at:
                s.rect(x + 1, y, w - 2, high, rank(r), rank(r), opacity=.55)
            else:
                s.rect(x + 1, y, w - 2, high, "other", "other", opacity=.05, line_opacity=.25)
        y += high + 5
    y += 12
    s.text(0, y + 14, "sum", "start", bold=True, size=SMALL)
    for i in range(d):
        n = sum(i in at for at in kept)
        x = left + w*i
        if n:
            s.rect(x + 1, y, w - 2, high, "limit", "limit", opacity=.3)
            s.text(x + w/2, y + 14.5, str(n), size=SMALL, bold=True)
        else:
            s.rect(x + 1, y, w - 2, high, "other", "other", opacity=.05, line_opacity=.25)
    return s


def roads(W, rows):
    """Three roads: [(name, [(what happens, role), ...], bytes), ...], a row each."""
    s = Sketch(W)
    y, slim = 2, s.narrow
    for name, steps, cost in rows:
        s.text(0, y + 13, name, "start", bold=True, size=SMALL)
        y += 22
        gap = 12 if slim else 30
        w = (W - gap*(len(steps) - 1))/len(steps)
        before, high = None, 58 if slim else 42
        for k, (what, role) in enumerate(steps):
            x = (w + gap)*k
            b = s.rect(x, y, w, high, role, role, opacity=.14, radius=6)
            lines = wrapped(what, w - 8)
            for n, line in enumerate(lines):
                s.text(b.cx, b.cy + 4.5 + 16*(n - (len(lines) - 1)/2), line, size=SMALL)
            if before:
                s.head(b.x - 2, b.cy, "right", "network", 5)
            before = b
        y += high + 18
        s.text(0, y, cost, "start", soft=True, size=SMALL)
        y += 20
    return s


def wrapped(text, w):
    """Words in lines that fit w pixels."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and room(longer, SMALL) > w:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def later(W, rows):
    """What each step wants to send, sends and holds back: [(wanted, sent, held), ...] as stacked bars from left to right."""
    s = Sketch(W)
    left, unit = 2, 92
    step = (W - left)/len(rows)
    most = max(a for a, *_ in rows)
    w = min(step*.6, 60)
    for k, (wanted, sent, _) in enumerate(rows):
        x, base = left + step*k + (step - w)/2, 18 + unit
        held = wanted - sent
        s.rect(x, base - unit*sent/most, w, unit*sent/most, "network", "network", opacity=.45)
        if held:
            s.rect(x, base - unit*wanted/most, w, unit*held/most, "limit", "limit", opacity=.18, dash="4 3")
        s.text(x + w/2, base - unit*wanted/most - 5, f"{wanted:g}", size=SMALL)
        s.text(x + w/2, base + 17, f"step {k + 1}" if not s.narrow else str(k + 1), soft=True, size=SMALL)
    s.legend(18 + unit + 32, [("sent", "network", .45), ("held back, added to the next step", "limit", .18)])
    return s
