"""Guesses, answers, quick questions: complete without a script, alive with one, bad ones refused by name."""
import html
import json
import random
import re

import numpy as np
import pytest
from javascript import run
from figures import opened
from test_tables import Shown, words

from capacity import answer, guess, ms, quiz
from capacity.pictures.questions import Scale

LOG = dict(lo=2, hi=512)
SLIPS = {"both directions counted as $\\beta$": 24, "peak with sparsity": 6, "network cards, not NVLink": 2,
         "a slip with quite a long and winding name": 3.5}
THREE = [("What does a fourth rank cost, when $t=4$?",
          [("Nothing", False, "It sends too; see `ring`."), ("Time", True, "Every hop waits.")]),
         ("What halves?",
          [("the time <b>", True, "Twice the links."), ("the bytes", False, "All are sent."), ("both", False, "One does.")]),
         ("Is one rank a group?", [("yes", True, "Of one."), ("no", False, "It is.")])]


def make_guess(**more):
    return guess("ranks", 24, "GPUs", question="How many GPUs share a layer?", **LOG | more)


def make_answer(**more):
    return answer("ranks", 24, 12, "GPUs", **LOG | dict(others=SLIPS, also={"what you can buy: a node of eight": 8}) | more)


def test_the_page_does_not_say_what_the_notebooks_reader_guessed():
    """Only a script knows who reads; the text of the notebook does."""
    assert "24" not in words(make_guess()._repr_html_()) and "You said" not in make_answer()._repr_html_()
    assert repr(make_guess()).endswith("24 GPUs") and repr(make_answer()).startswith("You said 24 GPUs; it is 12 GPUs.")
    assert repr(make_guess(anchor="A node has 8.")) == repr(make_guess())
    assert "A node has 8." in make_guess(anchor="A node has 8.")._repr_html_()
    assert repr(answer("ranks", None, 12, "GPUs", **LOG, others={})) == "it is 12 GPUs."
    assert guess("a", None, "", question="?", lo=0, hi=1, scale="linear").value is None


def test_what_people_act_on_is_no_slip():
    kinds = {k: kind for k, _, kind in make_answer().rows()}
    assert kinds["what you can buy: a node of eight"] == "also" and kinds["peak with sparsity"] == "slip"
    assert kinds["computed above"] == "truth"
    values = [v for _, v, _ in make_answer().rows()]
    assert values == sorted(values, reverse=True) and len(values) == 6


def test_an_answer_takes_a_guess():
    g = make_guess()
    assert make_answer().guess == answer("ranks", g, 12, "GPUs", **LOG, others={}).guess == 24


@pytest.mark.parametrize("lo, hi, scale, unit", [(2, 512, "log", "GPUs"), (0, .1, "linear", "s"), (1e-6, 1e3, "log", "s"),
                                                 (.01, 1, "log", "%"), (-5, 5, "linear", "")])
def test_ticks_are_in_order_and_apart(lo, hi, scale, unit):
    s = Scale("x", lo, hi, scale, unit)
    at = [x for x, _ in s.ticks()]
    assert 2 <= len(at) <= 7 and at == sorted(at) and 0 <= at[0] and at[-1] <= 100
    assert min(b - a for a, b in zip(at, at[1:])) > 8 and len({t for _, t in s.ticks()}) == len(at)


def test_labels_of_a_scale_do_not_touch():
    from capacity.pictures.shapes import width
    many = Scale("x", 1, 1_000_000, "log", "pieces of a layer").ticks()
    assert many and all(2.7*b[0] - width(b[1])/2 > 2.7*a[0] + width(a[1])/2 for a, b in zip(many[1:], many[2:-1]))


def test_the_page_reads_numbers_of_numpy():
    values = re.findall('data-value="(.*?)"', answer("ranks", 24, np.float64(12.5), "GPUs", others={"x": np.int64(3)}, **LOG)._repr_html_())
    assert [float(v) for v in values] == [12.5, 3]


def test_the_page_places_values_where_python_places_them():
    rng = random.Random(2)
    scales = [Scale("x", *a, "") for a in ((2, 512, "log"), (0, .1, "linear"), (1e-6, 1e3, "log"), (-5.0, 5, "linear"))]
    values = [[s.lo + (s.hi - s.lo)*rng.uniform(-.1, 1.1)**3 for _ in range(50)] for s in scales]
    got, said = run("""return [data.scales.map((s, i) => data.values[i].map((v) => 100*cx.place(s, v))),
        data.scales.map((s) => Array.from({ length: 1001 }, (_, k) => cx.guessed(s, k/1000)))];""",
                    {"scales": [s.spec() for s in scales], "values": values})
    for s, vs, xs, guesses in zip(scales, values, got, said):
        assert xs == pytest.approx([s.at(v) for v in vs], abs=1e-9)
        assert guesses == sorted(guesses) and guesses[0] == s.lo and guesses[-1] == s.hi
        assert not s.whole or all(g == int(g) for g in guesses)


