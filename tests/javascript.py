"""Run JavaScript from a test: in node, or where there is none in Chromium."""
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import browser

STATIC = Path(__file__).resolve().parents[1] / "capacity/pictures/static"


def scripts():
    """All scripts of the book; what they share comes first, for here there is no page to wait for."""
    return "\n".join(p.read_text(encoding="utf-8") for p in sorted(STATIC.glob("*.js"), key=lambda p: (p.stem != "cx", p)))


# Each line is a program; each answer, whether it ended well, and its text.
SERVE = """require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    let answer;
    try { answer = [true, (0, eval)(JSON.parse(line))]; } catch (e) { answer = [false, String(e && e.stack)]; }
    process.stdout.write(JSON.stringify(answer) + '\\n');
});"""


@functools.cache
def running():
    """One node for all programs; it ends with its input."""
    return subprocess.Popen(["node", "-e", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(body, data):
    """The value of the function body `body`, which sees `data` (JSON) and `cx`, the parts of the players.

    Numbers that JSON cannot write come back as strings: use number() on them.
    """
    program = f"""
        const document = {{ querySelectorAll: () => [] }}, addEventListener = (when, start) => start();
        {scripts()}
        const data = {json.dumps(data)};
        const answer = (() => {{ {body} }})();
        return JSON.stringify(answer, (k, v) => typeof v === "number" && !Number.isFinite(v) ? String(v) : v);"""
    program = f"(() => {{ {program} }})()"
    if shutil.which("node"):
        node = running()
        node.stdin.write(json.dumps(program) + "\n")
        node.stdin.flush()
        done, answer = json.loads(node.stdout.readline())
        assert done, answer
        return json.loads(answer)
    if not browser.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs node or Chromium; " + browser.MISSING)
    with browser.chromium() as chromium:
        return json.loads(chromium.new_page().evaluate(program))


def number(x):
    """A float from what run() gives for a number: 'Infinity' and 'NaN' are strings there."""
    return float({"Infinity": "inf", "-Infinity": "-inf"}.get(x, x))
