"""What the README and the package's docstring print is what Python says."""
import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import capacity

ROOT = Path(__file__).resolve().parents[1]
def blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT/page).read_text(), re.S)


README = {f"README {k}": text for k, text in enumerate(blocks("README.md"), 1)}
README["capacity"] = re.sub(r"^    ", "", "\n".join(re.findall("^    .*", capacity.__doc__, re.M)), flags=re.M)


def claims(text):
    """Run the statements of `text`; (value claimed, value found) of each `expression   # value`."""
    scope = {}
    for statement in ast.parse(text).body:
        last = text.splitlines()[statement.end_lineno - 1]
        if isinstance(statement, ast.Expr) and "  # " in last:
            yield last.split("  # ")[1].strip(), repr(eval(compile(ast.Expression(statement.value), "page", "eval"), scope))
        else:
            exec(compile(ast.Module([statement], []), "page", "exec"), scope)


@pytest.mark.parametrize("text", README.values(), ids=README)
def test_examples_print_what_they_claim(text):
    found = list(claims(text))
    assert found and all(claimed == value for claimed, value in found), found


def test_what_a_newcomer_types_first_works():
    """In a process of its own: it registers a formula."""
    program = "import sys; sys.path[:0] = ['tests', 'tools']\nfrom test_readme import *\n" \
              "for text in blocks('CONTRIBUTING.md'):\n    found = list(claims(text)); assert found and all(a == b for a, b in found), found"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_commands_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT/"Makefile").read_text(), re.M)
    for page in "README.md", "CONTRIBUTING.md":
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT/page).read_text(), re.M)) <= set(targets), page
