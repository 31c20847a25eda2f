"""Break every formula, or a module, in every small way, and report which check notices.

    python tools/mutants.py [-j 2] [NAME ...]                        formulas, all of them by default
    python tools/mutants.py [-j 2] --modules step layout transformer

A mutant of a formula doubles the result, changes one constant, one sign, one operator, drops one term, or swaps max with
min.  Two killers are tried in turn: the unit and trace check (Formula.check), then every assert of the chapter that derives the
formula, run with the mutant in the formula's place.  The cells before the first one that works the formula out, by itself or
inside of another, cannot notice: they run once for all mutants.  A survivor is excused only if sympy shows that it
equals the original.  A mutant of a module changes one constant, sign, operator, comparison, connective or function outside of
docstrings and messages; it is tried by the tests in TESTS, or TESTS_OF it.  A mutant that makes its check
run longer than SECONDS (and twice the time that those tests take as they are) is noticed.  Exits 1 if a survivor is left.
"""
import argparse
import ast
import contextlib
import copy
import functools
import importlib
import inspect
import io
import itertools
import json
import multiprocessing
import os
import re
import signal
import sys
import textwrap
import time
import traceback
import types
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reproducible import ENVIRONMENT

os.environ.update(ENVIRONMENT)                  # before numpy is imported: as every notebook is executed

import pytest
import matplotlib
import sympy as sp

import capacity
import capacity.formulas
from capacity.grammar import REGISTRY
from capacity.legality import Rule

matplotlib.use("Agg")                           # not by the environment: kernels that a test starts would inherit it
FORK = multiprocessing.get_context("fork")
CURRENT = None                                   # the Trial that runs next
SECONDS = 60
TESTS = ["tests/test_estimate.py", "tests/test_specs.py"]
TESTS_OF = {"footprint": ["tests/test_footprint.py"], "huggingface": ["tests/test_own.py"], "launch": ["tests/test_launch.py"],
            "cli": ["tests/test_cli.py", "tests/test_own.py", "tests/test_launch.py"],
            "legality": ["tests/test_planner.py", "tests/test_estimate.py"], "planner": ["tests/test_planner.py"],
            "step": [*TESTS, "tests/test_own.py"], "tape": ["tests/test_tape.py"]}                  # modules with tests of their own
OTHER = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
LOGIC = {ast.Mod: ast.FloorDiv, ast.FloorDiv: ast.Mod, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And}
TURNED = {ast.GtE: (ast.Gt, ast.Lt), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE,), ast.Lt: (ast.LtE,), ast.Eq: (ast.NotEq,),
          ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,)}
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


def module_changes(node):
    """The same for a node of any function: remainders, masks, comparisons and logic too."""
    yield from changes(node)
    text = ast.unparse(node) if isinstance(node, ast.expr) else ""
    if isinstance(node, ast.BinOp) and type(node.op) in LOGIC:
        other = ast.BinOp(node.left, LOGIC[type(node.op)](), node.right)
        yield f"{text} -> {ast.unparse(other)}", other
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            for twin in TURNED.get(type(op), ()):
                other = ast.Compare(node.left, [*node.ops[:k], twin(), *node.ops[k + 1:]], node.comparators)
                yield f"{text} -> {ast.unparse(other)}", other
    if isinstance(node, ast.BoolOp):
        other = ast.BoolOp(LOGIC[type(node.op)](), node.values)
        yield f"{text} -> {ast.unparse(other)}", other
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        yield f"{text} -> {ast.unparse(node.operand)}", node.operand
    if isinstance(node, ast.IfExp):
        yield f"{text} -> {ast.unparse(node.body)}", node.body
        yield f"{text} -> {ast.unparse(node.orelse)}", node.orelse


def module_mutants(name):
    """(line, what it says, source) for each mutant of a module of the package."""
    path = ROOT/"capacity"/f"{name}.py"
    tree = ast.parse(path.read_text())

    def places(tree):
        """Its nodes, but for what is only said: docstrings, messages, annotations, decorators."""
        todo = [tree]
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)):
                continue
            if isinstance(node, ast.AnnAssign):
                todo += [node.value] if node.value else []
                continue
            if isinstance(node, ast.FunctionDef):
                todo += [*node.body, *(d for d in node.args.kw_defaults if d), *node.args.defaults]
                continue
            yield node
            todo += ast.iter_child_nodes(node)

    seats = {id(child): (siblings, k) for node in ast.walk(tree) for field, value in ast.iter_fields(node)
             for siblings, children in [(value, enumerate(value)) if isinstance(value, list) else (vars(node), [(field, value)])]
             for k, child in children}
    pieces = [ast.unparse(piece) for piece in tree.body]
    inside = {id(node): at for at, piece in enumerate(tree.body) for node in ast.walk(piece)}
    for place in list(places(tree)):
        if isinstance(place, ast.Return) or isinstance(place, ast.Constant) and type(place.value) not in (int, float):
            continue
        for text, replacement in list(module_changes(place)):
            siblings, k = seats[id(place)]
            siblings[k] = replacement
            at = inside[id(place)]
            source = "\n".join([*pieces[:at], ast.unparse(tree.body[at]), *pieces[at + 1:]])
            siblings[k] = place
            yield place.lineno, text, source


