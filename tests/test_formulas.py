"""Laws that every formula obeys, whatever it says."""
import json
import pickle
import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import capacity
from capacity import REGISTRY, formulas
from capacity.witness import collectives as algorithms
from capacity.grammar import Formula, formula
from capacity.units import Bytes, Seconds, show

ROOT = Path(__file__).resolve().parents[1]
KEYS = set(re.findall(r"^@\w+\{([^,]+),", (ROOT/"references.bib").read_text(), re.M))
each = pytest.mark.parametrize("F", [pytest.param(F, id=name) for name, F in sorted(REGISTRY.items())])


def code_cells(path):
    return ["".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]


@each
def test_units_and_trace(F):
    assert F.check()


@each
def test_array_equals_loop(F):
    rng = random.Random(F.__name__)
    points = [F.sample(rng) for _ in range(50)]
    columns = {k: np.array([p[k] for p in points]) for k in F.units}
    want = [F(**{k: p[k] for k in F.units}) for p in points]
    np.testing.assert_allclose(F(**columns), want, rtol=1e-13)


@each
def test_symbol_equals_number(F):
    point = F.sample(random.Random(1))
    value = F.expr.subs({F.symbols[k]: point[k] for k in F.units})
    assert float(value) == pytest.approx(F(**{k: point[k] for k in F.units}), rel=1e-12)


@each
def test_source_and_chapter_exist(F):
    assert F.source == "derived" or F.source in KEYS
    assert (ROOT/"chapters"/f"{F.chapter}.ipynb").exists()


@each
def test_its_chapter_proves_it(F):
    """The chapter that claims a formula compares a derivation with it, by name."""
    cells = code_cells(ROOT/"chapters"/f"{F.chapter}.ipynb")
    proofs = [c for c in cells if re.search(rf"\b{F.__name__}\(", c) and "assert" in c]
    assert proofs, f"no assert in {F.chapter} names {F.__name__}"


@each
def test_bad_values_are_named(F):
    good = {k: v for k, v in F.sample(random.Random(2)).items() if k in F.units}
    for k in F.units:
        for bad in (-1.0, np.array([1.0, -1.0]), float("nan")):
            with pytest.raises(ValueError, match=rf"{F.__name__}: {k} = "):
                F(**good | {k: bad})
        with pytest.raises(TypeError, match=k):
            F(**good | {k: "1 GB"})
        if F.units[k].whole and F.units[k].least >= 1:
            with pytest.raises(ValueError, match=f"{k} = 0"):
                F(**good | {k: 0})
    with pytest.raises(TypeError):
        F(**good, no_such_argument=1)


@each
def test_card_and_pickle(F):
    assert pickle.loads(pickle.dumps(F)) is F
    card = F._repr_html_()
    assert all(f"<code>{k}</code>" in card for k in F.units) and F.summary in F.__doc__ and "`" not in card


@each
def test_a_card_says_where_a_formula_is_from(F):
    assert (f"source: {F.source}" in F._repr_html_()) == (F.source != "derived")
    assert f"derived in {F.chapter}" in F._repr_html_() and str(F.unit or "a pure number") in F._repr_html_()


@each
def test_fraction_equals_number(F):
    point = {k: v if F.units[k].whole else Fraction(v).limit_denominator(1000)
             for k, v in F.sample(random.Random(4)).items() if k in F.units}
    want = F(**{k: float(v) for k, v in point.items()})
    assert F(**point) == pytest.approx(want, rel=1e-12) == F(*point.values())


def test_fractions_stay_exact_and_arrays_stay_floats():
    third = Fraction(1, 3)
    assert capacity.ring_all_reduce_time(third, 4, Fraction(1, 7), 2) == Fraction(6, 7) + Fraction(1, 4)
    for mixed in (capacity.ring_all_reduce_time(third, np.array([4.0]), 1, 2),
                  capacity.ring_all_reduce_time(n=third, P=np.array([4.0]), alpha=1, beta=2)):
        assert mixed.dtype == float and mixed[0] == pytest.approx(6.25)
    with pytest.raises(ValueError, match="n = -1/3; allowed: at least 0"):
        capacity.message_time(-third, 1, 1)


