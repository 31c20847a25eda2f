"""Attention of other shapes as programs: grouped heads, latents, windows; every product and every cached number counted.

    tally = Tally()
    y = expanded(tally, latents(8, 8))                      # keys and values of every head are written out
    np.allclose(y, absorbed(Tally(), latents(8, 8)))        # and need not be

A witness: it knows arrays and messages, and no formula.  Letters of the shapes: s queries, t keys, a heads, g key-value
heads (g divides a), d head dimension, r width of the latent, p width of the rotated part.  Positions are arrays of whole
numbers; a mask is an array (s, t) of what is seen, and every query sees a key.
"""
from typing import NamedTuple

import numpy as np

from .collectives import ring_all_gather, window_all_reduce


class Tally:
    """Counts what passes through it: .flop of products, two for each multiplication, .held numbers cached."""

    def __init__(self):
        self.flop, self.held = 0, 0

    def product(self, spec, x, y):
        """np.einsum of two arrays, its FLOP counted: two for each combination of its indices."""
        sizes = dict(zip(spec.split("->")[0].replace(",", ""), x.shape + y.shape))
        self.flop += 2*int(np.prod(list(sizes.values())))
        return np.einsum(spec, x, y)

    def hold(self, *arrays):
        """These arrays lie in a cache; returns them."""
        self.held += sum(x.size for x in arrays)
        return arrays


def causal(q_at, k_at, window=None, sinks=0):
    """What each query sees: keys not after it, of these the last `window`, and the first `sinks` of the sequence."""
    seen = k_at <= q_at[:, None]
    return seen if window is None else seen & ((k_at > q_at[:, None] - window) | (k_at < sinks))


def softmax(z, seen):
    """Shares (s, a, t) of the keys that are seen."""
    z = np.where(seen[:, None], z, -np.inf)
    p = np.exp(z - z.max(-1, keepdims=True))
    return p/p.sum(-1, keepdims=True)


def attend(tally, q, k, v, seen):
    """q (s, a, d), k and v (t, g, .) -> (s, a, .): query head j reads key-value head j//(a/g)."""
    s, a, d = q.shape
    groups = q.reshape(s, k.shape[1], -1, d)
    z = tally.product("sgjd,tgd->sgjt", groups, k).reshape(s, a, -1)
    p = softmax(z*d**-.5, seen).reshape(*groups.shape[:3], -1)
    return tally.product("sgjt,tgd->sgjd", p, v).reshape(s, a, -1)