class Put(ast.NodeTransformer):
    """Replaces one node, found by identity."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else super().generic_visit(node)


def code_of(chapter):
    """The sources of a chapter's code cells."""
    cells = json.loads((ROOT/"chapters"/f"{chapter}.ipynb").read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def execute(source, scope):
    """Run one cell in silence, from the folder of the chapters."""
    scope.setdefault("__name__", "__main__")
    scope.setdefault("display", print)                            # a notebook has it
    os.chdir(ROOT/"chapters")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "cell", "exec"), scope)


def noticed(sources, scope=None):
    """The assert, or error, with which cells notice; None if they run to their end."""
    scope = {} if scope is None else scope
    for source in sources:
        try:
            execute(source, scope)
        except AssertionError:
            line = next(f.lineno for f in reversed(traceback.extract_tb(sys.exc_info()[2])) if f.filename == "cell")
            return "derivation" if "sp." in source else "witness or number", source.splitlines()[line - 1].strip()
        except TooLong:
            raise
        except Exception as error:
            return "error", f"{type(error).__name__}: {error}"
    return None


def first_uses(sources, names):
    """{name: index of the first cell that works this formula out}, and what the cells notice with the formulas as they are."""
    first, now = {}, [0]

    def watched(F):
        function = F.function

        @functools.wraps(function)
        def seen(*args, **kwargs):
            first.setdefault(F.__name__, now[0])
            return function(*args, **kwargs)
        return seen

    for name in names:
        REGISTRY[name].function = watched(REGISTRY[name])
        vars(REGISTRY[name]).pop("expr", None)
    scope = {}
    for now[0], source in enumerate(sources):
        if complaint := noticed([source], scope):
            return first, complaint
    return first, None


def alone(function, *args):
    """The function's answer, worked out in a copy of this process that then ends."""
    with FORK.Pool(1) as pool:
        return pool.apply(function, args)


def chapter_trials(chapter, jobs):
    """The answers of `trial` for the mutants of a chapter's formulas, in the order of the cells that use these."""
    sources = code_of(chapter)
    first, complaint = alone(first_uses, sources, {name for name, *_ in jobs})
    if complaint:
        return [(chapter, "as it is", "SURVIVED", f"fails before any mutant: {complaint}")]
    scope, answers = {}, []
    for i in range(len(sources) + 1):
        for job in jobs:
            if first.get(job[0], len(sources)) == i:
                answers.append(Trial(sources[i:], scope, job).answer())
        if i <= max((k for k in first.values()), default=-1):
            execute(sources[i], scope)
    return answers


class TooLong(BaseException):
    """The mutant made its check run longer than it may. No Exception, or who catches a program's errors would catch it."""


@contextlib.contextmanager
def limited(seconds):
    """TooLong in the block that it takes more than these seconds of the processor: what else it does then changes nothing."""
    def stop(number, frame):
        raise TooLong(f"more than {seconds} s")
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Trial:
    """One mutant, (name, what it says, its place among the formula's mutants), and the cells that are to notice it."""

    def __init__(self, sources, scope, job):
        self.sources, self.scope, self.job = sources, scope, job

    def answer(self):
        """(formula, what the mutant says, killer, detail); the formula is broken in another process only."""
        global CURRENT
        CURRENT = self                            # a scope cannot be pickled; a fork has it
        return alone(_current)

    def run(self):
        """The same in this process, which it breaks."""
        name, text, i = self.job
        try:
            with limited(SECONDS):
                return name, text, *self.killer(REGISTRY[name], [function for _, function in mutants(REGISTRY[name])][i])
        except TooLong as late:
            return name, text, "time", str(late)

    def killer(self, F, function):
        original = F.expr
        F.function = function
        F.constants = {k: p.default for k, p in inspect.signature(function).parameters.items() if k in F.constants}
        vars(F).pop("expr", None)
        try:
            F.check()
        except TooLong:
            raise
        except Exception as error:
            return "units and trace", str(error)
        if F.expr == original or sp.simplify(F.expr - original) == 0:
            return "equivalent", "sympy: mutant - original = 0"
        return noticed(self.sources, self.scope) or ("SURVIVED", "")


