"""The book's figures: one style, colours with fixed meanings, labels written on the lines.

    figure_style()                  # once in a notebook: the style, and figures as SVG in the page's colours

Line = formula, open circle = simulated, filled circle = measured.  The background is transparent, so that
the page may be light or dark.  Importing this module changes nothing of yours.
"""
import hashlib
import html
import io
import itertools
import re
import warnings
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import findfont, get_font
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.ticker import FuncFormatter

from ..units import show
from . import svg as draw
from .shapes import COLORS

COLOR = {k: COLORS[k] for k in ("compute", "memory", "network", "idle", "measured", "limit")} | {"other": "#000000"}
STYLE = {                           # the colours are those of Okabe and Ito: distinct to colour-blind readers
    "figure.figsize": (6.4, 3.6), "figure.dpi": 100, "figure.facecolor": "none", "savefig.facecolor": "none",
    "savefig.bbox": "tight", "axes.facecolor": "none", "font.size": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left", "axes.titlesize": 11,
    "axes.titleweight": "bold", "axes.titlepad": 10, "axes.grid": True, "grid.color": "#999999",
    "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.axisbelow": True, "lines.linewidth": 2,
    "legend.frameon": False, "axes.prop_cycle": plt.cycler(color=list(COLOR.values())),
}
NARROW = 336                        # pixels of a narrow column
POINTS = 9.75, 8.25, 7              # of the words there: 13, 11 and 9.3 pixels
MOST = 150_000                      # bytes of SVG; a figure that needs more stays a PNG
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
THEME = {v.lower(): f"var(--cx-{k},{v})" for k, v in COLOR.items() if k != "other"}


def figure_style():
    """The book's style for all figures that matplotlib makes from now on.

    In a notebook they are also shown as SVG in the page's colours, light and dark, with a PNG beside it for paper.
    """
    plt.rcParams.update(STYLE)
    shell = _shell()
    if shell:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
        set_matplotlib_formats("retina")                # twice the pixels
        shell.display_formatter.formatters["text/html"].for_type(Canvas, inline)


def _shell():
    """The IPython that runs this, or None."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def ticks(axis, unit="", digits=3):
    """Write the ticks of a matplotlib axis with prefix and unit: ticks(ax.xaxis, 'B') gives '1 MB'."""
    axis.set_major_formatter(FuncFormatter(lambda x, _: show(x, unit, digits)))


def label(ax, line, text, at=-1, dx=5, dy=0, **style):
    """Write text beside the point number `at` of a line, in the line's colour."""
    x, y = line.get_xdata()[at], line.get_ydata()[at]
    ax.annotate(text, (x, y), (dx, dy), textcoords="offset points",
                **dict(color=line.get_color(), va="center") | style)


# ---- matplotlib figures as SVG of the page -------------------------------------------------------------
def inline(fig):
    """A matplotlib figure as HTML for its notebook: its title, then themed SVG; None where a PNG serves better.

    The SVG has no aria-label yet: the build adds the alt text that the cell's metadata hold (tools/page.py).
    """
    if any(ax.images for ax in fig.axes):               # raster anyway
        return None
    title = _title(fig)
    text = title.get_text() if title else ""
    if title:
        title.set_text("")
    try:
        svg = both(fig)
    finally:
        if title:
            title.set_text(text)
    if len(svg.encode()) > MOST:
        return None
    caption = f"<figcaption>{html.escape(text)}</figcaption>" if text else ""
    return f'<figure class="cx-sketch cx-chart">{caption}{svg}</figure>'


def both(fig, alt=""):
    """The SVG of a figure for a wide column and, laid out anew, for a narrow one, where its words find room there."""
    wide, narrow = themed(fig, alt), squeezed(fig, alt)
    if not narrow:
        return wide
    return f'<div class="cx-wide">{wide}</div><div class="cx-narrow" style="display:none">{narrow}</div>'


def squeezed(fig, alt="", inches=NARROW/96):
    """The SVG of a figure in a column of `inches`, in the largest of three sizes of words in which none touch, or "".

    Panels that stand side by side are stacked.  Every second label of an axis makes room, or two of three; the figure
    is afterwards as it was.
    """
    places = [ax.get_subplotspec() for ax in fig.axes]
    beside = len({round(ax.get_position().x0, 2) for ax in fig.axes}) > 1
    if beside and not (all(places) and {p.get_gridspec().nrows for p in places} == {1}):
        return ""
    left = [ax.yaxis.get_tick_params()["labelleft"] for ax in fig.axes]
    if beside:
        grid = mpl.gridspec.GridSpec(len(places), 1, figure=fig, hspace=None if _lays_out(fig) else .55)
        for k, ax in enumerate(fig.axes):
            ax.set_subplotspec(grid[k])
            ax.tick_params(labelleft=True)
    try:
        tall = fig.get_size_inches()[1]*(len(places) if beside else 1)
        return next(filter(None, (_sized(fig, alt, inches, tall, points) for points in POINTS)), "")
    finally:
        if beside:
            for ax, place, seen in zip(fig.axes, places, left):
                ax.set_subplotspec(place)
                ax.tick_params(labelleft=seen)


