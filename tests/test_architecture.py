"""Rules that a reviewer cannot be trusted to remember: who may import whom, and what a formula may say."""
import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]/"capacity"
LAYERS = {                                     # a module imports only from layers below its own
    "units": 0, "algebra": 0, "notation": 0, "js": 0,                  # words
    "formula": 1, "specs": 1,                                          # grammar; data
    "formulas": 2,                                                     # sentences
    "hardware": 3, "models": 3, "placement": 3, "fits": 3, "layout": 4, "runs": 5,                # nouns
    "estimate": 5, "planner": 6, "cli": 7,                             # verbs
}
PICTURES = {"plot", "draw", "paper", "explore", "stepper", "gantt"}    # import words, grammar and one another
WITNESSES = {"spmd", "algorithms", "schedule", "tiny", "splits", "students", "failures"}       # import only one another
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE/"__init__.py")


def module_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Modules of the package that a file imports anywhere, functions included."""
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            yield from [node.module.split(".")[0]] if node.module else [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("capacity"):
            yield (node.module + ".").split(".")[1] or "the package"
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("capacity."))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    name, others = module_of(path), set(imported(path))
    if name in WITNESSES:
        assert others <= WITNESSES, f"the witness {name} imports {others}"
    elif name in PICTURES:
        assert all(o in PICTURES or LAYERS[o] <= 1 for o in others), f"the picture {name} imports {others}"
    else:
        assert name in LAYERS, f"{name} has no layer: give it one in this test"
        assert all(o in LAYERS and LAYERS[o] < LAYERS[name] for o in others), f"{name} imports {others}"


def formula_functions():
    for path in sorted((PACKAGE/"formulas").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield pytest.param(node, id=node.name)


@pytest.mark.parametrize("function", list(formula_functions()))
def test_a_formula_is_one_return_of_algebra(function):
    assert ast.get_docstring(function), "a docstring"
    assert len(function.body) == 2 and isinstance(function.body[1], ast.Return), "a docstring, then one return"
    for node in ast.walk(function.body[1]):
        assert not isinstance(node, (ast.IfExp, ast.BoolOp)), "a branch: use where()"
        assert not isinstance(node, ast.Attribute), "no math. or np.: import from capacity.algebra"
        assert not (isinstance(node, ast.Compare) and any(isinstance(o, (ast.Eq, ast.NotEq)) for o in node.ops)), \
            "== compares the structure of symbols"
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), "a float poisons algebra: x/2"


def test_formula_modules_import_only_words_and_grammar():
    for path in (PACKAGE/"formulas").glob("[!_]*.py"):
        assert set(imported(path)) <= {"algebra", "formula", "units"}, path.name
