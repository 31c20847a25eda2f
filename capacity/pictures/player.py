"""stepper(): a recorded run of `capacity.witness.spmd` as a player: who holds what, who sends to whom.

* The HTML book: buttons, a slider and the keyboard, drawn by `static/player.js`; no kernel, no network.
* JupyterLab with a kernel: ipywidgets, the same SVG drawn here.
* No JavaScript: a table of all steps. PDF: a PNG of some of them.

    inputs = [[frozenset({r})]*4 for r in range(4)]         # four blocks a rank, each holds the rank's own part
    ring = run(ring_all_reduce, inputs, operator.or_)
    stepper("ring", ring, title="A block travels once around to be summed and once to be told")

The reader chooses, if there are several: of each algorithm its runs, one for each number of ranks.

    several = {"ring": lambda P: run(ring_all_reduce, ...), "Bruck": lambda P: run(bruck_all_reduce, ...)}
    stepper("all-reduces", several, ranks=[4, 6, 8], title="Few rounds or few bytes, step by step")

A step is a round of the run.  Everything comes from `run.messages` and from what the ranks said with
`comm.holds(state)`: a list of one entry per block, which is None (nothing), a set of ranks (the parts summed in it),
a number or a short text.  The tag of a message is the number of its block, or a tuple of them.

Letters: P ranks, numbered r (of an arrow: from a to b); B blocks, numbered j; G ranks of a node; k the number of a
step; S the specification, Stepper.spec(); W the width of a picture in pixels; (u, v) where an arrow starts and ends.
"""
import base64
import html
import json
import math
from numbers import Integral, Number

from ..witness.spmd import ProgramError
from .shapes import Group, Path, Rect, Text, legend, width, wrapped
from .svg import LAB, attribute, frame, slug

RANKS, ROWS, LETTERS = 16, 32, 12       # the most ranks, blocks and letters in a cell that a picture has room for
DASHES = ["", "7 4", "2 3", "9 3 2 3"]  # of the links
BEAT = 1500                             # milliseconds from step to step while it plays


def stepper(name, run, *, title, block="block", group=None, holds=None, ranks=None):
    """A player of a run: one column per rank, one row per block, an arrow per message.

    name   slug, unique on its page: lower case, digits, hyphens
    run    a Run of capacity.witness.spmd, 2 to 16 ranks; each said what it holds before its first message
    title  the finding, as a sentence
    block  the word for a row: "segment"
    group  G: ranks 0 to G-1 share a node, G to 2G-1 the next
    holds  function(state) -> list of entries, where states are something else
    ranks  numbers to choose from; run is then {algorithm: function(P) -> Run}.  A program that refuses a P, as all do
           with a ValueError, is shown with its reason; the first algorithm on the first number is shown first
    Raises ValueError naming what is wrong: no holdings, states of different lengths, an entry that is no set of
    ranks, number or text, too many ranks or blocks, an empty title.
    """
    how = title, block, group, holds
    return Stepper(name, run, *how) if ranks is None else Steppers(name, run, ranks, how)


