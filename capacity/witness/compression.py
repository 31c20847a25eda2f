"""Compressed gradients as programs of ranks: what travels, what is added on the way, and what is held back for later.

    c = TopK(2)
    message = c.encode(np.array([5., 1., -7., 0.]), seed=0)      # [indices, values]
    c.decode(message, 4)                                         # [5, 0, -7, 0]

    run(gathered, gradients, c)              # every rank's message to every rank: the sum, from any compressor
    run(summed, gradients, c)                # messages are added on the way: for a compressor that is linear
    run(train, losses, start, lambda: Gathered(c), rate, steps)

A witness: arrays, messages and bytes, no formula.
"""
import itertools

import numpy as np

from .collectives import (
    hierarchical_all_reduce,
    pairwise_all_to_all,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)


# ---- compressors: encode(x, seed) is the list of arrays that travels, decode(message, d) what the receiver makes of it

class TopK:
    """The k numbers of largest magnitude, with their places; of equals the first ones."""

    def __init__(self, k, dtype=np.float64):
        self.k, self.dtype = k, dtype

    def encode(self, x, seed=0):
        at = np.sort(np.argsort(-np.abs(x), kind="stable")[:self.k])
        return [at.astype(np.int32), x[at].astype(self.dtype)]

    def decode(self, message, d):
        at, values = message
        out = np.zeros(d)
        out[at] = values
        return out


class RandomK:
    """k numbers at places that all ranks draw from the same seed: only the numbers travel, and they can be added."""

    linear = True

    def __init__(self, k, dtype=np.float64):
        self.k, self.dtype = k, dtype

    def places(self, d, seed):
        return np.random.default_rng(seed).choice(d, self.k, replace=False)

    def encode(self, x, seed=0):
        self.seed = seed
        return [x[self.places(len(x), seed)].astype(self.dtype)]

    def decode(self, message, d):
        out = np.zeros(d)
        out[self.places(d, self.seed)] = message[0]
        return out


class Sign:
    """One bit for each number, and one number for the scale: the mean magnitude."""

    def encode(self, x, seed=0):
        return [np.packbits(x >= 0), np.array([np.abs(x).mean()])]

    def decode(self, message, d):
        bits, scale = message
        return scale[0]*(2.0*np.unpackbits(bits)[:d] - 1)


class Levels:
    """QSGD: s levels above zero, of the norm; a number goes up or down at random so that its mean is right.

    shrink: what is decoded, times this.  With feedback and a variance of w over the squared norm it is 1/(1 + w): levels
    that lose more than they are given, w > 1, would feed back more and more.
    """

    def __init__(self, s, shrink=1.0):
        self.s, self.shrink = s, shrink

    def encode(self, x, seed=0):
        norm = np.linalg.norm(x)
        exact = self.s*np.abs(x)/norm if norm else 0*x
        low = np.floor(exact)
        up = np.random.default_rng(seed).random(len(x)) < exact - low
        return [(np.sign(x)*(low + up)).astype(np.int8 if self.s < 128 else np.int16), np.array([norm])]

    def decode(self, message, d):
        levels, norm = message
        return self.shrink*norm[0]*levels/self.s


# ---- roads: how the ranks' messages become one sum on every rank

def gathered(comm, x, c, seed=0):
    """Everybody's message goes round the ring to everybody, who decodes and adds: the sum of what was decoded."""
    return sum(c.decode(m, len(x)) for m in ring_all_gather(comm, c.encode(x, seed)))


def added(comm, x):
    """The sum of arrays of one shape, by a ring all-reduce of P parts."""
    return np.concatenate(ring_all_reduce(comm, np.array_split(x.ravel(), comm.size))).reshape(x.shape)


def summed(comm, x, c, seed=0):
    """Messages of one array are added on the way, then decoded: the compressor of the sum, if it is linear."""
    return c.decode([added(comm, c.encode(x, seed)[0])], len(x))