def test_a_link_in_the_place_of_a_number_is_told_how():
    wire = capacity.link("nvlink4")
    with pytest.raises(TypeError, match=r"alpha = .*; a Link goes in as \*\*link"):
        capacity.ring_all_reduce_time(1.0, 8, wire)
    assert capacity.ring_all_reduce_time(1.0, 8, **wire) > 0
    with pytest.raises(TypeError, match="sympy expressions$"):
        capacity.ring_all_reduce_time(1.0, 8, "nvlink4")


def test_even_counts_only():
    for side in 3, np.array([4, 3]), np.int64(3), sp.Integer(3), 3.0, Fraction(3):
        with pytest.raises(ValueError, match="side = 3.*allowed: a multiple of 2, at least 2"):
            capacity.torus_all_to_all_bound(1.0, side, 1.0)
    assert capacity.torus_all_to_all_bound(1.0, np.array([2, 16]), 1.0).tolist() == [0.25, 2.0]


def test_missing_argument_is_named():
    with pytest.raises(TypeError, match="beta"):
        capacity.message_time(n=1.0, alpha=1e-6)


def test_integers_do_not_wrap():
    params, tokens = np.array([405_000_000_000]), np.array([15_600_000_000_000])
    assert capacity.train_flops(params, tokens)[0] == pytest.approx(3.79e25, rel=1e-3)


def test_short_floats_do_not_overflow():
    got = capacity.message_time(np.array([6e4], dtype=np.float16), 0, np.float32(1e-3))
    assert got.dtype == np.float64 and got[0] == pytest.approx(6e7, rel=1e-3)


def test_powers_of_two_only():
    for P in 6, np.array([8, 6]), np.int64(6), sp.Integer(6):
        with pytest.raises(ValueError, match="P = 6.*allowed: a power of two, at least 2"):
            capacity.recursive_doubling_all_reduce_time(1.0, P, 1e-6, 1e9)
    assert capacity.recursive_doubling_all_reduce_time(1.0, np.array([2, 2**40]), 1.0, 1.0).tolist() == [2, 80]


@pytest.mark.parametrize("P", [float("inf"), np.array([1.0, np.inf]), 10**400, sp.oo, sp.zoo, sp.nan, sp.I, sp.true,
                               sp.Symbol("q", negative=True), sp.Symbol("q", imaginary=True)], ids=lambda P: str(P)[:9])
def test_a_count_is_finite_and_real(P):
    with pytest.raises(ValueError, match="ring_all_reduce_time: P = .*; allowed: a count, at least 1"):
        capacity.ring_all_reduce_time(1.0, P, 1.0, 1.0)


@pytest.mark.parametrize("n", [True, np.True_, None, 1j, [1.0], "1", np.array([True]), np.array(["1"]), np.array([1j]),
                               np.array([1, None]), np.ma.array([1.0], mask=[True])], ids=repr)
def test_what_is_no_number_is_named(n):
    with pytest.raises(TypeError, match="message_time: n = .*; allowed: numbers"):
        capacity.message_time(n, 1.0, 1.0)
    with pytest.raises(TypeError, match="message_time: n = .*; allowed: numbers"):
        capacity.message_time(n=n, alpha=1.0, beta=1.0)


def test_shapes_broadcast_and_an_empty_array_stays_empty():
    assert capacity.message_time(np.ones((3, 1)), np.ones(4), 1.0).shape == (3, 4)
    assert capacity.message_time(np.array([]), 1.0, 1.0).shape == (0,)
    assert capacity.message_time(np.array(3), 1.0, 1.0) == 4.0


def test_help_says_units_domain_and_meaning():
    text = capacity.tokens_per_second.__doc__
    for line in ("    mfu: ratio, above 0 and at most 1; model FLOP utilization", "    P: a count, at least 1; ranks",
                 "    per_weight: FLOP, constant 6", "Returns: 1/s", "Source: derived", "Derived in: 03a-data-pipeline-io"):
        assert line in text.splitlines(), text


@pytest.mark.parametrize("chapter, source", [("", "kaplan2020"), ("01-scale-imperative", "")])
def test_no_formula_without_source_and_chapter(chapter, source):
    def nameless(n: Bytes) -> Bytes:
        """A sentence."""
        return 2*n
    with pytest.raises(ValueError, match="nameless"):
        formula(chapter=chapter, source=source)(nameless)
    with pytest.raises(TypeError):
        formula(chapter="01-scale-imperative")


