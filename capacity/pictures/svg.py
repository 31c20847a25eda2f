"""The painter of shapes as SVG text, and what a figure in HTML needs around it.

`static/cx.js` paints the same shapes to the same text in JavaScript; a test compares them.
"""
import json
import math
import re
from html import escape

from .shapes import COLORS, FONT, Group, Path, Rect, Text, role_of

PAPER = "var(--cx-paper,var(--jp-layout-color0,#fff))"
HALO = f'paint-order="stroke" stroke="{PAPER}" stroke-width="4" stroke-linejoin="round"'


# ---- roles as colours --------------------------------------------------------------------------
def ink(role):
    """The colour of what is filled or drawn in a role.  ValueError for a role without a colour."""
    if role.startswith("on:"):
        return on(role_of(role))
    if role_of(role) in ("other", "paper"):
        return "currentColor" if role == "other" else PAPER
    return f"var(--cx-{role.replace('rank', 'r')},{COLORS[role]})"


def pen(role):
    """The colour for text: the role's, drawn towards the page's own so that it can be read."""
    return f"color-mix(in srgb,{ink(role)} 58%,currentColor)" if role in COLORS else ink(role)


def on(role):
    """The colour for text that stands on a filled role."""
    return {"compute": "var(--cx-on-compute,#fff)", "rank0": "var(--cx-on-compute,#fff)", "other": PAPER,
            "paper": "currentColor", "pale": "var(--cx-on-pale,currentColor)"}.get(role, "#111")


# ---- shapes as text ----------------------------------------------------------------------------
def paint(shapes):
    """Shapes as SVG text, in their order.  ValueError for a role without a colour."""
    return "".join(PAINT[type(shape)](shape) for shape in shapes)


def frame(shapes, W, H, label):
    """Shapes as a picture of W by H pixels that is read out as `label`."""
    return (f'<svg viewBox="0 0 {W} {math.ceil(H)}" width="{W}" height="{math.ceil(H)}" role="img" fill="none" '
            f'font-size="{FONT}" aria-label="{escape(label)}">{paint(shapes)}</svg>')


def _fill(color, opacity):
    return f' fill="{color}"' + (f' fill-opacity="{opacity:g}"' if opacity != 1 else "")


def _style(s):
    """Fill and outline of a Rect or Path."""
    out = _fill(ink(s.fill), s.opacity) if s.fill else ""
    if s.line:
        out += f' stroke="{ink(s.line)}" stroke-width="{s.weight:g}"'
        out += f' stroke-opacity="{s.line_opacity:g}"' if s.line_opacity != 1 else ""
        out += f' stroke-dasharray="{s.dash}"' if s.dash else ""
    return out


def _rect(s):
    rx = f' rx="{s.radius:g}"' if s.radius else ""
    end = f"><title>{escape(s.title)}</title></rect>" if s.title else "/>"
    return f'<rect x="{s.x:.1f}" y="{s.y:.1f}" width="{s.w:.1f}" height="{s.h:.1f}"{rx}{_style(s)}{end}'


def _path(s):
    return f'<path d="{s.d}"{_style(s)}/>'


def _text(s):
    more = f' font-size="{s.size:g}"' if s.size != FONT else ""
    more += ' font-weight="600"' if s.bold else ""
    more += ' font-style="italic" font-family="Georgia,serif"' if s.italic else ""
    more += f" {HALO}" if s.halo else ""
    more += "" if s.spoken else ' aria-hidden="true"'
    return (f'<text x="{s.x:.1f}" y="{s.y:.1f}" text-anchor="{s.anchor}"{_fill(pen(s.color), s.opacity)}{more}>'
            f"{escape(s.text)}</text>")


def _group(s):
    name = f' class="{s.name}"' if s.name else ""
    if s.clip:
        w, h = s.clip
        return (f'<svg{name} x="{s.x:.1f}" y="{s.y:.1f}" width="{w:.1f}" height="{h:.1f}" stroke-linejoin="round">'
                f"{paint(s.shapes)}</svg>")
    move = f' transform="translate({s.x:.1f} {s.y:.1f})"' if s.x or s.y else ""
    return f"<g{name}{move}>{paint(s.shapes)}</g>"


PAINT = {Rect: _rect, Path: _path, Text: _text, Group: _group}


# ---- figures in HTML ---------------------------------------------------------------------------
def slug(kind, name):
    """`name`, if it can be the id of a figure; ValueError naming it otherwise."""
    if not (isinstance(name, str) and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)):
        raise ValueError(f"{kind} name {name!r}; allowed: lower-case words and hyphens")
    return name


def attribute(spec):
    """A specification as JSON inside data-spec='...'."""
    text = json.dumps(spec, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")

def short(v):
    """A float as JSON writes it shortest."""
    return int(v) if v == int(v) and abs(v) < 2**53 else v


LAB = """<style>
.cx-lab { font-family: var(--jp-ui-font-family); color: var(--jp-content-font-color1, inherit);
  line-height: 1.3; }
.cx-lab svg { overflow: visible; max-width: 100%; }
.cx-lab svg svg { overflow: hidden; }
.cx-lab p { margin: .3em 0 !important; }
.cx-lab :is(th, td) { padding: .1em 1em .1em 0; text-align: left; }
[data-jp-theme-light="false"] .cx-lab { --cx-compute: #5CB3F2; --cx-network: #FF8A47;
  --cx-memory: #35C79B; --cx-measured: #EBA3CB; --cx-limit: #F2BD3E; --cx-idle: #A8A8A8;
  --cx-on-compute: #111; --cx-on-pale: #fff; --cx-r0: #5CB3F2; --cx-r1: #35C79B; --cx-r2: #F2BD3E; --cx-r3: #EBA3CB; }
</style>"""                     # of a figure in JupyterLab
