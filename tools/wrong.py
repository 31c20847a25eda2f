"""Wrong answers to every exercise, which of them a check lets pass, and what four students earn.

    python tools/wrong.py [NAME ...]

The key answers as the solution does, the blank not at all, the wrong student in another wrong way each time, and who learns by
heart with a table of what the visible check asks for.

The likeliest: twice the result, a thousand times it, a count that is one more; the result of the first call of the visible check,
or a table of all of its results; and the solution with one operator, number, comparison, word or truth value changed. One
that gives the solution's results, to four digits and in whatever form, in the visible check, and passes the hidden tests, counts
as right; so does one that passes where more than one answer is right (hidden.OPEN says why).
"""
import ast
import copy
import functools
import random
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import nbformat

import hidden
from execute import ROOT
from make_exercises import MARKER, REGION, STUB, kind, mark
from mutants import TooLong, limited, module_changes

COUNTED = "checks", "hidden", "key", "blank", "wrong", "by heart"
TWIN = {"max": "min", "min": "max"}
SLOWER, SECONDS = 5, 2                      # how much longer than the right answer a wrong one may take: times, and more


def other(part, change):
    """A part of a result, changed, as text; of one that is unpacked, every part of it."""
    if isinstance(part, ast.Starred):
        return f"*({change('_x')} for _x in {ast.unparse(part.value)})"
    return change(ast.unparse(part))


def returned(source, which, change):
    """The cell with another result in every `return` of its answers; `change` makes text of text."""
    tree = ast.parse(source)
    for function in tree.body:
        if getattr(function, "name", None) in which:
            inner = {id(n) for f in ast.walk(function) if isinstance(f, (ast.FunctionDef, ast.Lambda)) and f is not function
                     for n in ast.walk(f)}
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value and id(node) not in inner:
                    many = isinstance(node.value, (ast.Tuple, ast.List))
                    parts = ", ".join(other(x, change) for x in (node.value.elts if many else [node.value]))
                    changed = ast.parse(f"[{parts}]", mode="eval").body.elts
                    if many:
                        node.value.elts = changed
                    else:
                        [node.value] = changed
    return ast.unparse(tree)


def changed(source, which, r):
    """The cell with one place of its answers changed, in random order.

    Where there is no number and no operator: a word for another one, or max for min.
    """
    tree = ast.parse(source)
    found, words, twins = [], [], []
    for function in (f for f in tree.body if getattr(f, "name", None) in which):
        skip = {id(n) for f in ast.walk(function) if isinstance(f, (ast.JoinedStr, ast.arguments)) for n in ast.walk(f)}
        for node in ast.walk(function):
            for field, value in ast.iter_fields(node):
                for k, child in enumerate(value if isinstance(value, list) else [value]):
                    if not isinstance(child, ast.expr) or id(child) in skip:
                        continue
                    if isinstance(child, ast.Constant) and isinstance(child.value, bool):
                        found.append((node, field, k, ast.Constant(not child.value)))
                        continue
                    if isinstance(child, ast.Constant) and type(child.value) not in (int, float):
                        if isinstance(child.value, str) and not isinstance(node, ast.Expr):
                            words.append((node, field, k, child))
                        continue
                    if isinstance(child, ast.Name) and child.id in TWIN:
                        twins.append((node, field, k, ast.Name(TWIN[child.id])))
                    found += [(node, field, k, new) for _, new in module_changes(child)]
    found = found or twins + [(*place, new) for *place, old in words for *_, new in words if new.value != old.value]
    r.shuffle(found)
    right = ast.unparse(tree)
    for node, field, k, new in found:
        value = getattr(node, field)
        old = value[k] if isinstance(value, list) else value
        put = value.__setitem__ if isinstance(value, list) else lambda _, x, node=node, field=field: setattr(node, field, x)
        put(k, new)
        text = ast.unparse(tree)
        put(k, old)
        if text != right:                           # 1e23 + 1 is 1e23
            yield text


