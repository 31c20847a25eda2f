"""Open pages in headless Chromium and see every request they make."""
import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlparse

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
MISSING = ("no Chromium found: install it (Debian: apt install chromium) or name one in BROWSER_PATH; "
           "without it the built book stays untested")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


def find():
    """The path of a Chromium, or None."""
    return os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium():
    """A running browser. RuntimeError where none is installed."""
    from playwright.sync_api import sync_playwright
    if not find():
        raise RuntimeError(MISSING)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=find(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Log:
    """What a page asked for and complained of. A request that would leave the machine is noted and stopped."""

    def __init__(self, page):
        self.external, self.local, self.failed, self.console = [], [], [], []
        page.route("**/*", self.route)
        page.on("response", lambda r: self.failed.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("console", lambda m: self.console.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.console.append(str(e)))

    def route(self, route):
        url = route.request.url
        if urlparse(url).scheme in ("data", "blob") or urlparse(url).hostname == "127.0.0.1":
            self.local.append(url)
            route.continue_()
        else:
            self.external.append(url)
            route.abort()
