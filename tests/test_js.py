"""The JavaScript that a reader's sliders run is the numpy that the notebooks run, and both are what sympy says."""
import random
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p, log2, log10

import capacity
from capacity import REGISTRY, formulas, geometric, lambertw, where  # noqa: F401  (loads the registry)
from capacity.js import arrow, canonical, function, javascript
from javascript import number, run

x, y = sp.symbols("x y", positive=True)
q = sp.Symbol("lambda", positive=True)             # a reserved word in both languages
NAMES = {x: "v[0]", y: "v[1]", q: "v[2]"}
CASES = [
    2*(x - 1)/x*y, sp.Rational(2, 3)*x**2/y, -sp.Rational(7, 3)*x, x**-2 - y**-3, x**sp.Rational(-3, 2), 2/(3*sp.sqrt(x)),
    sp.sqrt(x*y)/(x + y)**3, -(x + y)*(x - 1)/q, 1/(1/x + 1/y), x - (y - (q - 3)), -x*(-y)**3, (x - y)/(q - y*x),
    sp.ceiling(sp.log(x, 2)), sp.ceiling(log2(x)) + sp.floor(log2(y)), 3*y*sp.log(x, 2)/q, sp.log(x, 10), sp.log(x)*sp.pi + sp.E,
    sp.log(x)*sp.log(y)/sp.log(2), sp.exp(-x/y), sp.exp(x/100)*x**(-y/50), sp.Abs(x - y)**sp.Rational(3, 2),
    sp.Max(x, y, 3) - sp.Min(x, y, q), sp.Max(x/7, sp.Min(y, sp.ceiling(q))), sp.Mod(x, 7) + sp.Mod(-y, 3), sp.floor(x/y)*y,
    sp.ceiling(x/8)*8, sp.ceiling(sp.sqrt(x)) - sp.floor(-y), sp.tanh(x/1e3) + sp.sin(y) + sp.cos(q), sp.sign(x - y),
    sp.Piecewise((x/y, x < y), (sp.exp(-x), x < 100), (1, True)), sp.Piecewise((1, (x > 2) & (y < 5)), (0, True)),
    sp.Piecewise((x, sp.Or(x < 2, sp.Not(sp.And(y > 3, q > 1)))), (y, True)), sp.Piecewise((x, sp.Eq(x, y)), (-x, sp.Ne(x, q)), (0, True)),
    10**25*x/y, sp.Integer(2)**70*x, x*sp.Float("6.02214076e23") - sp.Float("0.1"), sp.Rational(10**30 + 1, 10**29)*y, 1e-9*x + 1e12/y,
    2.0**x/2.0**y, (x + 1)**y/(y + 1)**x, expm1(x/1e3) + log1p(y) + log10(q), sp.Integer(5), sp.pi/2,
    sp.Piecewise((y, sp.Eq(x, 1)), ((x**y - 1)/(x - 1), True)),
]
POINTS = [*np.exp(np.random.default_rng(1).uniform(-3, 6, (200, 3))).tolist(),
          *[[2.0**k, 3.0, 5.0] for k in range(1, 60)], *[[float(k), 2.0, float(k)] for k in range(1, 30)]]


@pytest.fixture(scope="module")
def in_javascript():
    code = [javascript(e, NAMES) for e in CASES]
    out = run("return data.code.map(c => data.points.map(new Function('v', 'return ' + c)))", {"code": code, "points": POINTS})
    return [[number(v) for v in row] for row in out]


@pytest.mark.parametrize("i", range(len(CASES)), ids=lambda i: str(CASES[i])[:50])
def test_javascript_is_numpy_is_sympy(in_javascript, i):
    f = function([x, y, q], CASES[i])
    g = sp.lambdify([x, y, q], canonical(CASES[i]), "numpy")
    points = np.array(POINTS).T
    with np.errstate(all="ignore"):
        ours = np.broadcast_to(np.asarray(f(points), float), points.shape[1])
        theirs = np.broadcast_to(np.asarray(g(*points), float), points.shape[1])
        one = [float(f(np.array(p))) for p in POINTS]
    np.testing.assert_allclose(in_javascript[i], ours, rtol=1e-12)
    np.testing.assert_allclose(one, ours, rtol=1e-15, err_msg="one point at a time")
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_ceil_of_log2_is_exact_at_powers_of_two(in_javascript):
    i = CASES.index(sp.ceiling(sp.log(x, 2)))
    powers = [k for k, p in enumerate(POINTS) if p[1:] == [3.0, 5.0]]
    assert [in_javascript[i][k] for k in powers] == list(range(1, 60))
    naive = sp.lambdify([x], CASES[i], "math")
    assert naive(2.0**29) == 30, "the quotient of logarithms is no longer wrong: canonical() may go"


def test_geometric_sum_keeps_its_digits_near_one():
    near = [1 + s*m*10.0**-e for e in range(1, 17) for m in (1, 1.7, 3.3) for s in (1, -1)]
    terms = [1, 2, 5, 17, 65]
    exact = np.array([[float(sum(Fraction(r)**i for i in range(k))) for k in terms] for r in near])
    expr = geometric(x, y)
    assert not canonical(expr).has(x**y), "the plain difference is back"
    got = run("return data.points.map(new Function('v', 'return ' + data.code))",
              {"code": javascript(expr, NAMES), "points": [[r, k] for r in near for k in terms]})
    np.testing.assert_allclose(np.reshape(got, exact.shape), exact, rtol=1e-14)
    np.testing.assert_allclose([[geometric(r, k) for k in terms] for r in near], exact, rtol=1e-14)
    np.testing.assert_allclose(geometric(np.array(near)[:, None], np.array(terms)), exact, rtol=1e-14)


