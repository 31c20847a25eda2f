"""Figures of matplotlib as SVG of the page: same bytes each time, the page's colours, words that stay words."""
import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from capacity.pictures import plot
from capacity.pictures.plot import COLOR, Figure, figure, figure_style, inline, label, squeezed, themed, ticks


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        figure_style()
        yield
        plt.close("all")


def lines(title="Time falls", n=50, **more):
    fig, ax = plt.subplots()
    xs = np.geomspace(1, 1000, n)
    line, = ax.loglog(xs, 1e9/xs, color=COLOR["network"], **more)
    label(ax, line, "ring", n//2)
    ax.text(2, 2e6, "bound", color="#333333")
    ax.axhspan(1e6, 1e7, color="white")
    ax.set(title=title, xlabel="devices", ylabel="time")
    ticks(ax.yaxis, "B")
    return fig


def test_importing_the_colors_changes_nothing_of_the_users():
    """Neither the style nor a picture of a schedule rewrites rcParams."""
    code = ("import matplotlib as mpl; before = dict(mpl.rcParams); from capacity import COLOR, figure, gantt; "
            "from capacity.pictures.plot import label, ticks; "
            "assert dict(mpl.rcParams) == before; from capacity import figure_style; figure_style(); "
            "assert mpl.rcParams['axes.grid']")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_figure_is_the_same_each_time():
    assert inline(lines()) == inline(lines())
    fig = lines()
    assert themed(fig) == themed(fig)


def test_names_of_parts_are_unlike_in_unlike_figures():
    def ids(svg):
        return set(re.findall(r' id="(.*?)"', svg))
    a, b = inline(lines()), inline(lines(n=20))
    assert ids(a) and ids(b) and not ids(a) & ids(b)
    for svg in (a, b):
        found = re.findall(r' id="(.*?)"', svg)
        assert len(found) == len(set(found)), "wide and narrow share a name"
        assert set(re.findall(r'href="#(.*?)"', svg)) | set(re.findall(r"url\(#(.*?)\)", svg)) == set(found)


def test_the_colors_are_the_pages():
    svg = themed(lines())
    assert "var(--cx-network,#D55E00)" in svg and "#d55e00" not in svg
    assert "fill:color-mix(in srgb,var(--cx-network,#D55E00) 58%,currentColor)" in svg, "words are mixed with the text"
    assert "color-mix(in srgb,currentColor 80%,var(--cx-paper" in svg, "a dark grey follows the page"
    assert set(re.findall(r"#[0-9a-fA-F]{6}\b", svg)) <= {*COLOR.values()}


def test_words_stay_words_in_the_pages_type():
    svg = themed(lines())
    root = ElementTree.fromstring(svg)
    said = ["".join(t.itertext()) for t in root.iter("text")]
    assert {"Time falls", "devices", "time", "ring", "1 MB"} <= set(said)
    assert "font-family" not in svg and "DejaVu" not in svg


def test_mathematics_is_not_set_letter_by_letter():
    fig, ax = plt.subplots()
    ax.set_xscale("log")
    ax.set(xlim=(1, 1e6), title="Loss falls as $C^{-0.05}$")
    root = ElementTree.fromstring(themed(fig))
    text = next(t for t in root.iter("text") if "Loss" in "".join(t.itertext()))
    assert "".join(text.itertext()) == "Loss falls as C−0.05" and len(list(text)) == 3
    assert any("".join(t.itertext()) == "103" and t[1].get("dy") for t in root.iter("text")), "ten to the third"


def test_numbers_have_one_decimal():
    root = ElementTree.fromstring(themed(lines()))
    for e in root.iter():
        for name in ("d", "x", "y"):
            assert not re.search(r"\.\d\d", e.get(name, "")), (e.tag, e.attrib)


@pytest.mark.parametrize("value, short", [("M 0 345.64 \nL 460.84 0 \nz\n", "M0 345.6L460.8 0z"), ("-0.04", "0"),
                                          ("translate(1.26 3.04)", "translate(1.3 3)"), ("460.8", "460.8"),
                                          ("rotate(-0)", ""), ("scale(0.125)", "scale(0.125)")])
def test_short_numbers(value, short):
    assert plot._short(value) == short


def test_the_title_is_a_caption_and_comes_back():
    fig = lines("Time falls & falls")
    html = inline(fig)
    assert "<figcaption>Time falls &amp; falls</figcaption>" in html and html.count("Time falls") == 1
    assert fig.axes[0].get_title("left") == "Time falls & falls"
    assert html.count('<svg role="img" viewBox') == 2 and "aria-label" not in html, "the build adds the alt text"


def test_two_titles_stay_where_they_are():
    fig, (a, b) = plt.subplots(1, 2)
    a.set_title("left")
    b.set_title("right")
    html = inline(fig)
    assert "figcaption" not in html and ">left<" in html


def test_a_narrow_figure_is_laid_out_anew():
    fig = lines()
    size = fig.get_size_inches().copy()
    svg = squeezed(fig)
    root = ElementTree.fromstring(svg)
    assert 300 < float(root.get("width")) <= 340
    sizes = {float(s) for s in re.findall(r"font-size:([\d.]+)px", svg)}
    assert sizes == {9.75, 6.825}, "13 pixels, for the picture counts in points, and exponents"
    assert float(root.get("width"))/float(root.get("viewBox").split()[2]) == pytest.approx(4/3, rel=.01)
    assert (fig.get_size_inches() == size).all() and {t.get_fontsize() for t in fig.axes[0].texts} == {11}


def test_a_figure_whose_words_would_touch_has_no_narrow_form():
    fig, ax = plt.subplots()
    for k in (0, .01):
        ax.annotate("one word on another", (k, k))
    assert squeezed(fig) == "" and "cx-narrow" not in inline(fig)


def test_panels_side_by_side_are_stacked_in_a_narrow_figure_and_go_back():
    fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
    for k, ax in enumerate(axes):
        ax.set(xlabel="a label under each", title=f"panel {k}")
    before = [ax.get_position().bounds for ax in axes]
    root = ElementTree.fromstring(squeezed(fig))
    at = [[float(v) for v in re.findall(r"-?[\d.]+", t.get("transform"))][-2:] if t.get("transform") else [float(t.get("x")), float(t.get("y"))]
          for t in root.iter("text") if (t.text or "").startswith("panel")]
    assert len(at) == 3 and at[0][1] < at[1][1] < at[2][1] and max(x for x, _ in at) - min(x for x, _ in at) < 1
    assert [ax.get_position().bounds for ax in axes] == before and not axes[1].yaxis.get_tick_params()["labelleft"]


def test_words_are_as_large_as_they_have_room_for():
    fig, ax = plt.subplots()
    ax.annotate("a word", (0, 0))
    ax.annotate("another one", (.14, 0))
    sizes = {float(s) for s in re.findall(r"font-size:([\d.]+)px", squeezed(fig))}
    assert max(sizes) == 8.25


def test_labels_of_an_older_layout_do_not_touch():
    """A wide axis has ticks that a narrow one has not; their labels stay behind and are not seen."""
    fig, ax = plt.subplots()
    ax.plot([1, 2, 300], [.1, .2, .4])
    assert "cx-narrow" in inline(fig)


def test_labels_make_room_in_a_narrow_figure():
    fig, ax = plt.subplots()
    ax.set_xticks(range(10), [f"word {k}" for k in range(10)])
    svg = squeezed(fig)
    assert "word 0" in svg and "word 1" not in svg
    assert all(t.get_visible() for t in ax.get_xticklabels())


def test_rasters_and_very_large_figures_stay_png():
    fig, ax = plt.subplots()
    ax.imshow(np.eye(3))
    assert inline(fig) is None
    fig, ax = plt.subplots()
    ax.scatter(np.arange(9000), np.arange(9000) % 97, s=1)
    assert inline(fig) is None


def test_figure_needs_title_and_alt():
    with pytest.raises(ValueError, match="ring: a figure needs a title and an alt text"):
        figure("ring", lines(), title="", alt="a line")
    with pytest.raises(ValueError, match="name 'The ring'"):
        figure("The ring", lines(), title="a", alt="b")
    f = figure("ring", lines(), title="Time falls", alt='A line & a "bound"')
    assert isinstance(f, Figure) and 'aria-label="A line &amp; a &quot;bound&quot;"' in f._repr_html_()
    assert repr(f).startswith("figure('ring'): ") and "bound" in repr(f)


def test_a_notebook_shows_the_svg_beside_the_png():
    """In IPython every figure has both; without figure_style() only what matplotlib gives."""
    from IPython.testing.globalipapp import start_ipython
    shell = start_ipython()
    html, png = (shell.display_formatter.formatters[k] for k in ("text/html", "image/png"))
    html.enabled = png.enabled = True
    assert html(lines()) is None
    figure_style()
    try:
        assert html(lines()).startswith('<figure class="cx-sketch cx-chart">') and png(lines())
    finally:
        html.pop(mpl.figure.Figure)
