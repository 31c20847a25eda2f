"""The page that opens the book: it plays, shows every chapter, quotes what cells computed, and gives the package away."""
import html
import json
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import landing
import publish
import pytest
import reading
from built import DESK, HTML, PHONE, RESTS, compressed, opened

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = list(reading.NEEDS)
INDEX = (HTML/"index.html").read_text(encoding="utf-8")
PLAYING = """() => new Promise(done => { const figure = document.querySelector('.cx-stepper'), words = () => figure.querySelector('[aria-live]').textContent;
    const first = words(); setTimeout(() => done([first !== words(), figure.querySelector('.cx-buttons button:nth-child(3)').textContent]), 1800); })"""
WORDS = """() => [...document.querySelectorAll('.cx-card text')].filter(t => !t.getAttribute('transform')).map(t =>
    [t.closest('.cx-card').querySelector('h4').textContent, parseFloat(getComputedStyle(t).fontSize)*t.getScreenCTM().a])"""


@pytest.fixture(scope="module")
def book():
    with opened() as book:
        yield book


@pytest.mark.parametrize("size, most", [(DESK, 11000), (PHONE, 10100)])
def test_a_picture_plays_on_the_first_screen_and_nothing_is_cut(book, size, most):
    page = book.visit("index.html")
    page.set_viewport_size(size)
    page.evaluate(RESTS)
    moved, button = page.evaluate(PLAYING)
    assert moved and button == "Pause"
    assert page.evaluate("document.querySelector('.cx-stepper .cx-picture').getBoundingClientRect().bottom") < size["height"]
    assert page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") <= [size["width"], most]
    named = "[...document.querySelectorAll('h1, .navbar-brand, .bd-sidebar-primary a')].filter(e => e.checkVisibility() && e.textContent.trim().startsWith(title)).map(e => e.tagName)"
    assert page.evaluate(f"title => {named}", landing.citation()["title"]) == ["H1"], "the title stands there once"
    small = [w for w in page.evaluate(WORDS) if w[1] < 8]
    assert not small, "letters of a card's picture that nobody can read"
    assert page.locator(".cx-thesis p > a:visible").count() == 3
    page.emulate_media(media="print")
    assert page.locator(".cx-thesis p > a:visible").count() == 0, "a button that a printer makes white on white"
    assert page.evaluate("typeof window.MathJax?.startup") == "undefined" and page.log.failed == page.log.external == []


def test_it_waits_until_it_is_seen_and_ends_by_itself(book):
    page = book.visit("index.html#part-IV")
    step = page.locator(".cx-stepper input[type=range]")
    page.wait_for_timeout(300)
    assert step.input_value() == "0", "it plays to nobody"
    page.mouse.move(600, 500)
    page.mouse.wheel(0, -20_000)
    page.wait_for_function("document.querySelector('.cx-stepper input[type=range]').value === '1'", timeout=3000)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(1700)
    assert step.input_value() == "1" and page.get_by_role("button", name="Play").count() == 1
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.cx-stepper .cx-buttons button:nth-child(3)').textContent === 'Play'", timeout=15_000)
    assert step.input_value() == step.get_attribute("max")


def test_it_rests_where_somebody_asked_for_less_motion(book):
    context = book.chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(book.address + "index.html")
    assert page.evaluate(PLAYING) == [False, "Play"]
    context.close()


def test_the_page_is_light():
    """With its scripts and styles, as the test of all pages counts them: here what is the page's own."""
    assert compressed(HTML/"index.html") < 90_000


def test_a_page_loads_what_typesets_mathematics_if_it_has_some():
    loads = {name: "mathjax/startup.js" in (HTML/name).read_text(encoding="utf-8") for name in
             ("index.html", "chapters/12-ring-and-tree-algorithms.html", "appendices/formulas.html")}
    assert list(loads.values()) == [False, True, True]


