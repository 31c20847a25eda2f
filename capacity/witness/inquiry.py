"""Looking for the one cause of an incident: what there is to do, what it costs, and rules that choose what comes next.

An `Inquiry` has causes, one of which is there.  Each has a remedy: it takes its minutes, and where its cause is the one
that is there, the incident ends; else that cause is ruled out.  A `Look` takes minutes and has an outcome, whose
probability depends on the cause alone; each look can be made once.

    trouble = Inquiry(["NIC", "GPU"], [.7, .3], [30, 24], [Look("clocks", 1, ["even", "one is low"], [[.95, .1], [.05, .9]])])
    best = Exact(trouble)
    best.minutes, play(trouble, best, cause=1, outcomes=[1])     # the mean, and one incident: minutes, what was done

A rule is a function of (inquiry, left, seen): the causes that are left, and the outcome of each look or None; it returns
("look", k) or ("mend", i).  `by_ratio`, `by_chance`, `bits` and `saved` are such rules, `Curious`, `Shuffled` and
`Checklist` make some, and `Exact` is the best of all rules, by dynamic programming over everything that can be known.

A witness: it counts minutes and outcomes, and knows no formula.
"""
import itertools
import math
from typing import NamedTuple

import numpy as np


class Look(NamedTuple):
    """Something to look at: its name, minutes, the words of its outcomes, and table[outcome][cause], probabilities."""
    name: str
    minutes: float
    words: list
    table: list


class Inquiry(NamedTuple):
    """Causes, their probabilities, minutes of their remedies, and looks."""
    causes: list
    chances: list
    minutes: list
    looks: list = []

    def weights(self, seen=()):
        """Probability of each cause together with what was seen; not divided by its sum."""
        out = list(self.chances)
        for look, o in zip(self.looks, seen):
            if o is not None:
                out = [w*p for w, p in zip(out, look.table[o])]
        return out

    def belief(self, left, seen=()):
        """Probability of each cause that is left, 0 for the others."""
        w = [w if i in left else 0*w for i, w in enumerate(self.weights(seen))]
        return [x/sum(w) for x in w]


# ---- a list of remedies
def order_minutes(chances, minutes, order):
    """Mean minutes of remedies in this order: each is paid by all whose cause comes later, or is its own."""
    now, total = 0, 0
    for i in order:
        now = now + minutes[i]
        total = total + chances[i]*now
    return total


def ratio_order(chances, minutes):
    """Causes by probability over minutes, the largest first."""
    return sorted(range(len(chances)), key=lambda i: (-chances[i]/minutes[i], i))


# ---- rules
def by_ratio(inquiry, left, seen):
    """No looks; the remedy with the most probability a minute."""
    return "mend", max(left, key=lambda i: inquiry.weights(seen)[i]/inquiry.minutes[i])


def by_chance(inquiry, left, seen):
    """No looks; the remedy of the most probable cause."""
    return "mend", max(left, key=lambda i: inquiry.weights(seen)[i])


def entropy(weights):
    """Bits that are missing, of weights that need not add up to 1."""
    total = sum(weights)
    return -sum(w/total*math.log2(w/total) for w in weights if w > 0)


def open_looks(inquiry, seen):
    """The numbers of the looks that were not made; seen: for each look its outcome, or None."""
    return [k for k in range(len(inquiry.looks)) if seen[k] is None]


def bits_a_minute(inquiry, left, seen):
    """{look: bits that it takes away a minute, on average}."""
    w, out = inquiry.weights(seen), {}
    total, now = sum(w[i] for i in left), entropy([w[i] for i in left])
    for k in open_looks(inquiry, seen):
        look, after = inquiry.looks[k], 0
        for row in look.table:
            part = [w[i]*row[i] for i in left]
            after += sum(part)/total*entropy(part) if sum(part) else 0
        out["look", k] = (now - after)/look.minutes
    return out


def bits(inquiry, left, seen):
    """What takes away the most bits a minute, on average, looks and remedies alike."""
    w, gains = inquiry.weights(seen), bits_a_minute(inquiry, left, seen)
    total, now = sum(w[i] for i in left), entropy([w[i] for i in left])
    for i in left:
        rest = [w[j] for j in left if j != i]
        gains["mend", i] = (now - (sum(rest)/total*entropy(rest) if sum(rest) else 0))/inquiry.minutes[i]
    return max(gains, key=gains.get) if len(left) > 1 else ("mend", left[0])


