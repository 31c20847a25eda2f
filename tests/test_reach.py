"""What is wide finds room beside the column; what is drawn can be reached and read by keyboard."""
import pytest
import reading
from built import ROOT, opened

CHAPTERS = ["36-case-study-mistral-mixtral", "16-pipeline-parallelism-separability", "04-alpha-beta-model"]      # the last one has a note
ROOM = """() => { const box = e => e.getBoundingClientRect(), all = [...document.querySelectorAll('.cx-chart .cx-wide > svg, .cx-gantt')].filter(e => box(e).width);
    const beside = [...document.querySelectorAll('.bd-sidebar-secondary, aside.margin')].map(box);
    return { wide: Math.max(...all.map(e => box(e).width)), column: box(document.querySelector('.bd-article section > p')).width,
        small: all.filter(e => e.viewBox && box(e).width < e.getAttribute('width') - 1).length,
        over: all.map(box).filter(a => beside.some(b => a.right > b.left && a.left < b.right && (b.height > innerHeight/2 || a.bottom > b.top && a.top < b.bottom))).length,
        scrolls: document.documentElement.scrollWidth > innerWidth }; }"""


@pytest.fixture(scope="module")
def book():
    with opened() as book:
        yield book


@pytest.fixture(scope="module")
def page(request, book):
    return book.visit(f"chapters/{request.param}.html")


def of(*chapters):
    """A test of one visit to each of these chapters; what changes its width comes last."""
    return pytest.mark.parametrize("page", chapters, indirect=True, scope="module")


@of("04-alpha-beta-model")
def test_what_is_read_has_one_face_and_what_is_operated_another(page):
    face = """s => [...new Set([...document.querySelectorAll(s)].filter(e => e.checkVisibility()).map(e => getComputedStyle(e).fontFamily.split(',')[0]))]"""
    assert page.evaluate(face, ".bd-sidebar-primary nav a, .bd-sidebar-secondary a, .prev-next-area p, .bd-article p:not(figure *)") == ['"Book Serif"']
    assert page.evaluate(face, ".cx-codes span, .search-button, .cx-switches span, .cx-controls label, .cx-picture text, .cx-sketch text:not([font-style])") == ["system-ui"]


@of("16-pipeline-parallelism-separability")
def test_the_button_of_the_code_stands_where_its_picture_leaves_room(page):
    """In the box of what has one, beside a table; the room is told by the cell's own tags."""
    apart = """s => [...document.querySelectorAll(`.cell.tag_workshop:has(> .cell_output ${s}) > .cx-shop > summary`)].filter(e => e.checkVisibility()).map(e => {
        const b = e.getBoundingClientRect(), p = e.closest('.cell').querySelector(s).getBoundingClientRect();
        return [Math.round(p.right - b.right), Math.round(b.top - p.top)]; })"""
    inside = page.evaluate(apart, ":is(.cx-gantt, .cx-explore, .cx-stepper, .cx-scenes, .cx-ask, .cx-decide, .cx-quiz)")
    beside = page.evaluate(apart, ":is(.cx-table, .cx-named)")
    assert len(inside) >= 5 and all(0 < right < 20 and 0 < top < 40 for right, top in inside), inside
    assert len(beside) > 2 and all(right < 0 for right, _ in beside), beside