@pytest.mark.parametrize("make, said", [
    (lambda: make_guess(lo=0), "guess 'ranks': lo is 0 and hi 512; allowed: .* above 0"),
    (lambda: make_guess(lo=600), "guess 'ranks': lo is 600 and hi 512"),
    (lambda: make_guess(hi=float("inf")), "guess 'ranks': hi is inf; allowed: finite"),
    (lambda: make_guess(scale="cubic"), "scale is 'cubic'; allowed: 'log', 'linear'"),
    (lambda: guess("ranks", 1000, "GPUs", question="?", **LOG), "value is 1000; allowed: from 2 to 512"),
    (lambda: guess("Ranks!", 10, "GPUs", question="?", **LOG), "guess name 'Ranks!'"),
    (lambda: make_answer(others={"a": "b"}), "answer 'ranks': a is 'b'; allowed: finite"),
    (lambda: make_answer(others={"x": 3}, also={"x": 3}), "'x' is in others and in also"),
    (lambda: quiz("q"), "quiz 'q': no question"),
    (lambda: quiz("q", "What?", [("a", True, "b")]), "'What\\?' has 1 options, 1 of them right"),
    (lambda: quiz("q", "What?", [("a", True, "b"), ("c", True, "d")]), "2 of them right; allowed: .* exactly one right"),
    (lambda: quiz("q", "What?", [("a", True, ""), ("c", False, "d")]), r"the option \('a', True, ''\) of 'What\?'; allowed"),
    (lambda: quiz("q", "What?", [("a", 1, "b"), ("c", False, "d")]), r"the option \('a', 1, 'b'\)"),
    (lambda: quiz("q", ["What?"]), r"quiz 'q': \['What\?'\]; allowed")])
def test_bad_ones_are_refused_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_quiz_is_complete_without_a_script():
    page = quiz("three", *THREE)._repr_html_()
    assert page.count("<details>") == 7 and page.count('data-right="1"') == 3 and "<b>✓ Right.</b> Every hop waits." in page
    assert "Three quick questions" in page and "the time &lt;b&gt;" in page and r"\(t=4\)" in page and "<script" not in page
    assert "One quick question" in quiz("one", *THREE[0])._repr_html_()
    assert repr(quiz("one", *THREE[0])).splitlines()[2] == "   ✗ Nothing: It sends too; see `ring`."


def test_no_handler_no_request_and_the_same_bytes_every_time():
    for make in make_guess, make_answer, lambda: quiz("three", *THREE):
        page = make()._repr_html_()
        assert page == make()._repr_html_() and not re.search(r"\son\w+=|https?://|<script", page)
        for spec in re.findall("data-spec='(.*?)'", page):
            assert json.loads(html.unescape(spec))["lo"] == 2


def test_a_slider_in_jupyterlab_sets_the_value():
    for g in make_guess(), guess("a", None, "s", question="?", lo=0, hi=100*ms, scale="linear"):
        slider = g.widget().children[1].children[0]
        slider.value = 1e9                             # which it clamps
        assert g.value == g.scale.hi
        assert any("widget-view" in k for k in g._repr_mimebundle_())


# ---- in Chromium
@pytest.fixture(scope="module")
def page(tmp_path_factory):
    things = [make_guess(anchor="A node has 8."), guess("lin", None, "s", question="How long?", lo=0, hi=100*ms, scale="linear"),
              make_answer(), quiz("three", *THREE)]
    with opened(tmp_path_factory.mktemp("page"), map(Shown, things), prepare=lambda tab: tab.add_init_script(
            "window.told = []; addEventListener('cx-guess', (e) => told.push(e.detail));")) as tab:
        yield tab


def move(page, name, key, times=1):
    for _ in range(times):
        page.locator(f"#ask-{name}").press(key)


