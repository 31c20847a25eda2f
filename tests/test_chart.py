"""Gantt charts: the page's clock is Python's, every operation is drawn once, choices and keys work, bad input is refused by name."""
import functools
import html
import json
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction

import matplotlib
import numpy as np
import pytest
import sympy as sp

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

import javascript
from capacity import explore_schedules, gantt
from capacity.pictures.shapes import COLORS, Group, Rect, Text, width
from capacity.pictures.chart import SAID, code, fill, number, percent
from capacity.witness.schedule import Op, Schedule, dualpipe, gpipe, interleaved, one_f_one_b, simulate, zb_h1, zb_h2, zb_v
from figures import DRAWN, ROOT, alike, contrast, opened, rgb

ALL = [make(p, m) for make in (one_f_one_b, gpipe, zb_h1, zb_h2, zb_v) for p in (2, 4, 8) for m in (8, 16, 32)] \
    + [interleaved(p, m, v) for p in (2, 4) for m in (8, 16, 32) for v in (2, 4)] \
    + [dualpipe(p, m) for p in (4, 8) for m in (16, 32)]
LAST_FIRST = Schedule("Last first", [[Op("F", 0, j) for j in (1, 0, 2)] + [Op(k, 0, j) for j in (2, 0, 1) for k in "IW"]])
GALLERY = {
    "all": lambda: explore_schedules("all", ALL, title="All of them"),
    "few": lambda: explore_schedules("few", [dualpipe(4, 10), dualpipe(4, 8), one_f_one_b(4, 8), interleaved(4, 8, 3)],
                                     title='A "pair" & <its> time', F=(1, 2, 1), W=(0, 1, .5), pair=(.6, 1.2, .9)),
    "deep": lambda: explore_schedules("deep", [zb_v(16, 40), one_f_one_b(16, 40)], title="Sixteen"),
    "own": lambda: explore_schedules("own", [LAST_FIRST], title="An order of one's own"),
}
each = pytest.mark.parametrize("name", GALLERY)


@functools.cache
def make(name):
    return GALLERY[name]()


def settings(E, n, seed=1):
    rng = random.Random(seed)
    return [E.start] + [[rng.choice(s.positions()) for s in E.sliders] for _ in range(n)]


def timeline(E, i, setting):
    F, I, W, share = (*setting, 1)[:4]
    return simulate(E.schedules[i], F, I, W, pair=share*(F + I + W))


# --- the law: a slider's value is a time of capacity.simulate

@each
def test_the_browser_runs_the_clock_of_python(name):
    E = make(name)
    at = settings(E, 3)
    got = javascript.run("""return data.S.list.map((s) => { const c = cx.gantt.chart(s); return data.at.map((v) => {
        const { bars, ...D } = cx.gantt.clock(c, v); return { ...D, bars, said: cx.gantt.fill(data.S.said[1], s.at, { bars, ...D }) }; }); });""",
                         {"S": E.spec(), "at": at})
    assert len(got) == len(E.schedules)
    for i, answers in enumerate(got):
        for setting, D in zip(at, answers):
            T = timeline(E, i, setting)
            start, end = {}, {}
            for bars in D["bars"]:
                for a, b, slot in bars:
                    for kind, s, j, _ in slot:
                        start[Op(kind, s, j)], end[Op(kind, s, j)] = a, b
            assert start == pytest.approx(T.start) and end == pytest.approx(T.end), (E.keys[i], setting)
            assert D["makespan"] == pytest.approx(T.makespan) and D["work"] == pytest.approx(sum(T.busy))
            assert D["span"] == pytest.approx(max(T.spans))
            assert D["peaks"] == [pytest.approx(float(x)) for x in T.peak_activations] and D["top"] == max(D["peaks"])
            total = len(T.busy)*D["makespan"]
            assert (1 - D["work"]/total, total/D["work"] - 1) == pytest.approx((T.idle("total"), T.idle("ideal")), abs=1e-12)
            assert D["said"] == E.words(i, setting)


@each
def test_orders_survive_as_text(name):
    E = make(name)
    got = javascript.run("return data.list.map((s) => cx.gantt.chart(s).rows);", E.spec())
    for c, rows in zip(E.charts, got):
        assert [[tuple((kind, s, j) for kind, s, j, _ in slot) for slot in row] for row in rows] == list(map(list, c["rows"]))
        assert [{s: tone for slot in row for _, s, _, tone in slot} for row in rows] == c["tones"]


