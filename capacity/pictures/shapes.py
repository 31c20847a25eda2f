"""The currency of all pictures: a list of shapes whose colours are roles.

A function that knows its subject makes shapes; one painter writes SVG (svg.py), one paper (paper.py), one lives in
JavaScript (static/cx.js).  None of the three knows what it paints.  Lengths are pixels, y grows downwards, text is
never scaled: a picture is made anew for each width.

Roles: compute network memory measured limit idle (the book's colours), rank0 rank1 rank2 rank3 (devices), other (the
page's text), paper (its background); "" is none.  Words in a role's colour are drawn towards the page's own, so that
they can be read; on:ROLE is the colour of words that stand on a filled ROLE, on:pale of words on any role that lets
the page through, see `words_on`.  Any other role is refused.
"""
import textwrap
from typing import NamedTuple

FONT, ROW = 12.5, 19            # height of text, of a row of a legend
COLORS = {"compute": "#0072B2", "network": "#D55E00", "memory": "#009E73", "measured": "#CC79A7", "limit": "#E69F00",
          "idle": "#999999", "rank0": "#0072B2", "rank1": "#009E73", "rank2": "#E69F00", "rank3": "#CC79A7"}


class Rect(NamedTuple):
    """A rectangle; opacity is that of the fill, line_opacity that of its outline."""
    x: float
    y: float
    w: float
    h: float
    fill: str = ""
    line: str = ""
    opacity: float = 1
    line_opacity: float = 1
    weight: float = 1
    dash: str = ""
    radius: float = 0
    title: str = ""                 # what a pointer that rests on it is told; nothing on paper


class Path(NamedTuple):
    """Lines and curves: d is SVG's, of the commands M L H V C Z h v only."""
    d: str
    fill: str = ""
    line: str = ""
    opacity: float = 1
    line_opacity: float = 1
    weight: float = 1
    dash: str = ""


class Text(NamedTuple):
    """One line of words; anchor is start, middle or end; spoken=False where the same is said elsewhere."""
    x: float
    y: float
    text: str
    anchor: str = "start"
    color: str = "other"
    opacity: float = 1
    size: float = FONT
    bold: bool = False
    italic: bool = False
    halo: bool = False
    spoken: bool = True


class Group(NamedTuple):
    """Shapes moved by (x, y); a style sheet or a script may call them by name; clip = (w, h) cuts them there."""
    shapes: list
    x: float = 0
    y: float = 0
    name: str = ""
    clip: tuple | None = None


def role_of(role):
    """ROLE for ROLE and for on:ROLE.  ValueError naming one that has no colour."""
    name = role.removeprefix("on:")
    if name not in (*COLORS, "other", "paper") and role != "on:pale":
        raise ValueError(f"role {role!r}; allowed: {', '.join(COLORS)}, other, paper, and on: before each or pale")
    return name


def words_on(role, cover):
    """The role of words on a filled role that covers this part of the page below it."""
    if cover <= .42:
        return "other"
    return "on:pale" if cover < .7 else f"on:{role}" if cover > .9 else "on:limit"


def width(text, size=FONT):
    """A fair guess of how wide `text` is: a browser may use any font, and Python has none."""
    return size*sum(.31 if c in " .,:;'|!ijlftr()[]/·-" else .87 if c in "mwMW%@"
                    else .69 if "A" <= c <= "Z" else .58 for c in text)


def wrapped(text, W, size=FONT):
    """The lines of a text that is W wide."""
    return textwrap.wrap(text, max(1, int(.93*W/width(text, size)*len(text)))) if text else []


def legend(items, W):
    """(shapes, height) of rows of 'sample, name' that fill the width W.

    items: (label, role, dash); dash None is a block.
    """
    out, x, y = [], 0, 13
    for label, role, dash in items:
        w, block = 30 + width(label), dash is None
        if x and x + w > W:
            x, y = 0, y + ROW
        out.append(Rect(x, y - 10, 12, 12, role, radius=2) if block
                   else Path(f"M{x:.1f} {y - 4}h24", line=role, weight=2.5, dash=dash))
        out.append(Text(x + (18 if block else 30), y, label))
        x += w + (6 if block else 18)
    return out, y + 9