class Stepper:
    """A checked player: .spec() for JavaScript, .svg(step), .says(step), .table(), .widget(), .png()."""

    def __init__(self, name, run, title, block, group, holds):
        self.name, self.title, self.block = slug("stepper", name), title, block
        if not (isinstance(title, str) and title.strip()):
            raise ValueError(f"{name}: title is {title!r}; allowed: a sentence that states the finding")
        if not (isinstance(block, str) and block.strip()):
            raise ValueError(f"{name}: block is {block!r}; allowed: a word")
        if not all(hasattr(run, a) for a in ("size", "messages", "holdings", "rounds")):
            raise ValueError(f"{name}: run is {run!r}; allowed: a Run of capacity.witness.spmd")
        if not 2 <= run.size <= RANKS:
            raise ValueError(f"{name}: run has {run.size} ranks; allowed: 2 to {RANKS}")
        if not run.messages:
            raise ValueError(f"{name}: run has no messages; there is nothing to step through")
        if group is not None and not (_whole(group) and 1 <= group <= run.size):
            raise ValueError(f"{name}: group = {group!r}; allowed: 1 to {run.size}, the ranks of a node")
        if holds is not None and not callable(holds):
            raise ValueError(f"{name}: holds is {holds!r}; allowed: a function from a state to a list")
        self.P, self.group, self.last = run.size, group and int(group), run.rounds
        self.links = list(dict.fromkeys(m.link for m in run.messages))
        if len(self.links) > len(DASHES):
            raise ValueError(f"{name}: run has links {', '.join(self.links)}; allowed: {len(DASHES)} names at most")
        self.frames = self._frames(run, holds or (lambda state: state))
        self.B = len(self.frames[0][0])
        self.messages = [sorted((m for m in run.messages if m.round == k), key=lambda m: m[:2])
                         for k in range(self.last + 1)]
        self.steps = [self._arrows(k) for k in range(self.last + 1)]
        self._spec = self.spec()

    # ---- reading the run -------------------------------------------------------------------
    def _frames(self, run, holds):
        """frames[k][r] = the entries of rank r after step k, as a list of cells; see _cell."""
        said, length = {}, None
        for k, r, state in run.holdings:
            entries = holds(state)
            if not isinstance(entries, (list, tuple)) or not 1 <= len(entries) <= ROWS:
                raise ValueError(f"{self.name}: the state of rank {r} in round {k} is {entries!r}; allowed: a list of "
                                 f"1 to {ROWS} entries, one for each block")
            length = length or len(entries)
            if len(entries) != length:
                raise ValueError(f"{self.name}: the state of rank {r} in round {k} has {len(entries)} entries; "
                                 f"others have {length}")
            said[k, r] = [self._cell(e, f"block {j} of rank {r} in round {k}") for j, e in enumerate(entries)]
        silent = [str(r) for r in range(self.P) if (0, r) not in said]
        if silent:
            raise ValueError(f"{self.name}: run has no holdings of rank {', '.join(silent)} before its first message; "
                             "allowed: a program that begins with comm.holds(state)")
        frames = [[said[0, r] for r in range(self.P)]]
        for k in range(1, self.last + 1):
            frames.append([said.get((k, r), frames[-1][r]) for r in range(self.P)])
        return frames

    def _cell(self, entry, where):
        """(ranks, texts): whose parts are summed in it, if it is a sum, and what it says, longest first."""
        ranks = isinstance(entry, (set, frozenset))
        if entry is None or ranks and not entry:
            return (), ()
        if ranks and all(_whole(r) and 0 <= r < self.P for r in entry):
            entry = tuple(sorted(map(int, entry)))
            if len(entry) == self.P:
                return entry, ("all",)
            texts = "+".join(map(str, entry)), _ranges(_runs(entry), "+"), f"{len(entry)}/{self.P}"
            return entry, tuple(dict.fromkeys(texts))
        text = f"{entry:g}" if isinstance(entry, float) else str(entry) if isinstance(entry, (str, Number)) else ""
        if not 1 <= len(text) <= LETTERS:
            raise ValueError(f"{self.name}: {where} is {entry!r}; allowed: None, a set of ranks 0 to {self.P - 1}, "
                             f"a number, or a text of 1 to {LETTERS} letters")
        return (), (text,)

    def _changed(self, k):
        """(rank, block, cell) of what is other than before step k; at the start, what is not empty."""
        before = self.frames[k - 1] if k else [[((), ())]*self.B]*self.P
        return [(r, j, cell) for r, row in enumerate(self.frames[k]) for j, cell in enumerate(row)
                if cell != before[r][j]]

    def _arrows(self, k):
        """{(source, to, link): blocks} of step k; without a tag, the blocks that changed where one message came in."""
        arrows = {}
        for m in self.messages[k]:
            blocks = m.tag if isinstance(m.tag, (tuple, list)) else (m.tag,)
            if m.tag is None and sum(o.to == m.to for o in self.messages[k]) == 1:
                blocks = [j for r, j, (_, texts) in self._changed(k) if r == m.to and texts]
            known = all(_whole(j) and 0 <= j < self.B for j in blocks)
            arrows.setdefault((m.source, m.to, m.link), []).extend(map(int, blocks) if known else ())
        return {arrow: sorted(set(blocks)) for arrow, blocks in arrows.items()}

    # ---- words -----------------------------------------------------------------------------
    def _blocks(self, blocks):
        """' block 3', ' blocks 4–7', ' all blocks'; '' where there is nothing to tell apart."""
        if self.B == 1 or not blocks:
            return ""
        if len(blocks) == self.B:
            return f" all {self.block}s"
        return f" {self.block}{'s' if len(blocks) > 1 else ''} {_ranges(_runs(blocks))}"

    def _phrases(self, arrows):
        """'rank 0 sends block 3 to rank 1' for each arrow; pairs that swap the same are one phrase."""
        out, swaps = [], {}
        for (a, b, link), blocks in arrows.items():
            back = arrows.get((b, a, link))
            if back is None:
                out.append(f"rank {a} sends{self._blocks(blocks)} to rank {b}")
            elif a < b:
                what, other = self._blocks(blocks), self._blocks(back)
                if what and other and what != other:
                    what += f" for {_ranges(_runs(back))}"
                swaps.setdefault(what, []).append(f"{a} and {b}")
        return out + [f"ranks {', '.join(pairs)} swap{what}" for what, pairs in swaps.items()]

    def _short(self, arrows):
        """The messages of a step in a sentence that can be listened to."""
        shifts, phrases = {(b - a) % self.P for a, b, _ in arrows}, self._phrases(arrows)
        if len(phrases) <= 4:
            return ", ".join(phrases)
        if len(arrows) == self.P and len(shifts) == 1 and len(phrases) == self.P:
            d = shifts.pop()
            whom = {1: "the next rank", self.P - 1: "the rank before it"}.get(d, f"the rank {d} further on")
            first = [f"rank {a}{self._blocks(blocks)}" for (a, _, _), blocks in sorted(arrows.items())[:3]]
            return f"every rank sends to {whom}" + (f": {', '.join(first)} and so on" if self.B > 1 else "")
        return ", ".join(phrases[:3]) + f" and {len(phrases) - 3} more"

    def says(self, k):
        """Step k as a sentence: who sends what to whom, and how many cells are full then."""
        full = sum(_full(cell, self.P) for row in self.frames[k] for cell in row)
        sums = any(c[1] and not _full(c, self.P) for f in self.frames for row in f for c in row)
        texts = {c[1][0] for f in self.frames for row in f for c in row if c[1]}
        if self.B == 1:
            what = "the whole sum" if sums else texts.pop() if len(texts) == 1 else "a value"
            count = f"{full} of {self.P} ranks hold{'s' if full == 1 else ''} {what}."
        else:
            are, what = "is" if full == 1 else "are", "complete" if sums else "filled"
            count = f"{full} of {self.P*self.B} cells {are} {what}."
        if k == 0:
            return f"Start: {count}"
        over = []
        for link in self.links:
            arrows = {arrow: blocks for arrow, blocks in self.steps[k].items() if arrow[2] == link}
            if arrows:
                over.append((f"over {link}, " if len(self.links) > 1 else "") + self._short(arrows))
        return f"Step {k} of {self.last}: {'; '.join(over) or 'no message'}. Then {count}"

    def table(self):
        """All steps as a table in HTML: messages and what changes."""
        head = "".join(f'<th scope="col">{h}</th>' for h in ("step", "messages", "what ranks hold that is new"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{self.rows()}</tbody></table>"

    def rows(self):
        """The body of that table."""
        rows = []
        for k, arrows in enumerate(self.steps):
            ranks = {}
            for r, j, (_, texts) in self._changed(k):
                ranks.setdefault(r, {}).setdefault(texts[0] if texts else "nothing", []).append(j)
            holds = "; ".join(f"rank {r}: " + ", ".join(
                text if self.B == 1 else f"{self._blocks(js).strip()} = {text}" for text, js in by.items())
                for r, by in ranks.items())
            over = "; ".join((f"over {link}: " if len(self.links) > 1 else "") + ", ".join(
                self._phrases({a: b for a, b in arrows.items() if a[2] == link}))
                for link in self.links if any(a[2] == link for a in arrows))
            rows.append(f'<tr><th scope="row">{k or "start"}</th><td>{html.escape(over)}</td>'
                        f"<td>{html.escape(holds)}</td></tr>")
        return "".join(rows)

    def key(self):
        """What the marks of the picture mean."""
        sums = any(c[0] for f in self.frames for row in f for c in row)
        gone = any(not cell[1] for k in range(1, self.last + 1) for *_, cell in self._changed(k))
        return ("A stripe for each rank whose part is in the sum, in its place and color. " if sums else "") + (
            "Thin lines at the start: who will send to whom. Frame with a corner: new in this step"
            + ("; dashed frame: given away." if gone else "."))

    # ---- the specification -----------------------------------------------------------------
    def spec(self):
        """The player as JSON: what player.js and picture() draw from.

        states: [ranks, texts] of every kind of cell; steps: arrows [source, to, label, link] and the cells that
        change, [rank, block, state, rank, block, state, ...]; says: a sentence a step.
        """
        kinds = {((), ()): 0}
        steps = []
        for k, arrows in enumerate(self.steps):
            cells = [n for r, j, cell in self._changed(k) for n in (r, j, kinds.setdefault(cell, len(kinds)))]
            steps.append({"arrows": [[a, b, self._label(blocks), self.links.index(link)]
                                     for (a, b, link), blocks in arrows.items()], "cells": cells})
        return {"title": self.title, "P": self.P, "B": self.B, "block": self.block, "group": self.group or 0,
                "links": self.links if len(self.links) > 1 else [], "states": [[*map(list, c)] for c in kinds],
                "steps": steps, "says": [self.says(k) for k in range(len(steps))], "key": self.key()}

    def _label(self, blocks):
        return "" if self.B == 1 else "all" if len(blocks) == self.B else _ranges(_runs(blocks))

    def traces(self):
        """The run for a test: every message and every change of a cell; a notebook keeps it as plain text."""
        return {"messages": [[k, m.source, m.to, m.nbytes, str(m.tag), m.link]
                             for k, step in enumerate(self.messages) for m in step],
                "cells": [[k, r, j, cell[1][0] if cell[1] else ""]
                          for k in range(len(self.steps)) for r, j, cell in self._changed(k)]}

    # ---- pictures --------------------------------------------------------------------------
    def svg(self, step=0, width=640):
        """The picture of a step as SVG text, `width` pixels wide.  ValueError for a step that is not there."""
        if not (_whole(step) and 0 <= step <= self.last):
            raise ValueError(f"{self.name}: step = {step!r}; allowed: 0 to {self.last}")
        return frame(*picture(self._spec, step, width))

    def to_html(self, spec=None):
        """The figure of the built book; readable as a table where no script runs."""
        return (f'<figure class="cx-stepper" id="{self.name}" data-spec=\'{attribute(spec or self._spec)}\'>\n'
                f"<figcaption>{html.escape(self.title)}</figcaption>\n{self.table()}\n</figure>")

    def png(self, dpi=144):
        """Some steps side by side for paper, as the bytes of a PNG 6.4 inches wide; always the same."""
        from .paper import png
        return png(*steps_side_by_side(self._spec), dpi)

    def widget(self):
        """Player, slider, picture, sentence and table; a step is drawn by the kernel."""
        import ipywidgets as W
        wide, last = W.Layout(width="100%", max_width="640px"), self.last
        play = W.Play(min=0, max=last, interval=BEAT, show_repeat=False)
        at = W.IntSlider(min=0, max=last, description=f"step of {last}", layout=wide)
        W.jslink((play, "value"), (at, "value"))
        shown = W.HTML()

        def redraw(_=None):
            said, key = html.escape(self.says(at.value)), html.escape(self.key())
            shown.value = (f'<div class="cx-lab">{self.svg(at.value)}<p aria-live="polite">{said}</p>'
                           f"<p><small>{key}</small></p></div>")
        at.observe(redraw, "value")
        redraw()
        drawer = W.Accordion([W.HTML(f'<div class="cx-lab">{self.table()}</div>')], titles=("All steps as a table",),
                             layout=wide)
        title = W.HTML(f"{LAB}<strong>{html.escape(self.title)}</strong>")
        return W.VBox([title, W.HBox([play, at], layout=wide), shown, drawer])

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": f"{self!r}\n{json.dumps(self.traces(), ensure_ascii=False, separators=(',', ':'))}",
                "text/html": self.to_html(), "image/png": base64.b64encode(self.png()).decode()}
        self._widget = self.widget()                      # keeps its callbacks alive
        view = self._widget._repr_mimebundle_()
        return data | {k: v for k, v in view.items() if "widget-view" in k}

    def __repr__(self):
        return f"stepper({self.name!r})"


class Steppers:
    """Players of which the reader chooses one: .runs[algorithm, P] is a Stepper or the sentence why there is none."""

    def __init__(self, name, programs, ranks, how):
        self.name, self.title = name, how[0]
        if not (isinstance(programs, dict) and programs and all(map(callable, programs.values()))):
            raise ValueError(f"{name}: run is {programs!r}; allowed, beside ranks: {{algorithm: function(P) -> Run}}")
        if not (isinstance(ranks, (list, tuple)) and ranks and all(map(_whole, ranks))):
            raise ValueError(f"{name}: ranks is {ranks!r}; allowed: a list of numbers of ranks")
        self.algorithms, self.ranks = list(programs), list(map(int, ranks))
        self.runs = {(a, P): self._stepper(a, P, program, how) for a, program in programs.items() for P in self.ranks}
        self.first = self.runs[self.algorithms[0], self.ranks[0]]
        if isinstance(self.first, str):
            raise ValueError(f"{name}: {self.first}  Allowed: a run of the first algorithm on the first number of ranks")

    def _stepper(self, algorithm, P, program, how):
        try:
            return Stepper(self.name, program(P), *how)
        except ProgramError as refused:
            if not isinstance(refused.__cause__, ValueError):
                raise
            return f"{algorithm[0].upper()}{algorithm[1:]} does not run: {refused.__cause__}."

    def cost(self, algorithm, P):
        """Rounds, and what the busiest rank sends of its vector, as a sentence."""
        E = self.runs[algorithm, P]
        sent = [0]*P
        for (a, _, _), blocks in (arrow for arrows in E.steps for arrow in arrows.items()):
            sent[a] += len(blocks)
        share = f"{max(sent)}/{E.B} of its vector" if E.B > 1 else f"{max(sent)} whole vectors"
        return f"{E.last} rounds; no rank sends more than {share}."

    def spec(self):
        """That of the first, and `others` in the order of algorithms and ranks; its place there is null."""
        specs = [E if isinstance(E, str) else self.priced(*key) for key, E in self.runs.items()]
        others = [None] + [S if isinstance(S, str) else S | {"table": E.rows()}
                           for S, E in list(zip(specs, self.runs.values()))[1:]]
        return specs[0] | {"algorithms": self.algorithms, "ranks": self.ranks, "others": others}

    def priced(self, algorithm, P):
        """The specification of a run; at its start stands what it costs."""
        S = self.runs[algorithm, P].spec()
        return S | {"says": [f"{S['says'][0]} {self.cost(algorithm, P)}", *S["says"][1:]]}

    def to_html(self):
        """The figure of the built book; the first run as a table where no script runs."""
        return self.first.to_html(self.spec())

    def png(self, dpi=144):
        """The first run for paper."""
        return self.first.png(dpi)

    def widget(self):
        """Two choices above the player, which is made when it is asked for."""
        import ipywidgets as W
        of = [W.ToggleButtons(options=options, description=name, style={"button_width": "auto"})
              for name, options in (("algorithm", self.algorithms), ("ranks", self.ranks))]
        shown = W.VBox()

        def redraw(_=None):
            E = self.runs[of[0].value, of[1].value]
            shown.children = [W.HTML(html.escape(E)) if isinstance(E, str) else E.widget()]
        for choice in of:
            choice.observe(redraw, "value")
        redraw()
        return W.VBox([*of, shown])

    def _repr_mimebundle_(self, include=None, exclude=None):
        lines = [f"{a}, {P} ranks: " + (E if isinstance(E, str) else f"{E.last} rounds, {len(E.traces()['messages'])} messages")
                 for (a, P), E in self.runs.items()]
        data = {"text/plain": "\n".join([repr(self), *lines]), "text/html": self.to_html(),
                "image/png": base64.b64encode(self.png()).decode()}
        self._widget = self.widget()
        view = self._widget._repr_mimebundle_()
        return data | {k: v for k, v in view.items() if "widget-view" in k}

    def __repr__(self):
        return f"stepper({self.name!r})"


def _full(cell, P):
    """Whether a cell holds all there is: the sum over all ranks, or what is no sum."""
    ranks, texts = cell
    return bool(texts) and len(ranks) in (0, P)


def _whole(n):
    return isinstance(n, Integral) and not isinstance(n, bool)


def _runs(numbers):
    """[(0, 2), (5, 5)] for the sorted numbers 0, 1, 2, 5."""
    out = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1] = out[-1][0], n
        else:
            out.append((n, n))
    return out


