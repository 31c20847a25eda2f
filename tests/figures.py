"""What the tests of pictures share: markup compared, pages of nothing but figures, boxes and contrast of what is seen."""
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import browser

ROOT = Path(__file__).resolve().parents[1]
DRAWN = "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"         # the next frame is there


def alike(a, b, slack=0.11):
    """Whether two pieces of markup differ in nothing but the last digit of a coordinate."""
    if a == b:
        return True
    a, b = (re.split(r"(-?\d+\.\d(?!\d))", text) for text in (a, b))
    return a[::2] == b[::2] and all(abs(float(u) - float(v)) < slack for u, v in zip(a[1::2], b[1::2]))


def one_answer(code):
    """What a program prints in a process, if it prints the same in one whose sets have another order; they run side by side.

    Without the grammar of web addresses that nbformat would build on each start, for half a second.
    """
    code = "import sys; sys.modules['rfc3987_syntax'] = None\n" + code
    runs = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                             env=os.environ | {"PYTHONHASHSEED": seed}) for seed in ("1", "2")]
    one, other = (run.communicate()[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0] and one == other
    return one


def assets():
    """All styles and scripts, as a page has them: in any order, so here the last first."""
    files = sorted((ROOT / "capacity/pictures/static").glob("*.[cj]s*"), reverse=True)
    return "".join(f'<link rel="stylesheet" href="{f.as_uri()}">' if f.suffix == ".css" else f'<script src="{f.as_uri()}"></script>'
                   for f in files)


@contextlib.contextmanager
def browser_page():
    """An empty page in Chromium; skipped without one, failed where CI is set."""
    if not browser.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browser.MISSING)
    with browser.chromium() as chromium:
        yield chromium.new_page(viewport={"width": 1280, "height": 900})


@contextlib.contextmanager
def opened(folder, figures, prepare=lambda tab: None):
    """A page of nothing but these figures in Chromium, its complaints in `errors`. prepare(tab): before it loads."""
    path, shown = folder/"page.html", "\n".join(figure.to_html() for figure in figures)
    path.write_text(f"""<!doctype html><html data-theme="light"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        {assets()}<body style="max-width: 46rem; font-family: sans-serif">{shown}</body></html>""", encoding="utf-8")
    with browser_page() as tab:
        tab.errors = []
        tab.on("pageerror", lambda e: tab.errors.append(str(e)))
        tab.on("console", lambda m: tab.errors.append(m.text) if m.type == "error" else None)
        prepare(tab)
        tab.goto(path.as_uri())
        yield tab


def rgb(text):
    """The numbers of a computed colour."""
    return np.array(re.findall(r"\d+", text), float)[:3]


def contrast(a, b):
    """WCAG's contrast of two colours."""
    def light(c):
        v = np.asarray(c, float)/255
        return np.where(v <= .04045, v/12.92, ((v + .055)/1.055)**2.4) @ [.2126, .7152, .0722]
    a, b = sorted([light(a), light(b)])
    return (b + .05)/(a + .05)
