"""Python that runs on numbers, recorded once, then run on arrays or on intervals.

    x = symbol("x")
    Tape([x*x + 1, maximum(x, 2)]).run(x=np.arange(4.0))          # two arrays

A `Node` is an operation and its arguments, and equal nodes are one object: what several results share is
computed once.  Formulas and nouns take nodes as they take sympy's symbols, and nothing in them changes.  A traced
number decides no branch: `where`, `maximum`, `&` and `|` do.
"""
import functools
import json
import operator
import weakref

import numpy as np

from . import algebra

BINARY = "+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "&", "|"
PYTHON = dict(zip((*BINARY, "**"), (getattr(operator, name) for name in (
    "add sub mul truediv floordiv mod lt le gt ge eq ne and_ or_ pow").split())))
COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}
MONOTONE = "ceil", "floor", "exp", "log", "log2", "sqrt", "maximum", "larger", "minimum"
SLACK = 1e-9                              # bounds of intervals are widened by more than rounding can take from them


class Node:
    """An operation and its arguments, nodes or numbers; an input has the operation "in" and its name."""
    is_Boolean = is_number = is_comparable = False
    is_negative = is_extended_real = None
    __slots__ = "op", "args", "__weakref__"
    _known = weakref.WeakValueDictionary()

    def __new__(cls, op, *args):
        key = op, *[id(a) if type(a) is Node else (type(a), a) for a in args]
        self = cls._known.get(key)
        if self is None:
            self = object.__new__(cls)
            self.op, self.args = op, args
            cls._known[key] = self
        return self

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("a traced number decides no branch; allowed: where, maximum, minimum, & and |")

    def __format__(self, spec):
        """A sentence about nodes is a template of JavaScript; of formats it knows :g."""
        return f"${{+({self!s}).toPrecision(6)}}" if spec == "g" else f"${{{self!s}}}"

    def __str__(self):
        """JavaScript; a text among the arguments is one there too."""
        if self.op == "in":
            return self.args[0]
        args = [_literal(a) for a in self.args]
        return _script(self.op, [f"({x})" if type(a) is Node and a.op in (*BINARY, "where") else x for a, x in zip(self.args, args)])

    def __repr__(self):
        return f"<node {self.op}>"

    def __pow__(self, k):
        return self*self if type(k) is not Node and k == 2 else Node("**", self, k)

    def __rpow__(self, x):
        return Node("**", x, self)

    def __neg__(self):
        return Node("-", 0, self)


def _operators():
    names = dict(zip(BINARY, "add sub mul truediv floordiv mod lt le gt ge eq ne and or".split()))
    for op, name in names.items():
        setattr(Node, f"__{name}__", lambda self, other, op=op: Node(op, self, other))
        if op not in COMPARE:
            setattr(Node, f"__r{name}__", lambda self, other, op=op: Node(op, other, self))


_operators()
algebra.register(Node, Node)


def symbol(name):
    """An input of what is recorded."""
    return Node("in", name)


class Namespace:
    """Attributes that are inputs of the same names, "tp" or, behind a prefix, "q.tp"."""

    def __init__(self, prefix=""):
        self._prefix = prefix

    def __getattr__(self, name):
        return symbol(self._prefix + name)


def inputs(node):
    """Names of the inputs that a node depends on."""
    return {n.args[0] for n in _order([node]) if n.op == "in"}


def _order(outputs):
    """All nodes, each behind its arguments."""
    seen, order, stack = set(), [], [(n, False) for n in reversed(outputs) if type(n) is Node]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if node.op != "in":
                stack += [(a, False) for a in reversed(node.args) if type(a) is Node and a not in seen]
    return order


def simplify(outputs):
    """The same results without what changes no bit of a finite number: + 0, * 1, / 1, * 0, x - x, operations on constants."""
    made = {}

    def at(x):
        return made.get(x, x) if type(x) is Node else x

    for node in _order(outputs):
        made[node] = node if node.op == "in" else _simple(node, [at(a) for a in node.args])
    return [at(x) for x in outputs]


def _simple(node, args):
    """A node with these arguments instead of its own."""
    op = node.op
    if not any([type(a) is Node for a in args]):
        return _apply(op, *args)
    if op in ("+", "-", "*", "/"):
        a, b = args
        x, y = (None if type(k) is Node else k for k in args)
        if op == "+" and x == 0 or op == "*" and x == 1:
            return b
        if op in ("+", "-") and y == 0 or op in ("*", "/") and y == 1:
            return a
        if op == "*" and (x == 0 or y == 0) or op == "/" and x == 0 or op == "-" and a is b:
            return 0
    if op == "where" and type(args[0]) is not Node:
        return args[1] if args[0] else args[2]
    return node if all([a is b for a, b in zip(args, node.args)]) else Node(op, *args)


