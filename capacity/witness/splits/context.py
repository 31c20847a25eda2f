"""Sequences split: every rank keeps some of the tokens, and attention alone sends anything.

    places = zigzag(8, 4)
    parts = [shard(samples, r, places) for r in range(4)]
    run(loss, [w]*4, Each(parts), places, ring_attention)               # on every rank: the loss, every gradient

What a query has gathered from some of its keys is a State; states of disjoint sets of keys merge, in any order.
Letters of the shapes as in `capacity.witness.tiny`; `places` is a list, for each rank the positions of its tokens.
"""
from functools import reduce
from typing import NamedTuple

import numpy as np

from .. import tiny
from ..collectives import pairwise_all_to_all, ring_all_gather, ring_reduce_scatter, window_all_reduce

# Which tokens a rank keeps: P lists of positions.

def contiguous(S, P):
    """Rank r keeps the r-th of P equal chunks."""
    return np.split(np.arange(S), P)


def striped(S, P):
    """Rank r keeps the tokens r, r + P, r + 2P, ..."""
    return [np.arange(r, S, P) for r in range(P)]


def zigzag(S, P):
    """Rank r keeps the half-chunks r and 2P - 1 - r of 2P."""
    half = np.split(np.arange(S), 2*P)
    return [np.concatenate([half[r], half[2*P - 1 - r]]) for r in range(P)]


def shard(samples, rank, places):
    """Rank `rank`'s tokens of samples (tokens, targets): (b, S) both -> (b, s) both."""
    return tuple(x[:, places[rank]] for x in samples)


# Attention as a sum over blocks of keys.

class State(NamedTuple):
    """Of each query: a reference m, the sum s of e^(score - m) over the keys seen, the same sum o of e^(..) value."""
    m: np.ndarray                                            # (b, s, a)
    s: np.ndarray                                            # (b, s, a)
    o: np.ndarray                                            # (b, s, a, d)


def finite(m):
    """The reference m, or 0 where no key was seen and m is -inf: any finite number is as good."""
    return np.where(m == -np.inf, 0.0, m)


def scores(q, k, q_at, k_at):
    """(b, s, a, t): scaled products, -inf where the key comes after the query."""
    z = np.einsum("bsgjd,btgd->bsgjt", groups(q, k), k)*q.shape[3]**-0.5
    z = np.where(q_at[:, None, None, None] >= k_at, z, -np.inf)
    return z.reshape(*q.shape[:3], -1)


def groups(q, k):
    """(b, s, a, ...) as (b, s, g, a/g, ...): the query heads of each key-value head of k."""
    return q.reshape(*q.shape[:2], k.shape[2], -1, *q.shape[3:])


def see(q, k, v, q_at, k_at):
    """What the queries gather from one block of keys and values."""
    z = scores(q, k, q_at, k_at)
    m = z.max(-1)
    p = np.exp(z - finite(m)[..., None])
    return State(m, p.sum(-1), np.einsum("bsgjt,btgd->bsgjd", groups(p, k), v).reshape(q.shape))


def merge(x, y):
    """What is gathered from both: both sums, moved to a common reference."""
    m = np.maximum(x.m, y.m)
    a, b = (np.exp(part.m - finite(m)) for part in (x, y))
    return State(m, a*x.s + b*y.s, a[..., None]*x.o + b[..., None]*y.o)


def unsee(do, out, state, q, k, v, q_at, k_at):
    """The share of one block in the pullback of attention: dq, dk, dv.  do: cotangent of the output `out`."""
    logsum = state.m + np.log(state.s)
    p = np.exp(scores(q, k, q_at, k_at) - logsum[..., None])
    dp = np.einsum("bsgjd,btgd->bsgjt", groups(do, k), v).reshape(p.shape)
    dz = groups(p*(dp - (do*out).sum(-1, keepdims=True))*q.shape[3]**-0.5, k)
    return (np.einsum("bsgjt,btgd->bsgjd", dz, k).reshape(q.shape), np.einsum("bsgjt,bsgjd->btgd", dz, groups(q, k)),
            np.einsum("bsgjt,bsgjd->btgd", groups(p, k), groups(do, k)))


def tiled(size):
    """Attention of one rank, `size` keys at a time: no more scores than that are ever stored."""
    def attend(q, k, v, q_at, k_at):
        tiles = [(k[:, i:i + size], v[:, i:i + size], q_at, k_at[i:i + size]) for i in range(0, k_at.size, size)]
        state = reduce(merge, (see(q, *tile) for tile in tiles))
        out = state.o/state.s[..., None]

        def back(do):
            dq, dk, dv = zip(*(unsee(do, out, state, q, *tile) for tile in tiles))
            return sum(dq), np.concatenate(dk, 1), np.concatenate(dv, 1)
        return out, back
    return attend


