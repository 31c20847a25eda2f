"""Type: the search at all widths, faces that come late, the page of formulas, one print of a letter.

What is asked of other pages, the face of the text, its sizes, headings, tables and paper, is in test_book.py: there they are open.
"""
import json
import re
from collections import defaultdict

import built
import make_appendices
import make_fonts
import measure
import pytest

from capacity.grammar import REGISTRY

CHAPTER = "chapters/04-alpha-beta-model.html"


@pytest.fixture(scope="module")
def book():
    with built.opened() as book:
        yield book


def test_the_search_fits_its_window_and_its_paper(book):
    """What is seen has words below it; on paper stand the results, those that nobody saw without a gap, and nothing to operate."""
    page = book.visit("search.html?q=router")
    page.set_viewport_size(built.PHONE)
    page.locator("#search-results .context mark").first.wait_for(timeout=10_000)
    unseen = page.locator("#search-results .context:empty").count()
    for width in (375, 768, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": measure.PAPER, "height": 700})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= measure.PAPER and unseen > 0
    assert page.locator(".bd-main :is(input, button):visible").count() == 0 and page.locator("#search-results li > a:visible").count() == 10
    assert page.evaluate("[...document.querySelectorAll('#search-results .context:empty')].filter(e => e.checkVisibility()).length") == 0
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 3000})
    page.wait_for_function("[...document.querySelectorAll('#search-results .context')].every(p => p.textContent.length > 20)", timeout=15_000)


def test_the_text_does_not_jump_when_its_face_arrives(book):
    """Fonts that come half a second late move the first screen by less than a tenth."""
    page = book.context.new_page()
    page.route("**/fonts/serif-*.woff2", lambda route: (page.wait_for_timeout(500), route.continue_()))
    page.add_init_script("window.moved = 0; new PerformanceObserver(l => l.getEntries().forEach(e => { window.moved += e.value; }))"
                         ".observe({ type: 'layout-shift', buffered: true })")
    page.goto(book.address + CHAPTER, wait_until="load")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(1000)
    assert page.evaluate("[...document.fonts].some(f => f.family.includes('Book Serif') && f.status === 'loaded')")
    assert page.evaluate("window.moved") < .1
    page.close()


def test_the_face_is_light_and_has_every_sign_of_the_text():
    files = sorted(make_fonts.FONTS.glob("*.woff2"))
    assert [f.stem for f in files] == sorted(f"serif-{cut}" for cut in make_fonts.CUTS)
    assert sum(f.stat().st_size for f in files) < 60_000 and (make_fonts.FONTS/"LICENSE").exists()
    prose = "".join("".join(c["source"]) for p in (make_appendices.ROOT/"chapters").glob("*.ipynb")
                    for c in json.loads(p.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "markdown")
    letters = {c for c in re.sub(r"\$[^$]*\$|`[^`]*`", "", prose) if c.isalpha()}
    assert {c for c in letters if ord(c) not in make_fonts.SIGNS} <= set("ₑᵀ")


# ---- the page of formulas
@pytest.fixture(scope="module")
def formulas(book):
    """One visit for the tests that follow: it is the longest page."""
    return book.visit("appendices/formulas.html")


def test_the_formulas_stand_close(formulas):
    page = formulas
    assert page.evaluate("document.documentElement.scrollHeight") < 130*page.locator("details.cx-card").count()
    page.evaluate("location.hash = '#tree-all-reduce-time'")
    page.evaluate(built.RESTS)
    bar, head = page.locator(".cx-filter").bounding_box(), page.locator("section#tree-all-reduce-time h3").bounding_box()
    assert head["y"] >= bar["y"] + bar["height"]


def test_a_formula_is_found_and_computed(formulas):
    page = formulas
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    page.fill(".cx-filter input", "all-reduce ring latency")
    assert 0 < page.locator("details.cx-card:visible").count() < len(REGISTRY)/4
    page.fill(".cx-filter input", "ring_all_reduce_time")
    section = page.locator("section#ring-all-reduce-time")
    assert page.locator("details.cx-card:not([open]) mjx-container").count() == 0, "what nobody sees is not typeset"
    section.locator("summary").click()
    section.locator("tbody mjx-container").nth(3).wait_for()
    assert section.locator("tbody mjx-container").count() == section.locator("tbody tr").count() == 4
    for name, value in dict(n="1e9", P="8", alpha="2e-6", beta="450e9").items():
        section.get_by_label(name, exact=True).fill(value)
    expected = REGISTRY["ring_all_reduce_time"](n=1e9, P=8, alpha=2e-6, beta=450e9)
    assert float(re.search(r"= ([\d.,e-]+) s", section.locator("output").inner_text())[1]) == pytest.approx(expected, rel=1e-5)
    section.get_by_label("P", exact=True).fill("0")
    assert section.locator("output").inner_text() == "P = 0; allowed: a count, at least 1."
    section.get_by_label("P", exact=True).fill("8")
    for n, said in {"1e-3": "= 28 µs", "1e18": "= 45.0103 days", "": "Type a number in each row; 1e9 is a billion.",
                    "-1": "n = -1; allowed: B, at least 0."}.items():
        section.get_by_label("n", exact=True).fill(n)
        assert section.locator("output").inner_text().replace("\u00a0", " ") == said
    page.fill(".cx-filter input", "allreduce")
    assert page.locator("details.cx-card:visible").count() > 20, "whatever joins its words"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    letters = page.locator("details.cx-card td:first-child .math")
    page.wait_for_function("n => document.querySelectorAll('details.cx-card td:first-child mjx-container').length === n", arg=letters.count())
    assert letters.count() > 1000 and page.locator(".cx-tex").count() == 0
    assert page.log.console == []


def test_every_formula_has_its_calculator():
    page = (make_appendices.PAGES/"formulas.md").read_text(encoding="utf-8")
    assert page.count('<details class="cx-card"') == len(REGISTRY)


# ---- one notation
SUBSCRIPTED = re.compile(r"(\\[a-zA-Z]+|(?<![a-zA-Z\\{])[A-Za-z])_(\{(?:[^{}]|\{[^{}]*\})*\}|[A-Za-z0-9]|\\(?:mathrm|text) ?\w)")
UPRIGHT = re.compile(r"\\(?:mathrm|text|operatorname|rm)")


def prints(tex):
    """{letter with its index: {whether the index is upright}} of TeX."""
    found = defaultdict(set)
    for letter, index in SUBSCRIPTED.findall(tex):
        found[letter + "_" + re.sub(r"[{}\s]", "", UPRIGHT.sub("", index))].add(bool(UPRIGHT.search(index)))
    return found


def test_both_prints_are_told_apart():
    assert prints(r"T_f + T_{\mathrm{f}} + T_\mathrm f") == {"T_f": {True, False}}


@pytest.mark.parametrize("path", sorted((make_appendices.ROOT/"chapters").glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_letter_is_printed_in_one_way(path):
    tex = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            tex += re.findall(r"\$\$?(.+?)\$", "".join(cell["source"]), re.S)
        for output in cell.get("outputs", []):
            for kind in ("text/latex", "text/html", "text/markdown"):
                tex += re.findall(r"\$\$?(.+?)\$|\\\((.+?)\\\)" if kind == "text/html" else r"\$\$?(.+?)\$()", "".join(output.get("data", {}).get(kind, [])), re.S)
    found = prints("  ".join(t if isinstance(t, str) else "".join(t) for t in tex))
    assert {letter: ways for letter, ways in found.items() if len(ways) > 1} == {}
