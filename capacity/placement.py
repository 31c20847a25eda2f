"""Where the parts of a tensor are, and which collectives carry it from one placement to another.

    Placement("B/x D {y}")       B is cut over mesh axis x, D is whole, the sum over y is still to be taken

A slash divides: on a mesh with 8 ranks along x, each holds B/8.  B/x/y is cut over x, then each part over y.  Over a
mesh axis in braces the ranks hold terms of a sum ("partial"); over every axis not mentioned they hold copies
("replicated").  A mesh is a dict from axis to size, {"x": 8, "y": 4}; ranks count its coordinates, last axis fastest.

    for move in conversion("B D {x}", "B/x D", shape={"B": 1024, "D": 4096}, mesh={"x": 8}):
        print(move)              # reduce_scatter x: B D {x} -> B/x D, 7340032 bytes
"""
import functools
import heapq
import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple

NAME = re.compile(r"[A-Za-z]\w*")
TRANSPOSE = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather", "all_reduce": "all_reduce",
             "all_to_all": "all_to_all", "permute": "permute", "slice": "zero_pad", "zero_pad": "slice", "mask": "mask"}


class Placement:
    """A tensor's axes, the mesh axes that cut each, and those over which it is an unfinished sum.

    text: tensor axes with spaces between, each followed by a slash and a mesh axis for every cut, outermost first;
    then, in braces, the partial mesh axes.  A name is a letter and letters, digits or underscores.  A tensor axis
    stands once, a mesh axis at most once.  Anything else is a ValueError with the text, the position and what is
    allowed.  `cuts` is a dict from tensor axis to its mesh axes, `partial` a tuple in alphabetical order.
    """

    def __init__(self, text):
        if isinstance(text, Placement):
            self.cuts, self.partial = text.cuts, text.partial
        else:
            self.cuts, self.partial = _parse(text)

    @classmethod
    def of(cls, cuts, partial=()):
        """The placement with these cuts, {"B": ("x",), "D": ()}, and partial mesh axes."""
        axes = " ".join("/".join((a, *by)) for a, by in cuts.items())
        return cls(axes + (" {" + " ".join(sorted(partial)) + "}" if partial else ""))

    @classmethod
    def _of(cls, cuts, partial):
        """The same of cuts that are known to be right."""
        self = cls.__new__(cls)
        self.cuts, self.partial = cuts, tuple(sorted(partial))
        return self

    @functools.cached_property
    def _text(self):
        axes = ["/".join((a, *by)) for a, by in self.cuts.items()]
        return " ".join(axes + ["{" + " ".join(self.partial) + "}"]*bool(self.partial))

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"Placement({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, Placement) and self._text == other._text

    def __hash__(self):
        return hash(self._text)

    @property
    def used(self):
        """The mesh axes that are mentioned."""
        return (*itertools.chain(*self.cuts.values()), *self.partial)

    def where(self, x):
        """The tensor axis that mesh axis x cuts, or "partial", or "replicated"."""
        return next((a for a, by in self.cuts.items() if x in by), "partial" if x in self.partial else "replicated")

    def _depth(self, x):
        """Where mesh axis x is, and the cuts outside its own."""
        by = self.cuts.get(self.where(x), ())
        return self.where(x), by[:by.index(x)] if by else by

    def dual(self, mesh):
        """Where the cotangent is: what was replicated is partial, what was partial is replicated, cuts stay.

        mesh: its axes, because what is replicated is not written.  The dual of the dual is the placement itself.
        """
        mesh = self._fits(mesh)
        return Placement.of(self.cuts, [x for x in mesh if x not in self.used])

    def local_shape(self, shape, mesh):
        """What one rank holds of a tensor of this shape, {"B": 128, "D": 4096}.  ValueError if a cut does not divide."""
        mesh, shape = self._fits(mesh), _counts("shape", shape, "a tensor axis", {"B": 1024})
        if set(shape) != set(self.cuts):
            raise ValueError(f"shape has {_list(shape)}; allowed: the axes of {str(self)!r}")
        local = {}
        for a, by in self.cuts.items():
            parts = math.prod(mesh[x] for x in by)
            if shape[a] % parts:
                raise ValueError(f"{a} = {shape[a]} in {str(self)!r}; allowed: a multiple of {parts}")
            local[a] = shape[a]//parts
        return local

    def nbytes(self, shape, mesh, itemsize=2):
        """Bytes that one rank holds."""
        return math.prod(self.local_shape(shape, mesh).values())*_itemsize(itemsize)

    def slices(self, shape, mesh, rank):
        """Which part of the tensor a rank holds (or holds a term of), as a tuple of slices."""
        at = _coordinates(mesh, rank)
        index = []
        for a, size in self.local_shape(shape, mesh).items():
            i = 0
            for x in self.cuts[a]:
                i = i*mesh[x] + at[x]
            index.append(slice(i*size, (i + 1)*size))
        return tuple(index)

    def _fits(self, mesh):
        """The mesh, checked, with plain ints."""
        mesh = _counts("mesh", mesh, "a mesh axis", {"x": 8})
        for x in self.used:
            if x not in mesh:
                raise ValueError(f"mesh axis {x!r} of {str(self)!r}; allowed: {_list(mesh)}")
        return mesh


