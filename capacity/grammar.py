"""`@formula` turns a function into a Formula: still a function, now with units, a source and a chapter.

    @formula(chapter="04-alpha-beta-model", source="hockney1994")
    def message_time(n: Bytes, alpha: Seconds, beta: BytesPerSecond) -> Seconds:
        "Time of one message of n bytes over one link."
        return alpha + n/beta

Positional parameters are the variables; every name among them stands in `capacity.notation.NOTATION`.
Keyword-only parameters are constants with a unit (`*, multiply_add: Flops = 2`): algebra, LaTeX and
JavaScript show their value, the unit check still rescales them.
"""
import functools
import html
import inspect
import random
import re
import sys
import typing
from numbers import Rational

import numpy as np

from .algebra import is_symbolic
from .notation import NOTATION
from .units import BASES, Unit

REGISTRY = {}
FINITE = sys.float_info.max                    # a count may be as large as a float can be, but not infinite


P = typing.ParamSpec("P")                      # a formula is called with its function's own arguments


def _inexact(x):
    """An exact number as a float: beside an array a Fraction would make an array of objects."""
    return x if type(x) in (np.ndarray, float) or not isinstance(x, Rational) else float(x)


class Formula(typing.Generic[P]):
    """A function of numbers, arrays or symbols that knows its units, its source and its chapter.

    Call it with floats, ints or Fractions (returns a number, from ints and Fractions an exact one where the formula
    has no root or logarithm), numpy arrays that broadcast (returns float64 arrays) or sympy expressions (returns an
    expression).  A count may be any real number from its least, so that sweeps
    and averages pass.  A value outside an argument's domain is a ValueError; an unknown or missing argument,
    and anything that is no number (text, a list, a bool), a TypeError; all name the argument.
    """

    def __init__(self, function, chapter, source):
        name = function.__name__
        hints = typing.get_type_hints(function, include_extras=True)
        units = {k: next(u for u in typing.get_args(hint) if isinstance(u, Unit)) for k, hint in hints.items()}
        parameters = inspect.signature(function).parameters
        constants = {k: p.default for k, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
        variables = [k for k in parameters if k not in constants]
        for k in variables:
            if k not in NOTATION:
                raise ValueError(f"{name}: argument {k!r} has no letter in capacity.notation.NOTATION")
        if not chapter or not source or not function.__doc__:
            raise ValueError(f"{name}: a formula needs a chapter, a source and a docstring")
        if name in REGISTRY:
            raise ValueError(f"{name}: defined twice")
        functools.update_wrapper(self, function)
        self.function, self.chapter, self.source, self.constants = function, chapter, source, constants
        self.unit = units.pop("return")
        self.units = {k: units[k] for k in variables}
        self.constant_units = {k: units[k] for k in constants}
        self.summary = inspect.getdoc(function).splitlines()[0]
        self._bounds = {k: (u.least, FINITE if u.whole else u.most, u.gapped) for k, u in units.items()}
        # between these a plain float or int is admitted without a further question
        self._plain = {k: (least, -np.inf if gapped else most) for k, (least, most, gapped) in self._bounds.items()}
        self._positional = [(k, *self._plain[k]) for k in variables]
        self.__doc__ = self._document(inspect.getdoc(function))
        REGISTRY[name] = self

    def _document(self, text):
        rows = [f"    {k}: {u.domain if u.whole else f'{_name(u)}, {u.domain}'}; {NOTATION[k].meaning}"
                for k, u in self.units.items()]
        rows += [f"    {k}: {_name(self.constant_units[k])}, constant {v}" for k, v in self.constants.items()]
        return "\n".join([text, "", "Arguments (numbers, arrays that broadcast, or symbols)", *rows,
                          f"Returns: {_name(self.unit)}",
                          "Raises: ValueError outside these domains, TypeError for what is no number",
                          f"Source: {self.source}", f"Derived in: {self.chapter}"])

    def __repr__(self):
        return f"<formula {self.__name__}({', '.join(self.units)})>"

    def __reduce__(self):
        return self.__name__                      # pickle by name, so that sweeps can use processes

    # ---- evaluation --------------------------------------------------------------------------
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> typing.Any:
        special = False                           # an argument that is no plain float or int
        for k, x in kwargs.items():
            if k in self._plain:
                least, most = self._plain[k]
                if not ((type(x) is float or type(x) is int) and least <= x <= most):
                    kwargs[k], special = self._admit(k, x), True
        for at, (x, (k, least, most)) in enumerate(zip(args, self._positional)):
            if not ((type(x) is float or type(x) is int) and least <= x <= most):
                args, special = (*args[:at], self._admit(k, x), *args[at + 1:]), True
        if len(args) > len(self._positional):
            raise TypeError(f"{self.__name__} takes {', '.join(self.units)}; got {len(args)} arguments")
        if special and (np.ndarray in map(type, args) or np.ndarray in map(type, kwargs.values())):
            args = [_inexact(x) for x in args]
            kwargs = {k: _inexact(x) for k, x in kwargs.items()}
        return self.function(*args, **kwargs)

    def _admit(self, k, x):
        """Check anything that is not a plain float or int; arrays become float64 (int64 wraps at 9.2e18)."""
        least, most, gapped = self._bounds[k]
        if type(x) is not np.ndarray and is_symbolic(x):
            if x.is_Boolean or x.is_negative or x.is_extended_real is False:
                self._reject(k, x)
            if x.is_number:
                self._admit(k, float(x))
            return x
        if type(x) is np.ndarray and x.dtype.kind in "iuf":
            x = x.astype(float, copy=False)
            if x.size and not (least <= np.minimum.reduce(x, None) and (most == np.inf or np.maximum.reduce(x, None) <= most)):
                self._reject(k, x[~((x >= least) & (x <= most))][0])
            if gapped and np.any(missed := self._unit(k).misses(x)):
                self._reject(k, x[missed][0])
            return x
        if isinstance(x, (float, np.integer, np.floating, Rational)) and not isinstance(x, bool):
            if not least <= x <= most or gapped and self._unit(k).misses(float(x)):
                self._reject(k, x)
            return float(x) if isinstance(x, (np.integer, np.floating)) else x
        what = f"{type(x).__name__} of {x.dtype}" if isinstance(x, np.ndarray) else repr(x)
        hint = "; a Link goes in as **link" if hasattr(x, "alpha") and hasattr(x, "beta") else ""
        raise TypeError(f"{self.__name__}: {k} = {what}; allowed: numbers, numpy arrays and sympy expressions{hint}")

    def _unit(self, k):
        return self.units.get(k) or self.constant_units[k]

    def _reject(self, k, x):
        raise ValueError(f"{self.__name__}: {k} = {x}; allowed: {self._unit(k).domain}")

    # ---- algebra -----------------------------------------------------------------------------
    @functools.cached_property
    def symbols(self):
        """The variables as sympy symbols, {name: Symbol}, assuming no more than their types promise."""
        import sympy as sp
        return {k: sp.Symbol(NOTATION[k].latex, integer=True if u.whole else None,
                             **({"nonnegative": True} if u.whole and u.least == 0 else {"positive": True}))
                for k, u in self.units.items()}

    @functools.cached_property
    def expr(self):
        """The formula as a sympy expression: the function applied to its own symbols."""
        return self.function(**self.symbols)

    def js(self):
        """The formula as a JavaScript arrow function of its variables, in order."""
        from .js import arrow
        return arrow(self.expr, self.symbols)

    # ---- checks ------------------------------------------------------------------------------
    def sample(self, rng):
        """A random point of the domain, {name: value}; counts often sit on the edge of their domain."""
        def draw(u):
            if u.binary:
                return int(2**rng.randint(int(np.log2(u.least)), 10))
            if u.whole:
                return int(u.least) + u.multiple*rng.randint(0, 7)
            return u.least + rng.uniform(0.05, u.most - u.least if u.most < np.inf else 2)
        return {k: draw(u) for k, u in (self.units | self.constant_units).items()}

    def check(self, trials=40):
        """Assert that the function is homogeneous in every base unit and equals its own symbolic trace.

        Homogeneity: rescale every argument by k**(its exponent of the base unit), and the result must rescale
        by k**(the result's exponent).  Constants with a unit are rescaled too.  Returns True.
        """
        import sympy as sp
        from .js import function
        every = self.units | self.constant_units
        symbols = self.symbols | {k: sp.Symbol("c_" + k, positive=True) for k in self.constants}
        trace = function(list(symbols.values()), self.function(**symbols))
        for seed in range(trials):
            rng = random.Random(seed)
            x = self.sample(rng)
            y = self.function(**x)
            with np.errstate(all="ignore"):       # numpy evaluates both sides of a where()
                traced = trace([x[k] for k in symbols])
            assert _close(y, traced), f"{self.__name__}({x}): the function gives {y}, its trace {traced}"
            for i, base in enumerate(BASES):
                k = rng.uniform(2, 5)
                scaled = {a: x[a]*k**u.power[i] if u.power[i] else x[a] for a, u in every.items()}
                assert _close(self.function(**scaled), y*k**self.unit.power[i]), \
                    f"{self.__name__}: not homogeneous in {base}"
        return True

    # ---- display -----------------------------------------------------------------------------
    @property
    def latex(self):
        """The formula as LaTeX, without delimiters: its trace on symbols that sympy knows nothing about.

        (Of positive symbols sympy would take every square root apart.)
        """
        import sympy as sp
        return sp.latex(self.function(**{k: sp.Symbol(NOTATION[k].latex) for k in self.units}))

    @property
    def narrow(self):
        """The same, a long sum broken before the plus that is nearest its middle and in no bracket: a phone or a column holds it."""
        tex = self.latex
        ends = [m.start() for m in re.finditer(r" \+ ", tex)
                if all(tex[:m.start()].count(a) == tex[:m.start()].count(b) for a, b in (("{", "}"), (r"\left", r"\right")))]
        if len(tex) < 150 or not ends:
            return tex
        at = min(ends, key=lambda end: abs(end - len(tex)/2))
        return rf"\begin{{aligned}}&{tex[:at]}\\&{tex[at:]}\end{{aligned}}"

    def _repr_latex_(self):
        return rf"$\displaystyle {self.latex}$"

    def _repr_html_(self):
        e = html.escape
        summary = re.sub("`(.*?)`", r"<code>\1</code>", e(self.summary))
        source = "" if self.source == "derived" else f" · source: {e(self.source)}"
        rows = "".join(rf"<tr><td>\({NOTATION[k].latex}\)</td><td><code>{e(k)}</code></td>"
                       f"<td>{e(NOTATION[k].meaning)}</td><td>{e(str(u) or 'ratio')}</td></tr>"
                       for k, u in self.units.items())
        return (f'<div class="formula-card mathjax_process"><p><strong><code>{e(self.__name__)}</code></strong> {summary}</p>'
                rf"<p>\(\displaystyle {e(self.narrow, quote=False)}\) "
                f"<span>in {e(str(self.unit) or 'a pure number')}</span></p>"
                f"<table>{rows}</table><p><small>derived in {e(self.chapter)}{source}</small></p></div>")


def formula(*, chapter: str, source: str) -> typing.Callable[[typing.Callable[P, typing.Any]], Formula[P]]:
    """Register a function as the one definition of a formula; chapter and source are not optional.

    Raises ValueError if either is empty, if the docstring is missing, if a variable has no letter in
    NOTATION, or if the name is taken.
    """
    return lambda function: Formula(function, chapter, source)


def expression(value, what):
    """The sympy expression of a Formula, an expression or a number; ValueError that begins with `what` for anything else."""
    import sympy as sp
    if isinstance(value, Formula):
        return value.expr
    try:
        expr = sp.sympify(value)
    except (sp.SympifyError, TypeError):
        expr = None
    if isinstance(value, str) or not isinstance(expr, (sp.Expr, sp.logic.boolalg.Boolean)):
        raise ValueError(f"{what} is {value!r}; allowed: formulas, sympy expressions and numbers")
    return expr


def _name(unit):
    return str(unit) or "ratio"


def _close(a, b):
    return abs(a - b) <= 1e-9*max(abs(a), abs(b))
