"""The book's figures: one style, colours with fixed meanings, labels written on the lines.

Line = formula, open circle = simulated, filled circle = measured.  The background is transparent, so that
the page may be light or dark.
"""
import html
import io
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

from ..units import show
from . import svg as draw

COLOR = {k: draw.COLORS[k] for k in ("compute", "memory", "network", "idle", "measured", "limit")} | {"other": "#000000"}
STYLE = {
    "figure.figsize": (6.4, 3.6), "figure.dpi": 100, "figure.facecolor": "none", "savefig.facecolor": "none",
    "savefig.bbox": "tight", "axes.facecolor": "none", "font.size": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left", "axes.titlesize": 11,
    "axes.titleweight": "bold", "axes.titlepad": 10, "axes.grid": True, "grid.color": "#999999",
    "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.axisbelow": True, "lines.linewidth": 2,
    "legend.frameon": False, "axes.prop_cycle": plt.cycler(color=list(COLOR.values())),
}
plt.rcParams.update(STYLE)
try:
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    set_matplotlib_formats("retina")                    # twice the pixels in notebooks
except (ImportError, AttributeError):                   # outside IPython there is no inline figure to sharpen
    pass


def ticks(axis, unit="", digits=3):
    """Write the ticks of a matplotlib axis with prefix and unit: ticks(ax.xaxis, 'B') gives '1 MB'."""
    axis.set_major_formatter(FuncFormatter(lambda x, _: show(x, unit, digits)))


def label(ax, line, text, at=-1, dx=5, dy=0, **style):
    """Write text beside the point number `at` of a line, in the line's colour."""
    x, y = line.get_xdata()[at], line.get_ydata()[at]
    ax.annotate(text, (x, y), (dx, dy), textcoords="offset points",
                **dict(color=line.get_color(), va="center") | style)


# ---- matplotlib figures as themable SVG --------------------------------------------------------------
THEME = {**{v.lower(): f"var(--cx-{k},{v})" for k, v in COLOR.items()}, "#000000": "currentColor",
         "#ffffff": draw.PAPER}


class Figure:
    """A matplotlib figure as SVG in the page's colours and type."""

    def __init__(self, name, fig, title, alt):
        self.name, self.title, self.alt, out = draw.slug("figure", name), title, alt, io.StringIO()
        self.words = [t.get_text() for t in fig.findobj(mpl.text.Text) if t.get_visible() and t.get_text()]
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
                        bbox_inches="tight", transparent=True)
        plt.close(fig)
        svg = out.getvalue()
        svg = svg[svg.index("<svg"):]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
        svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.S)
        svg = re.sub(r"#[0-9a-fA-F]{6}", lambda m: THEME.get(m[0].lower(), m[0]), svg)
        svg = re.sub(r"font: (?:(\d+) )?([\d.]+)px [^;\"]*", lambda m: (f"font-weight:{m[1]};" if m[1] else "") +
                     f"font-size:{m[2]}px", svg)
        svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
        svg = re.sub(r'(id="|url\(#|href="#)', rf"\1{name}-", svg)
        svg = re.sub(r"\s*\n\s*", " ", svg)
        w, h = map(float, re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups())
        svg = re.sub(r"<svg .*?>", f'<svg viewBox="0 0 {w:g} {h:g}" width="{w*4/3:.0f}" height="{h*4/3:.0f}" role="img" '
                     f'fill="currentColor" aria-label="{html.escape(alt)}" xmlns:xlink="http://www.w3.org/1999/xlink">',
                     svg, count=1, flags=re.S)
        # words in a line's colour are drawn towards the page's own, so that they can be read
        self.svg = re.sub(r'(<text style="[^"]*fill: )(var\([^)]*\))', r"\1color-mix(in srgb,\2 58%,currentColor)", svg).strip()

    def _repr_html_(self):
        return (f'<figure class="cx-sketch cx-chart" id="{self.name}"><figcaption>{html.escape(self.title)}</figcaption>'
                f"{self.svg}</figure>")

    def __repr__(self):
        return f"figure({self.name!r}): " + " | ".join(self.words)


def figure(name, fig, *, title, alt):
    """A finished matplotlib figure as an SVG of the page: its colours, its type, sharp, its words selectable."""
    return Figure(name, fig, title, alt)