@dataclass(frozen=True)
class Move:
    """One collective over one mesh axis; nbytes is what a rank sends, 0 for what needs no message.

    all_gather  reduce_scatter  all_reduce   by ring; no schedule sends less in all if only ranks add and copy
    all_to_all                               each part straight to its rank
    permute                                  two cuts of one tensor axis change places; `axis` names both
    slice                                    replicated -> cut: keep your part
    zero_pad                                 cut -> partial: your part among zeros
    mask                                     replicated -> partial: the first rank keeps it, the others take zeros
    """
    collective: str
    axis: str
    source: Placement
    target: Placement
    nbytes: Any = 0

    def __str__(self):
        cost = f"{self.nbytes} bytes" if self.nbytes else "free"
        return f"{self.collective} {self.axis}: {self.source} -> {self.target}, {cost}"

    def cost(self, beta=None):
        """Its bytes, or with bytes per second by mesh axis its seconds: over two axes those of the slower."""
        return self.nbytes if beta is None else self.nbytes/min(beta[x] for x in self.axis.split())

    def transpose(self, mesh):
        """The move of the cotangent: from the dual of the target to the dual of the source, the same bytes."""
        return Move(TRANSPOSE[self.collective], self.axis, self.target.dual(mesh), self.source.dual(mesh), self.nbytes)


def moves(placement, shape, mesh, itemsize=2):
    """Every move of one mesh axis that starts at this placement and keeps the tensor."""
    p = Placement(placement)
    mesh, local = p._fits(mesh), p.local_shape(shape, mesh)
    held = math.prod(local.values())*_itemsize(itemsize)

    def move(collective, x, nbytes, drop=None, add=None, partial=p.partial):
        cuts = {a: tuple(y for y in by if y != drop) + (add[1:] if add and add[0] == a else ())
                for a, by in p.cuts.items()}
        return Move(collective, x, p, Placement._of(cuts, partial), _whole(nbytes))

    for x, k in mesh.items():
        where, part = p.where(x), Fraction(held*(k - 1), k)
        room = [a for a in p.cuts if local[a] % k == 0 and a != where]
        less, more = tuple(y for y in p.partial if y != x), (*p.partial, x)
        if where == "partial":
            yield move("all_reduce", x, 2*part, partial=less)
            yield from (move("reduce_scatter", x, part, add=(a, x), partial=less) for a in room)
        elif where == "replicated":
            yield from (move("slice", x, 0, add=(a, x)) for a in room)
            yield move("mask", x, 0, partial=more)
        elif p.cuts[where][-1] == x:
            yield move("all_gather", x, held*(k - 1), drop=x)
            yield move("zero_pad", x, 0, drop=x, partial=more)
            yield from (move("all_to_all", x, part, drop=x, add=(a, x)) for a in room)
        else:
            inner = p.cuts[where][p.cuts[where].index(x) + 1]
            by = tuple({x: inner, inner: x}.get(y, y) for y in p.cuts[where])
            target = Placement._of({**p.cuts, where: by}, p.partial)
            yield Move("permute", " ".join(sorted((x, inner))), p, target, held if min(k, mesh[inner]) > 1 else 0)


