"""Experts spread over ranks: tokens travel to the experts that their router chose, and what comes out travels back.

    w = with_experts(tiny.weights(), 8)
    tiny.loss(w, tokens, targets, feed=mixture(k=2))                        # one process, one expert after the other
    parts = [shard(w, r, 2) for r in range(2)]
    run(loss, parts, Each([(tokens[:2], targets[:2]), (tokens[2:], targets[2:])]), 2, 2)    # the same on two ranks

A layer is y = sum over a token's k experts of gate * expert(x).  Letters as in `capacity.witness.tiny`, and E experts.
Its weights: router (h, E), gate, up (E, h, f), down (E, f, h); a rank holds some of the experts, the first axis says
how many.
"""
import numpy as np

from .. import tiny
from ..collectives import window_all_reduce

MATRICES = "gate", "up", "down"


def with_experts(w, experts, seed=2):
    """The weights w of `tiny`, with a router and so many experts in every block, each of the width of its ffn."""
    rng, w = np.random.default_rng(seed), dict(w)
    for i in tiny.blocks(w):
        h = len(w[f"{i}.gate"])
        w[f"{i}.router"] = rng.normal(size=(h, experts))/np.sqrt(h)
        for name in MATRICES:
            shape = w[f"{i}.{name}"].shape
            w[f"{i}.{name}"] = rng.normal(size=(experts, *shape))/np.sqrt(shape[0])
    return w


def is_expert(name):
    """Is this weight an expert's?"""
    return name.split(".")[-1] in MATRICES


def route(x, router, k, renormalize=True, bias=0):
    """Each token's k experts and their gates, (t, k) both, for x (t, h).  back(dgates) -> dx, drouter.

    The gates are the probabilities softmax(x router) of the k chosen, over their sum if they are renormalized.
    bias (E,) is added to choose, and not to weigh.  Which experts are chosen has no derivative.
    """
    logits, back_linear = tiny.linear(x, router)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p = p/p.sum(-1, keepdims=True)
    chosen = np.argsort(-(p + bias), axis=-1, kind="stable")[:, :k]
    gates = np.take_along_axis(p, chosen, -1)
    total = gates.sum(-1, keepdims=True) if renormalize else 1.0
    gates = gates/total

    def back(dgates):
        if renormalize:
            dgates = dgates - (dgates*gates).sum(-1, keepdims=True)
        dp = np.zeros_like(p)
        np.put_along_axis(dp, chosen, dgates/total, -1)
        return back_linear(p*(dp - (dp*p).sum(-1, keepdims=True)))
    return chosen, gates, back


def mixture(k, renormalize=True, capacity=None, bias=0):
    """The layer in one process, for `feed` of `tiny.stage`.

    capacity: tokens that an expert takes, the first ones; what it does not take adds 0 to its token.
    """
    def feed(x, w):
        flat = x.reshape(-1, x.shape[-1])
        chosen, gates, back_route = route(flat, w["router"], k, renormalize, bias)
        y, visits = np.zeros_like(flat), []
        for e in range(len(w["gate"])):
            token, place = (i[:capacity] for i in np.nonzero(chosen == e))
            out, back_expert = tiny.swiglu(flat[token], {name: w[name][e] for name in MATRICES})
            y[token] += gates[token, place][:, None]*out
            visits.append((token, place, out, back_expert))

        def back(dy):
            dy = dy.reshape(flat.shape)
            dx, dgates, dws = np.zeros_like(flat), np.zeros_like(gates), []
            for token, place, out, back_expert in visits:
                dgates[token, place] = (dy[token]*out).sum(-1)
                dout, dw = back_expert(gates[token, place][:, None]*dy[token])
                dx[token] += dout
                dws.append(dw)
            more, drouter = back_route(dgates)

            def dw():
                each = [dw() for dw in dws]
                return {"router": drouter(), **{name: np.stack([d[name] for d in each]) for name in MATRICES}}
            return (dx + more).reshape(x.shape), dw
        return y.reshape(x.shape), back
    return feed


# Over ranks: rank r of P holds the experts r E/P, ..., (r + 1) E/P - 1.

def exchange(comm, blocks, tag):
    """Block j for rank j, of any length -> the list of blocks that came, by rank.  P - 1 messages."""
    P, r = comm.size, comm.rank
    got = list(blocks)
    for d in range(1, P):
        to, source = (r + d) % P, (r - d) % P
        got[source] = comm.sendrecv(blocks[to], to, source, sendtag=tag, recvtag=tag)
    return got


class Trip:
    """A journey of rows: a copy of our row row[i] goes to rank to[i].  Linear; `back` is the transpose of `forth`."""

    def __init__(self, comm, row, to, rows):
        self.comm, self.rows = comm, rows
        self.row = [row[to == r] for r in range(comm.size)]

    def forth(self, x, tag):
        """Copies of our rows x, where they were sent -> the rows that came to us, by rank."""
        got = exchange(self.comm, [x[i] for i in self.row], tag)
        self.cuts = np.cumsum([len(part) for part in got])[:-1]
        return np.concatenate(got)

    def back(self, y, tag):
        """A value for each row that came -> for each of our rows the sum of its copies' values."""
        out = np.zeros((self.rows, *y.shape[1:]))
        for i, part in zip(self.row, exchange(self.comm, np.split(y, self.cuts), tag)):
            out[i] += part
        return out


