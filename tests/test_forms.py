"""A check judges the answer and not the form that it comes in: lists, arrays, numpy's numbers and whole floats pass."""
import ast
import importlib
from fractions import Fraction
from pathlib import Path

import nbformat
import numpy as np
import pytest

import capacity
import hidden
import make_exercises
from capacity import Op
from capacity.witness.answers import plain, same, without

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted((ROOT/"solutions").glob("*.ipynb"))
REFUSED = {("21.6", "tuples of floats")}           # a schedule of states; the check takes its numbers as indices


def number(x):
    return isinstance(x, (int, float, Fraction, np.number)) and not isinstance(x, bool)


def leaves(change):
    """A form of every number, word or truth value in tuples, lists and dictionaries."""
    def form(x):
        if type(x) in (tuple, list):
            return type(x)(map(form, x))
        if type(x) is dict:
            return {k: form(v) for k, v in x.items()}
        return change(x)
    return form


def scalar(x):
    if isinstance(x, (bool, np.bool_)):
        return np.bool_(x)
    if isinstance(x, int) and abs(x) < 2**62:
        return np.int64(x)
    return np.float64(x) if isinstance(x, float) else x


def array(x):
    """Numbers in a row, as an array."""
    if type(x) in (tuple, list) and x and all(map(number, x)):
        return np.array([float(v) if isinstance(v, Fraction) else v for v in x])
    return type(x)(map(array, x)) if type(x) in (tuple, list) else x


def lists(x):
    return [*map(lists, x)] if type(x) in (tuple, list) else x


def tuples(x):
    return tuple(map(tuples, x)) if type(x) in (tuple, list) else x


FORMS = {
    "lists of numpy's": lambda x: lists(leaves(scalar)(sorted(x, key=repr) if isinstance(x, set) else x)),
    "tuples of floats": lambda x: tuples(leaves(lambda v: float(v) if type(v) in (int, Fraction) else v)(x)),
    "arrays": array,
}


class Returned(ast.NodeTransformer):
    """Give every result of the answers, but of a program of ranks, to `_form`."""
    def __init__(self, which):
        self.which, self.inside = which, []

    def visit_FunctionDef(self, node):
        self.inside.append(node)
        self.generic_visit(node)
        self.inside.pop()
        return node

    def visit_Lambda(self, node):
        return node

    def visit_Return(self, node):
        [*outer, function] = self.inside
        program = [a.arg for a in function.args.args][:1] == ["comm"]
        if node.value and not outer and function.name in self.which and not program:
            node.value = ast.Call(ast.Name("_form", ast.Load()), [node.value], [])
        return node


def refused(nb):
    """[(exercise, form, error)] of the right answers that a check refuses, and how many were tried."""
    names, out, tried = {"__name__": "__main__"}, [], 0
    for cell in nb.cells:
        what, exercise = make_exercises.kind(cell)
        if cell.cell_type != "code" or what == "why":              # these a student does not have
            continue
        if what == "exercise":
            tree = ast.fix_missing_locations(Returned(hidden.answers(cell.source)).visit(ast.parse(cell.source)))
            answer, before, other = compile(tree, "<answer>", "exec"), dict(names), set()

            def noted(x, other=other):
                for name in FORMS.keys() - other:
                    if (formed := FORMS[name](x)) is not x and repr(formed) != repr(x):
                        other.add(name)
                return x
            names["_form"] = noted
            exec(answer, names)
            continue
        hidden.play(cell.source, names)
        if what == "check":
            for name in sorted(other):
                mine = before | {"_form": FORMS[name]}
                exec(answer, mine)
                try:
                    hidden.play(cell.source, mine)
                except Exception as error:
                    out.append((exercise, name, f"{type(error).__name__}: {error}"))
            tried += len(other)
    return out, tried


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
def test_a_right_answer_passes_in_another_form(path):
    out, tried = refused(nbformat.read(path, 4))
    assert tried and {(n, form) for n, form, _ in out} == {x for x in REFUSED if x[0].split(".")[0] == path.stem.split("-")[0].lstrip("0")}, out


def test_a_wrong_answer_stays_wrong():
    assert plain((np.int64(3), 4.0, np.array([1.0, 2.5]), Fraction(4, 2), Fraction(1, 2))) == [3, 4, [1, 2.5], 2, Fraction(1, 2)]
    assert same((1, 1.6), [np.int64(1), Fraction(8, 5)]) and same(np.inf, np.inf) and same(np.array([2, 3]), (2.0, 3))
    assert not any(same(got, want) for got, want in [((1, 2), (1, 3)), (None, 3), ([1], 1), ((1, 2), (1,)), ("a", 3), (1.001, 1)])
    assert type(plain(np.bool_(True))) is bool and plain(Op("F", np.int64(0), 1.0)) == Op("F", 0, 1)


def test_a_function_that_is_taken_away_raises_by_any_name_and_comes_back():
    alias, wanted = capacity.one_f_one_b, capacity.one_f_one_b(2, 3)
    with without(capacity.one_f_one_b):
        for call in (lambda: alias(2, 3), lambda: vars(importlib.import_module("capacity.witness.schedule"))["one_f_one_b"](p=2, m=3)):
            with pytest.raises(AssertionError, match="without one_f_one_b"):
                call()
    with pytest.raises(ZeroDivisionError), without(alias):
        raise ZeroDivisionError
    assert alias(2, 3).orders == wanted.orders


@pytest.mark.parametrize("number, answer", [
    ("12.3", "from capacity.witness.collectives import bruck_reduce_scatter as b\ndef transposed_bruck(comm, blocks):\n    return b(comm, blocks)"),
    ("16.3", "import importlib\ndef order(s, p, m):\n    return getattr(importlib.import_module('capacity'), 'one_f_one_b')(p, m).orders[s]"),
])
def test_a_package_function_by_another_name_is_no_answer(number, answer):
    [path] = [p for p in SOLUTIONS if p.stem.startswith(number.split(".")[0] + "-")]
    names = {"__name__": "__main__"}
    for cell in nbformat.read(path, 4).cells:
        what, n = make_exercises.kind(cell)
        if (what, n) == ("check", number):
            exec(answer, names)
            with pytest.raises(Exception, match="write it yourself"):
                hidden.play(cell.source, names)
            return
        if cell.cell_type == "code":
            hidden.play(cell.source, names)
