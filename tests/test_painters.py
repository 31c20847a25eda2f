"""The three painters: shapes in Python, on paper and in JavaScript are the same; a role without a colour is refused."""
import io
import pathlib
import random
import re
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import javascript
from capacity.pictures import paper, plot, svg
from capacity.pictures.shapes import COLORS, Group, Path, Rect, Text, legend, width, wrapped
from figures import alike, opened

TYPE = pathlib.Path(matplotlib.get_data_path())/"fonts/ttf"
ROLES = [*COLORS, "other", "paper"]
ROLES += ["on:" + role for role in (*ROLES, "pale")]


def gallery(role):
    """Every kind of shape in a role, with every field used, and with none."""
    d = "M1.5 2.0L30.0 4.5H40.0V9.0C40.0 20.0 20.0 20.0 3.0 12.5h2v3Z"
    return [Rect(1, 2, 30, 9.26, role), Rect(1, 2, 30, 9, role, role, .5, .25, 1.5, "4 2", 3, 'a "title" & <more>'), Rect(1, 2, 3, 4),
            Path(d, role), Path(d, line=role), Path(d, role, role, .45, .3, 2.2, "6 4"), Path(""), Text(3, 4, "α & <β> 'x'"),
            Text(3.04, 40, "words", "middle", role, .8, 11, True, True, True, False), Text(60, 80, "words", "end", role),
            Group([Rect(0, 0, 5, 5, role), Group([Text(1, 1, "inner", color=role)], 2, 3, "deep")], 7, 0, "named"),
            Group([Path(d, line=role)], 1, 2, "cut", (20, 8)), Group([])]


def as_data(shape):
    """A shape for JavaScript: an object with the fields of Python's."""
    fields = shape._asdict()
    return fields | {"shapes": list(map(as_data, shape.shapes))} if isinstance(shape, Group) else fields


# --- every painter takes every shape in every role

def test_javascript_paints_what_python_paints():
    pictures = [gallery(role) for role in ROLES]
    got = javascript.run("return data.map((shapes) => cx.frame([shapes, 100, 60.5, 'all & <more>']))", [list(map(as_data, p)) for p in pictures])
    assert got == [svg.frame(p, 100, 60.5, "all & <more>") for p in pictures]


def test_random_shapes_are_painted_the_same():
    rng = random.Random(2)

    def anything(depth):
        x, y, w, h = (round(rng.uniform(0, 300), 3) for _ in range(4))
        style = (rng.choice(["", *ROLES]), rng.choice(["", *ROLES]), round(rng.random(), 2), round(rng.random(), 3), round(rng.uniform(.5, 5), 2), rng.choice(["", "3 1"]))
        kinds = [lambda: Rect(x, y, w, h, *style, rng.choice([0, 2, 5.5]), rng.choice(["", "t"])), lambda: Path(f"M{x:.1f} {y:.1f}v{h:.1f}", *style),
                 lambda: Text(x, y, f"{w:.4g} ≤ m", rng.choice(["start", "middle", "end"]), rng.choice(ROLES), style[2], rng.choice([11, 12.5, 15.25]),
                              *(rng.random() < .5 for _ in range(4))),
                 lambda: Group([anything(depth - 1) for _ in range(rng.randint(0, 4))], *rng.choice([(0, 0), (x, y)]), rng.choice(["", "g"]), rng.choice([None, (w, h)]))]
        return rng.choice(kinds if depth else kinds[:3])()
    pictures = [[anything(3) for _ in range(6)] for _ in range(60)]
    got = javascript.run("return data.map(cx.paint)", [list(map(as_data, p)) for p in pictures])
    for p, text in zip(pictures, got):
        assert alike(text, svg.paint(p))
        ET.fromstring(f"<svg>{text}</svg>")


@pytest.mark.parametrize("role", ROLES)
def test_paper_takes_every_shape_in_every_role(role):
    data = paper.png(gallery(role), 100, 100)
    assert data.startswith(b"\x89PNG") and data == paper.png(gallery(role), 100, 100)


@pytest.mark.parametrize("bad", ["pink", "rank4", "pale", "on:", "on:pink", "on:on:compute", "Compute", "#000"])
def test_a_role_without_a_colour_is_refused(bad):
    for shape in Rect(0, 0, 1, 1, bad), Rect(0, 0, 1, 1, line=bad), Path("M0 0h1", bad), Text(0, 0, "x", color=bad), Group([Text(0, 0, "x", color=bad)]):
        with pytest.raises(ValueError, match=f"role '{bad}'; allowed: compute, .*rank3, other, paper"):
            svg.paint([shape])
        with pytest.raises(ValueError, match=f"role '{bad}'; allowed: compute"):
            paper.png([shape], 10, 10)
        said = javascript.run("try { cx.paint([data]); return 'painted'; } catch (e) { return String(e); }", as_data(shape))
        assert said == f"RangeError: role {bad}"


def test_text_without_a_role_is_refused():
    with pytest.raises(ValueError, match="role ''"):
        svg.paint([Text(0, 0, "x", color="")])


def test_one_table_of_colours():
    assert {role: COLORS[role] for role in plot.COLOR if role != "other"} | {"other": "#000000"} == plot.COLOR
    for role, color in COLORS.items():
        assert color in svg.ink(role) and paper.ink(role) == color


# --- shapes

