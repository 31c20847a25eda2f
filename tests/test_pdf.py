"""The book on paper: the preface, a chapter, its exercises and the bibliography, printed and joined as the whole is."""
import os
import re
import shutil
import subprocess
from collections import Counter
from io import BytesIO
from itertools import chain

import pytest

import browser
import built
import make_pdf

NAMES = ["preface", "chapters/12-ring-and-tree-algorithms", "exercises/12-ring-and-tree-algorithms", "appendices/bibliography"]
MARGIN = 20*72/25.4                                          # of paper.css, in points


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The reader of a small book; of each page the text, and its pieces with their height and face; its file."""
    if not browser.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browser.MISSING)
    if not (built.HTML/"index.html").exists():
        pytest.fail(f"no built book in {built.HTML}: make html")
    out = tmp_path_factory.mktemp("pdf")/"book.pdf"
    make_pdf.make([page for page in make_pdf.contents() if page.name in NAMES], out)
    pdf = make_pdf.PdfReader(out)
    texts, drawn = zip(*map(read, pdf.pages))
    return pdf, texts, drawn, out


@pytest.fixture(scope="module")
def site():
    with built.opened() as site:
        yield site


def words(text):
    return re.sub(r"\W+", "", text)


def read(page):
    """Its text, and (height on the page, text, face) of each piece that holds a word."""
    found = []
    def piece(text, cm, tm, font, size):
        if re.search(r"\w", text):
            found.append((tm[5]*cm[3] + cm[5], text.strip(), str((font or {}).get("/BaseFont", "drawn"))))
    return page.extract_text(visitor_text=piece), found


def test_every_chapter_is_there_and_no_solution():
    names = [page.name for page in make_pdf.contents()]
    chapters = sorted(f"chapters/{path.stem}" for path in (make_pdf.ROOT/"chapters").glob("*.ipynb"))
    assert sorted(n for n in names if n.startswith("chapters/")) == chapters
    assert [n.replace("chapters/", "exercises/") for n in names if n.startswith("chapters/")] \
        == [n for n in names if n.startswith("exercises/")]
    assert names[0] == "preface" and names[-1] == "appendices/bibliography" and "appendices/formulas" in names
    assert not [n for n in names if n.startswith("solutions/")]


def test_bookmarks_lead_to_their_headings(book):
    pdf, texts, drawn, _ = book
    def flat(items, above=()):
        title = None
        for item in items:
            if isinstance(item, list):
                yield from flat(item, (*above, title))
            else:
                title = item.title
                yield (*above, title), item
    marks = list(flat(pdf.outline))
    paths = [path for path, _ in marks]
    assert ("Part III · The algebra of collectives", "12 · Ring and tree algorithms", "Understand: two bounds and no way to have both",
            "The rules of the game") in paths
    assert ("Part III · The algebra of collectives", "12 · Ring and tree algorithms", "Exercises", "12.1 The classic ring") in paths
    for path, mark in marks:
        if len(path) > 1 and path[-1] != "Exercises":
            assert words(path[-1]) in words(texts[pdf.get_destination_page_number(mark)]), path


def test_contents_name_the_pages_where_headings_are(book):
    pdf, texts, drawn, _ = book
    rows = re.findall(r"^(.*?\D)\s*(\d+)$", texts[1], re.M)
    assert [title.strip() for title, _ in rows] == ["Preface", "12 · Ring and tree algorithms", "Exercises", "Bibliography"]
    for title, number in rows:
        k = pdf.page_labels.index(number)
        height, first, _ = max(piece for piece in drawn[k] if piece[0] < float(pdf.pages[k].mediabox.height) - 22*72/25.4)
        assert words(title).startswith(words(first)) or words(first).startswith(words(title)), (title, number, first)


def test_every_page_has_its_number_and_a_running_head(book):
    pdf, texts, drawn, _ = book
    assert pdf.page_labels[:3] == ["i", "ii", "1"]
    names = {"Preface", "12 · Ring and tree algorithms", "Exercises 12 · Ring and tree algorithms", "Bibliography"}
    without = 0
    for page, label, here in list(zip(pdf.pages, pdf.page_labels, drawn))[2:]:
        top = float(page.mediabox.height) - MARGIN
        assert "".join(t for h, t, _ in here if h < MARGIN - 9) == label
        head = [t for h, t, _ in here if h > top]
        without += not head
        assert not head or names & set(head), head
    assert without == len(NAMES)                             # the page that a title opens


def test_links_stay_in_the_book_and_reach_what_they_name(book):
    pdf, texts, drawn, _ = book
    numbers = {page.indirect_reference.idnum: k for k, page in enumerate(pdf.pages)}
    last = pdf.get_destination_page_number(pdf.outline[-1][-1])
    cited = 0
    for page in pdf.pages:
        for annotation in (a.get_object() for a in page.get("/Annots", [])):
            assert "/Dest" not in annotation
            action = annotation["/A"]
            if action["/S"] == "/URI":
                assert re.match(r"https://(?!127\.)", action["/URI"]), action["/URI"]
                continue
            assert action["/S"] == "/GoTo"
            there = numbers[list.__getitem__(action["/D"], 0).idnum]
            assert 0 <= action["/D"][3] <= page.mediabox.height
            cited += there >= last
    assert cited > 15                                        # of chapter 12, each to its entry in the bibliography


def test_nothing_of_the_screen_is_printed(book):
    text = "\n".join(book[1])
    for word in ("Click to", "Reset", "Values as a table", "Skip to main", "Back to top", "further check", "NoneType", "Right or wrong"):
        assert word not in text
    assert "assert [ended[r]" not in text                    # a check of the exercises
    assert "What the marks stand for" in text and "One rank a round for P - 1 rounds" in text
    assert not re.search("^References$", text, re.M)         # what is cited stands in the bibliography


def test_an_explorer_stays_on_one_page_wherever_it_begins(site):
    """Its title, what is set, the picture and what it says: one explorer sixteen times, each a centimetre and a half lower."""
    page = site.context.new_page()
    page.goto(f"{site.address}{NAMES[1]}.html")
    page.add_style_tag(path=make_pdf.PAPER/"paper.css")
    page.evaluate(make_pdf.TYPESET)
    page.evaluate((make_pdf.PAPER/"paper.js").read_text(), {"page": NAMES[1], "book": [], "address": site.address, "site": ""})
    page.emulate_media(media="print")
    told = page.evaluate("""() => {
        const figure = document.querySelector("figure.cx-explore"), article = document.querySelector(".bd-article");
        article.replaceChildren(...[...Array(16).keys()].flatMap((k) => {
            const above = document.createElement("div");
            above.style = `height: ${15*k + 15}mm; break-before: page`;
            return [above, figure.cloneNode(true)];
        }));
        return [...figure.querySelectorAll(":scope > figcaption, .cx-controls label, .cx-controls output, .cx-read > p")].map((p) => p.textContent);
    }""")
    pages = [words(sheet.extract_text()) for sheet in make_pdf.PdfReader(BytesIO(make_pdf.paper(page))).pages]
    page.close()
    assert len(told) > 3
    title = [text for text in pages if words(told[0]) in text]
    assert len(title) == 16 and all(words(part) in text for text in title for part in told)
    assert any(words(told[0]) not in text for text in pages[1:])             # some did not fit where they began


def test_the_answers_keep_their_mathematics(book):
    page = next(text for text in book[1] if "and ten is even" in text)
    assert "2L − 1 L = 4" in page                            # a formula is drawn after the text around it


def test_the_text_is_set_in_the_face_of_the_site(book):
    """Code and signs that the face lacks come from the machine; no letter of the text does."""
    found = Counter()
    for _, text, face in chain(*book[2]):
        found[face.split("+")[-1]] += len(re.findall("[A-Za-z]", text))
    others = {face for face, letters in found.items() if letters and not re.search("Mono|Courier|drawn", face)}
    assert len(others) == 1 and found[others.pop()] > 30_000, found


def test_a_card_of_a_formula_is_open_and_has_no_calculator(site):
    page = site.context.new_page()
    page.goto(f"{site.address}appendices/formulas.html")
    page.add_style_tag(path=make_pdf.PAPER/"paper.css")
    page.evaluate("document.querySelector('.bd-article').dataset.kind = 'formulas'")       # as paper.js does
    page.emulate_media(media="print")
    seen = """(s) => [...document.querySelectorAll(s)].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height).length"""
    assert page.evaluate(seen, ".cx-card td:nth-child(3)") == page.locator(".cx-card td:nth-child(3)").count() > 1000
    assert page.evaluate(seen, ".cx-filter, .cx-card input, .cx-card > summary, .cx-screen") == 0
    astray = page.evaluate("""() => [...document.querySelectorAll("section:has(> .cx-card)")].filter((card) => {
        const parts = ["h3", "p", ".math", ".cx-card td:nth-child(2)"].map((s) => card.querySelector(s).getBoundingClientRect());
        return parts.some((part, k) => k && part.top < parts[k - 1].bottom - 1) || parts[0].left !== parts[1].left;
    }).map((card) => card.id)""")
    assert not astray                                     # its name, what it says, the mathematics, the letters: one below the other


@pytest.mark.skipif(not shutil.which("pdftotext") and not os.environ.get("CI"), reason="the edges of words come from poppler's pdftotext")
def test_no_word_leaves_the_page(book):
    *_, out = book
    boxes = subprocess.run(["pdftotext", "-bbox", out, "-"], capture_output=True, text=True, check=True).stdout
    words = re.findall(r'<word xMin="([\d.-]+)" yMin="[\d.-]+" xMax="([\d.-]+)" yMax="[\d.-]+">(.*?)</word>', boxes)
    width = 210*72/25.4
    assert len(words) > 5000
    assert not [word for left, right, word in words if re.search(r"\w", word) and (float(left) < MARGIN - 10 or float(right) > width - MARGIN + 6)]