def _lays_out(fig):
    """Whether a figure finds its gaps anew; `tight_layout()` leaves an engine behind that does not."""
    return not isinstance(fig.get_layout_engine(), (type(None), PlaceHolderLayoutEngine))


def _sized(fig, alt, inches, tall, points):
    """The SVG of a figure in a column of `inches` with all words of that many points, or "" where they would touch."""
    size, texts, hidden = fig.get_size_inches().copy(), fig.findobj(mpl.text.Text), []
    before = [(t, t.get_fontsize()) for t in texts]
    try:
        for t in texts:
            t.set_fontsize(points)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # of a layout that has no room
            return themed(fig, alt) if _fits(fig, tall, inches) and _thinned(fig, texts, hidden) else ""
    except UserWarning:
        return ""
    finally:
        for t in hidden:
            t.set_visible(True)
        for t, points in before:
            t.set_fontsize(points)
        fig.set_size_inches(size, forward=False)


def _fits(fig, tall, inches):
    """Make the figure so wide that it fills `inches` with the words that hang out of its axes; False: too many do."""
    left = inches
    for _ in range(2):
        fig.set_size_inches(left, min(max(.8*tall, 2.2), 7), forward=False)
        if fig.get_layout_engine():
            fig.draw_without_rendering()
        left -= fig.get_tightbbox().width - inches + .05
        if left < .6*inches:
            return False
    fig.set_size_inches(left, fig.get_size_inches()[1], forward=False)
    return True


def _thinned(fig, texts, hidden):
    """Hide labels of axes, and list them, until no two words touch; False if some still do."""
    axes = [a for ax in fig.axes for a in (ax.xaxis, ax.yaxis)]
    for step in (2, 3):
        for axis in axes:
            labels = _labels(axis)
            if _touch(labels):
                hidden += [t for k, t in enumerate(labels) if k % step]
                for t in hidden:
                    t.set_visible(False)
    ticks = {t for a in axes for k in (*a.majorTicks, *a.minorTicks)         # of older layouts too
             for t in (k.label1, k.label2)}
    return not _touch([*(t for a in axes for t in _labels(a)), *(t for t in texts if t not in ticks)])


def _labels(axis):
    """The labels of an axis that are seen, from the first to the last of each kind."""
    lo, hi = sorted(axis.get_view_interval())
    return [t.label1 for t in (*axis.get_major_ticks(), *axis.get_minor_ticks())
            if lo <= t.get_loc() <= hi and t.label1.get_visible() and t.label1.get_text()]


def _touch(texts):
    """Whether two of the visible words overlap."""
    boxes = [mpl.text.Text.get_window_extent(t) for t in texts if t.get_visible() and t.get_text().strip()]   # without its arrow
    return any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def _title(fig):
    """The one title of a figure, as a Text of matplotlib without mathematics, or None."""
    found = [t for ax in fig.axes for t in (ax._left_title, ax.title, ax._right_title) if t.get_text()]
    found += [fig._suptitle] if fig._suptitle and fig._suptitle.get_text() else []
    return found[0] if len(found) == 1 and found[0].get_text().count("$") < 2 else None


def themed(fig, alt=""):
    """The SVG of a matplotlib figure in the page's colours and type: always the same bytes for the same figure.

    Numbers have one decimal; names of parts begin with a digest of the picture, so that figures share a page.
    """
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "capacity", "svg.fonttype": "none"}):
        fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
                    bbox_inches="tight", pad_inches=.02, transparent=True)
    root = ElementTree.fromstring(out.getvalue())
    for parent in list(root.iter()):
        for e in list(parent):
            if e.tag in (f"{SVG}metadata", f"{SVG}style") or e.tag == f"{SVG}defs" and not any(
                    c.tag != f"{SVG}style" for c in e):
                parent.remove(e)
    for e in root.iter():
        e.tag = e.tag.removeprefix(SVG)
        if e.tag == "text":
            _words(e)
        if LINK in e.attrib:
            e.set("href", e.attrib.pop(LINK))
        e.text, e.tail = (e.text or "").strip() if e.tag not in ("text", "tspan") else e.text, None
        for name, value in list(e.attrib.items()):
            if name in ("d", "x", "y", "width", "height", "transform", "viewBox", "points"):
                e.set(name, _short(value))
            elif name == "style":
                e.set(name, _styled(value, e.tag))
                if not e.get(name):
                    del e.attrib[name]
    used = {v.strip("#") for e in root.iter() for k, v in e.attrib.items() if k == "href"} | {
        m for e in root.iter() for v in e.attrib.values() for m in re.findall(r"url\(#(.*?)\)", v)}
    for e in root.iter():
        if e.get("id") not in used:
            e.attrib.pop("id", None)
    _flat(root)
    w, h = (float(root.get(k).removesuffix("pt"))*4/3 for k in ("width", "height"))
    root.attrib = {"role": "img", **({"aria-label": alt} if alt else {}), "viewBox": root.get("viewBox"),
                   "width": f"{w:.0f}", "height": f"{h:.0f}", "fill": "currentColor", "stroke-linejoin": "round"}
    svg = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True).replace(" />", "/>")
    digest = hashlib.sha256(svg.encode()).hexdigest()[:6]
    return re.sub(r'(id="|url\(#|href="#)', rf"\1c{digest}-", svg)


