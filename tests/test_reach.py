"""What is wide finds room beside the column; what is drawn can be reached and read by keyboard."""
import pytest
from built import opened

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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_is_wider_than_the_column_takes_the_room_beside_it(book, chapter):
    page = book.visit(f"chapters/{chapter}.html")
    for width in (1400, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(ROOM)
        assert (found["small"], found["over"], found["scrolls"]) == (0, 0, False), (width, found)
        assert (found["wide"] > found["column"] + 20) == (chapter != CHAPTERS[2])
    page.emulate_media(media="print")
    assert page.evaluate(ROOM)["wide"] <= page.evaluate("document.querySelector('.bd-article').clientWidth") + 1