class Direct:
    """Tokens go to the ranks of their experts, a copy for each.  chosen (t, k); n: experts of a rank.

    `send` copies rows of tokens, `sum` is its transpose; the same for gates, of which every copy has its own.
    `expert`: for each row that came, which of our experts it wants.
    """
    def __init__(self, comm, chosen, n):
        self.shape = chosen.shape
        self.trip = Trip(comm, np.arange(chosen.size), chosen.ravel()//n, chosen.size)
        self.expert = self.trip.forth(chosen.ravel(), "numbers") - n*comm.rank

    def send(self, x, tag):
        return self.trip.forth(x.repeat(self.shape[1], 0), tag)

    def sum(self, rows, tag):
        return self.trip.back(rows, tag).reshape(*self.shape, -1).sum(1)

    def send_gates(self, gates):
        return self.trip.forth(gates.ravel(), "gates")

    def sum_gates(self, values):
        return self.trip.back(values, "gates back").reshape(self.shape)


class ByNode:
    """As Direct, over two kinds of links: a token goes to a node once, and is copied there.

    First to the rank of the same place in the node, then inside the node, a copy for each expert.  On the way back
    what a node has computed for a token is summed before it leaves.
    """
    def __init__(self, comm, chosen, n, node_size):
        across, inside = comm.grid(comm.size//node_size, node_size)
        a = across.rank
        wanted = (chosen[:, :, None]//(n*node_size) == np.arange(across.size)).any(1)               # (t, nodes)
        self.across = Trip(across, *np.nonzero(wanted), len(chosen))
        here = self.across.forth(chosen, "numbers")
        self.shape = here.shape
        token, self.place = np.nonzero(here//(n*node_size) == a)
        self.token, expert = token, here[token, self.place]
        self.inside = Trip(inside, np.arange(token.size), expert//n - a*node_size, token.size)
        self.expert = self.inside.forth(expert, "numbers") - n*comm.rank

    def send(self, x, tag):
        return self.inside.forth(self.across.forth(x, tag)[self.token], tag)

    def sum(self, rows, tag):
        here = np.zeros((self.shape[0], rows.shape[1]))
        np.add.at(here, self.token, self.inside.back(rows, tag))
        return self.across.back(here, tag)

    def send_gates(self, gates):
        return self.inside.forth(self.across.forth(gates, "gates")[self.token, self.place], "gates")

    def sum_gates(self, values):
        here = np.zeros(self.shape)
        here[self.token, self.place] = self.inside.back(values, "gates back")
        return self.across.back(here, "gates back")


def apply(rows, expert, w, capacity=None):
    """Each row through its expert, of those we hold.  An expert takes `capacity` rows, the first; the others give 0."""
    y, visits = np.zeros_like(rows), []
    for e in range(len(w["gate"])):
        mine = np.flatnonzero(expert == e)[:capacity]
        y[mine], back_expert = tiny.swiglu(rows[mine], {name: w[name][e] for name in MATRICES})
        visits.append((mine, back_expert))

    def back(dy):
        dx, dws = np.zeros_like(rows), []
        for mine, back_expert in visits:
            dx[mine], dw = back_expert(dy[mine])
            dws.append(dw)

        def dw():
            each = [dw() for dw in dws]
            return {name: np.stack([d[name] for d in each]) for name in MATRICES}
        return dx, dw
    return y, back


def spread(comm, k, node_size=None, capacity=None, renormalize=True, bias=0, way=Direct):
    """The layer over the ranks of comm, for `feed` of `tiny.stage`: four journeys of the tokens, two of the gates.

    w holds the experts of this rank.  node_size: ranks of a node, to which a token goes once.
    capacity: as in `mixture`, over the tokens of all ranks, in the order of the ranks (not with node_size).
    way: what takes the place of `Direct`.
    """
    def feed(x, w):
        flat = x.reshape(-1, x.shape[-1])
        chosen, gates, back_route = route(flat, w["router"], k, renormalize, bias)
        n = len(w["gate"])
        trip = ByNode(comm, chosen, n, node_size) if node_size else way(comm, chosen, n)
        rows, gate = trip.send(flat, "dispatch"), trip.send_gates(gates)[:, None]
        out, back_experts = apply(rows, trip.expert, w, capacity)
        y = trip.sum(gate*out, "combine")

        def back(dy):
            dout = trip.send(dy.reshape(flat.shape), "combine back")
            drows, dw = back_experts(gate*dout)
            dx, drouter = back_route(trip.sum_gates((dout*out).sum(-1)))
            return (dx + trip.sum(drows, "dispatch back")).reshape(x.shape), lambda: {"router": drouter(), **dw()}
        return y.reshape(x.shape), back
    return feed


def shard(w, rank, size):
    """Rank `rank`'s part of the weights: its experts, and everything else.  ValueError if size divides no E."""
    return {name: np.split(value, size)[rank] if is_expert(name) else value for name, value in w.items()}


def sum_grads(comm, grads, ep):
    """Sums over the ranks that hold the same weights: an expert's over its replicas, all others over all of comm."""
    replicas, _ = comm.grid(comm.size//ep, ep)
    return {name: window_all_reduce(replicas if is_expert(name) else comm, g) for name, g in grads.items()}


def loss(comm, part, samples, k, ep, **how):
    """The loss, and the gradients of this rank's part of the weights: `ep` neighbors share the experts.

    part: of rank comm.rank % ep, as from `shard`; samples: this rank's (tokens, targets); how: of `spread`.
    """
    _, group = comm.grid(comm.size//ep, ep)
    total, back = tiny.loss(part, *samples, feed=spread(group, k, **how))
    return window_all_reduce(comm, total), sum_grads(comm, back(), ep)
