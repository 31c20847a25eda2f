"""One style for all Python files and notebooks; the rules of the files are in pyproject.toml."""
import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = [pytest.param(p, id=f"{p.parent.name}/{p.stem}")
             for folder in ("chapters", "exercises", "solutions", "appendices", "labs") for p in sorted((ROOT/folder).glob("*.ipynb"))]


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
        elif isinstance(n, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and n.name:
            yield n.name


def code(path):
    """The source of each code cell of a notebook."""
    return ["".join(c["source"]) for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]


def ended(sources):
    """Names that end in an underscore; ``_`` alone and ``__such__`` are Python's own."""
    given = {name for source in sources for name in names(source)}
    return sorted(x for x in given if x.endswith("_") and x.strip("_") and not x.startswith("__"))


@pytest.mark.parametrize("sources, found", [
    (["P_ = 8"], ["P_"]), (["all_ = 1", "x = all([])"], ["all_"]), (["P, (w_, *k_) = 1, (2, 3)"], ["k_", "w_"]),
    (["for n_ in (2, 4):\n    pass"], ["n_"]), (["[P for P, t_ in ()]"], ["t_"]), (["f'{[v_ for v_ in ()]}'"], ["v_"]),
    (["f = lambda t_: 1"], ["t_"]), (["def f(*a_, k_=2, **o_):\n    pass"], ["a_", "k_", "o_"]),
    (["def run_():\n    pass"], ["run_"]), (["class A_:\n    pass"], ["A_"]), (["import math as m_"], ["m_"]),
    (["(x_ := 2)"], ["x_"]), (["with open(p) as f_:\n    pass"], ["f_"]), (["try:\n    1\nexcept E as e_:\n    pass"], ["e_"]),
    (["match x:\n    case [a_, *b_]:\n        pass"], ["a_", "b_"]), (["x__ = 1"], ["x__"]), (["_x_ = 1"], ["_x_"]),
    (["for _ in ():\n    n = 1"], []), (["__all__ = []"], []), (["_, __ = 1, 2"], []), (["_x = 1"], []),
    (["x = np.c_[1, 2]\nf(x, from_=2)\n'P_1, P_'  # P_"], [])])
def test_an_underscore_at_the_end_is_seen_wherever_a_name_is_given(sources, found):
    assert ended(sources) == found


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_no_name_of_a_notebook_ends_in_an_underscore(path):
    """It would stand beside a symbol or a builtin, and say nothing of what it is."""
    assert not (found := ended(code(path))), found
