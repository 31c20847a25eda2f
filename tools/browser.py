"""Open pages in headless Chromium and see every request they make."""
import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlparse

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
MISSING = ("no Chromium found: install it (Debian: apt install chromium) or name one in BROWSER_PATH; "
           "without it the built book stays untested")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         "--no-first-run"]


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
    """What a page asked for and complained of. A request to another host is noted and stopped."""

    def __init__(self, page):
        self.external, self.local, self.failed, self.console = [], [], [], []
        page.route("**/*", self.route)
        page.on("response", self.response)
        page.on("console", self.message)
        page.on("pageerror", lambda error: self.console.append(str(error)))

    def response(self, response):
        if response.status >= 400:
            self.failed.append(f"{response.status} {response.url}")

    def message(self, message):
        if message.type in ("error", "warning"):
            self.console.append(message.text)

    def route(self, route):
        url = route.request.url
        if urlparse(url).scheme in ("data", "blob") or urlparse(url).hostname == "127.0.0.1":
            self.local.append(url)
            route.continue_()
        else:
            self.external.append(url)
            route.abort()
