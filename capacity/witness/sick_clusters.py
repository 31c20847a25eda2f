"""Sick clusters: 32 nodes of 8 GPUs with one fault, what an alarm says of it, and what each look at it would find.

    sick = incidents(10_000, np.random.default_rng(0))     # arrays: one row an incident
    sick.cause, sick.alarm, sick.found[:, CLOCKS]          # which fault, which alarm, which outcome

Everything is drawn from what happens to steps, pairs of nodes and bits, not from tables of error rates: a GPU that is
hot is slow for a part of the time, a link drops for a while, a wrong sum strikes now and then.  So a mild fault hides
from several looks at once.  `rates` counts how often each outcome comes with each cause; `inquiry` makes a search of it.

How often which fault comes, how severe it is and all minutes are assumed.  A witness: it knows no formula.
"""
from functools import reduce
from typing import NamedTuple

import numpy as np

from .inquiry import Inquiry, Look

NODES, LEAF, STEPS = 32, 8, 20              # of a leaf: nodes below one switch; of a look: steps it watches
CAUSES = ["slow NIC", "hot GPU", "bad link", "skewed data", "silent corruption", "loss spike", "passing trouble"]
NIC, GPU, LINK, DATA, SILENT, SPIKE, PASSING = range(7)
SHARES = [.12, .18, .12, .12, .10, .14, .22]                   # of all incidents
REMEDIES = [("test all NICs, swap the node", 30), ("watch all clocks, swap the node", 24), ("test all links, reroute", 38),
            ("sort the batches anew", 25), ("hunt the wrong rank, go back", 45), ("go back, skip the window", 15),
            ("restart", 10)]
LOOKS = [("clocks", 1, ["even", "one GPU is low"]),
         ("timeline", 3, ["all wait alike", "one node waits least", "another one each step"]),
         ("lengths", 3, ["even", "uneven"]),
         ("counters", 2, ["quiet", "errors"]),
         ("pairs", 5, ["all alike", "one node is slow", "one leaf is slow"]),
         ("hashes", 1, ["equal", "one differs"]),
         ("step twice", 8, ["the same bits", "other bits"]),
         ("window again", 12, ["no jump", "jumps again"])]
CLOCKS, TIMELINE, LENGTHS, COUNTERS, PAIRS, HASHES, TWICE, WINDOW = range(8)
ALARMS = ["slow", "loss"]
ROUNDS = 8                                                     # of the 31 in which all pairs would meet


class Sick(NamedTuple):
    """Incidents: cause, alarm (0 slow, 1 loss), slowdown, jump of the loss in deviations, found[incident, look]."""
    cause: np.ndarray
    alarm: np.ndarray
    slowdown: np.ndarray
    jump: np.ndarray
    found: np.ndarray


def rounds(nodes):
    """Pairs that meet in each round: node 0 stays, the others walk round a table.  An odd one out pauses."""
    table = list(range(nodes + nodes % 2))
    out = []
    for _ in range(len(table) - 1):
        out.append([(a, b) for a, b in zip(table, reversed(table)) if a < b < nodes or b < a < nodes])
        out[-1] = sorted({tuple(sorted(p)) for p in out[-1]})
        table = [table[0], table[-1], *table[1:-1]]
    return out


