"""Units as exponents of four base units, and the argument types of formulas.

Inside the package every quantity is an SI float: bytes, seconds, FLOP, dollars.  Prefixes live at the
door: multiply to enter (`80*GB`), divide to print (`x/GB`), or let `show` choose one.
"""
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any

BASES = "B", "s", "FLOP", "$"


@dataclass(frozen=True)
class Unit:
    """A product of powers of byte, second, FLOP and dollar, with the values an argument may take.

    `least` and `most` bound the values; `whole` marks counts, `binary` counts that are powers of two.
    """
    power: tuple = (0, 0, 0, 0)
    least: float = 0.0
    most: float = inf
    whole: bool = False
    binary: bool = False

    def __mul__(self, other):
        return Unit(tuple(a + b for a, b in zip(self.power, other.power)))

    def __truediv__(self, other):
        return Unit(tuple(a - b for a, b in zip(self.power, other.power)), least=TINY)

    def __str__(self):
        def side(sign):
            return ["$" if base == "$" and e == sign else base if e == sign else f"{base}^{sign*e}"
                    for base, e in zip(BASES, self.power) if sign*e > 0]
        if not any(self.power):
            return "" if not self.whole else "count"
        return "·".join(side(1) or ["1"]) + "".join("/" + base for base in side(-1))

    @property
    def domain(self):
        """The allowed values as words: 'a count, at least 2'."""
        if self.binary:
            return f"a power of two, at least {self.least:g}"
        if self.whole:
            return f"a count, at least {self.least:g}"
        low = "above 0" if self.least == TINY else f"at least {self.least:g}"
        return low if self.most == inf else f"{low} and at most {self.most:g}"


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
Fraction = Annotated[Any, Unit(least=TINY, most=1.0)]         # above 0 and at most 1: a utilization
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
    watts, joules and hertz take prefixes; other units are words after a plain number.
    """
    x = float(x) + 0.0                                # -0.0 is 0
    if x != x or abs(x) == inf:
        return "n/a" if x != x else "-∞"[x > 0:]
    if unit == "%":
        return f"{_plain(100*x, digits)} %"
    if unit == "$":
        amount = _plain(abs(x), digits) if abs(x) < 999.5 else _prefixed(abs(x), digits).rstrip().replace("G", "B")
        return ("-" if x < 0 else "") + "$" + amount
    if unit == "s" and abs(x) >= 120:
        size, name = next(t for t in _TIMES if abs(x) >= 2*t[0])
        return f"{_plain(x/size, digits)} {name}"
    if unit in _PREFIXED and abs(x) < 1e21:
        return _prefixed(x, digits) + unit
    return f"{_plain(x, digits)} {unit}".rstrip()


def _prefixed(x, digits):
    """'1.12 T': the number, a space, the engineering prefix."""
    rounded = float(f"{x:.{digits}g}")
    power = max(-12, min(18, 3*(int(f"{abs(rounded):e}".split("e")[1])//3))) if rounded else 0
    return f"{_digits(rounded/10.0**power, digits)} {_PREFIX[power]}"


def _plain(x, digits):
    """'19,788' below a million, '70×10⁹' above."""
    rounded = float(f"{x:.{digits}g}")
    if abs(x) >= 999999.5 or 0 < abs(rounded) < 1e-3:
        power = int(f"{abs(rounded):e}".split("e")[1])
        power = power if abs(power) >= 21 else 3*(power//3)       # 70×10⁹, but 3.14×10²³
        mantissa = _digits(rounded/10.0**power, digits)
        return f"{mantissa}×".removeprefix("1×") + f"10{str(power).translate(_SUPERSCRIPT)}"
    return f"{x:,.0f}" if abs(x) >= 100 or x == int(x) else _digits(rounded, digits)


def _digits(x, digits):
    """Significant digits without a trailing zero and without an exponent."""
    text = f"{x:.{digits}g}"
    return text if "e" not in text else f"{x:,.0f}"
