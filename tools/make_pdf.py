"""Print the built book as one PDF: its pages in the order of _toc.yml, with contents, bookmarks, running heads and links.

    python tools/make_pdf.py _build/The-Algebra-of-Distributed-Training.pdf

Chromium prints each page of _build/html (tools/pdf/paper.js and paper.css make it fit for paper), pypdf joins them. What lives
on the screen alone stays there: solutions, the planner, the quiz, the labs. A link to such a page leads to the published book
if _config.yml names a repository; else it is words.
"""
import re
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from html import escape
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, Fit, FloatObject, NameObject, NullObject, TextStringObject

import browser
from publish import site
from serve import serve

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT/"_build/html"
PAPER = ROOT/"tools/pdf"
SCREEN = re.compile(r"solutions/|labs/|plan$|questions$|toolkit$|teach$|appendices/package$")
WORKERS = 2
TYPESET = """async () => {
    await window.MathJax?.startup?.promise;
    document.querySelectorAll(".cx-tex").forEach((e) => { e.className = "math"; });      // what waits on the screen until its card opens
    document.querySelectorAll(".cx-quiz [data-right='1'] button").forEach((b) => b.click());      // its reason is typeset when it opens
    await window.MathJax?.typesetPromise?.([]);
    await window.MathJax?.startup?.document?.lazyTypesetAll?.();
}"""

Page = namedtuple("Page", "name part")                      # a page of the site, and the part of the book that it is in
Sheets = namedtuple("Sheets", "page pdf heads")             # the same on paper; heads: (level, id, text) of its headings


def contents():
    """The pages that the PDF holds, in the order of _toc.yml."""
    def walk(entries, part):
        for entry in entries:
            if not SCREEN.search(entry["file"]):
                yield Page(entry["file"], part)
            yield from walk(entry.get("sections", []), part)
    parts = yaml.safe_load((ROOT/"_toc.yml").read_text(encoding="utf-8"))["parts"]
    return [page for part in parts for page in walk(part["chapters"], part.get("caption", ""))]


def paper(tab):
    """The tab as it stands, printed."""
    return tab.pdf(prefer_css_page_size=True, print_background=True)


def printed(pages, book, address):
    """Pages of the site on paper, one after the other in one browser."""
    prepare = (PAPER/"paper.js").read_text(encoding="utf-8")
    told = {"book": [f"{address}{page.name}.html" for page in book], "address": address, "site": published()}
    sheets = []
    with browser.chromium() as chromium:
        for page in pages:
            tab = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
            tab.goto(f"{address}{page.name}.html", wait_until="load")
            tab.add_style_tag(path=PAPER/"paper.css")
            tab.evaluate(TYPESET)
            heads = tab.evaluate(prepare, {"page": page.name, **told})
            tab.set_viewport_size({"width": 643, "height": 900})          # the width of the text on paper: explorers draw themselves anew
            tab.emulate_media(media="print")
            tab.evaluate("document.fonts.ready.then(() => cxFit())")
            sheets.append(Sheets(page, PdfReader(BytesIO(paper(tab))), heads))
            tab.close()
    return sheets


def html(body, style, address):
    """A page that is not on the site, in the site's face."""
    css = (PAPER/"paper.css").read_text(encoding="utf-8")
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><link rel="stylesheet" href="{address}_static/book.css">'
            f'<style>{css}{style}</style><body class="cx-paper">{body}</body></html>')


def written(tab, body, address, style=""):
    """A page that is not on the site, on paper."""
    tab.goto(f"{address}_static/book.css")                        # fonts come only to a page of their own site
    tab.set_content(html(body, style, address))
    tab.evaluate("document.fonts.ready.then(() => 0)")
    return PdfReader(BytesIO(paper(tab)))