def test_random_orders_survive_as_text():
    """Any order of ops on a device, be it sensible or not."""
    rng, rows = random.Random(5), []
    for _ in range(40):
        ops = [(k, s, j) for s in rng.sample(range(9), rng.randint(1, 3)) for j in range(rng.randint(1, 9)) for k in rng.choice(["FB", "FIW"])]
        first = sorted(ops, key=lambda op: (op[0] != "F", op[0] == "W", rng.random()))          # F before B, I before W
        row = []
        while first:
            n = min(rng.choice([1, 1, 1, 2]), len(first))
            row.append(tuple(first.pop(0) for _ in range(n)))
        rows.append(row)
    texts = [code(row, {s: 0 for s in range(9)}) for row in rows]
    got = javascript.run("return cx.gantt.chart({ at: [], rows: data }).rows;", texts)
    assert [[tuple(tuple(op[:3]) for op in slot) for slot in row] for row in got] == rows


def test_readouts_are_those_of_the_timeline():
    E = make("few")
    T = simulate(interleaved(4, 8, 3), 1, 1, Fraction(1, 2))
    assert E.line(3)[3:] == [f"{math_round(float(T.makespan), 2):g}", f"{math_round(100*float(T.idle()), 1):g} %",
                             f"{math_round(100*float(T.idle('ideal')), 1):g} %", f"{math_round(float(max(T.spans)), 2):g}",
                             f"{math_round(float(max(T.peak_activations)), 2):g}"]
    assert E.words(0).count("<strong>") == 5 and "Peak activations by device: 5, 5, 5, 5; at most <strong>5</strong>." in E.words(0)


def test_what_lies_between_two_numbers_is_rounded_up_in_spite_of_floats():
    E = explore_schedules("tie", [gpipe(2, 16)], title="t", W=(.1, 3, .3))
    assert E.timeline().idle("ideal") < .0625 == Fraction(1, 16) and E.line(0)[5] == "6.3 %"


def math_round(x, digits):
    return np.floor(x*10**digits + .5 + 1e-9)/10**digits


# --- pictures

@each
def test_javascript_draws_what_python_draws(name):
    E = make(name)
    some, widths = range(0, len(E.schedules), 5), [700, 520, 519, 335, 280]
    at = settings(E, 1)
    got = javascript.run("""return data.some.map((i) => { const c = cx.gantt.chart(data.S.list[i]); return data.at.map((v) => { const D = cx.gantt.clock(c, v);
        return [data.widths.map((w) => cx.gantt.picture(data.S, i, c, D, w)), cx.gantt.line(data.S.list[i].at, D)]; }); });""",
                         {"S": E.spec(), "at": at, "widths": widths, "some": list(some)})
    tables = [E.table(setting) for setting in at]
    for i, by_setting in zip(some, got):
        for setting, table, (pictures, line) in zip(at, tables, by_setting):
            assert line in table
            for w, picture in zip(widths, pictures):
                assert alike(picture, E.svg(i, setting, w)), f"{E.keys[i]} at {setting}, {w} px:\n{picture}\n{E.svg(i, setting, w)}"
                assert "NaN" not in picture and "undefined" not in picture


@each
@pytest.mark.parametrize("wide", [640, 335])
def test_picture_shows_every_operation_once_and_in_its_row(name, wide):
    E = make(name)
    for i, s in list(enumerate(E.schedules))[::4]:
        root = ET.fromstring(E.svg(i, None, wide))
        W, height = float(root.get("width")), float(root.get("height"))
        frames = [r for r in root.iter("rect") if r.get("stroke-opacity")]
        assert len(frames) == len(s.orders)
        rows = [(float(r.get("y")), float(r.get("y")) + float(r.get("height"))) for r in frames]
        drawn, counts = [], [0]*len(rows)
        for path in root.findall(".//g[@class='cx-ops']/path"):
            for x, y, z, v in re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)", path.get("d")):
                drawn.append((x, y, z, v))
                counts[next(d for d, (a, b) in enumerate(rows) if a - .2 <= float(y) and float(v) <= b + .2)] += 1
        assert counts == [sum(len(slot) for slot in row) for row in E.charts[i]["rows"]] and len(set(drawn)) == len(drawn)
        seen = []
        assert root.get("role") == "img" and E.title in root.get("aria-label") and float(root.get("font-size")) >= 11
        for t in root.iter("text"):
            x, y, w = float(t.get("x")), float(t.get("y")), width(t.text)
            left = x - {"start": 0, "middle": w/2, "end": w}[t.get("text-anchor")]
            assert -1 <= left and left + w <= W + 8 and 8 <= y <= height, (t.text, t.attrib)
            assert not any(left < q and p < left + w and abs(y - z) < 10 for p, q, z in seen), f"{t.text} covers another text"
            seen.append((left, left + w, y))