def test_a_legend_fills_rows():
    items = [(f"a name {i}", "compute", None if i % 2 else "3 1") for i in range(9)]
    for W in 120, 300, 640:
        shapes, high = legend(items, W)
        texts = [s for s in shapes if isinstance(s, Text)]
        assert [t.text for t in texts] == [name for name, *_ in items] and max(t.y for t in texts) < high
        assert all(t.x + width(t.text) <= W for t in texts)
    assert legend([], 300) == ([], 22)


def test_wrapped_lines_fit():
    text = "Two transfers side by side cost the time of one where the links can be used both ways at once"
    for W in 120, 300, 640:
        lines = wrapped(text, W)
        assert " ".join(lines) == text and all(width(line) <= W for line in lines)
    assert wrapped("", 100) == []


# --- paper

def ink_of(shapes, W=400, H=200):
    """Where the picture on paper is not white: (left, top, right, bottom) in pixels of the picture."""
    from PIL import Image
    grey = np.array(Image.open(io.BytesIO(paper.png(shapes, W, H, 300))).convert("L"))
    ys, xs = np.nonzero(grey < 250)
    scale = W/grey.shape[1]
    return xs.min()*scale, ys.min()*scale, (xs.max() + 1)*scale, (ys.max() + 1)*scale


def test_paper_puts_shapes_where_they_are():
    assert ink_of([Rect(50, 60, 100, 30, "compute")]) == pytest.approx((50, 60, 150, 90), abs=.5)
    assert ink_of([Group([Path("M0 0H20V10h-5v20Z", "limit")], 100, 50)]) == pytest.approx((100, 50, 120, 80), abs=.5)
    assert ink_of([Path("M10 100C10 20 200 20 200 100", line="network", weight=2)]) == pytest.approx((9, 39, 201, 100), abs=.8)
    assert ink_of([Group([Rect(-50, -50, 300, 300, "idle")], 30, 20, clip=(40, 25))]) == pytest.approx((30, 20, 70, 45), abs=.8)
    assert ink_of([Rect(89, 49, 11, 11, "other", radius=5.5)]) == pytest.approx((89, 49, 100, 60), abs=.5)
    assert ink_of([Rect(50, 60, 100, 30, line="other", weight=4)]) == pytest.approx((48, 58, 152, 92), abs=.5)


def test_paper_scales_letters_with_the_picture():
    heights = []
    for W in 400, 800:
        _, top, _, bottom = ink_of([Text(20, 100, "Hx")], W)
        heights.append(bottom - top)
    assert heights[0] == pytest.approx(heights[1], abs=.6)


def test_money_is_not_mathematics():
    left, _, right, _ = ink_of([Text(20, 100, "$2 an hour, $3 a day")])
    assert right - left > .8*width("$2 an hour, $3 a day")


TEXTS = [("Hamburg", 12.5), ("x", 11), ("1.25 TB/s", 12.5), ("yyy", 15), ("a long name of a curve", 12.5)]


INK = """es => document.fonts.ready.then(() => es.map((e) => { const of = getComputedStyle(e), c = document.createElement('canvas').getContext('2d');
    c.font = `${of.fontWeight} ${of.fontSize} ${of.fontFamily}`;
    const m = c.measureText(e.textContent), x = e.getStartPositionOfChar(0).x, y = Number(e.getAttribute('y'));
    return [x - m.actualBoundingBoxLeft, x + m.actualBoundingBoxRight, y - m.actualBoundingBoxAscent, y + m.actualBoundingBoxDescent]; }))"""


def test_paper_draws_text_where_the_page_does(tmp_path):
    """The middle of what is seen of each text is within two pixels of Chromium's, which has the same type, not made narrow."""
    shapes = [Text(200, 30 + 24*i, text, anchor, size=size, bold=bold) for i, (text, size, anchor, bold) in enumerate(
        (text, size, anchor, bold) for text, size in TEXTS for anchor in ("start", "middle", "end") for bold in (False, True))]
    faces = "".join(f"@font-face {{ font-family: T; font-weight: {weight}; src: url({(TYPE/file).as_uri()}); }}"
                    for weight, file in ((400, "DejaVuSans.ttf"), (600, "DejaVuSans-Bold.ttf")))

    class Page:
        def to_html(self):
            return f'<style>{faces}</style><div style="font-family: T">{svg.frame(shapes, 400, 800, "texts")}</div>'
    with opened(tmp_path, [Page()]) as tab:
        boxes = tab.locator("svg text").evaluate_all(INK)
    fig = Figure(figsize=(4, 8), dpi=100)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 400), ylim=(800, 0))
    paper.paint(ax, shapes)
    assert len(boxes) == len(ax.patches) == len(shapes)
    for s, patch, (left, right, top, bottom) in zip(shapes, ax.patches, boxes):
        box = patch.get_path().get_extents(patch.get_transform())
        assert (box.x0 + box.x1)/2 == pytest.approx(s.x + paper.NARROW*((left + right)/2 - s.x), abs=2), s
        assert 800 - (box.y0 + box.y1)/2 == pytest.approx((top + bottom)/2, abs=2), s
        assert box.x1 - box.x0 == pytest.approx(paper.NARROW*(right - left), abs=2) and box.x1 - box.x0 <= 1.12*width(s.text, s.size)


def test_svg_text_has_one_decimal():
    text = svg.paint(gallery("compute"))
    assert not re.search(r' (?:x|y|width|height)="[^"]*\.\d\d', text)
