"""The built book in Chromium, one page at a time. A context for each page would load all scripts and styles again."""
import functools
import gzip
import os
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
RESTS = """() => new Promise(r => requestIdleCallback(() => requestAnimationFrame(() => requestAnimationFrame(r)), { timeout: 1000 }))"""


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
        self.page = None

    def visit(self, name):
        """A new tab with this page, all its mathematics typeset, and its `log`; the last tab is closed.

        A new one, for a tab keeps what it has drawn, and asks for the fonts of the page before.
        """
        if self.page:
            self.page.close()
        self.page = self.context.new_page()
        self.page.log = browser.Log(self.page)
        self.page.goto(self.address + name, wait_until="load")
        self.page.evaluate(TYPESET)
        self.page.evaluate(RESTS)
        return self.page

    def file(self, url):
        """The file behind an address of the book."""
        return self.html/unquote(urlparse(url).path.lstrip("/"))


@functools.cache
def compressed(path):
    """The bytes of a file as a server would send it."""
    return len(gzip.compress(path.read_bytes()))
