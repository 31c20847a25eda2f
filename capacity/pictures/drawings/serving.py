"""Drawings of chapter 31b: what a step reads, the past kept, slots, pages, and what a refused draft is replaced by."""
from ..diagram import LEAST, Sketch, rank, room


def reads(W, bars):
    """What one step reads: {"162 sequences": (seconds of weights, seconds of cache, words)}, one bar each."""
    s = Sketch(W)
    end = max(a + b for a, b, _ in bars.values())*1.02
    y, wide = 2, W - 2
    for name, (a, b, words) in bars.items():
        s.text(0, y + 13, name, "start", bold=True)
        s.text(W, y + 13, words, "end", soft=True, size=LEAST)
        y += 20
        for x, v, word, role in ((0, a, "weights", "compute"), (a, b, "cache", "memory")):
            q = s.rect(1 + wide*x/end, y, max(wide*v/end - 1, 1), 30, role, "", opacity=.55, radius=3)
            if q.w > room(word, LEAST, True) + 8:
                s.text(q.cx, q.cy + 4.8, word, bold=True, size=LEAST)
        y += 40
    s.scale(1, y - 6, wide, end, "s")
    return s


def past(W, tokens, keep):
    """Rows are steps: which positions are computed, and which are read, when each next token is written."""
    s = Sketch(W)
    left = room("step 0") + 12
    cell = min(46, (W - left - 4)/tokens)
    done = read = 0
    for n in range(1, tokens + 1):
        y = 4 + (n - 1)*(cell*.7 + 4)
        s.text(0, y + cell*.35 + 4.6, f"step {n}", "start", soft=True, size=LEAST)
        for k in range(1, n + 1):
            new = not keep or k == n
            done, read = done + new, read + (not new)
            q = s.rect(left + (k - 1)*cell, y, cell - 4, cell*.7, "compute" if new else "memory", "compute" if new else "memory",
                       opacity=.5 if new else .12, radius=4)
            s.text(q.cx, q.cy + 4.6, str(k), size=LEAST, bold=new)
    y = s.low + 14
    for words, role, strong in ((f"computed: {done}", "compute", .5), (f"read from the cache: {read}", "memory", .12)):
        s.rect(0, y, 15, 15, role, role, opacity=strong, radius=3)
        s.text(22, y + 12, words, "start", size=LEAST)
        y += 22
    return s


def slots(W, spans, count):
    """Which answer each slot writes, step after step; what is empty waits."""
    s = Sketch(W)
    lanes = {f"slot {k + 1}": [(p.start, p.stop, str(p.answer + 1), rank(p.answer)) for p in spans if p.slot == k]
             for k in range(count)}
    s.lanes(2, lanes, unit="steps", end=max(p.stop for p in spans)*1.0)
    return s


def pages(W, cache, names):
    """Tables of the sequences on the left, the pages of the cache on the right; a page that two read is grey."""
    s = Sketch(W)
    step, y = 30, 20
    s.text(0, 12, "tables of the sequences", "start", soft=True, size=LEAST)
    for k, name in enumerate(names):
        s.text(0, y + 20, str(name), "start", bold=True)
        x = max(room(str(v), bold=True) for v in names) + 14
        for page in cache.table[name]:
            shared = cache.owners[page] > 1
            q = s.rect(x, y + 2, step - 4, 26, "other" if shared else rank(k), "other" if shared else rank(k),
                       opacity=.15 if shared else .35, radius=4)
            s.text(q.cx, q.cy + 4.6, str(page), size=LEAST)
            x += step
        s.text(x + 6, y + 20, f"{cache.length[name]} tokens", "start", soft=True, size=LEAST)
        y += 34
    total = len(cache.free) + len(cache.owners)
    y += 16
    s.text(0, y + 8, f"memory, in pages of {cache.page} tokens", "start", soft=True, size=LEAST)
    y += 16
    per = min(total, int(W//40))
    owner = {page: k for k, name in enumerate(names) for page in cache.table[name]}
    for page in range(total):
        x, v = (page % per)*40, y + page//per*52
        q = s.rect(x, v, 36, 26, "", "idle" if page in cache.free else "other", radius=4, line_opacity=.6)
        if page in owner:
            shared = cache.owners[page] > 1
            n = next(cache.table[name].index(page) for name in names if page in cache.table[name])
            most = max(min(cache.page, cache.length[name] - n*cache.page) for name in names if page in cache.table[name])
            s.rect(x, v, 36*most/cache.page, 26, "other" if shared else rank(owner[page]), "", opacity=.15 if shared else .35,
                   radius=4)
            if shared:
                s.text(q.cx, q.cy + 4.6, f"×{cache.owners[page]}", size=LEAST, spoken=False)
        s.text(q.cx, v + 41, str(page), soft=True, size=LEAST, spoken=False)
    return s


def laws(W, target, draft, words):
    """Bars of two laws: what both have stays, what the draft has too much is refused, and fills what it has too little."""
    s = Sketch(W)
    n, high, top = len(words), 150, 8
    gap = W/n
    wide = min(64, gap/2.6)
    most = max(*target, *draft)
    for k, word in enumerate(words):
        cx = gap*(k + .5)
        for x, v, name in ((cx - wide - 2, draft[k], "draft"), (cx + 2, target[k], "target")):
            both = min(target[k], draft[k])
            y = top + high*(1 - both/most)
            s.rect(x, y, wide, high*both/most, "compute", "", opacity=.45, radius=0)
            if v > both:
                extra = high*(v - both)/most
                role = "limit" if name == "draft" else "memory"
                q = s.rect(x, y - extra, wide, extra, role, role, opacity=.35, radius=0, dash="4 3" if name == "draft" else "")
                s.text(q.cx, q.cy + 4.6, f"{v - both:.1f}", bold=True, size=LEAST)
            if both > .06:
                s.text(x + wide/2, y + high*both/most/2 + 4.6, f"{both:.1f}", size=LEAST)
            s.text(x + wide/2, top + high + 16, name, soft=True, size=LEAST)
        s.text(cx, top + high + 36, word, bold=True)
    y = top + high + 52
    for label, role in (("both have it: stays", "compute"), ("draft has too much: refused", "limit"),
                        ("target has more: drawn instead", "memory")):
        s.rect(0, y, 15, 15, role, "", opacity=.45, radius=3)
        s.text(22, y + 12, label, "start", size=LEAST)
        y += 22
    return s
