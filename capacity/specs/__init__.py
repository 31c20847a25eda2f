"""The data of the book, and its reader.

Values are written as a person writes them, unit included: `bandwidth = "3.35 TB/s"`. They are read
once, on first use, and become plain numbers in bytes, seconds and FLOP. Every entry carries a
`source` (a key of references.bib) and `read` (the date on which it was read).
"""
import datetime
import difflib
import functools
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from pathlib import Path

import numpy as np

from ..algebra import is_symbolic

HERE = Path(__file__).parent
RECORDED = HERE/"recorded"                # traces and what was read off them; each file says the machine or the source, and the day

PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BASES = {"B": "memory", "B/s": "bandwidth", "FLOP/s": "rate", "OP/s": "rate", "Hz": "frequency"}
UNITS = {prefix + unit: (dimension, factor)
         for unit, dimension in BASES.items() for prefix, factor in PREFIXES.items()}
UNITS |= {unit: ("memory", 2**k) for unit, k in dict(KiB=10, MiB=20, GiB=30, TiB=40).items()}
UNITS |= {"Gb/s": ("bandwidth", 1e9/8), "Tb/s": ("bandwidth", 1e12/8)}
UNITS |= {unit: ("time", factor) for unit, factor in dict(s=1, ms=1e-3, us=1e-6, ns=1e-9).items()}


class Facts(dict):
    """A dict that stays as it was read: TypeError for what would change it. dict(facts) is a copy that can be."""

    def _refuse(self, *args, **kwargs):
        raise TypeError("a fact cannot be changed; allowed: dict(...) of these, replace(entry, field=...) of their entry")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self):
        return Facts, (dict(self),)               # pickle and copy would set item by item


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What every datum of the book carries: a name, where it was read, and when.

    key      its name in the table, such as "h100-sxm"
    source   key of references.bib
    sources  keys for single fields that come from another document: {"measured": "bekman2026"}
    assumed  fields that no document gives, with the reason for the value chosen
    read     the date on which the source was read
    note     what a careful reader should know: disagreements, conditions

    Its mappings are read-only (`Facts`).
    """
    name: str = ""
    key: str = field(default="", repr=False)
    source: str = field(default="", repr=False)
    sources: Mapping = field(default_factory=dict, repr=False, hash=False)
    assumed: Mapping = field(default_factory=dict, repr=False, hash=False)
    read: datetime.date | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)

    def __post_init__(self):
        for f in fields(self):
            if isinstance(value := getattr(self, f.name), Mapping):
                object.__setattr__(self, f.name, Facts(value))

    def need_source(self):
        """Raise TypeError unless the entry says where it comes from."""
        if not self.source:
            raise TypeError(f"{type(self).__name__} {self.name!r} needs a source")


def quantity(text, dimension, where):
    """The number that text such as "3.35 TB/s" means; `where` names entry and field in the error.

    Raises ValueError when text is not a number, a space and a unit of `dimension` (memory,
    bandwidth, rate, frequency or time).
    """
    match = re.fullmatch(r"([0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?) (\S+)", str(text))
    units = {unit: factor for unit, (kind, factor) in UNITS.items() if kind == dimension}
    if not match or match[2] not in units:
        raise ValueError(f"{where} = {text!r}; allowed: a number and one of {', '.join(units)}")
    return float(match[1].replace(",", ""))*units[match[2]]


@functools.cache
def read(kind):
    """The raw entries of specs/<kind>.toml; TypeError for one without name, source or date."""
    import tomllib
    entries = tomllib.loads((HERE/f"{kind}.toml").read_text(encoding="utf-8"))
    for key, entry in entries.items():
        for needed in ("name", "source", "read"):
            if needed not in entry:
                raise TypeError(f"{kind}.toml: {key!r} has no {needed}")
    return entries


def pick(entries, name, kind):
    """The entry called `name`; an unknown name raises ValueError that lists the close ones."""
    if isinstance(name, Hashable) and name in entries:
        return entries[name]
    asked = str(name).lower()
    close = [k for k in entries if asked and asked in k]
    close = close or difflib.get_close_matches(asked, entries, n=4, cutoff=0.4)
    hint = f"close matches: {', '.join(close)}" if close else f"known: {', '.join(entries)}"
    raise ValueError(f"unknown {kind} {name!r}; {hint}")


def at_least(least, **values):
    """Raise ValueError, naming it, for a value below `least`, or with an element below it.

    None passes, and a symbol that may be large enough. Text, a list, a bool or a complex number is
    a ValueError too: "80 GB" is not a number.
    """
    for name, value in values.items():
        if value is None or type(value) in (int, float) and value >= least:                # nearly always, and quick
            continue
        if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" or _is_real(value):
            if not np.all(value >= least):
                raise ValueError(f"{name} = {value!r}; allowed: at least {least}")
        elif not _is_unknown(value):
            raise ValueError(f"{name} = {value!r}; allowed: numbers, numpy arrays and sympy "
                             "expressions")


def _is_real(value):
    return (isinstance(value, Real) and not isinstance(value, bool)
            or is_symbolic(value) and value.is_comparable)


def _is_unknown(value):
    return is_symbolic(value) and not (value.is_Boolean or value.is_number
                                       or value.is_extended_real is False)