# Attention over ranks: (comm, places) -> what takes the place of tiny.attention.

def ring_attention(comm, places):
    """Keys and values go round; on the way back they go round again, with their cotangents one step behind.

    P - 1 messages of a block's k and v; back P - 1 of these and P - 1 of as many cotangents.
    """
    P, r = comm.size, comm.rank
    right, left = (r + 1) % P, (r - 1) % P

    def blocks(k, v):
        """The P blocks (k, v, positions) as they come by, our own first."""
        kv = np.stack([k, v])
        for step in range(P):
            j = (r - step) % P
            yield *kv, places[j]
            if step < P - 1:
                kv = comm.sendrecv(kv, right, left, like=kv, sendtag=j, recvtag=(j - 1) % P)

    def attend(q, k, v, q_at, k_at):
        state = reduce(merge, (see(q, k_, v_, q_at, at) for k_, v_, at in blocks(k, v)))
        out = state.o/state.s[..., None]

        def back(do):
            dq, own, dkv = 0, None, None
            for step, (k_, v_, at) in enumerate(blocks(k, v)):
                more, *share = unsee(do, out, state, q, k_, v_, q_at, at)
                dq, share = dq + more, np.stack(share)
                if step == 0:
                    own = share
                elif step == 1:
                    dkv = share
                else:
                    dkv = share + comm.sendrecv(dkv, right, left, like=dkv)
            if P > 1:
                own = own + comm.sendrecv(dkv, right, left, like=dkv)
            return dq, *own
        return out, back
    return attend


def gathered_attention(comm, places):
    """All keys and values to every rank; back, the transpose: their cotangents are summed where they came from."""
    everywhere = np.concatenate(places)

    def attend(q, k, v, q_at, k_at):
        kv = np.concatenate(ring_all_gather(comm, np.stack([k, v])), axis=2)
        out, back_attend = tiny.attention(q, *kv, q_at, everywhere)

        def back(do):
            dq, dk, dv = back_attend(do)
            return dq, *ring_reduce_scatter(comm, np.split(np.stack([dk, dv]), comm.size, axis=2))
        return out, back
    return attend


def ulysses(comm, places, attend=tiny.attention):
    """All tokens of some of the heads instead of some tokens of all heads, and afterwards back again.

    attend: the attention of those heads.  ValueError if the ranks do not divide the key-value heads.
    """
    P, everywhere = comm.size, np.concatenate(places)

    def swap(x, cut, join):
        """x, cut into P along one axis, joined from the ranks along another."""
        return np.concatenate(pairwise_all_to_all(comm, np.split(x, P, axis=cut)), axis=join)

    def to_heads(x):
        return swap(x, 2, 1)

    def to_tokens(x):
        return swap(x, 1, 2)

    def attend_heads(q, k, v, q_at, k_at):
        if k.shape[2] % P:
            raise ValueError(f"{P} ranks share {k.shape[2]} key-value heads; allowed: a number that divides them")
        out, back_attend = attend(*map(to_heads, (q, k, v)), everywhere, everywhere)
        return to_tokens(out), lambda do: tuple(map(to_tokens, back_attend(to_heads(do))))
    return attend_heads


def hybrid(inner):
    """Ulysses among each `inner` neighbors, a ring of such groups for the heads that each of them got."""
    def method(comm, places):
        far, near = comm.grid(comm.size//inner, inner)
        mine = slice(far.rank*inner, (far.rank + 1)*inner)
        joined = [np.concatenate(places[i:i + inner]) for i in range(0, comm.size, inner)]
        return ulysses(near, places[mine], ring_attention(far, joined))
    return method


def hooks(comm, places, method):
    """What the ranks of comm add to a `tiny.stage` of their tokens: where these are, and attention to all."""
    return {"at": places[comm.rank], "attend": method(comm, places)}


def loss(comm, w, samples, places, method, **more):
    """The loss and all gradients, summed over the ranks.  samples: this rank's, as from `shard`; more: other hooks."""
    total, back = tiny.loss(w, *samples, **hooks(comm, places, method), **more)
    return window_all_reduce(comm, total), {name: window_all_reduce(comm, g) for name, g in back().items()}


# The same idea where the order matters.

def running(comm, x, op):
    """op(x0, op(x1, ... x)) of all ranks up to this one, in order; ceil(log2 P) rounds.  op: associative."""
    d = 1
    while d < comm.size:
        send = comm.isend(x, comm.rank + d) if comm.rank + d < comm.size else None
        if comm.rank >= d:
            x = op(comm.recv(comm.rank - d), x)
        if send:
            send.wait()
        d *= 2
    return x
