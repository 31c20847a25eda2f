"""Drawings of objects: arrays cut over devices, boxes, arrows, lanes.  SVG that follows the page's colours.

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
A drawing is made twice, for a wide and for a narrow column; text is never scaled.
"""
import html
import json
import re
from typing import NamedTuple

from . import svg as draw
from .svg import FONT, PAPER, ink, pen, width

WIDE, NARROW = 680, 336          # of a figure; one with switches has a frame
FRAMED = 36
RANKS = ["#0072B2", "#009E73", "#E69F00", "#CC79A7"]
SOFT = 'fill="currentColor" fill-opacity=".72"'
NUMBER = re.compile(r"-?\d")


def rank_ink(r):
    return f"var(--cx-r{r % 4},{RANKS[r % 4]})"


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


class Sketch:
    """A sheet W pixels wide; its height is what is drawn.  Every method that draws a shape returns its Box."""

    def __init__(self, W):
        self.W, self.out, self.said, self.low = W, [], [], 0

    def _put(self, svg, bottom):
        self.out.append(svg)
        self.low = max(self.low, bottom)

    # ---- words
    def text(self, x, y, text, anchor="middle", *, color=None, soft=False, bold=False, size=FONT, halo=False, fill=None):
        """One line; a name of one letter or a product of such is set in italics, as in a formula."""
        fill = f'fill="{fill}" aria-hidden="true"' if fill else SOFT if soft else f'fill="{pen(color)}"' if color else 'fill="currentColor"'
        more = ' font-weight="600"' if bold else ""
        more += f' font-size="{size}"' if size != FONT else ""
        more += f" {draw.HALO}" if halo else ""
        if re.fullmatch(r"[A-Zdσ()ΣXY′×ᵀ· +yHf]{1,7}", text) and re.search("[A-Zyσ]", text):
            more += ' font-style="italic" font-family="Georgia,serif"'
        self._put(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {fill}{more}>{html.escape(text)}</text>', y + 4)
        self.said.append(text)

    # ---- shapes
    def rect(self, x, y, w, h, fill="none", line="currentColor", *, opacity=1, line_opacity=1, weight=1, radius=2, dash=""):
        self._put(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius}" fill="{fill}" '
                  f'fill-opacity="{opacity}" stroke="{line}" stroke-opacity="{line_opacity}" stroke-width="{weight}"'
                  + (f' stroke-dasharray="{dash}"' if dash else "") + "/>", y + h)
        return Box(x, y, w, h)

    def sheet(self, x, y, w, h, rank=None):
        """One sheet of an array: grey, or in a device's colour."""
        if rank is None:
            return self.rect(x, y, w, h, "currentColor", opacity=.08, line_opacity=.5)
        self.rect(x, y, w, h, PAPER, "none")
        return self.rect(x, y, w, h, rank_ink(rank), rank_ink(rank), opacity=.34, weight=1.3)

    def array(self, x, y, w, h, how, name="", note="", t=4):
        """An array of w by h as the devices hold it: copy, columns, rows or term."""
        if how == "copy":
            self.sheet(x, y, w, h)
        elif how in ("columns", "rows"):
            for r in range(t):
                if how == "columns":
                    self.sheet(x + w*r/t + .75, y, w/t - 1.5, h, r)
                else:
                    self.sheet(x, y + h*r/t + .75, w, h/t - 1.5, r)
        elif how == "term":
            d = min(4, w/14)                                  # the stack fills the box
            for r in reversed(range(t)):
                self.sheet(x + d*r, y + d*r, w - d*(t - 1), h - d*(t - 1), r)
        else:
            raise ValueError(f"array {name}: how = {how!r}; allowed: copy, columns, rows, term")
        shift = -min(4, w/14)*(t - 1)/2 if how == "term" else 0
        if name:
            self.text(x + w/2 + shift, y + h/2 + 4.5 + shift, name, bold=True, halo=how == "rows")
        if note:
            self.text(x + w/2, y + h + 17, note, soft=True, size=11)
        return Box(x, y, w, h)

    def box(self, x, y, w, h, text, color=None):
        """Something that computes."""
        b = self.rect(x, y, w, h, ink(color) if color else "none", ink(color) if color else "currentColor",
                      opacity=.16 if color else 1, line_opacity=1 if color else .55, radius=6)
        self.text(b.cx, b.cy + 4.5, text, bold=bool(color))
        return b

    def line(self, d, color="other", weight=1.5, *, opacity=1, dash="", bottom=0):
        self._put(draw.stroke(d, ink(color), weight, dash, f'stroke-opacity="{opacity}"'), bottom)

    def head(self, x, y, way, color="other", size=5, opacity=1):
        dx, dy = dict(right=(1, 0), left=(-1, 0), down=(0, 1), up=(0, -1))[way]
        a, b = (x - size*1.5*dx - size*dy*.85, y - size*1.5*dy - size*dx*.85), \
               (x - size*1.5*dx + size*dy*.85, y - size*1.5*dy + size*dx*.85)
        self._put(f'<path d="M{x:.1f} {y:.1f}L{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}Z" fill="{ink(color)}" '
                  f'fill-opacity="{opacity}"/>', y + size)

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
                    self.text(x, y - 9 - 14*(len(lines) - 1 - k), text, color=color if color != "other" else None,
                              soft=color == "other", bold=color == "network", size=11.5)
            if below:
                self.text(x, y + 18, below, soft=True, size=11)
        else:
            way, x = ("down", a.cx) if b.cy > a.cy else ("up", a.cx)
            u, v = (a.bottom + gap, b.y - gap) if way == "down" else (a.y - gap, b.bottom + gap)
            self.line(f"M{x:.1f} {u:.1f}V{v + (-5 if way == 'down' else 5):.1f}", color, weight, opacity=opacity)
            self.head(x, v, way, color, 4 + weight/2, opacity)
            if above:
                self.text(x + 9, (u + v)/2 + 4, above.replace("\n", ""), "start", bold=color == "network",
                          color=color if color != "other" else None, soft=color == "other", size=11.5)

    def key(self, y, t=4, x=0, words="device"):
        """Which colour is which device."""
        self.text(x, y + 10, words, "start", soft=True, size=11)
        x += width(words)*.9 + 6
        for r in range(t):
            self.sheet(x, y + 1, 11, 11, r)
            self.text(x + 16, y + 10, str(r), "start", soft=True, size=11)
            x += 34
        return x

    def svg(self, alt):
        H = self.low + 6
        return (f'<svg viewBox="0 0 {self.W} {H:.0f}" width="{self.W}" height="{H:.0f}" role="img" fill="none" '
                f'font-size="{FONT}" aria-label="{html.escape(alt)}">{"".join(self.out)}</svg>')


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
                f'<label><input type="radio" name="{self.name}-{i}" value="{k}"{" checked" if o == self.start[i] else ""}>'
                f"<span>{html.escape(o)}</span></label>" for k, o in enumerate(options)) + "</fieldset>"
            for i, (label, options) in enumerate(self.switches.items()))
        def place(c):
            return " ".join(str(list(o).index(x)) for o, x in zip(self.switches.values(), c))
        scenes = "".join(
            f'<div class="cx-scene" data-at="{place(c)}"{"" if c == self.start else " hidden"}>'
            f"{pair(lambda W: self.make(W, *c), f'{self.title} {self.says(*c)}', FRAMED)}<p>{html.escape(self.says(*c))}</p></div>"
            for c in self.at)
        return (f'<figure class="cx-sketch cx-scenes" id="{self.name}"><figcaption>{html.escape(self.title)}</figcaption>'
                f'<div class="cx-switches">{sets}</div><div aria-live="polite">{scenes}</div></figure>')

    def widget(self):
        """The same with ipywidgets: one button per option, drawn by the kernel."""
        import ipywidgets as W
        picks = [W.ToggleButtons(options=list(o), value=v, description=label, style={"button_width": "auto"})
                 for (label, o), v in zip(self.switches.items(), self.start)]
        shown = W.HTML()

        def redraw(_=None):
            at = [p.value for p in picks]
            shown.value = f'<div class="cx-lab">{self.make(WIDE - FRAMED, *at).svg(self.title)}<p>{html.escape(self.says(*at))}</p></div>'
        for p in picks:
            p.observe(redraw, "value")
        redraw()
        return W.VBox([W.HTML(f"{draw.LAB}<strong>{html.escape(self.title)}</strong>"), *picks, shown])

    def _repr_mimebundle_(self, include=None, exclude=None):
        self._widget = self.widget()                      # keeps its callbacks alive
        view = self._widget._repr_mimebundle_()
        return {"text/plain": repr(self), "text/html": self._repr_html_()} | {k: v for k, v in view.items() if "widget-view" in k}

    def __repr__(self):
        return f"scenes({self.name!r})\n" + json.dumps({" ".join(c): self.says(*c) for c in self.at}, ensure_ascii=False)


def scenes(name, *, title, switches, make, says, start=None):
    """A drawing with switches: {"cut A by": ["columns", "rows"], ...}; make(W, *choice), says(*choice)."""
    return Scenes(name, title, switches, make, says, start)
