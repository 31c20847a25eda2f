"""Units as exponents of four base units, and the argument types of formulas.

Inside the package every quantity is an SI float: bytes, seconds, FLOP, dollars.  Prefixes live at the
door: multiply to enter (`80*GB`), divide to print (`x/GB`), or let `show` choose one.
"""
from dataclasses import dataclass
from math import ceil, copysign, inf
from typing import Annotated, Any

import numpy as np

BASES = "B", "s", "FLOP", "$"


@dataclass(frozen=True)
class Unit:
    """A product of powers of byte, second, FLOP and dollar, with the values an argument may take.

    `least` and `most` bound the values; `whole` marks counts, `binary` counts that are powers of two, `multiple`
    (above 1) counts that are multiples of it.
    """
    power: tuple = (0, 0, 0, 0)
    least: float = 0.0
    most: float = inf
    whole: bool = False
    binary: bool = False
    multiple: int = 1

    def __mul__(self, other):
        return Unit(tuple(a + b for a, b in zip(self.power, other.power)))

    def __truediv__(self, other):
        return Unit(tuple(a - b for a, b in zip(self.power, other.power)), least=TINY)

    def __str__(self):
        def side(sign):
            return [base if e == sign else f"{base}^{sign*e}"
                    for base, e in zip(BASES, self.power) if sign*e > 0]
        if not any(self.power):
            return "" if not self.whole else "count"
        return "·".join(side(1) or ["1"]) + "".join("/" + base for base in side(-1))

    @property
    def domain(self):
        """The allowed values as words: 'a count, at least 2'."""
        if self.binary:
            return f"a power of two, at least {self.least:g}"
        if self.multiple > 1:
            return f"a multiple of {self.multiple}, at least {self.least:g}"
        if self.whole:
            return f"a count, at least {self.least:g}"
        low = "above 0" if self.least == TINY else f"at least {self.least:g}"
        return low if self.most == inf else f"{low} and at most {self.most:g}"

    @property
    def gapped(self):
        """Whether the domain has gaps: powers of two, or multiples."""
        return self.binary or self.multiple > 1

    def misses(self, x):
        """Whether a number, or each element of an array, falls into a gap of the domain."""
        return (np.frexp(x)[0] != 0.5)*self.binary | (np.mod(x, self.multiple) != 0)*(self.multiple > 1)


TINY = 5e-324                     # the smallest float above 0: a bound that excludes 0 and nothing else

byte, second, flop, dollar = (Unit(tuple(int(i == k) for i in range(4))) for k in range(4))

Bytes = Annotated[Any, byte]
Seconds = Annotated[Any, second]
Flops = Annotated[Any, flop]
Dollars = Annotated[Any, dollar]
BytesPerSecond = Annotated[Any, byte/second]
FlopsPerSecond = Annotated[Any, flop/second]
FlopsPerByte = Annotated[Any, flop/byte]
DollarsPerSecond = Annotated[Any, dollar/second]
PerSecond = Annotated[Any, Unit()/second]
Ratio = Annotated[Any, Unit()]                                # any number from 0
Share = Annotated[Any, Unit(least=TINY, most=1.0)]         # above 0 and at most 1: a utilization
Count = Annotated[Any, Unit(least=1, whole=True)]             # 1, 2, 3, ...: ranks, layers, parameters
Group = Annotated[Any, Unit(least=2, whole=True)]             # 2, 3, ...: ranks that have someone to talk to
Index = Annotated[Any, Unit(least=0, whole=True)]             # 0, 1, 2, ...
PowerOfTwo = Annotated[Any, Unit(least=2, whole=True, binary=True)]

kB, MB, GB, TB, PB = 1e3, 1e6, 1e9, 1e12, 1e15
KiB, MiB, GiB, TiB = 2.0**10, 2.0**20, 2.0**30, 2.0**40
ns, us, ms, minute, hour, day, year = 1e-9, 1e-6, 1e-3, 60.0, 3600.0, 86400.0, 365.25*86400.0
GFLOPS, TFLOPS, PFLOPS = 1e9, 1e12, 1e15