@each
def test_all_bars_are_numbered_or_none(name):
    """In every schedule, setting and width: the widest number fits the narrowest bar that is drawn, or there are none."""
    E, seen = make(name), set()
    for i, s in list(enumerate(E.schedules))[::3]:
        for setting in settings(E, 2):
            D = E.numbers(i, setting)
            bars = [(end - start, op, slot) for row in D["bars"] for start, end, slot in row for op in slot if end > start]
            for wide in (760, 640, 335):
                shapes = E.picture(i, setting, wide)[0]
                numbers = [s for s in shapes if isinstance(s, Text) and s.size == 11]
                frame = next(s for s in shapes if isinstance(s, Rect) and s.line == "idle")
                room = min((long*frame.w/D["makespan"] - width(str(op.microbatch)) for long, op, _ in bars))
                low = max(len(slot) for *_, slot in bars)*12 > frame.h
                assert len(numbers) == (len(bars) if room > 2 and not low else 0), (E.keys[i], setting, wide)
                seen.add(bool(numbers))
    assert True in seen or name == "deep"


def painted(shapes):
    """Rectangles of operations as (left, right, top, bottom, role) out of the shapes of a picture."""
    ops = next(s for s in shapes if isinstance(s, Group) and s.name == "cx-ops")
    return [(*map(float, place), path.fill) for path in ops.shapes
            for place in re.findall(r"M(\S+) (\S+)H(\S+)V(\S+?)H", path.d)]


@pytest.mark.parametrize("made", [gpipe(3, 5), zb_h2(4, 8), interleaved(4, 8, 2), dualpipe(4, 8), zb_v(4, 4)], ids=lambda s: s.name)
def test_gantt_draws_every_operation_once_where_it_is(made):
    T = simulate(made, F=Fraction(1), I=Fraction(3, 2), W=Fraction(1, 2))
    chart = gantt(T, title="A title")
    shapes = chart.picture(640)[0]
    role = {"F": "compute", "B": "limit", "I": "limit", "W": "measured"}
    rows = [s for s in shapes if isinstance(s, Rect) and s.line == "idle"]
    x0, scale, high = rows[0].x, rows[0].w/float(T.makespan), rows[1].y - rows[0].y
    want = []
    for d, order in enumerate(made.orders):
        for slot in order:
            ops = [slot] if isinstance(slot, Op) else slot
            for n, op in enumerate(ops):
                h = (high - 2)/len(ops)
                want.append((x0 + scale*float(T.start[op]), rows[d].y + n*h, x0 + scale*float(T.end[op]), rows[d].y + (n + 1)*h, role[op.kind]))
    got = painted(shapes)
    key = lambda place: (place[4], *np.round(place[:4], 0))
    np.testing.assert_allclose([p[:4] for p in sorted(got, key=key)], [p[:4] for p in sorted(want, key=key)], atol=.06)
    assert sorted(p[4] for p in got) == sorted(p[4] for p in want)
    said = [s.text for s in next(s for s in shapes if isinstance(s, Group) and s.name == "cx-left").shapes]
    assert [t for t in said if t.startswith("device")] == [f"device {d}" for d in range(len(made.orders))]
    data = chart._repr_mimebundle_()
    assert data["text/html"].count('role="img"') == 2 and "<figcaption>A title</figcaption>" in data["text/html"]
    assert data["image/png"].startswith("iVBOR") and data["text/plain"] == f"gantt: A title. {made.name} on {len(made.orders)} devices, " \
        f"{made.microbatches} micro-batches: makespan {number(T.makespan)}, {percent(float(T.idle()))} idle, peak activations {number(max(T.peak_activations))}"


