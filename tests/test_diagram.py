"""Drawings: words inside the sheet and apart, colours that are roles, devices told by more than a colour."""
import re
from functools import cache

import numpy as np
import pytest

from capacity.pictures.diagram import (
    FRAMED,
    NARROW,
    WIDE,
    Sketch,
    causal,
    contiguous,
    documents,
    drawing,
    exposed,
    held,
    role,
    scenes,
    striped,
    window,
    zigzag,
)
from capacity.pictures.shapes import COLORS, Path, Rect, Text
from capacity.witness import collectives
from capacity.witness.spmd import Link, run


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


P = 4


def united(a, b):
    return a | b


def chain(comm, x):
    """A message of 8000 bytes handed from rank to rank."""
    x = comm.recv(comm.rank - 1) if comm.rank else x
    if comm.rank < comm.size - 1:
        comm.send(x, comm.rank + 1)
    return x


TERMS = [[{r} for _ in range(P)] for r in range(P)]
GATHER = run(collectives.ring_all_gather, [{r} for r in range(P)])
SCATTER = run(collectives.ring_reduce_scatter, TERMS, united)
REDUCE = run(collectives.ring_all_reduce, TERMS, united)
BEFORE = [[r]*P for r in range(P)]
SWAPPED = run(collectives.pairwise_all_to_all, BEFORE).results
CHAIN = run(chain, [np.zeros(1000)] + [None]*(P - 1), link=Link(2e-6, 4e9))
PARTS = [("weights", 16e9, "compute"), ("gradients", 16e9, "network"), ("states", 96e9, "memory"),
         ("activations", 12e9, "measured")]
LANES = {"compute": [(0, 1e-3, "1", "compute"), (1e-3, 3e-3, "2", "compute")],
         "network": [(1e-3, 2.2e-3, "1", "network"), (2.2e-3, 4.6e-3, "2", "network")]}


