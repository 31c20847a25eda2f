"""Hidden tests of the exercises: cases that no visible check shows, answered by the solution.

    python tools/hidden.py [NAME ...]         count the exercises that have them, and say why the others do not

The visible check of an exercise calls the answer. Its calls say what arguments look like: the hidden cases change their
numbers and keep every relation that all of the calls keep (order, divisibility, shares below 1, sorted lists). What the
solution returns is right, to the tolerance of the visible check: a result moved by that much still passes there. Where
arguments cannot be written down or more than one result is right, the visible check runs again with other seeds, if it
has seeds.
"""
import ast
import contextlib
import copy
import functools
import inspect
import io
import itertools
import math
import random
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from numbers import Number

import matplotlib
import nbformat
import numpy as np

import capacity
from execute import ROOT
from make_exercises import kind

matplotlib.use("Agg")
BEGIN, END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
CASES, LONGEST, SECONDS = 8, 1200, 4      # cases of an exercise, letters of one, processor's seconds to find them
SEED = re.compile(r"((?:random\.Random|default_rng|Random)\()(\w+)\)")
LOOSE = [1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 5e-2]
OPEN = {"3.6": "other plans are right", "3a.7": "any permutation is right", "4.6": "a pattern of sends; others are right",
        "11.8": "any such rule is right", "18.5": "any such probabilities are right",
        "21.6": "a schedule may free what it kept, or not", "23.8": "orders that take the same time are right",
        "28.6": "any such example is right", "31.9": "shares near enough to the best are right",
        "36a.4": "any such lengths are right"}
SAME = '''def _same(got, want):
    if want is None or isinstance(want, (bool, str)):
        return bool(got == want)
    if isinstance(want, set):
        return set(got) == want
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(
            _same(got[k], want[k]) for k in want)
    if isinstance(want, (list, tuple)):
        got = list(got)
        return len(got) == len(want) and all(map(_same, got, want))
    return abs(got - want) <= {tolerance:g}*abs(want) + 1e-15
'''


def answers(source):
    """The names of the functions that a student completes in an exercise's cell."""
    lines = source.splitlines()
    return [f.name for f in ast.parse(source).body if isinstance(f, ast.FunctionDef)
            and "### BEGIN SOLUTION" in "\n".join(lines[f.lineno - 1:f.end_lineno])]


def play(source, names):
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "<cell>", "exec"), names)


def passes(check, names):
    """Whether a check says nothing."""
    try:
        play(check, dict(names))
    except Exception:
        return False
    return True


def recorded(check, names, which):
    """The arguments of the calls that a check makes: {name: [(args, kwargs)]}, and its results."""
    calls, inside = {name: [] for name in which}, []

    def listen(name, function):
        @functools.wraps(function)
        def heard(*args, **kwargs):
            if not inside and len(calls[name]) < 300:
                with contextlib.suppress(Exception):
                    calls[name].append(copy.deepcopy((args, kwargs)))
            inside.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                inside.pop()
        return heard
    play(check, names | {name: listen(name, names[name]) for name in which})
    return calls


def with_results(names, which, change):
    """The names with answers whose results are changed."""
    def put(function):
        return functools.wraps(function)(lambda *args, **kwargs: change(function(*args, **kwargs)))
    return names | {name: put(names[name]) for name in which}


def scaled(by):
    def change(x):
        if isinstance(x, (float, np.floating)):
            return x*by
        if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
            return type(x)(map(change, x))
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            return x*by
        if isinstance(x, dict):
            return {k: change(v) for k, v in x.items()}
        return x
    return change


def plain(x):
    """A result as plain Python; TypeError if it is anything else."""
    if x is None or isinstance(x, (bool, str)):
        return x
    if isinstance(x, np.bool_):
        return bool(x)
    if isinstance(x, (int, np.integer)):
        return int(x)
    if isinstance(x, (float, np.floating)):
        if not math.isfinite(x):
            raise TypeError("not finite")
        return float(x)
    if isinstance(x, Fraction):
        return float(x)
    if isinstance(x, np.ndarray):
        return plain(x.tolist())
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (set, frozenset)):
        return {*map(plain, x)}
    if isinstance(x, (range, Iterator)):
        return [*map(plain, x)]
    if isinstance(x, (list, tuple)):
        return type(x)(map(plain, x)) if type(x) in (list, tuple) else tuple(map(plain, x))
    raise TypeError(type(x).__name__)


def is_number(x):
    return isinstance(x, (int, float, Fraction, np.integer, np.floating)) and not isinstance(x, bool)