def _current():
    return CURRENT.run()


def put_in_place(old, new):
    """Let functions, properties and methods that are loaded do what those of a broken module do; who has imported one of its
    tuples or dicts has the broken one."""
    for name, x in list(vars(new).items()):
        here = vars(old).get(name)
        for f, g in ((here, x), (getattr(here, "fget", None), getattr(x, "fget", None)),
                     (getattr(here, "func", None), getattr(x, "func", None)),
                     (getattr(here, "__wrapped__", None), getattr(x, "__wrapped__", None))):
            if inspect.isfunction(f) and inspect.isfunction(g):
                f.__code__, f.__defaults__, f.__kwdefaults__ = g.__code__, g.__defaults__, g.__kwdefaults__
        if hasattr(here, "cache_clear"):
            here.cache_clear()
        if inspect.isclass(x) and x.__module__ == new.__name__:
            put_in_place(here, x)
        elif isinstance(x, (int, float, tuple, dict, re.Pattern, Rule)) and not name.startswith("__"):
            setattr(old, name, x)
            for module in [m for m in sys.modules.values() if str(ROOT) in (getattr(m, "__file__", "") or "")]:
                if here and isinstance(x, (tuple, dict)) and vars(module).get(name) is here:
                    setattr(module, name, x)


def tests_of(arguments, plugin=None):
    """pytest's exit code, in silence."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return pytest.main(["-x", "-q", "--override-ini=addopts=", "-p", "no:cacheprovider", "-p", "no:nbval", *arguments],
                           plugins=[plugin] if plugin else [])


def module_trial(job):
    """(module, mutant, killer, detail): the first test that fails with the broken module."""
    name, text, source = job
    old, failed = importlib.import_module(f"capacity.{name}"), []

    class Last:
        def pytest_collection_modifyitems(self, items):
            items.reverse()                       # the cases worked out by hand stand last, and notice most

        def pytest_runtest_logreport(self, report):
            if report.failed:
                failed.append(report.nodeid.split("::")[-1])

    try:
        with limited(SECONDS):
            new = types.ModuleType(old.__name__)
            new.__package__, new.__file__ = old.__package__, old.__file__
            exec(compile(source, old.__file__, "exec"), vars(new))
            put_in_place(old, new)
            code = tests_of(TESTS_OF.get(name, TESTS), Last())
    except TooLong as late:
        return name, text, "time", str(late)
    except BaseException as error:                # a SystemExit would end the worker, and its answer never come
        return name, text, "error", f"{type(error).__name__}: {error}"
    if code == 0:
        return name, text, "SURVIVED", ""
    return name, text, "test" if failed else "error", failed[0] if failed else "pytest cannot collect"


def main():
    global SECONDS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="formulas; all of them by default")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--modules", nargs="+", default=[], help="modules of capacity/ instead, such as step")
    options = parser.parse_args()
    if options.modules:
        jobs = [(name, f"line {line}: {text}", source) for name in options.modules for line, text, source in module_mutants(name)]
        tests = sorted({test for name in options.modules for test in TESTS_OF.get(name, TESTS)})
        began = time.process_time()
        if tests_of(tests):
            sys.exit(f"{' '.join(tests)} fail with the modules as they are")
        SECONDS += 2*(time.process_time() - began)                # or what a survivor takes would count as noticed
        with FORK.Pool(options.j, maxtasksperchild=1) as pool:
            sys.exit(report(pool.imap(module_trial, jobs), len(jobs)))
    for name in ("explore", "stepper", "explore_schedules", "figure", "drawing", "scenes"):                # they notice nothing
        setattr(capacity, name, lambda *args, **kwargs: None)
    jobs = defaultdict(list)
    for name in options.names or sorted(REGISTRY):
        for i, (text, _) in enumerate(mutants(REGISTRY[name])):                # two places may read alike
            jobs[REGISTRY[name].chapter].append((name, text, i))
    with ProcessPoolExecutor(options.j, mp_context=FORK) as pool:
        answers = itertools.chain.from_iterable(pool.map(chapter_trials, jobs, jobs.values()))
        sys.exit(report(answers, sum(map(len, jobs.values()))))


def report(answers, count):
    """Print what noticed each of `count` mutants, and whether one survived."""
    killers = Counter()
    for name, text, killer, detail in answers:
        killers[killer] += 1
        print(f"{killer:18s} {name}: {text}" + (f"    [{detail[:90]}]" if killer != "units and trace" else ""), flush=True)
    print("\n" + ", ".join(f"{n} {killer}" for killer, n in killers.most_common()), f"of {count} mutants")
    return bool(killers["SURVIVED"])


if __name__ == "__main__":
    main()