def _apply(op, *args):
    return PYTHON[op](*args) if op in PYTHON else getattr(algebra, op)(*args)


class Tape:
    """What a list of results computes, as one straight line of numpy."""

    def __init__(self, outputs):
        self.outputs = simplify(list(outputs))
        self.order = _order(self.outputs)
        self.inputs = sorted(n.args[0] for n in self.order if n.op == "in")

    @functools.cached_property
    def source(self):
        """The program: a Python function of its inputs; a name is used again when its value is not needed any more."""
        last = {}
        for at, node in enumerate(self.order):
            last.update({a: at for a in node.args if type(a) is Node})
        kept = {n for n in self.outputs if type(n) is Node}
        names, free, used, lines = {}, [], 0, []

        def text(x):
            return names[x] if type(x) is Node else repr(x) if isinstance(x, bool) else repr(float(x))

        for at, node in enumerate(self.order):
            if node.op == "in":
                names[node] = node.args[0]
                continue
            args = [text(a) for a in node.args]
            done = {a for a in node.args if type(a) is Node and a.op != "in" and last[a] == at and a not in kept}
            free += [names[a] for a in done]
            if free:
                name = free.pop()
            else:
                name, used = f"_{used}", used + 1
            names[node] = name
            lines.append(f"    {name} = " + (f"{args[0]} {node.op} {args[1]}" if node.op in (*BINARY, "**")
                                             else f"{node.op}({', '.join(args)})"))
        return "\n".join([f"def program({', '.join(self.inputs)}):", *lines,
                          f"    return [{', '.join(map(text, self.outputs))}]"])

    @functools.cached_property
    def program(self):
        """The function that `source` defines."""
        scope = {name: getattr(algebra, name) for name in {n.op for n in self.order} if hasattr(algebra, name)}
        scope |= {name: getattr(np, name) for name in (*MONOTONE, "where") if hasattr(np, name)}
        exec(self.source, scope)
        return scope["program"]

    def javascript(self, *stages, first=None):
        """The program as JavaScript: a function that takes the inputs of the first stage and returns one of the next's.

        stages   names of inputs, those first that change least; all at once by default. The last function returns an array
                 of the results. What an earlier stage knows is worked out there, once.
        first    how many results are in that array, all by default; a function of nothing, its last element, returns the others
        """
        stages = stages or (self.inputs,)
        soon, late = self.outputs[:first], self.outputs[len(self.outputs[:first]):]
        place = {name: k for k, names in enumerate(stages) for name in names}
        if unknown := [name for name in self.inputs if name not in place]:
            raise ValueError(f"stages lack {', '.join(unknown)}; allowed: every input")
        at, said, lines, users = {}, {}, [[] for _ in stages], {}
        for node in self.order:
            nodes = [a for a in node.args if type(a) is Node]
            at[node] = place[node.args[0]] if node.op == "in" else max([at[a] for a in nodes], default=0)
            for a in nodes:
                users.setdefault(a, []).append(node)
        for node in self.outputs:
            users.setdefault(node, []).append(None)                 # the answer's
        if late:
            stages, asked = (*stages, []), {*_order(soon)}
            at |= {node: len(stages) - 1 for node in self.order if node.op != "in" and node not in asked}
            lines.append([])

        def text(x):
            return said[x] if type(x) is Node else _literal(x)

        for node in self.order:
            said[node] = node.args[0] if node.op == "in" else _script(node.op, [text(a) for a in node.args])
            if node.op == "in":
                continue
            if len(users[node]) == 1 and users[node][0] is not None and at[users[node][0]] == at[node]:     # written where it is read
                said[node] = f"({said[node]})" if node.op in (*BINARY, "where") else said[node]
                continue
            line = lines[at[node]]
            name = "ABCDEFGH"[at[node]] + np.base_repr(len(line), 36).lower()
            name += "$"*(name in place)
            line.append(f"{name}={said[node]}")
            said[node] = name
        body = f"return [{','.join(map(text, late or soon))}]"
        for depth, (inputs_, known) in reversed(list(enumerate(zip(stages, lines)))):
            constants = f"const {','.join(known)};" if known else ""
            made = f"({','.join(inputs_)})=>{{{constants}{body}}}"
            body = "return " + (f"[{','.join(map(text, soon))},{made}]" if late and depth == len(stages) - 1 else made)
        return body.removeprefix("return ")

    def run(self, **values):
        """The results for these values of the inputs: arrays that broadcast, or numbers."""
        return self.program(*[values[name] for name in self.inputs])

    def bounds(self, **values):
        """(least, most) of each result while inputs run through intervals: values are arrays, or pairs (least, most).

        Each operation maps intervals to an interval that contains all of its values, so the last does too: what is
        between the ends of every input lies between the ends of every result.  Ends need not be reached.
        """
        found = {}
        with np.errstate(all="ignore"):
            for node in self.order:
                found[node] = (values[node.args[0]] if node.op == "in"
                               else _interval(node.op, [found[a] if type(a) is Node else a for a in node.args]))
                if type(found[node]) is tuple and (least := _rounded_up(node)):
                    lo, hi = found[node]
                    found[node] = np.maximum(lo, _ends(_interval("/", [found[a] if type(a) is Node else a for a in least]))[0]), hi
        ends = [_ends(found[n] if type(n) is Node else n) for n in self.outputs]
        return [(lo - SLACK*abs(lo), hi + SLACK*abs(hi)) for lo, hi in ends]


