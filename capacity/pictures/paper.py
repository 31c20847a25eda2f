"""The painter of shapes for paper: a PNG by matplotlib, without pyplot, always the same.

The letters are outlines of DejaVu Sans, made as narrow as a browser's sans-serif is: what fits in the page fits here.
"""
import functools
import io
import re

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox, BboxTransformFrom, BboxTransformTo, ScaledTranslation

from .shapes import COLORS, FONT, Group, Path, Text, role_of, wrapped

INCHES, NARROW = 6.4, .9        # of a picture; of a letter
CODES = {"M": Outline.MOVETO, "C": Outline.CURVE4, "Z": Outline.CLOSEPOLY}
ALIGN = {"start": 0, "middle": .5, "end": 1}


# ---- roles as colours --------------------------------------------------------------------------
def ink(role):
    """The colour of what is filled or drawn in a role.  ValueError for a role without a colour."""
    name = role_of(role)
    if role != name:
        return {"compute": "#ffffff", "rank0": "#ffffff", "other": "#ffffff", "pale": "#000000"}.get(name, "#111111")
    return {"other": "#000000", "paper": "#ffffff"}.get(role) or COLORS[role]


def pen(role):
    """The colour for text: the role's, drawn towards black as the page draws it towards its own."""
    color = ink(role)
    if role not in COLORS:
        return color
    return "#" + "".join(f"{round(.58*int(color[i:i + 2], 16)):02x}" for i in (1, 3, 5))


# ---- shapes as artists -------------------------------------------------------------------------
def paint(ax, shapes, *, inch=.01, to=None):
    """Shapes on matplotlib's Axes, in their order.  ValueError for a role without a colour.

    inch: inches of a pixel, for letters and weights.  to: transform from pixels to the display; None: ax.transData.
    """
    for patch in _patches(ax.figure, shapes, inch, ax.transData if to is None else to, None):
        clip = patch.get_clip_path()
        ax.add_artist(patch).set_clip_path(clip)


def _patches(fig, shapes, inch, to, clip):
    """Shapes as patches with their transforms, in their order."""
    found = []

    def add(outline, transform, **style):
        found.append(PathPatch(outline, transform=transform, joinstyle="round", **style))
        if clip:
            found[-1].set_clip_path(*clip)
    for s in shapes:
        if isinstance(s, Group):
            moved = Affine2D().translate(s.x, s.y) + to
            cut = (Outline.unit_rectangle(), Affine2D().scale(*s.clip) + moved) if s.clip else clip
            found += _patches(fig, s.shapes, inch, moved, cut)
        elif isinstance(s, Text):
            outline, left, factor = _letters(s)
            here = (Affine2D().translate(-left, 0).scale(factor*NARROW*inch, factor*inch) + fig.dpi_scale_trans
                    + ScaledTranslation(s.x, s.y, to))
            if s.halo:
                add(outline, here, facecolor="white", edgecolor="white", linewidth=4*72*inch)
            add(outline, here, facecolor=pen(s.color), alpha=s.opacity, linewidth=0)
        else:
            outline = _outline(s.d if isinstance(s, Path) else _corners(s))
            if s.fill:
                add(outline, to, facecolor=ink(s.fill), alpha=s.opacity, linewidth=0)
            if s.line:
                dash = (0, [float(part)/s.weight for part in s.dash.split()]) if s.dash else "-"
                add(outline, to, facecolor="none", edgecolor=ink(s.line), alpha=s.line_opacity, linestyle=dash,
                    linewidth=s.weight*72*inch, capstyle="butt")
    return found


def _letters(s):
    """(outline, where its anchor is, pixels of a unit) of a Text."""
    outline, wide, unit = _words(s.text, s.bold, s.italic)
    return outline, ALIGN[s.anchor]*wide*unit, s.size/text_to_path.FONT_SCALE


@functools.lru_cache(1000)
def _words(text, bold, italic):
    """(outline, width, units of the outline in one of the width) of words."""
    font = FontProperties(family="DejaVu Serif" if italic else "DejaVu Sans", weight="bold" if bold else "normal",
                          style="italic" if italic else "normal")
    wide, _, _ = text_to_path.get_text_width_height_descent(text, font.copy(), False)
    points, codes = text_to_path.get_text_path(font, text, ismath=False)
    return Outline(points, codes), wide, text_to_path.FONT_SCALE/font.get_size_in_points()


def _corners(s):
    """A Rect as a Path's d."""
    x, y, w, h, r = s.x, s.y, s.w, s.h, min(s.radius, s.w/2, s.h/2)
    if not r:
        return f"M{x} {y}h{w}v{h}h{-w}Z"
    a, b, c, e, k = x + r, x + w - r, y + r, y + h - r, .4477*r              # k: from a corner to a curve's handle
    z, v = x + w, y + h                                   # the other corner
    return (f"M{a} {y}H{b}C{z - k} {y} {z} {y + k} {z} {c}V{e}C{z} {v - k} {z - k} {v} {b} {v}"
            f"H{a}C{x + k} {v} {x} {v - k} {x} {e}V{c}C{x} {y + k} {x + k} {y} {a} {y}Z")


def _outline(d):
    """A Path's d as matplotlib's path."""
    points, codes, start = [], [], None
    for command, rest in re.findall("([MCLHVZhv])([^MCLHVZhv]*)", d):
        v = list(map(float, rest.replace(",", " ").split()))
        x, y = points[-1] if points else (0, 0)
        match command:
            case "h" | "H":
                new = [(v[0] + (x if command == "h" else 0), y)]
            case "v" | "V":
                new = [(x, v[0] + (y if command == "v" else 0))]
            case "Z":
                new = [start]
            case _:
                new = list(zip(v[::2], v[1::2]))
        start = new[0] if command == "M" else start
        points += new
        codes += [CODES.get(command, Outline.LINETO)]*len(new)
    return Outline(points or [(0, 0)], codes or None)


# ---- files -------------------------------------------------------------------------------------
def png(shapes, W, H, dpi=144):
    """A picture of W by H pixels as the bytes of a PNG, 6.4 inches wide."""
    fig = Figure(figsize=(INCHES, INCHES*H/W), dpi=dpi, facecolor="white")
    to = BboxTransformFrom(Bbox([(0, H), (W, 0)])) + BboxTransformTo(fig.bbox)
    for patch in _patches(fig, shapes, INCHES/W, to, None):
        fig.add_artist(patch)
    out = io.BytesIO()
    FigureCanvasAgg(fig).print_png(out, metadata={"Software": None})     # savefig would look at somebody's settings
    return out.getvalue()


def sheet(title, setting, picture, said, dpi=144):
    """A figure for paper as the bytes of a PNG: title, setting, picture = (shapes, W, H), sentences."""
    shapes, W, H = picture
    out, y = [], 8

    def say(text, size, **style):
        nonlocal y
        for line in wrapped(text, W, size):
            y += 1.4*size
            out.append(Text(0, y, line, size=size, **style))
    say(title, 15, bold=True)
    say(setting, FONT, opacity=.75)
    y += 12
    out.append(Group(shapes, 0, y))
    y += H
    for sentence in said:
        say(sentence, 13)
    return png([Group(out, 8, 0)], W + 16, y + 12, dpi)