def test_a_power_of_what_may_be_negative_stays_a_power():
    """expm1(k log x) has no value at x < 0, where x**3 - 1 has one."""
    k = sp.Symbol("k", integer=True, positive=True)
    for some in sp.Symbol("a"), sp.Symbol("a", real=True), sp.Symbol("a", nonnegative=True):
        assert canonical(some**k - 1) == some**k - 1
        assert function([some, k], some**k - 1)([-2.0 if not some.is_nonnegative else 0.0, 3]) == (-9 if not some.is_nonnegative else -1)
        got = run("return data.points.map(new Function('v', 'return ' + data.code))",
                  {"code": javascript(some**k - 1, {some: "v[0]", k: "v[1]"}), "points": [[-2.0, 3], [0.0, 3]]})
        assert got == [-9, -1]
    assert canonical(x**k - 1) == expm1(k*sp.log(x))


def test_where_means_the_same_for_numbers_arrays_and_symbols():
    for v in -1.0, 2.0:
        want = 10 if v < 1 else 20
        assert where(v < 1, 10, 20) == want and where(np.array([v]) < 1, 10, 20) == [want]
        assert where(x < 1, 10, 20).subs(x, v) == want and where(np.bool_(v < 1), 10, 20) == want


@pytest.mark.parametrize("name, values, want", [
    ("log2", [8.0], 3), ("log", [float(np.e**2)], 2), ("exp", [1.0], np.e), ("sqrt", [6.25], 2.5), ("ceil", [2.5], 3),
    ("floor", [2.5], 2), ("maximum", [2.0, 3.0], 3), ("minimum", [2.0, 3.0], 2), ("geometric", [2.0, 5.0], 31),
    ("lambertw", [2*float(np.e**2)], 2)])
def test_one_name_for_numbers_arrays_and_symbols(name, values, want):
    f, symbols = getattr(capacity, name), (x, y)[:len(values)]
    assert f(*values) == pytest.approx(want, rel=1e-14)
    assert f(*(np.array([v, v]) for v in values)) == pytest.approx([want, want], rel=1e-14)
    assert float(f(*symbols).subs(dict(zip(symbols, values)))) == pytest.approx(want, rel=1e-14)


def test_geometric_sum_at_the_ends_of_its_domain():
    assert geometric(0, 5) == 1 and geometric(1, 5) == 5 and geometric(2.0, 10**6) == float("inf")
    with np.errstate(all="raise"):
        assert geometric(np.array([0.0, 1.0, 2.0]), np.array([5.0, 5.0, 1e6])).tolist() == [1, 5, float("inf")]


def test_every_formula_as_an_arrow_function():
    names, code, points = list(REGISTRY), [], []
    rng = random.Random(3)
    for name in names:
        F = REGISTRY[name]
        code.append(F.js())
        points.append([{k: v for k, v in F.sample(rng).items() if k in F.units} for _ in range(20)])
    got = run("return data.code.map((c, i) => data.points[i].map(p => eval(c)(...p)))",
              {"code": code, "points": [[list(p.values()) for p in ps] for ps in points]})
    for name, values, ps in zip(names, got, points):
        want = [REGISTRY[name](**p) for p in ps]
        np.testing.assert_allclose([number(v) for v in values], want, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("bad", [
    sp.gamma(x), sp.erf(x), sp.Sum(x, (y, 1, 3)), sp.Piecewise((x, x < 1)), sp.Function("f")(x), sp.I*x, sp.oo, sp.nan, sp.zoo,
    sp.harmonic(x), sp.Mod(x, -y), sp.binomial(x, y), sp.Integral(sp.exp(-x*y**2), (y, 0, 1))], ids=str)
def test_what_cannot_be_stated_raises(bad):
    name = "ImaginaryUnit" if bad.has(sp.I) else type(bad).__name__
    with pytest.raises(NotImplementedError, match=name):
        javascript(bad, NAMES)


def test_a_symbol_without_a_name_raises():
    with pytest.raises(ValueError, match="z"):
        javascript(x + sp.Symbol("z"), NAMES)


def test_arrow_function_reads_like_the_formula():
    assert arrow(x + sp.ceiling(log2(y)), {"n": x, "P": y}) == "(n, P) => n + Math.ceil(Math.log2(P))"


def test_lambertw_from_its_branch_point_to_the_largest_floats():
    z = [-float(np.exp(-1)), -1/np.e, -0.3678794411714, -0.2, -1e-12, 0.0, 1e-9, 0.5, 3.0, 1e3, 1e12, 1e150, 1e300]
    code = javascript(sp.LambertW(y), {y: "v"})
    ours = run("return data.z.map(v => (" + code + "))", {"z": z})
    want = [lambertw(v) for v in z]
    np.testing.assert_allclose([number(v) for v in ours], want, rtol=1e-7, atol=2e-8)
    np.testing.assert_allclose([number(v) for v in ours[3:]], want[3:], rtol=1e-13)
    np.testing.assert_allclose(lambertw(np.array(z)), want, rtol=1e-15)
    np.testing.assert_array_equal(function([y], sp.LambertW(y))([np.array(z)]), want)
    assert want[:2] == [-1, -1] and all(w*np.exp(w) == pytest.approx(v, rel=1e-12) for w, v in zip(want[3:11], z[3:11]))