def test_no_formula_with_an_unknown_letter_or_a_taken_name():
    def ring_all_reduce_time(n: Bytes) -> Bytes:
        """A sentence."""
        return n

    def unlettered(ell: Bytes) -> Bytes:
        """A sentence."""
        return ell
    for function, word in (ring_all_reduce_time, "twice"), (unlettered, "ell"):
        with pytest.raises(ValueError, match=word):
            formula(chapter="04-alpha-beta-model", source="derived")(function)


def test_check_catches_a_wrong_unit_and_a_branch():
    def slow(n: Bytes, alpha: Seconds) -> Seconds:
        """Adds bytes to seconds."""
        return alpha + n

    def branch(n: Bytes, P: formulas.collectives.Count) -> Bytes:
        """A symbol is never == 2."""
        return n if P == 2 else 2*n
    def nearly(n: Bytes) -> Bytes:
        """Off by a millionth, which nobody would see."""
        return n + n*n/1000000
    for function in (slow, branch, nearly):
        F = Formula(function, "04-alpha-beta-model", "derived")
        try:
            with pytest.raises(AssertionError):
                F.check()
        finally:
            del REGISTRY[F.__name__]


@pytest.mark.parametrize("x, unit, text", [
    (2.5e-3, "s", "2.5 ms"), (1e-5, "s", "10 µs"), (1e11, "B/s", "100 GB/s"), (1.12e12, "B", "1.12 TB"),
    (999.96e9, "B", "1 TB"), (3.2e8, "s", "10.1 years"), (11124, "s", "3.09 h"), (2.1e6, "$", "$2.1 M"), (1.2e9, "$", "$1.2 B"), (0.02, "$", "$0.02"),
    (0.345, "%", "34.5 %"), (19788.2, "FLOP/B", "19,788 FLOP/B"), (7e10, "", "70×10⁹"), (1e9, "", "10⁹"),
    (3.14e23, "FLOP", "3.14×10²³ FLOP"), (131072, "", "131,072"), (0, "B", "0 B"), (-3e-6, "s", "-3 µs"),
    (999, "$", "$999"), (-5, "$", "-$5"), (-2e6, "$", "-$2 M"), (90, "s", "90 s"), (5400, "s", "90 min"), (3*86400, "s", "3 days"),
    (5e20, "B", "500 EB"), (1e21, "B", "10²¹ B"), (5e-4, "", "500×10⁻⁶"), (-0.0, "B", "0 B"), (-0.0, "", "0"), (float("-inf"), "s", "-∞"),
    (float("nan"), "s", "n/a"), (float("inf"), "s", "∞"), (0.0021, "", "0.0021"), (64, "ranks", "64 ranks"),
    (1e15, "$", "$1,000 T"), (5e17, "$", "$500,000 T"), (1e18, "$", "$10¹⁸"), (1e-7, "$", "$10⁻⁷"), (2.5e-6, "$", "$2.5×10⁻⁶"),
    (-4e-4, "$", "-$4×10⁻⁴"), (0.002, "$", "$0.002"), (0, "$", "$0"), (999.7, "$", "$1 k"), (999.4, "$", "$999"),
    (1e-30, "B", "10⁻³⁰ B"), (1e-13, "s", "0.1 ps"), (9e-15, "s", "9×10⁻¹⁵ s"), (119.96, "s", "2 min"), (119.4, "s", "119 s"),
    (7199, "s", "2 h"), (2*86400 - 1, "s", "2 days"), (1.5*86400, "s", "36 h"), (Fraction(1, 4), "", "0.25"), (sp.Rational(1, 4), "%", "25 %")])
def test_show(x, unit, text):
    assert show(x, unit) == text


def test_more_digits():
    assert (show(119.96, "s", 4), show(999.7, "$", 4), show(12345, "B", 5)) == ("2 min", "$1,000", "12.345 kB")
    assert (show(119.96, "s", 5), show(-119.96, "s", 4)) == ("119.96 s", "-2 min")


@pytest.mark.parametrize("x", [np.array([1.0]), np.array([1, 2]), "80 GB", "3", None, [1], 1j, sp.Symbol("x")], ids=repr)
def test_what_cannot_be_shown_is_named(x):
    with pytest.raises(TypeError, match="^x = .*; allowed: one number$"):
        show(x)


def test_a_number_above_all_floats_is_refused():
    with pytest.raises(ValueError, match="x has 401 digits; allowed: a number below 10³⁰⁸"):
        show(10**400)


