"""The pictures that chapters keep as SVG, all of them in Chromium at once: no words over words, none cut off, none too small."""
import html
import json

import pytest

from figures import ROOT, browser_page, one_answer

# Words of one picture in pixels of the screen; the middle of a letter's box is what is seen of it.
WORDS = """() => [...document.querySelectorAll("section")].map((s) => [...s.querySelectorAll("svg:not(svg svg)")].filter((svg) => svg.getBoundingClientRect().height).map((svg) => {
    const whole = svg.getBoundingClientRect(), shown = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
    return [whole.width, whole.height, shown.map((t) => { const b = t.getBoundingClientRect(), m = t.getScreenCTM(), cut = .22*b.height;
        return [t.textContent, b.left - whole.left, b.right - whole.left, b.top - whole.top + cut, b.bottom - whole.top - cut,
            parseFloat(getComputedStyle(t).fontSize)*Math.hypot(m.a, m.b)]; })];
}))"""
LEAST, SLACK = 9, 3             # pixels: of a letter, and of what may hang out


def saved():
    """(chapter and cell, figure) of all pictures in the outputs of the chapters."""
    for path in sorted((ROOT/"chapters").glob("*.ipynb")):
        for i, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            for output in cell.get("outputs", []):
                shown = "".join(output.get("data", {}).get("text/html", ""))
                if '<figure class="cx-sketch' in shown:
                    yield f"{path.stem}, cell {i}", shown


def defects(pictures, names):
    """What is wrong, a line each."""
    for name, drawn in zip(names, pictures):
        for wide, high, words in drawn:
            for k, (text, x0, x1, y0, y1, size) in enumerate(words):
                if size < LEAST:
                    yield f"{name}: {text!r} is {size:.1f} px high"
                if min(x0, y0) < -SLACK or x1 > wide + SLACK or y1 > high + SLACK:
                    yield f"{name}, {wide:.0f} px: {text!r} hangs out"
                for other, u0, u1, v0, v1, _ in words[:k]:
                    if min(x1, u1) - max(x0, u0) > 1 and min(y1, v1) - max(y0, v0) > 1:
                        yield f"{name}, {wide:.0f} px: {text!r} lies on {other!r}"


@pytest.fixture(scope="module")
def tab():
    with browser_page() as tab:
        yield tab


@pytest.fixture(scope="module")
def page(tab, tmp_path_factory):
    return tmp_path_factory.mktemp("figures")/"page.html"


def show(tab, page, figures):
    style = "".join((ROOT/"_static"/name).read_text(encoding="utf-8") for name in ("book.css", "form.css"))
    page.write_text(f"""<!doctype html><meta charset="utf-8"><style>{style}</style><style>body {{ margin: 16px; font-family: sans-serif; }}
        .cx-scene[hidden] {{ display: block !important; }}</style><body class="bd-article">{"".join(f"<section>{f}</section>" for f in figures)}""", encoding="utf-8")
    tab.goto(page.as_uri())


def looked_at(tab, wide):
    tab.set_viewport_size({"width": wide + 32, "height": 900})
    return tab.evaluate(WORDS)


@pytest.fixture(scope="module")
def pictures(tab, page):
    """The names of all pictures, which the tab shows: ten megabytes, once for both widths."""
    names, figures = zip(*saved())
    assert len(figures) > 150
    show(tab, page, figures)
    return names


@pytest.mark.parametrize("wide", [680, 343])
def test_words_of_figures_can_be_read(tab, pictures, wide):
    found = list(dict.fromkeys(defects(looked_at(tab, wide), pictures)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("words, said", [
    ('<text x="10" y="20">one</text><text x="20" y="22">two</text>', "'two' lies on 'one'"),
    ('<text x="190" y="20">beyond</text>', "'beyond' hangs out"),
    ('<text x="10" y="20" font-size="8">small</text>', "'small' is 8.0 px high"),
])
def test_a_defect_is_seen(tab, page, words, said):
    """After all pictures, for it shows another."""
    picture = f'<figure class="cx-sketch"><svg viewBox="0 0 200 40" width="200" height="40" font-size="12">{words}</svg></figure>'
    show(tab, page, [picture])
    found = list(defects(looked_at(tab, 343), ["here"]))
    assert len(found) == 1 and said in html.unescape(found[0])


PRINTED = """import sys, hashlib; sys.path[:0] = ['tests', 'tools']
import test_chart, test_explorer, test_player
charts = [*map(test_chart.make, ('few', 'own'))]
played = [f() for f in test_explorer.GALLERY.values()] + [*map(test_player.make, ('ring', 'nodes', 'tree'))]
files = [E.to_html() + E.text() for E in charts] + [E.to_html() + str(E.traces()) for E in played]
for file, E in zip(files, charts + played):
    print(hashlib.sha256(file.encode() + E.png()).hexdigest())"""


def test_files_are_the_same_in_every_process():
    """Charts, explorers and players: each file, its text or its traces, and its PNG."""
    assert len({*one_answer(PRINTED).split()}) == 13