def test_gantt_on_axes_has_time_for_its_x():
    T = simulate(dualpipe(4, 8), F=2)
    _, ax = plt.subplots()
    assert gantt(T, ax=ax, title="A title") is ax and ax.get_title(loc="left") == "A title"
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"device {d}" for d in range(4)] and ax.get_ylim()[0] > ax.get_ylim()[1]
    ax.set_xlim(0, 100)                                     # what is drawn follows the axis
    to_data, ends, rows = ax.transData.inverted(), [], []
    for patch in ax.patches:
        if patch.get_linewidth() == 0 and len(patch.get_path()) > 60 and to_hex(patch.get_facecolor()) in (COLORS["compute"].lower(), COLORS["limit"].lower()):
            points = (patch.get_transform() + to_data).transform(patch.get_path().vertices)
            ends.append(points[:, 0].max())
            rows += [points[:, 1].min(), points[:, 1].max()]
    assert ends and max(ends) == pytest.approx(max(float(T.end[op]) for op in T.end if op.kind in "FBI"), rel=.01)
    assert min(rows) == pytest.approx(-.5, abs=.05) and max(rows) == pytest.approx(3.5, abs=.05)
    plt.close("all")


def test_gantts_share_an_axis():
    fig, axes = plt.subplots(2, sharex=True)
    long, short = simulate(gpipe(4, 8)), simulate(zb_h1(4, 8))
    assert gantt(long, ax=axes[0]) is axes[0] and gantt(short, ax=axes[1]) is axes[1]
    assert axes[0].get_xlim()[1] == axes[1].get_xlim()[1] == pytest.approx(float(long.makespan), rel=.01)
    assert [ax.get_xlabel() for ax in axes] == ["", "time"]
    assert axes[0].get_legend() is None and axes[1].get_legend_handles_labels()[1] == ["forward", "input gradient", "weight gradient"]
    assert [s.text for s in gantt(long).picture(640)[0][-1].shapes if isinstance(s, Text)] == ["forward", "backward"]
    plt.close("all")


def test_a_chart_loads_no_pyplot_and_no_style():
    code = ("import sys, matplotlib; before = matplotlib.rcParams.copy(); from capacity import gantt, one_f_one_b, simulate; gantt(simulate(one_f_one_b(2, 4))).png();"
            "print('matplotlib.pyplot' in sys.modules, matplotlib.rcParams.copy() == before)")
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "False True\n"


def test_paler_is_the_second_chunk_or_direction():
    assert make("few").charts[0]["tones"] == [{0: 0, 3: 1}, {1: 0, 2: 1}, {2: 0, 1: 1}, {3: 0, 0: 1}]
    assert make("few").charts[3]["tones"] == [{d: 0, d + 4: 1, d + 8: 2} for d in range(4)]
    assert make("few").charts[2]["tones"] == [{d: 0} for d in range(4)]
    assert set(re.findall('<path [^>]*fill-opacity="(.*?)"', make("few").svg(3))) == {"0.42", "0.3"}


# --- what is refused, by name

X = one_f_one_b(2, 4)