class Curious:
    """Looks by bits a minute until a cause is as probable as `sure`, then the best list of remedies."""

    def __init__(self, sure):
        self.sure = sure

    def __call__(self, inquiry, left, seen):
        if len(left) > 1 and open_looks(inquiry, seen) and max(inquiry.belief(left, seen)) < self.sure:
            gains = bits_a_minute(inquiry, left, seen)
            if max(gains.values()) > 1e-9:
                return max(gains, key=gains.get)
        return by_ratio(inquiry, left, seen)


def saved(inquiry, left, seen):
    """The look that shortens the best list of remedies by the most minutes beyond its own; where none does, that list."""
    w = inquiry.weights(seen)

    def rest(part):
        return order_minutes(part, minutes, ratio_order(part, minutes))
    minutes = [inquiry.minutes[i] for i in left]
    part = [w[i] for i in left]
    now, total, gains = rest(part), sum(part), {}
    for k in open_looks(inquiry, seen):
        look = inquiry.looks[k]
        after = sum(rest([w[i]*row[i] for i in left]) for row in look.table)
        gains[k] = now - after - look.minutes*total
    if gains and max(gains.values()) > 1e-12*total:
        return "look", max(gains, key=gains.get)
    return by_ratio(inquiry, left, seen)


class Shuffled:
    """All looks and remedies in an order drawn by chance, until the incident ends.  `reset` draws the next one."""

    def __init__(self, inquiry, rng):
        self.rng = rng
        self.all = [("look", k) for k in range(len(inquiry.looks))] + [("mend", i) for i in range(len(inquiry.causes))]
        self.reset()

    def reset(self):
        self.order = [self.all[i] for i in self.rng.permutation(len(self.all))]

    def __call__(self, inquiry, left, seen):
        return next(a for a in self.order if (a[1] in left if a[0] == "mend" else seen[a[1]] is None))


class Checklist:
    """Looks one after the other; one that says anything but its first word is believed at once.

    order: numbers of looks.  points: {(look, outcome): cause}.  then: causes, in the order in which what is left is mended.
    """

    def __init__(self, order, points, then):
        self.order, self.points, self.then = order, points, then

    def __call__(self, inquiry, left, seen):
        for k in self.order:
            if seen[k] is None:
                return "look", k
            if self.points.get((k, seen[k])) in left:
                return "mend", self.points[k, seen[k]]
        return "mend", next(i for i in self.then if i in left)


def play(inquiry, rule, cause, outcomes):
    """(minutes, what was done) for an incident: its cause, and what each look would say."""
    left, seen, spent, done = tuple(range(len(inquiry.causes))), (None,)*len(inquiry.looks), 0, []
    while True:
        what, k = rule(inquiry, left, seen)
        done.append((what, k))
        if what == "look":
            spent += inquiry.looks[k].minutes
            seen = seen[:k] + (outcomes[k],) + seen[k + 1:]
        else:
            spent += inquiry.minutes[k]
            if k == cause:
                return spent, done
            left = tuple(i for i in left if i != k)


def remembered(rule):
    """The same rule, which works out each situation once."""
    known = {}

    def again(inquiry, left, seen):
        if (left, seen) not in known:
            known[left, seen] = rule(inquiry, left, seen)
        return known[left, seen]
    return again


def mean_minutes(inquiry, rule, left=None, seen=None):
    """Mean minutes of a rule, over all that can happen; exact where the numbers are."""
    left = tuple(range(len(inquiry.causes))) if left is None else left
    seen = (None,)*len(inquiry.looks) if seen is None else seen
    w = inquiry.weights(seen)
    total = sum(w[i] for i in left)
    if not total:
        return 0
    what, k = rule(inquiry, left, seen)
    if what == "mend":
        rest = tuple(i for i in left if i != k)
        return inquiry.minutes[k]*total + (mean_minutes(inquiry, rule, rest, seen) if rest else 0)
    look = inquiry.looks[k]
    return look.minutes*total + sum(mean_minutes(inquiry, rule, left, seen[:k] + (o,) + seen[k + 1:])
                                    for o in range(len(look.table)))