def tables(source, check, names, which):
    """{"first": ..., "table": ...}: cells that know the visible check's results by heart, where these can be written down."""
    try:
        calls = hidden.recorded(check, dict(names), which)
        heart = {name: {repr(sorted(hidden.bound(names[name], (args, more)).items())):
                        hidden.plain(names[name](*copy.deepcopy(args), **copy.deepcopy(more))) for args, more in calls[name]}
                 for name in which}
        if not all(heart.values()) or len(repr(heart)) > 20_000:
            return {}
    except Exception:
        return {}
    head = "\n".join(line for line in ast.unparse(ast.Module([x for x in ast.parse(source).body
                                                              if getattr(x, "name", None) not in which], [])).splitlines())
    made = {}
    for how in ("first", "table"):
        functions = []
        for name in which:
            table = heart[name]
            first = next(iter(table.values()))
            arguments = next(x for x in ast.parse(source).body if getattr(x, "name", None) == name).args
            say = f"{table!r}.get(repr(sorted(locals().items())), {first!r})" if how == "table" else repr(first)
            functions.append(f"def {name}({ast.unparse(arguments)}):\n    return {say}")
        made[how] = "\n".join([head, *functions])
    return made


def results(check, names, which):
    """What the answers give to a check, call after call; an error is a result, too."""
    out = []

    def listen(function):
        @functools.wraps(function)
        def heard(*args, **kwargs):
            try:
                got = function(*args, **kwargs)
            except Exception as error:
                out.append(type(error).__name__)
                raise
            got = [*got] if isinstance(got, Iterator) else got
            if callable(got):                   # what a function gives that was returned
                return listen(got)
            try:
                out.append(hidden.plain(got))
            except TypeError:
                out.append(repr(got))
            return got
        return heard
    hidden.play(check, names | {name: listen(names[name]) for name in which})
    return out


def alike(mine, right):
    """Whether results agree, counts exactly and other numbers to four digits: an optimum that another search finds, a list for a set."""
    try:
        found = dict(hidden.leaves(mine))
        return hidden.close(mine, right, 1e-4) and all(found[p] == x for p, x in hidden.leaves(right) if isinstance(x, int))
    except (TypeError, ValueError):
        return False


def numbers(result):
    """Whether a result is a number or a tuple of them: twice a list is no wrong number."""
    return all(map(hidden.is_number, result)) if isinstance(result, tuple) else hidden.is_number(result)


def wrong(nb, blocks, most):
    """[(number, kind, source, passes the visible check, passes the hidden one)] of one solution's wrong answers."""
    names, found, which, exercise = {"__name__": "__main__"}, [], [], ""
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        what, number = kind(cell)
        if what == "exercise":
            exercise, before, which = MARKER.sub("# ", cell.source), dict(names), hidden.answers(cell.source)
        if what == "check":
            r = random.Random(number)
            given = {"twice": lambda t: f"2*({t})", "thousand": lambda t: f"1000*({t})", "one more": lambda t: f"({t}) + 1"}
            began = time.process_time()
            right = results(cell.source, names, which)
            allowed = SECONDS + SLOWER*(time.process_time() - began)
            tries = [(how, returned(exercise, which, change)) for how, change in given.items()
                     if all(map(numbers, right)) and (how != "one more" or all(isinstance(x, int) for x in right))]
            tries += tables(exercise, cell.source, names, which).items()
            tries += [(f"changed {i}", text) for i, text in zip(range(1, most + 1), changed(exercise, which, r))]
            for how, text in tries:
                mine, seen, unseen = dict(before), False, False
                try:
                    with limited(allowed):
                        try:
                            hidden.play(text, mine)
                        except Exception:
                            pass
                        else:
                            seen = hidden.passes(cell.source, mine)
                            unseen = seen and hidden.passes(f"{cell.source}\n{blocks.get(number, '')}", mine)
                            if unseen and (how.startswith("changed") and number in hidden.OPEN
                                           or alike(results(cell.source, mine, which), right)):
                                continue            # another right answer, or no other result anywhere: not wrong
                except TooLong:                     # and fills the memory, where it collects
                    continue
                found.append((number, how, text, seen, unseen))
        hidden.play(cell.source, names)
    return found


