"""Break every formula in every small way, and report which check notices.

    python tools/mutants.py [-j 2] [NAME ...]

A mutant doubles the result, changes one constant, one sign, one operator, drops one term, or swaps max with min.  Three killers are
tried in turn: the unit and trace check (Formula.check), then every assert of the chapter that derives the formula,
run from its first cell with the mutant in the formula's place.  A survivor is excused only if sympy shows that it
equals the original.  Exits 1 if a survivor is left.
"""
import argparse
import ast
import contextlib
import copy
import inspect
import io
import json
import multiprocessing
import os
import sys
import textwrap
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["MPLBACKEND"] = "Agg"

import sympy as sp

import capacity
import capacity.formulas
from capacity.grammar import REGISTRY

capacity.explore = capacity.stepper = capacity.explore_schedules = lambda *args, **kwargs: None    # they notice nothing

SECONDS = 60                                    # a mutant that makes its chapter run longer than this is noticed
OTHER = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
TWIN = {"maximum": "minimum", "minimum": "maximum", "ceil": "floor", "floor": "ceil"}


def changes(node):
    """(what it says, replacement) for one node of a formula's body."""
    if isinstance(node, ast.Return):
        yield "all of it, twice", ast.Return(ast.BinOp(ast.Constant(2), ast.Mult(), node.value))
    if isinstance(node, ast.Constant):
        yield f"{node.value} -> {node.value + 1}", ast.Constant(node.value + 1)
    if isinstance(node, ast.BinOp):
        text = ast.unparse(node)
        if type(node.op) in OTHER:
            swapped = ast.BinOp(node.left, OTHER[type(node.op)](), node.right)
            yield f"{text} -> {ast.unparse(swapped)}", swapped
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield f"{text} -> {ast.unparse(node.left)}", node.left
            yield f"{text} -> {ast.unparse(node.right)}", node.right
        if isinstance(node.op, ast.Pow):
            yield f"{text} -> {ast.unparse(node.left)}", node.left
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) in TWIN:
        twin = ast.Call(ast.Name(TWIN[node.func.id], ast.Load()), node.args, [])
        yield f"{ast.unparse(node)} -> {ast.unparse(twin)}", twin
    if isinstance(node, ast.Call) and len(node.args) == 1:
        yield f"{ast.unparse(node)} -> {ast.unparse(node.args[0])}", node.args[0]


def mutants(F):
    """(what it says, function) for each mutant of a formula, its named constants included."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(F.function)))
    tree.body[0].decorator_list = []
    body = tree.body[0].body[-1]
    places = [n for n in ast.walk(body)] + [d for d in tree.body[0].args.kw_defaults if d]
    for i, place in enumerate(places):
        for text, replacement in changes(place):
            broken = copy.deepcopy(tree)
            function = broken.body[0]
            twins = [n for n in ast.walk(function.body[-1])] + [d for d in function.args.kw_defaults if d]
            Put(twins[i], copy.deepcopy(replacement)).visit(function)
            scope = dict(vars(sys.modules[F.function.__module__]), **vars(capacity.algebra))
            exec(compile(ast.fix_missing_locations(broken), F.__name__, "exec"), scope)
            yield text, scope[F.__name__]


class Put(ast.NodeTransformer):
    """Replaces one node, found by identity."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else super().generic_visit(node)


def chapter_kills(F):
    """The assert, or error, with which the chapter notices; None if it runs to its end."""
    cells = json.loads((ROOT/"chapters"/f"{F.chapter}.ipynb").read_text())["cells"]
    scope = {"__name__": "__main__"}
    os.chdir(ROOT/"chapters")
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or "plt.show" in source:
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, "cell", "exec"), scope)
        except AssertionError:
            line = next(f.lineno for f in reversed(traceback.extract_tb(sys.exc_info()[2])) if f.filename == "cell")
            return "derivation" if "sp." in source else "witness or number", source.splitlines()[line - 1].strip()
        except Exception as error:
            return "error", f"{type(error).__name__}: {error}"
    return None


def trial(job):
    """(formula, mutant, killer, detail) for one mutant; the formula is broken in this process only."""
    name, text, i = job
    F = REGISTRY[name]
    original = F.expr
    function = [function for _, function in mutants(F)][i]
    F.function = function
    F.constants = {k: p.default for k, p in inspect.signature(function).parameters.items() if k in F.constants}
    vars(F).pop("expr", None)
    try:
        F.check()
    except Exception as error:
        return name, text, "units and trace", str(error)
    if F.expr == original or sp.simplify(F.expr - original) == 0:
        return name, text, "equivalent", "sympy: mutant - original = 0"
    killed = chapter_kills(F)
    return name, text, *(killed or ("SURVIVED", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="formulas; all of them by default")
    parser.add_argument("-j", type=int, default=2)
    options = parser.parse_args()
    jobs = [(name, text, i) for name in options.names or sorted(REGISTRY)      # two places may read alike
            for i, (text, _) in enumerate(mutants(REGISTRY[name]))]
    killers, survivors = Counter(), 0
    with multiprocessing.get_context("fork").Pool(options.j, maxtasksperchild=1) as pool:
        one_of_each = {REGISTRY[name].chapter: REGISTRY[name] for name, *_ in jobs}
        for chapter, complaint in zip(one_of_each, pool.map(chapter_kills, one_of_each.values(), 1)):
            if complaint:
                sys.exit(f"{chapter} fails with the formulas as they are: {complaint}")
        results = [pool.apply_async(trial, [job]) for job in jobs]
        for job, result in zip(jobs, results):
            try:
                name, text, killer, detail = result.get(SECONDS*len(jobs))
            except Exception as error:
                name, text, killer, detail = *job[:2], "error", str(error)
            killers[killer] += 1
            survivors += killer == "SURVIVED"
            print(f"{killer:18s} {name}: {text}" + (f"    [{detail[:90]}]" if killer != "units and trace" else ""), flush=True)
    print("\n" + ", ".join(f"{count} {killer}" for killer, count in killers.most_common()), f"of {len(jobs)} mutants")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
