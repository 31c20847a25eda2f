"""Drawings: words inside the sheet and apart, colours that are roles, devices told by more than a colour."""
import re

import pytest

from capacity.pictures.diagram import NARROW, WIDE, Sketch, drawing, role, scenes
from capacity.pictures.shapes import COLORS, Path, Rect, Text


def arrays(W):
    s = Sketch(W)
    a = s.array(0, 10, 60, 64, "copy", "X", "tokens")
    b = s.array(110, 10, 80, 64, "columns", "XA")
    c = s.array(215, 10, 80, 64, "rows")
    d = s.array(215, 120, 50, 64, "term", "Y")
    s.arrow(a, b, "cut")
    s.arrow(c, d, "sum", color="network")
    s.key(190)
    return s


PRIMITIVES = {"arrays": arrays}


@pytest.fixture(params=[WIDE, NARROW, WIDE - 36, NARROW - 36], ids=lambda W: f"{W}px")
def W(request):
    return request.param


@pytest.fixture(params=PRIMITIVES.values(), ids=PRIMITIVES)
def make(request):
    return request.param


def texts(s):
    return [t for t in s.shapes if isinstance(t, Text)]


def test_no_word_leaves_its_sheet_or_touches_another(make, W):
    assert make(W).faults() == []


def test_faults_are_found():
    s = Sketch(200)
    s.text(190, 20, "too far right")
    s.text(50, 60, "here")
    s.text(55, 62, "there")
    assert [f.split(" leaves")[0].split(" touches")[0] for f in s.faults()] == ["'too far right'", "'here'"]


def test_words_are_large_enough(make, W):
    assert all(t.size >= 13 for t in texts(make(W)))


def test_colors_are_roles(make, W):
    for x in make(W).shapes:
        for color in {t for t in (getattr(x, "fill", ""), getattr(x, "line", ""), getattr(x, "color", "")) if t}:
            assert color.removeprefix("on:") in {*COLORS, "other", "paper"}
    assert set(re.findall(r"#\w+", make(W).svg("alt"))) <= {*COLORS.values(), "#fff", "#111"}


def test_both_widths_say_the_same(make):
    def said(W):
        return sorted(set("".join(f"{t} " for t in make(W).said).replace("- ", "-").split()))
    assert said(WIDE) == said(NARROW)


def test_a_drawing_is_the_same_each_time(make, W):
    assert make(W).svg("alt") == make(W).svg("alt")


def test_a_device_is_told_by_more_than_its_color(make, W):
    """A fill in the colour of a device other than 0 has a texture, or a number stands in or beside it."""
    s = make(W)
    bare = []
    for k, x in enumerate(s.shapes):
        if isinstance(x, Rect) and x.fill.startswith("rank") and x.fill != "rank0":
            after = s.shapes[k + 1] if k + 1 < len(s.shapes) else None
            textured = isinstance(after, Path) and after.line == x.fill
            numbered = any(x.x - 14 <= t.x <= x.x + x.w + 14 and x.y - 14 <= t.y <= x.y + x.h + 16 for t in texts(s))
            bare += [] if textured or numbered else [x]
    assert not bare


@pytest.mark.parametrize("r, pattern", [(0, False), (1, True), (2, True), (3, True), (4, False), (5, True)])
def test_textures(r, pattern):
    s = Sketch(100)
    s.sheet(10, 10, 30, 40, r)
    paths = [x for x in s.shapes if isinstance(x, Path)]
    assert bool(paths) == pattern
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", "".join(p.d for p in paths)):
        assert 10 <= float(x) <= 40 and 10 <= float(y) <= 50


@pytest.mark.parametrize("css, name", [("none", ""), ("currentColor", "other"), ("network", "network"),
                                       ("on:compute", "on:compute"), ("var(--cx-r2,#E69F00)", "rank2"),
                                       ("var(--cx-compute,#0072B2)", "compute")])
def test_a_role_may_come_as_css(css, name):
    assert role(css) == name


def test_unknown_colors_and_ways_are_refused():
    with pytest.raises(ValueError, match="color 'red'; allowed: .*network"):
        Sketch(100).rect(0, 0, 1, 1, "red")
    with pytest.raises(ValueError, match="array X: how = 'diagonal'; allowed: copy, columns, rows, term"):
        Sketch(100).array(0, 0, 1, 1, "diagonal", "X")


def test_drawing_needs_title_and_alt():
    with pytest.raises(ValueError, match="arrays: a drawing needs a title and an alt text"):
        drawing("arrays", arrays, title="Three ways to hold an array", alt=" ")
    d = drawing("arrays", arrays, title="Three ways to hold an array", alt="A grey sheet & <slices>.")
    assert repr(d) == "drawing('arrays'): X | tokens | XA | Y | cut | sum | device | 0 | 1 | 2 | 3"
    assert d._repr_html_().count("<svg") == 2 and 'aria-label="A grey sheet &amp; &lt;slices&gt;."' in d._repr_html_()


def test_switches_are_radio_inputs_with_labels():
    from xml.etree import ElementTree

    def make(W, cut, sum_):
        s = Sketch(W)
        s.array(0, 10, 60, 60, cut, "X")
        s.text(150, 30, sum_)
        return s
    s = scenes("cuts", title="A cut is a choice", switches={"cut by": ["columns", "rows"], "sum": ["now", "later"]},
               make=make, says=lambda cut, sum_: f"by {cut}, {sum_}", start=("rows", "now"))
    page = ElementTree.fromstring(re.sub(r"(<input [^>]*?)( checked)?>", r'\1 \2/>', s._repr_html_())
                                  .replace(" checked", ' checked="1"').replace(" hidden>", ' hidden="1">'))
    sets = page.findall(".//fieldset")
    assert [f.find("legend").text for f in sets] == ["cut by", "sum"]
    for f in sets:
        inputs = [label.find("input") for label in f.findall("label")]
        assert all(i.get("type") == "radio" for i in inputs) and len({i.get("name") for i in inputs}) == 1
        assert [label.find("span").text for label in f.findall("label")] in (["columns", "rows"], ["now", "later"])
    at = [i.get("value") for i in page.iter("input") if i.get("checked")]
    shown = [d.get("data-at") for d in page.iter("div") if d.get("class") == "cx-scene" and not d.get("hidden")]
    assert [" ".join(at)] == shown == ["1 0"] and len(page.findall(".//div[@class='cx-scene']")) == 4
