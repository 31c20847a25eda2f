"""Tables and named results: the same content as HTML and as text, never wider than their box, bad ones refused by name."""
import html
import re

import pytest
import sympy as sp
from figures import opened

from capacity import KiB, named, ring_all_reduce_time, show, table

ROWS = {"2": [3.1e-3, 1e9, True], "64": [5.2e-2, 1.97e9, False]}


def words(text):
    """What a reader sees of some HTML."""
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", text.replace("<wbr>", "")))).strip()


def test_numbers_are_written_by_show_with_the_unit_of_their_column():
    t = table(["ranks", "time", "sent", "ok"], ROWS, format={"time": "s", "sent": ("B", 2)}, mark="64", bar="time")
    for seen in words(t._repr_html_()), re.sub(r"\s+", " ", repr(t)):
        for cell in ("3.1 ms", "52 ms", "1 GB", "2 GB", "✓", "–"):
            assert cell in seen
        assert "1.97" not in seen and "0.052" not in seen
    rows = re.findall("<tr.*?</tr>", t._repr_html_())
    assert "cx-mark" in rows[2] and "cx-mark" not in rows[1] + rows[0]
    assert [float(w) for w in re.findall(r"--part:([\d.]+)", t._repr_html_())] == pytest.approx([3.1/52, 1], abs=1e-4)


def test_a_format_may_be_a_function_and_dollars_stay_money():
    t = table(["what", "price", "x"], [["a", 2.5e6, "$2 M, not $3 M"], ["b", 3e6, "$x^2$ and `a_b`"]],
              format={"price": lambda v: f"{v/1e6} M"})
    assert "2.5 M" in repr(t) and "$2 M, not $3 M" in t._repr_html_()
    assert r"\(x^2\)" in t._repr_html_() and "<code>a_b</code>" in t._repr_html_()


def test_heads_of_rows_and_columns_have_their_scope():
    page = table(["a", "b"], [["x", 1], ["y", 2]])._repr_html_()
    assert page.count('scope="row"') == 2 and page.count('scope="col"') == 2


def test_text_in_a_cell_is_no_markup():
    page = table(["<a>", "b"], [["<script>alert(1)</script>", "x & y"]], note="<i>", title="<b>")._repr_html_()
    assert "<script" not in page and "<i>" not in page and "<b>" not in page and "x &amp; y" in page


@pytest.mark.parametrize("value", [[1, 2, 3], (1, "a"), {"a": 1, "b": [2, 3]}, {3, 1}, ("x", None, True), [[0, 1], [2, 3]], 2.0**40, 1e-9])
def test_no_python_is_shown(value):
    for shown in (table(["a", "b"], [["r", value]])._repr_html_(), repr(table(["a", "b"], [["r", value]])),
                  named(("x", value))._repr_mimebundle_()["text/html"], repr(named({"x": value}))):
        assert not re.search(r"[\[\](){}']|None|True|e[-+]\d", words(shown)), shown


def test_named_results_and_equations():
    x = sp.Symbol("x")
    results = named(("time", 3.1e-3, "s"), ("groups", [[0, 1], [2, 3]]), ("equal", True))
    assert repr(results) == "time = 3.1 ms\ngroups = 0, 1; 2, 3\nequal = ✓"
    assert words(results._repr_mimebundle_()["text/html"]) == "time 3.1 ms groups 0, 1; 2, 3 equal ✓"
    equations = named(("R", x/2), ("t", r"\frac12"), ("T", ring_all_reduce_time))._repr_mimebundle_()
    assert "text/html" not in equations and r"R &= \frac{x}{2}" in equations["text/latex"] and r"\beta" in equations["text/latex"]


@pytest.mark.parametrize("make, said", [
    (lambda: table(["a", "b"], [[1]]), r"row \[1\] has 1 cells; the head has 2"),
    (lambda: table(["a", "b"], {"x": [1, 2]}), "row .*'x', 1, 2.* has 3 cells; the head has 2"),
    (lambda: table(["a", "b"], [["x", 1]], format={"c": "s"}), "column 'c'; allowed: 'a', 'b'"),
    (lambda: table(["a", "b"], [["x", 1]], format={"b": 3}), "format of 'b' is 3; allowed: a unit"),
    (lambda: table(["a", "b"], [["x", 1]], mark="y"), "mark is 'y'; allowed: .*'x'"),
    (lambda: table(["a", "b"], [["x", 1]], bar="c"), "bar is 'c'; allowed: .*'a', 'b'"),
    (lambda: table(["a", "b"], [["x", -1]], bar="b"), "bar: the column 'b' is .*-1.*; allowed: finite numbers from 0"),
    (lambda: table(["a", "b"], [["x", "no"]], bar=1), "bar: the column 'b' is .*no.*; allowed"),
    (lambda: named("a", 1), r"named: 'a'; allowed: \(name, value\)"),
    (lambda: named(("a",)), r"named: \('a',\); allowed")])
def test_bad_ones_are_refused_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


