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
         "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",      # this machine only
         # Each window would start two pages for an address bar that nobody sees. The others are off in playwright's list,
         # which this one replaces.
         "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,HttpsUpgrades,MediaRouter,OptimizationHints,PaintHolding,"
         "NetworkTimeServiceQuerying,PreconnectToSearch"]


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
    """What a page asked for and complained of. No request to another host is answered (FLAGS), but each is noted.

    It only listens: a page whose requests are caught one by one has no cache.
    """

    def __init__(self, page):
        self.clear()
        page.on("request", lambda request: self.request(request.url))
        page.on("websocket", lambda socket: self.request(socket.url))
        page.on("response", self.response)
        page.on("console", self.message)
        page.on("pageerror", lambda error: self.console.append(str(error)))

    def clear(self):
        self.external, self.local, self.failed, self.console = [], [], [], []

    def request(self, url):
        here = urlparse(url).scheme in ("data", "blob") or urlparse(url).hostname == "127.0.0.1"
        (self.local if here else self.external).append(url)

    def response(self, response):
        if response.status >= 400:
            self.failed.append(f"{response.status} {response.url}")

    def message(self, message):
        if message.type in ("error", "warning") and not message.location["url"].endswith("/favicon.ico"):       # the browser's own wish
            self.console.append(message.text)