def conversion(source, target, shape, mesh, itemsize=2, beta=None, also=()):
    """The route of moves from one placement of a tensor to another in the fewest bytes sent by a rank.

    source, target: placements or their text, with the same axes in the same order; shape: {"B": 1024, "D": 4096};
    mesh: {"x": 8, "y": 4}; itemsize in bytes.  beta: bytes per second by mesh axis, {"x": 450e9, "y": 50e9}: then the
    route of least time, one move after the other and without latency.  Among equals the fewest moves.  Each move is one
    collective over one mesh axis (a permute: over two); what one collective over a whole mesh could do is not tried.
    Mesh axes that end where they began stay there, but for those in `also`: their ranks may share the work.
    TypeError for a shape, mesh or beta that is no dict, and for `also` that is a text; ValueError for axes that differ,
    are unknown or do not divide, and for a size, itemsize or bandwidth that is not above 0.
    """
    source, target = Placement(source), Placement(target)
    if list(source.cuts) != list(target.cuts):
        raise ValueError(f"{str(source)!r} to {str(target)!r}; allowed: the same tensor axes in the same order")
    mesh = _counts("mesh", mesh, "a mesh axis", {"x": 8})
    if isinstance(also, str):
        raise TypeError(f"also = {also!r}; allowed: a tuple of mesh axes, such as ({also!r},)")
    if unknown := [x for x in also if x not in mesh]:
        raise ValueError(f"also has {unknown[0]!r}; allowed: {_list(mesh)}")
    if beta is not None:
        _speeds(beta, mesh)
    source.local_shape(shape, mesh), target.local_shape(shape, mesh)
    free = {x for x in mesh if x in also or source._depth(x) != target._depth(x)}

    best = {source: ((0, 0), None)}
    queue, count = [((0, 0), 0, source)], itertools.count(1)
    while queue:
        (spent, steps), _, p = heapq.heappop(queue)
        if p == target:
            break
        for m in moves(p, shape, mesh, itemsize):
            if not free.issuperset(m.axis.split()):
                continue
            total = spent + m.cost(beta), steps + 1
            if m.target not in best or total < best[m.target][0]:
                best[m.target] = total, m
                heapq.heappush(queue, (total, next(count), m.target))
    route = []
    while target != source:
        route.append(best[target][1])
        target = route[-1].source
    return route[::-1]


def matmul(a, b, keep=""):
    """The placement of the product over all axes that a and b share, but for those in `keep` (a batch, say).

    Each mesh axis may be: not used; used in one operand, which it cuts along an axis of the product or where it is
    partial, and not in the other; cut a contracted axis of both, which leaves the product partial; or cut a kept
    axis of both.  The rest needs a message or a slice first: ValueError that says so.  Axes of the product: those
    of a, then those of b.
    """
    a, b = Placement(a), Placement(b)
    keep = keep.split()
    shared = [c for c in a.cuts if c in b.cuts]
    for c in keep:
        if c not in shared:
            raise ValueError(f"keep has {c!r}; allowed: axes of both {str(a)!r} and {str(b)!r}")
    summed = [c for c in shared if c not in keep]
    partial = []
    for x in dict.fromkeys(a.used + b.used):
        here, there = a.where(x), b.where(x)
        if here == there and here in shared:
            if a.cuts[here] != b.cuts[here] and set(a.cuts[here]) == set(b.cuts[here]):
                raise _Needs(a, b, x, f"cuts {here} in another order in each: permute one")
            partial += [x]*(here in summed)
        elif "replicated" not in (here, there):
            if "partial" in (here, there):
                raise _Needs(a, b, x, "is partial in one and used in the other: all_reduce or reduce_scatter first")
            raise _Needs(a, b, x, f"cuts {here} of one and {there} of the other: all_gather or all_to_all one")
        elif (cut := here if there == "replicated" else there) in shared:
            raise _Needs(a, b, x, f"cuts {cut} in one only: all_gather that one, or slice the other (free)")
        elif cut == "partial":
            partial.append(x)
    cuts = {c: by for p in (a, b) for c, by in p.cuts.items() if c not in summed}
    return Placement.of(cuts, partial)


class Found(NamedTuple):
    """One choice of a `search`: what its moves cost, the placements chosen, the moves of the tensor on its way."""
    cost: Any
    choice: tuple
    moves: tuple


def search(source, steps, target, shape, mesh, itemsize=2, beta=None, linear=False):
    """Every way to compute a chain of products and pointwise functions, the cheapest first: a list of Found.

    source, target: where the first tensor is and where the last one must be.  steps: in order, each a list of the
    placements to try, `["D F/t", "D/t F"]` of a weight that the tensor is multiplied by, over the axes that they
    share, or `["B F/t", "B F"]` of the tensor itself, where a function of its elements is taken; that one must not
    be partial, because the function of a sum is not the sum of the functions; it may be if the functions are linear,
    as those of a backward pass are in the cotangent.  shape: the sizes of all axes.
    Before a product the tensor goes where `matmul` wants it, and whatever is cheapest in the end.  mesh, itemsize,
    beta: as for `conversion`, which makes the moves.  Equal costs stand in the order of the choices.
    ValueError for a function of partial terms; for shape, mesh, itemsize and beta the errors of `conversion`.
    """
    def go(routes, to):
        """The cheapest way to each of these placements, from wherever it is cheapest."""
        best = {}
        for p, (spent, path) in routes.items():
            local = {a: shape[a] for a in p.cuts}
            for q in to(p):
                way = conversion(p, q, local, mesh, itemsize, beta)
                cost = spent + sum(m.cost(beta) for m in way)
                if q not in best or (cost, len(path) + len(way)) < (best[q][0], len(best[q][1])):
                    best[q] = cost, path + tuple(way)
        return best

    def step(routes, placement):
        axes = [set(p.cuts) for p in routes][0]
        if set(placement.cuts) == axes:
            if placement.partial and not linear:
                raise ValueError(f"a function of {str(placement)!r}; allowed: a placement without partial terms")
            return go(routes, lambda p: [placement])
        routes = go(routes, lambda p: [q for q in _placements(p.cuts, shape, mesh) if _multiplies(q, placement)])
        return {matmul(q, placement): way for q, way in routes.items()}    # no two q have the same product

    shape, found, target = _counts("shape", shape, "an axis", {"B": 1024}), [], Placement(target)
    for choice in itertools.product(*([Placement(p) for p in options] for options in steps)):
        routes = {Placement(source): (0, ())}
        for placement in choice:
            routes = step(routes, placement)
        cost, path = go(routes, lambda p: [target])[target]
        found.append(Found(_whole(cost), choice, path))
    return sorted(found, key=lambda f: f.cost)