def masks(s):
    across = 1 if s.narrow else 3
    for k, (allowed, owners) in enumerate([(causal, zigzag(16, P)), (documents(5, 7, 4), striped(16, P)),
                                           (window(4), None)]):
        s.mask(k % across*(s.W/across), k//across*250, 210, 16, allowed, owners=owners, title=f"mask {k}")


def on_a_sheet(draw):
    @cache
    def make(W):
        s = Sketch(W)
        draw(s)
        return s
    return make


PRIMITIVES = {"arrays": arrays} | {name: on_a_sheet(draw) for name, draw in {
    "words": lambda s: s.words(0, 0, s.W, "a sentence that is long enough for its line to end before it does, twice"),
    "scale": lambda s: s.scale(0, 4, s.W, 18, "units"),
    "node": lambda s: s.node(1, 1, min(s.W - 2, 420), name="node 0", inside="NVLink, 450 GB/s", marked={1}, cards={0}),
    "cluster": lambda s: s.cluster(0, 4, inside="NVLink", outside="50 GB/s a card", spine="a quarter of the ports"),
    "two nodes": lambda s: s.cluster(0, 2, inside="NVLink, 450 GB/s", rails=False, cards={(0, 0), (1, 0)}),
    "mesh": lambda s: s.mesh(0, 0, s.W, {"dp": 2, "pp": 2, "tp": 4}, group="tp", rank=5),
    "flat mesh": lambda s: s.mesh(0, 0, s.W, {"dp": 4, "tp": 8}, group="dp", rank=5),
    "layer": lambda s: s.layer(0, 0, s.W, stream="H numbers a token", colors={"attention": "compute"},
                               notes={"norm": "H weights", "attention": "4H² weights", "feed-forward": "12H²"}),
    "stages": lambda s: s.stages(0, 0, s.W, [("embedding", .3)] + [1]*32 + [("head", 2.41)], [9, 8, 8, 9],
                                 notes=["8.3 layers", "8 layers", "8 layers", "9.4 layers"]),
    "equation": lambda s: s.equation(0, 6, s.W, [("X", "copy", 3, 2, "tokens × H"), "·",
                                                 ("W", "columns", 2, 6, "H × F"), "=",
                                                 ("Y", "columns", 3, 6, "tokens × F")]),
    "collective": lambda s: s.collective(0, 0, s.W, "all-reduce", REDUCE, note="6/4 of the vector leave each rank"),
    "strip": lambda s: s.collectives(0, [("all-gather", *held(GATHER), "3/4 n"), ("all-reduce", *held(REDUCE), "6/4 n"),
                                         ("reduce-scatter", *held(SCATTER), "3/4 n"),
                                         ("all-to-all", BEFORE, SWAPPED, "3/4 of a share")]),
    "masks": masks,
    "memory": lambda s: s.memory(0, {"whole": PARTS, "8 ways": [(p, v/8, c) for p, v, c in PARTS]}, 80e9),
    "lanes": lambda s: s.lanes(0, LANES, covered=("network", "compute")),
    "spacetime": lambda s: s.spacetime(0, CHAIN.messages, P, alpha=2e-6)}.items()}


@pytest.fixture(params=[WIDE, NARROW, NARROW - FRAMED], ids=lambda W: f"{W}px")
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
            assert color.removeprefix("on:") in {*COLORS, "other", "paper"} or color == "on:pale"
    assert set(re.findall(r"#\w+", make(W).svg("alt"))) <= {*COLORS.values(), "#fff", "#111"}


def test_both_widths_say_the_same(make):
    def said(W):
        return sorted(set("".join(f"{t} " for t in make(W).said).replace("- ", "-").split()))
    assert said(WIDE) == said(NARROW)


def test_a_drawing_is_the_same_each_time(make):
    again = getattr(make, "__wrapped__", make)
    assert again(WIDE).svg("alt") == again(WIDE).svg("alt")


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


@pytest.mark.parametrize("bars, color", [
    ([("compute", 1)], "on:compute"), ([("compute", .85)], "on:limit"), ([("limit", .55)], "on:pale"), ([("limit", .3)], "other"),
    ([("rank1", .34), ("rank2", .34)], "on:pale"), ([("compute", 1), ("paper", 1)], "other"), ([], "other")])
def test_words_take_the_color_that_is_read_on_what_lies_below_them(bars, color):
    s = Sketch(100)
    for fill, opacity in bars:
        s.rect(10, 10, 80, 20, fill, opacity=opacity)
    s.text(50, 24, "on it")
    s.text(50, 50, "below it")
    s.text(50, 24, "with a halo", halo=True)
    s.text(50, 24, "with a colour", color="memory")
    assert [t.color for t in texts(s)] == [color, "other", "other", "memory"]


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


# ---- what the primitives know
def filled(s):
    return [x for x in s.shapes if isinstance(x, Rect) and x.fill.startswith("rank")]


def test_a_grid_shows_what_the_run_left():
    """After a reduce-scatter each rank holds one sum; the sum has the colours of all ranks."""
    before, after = held(SCATTER)
    assert before == TERMS and [sum(len(b or ()) == P for b in state) for state in after] == [1]*P
    s = Sketch(WIDE)
    s.grid(0, 0, after)
    assert sorted(r.fill for r in filled(s)) == sorted([f"rank{r}" for r in range(P)]*P)
    assert [t.text for t in texts(s)].count("Σ") == P


def test_a_grid_of_an_all_to_all_is_its_transpose():
    assert [list(row) for row in zip(*BEFORE)] == [list(x) for x in SWAPPED]


def test_a_run_that_holds_its_tongue_is_refused():
    with pytest.raises(ValueError, match="run: rank 0, 1 never said what it holds"):
        held(run(chain, [1, None]))
    assert held(run(collectives.binomial_broadcast, ["x", None]))[1] == [["x"], ["x"]]


@pytest.mark.parametrize("allowed, n", [(causal, 36), (window(3), 21), (documents(3, 5), 6 + 15), (window(8), 36)])
def test_masks(allowed, n):
    assert sum(allowed(q, k) for q in range(8) for k in range(8)) == n


def test_a_mask_fills_what_is_seen():
    s = Sketch(WIDE)
    s.mask(0, 0, 160, 16, window(4))
    d = "".join(x.d for x in s.shapes if isinstance(x, Path))
    area = sum(float(w)*float(h) for w, h in re.findall(r"h([\d.]+)v([\d.]+)", d))
    assert area == pytest.approx(100*sum(window(4)(q, k) for q in range(16) for k in range(16)))


@pytest.mark.parametrize("cut", [contiguous, zigzag, striped])
def test_rows_are_dealt_out_evenly(cut):
    owners = cut(24, P)
    assert [owners.count(r) for r in range(P)] == [6]*P


def test_zigzag_evens_the_work():
    work = [sum(q + 1 for q, r in enumerate(zigzag(16, P)) if r == me) for me in range(P)]
    assert len(set(work)) == 1


@pytest.mark.parametrize("busy, cover, bare", [
    ([(1, 4)], [(0, 2)], [(2, 4)]), ([(0, 4)], [(1, 2)], [(0, 1), (2, 4)]), ([(0, 1), (1, 3)], [], [(0, 3)]),
    ([(1, 2)], [(0, 1), (2, 3)], [(1, 2)]), ([(1, 2)], [(0, 3)], [])])
def test_exposed(busy, cover, bare):
    assert exposed(busy, cover) == bare


def test_lanes_say_what_is_exposed():
    s = Sketch(WIDE)
    s.lanes(0, LANES, covered=("network", "compute"))
    assert "exposed: 1.6 ms of network that no compute covers" in s.said


def test_memory_says_what_does_not_fit():
    assert "whole: 140 GB, 60 GB too much" in PRIMITIVES["memory"](NARROW).said


def test_a_mesh_marks_the_ranks_of_a_group():
    s = Sketch(WIDE)
    s.mesh(0, 0, WIDE, {"dp": 2, "pp": 2, "tp": 4}, group="pp", rank=6)
    assert "the pp group of rank 6: 2, 6" in s.said
    assert {t.text for t in texts(s) if t.bold} >= {"2", "6"}


def test_bands_of_spacetime_follow_the_messages():
    """A band ends when its message is in: the last at four times alpha + n/beta."""
    s = Sketch(WIDE)
    s.spacetime(0, CHAIN.messages, P, alpha=2e-6)
    bands = [[float(x) for x in re.findall(r"[ML]([\d.]+) ", p.d)] for p in s.shapes
             if isinstance(p, Path) and p.fill == "network"]
    left, right = bands[0][0], max(map(max, bands))
    assert len(bands) == P - 1 and right == pytest.approx(WIDE - 2, abs=.2)
    assert [(b[2] - left)/(right - left) for b in bands] == pytest.approx([1/3, 2/3, 1], abs=1e-3)


@pytest.mark.parametrize("make, message", [
    (lambda s: s.cluster(0, 5), "cluster: 5 nodes of 8; allowed: 1 to 4 of 1 to 8"),
    (lambda s: s.mesh(0, 0, 300, {"tp": 4}, group="dp"), "mesh: group = 'dp'; allowed: tp"),
    (lambda s: s.mesh(0, 0, 300, {"tp": 4}, rank=4), "mesh: rank = 4; allowed: 0 to 3"),
    (lambda s: s.mesh(0, 0, 300, dict(a=1, b=1, c=1, d=1)), "mesh: axes a, b, c, d; allowed: one to three"),
    (lambda s: s.stages(0, 0, 300, [1]*4, [3, 2]), "stages: cuts of 3\\+2 layers; allowed: 4 together"),
    (lambda s: s.mask(0, 0, 100, 16, causal, owners=striped(16, 4)), "mask: .* too few for its number"),
    (lambda s: s.mask(0, 0, 100, 16, causal, owners=[0]*8), "mask: 8 owners; allowed: 16")])
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(Sketch(WIDE))
