"""sympy to one line of JavaScript, and to the same line of numpy.

One walk over the expression prints both languages, operation by operation, so that `+ - * /` and
`sqrt` round identically and a `ceil` cannot fall on different sides.

* What a target cannot express raises NotImplementedError; nothing is approximated.
* log(x)/log(2) becomes log2(x): ceil(log(2**29)/log(2)) is 30, ceil(log2(2**29)) is 29.
* x**k - 1 becomes expm1(k*log(x)): near x = 1 the difference would lose half of its digits.
* 1 + W(-exp(-1 - x)) becomes a series where x is small: near the branch point the sum would lose half of its digits.
* Lambert's W, which neither language has, is eight steps of Halley's method, written out in JavaScript.
* The caller names the symbols, so one called `lambda` or `n_\\text{h}` cannot break the code.
"""
import functools

import numpy as np
import sympy as sp
from sympy.codegen import cfunctions

from .algebra import lambertw

CALLS = {"Abs": "abs", "ceiling": "ceil", "floor": "floor", "exp": "exp", "log": "log",
         "log2": "log2", "log10": "log10", "log1p": "log1p", "expm1": "expm1", "sign": "sign",
         "LambertW": "lambertw", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh"}
LOGS = {sp.log(2): cfunctions.log2, sp.log(10): cfunctions.log10}
# Halley's method for w*exp(w) = z, from a start within 2 %; on the branch point, z = -1/e, the start is exact.
LAMBERT = ("(z => { const y = Math.sqrt(Math.max(0, 1 + Math.E*z)); "
           "let w = -1 + 2.036*Math.log((1 + 1.14956131*y)/(1 + 0.4549574*Math.log1p(y))); "
           "for (let i = 0; i < 8 && w > -1; i++) { const e = Math.exp(w), f = w*e - z; "
           "w -= f/(e*(w + 1) - (w + 2)*f/(2*w + 2)); } return w; })")
# 1 + W(-exp(-1 - x)) in powers of sqrt(2*x), from the first: up to x = 1/800 the rest is below rounding.
NEAR = [sp.Rational(*c) for c in ((1, 1), (-1, 3), (1, 36), (1, 270), (1, 4320), (-1, 17_010), (-139, 5_443_200), (-1, 204_120))]
SUM, PRODUCT, ATOM = range(3)               # how tightly a piece of text binds


@functools.lru_cache(1000, typed=True)           # the same expression becomes JavaScript and numpy
def canonical(expr):
    """`expr` with log(x)/log(2), log(x)/log(10) and x**k - 1 folded into log2(x), log10(x) and expm1(k*log(x))."""
    def pair(e):
        if e.is_Mul:
            for base, log in LOGS.items():
                tops = [a for a in e.args if isinstance(a, sp.log) and a != base]
                if 1/base in e.args and tops:
                    return log, base, tops[0]
        return None

    def fold(e):
        log, base, top = pair(e)
        return canonical(e * base / top) * log(top.args[0])

    def power_less_one(e):
        if e.is_Add and len(e.args) == 2 and -1 in e.args:
            x, k = (e + 1).as_base_exp()
            return x.is_Symbol and x.is_positive and not k.is_number
        return False

    def expm1(e):
        x, k = (e + 1).as_base_exp()
        return cfunctions.expm1(k*sp.log(x))

    return sp.sympify(expr).replace(pair, fold).replace(power_less_one, expm1).replace(
        lambda e: e.is_Add and 1 in e.args and any(map(_beside, e.args)), _near)


def _beside(e):
    """x where `e` is LambertW(-exp(-1 - x)) and x is known to be positive, None elsewhere."""
    z = -e.args[0] if isinstance(e, sp.LambertW) else None
    x = -1 - z.exp if isinstance(z, sp.exp) else None
    return x if x is not None and x.is_positive else None


def _near(total):
    """`total`, a sum with 1 + LambertW(-exp(-1 - x)), with the first terms of its series where x is small."""
    w = next(a for a in total.args if _beside(a))
    x = _beside(w)
    y = sp.sqrt(2*x)
    series = sp.Integer(0)
    for c in reversed(NEAR):
        series = y*(c + series)
    return total - 1 - w + sp.Piecewise((series, x < sp.Rational(1, 800)), (1 + w, True))


def javascript(expr, names):
    """The text of `expr` as JavaScript; `names` maps each free symbol to the text for it."""
    return _text(canonical(expr), names, _JavaScript)


def python(expr, names):
    """The text of `expr` as numpy, called `np`; operation for operation what javascript() gives."""
    return _text(canonical(expr), names, _Numpy)


def arrow(expr, args):
    """`expr` as a JavaScript arrow function; `args` maps parameter names to symbols, in order."""
    return f"({', '.join(args)}) => {javascript(expr, {s: k for k, s in args.items()})}"


def function(args, expr):
    """`expr` as a numpy function of one vector v, where v[i] is the value of the i-th of `args`.

    An element of `args` may be a tuple of symbols that share a value. Values are floats or arrays.
    """
    names = {s: f"v[{i}]" for i, group in enumerate(args)
             for s in (group if isinstance(group, tuple) else (group,))}
    return eval(f"lambda v: {python(expr, names)}", {"np": np, "lambertw": lambertw})


class _JavaScript:
    @staticmethod
    def call(name, args):
        return f"{LAMBERT if name == 'lambertw' else 'Math.' + name}({', '.join(args)})"

    extreme = call

    @staticmethod
    def choose(cond, yes, no):
        return f"({cond} ? {yes} : {no})"

    @staticmethod
    def mod(a, b):                                   # % keeps the sign of the dividend
        return f"({a} % {b} < 0 ? {a} % {b} + {b} : {a} % {b})"

    compare = {"==": "===", "!=": "!=="}
    join = {sp.And: " && ", sp.Or: " || "}
    negate, true, false = "!", "true", "false"


class _Numpy:
    @staticmethod
    def call(name, args):
        name = {"abs": "absolute", "pow": "power"}.get(name, name)
        return f"{'' if name == 'lambertw' else 'np.'}{name}({', '.join(args)})"

    @staticmethod
    def extreme(name, args):
        return functools.reduce(lambda a, b: f"np.{name}imum({a}, {b})", args)

    @staticmethod
    def choose(cond, yes, no):
        return f"np.where({cond}, {yes}, {no})"

    @staticmethod
    def mod(a, b):
        return f"np.mod({a}, {b})"

    compare = {}
    join = {sp.And: " & ", sp.Or: " | "}
    negate, true, false = "~", "np.True_", "np.False_"


def _text(expr, names, to):
    def at(level, e):
        bound, text = go(e)
        return f"({text})" if bound < level else text

    def product(args):
        return "*".join(at(PRODUCT, a) for a in args) if args else "1"

    @functools.cache                             # what an expression has several times is written once
    def go(e):
        if e.is_Symbol:
            if e not in names:
                raise ValueError(f"no value for the symbol {e}")
            return ATOM, names[e]
        if e.is_Integer or e.is_Float or e.is_NumberSymbol:
            small = e.is_Integer and abs(int(e)) < 2**53
            return (SUM if e < 0 else ATOM), str(e) if small else repr(float(e))
        if e.is_Rational:
            small = max(abs(e.p), e.q) < 2**53
            return (SUM if e < 0 else PRODUCT), f"{e.p}/{e.q}" if small else repr(float(e))
        if e.is_Add:
            text = "".join(f" - {at(PRODUCT, -a)}" if a.could_extract_minus_sign() and not a.is_Add
                           else f" + {at(PRODUCT, a)}" for a in e.args)
            return SUM, text[3:] if text.startswith(" + ") else "-" + text[3:]
        if e.is_Mul or e.is_Pow and e.exp.is_Number and e.exp < 0:
            if e.is_Mul and e.could_extract_minus_sign() and e.args[0].is_Number:
                return SUM, "-" + at(PRODUCT, -e)
            over, under = sp.fraction(e, exact=True)
            if under == 1:
                return PRODUCT, product(e.args)
            top, bottom = sp.Mul.make_args(over), sp.Mul.make_args(under)
            text = f"({product(bottom)})" if len(bottom) > 1 else at(ATOM, bottom[0])
            return PRODUCT, f"{product(top)}/{text}"
        if e.is_Pow:
            if e.exp == sp.S.Half:
                return ATOM, to.call("sqrt", [go(e.base)[1]])
            return ATOM, to.call("pow", [go(e.base)[1], go(e.exp)[1]])
        if isinstance(e, (sp.Max, sp.Min)):
            args = sorted(e.args, key=sp.default_sort_key)
            return ATOM, to.extreme(type(e).__name__.lower(), [go(a)[1] for a in args])
        if isinstance(e, sp.Mod) and e.args[1].is_positive:
            return ATOM, to.mod(*(at(ATOM, a) for a in e.args))
        if isinstance(e, sp.Piecewise):
            if e.args[-1][1] != sp.true:
                raise NotImplementedError(f"a Piecewise without a (value, True) branch: {e}")
            text = go(e.args[-1][0])[1]
            for value, cond in reversed(e.args[:-1]):
                text = to.choose(go(cond)[1], go(value)[1], text)
            return ATOM, text
        if e.is_Relational:
            return ATOM, f"({go(e.lhs)[1]} {to.compare.get(e.rel_op, e.rel_op)} {go(e.rhs)[1]})"
        if isinstance(e, (sp.And, sp.Or)):
            args = sorted(e.args, key=sp.default_sort_key)
            return ATOM, "(" + to.join[type(e)].join(go(a)[1] for a in args) + ")"
        if isinstance(e, sp.Not):
            return ATOM, to.negate + go(e.args[0])[1]
        if e in (sp.true, sp.false):
            return ATOM, to.true if e == sp.true else to.false
        if type(e).__name__ in CALLS and len(e.args) == 1:
            return ATOM, to.call(CALLS[type(e).__name__], [go(e.args[0])[1]])
        raise NotImplementedError(f"cannot compile {type(e).__name__}: {e}")

    return go(expr)[1]