def test_every_chapter_has_a_card_with_its_question_picture_and_minutes():
    cards = re.findall(r'<article class="cx-card cx-sketch"><svg viewBox="[\d. -]+" [^>]*>.+?</svg><h4><a href="([^"]+)">(.*?)</a></h4><p>(.*?)</p>'
                       r"<p>(\d+) minutes</p></article>", INDEX, re.S)
    assert [c[0] for c in cards] == [f"chapters/{reading.stems()[c]}.html" for c in CHAPTERS]
    for (link, title, question, minutes), chapter in zip(cards, CHAPTERS):
        page = (HTML/link).read_text(encoding="utf-8")
        assert title.startswith(f"{chapter} · ") and f"About {minutes} minutes." in page
        assert html.unescape(question).replace("\u00a0", " ") == landing.question(chapter)
    ids = re.findall(r'\bid="([^"]+)"', INDEX)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_question_can_be_read_out_of_its_page(chapter):
    """Words alone, and none that points to what stands above it."""
    question = landing.question(chapter)
    assert len(question.split()) <= 30 and not re.search(r"[$`{}\[\]*]", question)
    assert not re.search(r"\b(these|those|now)\b|\bthis (?!book)|\bof the [\d,]+\b", question), question


def test_a_way_names_its_chapters():
    """Not by a number alone: nobody on a phone sees a tooltip."""
    shown = INDEX[INDEX.index('id="three-ways-through"'):INDEX.index('id="the-chapters"')]
    ways = [(stem, re.sub("<[^>]+>", "", words)) for stem, words in re.findall(r'<a [^>]*href="chapters/([^"]+)\.html"[^>]*>(.*?)</a>', shown)]
    short = {reading.stems()[c]: f"{c} {name}" for c, name in reading.SHORT.items()}
    assert len(ways) == sum(len(chapters) for chapters, *_ in reading.PATHS.values())
    assert [html.unescape(words).replace("\u00a0", " ") for _, words in ways] == [short[stem] for stem, _ in ways]


def test_the_parts_are_those_of_the_contents():
    assert list(landing.titles()) == list(landing.QUESTIONS) == list(reading.PARTS)
    assert all(f'<h3 id="part-{part}">{part} · {title}</h3>' in INDEX for part, title in landing.titles().items())


def test_the_picture_of_a_shared_link_has_room_for_its_words(book, tmp_path):
    """One for the book and one for each chapter; nothing of them sticks out of the sheet or of its half."""
    (tmp_path/"sheet.html").write_text(landing.sheet(), encoding="utf-8")
    page = book.context.new_page()
    page.goto((tmp_path/"sheet.html").as_uri())
    page.evaluate("document.fonts.ready")
    cards = page.evaluate("""[...document.querySelectorAll('section')].map(s => { const box = s.getBoundingClientRect(), said = [...s.children].map(e => e.getBoundingClientRect());
        return [s.id, box.width, box.height, Math.max(...said.map(b => b.bottom - box.top)), Math.max(...said.slice(0, 3).map(b => b.right)), said[3].left, said[3].width]; })""")
    faces = page.evaluate("[...document.fonts].map(f => f.status)")
    page.close()
    assert faces == ["loaded", "loaded"] and [c[0] for c in cards] == ["book", *reading.stems().values()]
    for name, *size, lowest, right, left, wide in cards:
        assert (size, lowest <= 610, right < left, wide > 400) == ([*publish.SHARED], True, True, True), name


# ---- the findings, read a second time out of what the chapters saved
def rows(chapter, begins):
    return [re.findall(r"([\d.]+) s\b", line) for line in landing.said(chapter).split("\n") if re.match(begins, line)]


def test_the_findings_are_what_the_cells_computed():
    found = re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]+>", "", INDEX)).replace("\u00a0", " "))
    measured = [r[2] for r in rows("20", r"175B +(768|1,536) ")][:2]
    assert measured[0] == measured[1] and found.count(f"{measured[0]} s") >= 3            # here twice, and in the chapter's question
    sums = [float(r[3]) for r in rows("23", r"[tpd], [tpd], [tpd] ") if len(r) == 4]
    assert len(sums) == 6 and f"{max(sums):.2f} s of sending in a step" in found and f"In the best one it is {min(sums):.2f} s." in found
    assert f"{re.search(r'it is (.+?)[.]', landing.said('28'))[1]} is what becomes of a step of 348 ms" in found
    assert "348 ms with all of it" in landing.said("28")


def test_a_finding_that_no_cell_computed_stops_the_build(monkeypatch):
    monkeypatch.setattr(landing, "said", lambda chapter: "")
    with pytest.raises(LookupError, match="chapter 20: no output holds"):
        landing.findings()