def sparse_ring(comm, x, c, seed=0):
    """A ring all-reduce of sparse blocks {place: number}: where two ranks chose different places, a message grows.

    Returns the sum as an array.  c sends places and numbers, as TopK does.
    """
    P, r, d = comm.size, comm.rank, len(x)
    at, values = c.encode(x, seed)
    cuts = [d*j//P for j in range(P + 1)]
    blocks = [[at[(lo <= at) & (at < hi)], values[(lo <= at) & (at < hi)]] for lo, hi in itertools.pairwise(cuts)]
    for s in range(P - 1):
        out, into = (r - s - 1) % P, (r - s - 2) % P
        got = comm.sendrecv(blocks[out], (r + 1) % P, (r - 1) % P, sendtag=out, recvtag=into)
        blocks[into] = merged(got, blocks[into])
    for s in range(P - 1):
        out, into = (r - s) % P, (r - s - 1) % P
        blocks[into] = comm.sendrecv(blocks[out], (r + 1) % P, (r - 1) % P, sendtag=out, recvtag=into)
    total = np.zeros(d)
    for at, values in blocks:
        total[at] = values
    return total


def merged(a, b):
    """Two sparse messages as one: all places, and the numbers of equal places added."""
    at = np.union1d(a[0], b[0]).astype(np.int32)
    values = np.zeros(len(at), a[1].dtype)
    for places, numbers in (a, b):
        values[np.searchsorted(at, places)] += numbers
    return [at, values]


def two_sided(comm, x, c, seed=0, held=None):
    """Compressed all-to-all, the owner of a part adds and compresses again, compressed all-gather.

    Returns (the sum as everybody decodes it, what this rank's own messages lost, what this owner holds back).
    held: what it held back before.
    """
    P, r = comm.size, comm.rank
    parts = np.array_split(x, P)
    out = [c.encode(part, seed) for part in parts]
    lost = np.concatenate([part - c.decode(m, len(part)) for part, m in zip(parts, out)])
    total = sum(c.decode(m, len(parts[r])) for m in pairwise_all_to_all(comm, out))
    total = total + (0 if held is None else held)
    mine = c.encode(total, seed)
    told = [c.decode(m, len(part)) for m, part in zip(ring_all_gather(comm, mine, like=out), parts)]
    return np.concatenate(told), lost, total - told[r]


def low_rank(comm, matrix, Q):
    """PowerSGD: two products, both linear in the matrix, so both are added on the way.  The mean's approximation, Q."""
    P_hat = np.linalg.qr(added(comm, matrix @ Q))[0]
    Q = added(comm, matrix.T @ P_hat)/comm.size
    return P_hat @ Q.T, Q


def node_first(comm, x, c, node_size, seed=0):
    """Sum densely inside a node, gather compressed parts across nodes, tell the node: nodes of node_size ranks."""
    across, near = comm.grid(comm.size//node_size, node_size)
    mine = ring_reduce_scatter(near, np.array_split(x, node_size))
    mine = gathered(across, mine, c, seed).astype(x.dtype)
    return np.concatenate(ring_all_gather(near, mine))


def dense_nodes(comm, x, node_size):
    """The same sum without compression."""
    return np.concatenate(hierarchical_all_reduce(comm, np.array_split(x, comm.size), node_size))


# ---- training: an exchange turns every rank's vector into (one mean for all, what this rank's vector lost)

class Dense:
    """Everything is sent, nothing lost."""

    def __call__(self, comm, p, t):
        return added(comm, p)/comm.size, 0*p


class Gathered:
    """Messages to everybody."""

    def __init__(self, c):
        self.c = c

    def __call__(self, comm, p, t):
        mean = gathered(comm, p, self.c, t)/comm.size
        return mean, p - self.c.decode(self.c.encode(p, t), len(p))


class Summed(Gathered):
    """Messages added on the way: c is linear."""

    def __call__(self, comm, p, t):
        mean = summed(comm, p, self.c, t)/comm.size
        return mean, p - self.c.decode(self.c.encode(p, t), len(p))


class TwoSided(Gathered):
    """Owners add and compress again.  The owner's held-back part is in `owned`: a whole vector, zero where this rank owns nothing."""

    def __init__(self, c):
        super().__init__(c)
        self.held, self.owned = None, 0

    def __call__(self, comm, p, t):
        total, lost, self.held = two_sided(comm, p, self.c, t, self.held)
        parts = [0*part for part in np.array_split(p, comm.size)]
        parts[comm.rank] = self.held/comm.size
        self.owned = np.concatenate(parts)
        return total/comm.size, lost


class LowRank:
    """The vector as a matrix; Q of one step starts the next."""

    def __init__(self, shape, r, seed=0):
        self.shape, self.Q = shape, np.random.default_rng(seed).normal(size=(shape[1], r))

    def __call__(self, comm, p, t):
        mean, self.Q = low_rank(comm, p.reshape(self.shape), self.Q)
        return mean.ravel(), p - mean.ravel()


def train(comm, gradient, x, exchange, rate, steps, feedback=True):
    """Steps of x less the mean of what ranks send; with feedback, what a message lost goes into the next one.

    gradient(x) is this rank's; exchange() makes one of the classes above.  Returns [(x, lost, owned), ...] of all
    steps and the start: what this rank holds back, and what it holds back as an owner.
    """
    send, lost = exchange(), 0*x
    path = [(x, lost, 0*x)]
    for t in range(steps):
        p = rate*gradient(x) + (lost if feedback else 0)
        mean, lost = send(comm, p, t)
        x = x - mean
        path.append((x, lost if feedback else 0*lost, getattr(send, "owned", 0*x)))
    return path


# ---- where a biased compressor climbs

def three(v, curve=.5):
    """Gradients of <v_i, x>^2 + curve/2 |x|^2, v_i the three turns of v: three convex losses."""
    turns = [np.roll(np.array(v, float), i) for i in range(3)]
    return [lambda x, u=u: 2*(u @ x)*u + curve*x for u in turns]


def climbing(limit, rate=.01, steps=10, curve=.5):
    """All v of integers up to limit for which mean top-1 gradients lead away from (1, 1, 1), the smallest first."""
    found = []
    c = TopK(1)
    for v in itertools.product(range(-limit, limit + 1), repeat=3):
        x = start = np.ones(3)
        losses = three(v, curve)
        for _ in range(steps):
            x = x - rate*sum(c.decode(c.encode(g(x)), 3) for g in losses)/3
        if np.linalg.norm(x) > np.linalg.norm(start):
            found.append(v)
    return sorted(found, key=lambda v: (sum(a*a for a in v), v))