def tied(x, heads):
    """Key-value heads (t, g, d) written out once for each query head: (t, heads, d)."""
    return np.repeat(x, heads//x.shape[1], axis=1)


# a latent

class Latents(NamedTuple):
    """What latent attention starts from: queries, the cache, the two matrices that expand it, and what is seen."""
    q: np.ndarray                                            # (s, a, d)
    q_rotated: np.ndarray                                    # (s, a, p)
    cache: np.ndarray                                        # (t, r)
    k_rotated: np.ndarray                                    # (t, p), one for all heads
    up_k: np.ndarray                                         # (r, a, d)
    up_v: np.ndarray                                         # (r, a, d)
    seen: np.ndarray                                         # (s, t)

    def heads(self, these):
        """The same for some of the heads: the cache stays as it is."""
        return self._replace(q=self.q[:, these], q_rotated=self.q_rotated[:, these], up_k=self.up_k[:, these],
                             up_v=self.up_v[:, these])

    def tokens(self, these):
        """The same with some of the cached tokens."""
        return self._replace(cache=self.cache[these], k_rotated=self.k_rotated[these], seen=self.seen[:, these])


def latents(s, t, heads=4, head_dim=4, kv_rank=6, rotated=2, seed=0):
    """Random Latents of the last s of t tokens."""
    rng, scale = np.random.default_rng(seed), kv_rank**-.5
    at = np.arange(t)
    q, q_rotated = rng.normal(size=(s, heads, head_dim)), rng.normal(size=(s, heads, rotated))
    return Latents(q, rotate(q_rotated, at[t - s:]), rng.normal(size=(t, kv_rank)), rotate(rng.normal(size=(t, rotated)), at),
                   rng.normal(size=(kv_rank, heads, head_dim))*scale, rng.normal(size=(kv_rank, heads, head_dim))*scale,
                   causal(at[t - s:], at))


def rotate(x, at, base=100.0):
    """Each pair of numbers of x (tokens, ..., p) turned by an angle that grows with the token's place."""
    half = x.shape[-1]//2
    angle = at.reshape(-1, *[1]*(x.ndim - 1))*base**(-np.arange(half)/half)
    u, v = x[..., :half], x[..., half:]
    return np.concatenate([u*np.cos(angle) - v*np.sin(angle), u*np.sin(angle) + v*np.cos(angle)], -1)


def shares(tally, x, scores):
    """Softmax of the given scores and those of the rotated parts, scaled by the width of both."""
    z = scores + tally.product("sap,tp->sat", x.q_rotated, x.k_rotated)
    return softmax(z*(x.q.shape[2] + x.q_rotated.shape[2])**-.5, x.seen)


def expanded(tally, x):
    """Keys and values of every head from the latents, then attention: (s, a, d)."""
    k, v = (tally.product("tr,rad->tad", x.cache, up) for up in (x.up_k, x.up_v))
    return tally.product("sat,tad->sad", shares(tally, x, tally.product("sad,tad->sat", x.q, k)), v)


def absorbed(tally, x):
    """Queries taken to the latents, attention there, the output brought back: (s, a, d)."""
    q = tally.product("sad,rad->sar", x.q, x.up_k)
    out = tally.product("sat,tr->sar", shares(tally, x, tally.product("sar,tr->sat", q, x.cache)), x.cache)
    return tally.product("sar,rad->sad", out, x.up_v)


def one_head(tally, x):
    """The absorbed program as multi-query attention: one key-value head, latent and rotated key side by side."""
    q = np.concatenate([tally.product("sad,rad->sar", x.q, x.up_k), x.q_rotated], -1)
    q = q*(q.shape[2]/(x.q.shape[2] + x.q_rotated.shape[2]))**.5                 # the scale of an expanded head
    k = np.concatenate([x.cache, x.k_rotated], -1)
    out = attend(tally, q, k[:, None], x.cache[:, None], x.seen)
    return tally.product("sar,rad->sad", out, x.up_v)


# cut over ranks: each program returns (its part of the output, numbers it has cached)

def grouped_by_heads(comm, x):
    """Rank n's query heads, and the key-value heads that these read, cached: more ranks than those keep copies.

    x: q, k, v and what is seen, the same on every rank.
    """
    q, k, v, seen = x
    mine = np.array_split(np.arange(q.shape[1]), comm.size)[comm.rank]
    tally, read = Tally(), mine//(q.shape[1]//k.shape[1])
    its = np.unique(read)
    k, v = tally.hold(k[:, its], v[:, its])
    return attend(tally, q[:, mine], k, v, seen), tally.held


def latent_by_heads(comm, x):
    """Rank n's heads of the matrices; all of the cache, which has no heads."""
    tally = Tally()
    mine = np.array_split(np.arange(x.q.shape[1]), comm.size)[comm.rank]
    tally.hold(x.cache, x.k_rotated)
    return absorbed(tally, x.heads(mine)), tally.held


def latent_by_tokens(comm, x):
    """All heads, rank n's tokens of the cache: sums of shares and of latents are added up over the ranks."""
    tally = Tally()
    mine = x.tokens(np.array_split(np.arange(len(x.cache)), comm.size)[comm.rank])
    tally.hold(mine.cache, mine.k_rotated)
    q = tally.product("sad,rad->sar", x.q, x.up_k)
    z = tally.product("sar,tr->sat", q, mine.cache) + tally.product("sap,tp->sat", x.q_rotated, mine.k_rotated)
    z = np.where(mine.seen[:, None], z*(x.q.shape[2] + x.q_rotated.shape[2])**-.5, -np.inf)
    top = window_all_reduce(comm, z.max(-1), np.maximum)
    p = np.exp(z - top[..., None])
    sums = np.concatenate([tally.product("sat,tr->sar", p, mine.cache), p.sum(-1)[..., None]], -1)
    sums = window_all_reduce(comm, sums)
    return tally.product("sar,rad->sad", sums[..., :-1]/sums[..., -1:], x.up_v), tally.held


# a window

def rolling(q, k, v, window, sinks=0):
    """Token after token with a buffer of `window` slots, and one for each sink: (output, slots of the buffer).

    A token's key and value take the slot of the one that has just left the window.
    """
    out, slots = [], np.full(sinks + window, -1)
    keys, values = np.zeros((2, len(slots), *k.shape[1:]))
    for i in range(len(q)):
        slot = i if i < sinks else sinks + (i - sinks) % window
        keys[slot], values[slot], slots[slot] = k[i], v[i], i
        full = slots >= 0
        out.append(attend(Tally(), q[i:i + 1], keys[full], values[full], np.ones((1, full.sum()), bool))[0])
    return np.stack(out), len(slots)


def reach(layers, seen):
    """Which inputs the output of each token depends on, after so many layers with this mask and a residual: booleans."""
    depends = np.eye(len(seen), dtype=bool)
    for _ in range(layers):
        depends = depends | (seen.astype(int) @ depends.astype(int) > 0)
    return depends


def halo_attention(comm, x, window):
    """Contiguous chunks of a windowed sequence: each rank sends the keys and values that later chunks still see.

    One neighbor where window - 1 is at most a chunk, otherwise as many as it takes.  x: q, k, v of this
    rank's chunk.
    """
    q, k, v = x
    s, r, need = len(q), comm.rank, window - 1
    hops = -(-need//s)
    sent = [comm.isend(np.stack([k, v])[:, s - min(s, need - (j - 1)*s):], r + j)
            for j in range(1, hops + 1) if r + j < comm.size]
    blocks = [comm.recv(r - j) for j in range(min(hops, r), 0, -1)] + [np.stack([k, v])]
    for send in sent:
        send.wait()
    k, v = np.concatenate(blocks, axis=1)
    at = np.arange(r*s + s)
    return attend(Tally(), q, k, v, causal(at[r*s:], at[len(at) - len(k):], window))


def gathered_attention(comm, x, window=None):
    """The same with all keys and values brought to every rank."""
    q, k, v = x
    s = len(q)
    k, v = np.concatenate(ring_all_gather(comm, np.stack([k, v])), axis=1)
    at = np.arange(len(k))
    return attend(Tally(), q, k, v, causal(at[comm.rank*s:comm.rank*s + s], at, window))