def arrow(of):
    """A function of q, a text about it or an expression, as JavaScript: q => what it gives."""
    said = of(Namespace("q."))
    return "q=>`" + said.replace("\\", "\\\\") + "`" if isinstance(said, str) else f"q=>{_literal(said)}"


def _literal(x):
    if type(x) is Node or x is None or isinstance(x, (bool, str)):
        return str(x) if type(x) is Node else json.dumps(x, ensure_ascii=False)
    return str(int(x)) if x == int(x) else repr(float(x))


def _script(op, args):
    """An operation in JavaScript."""
    if op in BINARY and op != "//":
        return args[0] + {"==": "===", "!=": "!==", "&": "&&", "|": "||"}.get(op, op) + args[1]
    if op == "//":
        return f"Math.floor({args[0]}/{args[1]})"
    if op == "where":
        return f"{args[0]}?{args[1]}:{args[2]}"
    name = {"**": "pow", "maximum": "max", "larger": "max", "minimum": "min"}.get(op, op)
    if op != "**" and op not in MONOTONE:
        raise NotImplementedError(f"{op} has no JavaScript")
    return f"Math.{name}({','.join(args)})"


def _rounded_up(node):
    """(a, b) where a node is ceil(a/(b*c))*c, which is at least a/b for c above 0; None of others."""
    if node.op == "*" and all(type(a) is Node for a in node.args):
        for up, c in (node.args, node.args[::-1]):
            if up.op == "ceil" and type(up.args[0]) is Node and up.args[0].op == "/":
                a, pieces = up.args[0].args
                if type(pieces) is Node and pieces.op == "*" and any(x is c for x in pieces.args):
                    return a, pieces.args[0] if pieces.args[1] is c else pieces.args[1]
    return None


def _ends(x):
    return x if type(x) is tuple else (x, x)


def _interval(op, args):
    """An operation on intervals, pairs of ends; on numbers and arrays the operation itself."""
    if not any(type(a) is tuple for a in args):
        return COMPARE[op](*args) if op in COMPARE else _apply(op, *args)
    if op == "where":
        (sure, may), x, y = map(_ends, args)                        # False < True: where it is decided, both are equal
        return np.where(sure, x[0], np.where(may, np.minimum(x[0], y[0]), y[0])), \
            np.where(sure, x[1], np.where(may, np.maximum(x[1], y[1]), y[1]))
    if op in MONOTONE:
        lows, highs = zip(*map(_ends, args))
        return _apply(op, *lows), _apply(op, *highs)
    (a, b), (c, d) = map(_ends, args)
    if op in ("+", "&", "|"):
        return _apply(op, a, c), _apply(op, b, d)
    if op == "-":
        return a - d, b - c
    if op in ("<", "<="):
        return COMPARE[op](b, c), COMPARE[op](a, d)
    if op in (">", ">="):
        return COMPARE[op](a, d), COMPARE[op](b, c)
    if op == "*" or op == "/" and np.all(np.asarray(c) > 0):
        ends = [_apply(op, x, y) for x in ((a,) if a is b else (a, b)) for y in ((c,) if c is d else (c, d))]
        return functools.reduce(np.minimum, ends), functools.reduce(np.maximum, ends)
    shape = np.broadcast_shapes(*map(np.shape, (a, b, c, d)))
    if op in ("==", "!="):
        return np.zeros(shape, bool), np.ones(shape, bool)
    if op == "%" and np.all(np.asarray(c) > 0):
        return np.zeros(shape), np.broadcast_to(d, shape)
    return np.full(shape, -np.inf), np.full(shape, np.inf)