@of(*CHAPTERS)
def test_what_is_wider_than_the_column_takes_the_room_beside_it(page):
    for width in (1400, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(ROOM)
        assert (found["small"], found["over"], found["scrolls"]) == (0, 0, False), (width, found)
        assert (found["wide"] > found["column"] + 20) == (CHAPTERS[2] not in page.url)
    page.emulate_media(media="print")
    assert page.evaluate(ROOM)["wide"] <= page.evaluate("document.querySelector('.bd-article').clientWidth") + 1


def test_the_parts_of_a_bar_are_read_by_keys(book):
    """Tab leads to the picture, arrows from part to part and from bar to bar; what is heard is what the table says."""
    page = book.visit("chapters/19-memory-equation.html")
    figure = page.locator("#fit")
    box, told, mark = figure.locator(".cx-picture"), figure.locator(".cx-told"), figure.locator(".cx-hair text")
    figure.locator(".cx-controls input").last.focus()
    page.keyboard.press("Tab")
    assert box.evaluate("e => e === document.activeElement") and told.get_attribute("aria-live") == "polite"
    figure.locator("summary").evaluate("e => e.click()")
    rows = figure.locator("table").evaluate("t => [...t.rows].map(r => [...r.cells].map(c => c.textContent))")
    bars, parts, limit = rows[0][1:], dict((r[0], r[1:]) for r in rows[1:-2]), rows[-1]
    total = dict(zip(bars, rows[-2][1:]))
    shown = [[p, parts[p][0]] for p in parts if parts[p][0] and not parts[p][0].startswith("0 ")]
    for part, value in shown:
        page.keyboard.press("ArrowRight")
        assert told.text_content() == f"{bars[0]}, {part}: {value}" and mark.text_content() == f"{part}: {value}"
    page.keyboard.press("ArrowRight")
    assert told.text_content().startswith(f"{bars[0]}, total: {total[bars[0]]}; ") and limit[1] in told.text_content()
    page.keyboard.press("ArrowDown")
    assert told.text_content().startswith(f"{bars[1]}, ")
    page.keyboard.press("ArrowUp")
    assert told.text_content() == f"{bars[0]}, {shown[0][0]}: {shown[0][1]}"
    page.keyboard.press("Escape")
    assert told.text_content() == "" and mark.count() == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    assert told.text_content() == "" and mark.count() == 0 and page.log.console == []
    box.focus()
    page.keyboard.press("ArrowRight")
    page.add_script_tag(path=ROOT/"tests/axe/axe.min.js")
    assert page.evaluate("async () => (await axe.run('#fit', { resultTypes: ['violations'] })).violations.map(v => [v.id, v.nodes[0].html])") == []


@pytest.mark.parametrize("width", [1280, 375])
def test_a_box_of_the_map_leads_to_its_chapter(book, width):
    page = book.visit("index.html")
    page.set_viewport_size({"width": width, "height": 900})
    boxes = page.locator("#chapters a:visible")
    assert [h.split("/")[1] for h in boxes.evaluate_all("all => all.map(a => a.getAttribute('href'))")] == [f"{reading.stems()[c]}.html" for c in reading.NEEDS]
    assert boxes.evaluate_all("all => Math.min(...all.flatMap(a => { const b = a.getBoundingClientRect(); return [b.width, b.height]; }))") >= 24
    assert page.get_by_role("link", name="4 · The α-β model, builds on 3", exact=True).count() == 1
    boxes.first.focus()
    page.keyboard.press("Tab")
    ring = boxes.nth(1).locator("rect").last
    assert boxes.nth(1).evaluate("a => a === document.activeElement") and ring.evaluate("r => getComputedStyle(r).strokeWidth") == "3px"
    assert boxes.nth(2).locator("rect").last.evaluate("r => getComputedStyle(r).strokeWidth") == "1px"
    page.keyboard.press("Enter")
    page.wait_for_url("**/chapters/02-*")
    assert page.title().startswith("2 · ")


def test_a_phone_breaks_no_word_of_a_switch_and_no_name_of_a_card(book):
    """Rows of switches that have no room beside their label go below it; where a table's rows are cards, a name has the card's width."""
    page = book.visit("chapters/06-estimation-discipline.html")
    page.set_viewport_size({"width": 375, "height": 812})
    lines = page.locator(".cx-switches span:visible").evaluate_all("all => all.map(s => s.getBoundingClientRect().height/parseFloat(getComputedStyle(s).lineHeight))")
    assert lines and max(lines) < 1.9 and page.locator(".cx-below").count() and page.locator(".cx-switches fieldset:not(.cx-below)").count() == 0
    whole = page.locator(".cx-cards tbody th.num").evaluate_all("all => all.map(e => e.getBoundingClientRect().width > .9*e.parentElement.getBoundingClientRect().width)")
    assert whole and all(whole)
    assert page.locator(".cx-cards thead th:visible").count() == page.locator(".cx-cards thead:visible").count()
    wide = """document.querySelectorAll('details:not([open])').forEach(d => { d.open = true; }), new Promise(done => setTimeout(() =>
        done([...document.querySelectorAll('.cx-proof pre')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.tabIndex)), 100))"""
    assert {*page.evaluate(wide)} == {0}, "unfolded, what scrolls is reached by keys"


def test_boxes_are_asked_at_once_whether_they_scroll(book):
    """A few layouts when a page becomes narrow, not one for each box, folded ones too; keys reach what scrolls, and only while it does."""
    page = book.visit("chapters/20-zero-sharding.html")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    count = lambda: next(m["value"] for m in devtools.send("Performance.getMetrics")["metrics"] if m["name"] == "LayoutCount")
    before = count()
    page.set_viewport_size({"width": 375, "height": 812})
    page.wait_for_timeout(600)
    boxes, layouts = page.locator(".bd-article pre").count(), count() - before
    devtools.detach()
    assert boxes > 40 and layouts < boxes/2, (boxes, layouts)
    stops = """() => [...document.querySelectorAll('.bd-article pre')].filter(e => e.checkVisibility()).map(e => [e.scrollWidth > e.clientWidth, e.tabIndex])"""
    for width in 375, 1280:
        page.set_viewport_size({"width": width, "height": 812})
        page.wait_for_timeout(600)
        assert {(False, -1)} <= {tuple(x) for x in page.evaluate(stops)} <= {(True, 0), (False, -1)}
