"""One style for all Python files and notebooks; the rules of the files are in pyproject.toml."""
import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = [pytest.param(p, id=f"{p.parent.name}/{p.stem}")
             for folder in ("chapters", "solutions") for p in sorted((ROOT/folder).glob("*.ipynb")) if p.stem[:2] < "19"]


def test_ruff_finds_nothing():
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--output-format", "concise"], capture_output=True, text=True,
                          cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def names(source):
    """The names that a cell gives: assigned, looped over, passed, defined or imported."""
    for n in ast.walk(ast.parse(source)):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id
        elif isinstance(n, ast.arg):
            yield n.arg
        elif isinstance(n, ast.FunctionDef | ast.ClassDef):
            yield n.name
        elif isinstance(n, ast.alias):
            yield n.asname or n.name


def twins(sources):
    given = {name for source in sources for name in names(source)}
    return sorted(x for x in given if x.endswith("_") and x.rstrip("_") in given)


@pytest.mark.parametrize("sources, found", [
    (["P = 1", "P_ = 8"], ["P_"]), (["P = 1\n[P_ for P_ in (2, 4)]"], ["P_"]), (["P = 1\nf = lambda P_: P_"], ["P_"]),
    (["def f(k_):\n    return k_", "for k in ():\n    pass"], ["k_"]), (["from a import rate", "rate_, = 1,"], ["rate_"]),
    (["all_ = 1", "x = all([])"], []), (["P = 1", "ranks = 8"], []), (["for _ in ():\n    P = 1"], [])])
def test_a_twin_is_a_name_with_an_underscore_beside_the_name_without(sources, found):
    assert twins(sources) == found


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_no_name_differs_from_another_by_an_underscore_alone(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not (found := twins("".join(c["source"]) for c in cells if c["cell_type"] == "code")), found