_PREFIX = {18: "E", 15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "µ", -9: "n", -12: "p"}
_PREFIXED = {"B", "B/s", "s", "FLOP", "FLOP/s", "W", "J", "Hz"}
_TIMES = (365.25*86400.0, "years"), (86400.0, "days"), (3600.0, "h"), (60.0, "min")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def show(x, unit="", digits=3):
    """A quantity as a person writes it, to `digits` significant digits; a plain number from 100 on is whole.

    show(2.5e-3, "s") is '2.5 ms', show(1.12e12, "B") '1.12 TB', show(3.2e8, "s") '10.1 years',
    show(2.1e6, "$") '$2.1 M', show(0.345, "%") '34.5 %', show(19788.2, "FLOP/B") '19,788 FLOP/B' and
    show(7e10) '70×10⁹'.  From 10²¹ on every number is written as 3.14×10²³.  Only bytes, seconds, FLOP,
    watts, joules and hertz take prefixes; other units are words after a plain number.  Below 10⁻¹⁴ bytes, seconds and
    their like are written as 10⁻³⁰ too.  Dollars go up to thousands of T.  "#tokens" counts: show(7e10, "#tokens") is
    '70 B tokens'; "⌈devices" counts whole ones: show(2.1, "⌈devices") is '3 devices'.

    TypeError for what is not one number, ValueError for an integer that no float can hold.
    """
    try:
        if np.ndim(x) or isinstance(x, str):
            raise TypeError
        x = float(x) + 0.0                            # -0.0 is 0
    except (TypeError, ValueError):
        raise TypeError(f"x = {x!r}; allowed: one number") from None
    except OverflowError:
        raise ValueError(f"x has {len(str(x))} digits; allowed: a number below 10{_raised(308)}") from None
    if x != x or abs(x) == inf:
        return "n/a" if x != x else "∞" if x > 0 else "-∞"
    if unit == "%":
        return f"{_plain(100*x, digits)} %"
    if unit[:1] in ("#", "⌈"):
        x = ceil(x - 1e-9*abs(x)) if unit[0] == "⌈" else x
        big = 999999.5 <= abs(x) < 1e18
        return f"{_prefixed(x, digits, 12).replace('G', 'B') if big else _plain(x, digits)} {unit[1:]}".rstrip()
    rounded = abs(float(f"{x:.{digits}g}"))           # what is shown decides the size: 119.96 s are 120 s, so 2 min
    if unit == "$":
        if 0 < rounded < 1e-3 or rounded >= 1e18:
            amount = _power(rounded, digits, 1)
        elif rounded < 1e3:
            amount = _plain(rounded, digits)
        else:
            amount = _prefixed(rounded, digits, 12).replace("G", "B")
        return ("-" if x < 0 else "") + "$" + amount
    if unit == "s" and rounded >= 120:
        size, name = next(t for t in _TIMES if rounded >= 2*t[0])
        return f"{_plain(copysign(max(abs(x)/size, 2), x), digits)} {name}"
    if unit in _PREFIXED and (rounded == 0 or 1e-14 <= rounded < 1e21):
        return _prefixed(x, digits) + unit
    return f"{_plain(x, digits)} {unit}".rstrip()


def _prefixed(x, digits, most=18):
    """'1.12 T': the number, a space, the engineering prefix up to 10**most."""
    rounded = float(f"{x:.{digits}g}")
    power = max(-12, min(most, 3*(_exponent(rounded)//3))) if rounded else 0
    return f"{_digits(rounded/10.0**power, digits)} {_PREFIX[power]}"


def _plain(x, digits):
    """'19,788' below a million, '70×10⁹' above."""
    rounded = float(f"{x:.{digits}g}")
    if abs(x) >= 999999.5 or 0 < abs(rounded) < 1e-3:
        return _power(rounded, digits, 1 if abs(_exponent(rounded)) >= 21 else 3)    # 70×10⁹, but 3.14×10²³
    return f"{x:,.0f}" if abs(x) >= 100 or x == int(x) else _digits(rounded, digits)


def _power(x, digits, step):
    """'70×10⁹': the number times a power of ten, whose exponent is a multiple of `step`."""
    power = step*(_exponent(x)//step)
    mantissa = _digits(x/10.0**power, digits)
    return f"{mantissa}×".removeprefix("1×") + f"10{_raised(power)}"


def _exponent(x):
    return int(f"{abs(x):e}".split("e")[1])


def _raised(power):
    return str(power).translate(_SUPERSCRIPT)


def _digits(x, digits):
    """Significant digits without a trailing zero and without an exponent."""
    text = f"{x:.{digits}g}"
    return text if "e" not in text else f"{x:,.0f}"
