"""The book on paper: a chapter, its exercises and the bibliography, printed and joined as the whole is."""
import re
import shutil
import subprocess

import pytest

import browser
import built
import make_pdf

NAMES = ["chapters/12-ring-and-tree-algorithms", "exercises/12-ring-and-tree-algorithms", "appendices/bibliography"]
MARGIN = 20*72/25.4                                          # of paper.css, in points


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The reader of a small book, and its file."""
    if not browser.find():
        pytest.skip(browser.MISSING)
    if not (built.HTML/"index.html").exists():
        pytest.fail(f"no built book in {built.HTML}: make html")
    out = tmp_path_factory.mktemp("pdf")/"book.pdf"
    make_pdf.make([page for page in make_pdf.contents() if page.name in NAMES], out)
    pdf = make_pdf.PdfReader(out)
    return pdf, [page.extract_text() for page in pdf.pages], out


def words(text):
    return re.sub(r"\W+", "", text)


def pieces(page):
    """(height on the page, text) of what stands on it."""
    found = []
    page.extract_text(visitor_text=lambda text, cm, tm, *_: found.append((tm[5]*cm[3] + cm[5], text.strip())))
    return [piece for piece in found if re.search(r"\w", piece[1])]


def test_every_chapter_is_there_and_no_solution():
    names = [page.name for page in make_pdf.contents()]
    chapters = sorted(f"chapters/{path.stem}" for path in (make_pdf.ROOT/"chapters").glob("*.ipynb"))
    assert sorted(n for n in names if n.startswith("chapters/")) == chapters
    assert [n.replace("chapters/", "exercises/") for n in names if n.startswith("chapters/")] \
        == [n for n in names if n.startswith("exercises/")]
    assert names[0] == "preface" and names[-1] == "appendices/bibliography" and "appendices/formulas" in names
    assert not [n for n in names if n.startswith("solutions/")]


def test_bookmarks_lead_to_their_headings(book):
    pdf, texts, _ = book
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
    pdf, texts, _ = book
    rows = re.findall(r"^(.*?\D)\s*(\d+)$", texts[1], re.M)
    assert [title.strip() for title, _ in rows] == ["12 · Ring and tree algorithms", "Exercises", "Bibliography"]
    for title, number in rows:
        page = pdf.pages[pdf.page_labels.index(number)]
        height, first = max((h, t) for h, t in pieces(page) if h < float(page.mediabox.height) - 22*72/25.4)
        assert words(title).startswith(words(first)) or words(first).startswith(words(title)), (title, number, first)


def test_every_page_has_its_number_and_a_running_head(book):
    pdf, texts, _ = book
    assert pdf.page_labels[:3] == ["i", "ii", "1"]
    names = {"12 · Ring and tree algorithms", "Exercises 12 · Ring and tree algorithms", "Bibliography"}
    without = 0
    for page, label in list(zip(pdf.pages, pdf.page_labels))[2:]:
        top = float(page.mediabox.height) - MARGIN
        here = pieces(page)
        assert "".join(t for h, t in here if h < MARGIN - 9) == label
        head = [t for h, t in here if h > top]
        without += not head
        assert not head or names & set(head), head
    assert without == len(NAMES)                             # the page that a title opens


def test_links_stay_in_the_book_and_reach_what_they_name(book):
    pdf, texts, _ = book
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
    for word in ("Click to", "Reset", "Values as a table", "Skip to main", "Back to top", "further check", "NoneType"):
        assert word not in text
    assert "assert [ended[r]" not in text                    # a check of the exercises
    assert "What the marks stand for" in text and "One rank a round for P - 1 rounds" in text


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="the edges of words come from poppler's pdftotext")
def test_no_word_leaves_the_page(book):
    *_, out = book
    boxes = subprocess.run(["pdftotext", "-bbox", out, "-"], capture_output=True, text=True, check=True).stdout
    words = re.findall(r'<word xMin="([\d.-]+)" yMin="[\d.-]+" xMax="([\d.-]+)" yMax="[\d.-]+">(.*?)</word>', boxes)
    width = 210*72/25.4
    assert len(words) > 5000
    assert not [word for left, right, word in words if re.search(r"\w", word) and (float(left) < MARGIN - 10 or float(right) > width - MARGIN + 6)]
