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
import base64
import html
import itertools
import json
import re
from typing import NamedTuple

from ..units import show
from . import axes
from . import svg as draw
from .shapes import COLORS, Path, Rect, Text, width, words_on

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
    if name.removeprefix("on:") not in ROLES and name != "on:pale":
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


def room(text, size=LEAST, bold=False):
    """How wide words may get in the widest of the usual faces, which is wider than `width` guesses."""
    return width(text, size)*(1.2 if bold else 1.08) + 2*sum(c in "→↓×" for c in text)


def extent(text):
    """The box that the words of a Text fill at most."""
    w = room(text.text, text.size, text.bold)
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
        """One line.  A letter of a formula is set in italics; math=True or False decides otherwise.

        Words without a colour of their own take the one that can be read on the rectangles drawn before, or a halo.
        """
        color = role(fill or color) or "other"
        italic = bool(NAME.fullmatch(text)) if math is None else math
        t = Text(round(x, 1), round(y, 1), text, anchor, color, .78 if soft and color == "other" else 1,
                 max(size, LEAST), bold, italic, halo, spoken and not fill)
        if color == "other" and not halo:
            t = t._replace(color=self._under(extent(t)))
        self._put(t, y + 4)
        return extent(t)

    def _under(self, b):
        """The role of words in the box b, by what has been filled under its middle."""
        fill, cover = "other", 0
        for r in self.shapes:
            if isinstance(r, Rect) and r.fill and r.x < b.cx < r.x + r.w and r.y < b.cy < r.y + r.h:
                fill, cover = (r.fill, 1 - (1 - cover)*(1 - r.opacity)) if r.fill != "paper" else ("other", 0)
        return words_on(fill, cover)

    def words(self, x, y, w, text, *, line=18, **style):
        """Words in as many lines as they need to stay inside w pixels; returns their Box."""
        lines, size = [""], max(style.get("size", SIZE), LEAST)
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and room(longer, size, style.get("bold")) > w:
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
                beside = room(name, SIZE, True) < w - 36          # room for a number left of the name
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
        x += room(words) + 6
        for r in range(t):
            self.sheet(x, y, 15, 15, r)
            self.text(x + 20, y + 12, str(r), "start", soft=True, size=LEAST)
            x += 40
        return x

    def legend(self, y, items):
        """What the colours mean, items (words, color, opacity), on as many lines as they need; returns where it ends."""
        x = 0
        for words, color, opacity in items:
            wide = 20 + room(words)
            if x and x + wide > self.W:
                x, y = 0, y + 21
            self.rect(x, y, 13, 13, color, "", opacity=opacity, radius=1)
            self.text(x + 19, y + 11.5, words, "start", soft=True, size=LEAST)
            x += wide + 16
        return y + 21

    def scale(self, x, y, w, hi, unit="", lo=0):
        """A numbered scale under y, w pixels for lo to hi; returns the map from a value to its place."""
        n, axis = 7 if w > 450 else 5, {"scale": "linear", "lo": lo, "hi": hi, "unit": unit}

        def place(v):
            return x + w*(v - lo)/(hi - lo)
        values = axes.ticks(axis, n)
        while n > 2 and len(values)*(max(room(show(v, unit)) for v in values) + 12) > w:
            n -= 1
            values = axes.ticks(axis, n)
        ticks = "".join(f"M{place(v):.1f} {y:.1f}v5" for v in values)
        self.line(f"M{x:.1f} {y:.1f}h{w:.1f}{ticks}", opacity=.55, weight=1)
        for v in values:
            half = room(show(v, unit))/2
            self.text(min(max(place(v), half), self.W - half), y + 19, show(v, unit), soft=True, size=LEAST,
                      math=False, spoken=False)
        return place

    # ---- machines
    def node(self, x, y, w, devices=8, *, name="", inside="", first=0, marked=(), cards=None, flip=False):
        """A node: its devices on one fabric, and a network card under each; flip=True turns it upside down.

        inside   what the fabric is and gives, such as "NVLink, 450 GB/s"
        first    the number of the first device
        marked   numbers of devices that stand out
        cards    numbers of the devices whose card works; the others are grey.  None: all
        """
        h, step = 110, (w - 16)/devices
        size = min(26, step - 2)

        def put(dy, tall):
            return y + h - dy - tall if flip else y + dy
        self.rect(x, y, w, h, line_opacity=.4, radius=9)
        if name:
            self.text(x + 11, put(5, 18) + 13, name, "start", soft=True, size=LEAST)
        bar = self.rect(x + 8, put(26, 20), w - 16, 20, "compute", "compute", opacity=.2, radius=6)
        if inside:
            self.text(bar.cx, bar.cy + 4.6, inside, color="compute", bold=True, size=LEAST)
        for k in range(devices):
            cx, r = x + 8 + step*(k + .5), first + k
            works = cards is None or r in cards
            a, b = put(46, 0), put(55, 0)
            self.line(f"M{cx:.1f} {a:.1f}V{b:.1f}", "compute", 2.5)
            self.line(f"M{cx:.1f} {put(81, 0):.1f}V{put(91, 0):.1f}", "network" if works else "idle", 1.2)
            color, *style = ("limit", .35, 2.2, 1) if r in marked else ("other", .07, 1, .55)
            self.rect(cx - size/2, put(55, 26), size, 26, color, color, radius=4,
                      **dict(zip(("opacity", "weight", "line_opacity"), style)))
            self.text(cx, put(55, 26) + 17.6, str(r), bold=r in marked, size=LEAST, spoken=False)
            self.rect(cx - 5.5, put(90, 9), 11, 9, "network" if works else "idle", "" if works else "other", radius=2,
                      opacity=1 if works else .3, line_opacity=.5)
        return Box(x, y, w, h)

    def cluster(self, y, nodes=2, devices=8, *, inside="", outside="", rails=True, spine="", marked=(), cards=None):
        """Nodes on rails: card r of every node hangs on rail r; without rails all cards hang on one network.

        Devices count from 0 in each node; marked and cards hold pairs (node, device), see `node`.  outside and spine
        are words about the network and about what joins the rails.  ValueError for more than 4 nodes or 8 devices.
        """
        if not (1 <= nodes <= 4 and 1 <= devices <= 8):
            raise ValueError(f"cluster: {nodes} nodes of {devices}; allowed: 1 to 4 of 1 to 8 (name the rest)")
        per = min(nodes, 2 if self.narrow else 4)
        room, gap, step = 16 if spine else 0, 12, 6.5
        w, high = (self.W - 2 - room - gap*(per - 1))/per, 14 + step*(devices - 1) if rails else 22
        top, x1 = y + 110, self.W - 1 - room

        def rail(r):
            return top + 8 + step*r if rails else top + 11
        for r in range(devices if rails else 1):
            self.line(f"M1 {rail(r):.1f}H{x1 + (10 if spine else 0):.1f}", "network", 1.6 if rails else 4, opacity=.55)
        for k in range(nodes):
            x, flip = 1 + (k % per)*(w + gap), k >= per
            self.node(x, y if not flip else top + high + 4, w, devices, name=f"node {k}", inside=inside, flip=flip,
                      marked={d for n, d in marked if n == k}, cards=cards and {d for n, d in cards if n == k})
            for r in range(devices):
                cx, works = x + 8 + (w - 16)/devices*(r + .5), cards is None or (k, r) in cards
                self.line(f"M{cx:.1f} {top + high + 15 if flip else top - 11:.1f}V{rail(r):.1f}",
                          "network" if works else "idle", 1.2)
                self.rect(cx - 2, rail(r) - 2, 4, 4, "network" if works else "idle", "", radius=2)
        if spine:
            self.rect(x1 + 8, top + 3, 8, high - 2, "limit", "limit", opacity=.6, radius=2)
        at = self.low + 8
        said = "rail r joins card r of every node" if rails else "one network joins all cards"
        at = self.words(1, at, self.W - 2, said + (f": {outside}" if outside else ""), color="network", bold=True,
                        size=LEAST).bottom
        if spine:
            at = self.words(1, at, self.W - 2, f"at the right, what joins the rails: {spine}", size=LEAST,
                            soft=True).bottom
        return Box(0, y, self.W, at - y)

    def mesh(self, x, y, w, axes, *, group=None, rank=0, cell=34):
        """Ranks on named axes, the last one fastest: {"dp": 2, "pp": 2, "tp": 4}.  `group` marks, for one rank, those
        that differ from it only along that axis, and outlines the other groups.  ValueError for an axis that is none,
        a rank that is none, and more than three axes.
        """
        names, sizes = list(axes), list(axes.values())
        if not 1 <= len(names) <= 3:
            raise ValueError(f"mesh: axes {', '.join(names)}; allowed: one to three")
        if group is not None and group not in axes:
            raise ValueError(f"mesh: group = {group!r}; allowed: {', '.join(names)}")
        A, B, C = [1]*(3 - len(sizes)) + sizes
        if not 0 <= rank < A*B*C:
            raise ValueError(f"mesh: rank = {rank}; allowed: 0 to {A*B*C - 1}")
        left = 9 + room(f"{names[-2]} ↓") if len(names) > 1 else 0
        cell = min(cell, (w - left - 4)/C)
        over, panel = (40 if len(names) == 3 else 22), C*cell
        per = max(1, min(A, int((w + 18)//(left + panel + 18))))
        along = names.index(group) + 3 - len(names) if group else None
        me = (rank//(B*C), rank//C % B, rank % C)
        mates = []
        for a in range(A):
            px, py = x + (a % per)*(left + panel + 18) + left, y + (a//per)*(over + B*cell + 16) + over
            if len(names) == 3:
                self.text(px, py - 26, f"{names[0]} {a}", "start", bold=True, size=LEAST)
            self.text(px, py - 7, f"{names[-1]} →", "start", soft=True, size=LEAST, math=False)
            if len(names) > 1:
                self.text(px - 8, py + 17, f"{names[-2]} ↓", "end", soft=True, size=LEAST, math=False)
            for b, c in itertools.product(range(B), range(C)):
                r = (a*B + b)*C + c
                mate = group and all(v == m for k, (v, m) in enumerate(zip((a, b, c), me)) if k != along)
                mates += [r] if mate else []
                q = self.rect(px + c*cell + 2, py + b*cell + 2, cell - 4, cell - 4, "network" if mate else "other",
                              "network" if mate else "other", opacity=.28 if mate else .06, radius=4,
                              line_opacity=1 if mate else .4, weight=2.6 if r == rank and group else 1)
                self.text(q.cx, q.cy + 4.6, str(r), bold=bool(mate), size=LEAST, spoken=False)
            if along in (1, 2) and A*B*C > max(sizes):
                for k in range(B if along == 2 else C):
                    box = (px, py + k*cell, panel, cell) if along == 2 else (px + k*cell, py, cell, B*cell)
                    self.rect(*box, line="network", line_opacity=.45, radius=6, dash="3 3")
        if group:
            said = f"the {group} group of rank {rank}: {', '.join(map(str, mates))}"
            self.words(x, self.low + 8, w, said, size=LEAST, color="network", bold=True)
        return Box(x, y, w, self.low - y)

    # ---- models
    def layer(self, x, y, w, *, notes=None, stream="", colors=None,
              parts=("norm", "attention", "norm", "feed-forward")):
        """A transformer layer: two branches of parts, each added to the residual stream.

        notes   words for a part, such as {"attention": "4H² weights"};  colors  roles of parts
        stream  words for the residual stream, such as "H numbers a token"
        """
        notes, colors, half = notes or {}, colors or {}, len(parts)//2
        branches = parts[:half], parts[half:]
        if w >= 520:
            cy, at = y + 70, x
            wide = [room(p, SIZE, True) + 22 for p in parts]
            gap = max(8, (w - sum(wide) - 2*29 - 24)/(len(parts) + 2))
            for b, branch in enumerate(branches):
                self.line(f"M{at:.1f} {cy}h{gap + 12:.1f}")
                fork, at = at + 8, at + gap + 12
                for p in branch:
                    bw = wide[parts.index(p)]
                    self.head(at, cy, "right")
                    q = self.box(at, cy - 19, bw, 38, p, colors.get(p))
                    if notes.get(p) and not (b and p in branches[0]):
                        self.words(q.cx - bw/2 - gap/2, q.bottom + 4, bw + gap, notes[p], anchor="middle", size=LEAST,
                                   soft=True)
                    self.line(f"M{q.right:.1f} {cy}h{gap - 6:.1f}")
                    at = q.right + gap
                self.head(at - 1, cy, "right")
                self._plus(at + 8, cy)
                self.line(f"M{fork:.1f} {cy}V{cy - 36}H{at + 8:.1f}V{cy - 15}", opacity=.6)
                self.head(at + 8, cy - 9, "down", opacity=.6)
                at += 17
            self.line(f"M{at:.1f} {cy}H{x + w - 5:.1f}")
            self.head(x + w, cy, "right")
            if stream:
                self.text(x, y + 14, f"residual stream: {stream}", "start", soft=True, size=LEAST)
            return Box(x, y, w, self.low - y)
        bw = max(room(p, SIZE, True) for p in parts) + 22
        cx, at = x + 34 + bw/2, y
        if stream:
            at = self.words(x, at, w, f"residual stream: {stream}", size=LEAST, soft=True).bottom + 4
        for b, branch in enumerate(branches):
            fork = at + 6
            self.line(f"M{cx} {at:.1f}v16")
            at += 22
            for p in branch:
                self.head(cx, at, "down")
                q = self.box(cx - bw/2, at, bw, 32, p, colors.get(p))
                if notes.get(p) and not (b and p in branches[0]):
                    self.words(q.right + 10, q.y + 3, x + w - q.right - 10, notes[p], size=LEAST, soft=True)
                self.line(f"M{cx} {q.bottom:.1f}v12")
                at = q.bottom + 16
            self.head(cx, at + 1, "down")
            self._plus(cx, at + 10)
            self.line(f"M{cx} {fork:.1f}H{x + 14:.1f}V{at + 10:.1f}H{cx - 15:.1f}", opacity=.6)
            self.head(cx - 9, at + 10, "right", opacity=.6)
            at += 19
        self.line(f"M{cx} {at:.1f}v12")
        self.head(cx, at + 17, "down")
        return Box(x, y, w, self.low - y)

    def _plus(self, x, y, r=8):
        self.rect(x - r, y - r, 2*r, 2*r, "", "other", radius=r)
        self.line(f"M{x - 4:.1f} {y:.1f}h8M{x:.1f} {y - 4:.1f}v8")

    def stages(self, x, y, w, layers, cuts, *, notes=None, h=34):
        """Layers in order, each as wide as its cost, cut into stages of cuts[k] layers: one device for each stage.

        layers  costs, or pairs (name, cost): named ones are labelled;  notes  words for each stage
        ValueError if the cuts do not add up to the layers.
        """
        layers = [v if isinstance(v, tuple) else ("", v) for v in layers]
        if sum(cuts) != len(layers):
            raise ValueError(f"stages: cuts of {'+'.join(map(str, cuts))} layers; allowed: {len(layers)} together")
        k, at, top = w/sum(c for _, c in layers), x, y + 24
        stage = [s for s, n in enumerate(cuts) for _ in range(n)]
        ends, spans = [], {}
        for (name, cost), s in zip(layers, stage):
            self.sheet(at + .75, top, k*cost - 1.5, h, s)
            a, b = spans.get(s, (at, at))
            spans[s] = (a, at + k*cost)
            if name:
                half = room(name)/2
                cx = min(max(at + k*cost/2, x + half), x + w - half)
                ends.append(cx - half)
                self.text(cx, top - 8, name, soft=True, size=LEAST)
            at += k*cost
        said = [f"stage {s}" for s in spans]
        fits = all(room(t, SIZE, True) < b - a for t, (a, b) in zip(said, spans.values())) and all(
            room(n) < b - a - 4 for n, (a, b) in zip(notes or [], spans.values()))
        for s, (a, b) in spans.items():
            self.line(f"M{a + 2:.1f} {top + h + 5}v5H{b - 2:.1f}v-5", opacity=.6, weight=1)
            self.text((a + b)/2, top + h/2 + 5, str(s), bold=True, halo=True, spoken=False)
            if fits:
                self.text((a + b)/2, top + h + 27, said[s], bold=True)
                if notes:
                    self.text((a + b)/2, top + h + 45, notes[s], soft=True, size=LEAST)
        if not fits:
            for s in spans:
                self.text(x, top + h + 30 + 19*s, said[s], "start", bold=True)
                if notes:
                    self.text(x + 64, top + h + 30 + 19*s, notes[s], "start", soft=True, size=LEAST)
        return Box(x, y, w, self.low - y)

    def equation(self, x, y, w, items, *, tall=72, t=4):
        """Arrays and signs in a row, broken before a sign where the sheet is too narrow:

            [("X", "copy", 3, 2, "tokens × H"), "·", ("W", "columns", 2, 4, "H × 4H"), "=", ...]

        An array is (name, how, rows, columns, note): rows and columns are to one scale.
        """
        k = tall/max(i[2] for i in items if not isinstance(i, str))

        def span(i):
            return 22 if isinstance(i, str) else max(k*i[3], room(i[4]) if len(i) > 4 else 0)
        rows = [[]]
        for at, i in enumerate(items):
            after = items[at + 1:at + 2] if isinstance(i, str) else []
            if isinstance(i, str) and rows[-1] and sum(map(span, rows[-1] + [i] + after)) > w:
                rows.append([])
            rows[-1].append(i)
        at = y
        for row in rows:
            cx, high = x, max((k*i[2] for i in row if not isinstance(i, str)), default=0)
            for i in row:
                if isinstance(i, str):
                    self.text(cx + 11, at + high/2 + 5, i, bold=True, math=False)
                else:
                    name, how, m, n, *note = i
                    self.array(cx + (span(i) - k*n)/2, at + (high - k*m)/2, k*n, k*m, how, name, t=t)
                    if note:
                        self.text(cx + span(i)/2, at + high + 17, note[0], soft=True, size=LEAST, math=False)
                cx += span(i)
            at = self.low + 12
        return Box(x, y, w, self.low - y)

    # ---- what ranks hold
    def grid(self, x, y, states, *, cell=26, heads=True):
        """What ranks hold: a column for each rank, a row for each block; states[r] lists the blocks of rank r.

        A block is a set of the ranks that it came from, a rank, a text or None.  It is filled in their colours, and
        says which they are: Σ is the sum over all.
        """
        P = len(states)
        top = y + (20 if heads else 0)
        for r, state in enumerate(states):
            if heads:
                self.text(x + cell*(r + .5), y + 13, str(r), soft=True, size=LEAST, spoken=False)
            for j, entry in enumerate(state):
                several = isinstance(entry, (set, frozenset))
                ranks = sorted(entry) if several else [entry] if isinstance(entry, int) else []
                bx, by = x + cell*r + 1, top + cell*j + 1
                for k, s in enumerate(ranks):
                    self.rect(bx + (cell - 2)*k/len(ranks), by, (cell - 2)/len(ranks), cell - 2, rank(s), "",
                              opacity=.34, radius=0)
                self.rect(bx, by, cell - 2, cell - 2, "", "other", line_opacity=.5 if ranks or entry else .2)
                text = entry if isinstance(entry, str) else "Σ" if len(ranks) == P > 1 else "+".join(map(str, ranks))
                if text and room(text) < cell + 2:
                    self.text(bx + cell/2 - 1, by + cell/2 + 3.7, text, bold=True, size=LEAST, spoken=False, math=False)
        return Box(x, y, cell*P, top + cell*max(map(len, states)) - y)

    def collective(self, x, y, w, name, before, after=None, *, note="", cell=26):
        """The grids before and after a collective, its name on the arrow, a note under it.

        before is a Run of capacity.witness.spmd, whose holdings tell both, or the states, as after: see `grid`.
        """
        before, after = (before, after) if after is not None else held(before)
        P = len(before)
        cell = min(cell, (w - 44)/(2*P))
        high = 20 + cell*max(map(len, [*before, *after]))
        top = y + 22
        self.text(x + w/2, y + 13, name, color="network", bold=True)
        a = self.grid(x + (w - 2*P*cell - 36)/2, top, before, cell=cell)
        b = self.grid(a.right + 36, top, after, cell=cell)
        mid = top + 20 + (high - 20)/2
        self.line(f"M{a.right + 6:.1f} {mid:.1f}H{b.x - 11:.1f}", "network", 2.5)
        self.head(b.x - 6, mid, "right", "network", 5.5)
        if note:
            self.words(x, top + high + 4, w, note, anchor="middle", size=LEAST, soft=True)
        return Box(x, y, w, self.low - y)

    def collectives(self, y, items, *, cell=15):
        """Collectives in one strip, two beside each other where it is narrow: items (name, before, after, note)."""
        per = 2 if self.narrow else min(4, len(items))
        w, at = (self.W - 10*(per - 1))/per, y
        for k, (name, before, after, note) in enumerate(items):
            if k and k % per == 0:
                at = self.low + 16
            self.collective(k % per*(w + 10), at, w, name, before, after, note=note, cell=cell)
        self.words(0, self.low + 8, self.W, "a column is a rank, a row is a block; a number says which rank it came "
                   "from, Σ is the sum over all", size=LEAST, soft=True)
        return Box(0, y, self.W, self.low - y)

    def mask(self, x, y, size, n, allowed, *, owners=None, title="", note=""):
        """An attention mask, n by n: row q may see column k where allowed(q, k): see causal, window, documents.

        owners  the device of each row, as by contiguous, zigzag or striped: rows are in its colour, with its number
        """
        top = y + (22 if title else 2)
        left = 14 if owners else 0
        if title:
            self.text(x + left, y + 13, title, "start", bold=True)
        c = (size - left)/n
        owners = owners or [None]*n
        if len(owners) != n:
            raise ValueError(f"mask: {len(owners)} owners; allowed: {n}, one for each row")
        bands = [(r, [q for q, _ in g]) for r, g in itertools.groupby(enumerate(owners), key=lambda e: e[1])]
        least = min(len(rows) for _, rows in bands)*c
        if left and least < 11:
            raise ValueError(f"mask: {least:.1f} pixels for the rows of a device, too few for its number; allowed: at "
                             "least 11: fewer rows, a larger size")
        for r, rows in bands:
            color, d = ("compute" if r is None else rank(r)), ""
            for q in rows:
                for see, keys in itertools.groupby(range(n), key=lambda k: bool(allowed(q, k))):
                    keys = list(keys)
                    if see:
                        long = c*len(keys)
                        d += f"M{x + left + c*keys[0]:.1f} {top + c*q:.1f}h{long:.1f}v{c:.1f}h{-long:.1f}Z"
            if d:
                self._put(Path(d, color, "paper", .45 if r is None else .5, 1, .6), top + c*(rows[-1] + 1))
            if r is not None:
                self.text(x + 4, top + c*(rows[0] + len(rows)/2) + 4.7, str(r), size=LEAST, spoken=False)
        self.rect(x + left, top, size - left, size - left, line_opacity=.4, radius=0)
        if note:
            self.words(x + left, top + size - left + 5, size - left, note, size=LEAST, soft=True)
        return Box(x, y, size, self.low - y)

    # ---- amounts
    def memory(self, y, bars, capacity, *, unit="B", limit="capacity"):
        """Named bytes end to end, against a capacity: bars {"H100": [("weights", 16e9, "compute"), ...]}.

        Parts are numbered along the bar and named under it, with their size; what does not fit is told.
        """
        totals = {name: sum(v for _, v, _ in parts) for name, parts in bars.items()}
        hi = max(capacity, *totals.values())*1.04
        at, x0, w = y, 1, self.W - 2
        text = f"{limit} {show(capacity, unit)}"
        edge, half = x0 + w*capacity/hi, room(text, LEAST, True)/2
        self.text(min(max(edge, half), self.W - half), at + 12, text, color="limit", bold=True, size=LEAST)
        at += 22
        numbers = {p: k + 1 for k, p in enumerate(dict.fromkeys(p for parts in bars.values() for p, _, _ in parts))}
        titles, digits, beside = [], [], []
        for name, parts in bars.items():
            fits = "" if totals[name] <= capacity else f", {show(totals[name] - capacity, unit)} too much"
            said = f"{show(totals[name], unit)}{fits}"
            titles.append((at + 13, f"{name}: {said}" if name else said))
            x, at = x0, at + 20
            for part, v, color in parts:
                q = self.rect(x, at, w*v/hi, 30, color, "paper", opacity=.55)
                if q.w > room(str(numbers[part])) + 4:
                    near = abs(q.cx - edge) < 12                 # the capacity's line runs beside a number
                    digits.append((edge + 12 if near and q.right > edge + 20 else edge - 12 if near and q.x < edge - 20
                                   else q.cx, q.cy + 4.8, str(numbers[part])))
                x += w*v/hi
            beside.append(f"M{edge:.1f} {at - 3:.1f}v36")           # the titles between the bars stay whole
            at += 42
        self.line("".join(beside), "paper", 5)
        self.line("".join(beside), "limit", 2.5, dash="6 4")
        for v, words in titles:
            self.text(x0, v, words, "start", bold=True, halo=True)
        for u, v, k in digits:
            self.text(u, v, k, bold=True, size=LEAST, spoken=False)
        self.scale(x0, at - 6, w, hi, unit)
        at, x = at + 24, x0
        color = {p: role for parts in bars.values() for p, _, role in parts}
        for part, k in numbers.items():
            sizes = [show(dict((p, v) for p, v, _ in parts)[part], unit) for parts in bars.values()
                     if part in {p for p, _, _ in parts}]
            words = f"{part} {' / '.join(sizes)}"
            wide = room(words) + 38
            if x > x0 and x + wide > self.W + 14:
                x, at = x0, at + 22
            q = self.rect(x, at, 17, 17, color[part], "", opacity=.55)
            self.text(q.cx, q.cy + 4.8, str(k), bold=True, size=LEAST, spoken=False)
            self.text(x + 22, at + 13, words, "start", size=LEAST)
            x += wide
        return Box(0, y, self.W, self.low - y)

    def lanes(self, y, lanes, *, unit="s", covered=None, end=None, h=26):
        """Lanes of time: {"compute": [(start, stop, "1", role), ...], "network": [...]}, on one numbered scale.

        covered=("network", "compute") marks the time in which the first works and the second rests: what is exposed.
        """
        end = end or max(b for spans in lanes.values() for _, b, *_ in spans)
        left = max(room(name) for name in lanes) + 10
        w, at = self.W - left - 4, y + 3

        def place(v):
            return left + w*v/end
        for name, spans in lanes.items():
            self.text(0, at + h/2 + 4.6, name, "start", soft=True, size=LEAST)
            self.line(f"M{left:.1f} {at + h + 2:.1f}H{self.W - 2}", opacity=.18, weight=1)
            for start, stop, text, color in spans:
                q = self.rect(place(start), at, max(place(stop) - place(start) - 1, 1), h, color, "", opacity=.85,
                              radius=3)
                if text and q.w > room(text, LEAST, True) + 3:
                    self.text(q.cx, q.cy + 4.7, text, bold=True, size=LEAST, math=False, spoken=False)
            at += h + 7
        if covered:
            busy, cover = (sorted((a, b) for a, b, *_ in lanes[name]) for name in covered)
            bare = exposed(busy, cover)
            for a, b in bare:
                self.rect(place(a), y, max(place(b) - place(a), 1), at - y - 2, "", "limit", weight=1.8, dash="4 3")
            self.scale(left, at, w, end, unit)
            at += 26
            time = show(sum(b - a for a, b in bare), unit)
            self.words(0, at, self.W, f"exposed: {time} of {covered[0]} that no {covered[1]} covers", color="limit",
                       bold=True, size=LEAST)
        else:
            self.scale(left, at, w, end, unit)
        return Box(0, y, self.W, self.low - y)

    def spacetime(self, y, messages, size, *, alpha=0, unit="s", end=None, step=46, mark=True):
        """Messages between ranks: a line for each rank, time to the right.  A message is a band: it leaves while n/β
        lasts, and comes in alpha later.

        messages  of a Run of capacity.witness.spmd: source, to, left, arrived
        alpha     seconds, or a function of a message
        mark      name α and n/β at the first message
        """
        delay = alpha if callable(alpha) else lambda m: alpha
        end = end or float(max(m.arrived for m in messages))
        left = room("rank 00") + 8
        w, top = self.W - left - 2, y + (24 if mark else 4)

        def at(time, r):
            return f"{left + w*float(time)/end:.1f} {top + step*r:.1f}"
        for r in range(size):
            self.text(0, top + step*r + 4.6, f"rank {r}", "start", soft=True, size=LEAST)
            self.line(f"M{at(0, r)}H{self.W - 2}", opacity=.35, weight=1)
        for m in messages:
            late = delay(m)
            sent = m.arrived - late
            d = f"M{at(m.left, m.source)}L{at(sent, m.source)}L{at(m.arrived, m.to)}L{at(m.left + late, m.to)}Z"
            self._put(Path(d, "network", "network", .3, 1, 1.3), top + step*max(m.source, m.to))
        if mark and messages:
            m = messages[0]
            a, b, c = (left + w*float(v)/end for v in (m.left, m.left + delay(m), m.arrived))
            base = top + step*m.source
            for u, v, text in ((a, b, "α"), (b, c, "n/β")):
                if v - u > 3:
                    self.line(f"M{u + 1:.1f} {base - 5:.1f}v-5H{v - 1:.1f}v5", opacity=.7, weight=1)
                    self.text((u + v)/2, base - 14, text, size=LEAST, math=True)
        self.low = max(self.low, top + step*(size - 1) + 10)
        self.scale(left, self.low, w, end, unit)
        return Box(0, y, self.W, self.low - y)

    def svg(self, alt):
        """The sheet as SVG text that is read out as `alt`."""
        return draw.frame(self.shapes, self.W, self.low + 6, alt)

    def png(self, title, said=()):
        """The sheet for paper under its title, sentences below it, as the bytes of a PNG."""
        from .paper import sheet
        return sheet(title, "", (self.shapes, self.W, self.low + 6), said)


def held(run):
    """What the ranks of a Run held before its first message and after its last, by rank: two lists for `grid`."""
    first, last = {}, {}
    for _, r, state in run.holdings:
        first.setdefault(r, state)
        last[r] = state
    silent = [str(r) for r in range(run.size) if r not in first]
    if silent:
        raise ValueError(f"run: rank {', '.join(silent)} never said what it holds; allowed: a program that calls "
                         "comm.holds(state)")
    return [first[r] for r in range(run.size)], [last[r] for r in range(run.size)]


def exposed(busy, cover):
    """The parts of the intervals `busy` that no interval of `cover` covers."""
    out = []
    for a, b in sorted(busy):
        for u, v in sorted(cover):
            if a < u < b:
                out.append((a, u))
            if u < b and v > a:
                a = max(a, min(v, b))
        if a < b:
            out.append((a, b))
    joined = []
    for a, b in out:
        if joined and a <= joined[-1][1] + 1e-12*b:
            joined[-1] = joined[-1][0], b
        else:
            joined.append((a, b))
    return joined


def causal(q, k):
    """The mask in which a token sees itself and what came before."""
    return k <= q


def window(size):
    """The causal mask of the last `size` tokens."""
    return lambda q, k: 0 <= q - k < size


def documents(*lengths):
    """The causal mask inside documents of these lengths, packed one after the other."""
    of = [d for d, n in enumerate(lengths) for _ in range(n)]
    return lambda q, k: k <= q and of[q] == of[k]


def contiguous(n, P):
    """Which of P devices holds each of n rows: n/P neighbours each."""
    return [q*P//n for q in range(n)]


def zigzag(n, P):
    """Which of P devices holds each of n rows: of 2P chunks, device r has the r-th from both ends."""
    return [min(c, 2*P - 1 - c) for c in contiguous(n, 2*P)]


def striped(n, P):
    """Which of P devices holds each of n rows: dealt out like cards."""
    return [q % P for q in range(n)]


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

    def _repr_png_(self):
        return self.make(WIDE).png(self.title)

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
        view = {k: v for k, v in self._widget._repr_mimebundle_().items() if "widget-view" in k}
        picture = self.make(WIDE, *self.start).png(self.title, [self.says(*self.start)])
        return {"text/plain": repr(self), "text/html": self._repr_html_(),
                "image/png": base64.b64encode(picture).decode(), **view}

    def __repr__(self):
        said = {" ".join(c): self.says(*c) for c in self.at}
        return f"scenes({self.name!r})\n" + json.dumps(said, ensure_ascii=False)


def scenes(name, *, title, switches, make, says, start=None):
    """A drawing with switches: {"cut A by": ["columns", "rows"], ...}; make(W, *choice), says(*choice)."""
    return Scenes(name, title, switches, make, says, start)