@pytest.mark.parametrize("change, said", [
    (dict(name="A b"), "explorer name 'A b'; allowed: lower-case words and hyphens"),
    (dict(title=" "), "title is ' '; allowed: a sentence"),
    (dict(title=None), "title is None"),
    (dict(schedules=[]), "there are 0 schedules; allowed: 1 to 64"),
    (dict(schedules=[X]*65), "there are 65 schedules"),
    (dict(schedules=[X, X]), "1F1B, p = 2, m = 4 is there twice"),
    (dict(schedules=[3]), "a schedule is 3; allowed: a Schedule"),
    (dict(schedules=[one_f_one_b(17, 1)]), "1F1B has 17 devices of .*allowed: 1 to 16"),
    (dict(schedules=[Schedule("none", [])]), "none has 0 devices"),
    (dict(schedules=X), r"schedules is <1F1B on 2 devices; .*>; allowed: a list of Schedules"),
    (dict(schedules=[Schedule("odd", [[3]])]), "odd on 1 devices cannot run: slot 3 on device 0; allowed: an Op"),
    (dict(schedules=[Schedule("half", [[Op("F", 0, 0)]])]), "half on 1 devices cannot run: stage 0, micro-batch 0 has F; allowed: F and B"),
    (dict(schedules=[Schedule("twice", [[Op("F", 0, 0)]*2 + [Op("B", 0, 0)]])]), r"twice on 1 devices cannot run: F\(stage 0, micro-batch 0\) is there twice"),
    (dict(schedules=[Schedule("stage", [[Op("F", 1, 0), Op("B", 1, 0)]])]), "stage on 1 devices cannot run: stage = 1 on device 0; allowed: 0 to 0"),
    (dict(schedules=[Schedule("stuck", [[Op("B", 0, 0), Op("F", 0, 0)]])]), r"stuck on 1 devices cannot run: device 0 waits at B\(stage 0"),
    (dict(schedules=[Schedule("both", [[Op("F", 0, 0), (Op("F", 0, 1), Op("I", 0, 0)), Op("I", 0, 1), Op("W", 0, 0), Op("W", 0, 1)]])]),
     r"both overlaps F\(stage 0, micro-batch 1\) and I\(stage 0, micro-batch 0\); allowed: a forward with a backward"),
    (dict(schedules=[X, gpipe(4, 4)]), "GPipe, p = 4, m = 4 cannot be reached"),
    (dict(F=(1, 2)), r"F is \(1, 2\); allowed: \(lo, hi, value\)"),
    (dict(F=3), "F is 3"),
    (dict(F=(0, 2, 1)), "F goes from 0 to 2; allowed: times from 0 to 1000, F above 0"),
    (dict(W=(-1, 2, 1)), "W goes from -1 to 2"),
    (dict(I=(0, 2000, 1)), "I goes from 0 to 2000"),
    (dict(I=(1, 2, 3)), "slider I: value 3 is outside 1 to 2"),
    (dict(I=(1, "2", 1)), "slider I: hi is '2'"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_a_bad_explorer_is_refused_by_name(change, said):
    good = dict(name="good", schedules=[X, gpipe(2, 4)], title="t")
    call = lambda name, schedules, **options: explore_schedules(name, schedules, **options)
    call(**good)
    with pytest.raises(ValueError, match=said):
        call(**good | change)


def test_a_bad_timeline_is_refused_by_name():
    with pytest.raises(ValueError, match="timeline is 3; allowed: what capacity.simulate returns"):
        gantt(3)
    with pytest.raises(ValueError, match="timeline is <1F1B on 2 devices; .*>; allowed: what capacity.simulate returns; simulate\\(it\\) first"):
        gantt(X)
    with pytest.raises(ValueError, match="timeline ends at .*; allowed: times that are numbers"):
        gantt(simulate(X, F=sp.Symbol("F", positive=True), maximum=sp.Max))


def test_the_function_wins_over_its_module():
    code = "import capacity.pictures.chart; from capacity import gantt, explore_schedules; print(callable(gantt), callable(capacity.gantt))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "True True\n"


# --- files

@each
def test_file_holds_a_figure_a_table_and_a_picture(name):
    E = make(name)
    data = E._repr_mimebundle_()
    assert data["text/plain"].startswith(f"explore_schedules({name!r}) at F = 1") and data["image/png"].startswith("iVBOR")
    lines = data["text/plain"].splitlines()
    assert len(lines) == 2 + len(E.schedules)
    assert "application/vnd.jupyter.widget-view+json" in data
    figure = data["text/html"]
    assert "<svg" not in figure and figure.count("<tr>") == 1 + len(E.schedules)
    assert json.loads(html.unescape(re.search("data-spec='(.*?)'", figure, re.S)[1])) == json.loads(json.dumps(E.spec()))


def test_scripts_and_data_are_small():
    """The script: at most 11 kB. Sixty schedules up to p = 8, m = 32 in a page: at most 80 kB; it is far less."""
    assert (ROOT / "capacity/pictures/static/chart.js").stat().st_size <= 11_000
    assert len(ALL) >= 60 and len(make("all").to_html().encode()) <= 40_000


# --- with a kernel

def test_the_widget_follows_its_buttons_and_sliders():
    E = make("few")
    box = E.widget()
    rows, sliders, shown = box.children[1:4], box.children[4:8], box.children[8]
    buttons = {b.description: b for row in rows for b in row.children[1:]}
    assert [b.description for b in rows[0].children[1:]] == ["DualPipe", "1F1B", "Interleaved 1F1B"]
    assert E.svg(0) in shown.value and [n for n, b in buttons.items() if b.disabled] == ["1F1B", "Interleaved 1F1B"]
    buttons["8"].click()
    assert E.svg(1) in shown.value and not any(b.disabled for n, b in buttons.items() if n != "10") and not sliders[3].disabled
    buttons["1F1B"].click()
    assert E.svg(2) in shown.value and buttons["10"].disabled and sliders[3].disabled and buttons["1F1B"].button_style == "info"
    sliders[0].value = sliders[0].options[-1][1]
    assert E.svg(2, [2, 1, .5, .9]) in shown.value and E.words(2, [2, 1, .5, .9]) in shown.value
    box.children[9].selected_index = 0
    assert E.table([2, 1, .5, .9]) in box.children[9].children[0].value


# --- without one: a page of nothing but these, in Chromium

@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("page"), map(make, GALLERY)) as tab:
        yield tab


def choice(figure, n, option):
    return figure.locator("fieldset").nth(n).get_by_label(str(option), exact=True)


def reset(page, name):
    figure = page.locator("#" + name)
    figure.get_by_role("button", name="Reset").click()
    return figure


def said(figure):
    return figure.locator(".cx-read").inner_html()


def test_page_draws_all_without_an_error(page):
    assert page.errors == []
    assert page.locator("figure.cx-gantt .cx-picture svg[role=img]").count() == len(GALLERY)


# Chooses an option, if one is named, and tells what the figure says then, its label, and of each option whether it is disabled or checked.
CHOSEN = """(f, [n, k]) => { const options = [...f.querySelectorAll('fieldset')].map(e => [...e.querySelectorAll('input')]);
    options[n]?.[k].click();
    return [f.querySelector('.cx-read').innerHTML, f.querySelector('svg[role=img]').getAttribute('aria-label'),
        options.map(of => of.map(e => [e.disabled, e.checked]))]; }"""


@pytest.mark.parametrize("name", ["all", "few"])
def test_every_schedule_is_reached_and_what_is_not_there_is_disabled(page, name):
    E, figure = make(name), reset(page, name)
    at, seen = E.keys[0], set()
    for n, options in enumerate(E.options):
        assert all(choice(figure, n, o).evaluate("(e, [n, k]) => e === e.closest('figure').querySelectorAll('fieldset')[n].querySelectorAll('input')[k]", [n, k])
                   for k, o in enumerate(options))

    def walk(at, chosen):
        seen.add(at)
        words, label, states = figure.evaluate(CHOSEN, chosen)
        assert words == E.words(E.at[at])
        assert label == f"{E.title}. " + fill(SAID[0], at, E.numbers(E.at[at]))
        assert states == [[[(*at[:n], o, *at[n + 1:]) not in E.at, o == at[n]] for o in options] for n, options in enumerate(E.options)]
        for n, options in enumerate(E.options):
            for k, o in enumerate(options):
                there = *at[:n], o, *at[n + 1:]
                if there in E.at and there not in seen:
                    walk(there, [n, k])
                    figure.evaluate(CHOSEN, [n, options.index(at[n])])
    walk(at, [None, None])
    assert seen == set(E.keys)


def test_choices_by_keyboard(page):
    figure, E = reset(page, "few"), make("few")
    ten = choice(figure, 2, 10)
    ten.focus()
    ten.press("ArrowLeft")                                  # m = 8
    assert said(figure) == E.words(1)
    first = choice(figure, 0, "DualPipe")
    first.focus()
    first.press("ArrowRight")
    assert said(figure) == E.words(2)
    choice(figure, 0, "1F1B").press("ArrowRight")
    assert said(figure) == E.words(3) and choice(figure, 0, "Interleaved 1F1B").evaluate("e => e === document.activeElement")
    assert choice(figure, 2, 10).is_disabled()


def test_sliders_by_keyboard_and_the_table(page):
    figure, E = reset(page, "few"), make("few")
    sliders = figure.locator("input[type=range]")
    stops = [s.positions() for s in E.sliders]
    rng, setting = random.Random(3), list(E.start)
    figure.locator("summary").click()
    for _ in range(12):
        n, key = rng.randrange(4), rng.choice(["ArrowRight", "ArrowLeft", "Home", "End", "PageUp"])
        sliders.nth(n).press(key)
        page.evaluate(DRAWN)
        setting = [stops[k][int(sliders.nth(k).input_value())] for k in range(4)]
        assert said(figure) == E.words(0, setting)
        T = timeline(E, 0, setting)
        assert f"Makespan: {number(T.makespan)};" in figure.locator(".cx-read").inner_text()
        assert figure.locator("table").evaluate("t => t.outerHTML") == E.table(setting)
        assert [o.inner_text() for o in figure.locator("output").all()] == [s.get_attribute("aria-valuetext") for s in sliders.all()]
    assert setting != E.start
    figure.locator("summary").click()
    reset(page, "few")
    assert said(figure) == E.words(0)


def test_the_slider_of_pairs_rests_where_nothing_overlaps(page):
    figure = reset(page, "few")
    share = figure.get_by_label("overlapped")
    assert share.is_enabled()
    choice(figure, 2, 8).check(force=True)
    choice(figure, 0, "1F1B").check(force=True)
    assert share.is_disabled() and page.locator("#own input[type=range]").count() == 3


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 375, "height": 812})
    figure = reset(page, "all")
    choice(figure, 1, 4).check(force=True)
    choice(figure, 2, 32).check(force=True)
    choice(figure, 0, "Interleaved 1F1B, v = 4").check(force=True)
    page.evaluate(DRAWN)
    sizes = page.eval_on_selector_all(".cx-picture > svg", "es => es.map(e => e.getBoundingClientRect().width/e.viewBox.baseVal.width)")
    assert all(s > .95 for s in sizes), sizes
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    box = figure.locator(".cx-picture")
    assert box.evaluate("b => [b.scrollWidth > b.clientWidth, b.tabIndex]") == [True, 0]
    sight = """b => { const at = b.getBoundingClientRect(), of = (q) => [...b.querySelectorAll(q)].map(e => e.getBoundingClientRect());
        const left = of('.cx-left text'), right = of('.cx-right text, .cx-right > rect[fill*=memory]'), seen = (q) => getComputedStyle(b.querySelector(q)).display !== 'none';
        const head = of('.cx-head text');
        return [head.length === 2 && head.every(r => r.left >= at.left - 1 && r.right <= at.right + 1) && left.length === 4 && left.every(r => r.left >= at.left - 1), right.length === 9 && right.every(r => r.right <= at.right + 1),
            seen('.cx-left .cx-edge'), seen('.cx-right .cx-edge')]; }"""
    assert box.evaluate(sight) == [True, True, False, True]
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    assert box.evaluate("b => b.scrollLeft") > 0 and box.evaluate(sight) == [True, True, True, True]
    box.evaluate("b => { b.scrollLeft = 9999; }")
    page.evaluate(DRAWN)
    assert box.evaluate(sight) == [True, True, True, False]
    assert box.evaluate("b => b.scrollHeight - b.clientHeight") <= 1
    high = page.eval_on_selector_all(".cx-choice label", "es => es.map(e => e.getBoundingClientRect().height)")
    assert min(high) >= 24
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate(DRAWN)
    assert reset(page, "all").locator(".cx-picture").evaluate("b => [b.scrollWidth > b.clientWidth, b.tabIndex]") == [False, -1]