def test_units_read_as_they_are_written():
    from capacity.units import byte, dollar, flop, second
    assert [str(u) for u in (dollar, dollar/second, flop/byte, second*second, byte/(second*second))] \
        == ["$", "$/s", "FLOP/B", "s^2", "B/s^2"]


def test_unknown_name_lists_the_close_ones():
    with pytest.raises(AttributeError, match="ring_all_reduce_time"):
        capacity.ring_all_reduce_tim  # noqa: B018


@pytest.mark.parametrize("name, hint", [
    ("H100", r'accelerator\("h100-sxm"\), accelerator\("h100-pcie"\)'), ("nvlink4", r'link\("nvlink4"\)'),
    ("llama3_70b", r'model\("llama3-70b"\)'), ("dgx_h100", r'cluster\("dgx-h100"\)'), ("qwen25_7b", r'model\("qwen2.5-7b"\)')])
def test_data_are_not_names_and_say_how_to_get_them(name, hint):
    with pytest.raises(AttributeError, match=f"capacity has no '{name}'; did you mean {hint}"):
        getattr(capacity, name)
    with pytest.raises(ImportError, match=f"capacity has no '{name}'; did you mean {hint}"):
        exec(f"from capacity import {name}")
    assert not hasattr(capacity, name)


def test_general_words_stand_in_their_modules():
    """And a word has one meaning: Link and Run are those of the simulated ranks."""
    from capacity import hardware, placement, runs
    from capacity.pictures import plot
    from capacity.witness import spmd
    homes = {"search": placement, "matmul": placement, "conversion": placement, "Move": placement, "Level": hardware,
             "label": plot, "ticks": plot}
    for name, home in homes.items():
        assert not hasattr(capacity, name) and hasattr(home, name), name
    assert capacity.Link is spmd.Link and capacity.Run is spmd.Run and isinstance(capacity.run(lambda comm, x: x, [0]*2), capacity.Run)
    assert isinstance(capacity.link("ndr"), hardware.PublishedLink) and capacity.PublishedRun is runs.PublishedRun


def test_the_package_has_no_other_names():
    """`import *` brings what dir() lists, no module among it; submodules load when asked for, in any order."""
    import subprocess
    import sys
    names = {}
    exec("from capacity import *", names)
    assert set(dir(capacity)) == names.keys() - {"__builtins__"}
    assert not [k for k, x in names.items() if isinstance(x, type(capacity))]
    programs = {k for k, x in vars(algorithms).items() if k[0] != "_" and getattr(x, "__module__", "") == algorithms.__name__}
    assert programs | {"run", "two_level", "Deadlock", "Mismatch", "ProgramError"} <= set(dir(capacity))
    subprocess.run([sys.executable, "-c", "import capacity; capacity.formulas, capacity.js; import capacity.pictures.explorer, capacity.grammar;"
                    "assert callable(capacity.explore) and callable(capacity.formula) and callable(capacity.estimate)"],
                   check=True, cwd=ROOT)


def test_what_the_package_imports_it_depends_on():
    """And nothing else but what a notebook brings: IPython, for its displays."""
    import ast
    import sys
    import tomllib
    listed = tomllib.loads((ROOT/"pyproject.toml").read_text())["project"]["dependencies"]
    bounds = dict(entry.split(">=") for entry in listed)
    imported = {name.split(".")[0] for path in (ROOT/"capacity").rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))
                for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else
                             [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])}
    assert imported - set(sys.stdlib_module_names) - {"capacity", "IPython", "matplotlib_inline"} == set(bounds)
    assert (bounds["numpy"], bounds["sympy"]) == ("2", "1.14")


def test_import_is_light():
    import subprocess
    import sys
    heavy = subprocess.run([sys.executable, "-c", "import sys, capacity; from capacity import message_time; message_time(1., 1., 1.);"
                            "print([m for m in ('sympy', 'matplotlib', 'ipywidgets', 'IPython') if m in sys.modules])"],
                           capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert heavy.strip() == "[]"


def test_import_takes_fifteen_milliseconds_beyond_numpy():
    """Of the processor, the least of seven processes."""
    import subprocess
    import sys
    program = "import numpy, time; began = time.process_time(); import capacity; print(time.process_time() - began)"
    took = min(float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout)
               for _ in range(7))
    assert took < .015, f"{1000*took:.1f} ms"
