"""The data of the book, and its reader.

Values are written as a person writes them, unit included: `bandwidth = "3.35 TB/s"`. They are read once, on first use, and
become plain numbers in bytes, seconds and flops. Every entry carries a `source` (a key of references.bib) and `read` (a date).
"""
import difflib
import functools
import re
from pathlib import Path

HERE = Path(__file__).parent

PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
UNITS = {f"{prefix}{unit}": (dimension, factor) for dimension, unit in [
    ("memory", "B"), ("bandwidth", "B/s"), ("rate", "FLOP/s"), ("rate", "OP/s"), ("frequency", "Hz")]
    for prefix, factor in PREFIXES.items()}
UNITS |= {"KiB": ("memory", 2**10), "MiB": ("memory", 2**20), "GiB": ("memory", 2**30), "TiB": ("memory", 2**40),
          "Gb/s": ("bandwidth", 1e9/8), "Tb/s": ("bandwidth", 1e12/8), "s": ("time", 1), "ms": ("time", 1e-3), "us": ("time", 1e-6), "ns": ("time", 1e-9)}


def quantity(text, dimension, where):
    """The number that text such as "3.35 TB/s" means in SI units; `where` names entry and field in the error.

    Raises ValueError when text is not a number and a unit, or the unit is not one of `dimension`
    (memory, bandwidth, rate, frequency, time)."""
    match = re.fullmatch(r"([0-9][0-9_,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?) (\S+)", str(text))
    known = [unit for unit, (kind, _) in UNITS.items() if kind == dimension]
    if not match or match[2] not in known:
        raise ValueError(f"{where} = {text!r}: write a number, a space and one of {', '.join(known)}")
    return float(match[1].replace(",", "").replace("_", ""))*UNITS[match[2]][1]


@functools.cache
def read(kind):
    """The raw entries of specs/<kind>.toml, a dict of dicts; raises TypeError for one without a source or a date."""
    import tomllib
    entries = tomllib.loads((HERE/f"{kind}.toml").read_text(encoding="utf-8"))
    for key, entry in entries.items():
        for field in ("name", "source", "read"):
            if field not in entry:
                raise TypeError(f"{kind}.toml: {key!r} has no {field}")
    return entries


def pick(entries, name, kind):
    """The entry called `name`; an unknown name raises ValueError that lists the close ones."""
    if name not in entries:
        asked = str(name).lower()
        close = [k for k in entries if asked and asked in k] or difflib.get_close_matches(asked, entries, n=4, cutoff=0.4)
        raise ValueError(f"unknown {kind} {name!r}; " + (f"close matches: {', '.join(close)}" if close else
                                                         f"known: {', '.join(entries)}"))
    return entries[name]


def at_least(least, **values):
    """Raise ValueError, naming it, for a value below `least`; symbols and None pass, arrays are judged by their least element."""
    import numpy as np
    for name, value in values.items():
        if isinstance(value, str):
            raise ValueError(f"{name} = {value!r}: a number, an array or a symbol is wanted, not text")
        if isinstance(value, (int, float, np.number, np.ndarray)) and not np.all(np.asarray(value) >= least):
            raise ValueError(f"{name} = {value!r}: at least {least} is wanted")