# ---- in Chromium
class Shown:
    def __init__(self, thing):
        self.thing = thing

    def to_html(self):
        data = self.thing._repr_html_() if hasattr(self.thing, "_repr_html_") else self.thing._repr_mimebundle_()["text/html"]
        return f'<div class="bd-article" style="margin: 0 8px">{data}</div>'


LONG = "torch.distributed.tensor.parallel.ColwiseParallel"
HARD = [
    table(["library", "option", "ranks", "what it does"],
          [["Megatron-LM", "`--tensor-model-parallel-size`", 8, "all-reduce, slice, reduce-scatter"],
           ["PyTorch", f"`{LONG}`", 4, "`init_device_mesh`"]],
          title="Two libraries", note="Names as of 2026."),
    table(["part", "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "forward", "backward", "total"],
          [["Llama 3 70B, attention", 12, 13.5, 14, 15, 1_000_000, 17, 1_000_000], ["mlp", 12, 13, 14, 15, 16, 17, 5]]),
    table(["ranks", "time", "sent", "ok"], ROWS, format={"time": "s", "sent": "B"}, bar="time"),
    table(["a", "b"], [["x", 1.5], ["y", 2.5]]),
    table(["layout", "sent forward", "GFLOP of Llama 3 70B", "kB a token", "R"],
          [["columns, parts, rows", 4, 1.71, show(57.3*KiB, "B"), 12.88]], mark=0),
    named(("a name that takes quite some room of its line", 3.0), ("groups", [list(range(12)), list(range(12, 30))])),
]
FAULTS = """() => [...document.querySelectorAll('.cx-table, .cx-named')].flatMap((box) => { const b = box.getBoundingClientRect();
    return [...box.querySelectorAll('*')].filter((e) => { const r = e.getBoundingClientRect();
        return r.width && (r.right > b.right + 1 || r.left < b.left - 1); })
      .concat(b.right > innerWidth || box.scrollWidth > box.clientWidth + 1 ? [box] : []).map((e) => e.outerHTML.slice(0, 80)); })"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("page"), map(Shown, HARD)) as tab:
        yield tab


@pytest.mark.parametrize("width", [1280, 768, 375, 320])
def test_no_table_is_wider_than_its_box_and_no_number_leaves_it(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate(FAULTS) == []
    assert page.errors == []
    seen = page.locator("body").inner_text()
    for number in "1,000,000", "13.5", "12.9", "52 ms", "1.97 GB", "1.71":
        assert number in seen


def test_identifiers_break_after_a_dot_or_not_at_all(page):
    """The lines of a code, read off its characters' boxes, end where a name ends."""
    lines = """() => [...document.querySelectorAll('.cx-table code')].map((code) => { const out = []; let last = null;
        const walk = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) for (let i = 0; i < walk.currentNode.length; i++) { const r = document.createRange();
            r.setStart(walk.currentNode, i); r.setEnd(walk.currentNode, i + 1); const y = Math.round(r.getBoundingClientRect().top);
            if (y !== last) { out.push(''); last = y; } out[out.length - 1] += walk.currentNode.data[i]; }
        return out; })"""
    broken = 0
    for width in 1280, 375:
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(lines)
        assert "".join(found[1]) == LONG
        for code in found:
            broken += len(code) - 1
            assert all(line[-1] in ".,/=" for line in code[:-1]), code
    assert broken, "nothing was broken: the test is blind"


def test_a_row_that_does_not_fit_a_phone_keeps_each_number_with_its_head(page):
    page.set_viewport_size({"width": 375, "height": 900})
    cells = page.locator(".cx-cards").nth(1).locator("tbody tr").first.locator("td")
    tops = [round(cells.nth(k).bounding_box()["y"]) for k in range(cells.count())]
    assert len(set(tops)) == 7
    labels = page.eval_on_selector_all(".cx-cards:nth-of-type(1) td", "es => es.map((e) => getComputedStyle(e, '::before').content)")
    assert '"reduce-scatter"' in labels and all(len(s) > 2 for s in labels)




def test_a_column_of_numbers_stands_right_though_one_is_missing():
    t = table(["", "missing", "multiple", "word", "none"],
              [["a", "-3%", "2.5 ×", "1", "-"], ["b", None, "none", "one", "–"], ["c", "12.5 %", "17 ×", "2", ""]])
    assert t.right == [False, True, True, False, False]
    assert t.text[0] == ["a", "−3 %", "2.5 ×", "1", "–"]
    assert table(["of", "off", "shares"], [["a", "-0.00", "9.6%, -3.1%"]]).text == [["a", "0.00", "9.6 %, −3.1 %"]]
    assert table(["knob", "default"], [["`--x -1`", "-1: all"]]).text == [["`--x -1`", "-1: all"]]      # no number


def test_bars_begin_where_the_longest_number_ends():
    shown = table(["", "bytes"], [["a", 5e8], ["b", 67e6]], bar="bytes", format={"bytes": "B"})._repr_html_()
    assert 'style="--chars:6"' in shown and "--chars" not in table(["a"], [[1]])._repr_html_()