def tried(nb, most=4):
    """(hidden tests that may be used, why the other exercises have none, wrong answers) of a solution.

    Where a changed solution passes the visible check and not the hidden cases, either that check is weak or more than one
    answer is right. A student must not lose a point for the second, so there are no hidden cases for either; both are named.
    """
    blocks, without = hidden.hidden(nb)
    found = wrong(nb, blocks, most)
    doubtful = {number for number, how, _, seen, unseen in found
                if how.startswith("changed") and seen and not unseen and blocks[number].startswith("def _same")}
    without |= {number: "a changed solution passes the visible check: weak, or another right answer" for number in doubtful}
    found = [(n, how, text, seen, seen if n in doubtful else unseen) for n, how, text, seen, unseen in found]
    return {n: block for n, block in blocks.items() if n not in doubtful}, without, found


def tally(found):
    """{kind of wrong answer: [tried, pass what students see, pass all]}."""
    count = {}
    for _, how, _, seen, unseen in found:
        row = count.setdefault(re.sub(r" \d+", "", how), [0, 0, 0])
        row[:] = row[0] + 1, row[1] + seen, row[2] + unseen
    return count


def said(count):
    return "\n".join(f"{how:10} {n} tried, {seen} pass what students see, {all_} pass all" for how, (n, seen, all_) in count.items())


def student(found):
    """{number: answer}: of each exercise one wrong answer, of another kind than the exercise before it where there is one."""
    kinds = {}
    for number, _, text, *_ in found:
        kinds.setdefault(number, []).append(text)
    return {n: texts[i % len(texts)] for i, (n, texts) in enumerate(kinds.items())}


def earned(nb, blocks, found):
    """{what is counted: how many} of a solution: checks, those with hidden tests, and the points of four students."""
    count, names, before, exercise = dict.fromkeys(COUNTED, 0), {"__name__": "__main__"}, {}, ""
    points = {}
    for cell in mark(nb).cells:
        if cell.cell_type != "code":
            continue
        what, number = kind(cell)
        if what == "exercise":
            exercise, before = cell.source, dict(names)
        if what == "check":
            asked = f"{cell.source}\n{blocks.get(number, '')}"
            hidden.play(REGION.sub(rf"\1{STUB}", exercise), before)
            count["checks"] += 1
            count["hidden"] += number in blocks
            points[number] = cell.metadata.nbgrader.points
            count["key"] += points[number]*hidden.passes(asked, names)
            count["blank"] += points[number]*hidden.passes(asked, before)
        hidden.play(cell.source, names)
    mine = student(found)
    count["wrong"] = sum(points[number]*unseen for number, _, text, _, unseen in found if mine[number] == text)
    count["by heart"] = sum(points[number]*unseen for number, how, _, _, unseen in found if how == "table")
    return count


def row(name, count):
    return f"{name:40}" + "".join(f"{count[what]:>{len(what) + 3}}" for what in COUNTED)


def account(counts):
    """A table of `earned`, {name: count}, and their sum."""
    whole = {what: sum(count[what] for count in counts.values()) for what in COUNTED}
    head = " "*40 + "".join(f"   {what}" for what in COUNTED)
    return "\n".join([head, *(row(*pair) for pair in counts.items()), row("all", whole)])


def of(path):
    nb = nbformat.read(path, 4)
    blocks, without, found = tried(nb)
    return without, found, earned(nb, blocks, found)


def main(stems):
    paths = [p for p in sorted((ROOT/"solutions").glob("*.ipynb")) if not stems or p.stem in stems]
    every, counts = [], {}
    with ProcessPoolExecutor(2) as pool:
        for path, (without, found, count) in zip(paths, pool.map(of, paths)):
            print(row(path.stem, count), *(f"\n    {number} has no hidden test: {why}" for number, why in without.items()), flush=True)
            every, counts[path.stem] = every + found, count
            for number, how, text, _, unseen in found:
                if unseen:
                    answer = text.replace("\n", "\n        ")
                    print(f"    {number} {how}\n        {answer}", flush=True)
    print(said(tally(every)), account(counts), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
