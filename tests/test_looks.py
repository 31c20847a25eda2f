"""Looks: rows of cards are full and show their window alone, checks are folded lines, sums break at a plus."""
import layers
import pytest
from built import HTML, PHONE, opened

from capacity.formulas import REGISTRY

FULL = """() => [...document.querySelectorAll('.cx-cards')].map(row => {
    const right = e => Math.round(e.getBoundingClientRect().right);
    return [right(row.lastElementChild), right(row)] })"""


# Pairs of things in a row of cards of which one covers part of the other.
COVERED = """() => [...document.querySelectorAll('.cx-cards')].flatMap(row => { const all = [...row.children].map(e => e.getBoundingClientRect());
    return all.flatMap((a, i) => all.slice(i + 1).filter(b => Math.min(a.right, b.right) > Math.max(a.left, b.left) + 1
        && Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top) + 1).map(b => [a.x, a.y, b.x, b.y])); })"""


@pytest.fixture(scope="module")
def book():
    with opened() as book:
        yield book


@pytest.fixture(scope="module")
def index(book):
    """One visit for the tests that come first, the last of which change its width."""
    return book.visit("index.html")


def test_a_card_shows_nothing_beside_its_window(index):
    assert set(index.evaluate("[...document.querySelectorAll('.cx-card > svg')].map(s => getComputedStyle(s.firstElementChild).overflow)")) == {"hidden"}


def test_the_map_is_open_before_the_cards(index):
    assert index.evaluate("document.querySelector('#map figure').getBoundingClientRect().height") > 300
    assert index.evaluate("document.querySelector('#map').compareDocumentPosition(document.querySelector('.cx-cards'))") == 4


@pytest.mark.parametrize("width", [1920, 1280, 768])
def test_every_row_of_cards_is_full(index, width):
    index.set_viewport_size({"width": width, "height": 900})
    assert len(found := index.evaluate(FULL)) == 8 and all(last == row for last, row in found)


@pytest.mark.parametrize("width", [1920, 1280, 768, 375])
def test_no_card_covers_another(index, width):
    index.set_viewport_size({"width": width, "height": 900})
    assert index.locator(".cx-card").count() == 42 and index.evaluate(COVERED) == []


def test_a_phone_shows_whose_numbers_it_scrolls_to(book):
    """In the tables of machines the name stays; what stands below them is no list of dots; and the bar over a page says what is switched there."""
    page = book.visit("appendices/hardware.html")
    page.set_viewport_size(PHONE)
    for box in page.locator(".pst-scrollable-table-container").all():
        moved = box.evaluate("""e => { e.scrollLeft = 30; const name = e.querySelector('td'), [a, b] = [name, name.nextElementSibling].map(c => c.getBoundingClientRect());
            return [e.scrollLeft, a.left - e.getBoundingClientRect().left, a.right > b.left, getComputedStyle(name).backgroundColor]; }""")
        assert moved[:3] == [30, 0, True] and moved[3] != "rgba(0, 0, 0, 0)"
    dots = page.locator("section#accelerators > ul").evaluate("e => [getComputedStyle(e).listStyleType, e.getBoundingClientRect().left - e.parentElement.getBoundingClientRect().left, getComputedStyle(e).paddingLeft]")
    assert dots == ["none", 0, "0px"]
    page = book.visit("exercises/04-alpha-beta-model.html")
    for width, said in ((375, True), (320, False)):
        page.set_viewport_size({"width": width, "height": 812})
        assert page.locator(".cx-codes legend").is_visible() == said and page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_table_of_words_is_read_downwards_on_a_phone(book):
    """Row by row, each cell below its head, and none is cut; where there is room it is a table, and tables of numbers are tables everywhere."""
    page = book.visit("solutions/17-sequence-parallelism-decomposability.html")
    table, cells = page.locator("table.cx-stack"), page.locator("table.cx-stack tbody tr:first-child td")
    assert table.count() == 1 and len(set(cells.evaluate_all("all => all.map(c => c.getBoundingClientRect().top)"))) == 1
    page.set_viewport_size(PHONE)
    boxes = cells.evaluate_all("all => all.map(c => { const b = c.getBoundingClientRect(); return [b.left, b.top, b.right]; })")
    assert len(boxes) == 4 and len({round(left) for left, *_ in boxes}) == 1 and boxes == sorted(boxes, key=lambda b: b[1]) and max(b[2] for b in boxes) < 375
    said = cells.evaluate_all("all => all.map(c => getComputedStyle(c, '::before').content)")
    assert ["points" in said[0], *said[1:]] == [True, '"full"', '"half"', '"nothing"']
    stacked = {name: (HTML/f"{name}.html").read_text(encoding="utf-8").count("cx-stack") for name in
               ("labs/README", "appendices/corrections", "appendices/hardware", "appendices/formulas", "appendices/quick-reference")}
    assert list(stacked.values()) == [2, 2, 0, 0, 0]


@pytest.mark.parametrize("number", ["4.1", "3a.2", "31b.8"])
def test_a_check_is_workshop(number):
    assert layers.read(f"# check {number}\nassert True")[:2] == ("workshop", "check")


def test_exercises_show_where_the_check_is_and_solutions_no_marker():
    page = (HTML/"exercises/31b-inference-inner-loop.html").read_text(encoding="utf-8")
    assert page.count("The check of 31b.") == 9 and "At $2 for a GPU and hour" in page
    assert "SOLUTION" not in (HTML/"solutions/15-tensor-parallelism-linearity.html").read_text(encoding="utf-8")


def test_a_long_sum_breaks_at_a_plus_outside_brackets():
    broken = 0
    for f in REGISTRY.values():
        lines = f.narrow.removeprefix(r"\begin{aligned}&").removesuffix(r"\end{aligned}").split(r"\\&") if f.narrow != f.latex else [f.latex]
        assert "".join(lines) == f.latex and len(lines) <= 2
        if len(lines) == 2:
            broken += 1
            assert len(f.latex) >= 150 and lines[1].startswith(" + ")
            assert all(line.count(a) == line.count(b) for line in lines for a, b in (("{", "}"), (r"\left", r"\right")))
    assert 0 < broken < len(REGISTRY)/2


@pytest.mark.parametrize("stem", ["04-alpha-beta-model", "08-chinchilla-optimality", "15-tensor-parallelism-linearity",
                                  "17-sequence-parallelism-decomposability"])
def test_no_line_of_a_listing_wraps(book, stem):
    """A long one is scrolled to, and keys reach it: a listing is as high as its lines are many."""
    page = book.visit(f"exercises/{stem}.html")
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    wrapped = page.evaluate("""[...document.querySelectorAll('.cell_input pre')].filter(e => e.checkVisibility()).map(e => {
        const s = getComputedStyle(e), lines = e.textContent.trimEnd().split('\\n').length;
        return [e.clientHeight - parseFloat(s.paddingTop) - parseFloat(s.paddingBottom), lines*parseFloat(s.lineHeight), e.textContent.slice(0, 60)];
    })""")
    assert len(wrapped) > 10 and [w for w in wrapped if w[0] > w[1] + 2] == []