# ---- the package
def test_one_version_and_one_date():
    version, date = re.search(r"^## ([\d.]+), (\d{4}-\d\d-\d\d)$", (ROOT/"CHANGELOG.md").read_text(), re.M).groups()
    assert tomllib.loads((ROOT/"pyproject.toml").read_text())["project"]["version"] == landing.citation()["version"] == version
    assert str(landing.citation()["date-released"]) == date and f"This is version {version} of " in INDEX


def test_the_site_carries_the_package(tmp_path):
    assert f'<a href="{publish.wheel_name()}" download' in INDEX
    with zipfile.ZipFile(HTML/publish.wheel_name()) as archive:
        archive.extractall(tmp_path)
    program = "import capacity; print(capacity.__file__, capacity.model('llama3-70b').params)"
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{tmp_path}/capacity/__init__.py", "70553706496"]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A Python with the packages of this one, without the book's, and a folder with the wheel."""
    folder = tmp_path_factory.mktemp("elsewhere")
    packages = folder/"packages"
    packages.mkdir()
    for path in {p for s in sys.path if s.endswith("site-packages") for p in Path(s).iterdir()}:
        if not path.name.startswith(("capacity", "__editable__")):
            (packages/path.name).symlink_to(path)
    venv.create(folder/"env", symlinks=True)
    (folder/publish.wheel_name()).write_bytes((HTML/publish.wheel_name()).read_bytes())
    return folder


# Without the grammar of web addresses that nbformat would build, for half a second.
RUN = """
import sys
sys.modules["rfc3987_syntax"] = None
import nbformat
from nbclient import NotebookClient
for name in sys.argv[1:]:
    nb = nbformat.read(name, as_version=4)
    nb.cells = [c for c in nb.cells if c.cell_type == "code"][:2]
    assert "%pip install" in nb.cells[0].source and "from capacity import" in nb.cells[1].source
    nb.cells.append(nbformat.v4.new_code_cell("import capacity; print(capacity.__file__)"))
    NotebookClient(nb, timeout=120, kernel_name="python3").execute()
    print(nb.cells[-1].outputs[-1].text, end="")
"""


def test_a_downloaded_chapter_begins_where_only_its_wheel_is(elsewhere):
    """Its second cell installs the package; the first of the two does, the other finds it.  What the wheel holds, test_wheel.py says."""
    names = ["11-collective-primitives.ipynb", "32-profiling-distributed-training.ipynb"]
    for name in names:
        (elsewhere/name).write_bytes((HTML/"_sources/chapters"/name).read_bytes())
    done = subprocess.run([elsewhere/"env/bin/python", "-c", RUN, *names], cwd=elsewhere, capture_output=True, text=True,
                          env={"PYTHONPATH": str(elsewhere/"packages"), "PATH": f"{elsewhere}/env/bin:/usr/bin:/bin", "HOME": str(elsewhere)})
    found = done.stdout.split()
    assert done.returncode == 0 and len(found) == 2 and all(path.startswith(f"{elsewhere}/env") for path in found), done.stderr[-2000:]


def test_only_the_copy_that_is_downloaded_is_changed():
    for chapter in CHAPTERS:
        stem = reading.stems()[chapter]
        given = json.loads((HTML/f"_sources/chapters/{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
        cell = "".join(given.pop(1)["source"])
        kept = reading.cells("chapters", chapter)                     # links beside the notebook are words in the copy
        for one in kept:
            if one["cell_type"] == "markdown":
                one["source"] = publish.alone("".join(one["source"]), "", "chapters").splitlines(keepends=True)
        assert given == kept and f"%pip install --quiet ./{publish.wheel_name()}" in cell
        assert ("run it in a clone" in cell) == ('Path("../' in json.dumps(given).replace('\\"', '"') or 'Path(".")' in json.dumps(given).replace('\\"', '"'))


def test_an_address_turns_on_the_links():
    address = "https://github.com/owner/name"
    run, cite = landing.run(address), landing.cite(address)
    assert f"git clone {address} book" in run and f"pip install https://owner.github.io/name/{publish.wheel_name()}" in run
    assert f"({address}/issues)" in cite and "url     = {https://owner.github.io/name/}" in cite
    assert "http" not in landing.run("") + landing.cite("") and "Tell whoever gave you this book" in landing.cite("")