def published():
    return site(yaml.safe_load((ROOT/"_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]["book_repository"])


def places(sheets):
    """(name of the page, id) -> (page of the PDF, left, top), with pages counted from the first of `sheets`; id "" is its top."""
    found, first = {}, 0
    for page, pdf, _ in sheets:
        found[page.name, ""] = first, 0, pdf.pages[0].mediabox.height
        for key, place in pdf.named_destinations.items():
            found[page.name, unquote(key.lstrip("/"))] = first + pdf.get_destination_page_number(place), place.left, place.top
        first += len(pdf.pages)
    return found


def front(tab, sheets, at, address):
    """Title and contents."""
    cff = yaml.safe_load((ROOT/"CITATION.cff").read_text(encoding="utf-8"))
    thesis = re.search(r"> \*\*(.+?)\*\*", (ROOT/"index.md").read_text(encoding="utf-8"))[1]
    today = f"{date.today():%-d %B %Y}"
    where = published() or "the site that <code>make html</code> builds"
    rows, part = [], ""
    for page, _, heads in sheets:
        if page.part != part:
            part = page.part
            rows.append(f"<h2>{escape(part)}</h2>")
        kind, title = ("cx-minor", "Exercises") if page.name.startswith("exercises/") else ("", escape(heads[0][2]))
        rows.append(f'<a class="{kind}" href="{address}{page.name}.html"><span>{title}</span>'
                    f'<i></i><b>{at[page.name, ""][0] + 1}</b></a>')
    return written(tab, f"""
      <section class="cx-cover"><h1>{escape(cff["title"])}</h1><p class="cx-thesis">{escape(thesis)}</p>
      <p class="cx-by">{escape(cff["authors"][0]["name"])}</p>
      <div><p>Version {cff["version"]}, printed on {today}.</p>
      <p>On paper you have the chapters, the exercises and the appendices. What moves, and what runs, is in the notebooks and on {where}:
      sliders and players with all their positions, the code behind each mark and each figure, the checks of the exercises, the solutions,
      the planner and the labs.</p>
      <p>Text and figures: CC BY-NC-SA 4.0. Code: MIT.</p>
      <p>To cite: {escape(cff["authors"][0]["name"])}. <em>{escape(cff["title"])}</em>. Version {cff["version"]},
      {date.today().year}.</p></div></section>
      <section class="cx-contents"><h1>Contents</h1>{"".join(rows)}</section>""", address)


def heads(tab, sheets, address):
    """What stands above and below the text of each page of `sheets`."""
    body = []
    for page, pdf, titles in sheets:
        for k in range(len(pdf.pages)):
            above = f"<span>{escape(page.part)}</span><span>{escape(titles[0][2])}</span>" if k else ""
            body.append(f'<div class="cx-sheet"><p>{above}</p><p>{len(body) + 1}</p></div>')
    return written(tab, "".join(body), address, "@page { margin: 0 }").pages


def link(writer, annotation, place):
    """Make an annotation lead to a page of this file."""
    number, left, top = place
    annotation.pop("/Dest", None)
    annotation[NameObject("/A")] = DictionaryObject({NameObject("/S"): NameObject("/GoTo"), NameObject("/D"): ArrayObject([
        writer.pages[number].indirect_reference, NameObject("/XYZ"), FloatObject(left or 0), FloatObject(top), NullObject()])})


def bookmarks(writer, sheets, at, shift):
    """Part, chapter, act, section; the exercises of a chapter below it."""
    part, above, chapter = "", None, None
    for page, _, titles in sheets:
        if page.part != part:
            part = page.part
            above = writer.add_outline_item(title=part, page_number=at[page.name, ""][0] + shift, bold=True, is_open=False)
        levels = {0: above}
        for level, key, text in titles:
            number, left, top = at.get((page.name, key)) or at[page.name, ""]
            inside = levels[max(k for k in levels if k < level)]
            if level == 1 and page.name.startswith("exercises/"):
                inside, text = chapter, "Exercises"
            levels = {k: v for k, v in levels.items() if k < level}
            levels[level] = writer.add_outline_item(title=text, page_number=number + shift, parent=inside, fit=Fit.xyz(0, top),
                                                    is_open=False)
            if level == 1 and page.name.startswith("chapters/"):
                chapter = levels[1]


def bind(sheets, address, out):
    """Write the book that is made of `sheets` to the file `out`."""
    at = places(sheets)
    with browser.chromium() as chromium:
        tab = chromium.new_page()
        first, above = front(tab, sheets, at, address), heads(tab, sheets, address)
    shift, writer = len(first.pages), PdfWriter()
    for pdf in [first, *(s.pdf for s in sheets)]:
        for page in pdf.pages:
            writer.add_page(page)
    names = [""]*shift + [s.page.name for s in sheets for _ in s.pdf.pages]
    for page, name in zip(writer.pages, names):
        for annotation in map(lambda a: a.get_object(), page.get("/Annots", [])):
            address_of = annotation.get("/A", {}).get("/URI", "")
            if "/Dest" in annotation:
                key = name, unquote(annotation["/Dest"].lstrip("/"))
            elif address_of.startswith(address):
                there, _, key = address_of.removeprefix(address).partition("#")
                key = there.removesuffix(".html"), unquote(key)
            else:
                continue
            number, left, top = at[key]
            link(writer, annotation, (number + shift, left, top))
    for page, head in zip(list(writer.pages)[shift:], above):
        page.merge_page(head)
        page.compress_content_streams()
    writer.add_outline_item(title="Title", page_number=0)
    writer.add_outline_item(title="Contents", page_number=1)
    bookmarks(writer, sheets, at, shift)
    writer.set_page_label(0, shift - 1, style="/r")
    writer.set_page_label(shift, len(writer.pages) - 1, style="/D")
    cff = yaml.safe_load((ROOT/"CITATION.cff").read_text(encoding="utf-8"))
    writer.add_metadata({"/Title": cff["title"], "/Author": cff["authors"][0]["name"], "/Subject": " ".join(cff["abstract"].split()),
                         "/Keywords": ", ".join(cff["keywords"])})
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects()
    writer.write(out)
    return len(writer.pages)


def make(pages, out):
    """Print `pages` into the file `out`; how many pages that makes on paper."""
    with serve(HTML) as address, ThreadPoolExecutor(WORKERS) as pool:
        shares = pool.map(lambda k: printed(pages[k::WORKERS], pages, address), range(WORKERS))
        sheets = sorted((sheet for share in shares for sheet in share), key=lambda sheet: pages.index(sheet.page))
        return bind(sheets, address, out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{make(contents(), Path(sys.argv[1]))} pages in {sys.argv[1]}")