def _short(value):
    """Numbers with one decimal, words of a path closed up; the factors of a scale stay as they are."""
    if "scale" in value or "matrix" in value:
        return re.sub(r"\s+", " ", value)
    value = re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.1f}".removesuffix(".0").replace("-0", "-0")
                   if float(f"{float(m[0]):.1f}") else "0", value)
    return re.sub(r"\s*([MLHVCQSTAZmlhvcqstaz])\s*", r"\1", re.sub(r"\s+", " ", value)) if "(" not in value \
        else value.replace("rotate(0)", "").replace("rotate(-0)", "").strip()


def _tint(color):
    """A colour of the book as the page's, a grey as a mixture of text and background, others as they are."""
    color = color.lower()
    if color in THEME:
        return THEME[color]
    if re.fullmatch(r"#(..)\1\1", color):
        part = round(100*(1 - int(color[1:3], 16)/255))
        return {100: "currentColor", 0: draw.PAPER}.get(part, f"color-mix(in srgb,currentColor {part}%,{draw.PAPER})")
    return color


def _styled(style, tag):
    """A style of matplotlib without its faces of type, in the page's colours; words are drawn towards its text."""
    out = {}
    for rule in filter(None, map(str.strip, style.split(";"))):
        name, value = (v.strip() for v in rule.split(":", 1))
        if name == "font":                              # [style] [weight] size family
            found = re.search(r"(oblique|italic)?\s*(bold|\d00)?\s*([\d.]+px)", value)
            out |= {k: v for k, v in zip(("font-style", "font-weight", "font-size"), found.groups()) if v}
        elif name in ("fill", "stroke"):
            out[name] = _tint(value)
            if tag in ("text", "tspan") and out[name].startswith("var("):
                out[name] = f"color-mix(in srgb,{out[name]} 58%,currentColor)"
        elif name not in ("font-family", "stroke-linejoin"):
            out[name] = value
    if out.get("font-style") == "oblique":
        out["font-style"] = "italic"
    if tag in ("text", "tspan") and out.get("fill") == "currentColor":
        del out["fill"]
    return ";".join(f"{k}:{v}" for k, v in out.items())


def _words(text):
    """Mathematics that matplotlib set letter by letter becomes words that flow in the page's type."""
    spans = list(text)
    if not spans:
        return
    text.text = ""
    letters = [(*(float(s.get(k).split()[0]) for k in "xy"), s.get("style", ""), (s.text or "").replace("\xa0", " "))
               for s in spans]
    size = [float(re.search(r"font-size: ([\d.]+)px", style)[1]) for _, _, style, _ in letters]
    for s in spans:
        text.remove(s)
    wide = letters[-1][0] + _advance(letters[-1][3], size[-1])
    base, before, end, run = letters[0][1], None, 0, None
    for (x, y, style, said), px in zip(letters, size):
        gap = "\u2009" if run is not None and x - end > .12*px and said != " " else ""
        if before == (y, style):
            run.text += gap + said
        else:
            run = ElementTree.SubElement(text, "tspan", {"style": style})
            if before and y != before[0]:
                run.set("dy", f"{y - before[0]:.1f}")
            run.text = gap + said
        before, end = (y, style), x + _advance(said, px)
    text.set("x", f"{wide/2:.1f}")
    text.set("y", f"{base:.1f}")
    text.set("style", "text-anchor: middle")


def _advance(said, size):
    """How wide matplotlib takes a text to be."""
    face = get_font(findfont("DejaVu Sans"))
    face.set_size(size, 72)
    return sum(face.load_char(ord(c)).linearHoriAdvance for c in said)/65536


def _flat(e):
    """Without the groups that say nothing."""
    for child in list(e):
        _flat(child)
        if child.tag == "g" and not child.attrib:
            at = list(e).index(child)
            e.remove(child)
            for k, inner in enumerate(list(child)):
                e.insert(at + k, inner)


class Figure:
    """A matplotlib figure as SVG in the page's colours and type."""

    def __init__(self, name, fig, title, alt):
        self.name, self.title, self.alt = draw.slug("figure", name), title, alt
        if not title.strip() or not alt.strip():
            raise ValueError(f"{name}: a figure needs a title and an alt text")
        self.words = [t.get_text() for t in fig.findobj(mpl.text.Text) if t.get_visible() and t.get_text()]
        self.svg = both(fig, alt)
        plt.close(fig)

    def _repr_html_(self):
        return (f'<figure class="cx-sketch cx-chart" id="{self.name}">'
                f"<figcaption>{html.escape(self.title)}</figcaption>{self.svg}</figure>")

    def __repr__(self):
        return f"figure({self.name!r}): " + " | ".join(self.words)


def figure(name, fig, *, title, alt):
    """A finished matplotlib figure as an SVG of the page: its colours, its type, sharp, its words selectable.

    title  the finding, as a sentence;  alt  what a reader who cannot see it misses
    """
    return Figure(name, fig, title, alt)
