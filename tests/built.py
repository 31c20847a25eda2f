"""The built book in Chromium, one page at a time. A tab or a context for each would load and compile all scripts and styles again."""
import functools
import gzip
import os
import warnings
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

import browser
from serve import serve

ROOT = Path(__file__).resolve().parents[1]
HTML = Path(os.environ.get("BOOK_HTML", ROOT/"_build/html"))
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}

# All mathematics, not only what is on the screen; then form.js has fitted formulas, which it does when the page rests.
TYPESET = """async () => {
    await window.MathJax?.startup?.promise;
    await window.MathJax?.startup?.document?.lazyTypesetAll?.();
}"""
# The same, or false where it has not come in a minute: what never comes would hold up all tests.
SOON = f"() => Promise.race([({TYPESET})().then(() => true), new Promise(r => setTimeout(() => r(false), 60000))])"
RESTS = """() => new Promise(r => requestIdleCallback(() => requestAnimationFrame(() => requestAnimationFrame(r)), { timeout: 1000 }))"""
# The files of the faces in which no text is set.
UNSET = """() => { const name = f => f.replaceAll('"', ''), set = new Set([...document.fonts].filter(f => f.status !== 'unloaded').map(f => name(f.family)));
    return [...document.styleSheets].flatMap(s => [...s.cssRules]).filter(r => r instanceof CSSFontFaceRule && !set.has(name(r.style.fontFamily)))
        .flatMap(r => r.style.src.match(/[^/]+\\.woff2?/g) ?? []); }"""


@contextmanager
def opened(html=HTML, **context):
    """A Book; without a browser: skipped, or failed where CI is set; without a book: failed."""
    if not (html/"index.html").exists():
        pytest.fail(f"no built book in {html}: make html")
    if not browser.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browser.MISSING)
    with serve(html) as address, browser.chromium() as chromium:
        yield Book(html, address, chromium)


class Book:
    """The folder `html`, where it is served (`address`), the browser (`chromium`) and one context for all tabs, with one cache."""

    def __init__(self, html, address, chromium):
        self.html, self.address, self.chromium = html, address, chromium
        self.context = chromium.new_context(viewport=DESK)
        self.context.add_init_script("localStorage.clear(); sessionStorage.clear();")       # each visit is the first
        # A window without tabs and buttons: drawn at each step of a load, they would take a twentieth of a visit.
        first = self.context.new_page()
        with first.expect_popup() as opened:
            first.evaluate("void open('about:blank', '', 'popup,noopener')")
        first.close()
        self.page = opened.value
        self.page.log = browser.Log(self.page)

    def visit(self, name):
        """The one tab with this page, all its mathematics typeset, and its `log`.

        A new tab for each would start a third of the work again; so it is emptied, and made a desk's, its mouse in a corner.
        """
        for _ in range(2):
            self.page.goto(self.address + "_static/favicon.svg")
            self.page.set_viewport_size(DESK)
            self.page.emulate_media(media="null")
            self.page.mouse.move(0, 0)
            self.page.log.clear()
            self.page.goto(self.address + name, wait_until="load")
            if self.page.evaluate(SOON):
                self.page.evaluate(RESTS)
                return self.page
            warnings.warn(f"{name}: its mathematics was not typeset in a minute", stacklevel=2)
        pytest.fail(f"{name}: its mathematics was not typeset in a minute, nor when it was loaded again")

    def files(self):
        """What the page asked for, without the fonts of pages before, which a tab asks its memory for though no text is set in them."""
        unset = self.page.evaluate(UNSET)
        paths = {self.html/unquote(urlparse(url).path.lstrip("/")) for url in self.page.log.local if url.startswith("http")}
        return {path for path in paths if path.name not in unset}


@functools.cache
def compressed(path):
    """The bytes of a file as a server would send it."""
    return len(gzip.compress(path.read_bytes()))
