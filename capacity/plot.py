"""The book's figures: one style, colours with fixed meanings, labels written on the lines.

Line = formula, open circle = simulated, filled circle = measured.  The background is transparent, so that
the page may be light or dark.
"""
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

from .units import show

COLOR = dict(compute="#0072B2", memory="#009E73", network="#D55E00", idle="#999999", measured="#CC79A7",
             limit="#E69F00", other="#000000")          # Okabe-Ito: distinct to colour-blind readers
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
