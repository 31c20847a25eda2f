"""Drawings of objects: arrays cut over devices, nodes, meshes, masks, bars of memory, lanes of time.

    def layer(W):                                   # one function per drawing, W is the width in pixels
        s = Sketch(W)
        x = s.array(0, 10, 40, 64, "copy", "X")
        h = s.array(120, 10, 80, 64, "columns", "XA")
        s.arrow(x, h, "all-gather")
        return s

    drawing("layer", layer, title="The finding, as a sentence", alt="What a reader who cannot see it misses")

The four ways in which devices hold an array are drawn alike everywhere:
    copy     one grey sheet            every device holds all of it
    columns  coloured vertical slices  device r holds slice r
    rows     coloured slices, flat     device r holds slice r
    term     coloured sheets, stacked  the array is the sum of what the devices hold
A device is told by its colour and by its texture (0 plain, 1 rising, 2 dotted, 3 falling), and by its number where
there is room.  A drawing is made twice, for a wide and for a narrow column; text is never scaled, and never smaller
than 13 pixels.  A Sketch collects the shapes of shapes.py; the painter of svg.py paints them.
"""
import html
import itertools
import json
import re
from typing import NamedTuple

from . import svg as draw
from .shapes import COLORS, Path, Rect, Text, width

WIDE, NARROW = 680, 336          # of a figure; one with switches has a frame
FRAMED = 36
SIZE, LEAST = 13.5, 13           # height of text; no text is smaller than LEAST
ROLES = {*COLORS, "other", "paper", ""}
NAME = re.compile(r"[dσΣ]?\(?[A-Zfghxyσ][₀-₉ᵀ′]*\)?")   # a letter of a formula, with a d or σ


def rank(r):
    """The role of device r: its colour; there are four of them."""
    return f"rank{r % 4}"


def role(color):
    """A role, or what the page's CSS calls it, as a role; ValueError naming the roles otherwise."""
    css = {"none": "", "currentColor": "other", draw.PAPER: "paper", "#111": "on:limit", None: ""}
    found = re.fullmatch(r"var\(--cx-([\w-]+),.*\)", color or "")
    name = css.get(color) if color in css else found[1].replace("on-", "on:") if found else color
    name = re.sub(r"^r(?=\d$)", "rank", name)
    if name.removeprefix("on:") not in ROLES:
        raise ValueError(f"color {color!r}; allowed: {', '.join(sorted(ROLES - {''}))}, on:COLOR, none")
    return name


class Box(NamedTuple):
    """Where a shape is; arrows start and end at its middle."""
    x: float
    y: float
    w: float
    h: float

    @property
    def right(self):
        return self.x + self.w

    @property
    def bottom(self):
        return self.y + self.h

    @property
    def cx(self):
        return self.x + self.w/2

    @property
    def cy(self):
        return self.y + self.h/2


def extent(text):
    """The box that the words of a Text fill."""
    w = width(text.text, text.size)*(1.06 if text.bold else 1)
    return Box(text.x - w*dict(start=0, middle=.5, end=1)[text.anchor], text.y - .74*text.size, w, .92*text.size)