@pytest.mark.parametrize("theme, paper, color", [("light", 255, "#111"), ("dark", 18, "#ddd")])
def test_numbers_in_the_chart_stand_out(page, theme, paper, color):
    """WCAG's contrast of the numbers with what is painted below them."""
    page.evaluate("([t, c]) => { document.documentElement.dataset.theme = t; document.documentElement.style.color = c; }", [theme, color])
    figure = reset(page, "few")
    fills = figure.locator(".cx-ops path").evaluate_all("es => es.map(e => [getComputedStyle(e).fill, e.getAttribute('fill-opacity') || '1'])")
    inks = figure.locator("text[aria-hidden]").evaluate_all("es => [...new Set(es.map(e => getComputedStyle(e).fill))]")

    plain = rgb(figure.evaluate("f => getComputedStyle(f).color"))
    assert len(inks) >= 2 and {o for _, o in fills} == {"1", "0.42"}
    for paint, opacity in fills:
        o = float(opacity)
        below, above = o*rgb(paint) + (1 - o)*paper, [plain] if o < 1 else map(rgb, inks)
        assert max(contrast(a, below) for a in above) > 4.5, (paint, opacity)
    page.evaluate("() => { document.documentElement.dataset.theme = 'light'; document.documentElement.style.color = ''; }")


def test_redraw_is_fast(page):
    """Clock, picture and layout of the largest charts; a book's chart is a tenth of them."""
    median = reset(page, "deep").evaluate("""f => { const radios = f.querySelectorAll('fieldset:first-of-type input'), t = [];
        for (let i = 0; i < 40; i++) { const a = performance.now(); radios[1 - i % 2].click(); t.push(performance.now() - a); }
        return t.sort((a, b) => a - b)[20]; }""")
    assert median < 60