# ---- the best of all rules
class Exact:
    """The rule with the least mean minutes, by dynamic programming: each look at most once.

    A situation is a set of causes that are left and what was seen.  Its value, times its probability, is the least of
    what each next thing costs: its minutes, and the values of what can come of it.  Sets are done from small to large,
    in each the situations in which more was seen first.

    joint[cause, outcome of look 0, outcome of look 1, ...]: probabilities of all outcomes together, under each cause;
    without it, looks are independent under each cause.
    """

    def __init__(self, inquiry, joint=None):
        self.inquiry, n = inquiry, len(inquiry.causes)
        sizes = [len(look.table) + 1 for look in inquiry.looks]                # 0: not looked yet
        self.steps = [math.prod(sizes[:k]) for k in range(len(sizes))]
        states = np.arange(math.prod(sizes))
        digits = [states//step % size for step, size in zip(self.steps, sizes)]
        weight = np.tile(np.array(inquiry.chances, float), (len(states), 1))
        if joint is None:
            for look, digit in zip(inquiry.looks, digits):
                weight *= np.vstack([np.ones(n), np.array(look.table, float)])[digit]
        else:
            for k in range(1, joint.ndim):                                     # 0: the sum over what it would say
                joint = np.concatenate([joint.sum(k, keepdims=True), joint], k)
            weight *= joint[:, *digits].T
        seen = sum((d > 0).astype(int) for d in digits) if digits else np.zeros(1, int)
        turns = [(k, at, [at + o*self.steps[k] for o in range(1, sizes[k])])  # where look k is open, and what can come of it
                 for m in range(len(sizes), -1, -1) for k, digit in enumerate(digits)
                 for at in [states[(seen == m) & (digit == 0)]]]
        value, self.choice = {(): np.zeros(len(states))}, {}
        for left in (s for m in range(1, n + 1) for s in itertools.combinations(range(n), m)):
            total = weight[:, left].sum(1)
            v = np.full(len(states), np.inf)
            act = np.zeros(len(states), np.int16)
            for i in left:
                trial = inquiry.minutes[i]*total + value[tuple(j for j in left if j != i)]
                act[trial < v] = i
                v = np.minimum(v, trial)
            for k, at, after in turns:
                trial = inquiry.looks[k].minutes*total[at] + sum(v[to] for to in after)
                better = trial < v[at] - 1e-13
                v[at[better]], act[at[better]] = trial[better], n + k
            value[left], self.choice[left] = v, act
        self.value = value
        self.minutes = float(value[tuple(range(n))][0]/sum(inquiry.chances))

    def __call__(self, inquiry, left, seen):
        state = sum(step*(o + 1) for step, o in zip(self.steps, seen) if o is not None)
        a, n = int(self.choice[left][state]), len(inquiry.causes)
        return ("mend", a) if a < n else ("look", a - n)


def all_rules(inquiry, left=None, seen=None):
    """The mean minutes of every rule there is, for each cause: a set of tuples.  For two or three causes and looks.

    Two rules with the same minutes under each cause are one.
    """
    n = len(inquiry.causes)
    left = tuple(range(n)) if left is None else left
    seen = (None,)*len(inquiry.looks) if seen is None else seen
    if not left:
        return {(0,)*n}
    out = set()
    for i in left:
        rest = tuple(j for j in left if j != i)
        for v in all_rules(inquiry, rest, seen):
            out.add(tuple(inquiry.minutes[i] + (v[j] if j in rest else 0) if j in left else 0 for j in range(n)))
    for k in open_looks(inquiry, seen):
        look = inquiry.looks[k]
        after = [all_rules(inquiry, left, seen[:k] + (o,) + seen[k + 1:]) for o in range(len(look.table))]
        for vs in itertools.product(*after):
            out.add(tuple(look.minutes + sum(row[j]*v[j] for row, v in zip(look.table, vs)) if j in left else 0
                          for j in range(n)))
    return out