def _ranges(runs, between=", "):
    """'0–2, 5' for [(0, 2), (5, 5)]; two neighbours are written out."""
    return between.join(str(a) if a == b else f"{a}{between}{b}" if b == a + 1 else f"{a}–{b}" for a, b in runs)


# ---- the picture: player.js is the same, function by function -----------------------------------
def picture(S, k, W):
    """Step k of the specification S, `W` pixels wide: (shapes, W, height, what is read out)."""
    grid, arrows, high = grid_and_arrows(S, k, W)
    head, top = legend([(name, "network", DASHES[i]) for i, name in enumerate(S["links"])], W)
    top = top + 4 if S["links"] else 0
    out = [*head, Group([*grid, Group(arrows, name="cx-arrows")], y=top)]
    return out, W, top + high, f"{S['title']}. {S['says'][k]}"


def grid_and_arrows(S, k, W):
    """(shapes of the grid, shapes of the arrows, height) of step k, `W` pixels wide."""
    P, B, G = S["P"], S["B"], S["group"] or S["P"]
    names = [f"{S['block']} {j}" for j in range(B)] if B > 1 else ["holds"]
    if max(map(width, names)) > .14*W and B > 1:
        names = list(map(str, range(B)))
    x0, gap = max(map(width, [*names, "rank"])) + 10, 14
    step = min(120, (W - x0 - 1 - gap*((P - 1)//G))/P)
    high = 34 if B == 1 else 26 if B <= 8 else 20 if B <= 16 else 17
    numbered = width(f"rank {P - 1}") + 6 > step                # no room for the word above each column
    every = [a for s in S["steps"] for a in s["arrows"]]

    def lift(a, b):
        return math.floor(14 + 50*math.sqrt(abs(a - b)/P))

    def left(r):
        return x0 + step*r + gap*(r//G)
    up = max((lift(a, b) for a, b, *_ in every if a < b), default=0)
    down = max((lift(a, b) for a, b, *_ in every if a > b), default=0)
    tips = up + 10 if up else 0
    y0 = tips + (41 if S["group"] else 22)
    y1 = y0 + high*B
    out = [Text(x0 - 8, y0 - 7, "rank", "end", opacity=.8)] if numbered else []
    for r in range(P):
        out.append(Text(left(r) + step/2, y0 - 7, str(r) if numbered else f"rank {r}", "middle"))
        if S["group"] and r % G == 0:
            w, text = step*min(P - r, G), f"node {r//G}"
            out.append(Rect(left(r) - 2, y0 - 22, w + 4, y1 - y0 + 25, line="idle", radius=4))
            if width(text) < w:
                out.append(Text(left(r) + w/2, y0 - 26, text, "middle", opacity=.8))
    now, new = {}, set()
    for s in S["steps"][:k + 1]:
        changes = list(zip(s["cells"][::3], s["cells"][1::3], s["cells"][2::3]))
        now |= {(r, j): state for r, j, state in changes}
        new = {(r, j) for r, j, _ in changes}
    fills, under = {}, len(out)
    for j in range(B):
        y = y0 + high*j
        out.append(Text(x0 - 8, y + high/2 + 4, names[j], "end", opacity=.8))
        for r in range(P):
            ranks, texts = S["states"][now.get((r, j), 0)]
            x, w = left(r) + 1, step - 2
            fill(fills, ranks, texts, P, x, y + 1, w, high - 2)
            mark = dict(weight=2.2) if texts else dict(dash="3 3")               # new, or given away
            mark = dict(line_opacity=.4) if k == 0 or (r, j) not in new else mark
            out.append(Rect(x, y + 1, w, high - 2, line="other", **mark))
            if "weight" in mark:
                out.append(Path(f"M{x + w - 8:.1f} {y + 1:.1f}h8v8Z", "other"))
            text = next((t for t in texts if width(t) < w), "")
            if text:
                n = len(ranks)
                strong = dict(halo=True, bold=n == P) if n else dict(color="on:memory", bold=True, spoken=False)
                together = n and ranks[-1] - ranks[0] == n - 1 and width(text) < w*n/P
                at = ranks[0] + ranks[-1] + 1 if together else P
                out.append(Text(x + w*at/P/2, y + high/2 + 4, text, "middle", **strong))
    out[under:under] = [Path(d, role, opacity=1 if role == "memory" else .45) for role, d in fills.items()]
    arcs, heads, labels, boxes = [], [], [], []
    thin = list({(a, b, link): (a, b, "", link) for a, b, _, link in every}.values())       # at the start, all there will be
    for a, b, label, link in S["steps"][k]["arrows"] if k else thin:
        side = 1 if a < b else -1                       # to higher ranks above, to lower ranks below
        y, h = (tips, lift(a, b)) if side > 0 else (y1 + 4, -lift(a, b))
        u, v, c = left(a) + step*(.5 + .2*side), left(b) + step*(.5 - .2*side), y - h/.75
        d = f"M{u:.1f} {y:.1f}C{u:.1f} {c:.1f} {v:.1f} {c:.1f} {v:.1f} {y - 6*side:.1f}"
        arcs.append(Path(d, line="network", weight=2 if k else 1, line_opacity=1 if k else .35, dash=DASHES[link]))
        if not k:
            continue
        heads.append(Path(f"M{v - 4.5:.1f} {y - 8*side:.1f}h9L{v:.1f} {y:.1f}Z", "network"))
        w, x = width(label), (u + v)/2
        if label and all(abs(x - p) > (w + q)/2 + 3 or abs(y - h - z) > 13 for p, q, z in boxes):
            boxes.append((x, w, y - h))
            labels += [Rect(x - w/2 - 3, y - h - 9, w + 6, 17, "paper"), Text(x, y - h + 4, label, "middle", bold=True)]
    return out, arcs + heads + labels, y1 + (down + 16 if down else 6)


def fill(paths, ranks, texts, P, x, y, w, h):
    """Adds to the path of each role what fills a cell: a stripe for each part of a sum, of the color of its rank."""
    for role, a, b in [(f"rank{r % 4}", r, r + 1) for r in ranks] or [("memory", 0, P)]*bool(texts):
        left = f"{x + w*a/P:.1f}"
        paths[role] = paths.get(role, "") + f"M{left} {y:.1f}H{x + w*b/P:.1f}V{y + h:.1f}H{left}Z"


def steps_side_by_side(S):
    """Four or six steps in a grid, for paper: (shapes, W, height)."""
    last = len(S["steps"]) - 1
    count, across, W = (6, 3, 250) if S["P"] <= 4 else (4, 2, 330 if S["P"] <= 8 else 400)
    whole, gap, lines = across*(W + 24) - 8, 24, wrapped(S["title"], across*(W + 24) - 24, 19)
    top, out = 26*len(lines) + 20, [Text(8, 26 + 26*i, line, size=19, bold=True) for i, line in enumerate(lines)]
    if S["links"]:
        head, high = legend([(name, "network", DASHES[i]) for i, name in enumerate(S["links"])], whole - 16)
        out.append(Group(head, 8, top - 8))
        top += high
    steps = sorted({round(i*last/(count - 1)) for i in range(count)})
    for i, k in enumerate(steps):
        grid, arrows, high = grid_and_arrows(S, k, W)
        x, y = 8 + i % across*(W + gap), top + i//across*(high + 34)
        name = f"Step {k} of {last}" if k else "Start"
        out += [Text(x, y + 14, name, bold=True), Group([*grid, *arrows], x, y + 22)]
    return out, whole, top + math.ceil(len(steps)/across)*(high + 34)