def written(x, names):
    """Source that makes x in the notebook. ValueError if there is none."""
    if isinstance(x, np.ndarray):
        return f"np.array({x.tolist()!r})"
    if isinstance(x, np.generic):
        return repr(x.item())
    if type(x) in (list, tuple) and x:
        inner = ", ".join(written(y, names) for y in x)
        return f"[{inner}]" if type(x) is list else f"({inner}{',' if len(x) == 1 else ''})"
    text = repr(x)
    with contextlib.suppress(Exception):
        if eval(text, dict(names)) == x:
            return text
    with contextlib.suppress(Exception):
        if eval(text, vars(capacity)) == x:
            return f"eval({text!r}, vars(__import__('capacity')))"
    for maker in ("model", "accelerator", "link"):                      # what the package knows by a key
        with contextlib.suppress(Exception):
            if getattr(capacity, maker)(x.key) == x:
                return f"__import__('capacity').{maker}({x.key!r})"
    raise ValueError(f"a {type(x).__name__} as argument")


def leaves(x, where=()):
    """(place, number) of every number in the arguments; elements of a list share their place's name."""
    if is_number(x):
        yield where, x
    elif type(x) in (list, tuple) or isinstance(x, np.ndarray) and x.ndim == 1:
        for i, y in enumerate(x):
            yield from leaves(y, (*where, i))
    elif type(x) is dict:
        for k, y in x.items():
            yield from leaves(y, (*where, k))


def rebuilt(x, put, where=()):
    """x with other numbers at the places of `put`."""
    if where in put:
        return put[where]
    if type(x) in (list, tuple):
        return type(x)(rebuilt(y, put, (*where, i)) for i, y in enumerate(x))
    if isinstance(x, np.ndarray) and x.ndim == 1:
        return np.array([rebuilt(y, put, (*where, i)) for i, y in enumerate(x)], dtype=x.dtype)
    if type(x) is dict:
        return {k: rebuilt(y, put, (*where, k)) for k, y in x.items()}
    return x


def common(place):
    """Elements of one list share what is known of them."""
    return tuple("*" if isinstance(step, int) and depth else step for depth, step in enumerate(place))


def whole(*xs):
    return all(isinstance(x, (int, np.integer)) and x > 0 for x in xs)


def relations(arguments):
    """What holds between the numbers of one call: kept by a hidden case if it holds in every call."""
    flat = [(place, x) for place, x in leaves(arguments)]
    alone = [(place, x) for place, x in flat if len(place) == 1]
    found = set()
    for (p, x), (q, y) in itertools.permutations(alone, 2):
        for name, holds in (("<", x < y), ("<=", x <= y), ("==", x == y), ("%", whole(x, y) and x % y == 0),
                            ("coprime", whole(x, y) and math.gcd(x, y) == 1)):
            if holds:
                found.add((name, p, q))
        for r, z in alone:
            if r not in (p, q):
                if whole(x, y, z) and x*y == z:
                    found.add(("product", p, q, r))
                if whole(x, y, z) and x % (y*z) == 0:
                    found.add(("% product", p, q, r))
                if whole(x, y, z) and x > y*z:
                    found.add(("> product", p, q, r))
    lists = {}
    for place, x in flat:
        if len(place) > 1:
            lists.setdefault(place[:-1], []).append(x)
    for place, xs in lists.items():
        key = common(place)
        for name, holds in (("up", xs == sorted(xs)), ("down", xs == sorted(xs)[::-1]), ("distinct", len({*xs}) == len(xs)),
                            ("sums to 1", math.isclose(sum(xs), 1)), ("whole", all(x == int(x) for x in xs if math.isfinite(x)))):
            if holds:
                found.add((name, key))
    for place, x in alone:
        for name, holds in (("below 1", x < 1), ("at most 1", x <= 1), ("above 0", x > 0), ("not negative", x >= 0),
                            ("power of 2", whole(x) and x & x - 1 == 0), ("odd", whole(x) and x % 2 == 1),
                            ("even", whole(x) and x % 2 == 0)):
            if holds:
                found.add((name, place))
    return found


def other(x, seen, r):
    """Another number for x: another one seen at its place, or near to it."""
    if isinstance(x, Fraction) or isinstance(x, (int, np.integer)) and r.random() < .5:
        return r.choice(seen)
    if isinstance(x, (int, np.integer)) and abs(x) < 1000:
        return r.randint(int(min(seen)), min(int(max(seen)), 1000))
    y = float(x)*r.uniform(0.8, 1.25)
    return type(x)(round(y)) if isinstance(x, (int, np.integer)) else float(f"{y:.4g}")


def bound(function, call):
    """The arguments of a call by name."""
    return dict(inspect.signature(function).bind(*call[0], **call[1]).arguments)