def test_a_guess_is_remembered_told_and_placed(page):
    page.reload()
    assert "You have not guessed" in page.locator(".cx-answer > p").inner_text() and page.evaluate("told") == []
    page.locator("#ask-ranks").dispatch_event("input")                  # as long as a finger drags it
    assert page.evaluate("told") == [] and page.evaluate("localStorage['book:guess:ranks']") is None
    move(page, "ranks", "End")
    assert page.evaluate("told") == ["ranks"] and page.evaluate("localStorage['book:guess:ranks']") == "512"
    said = page.locator(".cx-answer > p").inner_text()
    assert said == "You said 512 GPUs; it is 12 GPUs. Your guess is 43 times too high."
    assert page.locator(".cx-strip > li").first.inner_text().split() == ["you", "512", "GPUs"]
    assert page.get_by_role("slider", name="How many GPUs share a layer?").get_attribute("aria-valuetext") == "512 GPUs"
    page.reload()
    page.wait_for_timeout(100)
    assert page.evaluate("told") == ["ranks"], "an answer that was opened opens again"
    assert page.locator(".cx-answer > p").inner_text() == said
    move(page, "ranks", "Home")
    assert page.locator(".cx-strip > li.you").inner_text().split() == ["you", "2", "GPUs"]
    assert "slip" in page.locator(".cx-answer > p").inner_text()
    page.evaluate("localStorage.clear()")


def test_who_asks_is_told_without_a_guess(page):
    page.evaluate("localStorage.clear()")
    page.reload()
    page.get_by_role("button", name="Just tell me").nth(1).press("Enter")
    assert page.evaluate("told") == ["lin"] and page.evaluate("localStorage['book:told:lin']") == "1"
    assert page.locator("#ask-lin").get_attribute("aria-valuetext") == "no guess yet"
    page.reload()
    page.wait_for_timeout(100)
    assert page.evaluate("told") == ["lin"]
    said = page.locator("[data-answer=ranks]")
    assert "not guessed" in said.inner_text()
    page.get_by_role("button", name="Just tell me").nth(0).press("Enter")
    assert "not guessed" not in said.inner_text()
    page.reload()
    page.wait_for_timeout(100)
    assert "not guessed" not in said.inner_text()
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("width", [1280, 768, 375, 320])
def test_each_row_keeps_its_label_its_number_and_its_track(page, width):
    """The falsehood of a strip that wraps: a number beside another row's label."""
    page.set_viewport_size({"width": width, "height": 900})
    move(page, "ranks", "End")
    rows = page.evaluate("""() => [...document.querySelectorAll('.cx-strip > li')].map((li) => [li, ...li.children].map((e) => {
        const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })
        .concat([[li.querySelector('span').innerText, li.querySelector('b').innerText]]))""")
    want = {words(k): v for k, v, _ in make_answer().rows()} | {"you": 512}
    assert len(rows) == 7
    box = page.locator(".cx-answer").bounding_box()
    for (whole, label, number, track, said), after in zip(rows, [*rows[1:], None]):
        for part in (label, number, track):
            assert whole[0] - 1 <= part[0] and part[2] <= whole[2] + 1 and whole[1] - 1 <= part[1] and part[3] <= whole[3] + 1
        assert label[1] < number[3] and number[1] < label[3] and label[2] <= number[0] + 1, "label and number stand in one line"
        assert after is None or whole[3] <= after[0][1] + 1, "rows lie one below the other"
        assert whole[2] <= box["x"] + box["width"] + 1 <= width + 1
        name, value = said[0].replace("\\(", "$").replace("\\)", "$"), float(said[1].split()[0])
        assert want[name] == value
    order = [float(r[-1][1].split()[0]) for r in rows]
    assert order == sorted(order, reverse=True)
    dots = page.eval_on_selector_all(".cx-strip i > i", """(all) => all.map((e) => { const r = e.getBoundingClientRect();
        return (r.left + r.right)/2; })""")
    assert dots == sorted(dots, reverse=True)
    page.evaluate("localStorage.clear()")


def test_a_question_is_answered_by_the_keyboard(page):
    page.reload()
    why = page.locator(".cx-quiz [role=status]")
    assert page.locator(".cx-quiz details").count() == 0 and why.first.inner_text() == ""
    page.get_by_role("button", name="Nothing").press("Enter")
    assert why.first.inner_text() == "✗ No. It sends too; see ring."
    assert page.get_by_role("button", name="Nothing").get_attribute("aria-expanded") == "true"
    page.get_by_role("button", name="Time", exact=True).press(" ")
    assert why.nth(1).inner_text() == "✓ Right. Every hop waits." and why.first.inner_text() != ""
    page.get_by_role("button", name="Nothing").press("Enter")
    assert why.first.inner_text() == "" and page.errors == []
