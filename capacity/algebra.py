"""Functions that mean the same thing for numbers, numpy arrays and symbols.

Everything else a formula needs (+ - * / ** and comparisons) Python already dispatches.  Formulas import
from here, never from `math`.  sympy is not imported until somebody else has imported it; other kinds of
symbols `register`.
"""
import itertools
import math
import sys
from fractions import Fraction

import numpy as np


_KINDS = {}
NUMBERS = {float, int, bool, Fraction}
LONG = 400                                       # parts of an expression that is not compared with another


def register(kind, call):
    """Make objects of class `kind` symbols: call(name, *arguments) is what a function of this module returns for them.

    The class has the operators of Python, and the attributes by which the package asks a symbol for its domain:
    is_Boolean, is_number, is_comparable, is_negative, is_extended_real.
    """
    _KINDS[kind] = call


def is_symbolic(x):
    """Whether x is a sympy object or of a registered kind; while sympy has not been imported, it is not asked."""
    sympy = sys.modules.get("sympy")
    return type(x) in _KINDS or sympy is not None and isinstance(x, sympy.Basic)


def _generic(name, doc, scalar, array, symbolic):
    """One name, three meanings: pick by the kind of the arguments."""
    def f(*xs):
        for x in xs:
            if type(x) not in NUMBERS:
                break
        else:
            return scalar(*xs)
        for x in xs:
            if type(x) in _KINDS:
                return _KINDS[type(x)](name, *xs)
        if any(map(is_symbolic, xs)):
            return symbolic(sys.modules["sympy"])(*xs)
        return array(*xs)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    return f


def _log2(sympy):
    from sympy.codegen.cfunctions import log2         # log(x)/log(2) is off by one ulp at 2**29: ceil would be off by 1
    return log2


def _piecewise(sympy):
    return lambda condition, x, y: sympy.Piecewise((x, condition), (y, True))


def _extreme(name):
    """Max or Min, which sympy simplifies; of long arguments side by side: which one it is can take seconds or minutes."""
    def of(sympy):
        def short(x):
            return next(itertools.islice(sympy.preorder_traversal(x), LONG, None), None) is None
        return lambda a, b: getattr(sympy, name)(a, b, evaluate=all(map(short, map(sympy.sympify, (a, b)))))
    return of


def _geometric(x, k):
    one = x == 1
    y = np.where(one, 2, x)
    with np.errstate(divide="ignore", over="ignore"):             # log(0) and a sum above all floats are meant
        return np.where(one, k, np.expm1(k*np.log(y))/(y - 1))    # y**k - 1 would lose half of its digits near 1


def _geometric_sum(sympy):
    return lambda x, k: sympy.Piecewise((k, sympy.Eq(x, 1)), ((x**k - 1)/(x - 1), True))


def _lambert(z):
    from scipy.special import lambertw as lambert                 # who needs it pays for scipy, nobody else
    return np.where(z <= -math.exp(-1), -1.0, lambert(np.maximum(z, np.nextafter(-math.exp(-1), 0))).real)


log2 = _generic("log2", "Logarithm to base 2, exact at powers of two.", math.log2, np.log2, _log2)
log = _generic("log", "Natural logarithm.", math.log, np.log, lambda s: s.log)
exp = _generic("exp", "Exponential.", math.exp, np.exp, lambda s: s.exp)
sqrt = _generic("sqrt", "Square root.", math.sqrt, np.sqrt, lambda s: s.sqrt)
ceil = _generic("ceil", "Smallest integer not below x.", math.ceil, np.ceil, lambda s: s.ceiling)
floor = _generic("floor", "Largest integer not above x.", math.floor, np.floor, lambda s: s.floor)
maximum = _generic("maximum", "The larger of two.", max, np.maximum, _extreme("Max"))
larger = _generic("larger", "`maximum` that leaves two expressions side by side: which one it is can take sympy minutes.",
                   max, np.maximum, lambda s: lambda a, b: s.Max(a, b, evaluate=False))
minimum = _generic("minimum", "The smaller of two.", min, np.minimum, _extreme("Min"))
where = _generic("where", "x where the condition holds, else y.",
                 lambda condition, x, y: x if condition else y, np.where, _piecewise)
geometric = _generic("geometric", "The sum 1 + x + ... + x**(k - 1) of k terms, for x from 0; inf where it exceeds all floats.",
                     lambda x, k: float(_geometric(float(x), float(k))), _geometric, _geometric_sum)
lambertw = _generic("lambertw", "The w from -1 up whose w*exp(w) is z, for z from -1/e: Lambert's W, principal branch.",
                    lambda z: float(_lambert(float(z))), _lambert, lambda s: s.LambertW)
sinpi = _generic("sinpi", "Sine of pi times x.", lambda x: math.sin(math.pi*x), lambda x: np.sin(math.pi*x),
                 lambda s: lambda x: s.sin(s.pi*x))