def cases(function, calls, names, r):
    """[(source of the call, result)], with arguments that are in no visible call. ValueError where there are none."""
    signature = inspect.signature(function)
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        raise ValueError("a starred argument")
    known = [bound(function, c) for c in calls]
    if not known:
        raise ValueError("the check does not call it")
    for x in known[0].values():
        written(x, names)
    seen = {}
    for arguments in known:
        for place, x in leaves(arguments):
            seen.setdefault(common(place), []).append(x)
    if not seen:
        raise ValueError("no number among its arguments")
    kept = set.intersection(*map(relations, known))
    done, shown = [], {repr(k) for k in known}
    until = time.process_time() + SECONDS
    for _ in range(600):
        if time.process_time() > until:
            break
        base = r.choice(known)
        places = list(leaves(base))
        chosen = {p[0] for p, _ in places if r.random() < .8}
        arguments = rebuilt(base, {p: other(x, seen[common(p)], r) for p, x in places if p[0] in chosen})
        if repr(arguments) in shown or not kept <= relations(arguments):
            continue
        shown.add(repr(arguments))
        try:
            first, again = (plain(function(**copy.deepcopy(arguments))) for _ in range(2))
            near = rebuilt(arguments, {p: x*(1 + 1e-9) for p, x in leaves(arguments) if isinstance(x, (float, np.floating))})
            stable = close(plain(function(**copy.deepcopy(near))), first, 1e-5)
        except TypeError as error:
            raise ValueError(f"returns something else: {error}") from error
        except Exception:
            continue
        if first != again:
            raise ValueError("another result each time")
        if not stable:
            continue
        keyword = {k for k, p in signature.parameters.items() if p.kind == p.KEYWORD_ONLY or k in base and "=" in str(p)}
        given = ", ".join(("" if k not in keyword else f"{k}=") + written(v, names) for k, v in arguments.items())
        if len(given) + len(repr(first)) < LONGEST:
            done.append((f"{function.__name__}({given})", first))
        if len(done) == CASES:
            break
    if not done:
        raise ValueError("no other arguments keep what all visible calls have in common")
    return done


def close(a, b, tolerance):
    scope = {}
    exec(SAME.format(tolerance=tolerance), scope)
    return scope["_same"](a, b)


def unique(result):
    """Whether a result is a number, a word, or a few of them: of longer ones there may be more that are right."""
    if isinstance(result, dict):
        result = [*result, *result.values()]
    if isinstance(result, (list, tuple, set)):
        return len(result) <= 8 and all(x is None or isinstance(x, (bool, str, Number)) for x in result)
    return True


def parts(result):
    """What a result is made of."""
    return result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else [result]


def by_cases(check, names, which, r):
    """A hidden block of cases, or ValueError."""
    names = dict(names)
    calls = recorded(check, names, which)
    made, why = [], "the check does not call it"
    for name in which:
        if calls[name]:
            try:
                made += cases(names[name], calls[name], names, r)
            except ValueError as error:
                why = str(error)
    if not made:
        raise ValueError(why)
    if not all(unique(result) for _, result in made):
        raise ValueError("more than one long answer may be right")
    loose = 0
    if any(isinstance(x, float) for _, result in made for x in parts(result)):
        for e in LOOSE:
            if not any(passes(check, with_results(names, which, scaled(1 + s*e))) for s in (1, -1)):
                break
            loose = e
    if loose == LOOSE[-1]:
        raise ValueError("the check takes a range of answers")
    tolerance = max(1e-6, 3*loose)
    rows = "\n".join(f"    ({call!r}, {want!r})," for call, want in made)
    return (f"{SAME.format(tolerance=tolerance)}for _call, _want in [\n{rows}\n]:\n"
            "    assert _same(eval(_call), _want), f\"another case: {_call}\"")


def by_seeds(check, names):
    """The visible check with other seeds, or ValueError."""
    if not SEED.search(check):
        raise ValueError("no seeds")
    body = SEED.sub(r"\g<1>1000 + \2)", check.split("\n", 1)[1])
    if not passes(body, names):
        raise ValueError("other seeds fail")
    return body


def hidden(nb):
    """({number: hidden block}, {number: why there is none})."""
    names, made, none = {"__name__": "__main__"}, {}, {}
    which = []
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        what, number = kind(cell)
        if what == "exercise":
            which = answers(cell.source)
        if what == "check":
            try:
                if number in OPEN:
                    raise ValueError(OPEN[number])
                made[number] = by_cases(cell.source, names, which, random.Random(number))
            except ValueError as error:
                try:
                    made[number] = by_seeds(cell.source, names)
                except ValueError:
                    none[number] = str(error)
            if number in made and not passes(made[number], after(cell.source, names)):
                raise SystemExit(f"{number}: the solution fails its hidden test")
        play(cell.source, names)
    return made, none


def after(check, names):
    """What the names are after the visible check, which stands in the same cell."""
    names = dict(names)
    play(check, names)
    return names


def of(path):
    began = time.time()
    return *hidden(nbformat.read(path, 4)), time.time() - began


def main(stems):
    counts = {"cases": 0, "seeds": 0, "none": 0}
    paths = [p for p in sorted((ROOT/"solutions").glob("*.ipynb")) if not stems or p.stem in stems]
    with ProcessPoolExecutor(2) as pool:
        for path, (made, none, took) in zip(paths, pool.map(of, paths)):
            print(path.stem, f"{took:.0f} s")
            for block in made.values():
                counts["cases" if block.startswith("def _same") else "seeds"] += 1
            counts["none"] += len(none)
            for number, why in none.items():
                print(f"    {number:6} {why}", flush=True)
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