def _placements(axes, shape, mesh):
    """Every placement of a tensor with these axes that divides it."""
    for at in itertools.product([*axes, "partial", "replicated"], repeat=len(mesh)):
        at = dict(zip(mesh, at))
        orders = [itertools.permutations([x for x in mesh if at[x] == a]) for a in axes]
        for cuts in itertools.product(*orders):
            cuts = dict(zip(axes, cuts))
            if all(shape[a] % math.prod(mesh[x] for x in by) == 0 for a, by in cuts.items()):
                yield Placement.of(cuts, [x for x in mesh if at[x] == "partial"])


def _multiplies(a, b):
    try:
        return bool(matmul(a, b))
    except ValueError:
        return False


def _Needs(a, b, x, what):
    return ValueError(f"{str(a)!r} times {str(b)!r}: mesh axis {x} {what}")


def _parse(text):
    cuts, partial, seen, at = {}, (), set(), 0

    def fail(allowed):
        raise ValueError(f"placement {text!r}, position {at}: allowed here: {allowed}")

    def name(what, taken):
        nonlocal at
        found = NAME.match(text, at)
        if not found:
            fail(f"the name of {what}")
        if found[0] in taken:
            fail(f"{what} that is not used yet (taken: {_list(taken)})")
        at = found.end()
        return found[0]

    def space():
        nonlocal at
        start = at
        at = re.compile(" *").match(text, at).end()
        return at > start

    if not isinstance(text, str):
        raise ValueError(f"placement {text!r}; allowed: a text such as 'B/x D {{y}}'")
    space()
    while at < len(text) and text[at] != "{":
        axis, by = name("a tensor axis", {*cuts, "partial", "replicated"}), []
        while text[at:at + 1] == "/":
            at += 1
            by.append(name("a mesh axis", seen))
            seen.add(by[-1])
        cuts[axis] = tuple(by)
        if not space() and at < len(text):
            fail("a space, or a slash and a mesh axis")
    if at < len(text):
        at += 1
        space()
        while not partial or text[at:at + 1] != "}":
            partial += (name("a mesh axis", seen),)
            seen.add(partial[-1])
            if not space() and text[at:at + 1] != "}":
                fail("a space or a closing brace")
        at += 1
        space()
        if at < len(text):
            fail("nothing after the braces")
    return cuts, tuple(sorted(partial))


def _counts(name, sizes, what, example):
    """The sizes as plain ints by axis."""
    if not isinstance(sizes, Mapping):
        raise TypeError(f"{name} = {sizes!r}; allowed: a dict from {what} to its size, such as {example}")
    for axis, size in sizes.items():
        if not (isinstance(size, Integral) and not isinstance(size, bool) and size > 0):
            raise ValueError(f"{name}: {axis} = {size!r}; allowed: a count, 1, 2, ...")
    return {axis: int(size) for axis, size in sizes.items()}


def _itemsize(itemsize):
    if not (isinstance(itemsize, Rational) and itemsize > 0):
        raise ValueError(f"itemsize = {itemsize!r}; allowed: bytes, 1, 2, ..., or a Fraction of one")
    return itemsize


def _speeds(beta, mesh):
    if not isinstance(beta, Mapping):
        raise TypeError(f"beta = {beta!r}; allowed: a dict from a mesh axis to its bytes per second, such as {{'x': 450e9}}")
    for x in mesh:
        if x not in beta:
            raise ValueError(f"beta has no mesh axis {x!r}; allowed: bytes per second for {_list(mesh)}")
        if not (isinstance(beta[x], Real) and beta[x] > 0):
            raise ValueError(f"beta: {x} = {beta[x]!r}; allowed: bytes per second, above 0")


def _coordinates(mesh, rank):
    at = {}
    for x in reversed(mesh):
        rank, at[x] = divmod(rank, mesh[x])
    return at


def _whole(x):
    return int(x) if x == int(x) else x


def _list(names):
    return ", ".join(sorted(names)) or "none"