def pair_speeds(cause, place, speed, duty, rng, pairs):
    """Measured speeds of pairs, as shares of the usual one: [incident, pair], with 5 % noise."""
    a, b = np.array(pairs).T
    place, speed, duty = (np.asarray(x)[:, None] for x in (place, speed, duty))
    mine = (a == place) | (b == place)
    across = (a//LEAF == place//LEAF) != (b//LEAF == place//LEAF)
    cause = np.asarray(cause)[:, None]
    hit = np.where(cause == NIC, mine, (cause == LINK) & across & (rng.random(across.shape) < duty))
    return np.where(hit, speed, 1)*(1 + .05*rng.normal(size=hit.shape))


def shape_of(speeds, pairs):
    """What a person sees in the speeds: 0 nothing, 1 one slow node, 2 one slow leaf."""
    a, b = np.array(pairs).T
    slow = speeds < .8
    node = np.stack([slow[:, (a == i) | (b == i)].mean(1) for i in range(NODES)], 1)
    leaf = np.stack([slow[:, (a//LEAF == l) != (b//LEAF == l)].mean(1) for l in range(NODES//LEAF)], 1)
    return np.where(node.max(1) > .9, 1, np.where(leaf.max(1) > .15, 2, 0))


def incidents(count, rng, shares=SHARES):
    """`count` incidents that an alarm noticed: the step 15 % longer than usual, or the loss 4 deviations up."""
    n = 2*count + 200                                          # some pass unnoticed
    cause = rng.choice(len(CAUSES), n, p=shares)
    is_ = [cause == i for i in range(len(CAUSES))]
    place, mild, duty = rng.integers(0, NODES, n), rng.random(n), rng.random(n)
    speed = .25 + .45*mild                                     # of a NIC or link; mild faults are near 1
    often = .1 + .8*duty                                       # share of the steps in which a fault strikes
    extra = .2 + .5*(1 - mild)                                 # of a slow GPU's, or a long batch's, time
    lossy = is_[PASSING] & (rng.random(n) < .25)
    compute, network, hidden = 3.2, 1.6, .6                    # seconds of a step
    step = compute + network - hidden + np.zeros(n)
    step += np.where(is_[NIC] | is_[LINK], np.where(is_[NIC], 1, often)*network*(1/speed - 1), 0)
    step += np.where(is_[GPU] | is_[DATA], often*compute*extra, 0)
    step += np.where(is_[PASSING] & ~lossy, step*(.05 + .6*mild), 0)
    slowdown = step/(compute + network - hidden)*(1 + .01*rng.normal(size=n))
    jump = rng.normal(size=n) + np.select([is_[SPIKE], is_[SILENT], is_[DATA], lossy],
                                          [4 + 6*mild, 8*often*(1.2 - mild), 4*(1 - mild), 3 + 4*mild], 0)

    hot = is_[GPU] & (rng.random(n) < often)                   # at the moment of the look
    clocks = (hot & (extra + .05*rng.normal(size=n) > .1)) | (rng.random(n) < .04)
    plain = extra + .1*rng.normal(size=n) > .3                 # long enough to stand out of a step's noise
    late = np.where((is_[GPU] | is_[DATA]) & plain, often, .04)
    late = rng.random((n, STEPS)) < late[:, None]
    who = np.where(is_[GPU][:, None], place[:, None], rng.integers(0, NODES, (n, STEPS)))
    who = np.where(late, who, -1 - np.arange(STEPS))           # nobody is late: all differ
    most = (who[:, :, None] == who[:, None, :]).sum(2).max(1)
    many = late.sum(1) >= 4
    timeline = np.where(many & (most > late.sum(1)/2), 1, np.where(many, 2, 0))
    lengths = np.where(is_[DATA], extra, .1) + .12*rng.normal(size=n) > .35
    seen = rng.random(n) < .4                                  # of NICs: the others are slow without an error
    counters = rng.poisson(.3 + np.where(is_[LINK], 8*often, 0) + np.where(is_[NIC] & seen, 5, 0)) >= 2
    pairs = [p for r in rounds(NODES)[:ROUNDS] for p in r]
    shapes = shape_of(pair_speeds(cause, place, speed, often, rng, pairs), pairs)
    shapes = np.where(is_[PASSING] & ~lossy & (rng.random(n) < .2), 2, shapes)       # another job's traffic
    after = rng.random(n) < .4                                 # wrong after the sum: one replica goes its own way
    hashes = is_[SILENT] & after
    twice = (is_[SILENT] & (rng.random(n) < 1 - (1 - often)**4)) | (rng.random(n) < .03)
    again = np.select([is_[SPIKE], is_[SILENT], is_[DATA]], [jump, jump*(rng.random(n) < often), jump*.7], 0)
    window = again + rng.normal(size=n) > 3

    alarm = np.where(jump > 4, 1, np.where(slowdown > 1.15, 0, -1))
    found = np.stack([clocks, timeline, lengths, counters, shapes, hashes, twice, window], 1).astype(int)
    keep = np.flatnonzero(alarm >= 0)[:count]
    return Sick(*(x[keep] for x in (cause, alarm, slowdown, jump, found)))


def rates(sick, alarm):
    """(share of each cause, [outcome][cause] of each look) among the incidents with this alarm, half a case added to each."""
    here = sick.alarm == alarm
    cause, found = sick.cause[here], sick.found[here]
    many = np.bincount(cause, minlength=len(CAUSES)) + .5
    tables = []
    for k, (_, _, words) in enumerate(LOOKS):
        counts = np.array([np.bincount(cause[found[:, k] == o], minlength=len(CAUSES)) for o in range(len(words))]) + .5
        tables.append(counts/counts.sum(0))
    return many/many.sum(), tables


def inquiry(sick, alarm):
    """The search after this alarm, with shares and rates counted in these incidents."""
    chances, tables = rates(sick, alarm)
    return Inquiry(CAUSES, chances.tolist(), [m for _, m in REMEDIES],
                   [Look(name, minutes, words, table.tolist()) for (name, minutes, words), table in zip(LOOKS, tables)])


def together(sick, alarm, spread=20):
    """joint[cause, outcome of look 0, ...] of `Exact`, counted in these incidents, and `spread` more as if independent."""
    here = sick.alarm == alarm
    counts = np.zeros((len(CAUSES), *(len(words) for *_, words in LOOKS)))
    np.add.at(counts, (sick.cause[here], *sick.found[here].T), 1)
    for cause, looks in zip(counts, zip(*(np.transpose(t) for t in rates(sick, alarm)[1]))):
        cause += spread*reduce(np.multiply.outer, looks)
        cause /= cause.sum()
    return counts


def cases(count, seed):
    """The first incidents of a seed, as `capacity.on_duty` takes them: (alarm, sentence, cause, outcomes)."""
    sick = incidents(count, np.random.default_rng(seed))
    out = []
    for cause, alarm, slowdown, jump, found in zip(*sick):
        longer = f"A step takes {100*(slowdown - 1):.0f} % longer" if slowdown > 1.05 else "Steps take as long as ever"
        says = f"{longer}; the loss " + (f"jumped by {jump:.0f} standard deviations." if alarm else "looks as ever.")
        out.append((int(alarm), says, int(cause), found.tolist()))
    return out
