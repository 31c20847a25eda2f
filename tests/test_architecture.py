"""Rules that a reviewer cannot be trusted to remember: who may import whom, and what a formula may say."""
import ast
from pathlib import Path

import pytest

import capacity

PACKAGE = Path(__file__).resolve().parents[1]/"capacity"
LANGUAGE = ["units", "algebra", "notation", "js", "tape", "grammar"]           # what may be said
ORDER = [LANGUAGE, ["formulas", "specs"],                              # sentences, data
         ["hardware", "transformer", "legality", "huggingface", "layout", "stack", "placement", "runs"],        # nouns
         ["footprint", "step", "fits", "protocol"],                      # verbs
         ["planner", "launch", "cli", "__main__"]]                        # doors, which may show pictures and use witnesses
SHOWN = ["footprint"]                                                # verbs whose results show themselves as a table
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
            names = (a.name for a in node.names if a.name.split(".")[0] == "capacity")
            yield from ((name + ".").split(".")[1] or "the package" for name in names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    """Words, sentences and data, nouns, verbs, doors: a module imports what comes before it; two rooms stand aside."""
    name, others = module_of(path), set(imported(path))
    if name == "witness":
        assert others <= {"witness"}, f"a witness imports {others}"
    elif name == "pictures":
        assert others <= {"pictures", "witness", *LANGUAGE}, f"a picture imports {others}"
    else:
        floor = next((k for k, names in enumerate(ORDER) if name in names), None)
        assert floor is not None, f"{name} has no place: give it one in this test"
        others -= {"pictures", "witness"} if floor == len(ORDER) - 1 else {"pictures"} if name in SHOWN else set()
        below = {o for names in ORDER[:floor] for o in names} | set(ORDER[floor])
        assert others <= below - {name}, f"{name} imports {others - below}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_can_be_read(path):
    """By the test above: a module that asks for another at run time, by its name, is not seen there."""
    tree = ast.parse(path.read_text())
    assert not ({"import_module", "__import__"} & ({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
                                                   | {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
                                                   | {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}))


@pytest.mark.parametrize("source, found", [
    ("import capacity; capacity.model", "the package"), ("import capacity as c", "the package"), ("from capacity import model", "the package"),
    ("from .. import model", "model"), ("from ..transformer import model", "transformer"), ("import capacity.transformer", "transformer"),
    ("def f():\n    from capacity.transformer import model", "transformer")])
def test_every_way_to_import_is_seen(source, found, tmp_path, monkeypatch):
    monkeypatch.setattr("test_architecture.PACKAGE", tmp_path)
    (tmp_path/"witness").mkdir()
    (path := tmp_path/"witness"/"x.py").write_text(source)
    assert set(imported(path)) == {found}


PUBLIC = set(dir(capacity))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_is_named_like_a_function(path):
    """Its own or a public one of any module: else one of the two hides the other."""
    assert path.stem not in PUBLIC | {node.name for node in ast.parse(path.read_text()).body
                                      if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_a_public_class_has_its_name_alone():
    home = {name: module.rpartition(".")[2] for name, module in capacity._MODULE_OF.items()}
    assert [(node.name, path.stem) for path in MODULES for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef) and home.get(node.name, path.stem) != path.stem] == []


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
        assert set(imported(path)) <= {"algebra", "grammar", "units"}, path.name
