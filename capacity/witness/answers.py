"""A reader's answer, taken fairly: in any form where exactness is not the point, and made without what it should replace."""
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np


def plain(x):
    """x in Python's own forms: lists for tuples, arrays and iterators, whole numbers for floats and fractions that are whole.

    Other fractions stay, and so do named tuples, words, sets, and whatever else there is.
    """
    if isinstance(x, np.ndarray | np.generic):
        x = x.tolist()
    if isinstance(x, dict):
        return {plain(k): plain(v) for k, v in x.items()}
    if hasattr(x, "_fields"):
        return type(x)(*map(plain, x))
    if isinstance(x, list | tuple | range | Iterator):
        return [*map(plain, x)]
    return int(x) if isinstance(x, float | Fraction) and x % 1 == 0 else x


def same(got, want, tolerance=1e-9):
    """Whether an answer is `want` in some form: lists element for element, numbers to a relative tolerance."""
    got, want = plain(got), plain(want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(same(*pair, tolerance) for pair in zip(got, want))
    if isinstance(got, int | float | Fraction) and isinstance(want, int | float | Fraction):
        return got == want or abs(got - want) <= tolerance*abs(want)
    return got == want


@contextmanager
def without(*functions):
    """Meanwhile whoever calls one of these functions, by whatever name, gets an AssertionError."""
    kept = [f.__code__ for f in functions]
    for f in functions:
        scope = {}
        exec(f"def refused(*_, **__): raise AssertionError('write it yourself, without {f.__qualname__}')", scope)
        f.__code__ = scope["refused"].__code__
    try:
        yield
    finally:
        for f, code in zip(functions, kept):
            f.__code__ = code