class Sketch:
    """A sheet W pixels wide; its height is what is drawn.  Every method that draws a shape returns its Box."""

    def __init__(self, W):
        self.W, self.shapes, self.low = W, [], 0

    def _put(self, shape, bottom):
        self.shapes.append(shape)
        self.low = max(self.low, bottom)

    @property
    def narrow(self):
        return self.W < 400

    @property
    def said(self):
        """The words of the sheet, as they are heard."""
        return [t.text for t in self.shapes if isinstance(t, Text) and t.spoken]

    def faults(self):
        """Texts that leave the sheet and texts that touch each other, as sentences."""
        texts = [(t.text, extent(t)) for t in self.shapes if isinstance(t, Text)]
        out = [f"{text!r} leaves the sheet of {self.W}: {b.x:.0f} to {b.right:.0f}, {b.y:.0f} down" for text, b in texts
               if b.x < -1 or b.right > self.W + 1 or b.y < -1]
        return out + [f"{a!r} touches {b!r}" for (a, p), (b, q) in itertools.combinations(texts, 2)
                      if min(p.right, q.right) - max(p.x, q.x) > 1 and min(p.bottom, q.bottom) - max(p.y, q.y) > 1]

    # ---- words
    def text(self, x, y, text, anchor="middle", *, color=None, soft=False, bold=False, size=SIZE, halo=False,
             fill=None, math=None, spoken=True):
        """One line.  A letter of a formula is set in italics; math=True or False decides otherwise."""
        color = role(fill or color) or "other"
        italic = bool(NAME.fullmatch(text)) if math is None else math
        t = Text(round(x, 1), round(y, 1), text, anchor, color, .78 if soft and color == "other" else 1,
                 max(size, LEAST), bold, italic, halo, spoken and not fill)
        self._put(t, y + 4)
        return extent(t)

    def words(self, x, y, w, text, *, line=18, **style):
        """Words in as many lines as they need to stay inside w pixels; returns their Box."""
        lines, size = [""], max(style.get("size", SIZE), LEAST)
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and width(longer, size)*(1.06 if style.get("bold") else 1) > w:
                lines.append(word)
            else:
                lines[-1] = longer
        at = {"middle": x + w/2, "end": x + w}.get(style.setdefault("anchor", "start"), x)
        for k, text in enumerate(lines):
            self.text(at, y + 12 + line*k, text, **style)
        return Box(x, y, w, line*len(lines))

    # ---- shapes
    def rect(self, x, y, w, h, fill="", line="other", *, opacity=1, line_opacity=1, weight=1, radius=2, dash=""):
        self._put(Rect(*(round(v, 1) for v in (x, y, w, h)), role(fill), role(line), opacity, line_opacity, weight,
                       dash, radius), y + h)
        return Box(x, y, w, h)

    def line(self, d, color="other", weight=1.5, *, opacity=1, dash="", bottom=0):
        self._put(Path(d, "", role(color), 1, opacity, weight, dash), bottom)

    def sheet(self, x, y, w, h, rank=None):
        """One sheet of an array: grey, or in a device's colour and texture."""
        if rank is None:
            return self.rect(x, y, w, h, "other", "other", opacity=.08, line_opacity=.5)
        self.rect(x, y, w, h, "paper", "")
        b = self.rect(x, y, w, h, f"rank{rank % 4}", f"rank{rank % 4}", opacity=.3, weight=1.3)
        self._texture(b, rank)
        return b

    def _texture(self, b, r, step=6):
        """What tells device r without its colour."""
        x, y, X, Y = b.x + 1, b.y + 1, b.right - 1, b.bottom - 1
        d, kind = "", r % 4
        if kind == 2:
            d = "".join(f"M{x + 1.5 + (k % 2)*2.5 + i*5:.1f} {y + 2 + k*4:.1f}h1.3"
                        for k in range(int((Y - y - 1)//4)) for i in range(max(1, int((X - x - (k % 2)*2.5)//5))))
        elif kind:
            at = step/2
            while at < X - x + Y - y:                         # lines u + v = at, cut by the box
                u, v = min(at, X - x), max(0, at - (X - x))
                p, q = max(0, at - (Y - y)), min(at, Y - y)
                a, b_ = ((x + u, y + v), (x + p, y + q)) if kind == 1 else ((X - u, y + v), (X - p, y + q))
                d += f"M{a[0]:.1f} {a[1]:.1f}L{b_[0]:.1f} {b_[1]:.1f}"
                at += step
        if d:
            self._put(Path(d, "", f"rank{kind}", 1, .75, 1.3 if kind == 2 else 1), 0)

    def array(self, x, y, w, h, how, name="", note="", t=4):
        """An array of w by h as the devices hold it: copy, columns, rows or term.

        Each slice carries the number of its device where that leaves room for the name.  ValueError for another how.
        """
        d = min(4, w/14)                                      # how far the sheets of a term stand apart
        if how == "copy":
            self.sheet(x, y, w, h)
        elif how in ("columns", "rows"):
            dx, dy = (w/t, 0) if how == "columns" else (0, h/t)
            for r in range(t):
                b = self.sheet(x + dx*r + (.75 if dx else 0), y + dy*r + (.75 if dy else 0),
                               dx - 1.5 if dx else w, dy - 1.5 if dy else h, r)
                beside = width(name, SIZE) < w - 40           # room for a number left of the name
                if dx and (dx >= 15 and (h >= 48 or not name and h >= 18)):
                    self.text(b.cx, b.bottom - 5 if name else b.cy + 5, str(r), size=LEAST, halo=True, spoken=False)
                elif dy >= 16 and (beside if name else w >= 14):
                    self.text(b.x + 9 if name else b.cx, b.cy + 4.8, str(r), size=LEAST, halo=True, spoken=False)
        elif how == "term":
            for r in reversed(range(t)):
                self.sheet(x + d*r, y + d*r, w - d*(t - 1), h - d*(t - 1), r)
        else:
            raise ValueError(f"array {name}: how = {how!r}; allowed: copy, columns, rows, term")
        shift = -d*(t - 1)/2 if how == "term" else 0
        if name:
            letters = re.fullmatch(r"[A-Zdfghxyσ₀-₉ᵀ′()]{1,6}", name)
            self.text(x + w/2 + shift, y + h/2 + 4.5 + shift, name, bold=True, halo=how != "copy", math=bool(letters))
        if note:
            self.text(x + w/2, y + h + 17, note, soft=True, size=LEAST)
        return Box(x, y, w, h)

    def box(self, x, y, w, h, text, color=None):
        """Something that computes."""
        b = self.rect(x, y, w, h, color or "", color or "other", opacity=.16 if color else 1,
                      line_opacity=1 if color else .55, radius=6)
        self.text(b.cx, b.cy + 4.5, text, bold=bool(color))
        return b

    def head(self, x, y, way, color="other", size=5, opacity=1):
        dx, dy = dict(right=(1, 0), left=(-1, 0), down=(0, 1), up=(0, -1))[way]
        a, b = (x - size*1.5*dx - size*dy*.85, y - size*1.5*dy - size*dx*.85), \
               (x - size*1.5*dx + size*dy*.85, y - size*1.5*dy + size*dx*.85)
        d = f"M{x:.1f} {y:.1f}L{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}Z"
        self._put(Path(d, role(color), "", opacity), y + size)

    def arrow(self, a, b, above="", below="", color="other", weight=1.5, gap=7, opacity=1):
        """From box to box, to the side that faces the other; words above (a line each) and below."""
        if abs(b.cx - a.cx) >= abs(b.cy - a.cy):
            way, y = ("right", a.cy) if b.cx > a.cx else ("left", a.cy)
            u, v = (a.right + gap, b.x - gap) if way == "right" else (a.x - gap, b.right + gap)
            self.line(f"M{u:.1f} {y:.1f}H{v + (-5 if way == 'right' else 5):.1f}", color, weight, opacity=opacity)
            self.head(v, y, way, color, 4 + weight/2, opacity)
            x, lines = (u + v)/2 - 2, above.split("\n")
            for k, text in enumerate(lines):
                if text:
                    self.text(x, y - 9 - 15*(len(lines) - 1 - k), text, color=color if color != "other" else None,
                              soft=color == "other", bold=color == "network", size=LEAST)
            if below:
                self.text(x, y + 19, below, soft=True, size=LEAST)
        else:
            way, x = ("down", a.cx) if b.cy > a.cy else ("up", a.cx)
            u, v = (a.bottom + gap, b.y - gap) if way == "down" else (a.y - gap, b.bottom + gap)
            self.line(f"M{x:.1f} {u:.1f}V{v + (-5 if way == 'down' else 5):.1f}", color, weight, opacity=opacity)
            self.head(x, v, way, color, 4 + weight/2, opacity)
            if above:
                self.text(x + 9, (u + v)/2 + 4, above.replace("\n", ""), "start", bold=color == "network",
                          color=color if color != "other" else None, soft=color == "other", size=LEAST)

    def key(self, y, t=4, x=0, words="device"):
        """Which colour and texture is which device."""
        x = max(0, x)
        self.text(x, y + 12, words, "start", soft=True, size=LEAST)
        x += width(words, LEAST) + 8
        for r in range(t):
            self.sheet(x, y, 15, 15, r)
            self.text(x + 20, y + 12, str(r), "start", soft=True, size=LEAST)
            x += 40
        return x

    def svg(self, alt):
        H = self.low + 6
        return (f'<svg viewBox="0 0 {self.W} {H:.0f}" width="{self.W}" height="{H:.0f}" role="img" fill="none" '
                f'font-size="{draw.FONT}" aria-label="{html.escape(alt)}">{draw.paint(self.shapes)}</svg>')


def pair(make, alt, less=0):
    """The drawing for a wide and for a narrow column; the page shows one of them."""
    return (f'<div class="cx-wide">{make(WIDE - less).svg(alt)}</div>'
            f'<div class="cx-narrow" style="display:none">{make(NARROW - less).svg(alt)}</div>')


class Drawing:
    """A figure with a title that states the finding; text/plain holds its words, so that a test compares them."""

    def __init__(self, name, make, title, alt):
        self.name, self.make, self.title, self.alt = draw.slug("drawing", name), make, title, alt
        if not title.strip() or not alt.strip():
            raise ValueError(f"{name}: a drawing needs a title and an alt text")

    def _repr_html_(self):
        return (f'<figure class="cx-sketch" id="{self.name}"><figcaption>{html.escape(self.title)}</figcaption>'
                f"{pair(self.make, self.alt)}</figure>")

    def __repr__(self):
        return f"drawing({self.name!r}): " + " | ".join(self.make(WIDE).said)


def drawing(name, make, *, title, alt):
    """A drawing: make(W) returns a Sketch W pixels wide."""
    return Drawing(name, make, title, alt)


class Scenes:
    """A drawing with switches: every combination is drawn here, by Python; the page only shows one of them."""

    def __init__(self, name, title, switches, make, says, start):
        self.name, self.title, self.switches, self.make, self.says = name, title, switches, make, says
        draw.slug("scenes", name)
        self.at = [()]
        for options in switches.values():
            self.at = [(*c, o) for c in self.at for o in options]
        self.start = start or self.at[0]

    def _repr_html_(self):
        sets = "".join(
            f"<fieldset><legend>{html.escape(label)}</legend>" + "".join(
                f'<label><input type="radio" name="{self.name}-{i}" value="{k}"'
                f'{" checked" if o == self.start[i] else ""}><span>{html.escape(o)}</span></label>'
                for k, o in enumerate(options)) + "</fieldset>"
            for i, (label, options) in enumerate(self.switches.items()))

        def place(c):
            return " ".join(str(list(o).index(x)) for o, x in zip(self.switches.values(), c))
        scenes = "".join(
            f'<div class="cx-scene" data-at="{place(c)}"{"" if c == self.start else " hidden"}>'
            f"{pair(lambda W, c=c: self.make(W, *c), f'{self.title} {self.says(*c)}', FRAMED)}"
            f"<p>{html.escape(self.says(*c))}</p></div>" for c in self.at)
        return (f'<figure class="cx-sketch cx-scenes" id="{self.name}">'
                f"<figcaption>{html.escape(self.title)}</figcaption>"
                f'<div class="cx-switches">{sets}</div><div aria-live="polite">{scenes}</div></figure>')

    def widget(self):
        """The same with ipywidgets: one button per option, drawn by the kernel."""
        import ipywidgets as W
        picks = [W.ToggleButtons(options=list(o), value=v, description=label, style={"button_width": "auto"})
                 for (label, o), v in zip(self.switches.items(), self.start)]
        shown = W.HTML()

        def redraw(_=None):
            at = [p.value for p in picks]
            picture = self.make(WIDE - FRAMED, *at).svg(self.title)
            shown.value = f'<div class="cx-lab">{picture}<p>{html.escape(self.says(*at))}</p></div>'
        for p in picks:
            p.observe(redraw, "value")
        redraw()
        return W.VBox([W.HTML(f"{draw.LAB}<strong>{html.escape(self.title)}</strong>"), *picks, shown])

    def _repr_mimebundle_(self, include=None, exclude=None):
        self._widget = self.widget()                      # keeps its callbacks alive
        view = self._widget._repr_mimebundle_()
        return {"text/plain": repr(self), "text/html": self._repr_html_(),
                **{k: v for k, v in view.items() if "widget-view" in k}}

    def __repr__(self):
        said = {" ".join(c): self.says(*c) for c in self.at}
        return f"scenes({self.name!r})\n" + json.dumps(said, ensure_ascii=False)


def scenes(name, *, title, switches, make, says, start=None):
    """A drawing with switches: {"cut A by": ["columns", "rows"], ...}; make(W, *choice), says(*choice)."""
    return Scenes(name, title, switches, make, says, start)
