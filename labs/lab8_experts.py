"""Lab 8. Expert parallelism: every token goes to the ranks of its experts and comes back, by all-to-alls.

    torchrun --standalone --nproc-per-node=4 labs/lab8_experts.py

Each rank has two experts and its own tokens, of which it has more or fewer than others. Output and every gradient are
compared with a loop over all experts on one process, in fp64; the bytes sent, with the routing and with the formula.

Before you look (chapter 18): each of four ranks has two of eight experts, and every token goes to two experts. How many percent
of the rows leave their rank?

Break it: dispatch mixes up what it sends and what it gets, `dist.all_to_all_single(out, rows, sent, received)`.
"""
import math

import torch
import torch.distributed as dist
from torch.nn.functional import silu

from capacity import dispatch_bytes
from asking import answer, broken
from processes import check, equal, lab, summed

OWN, HIDDEN, FFN, FP64 = 2, 6, 10, 8                         # experts of a rank, sizes of an expert, bytes of a number


class AllToAll(torch.autograd.Function):
    """sent[q] rows to every rank q, received[q] rows from it. The transpose sends everything back."""
    log = []                                                 # bytes to other ranks, of every call

    @staticmethod
    def forward(ctx, comm, rows, sent, received):
        ctx.comm, ctx.sent, ctx.received = comm, sent, received
        out = rows.new_empty(sum(received), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), *((sent, received) if broken() else (received, sent)))
        AllToAll.log.append((len(rows) - sent[comm.rank])*HIDDEN*FP64)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, AllToAll.apply(ctx.comm, grad, ctx.received, ctx.sent), None, None


def top(k, renormalize=True):
    """Route a token to the k experts that its logits prefer: (experts, gates), both (tokens, k)."""
    def route(logits):
        gates, experts = logits.softmax(-1).topk(k)
        return experts, gates/gates.sum(-1, keepdim=True) if renormalize else gates
    return route


def in_turn(k):
    """Route to the experts in turn: every expert gets as many."""
    def route(logits):
        T, E = logits.shape
        experts = torch.arange(T*k, device=logits.device).view(T, k) % E
        return experts, torch.full_like(experts, 1/k, dtype=logits.dtype)
    return route


def expert(x, w, e):
    return silu(x @ w["up"][e]) @ w["down"][e]


def dense(x, w, route):
    """What one process computes: for every expert, the tokens that go there."""
    experts, gates = route(x @ w["router"])
    return sum(((experts == e)*gates).sum(-1, keepdim=True)*expert(x, w, e) for e in range(w["router"].shape[1]))


def parallel(comm, x, w, route, capacity=math.inf):
    """The same on P ranks; w holds this rank's experts and the whole router.

    Of the tokens of one rank, an expert takes the first `capacity`. Returns the output and which pairs were taken.
    """
    P = comm.size
    experts, gates = route(x @ w["router"])
    k, experts, gates = experts.shape[1], experts.flatten(), gates.flatten()
    earlier = (experts[:, None] == experts).tril(-1).sum(-1)             # pairs (token, expert) with the same expert
    taken = earlier < capacity
    order = experts.argsort(stable=True)
    order = order[taken[order]]                              # pairs by expert, so by rank
    tokens = order//k

    counts = experts[taken].bincount(minlength=P*OWN).view(P, OWN)
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts)                   # how many rows come, from which rank for which expert
    sent, received = counts.sum(1).tolist(), theirs.sum(1).tolist()
    rows = AllToAll.apply(comm, x[tokens], sent, received)
    of = torch.arange(OWN, device=x.device).repeat(P).repeat_interleave(theirs.flatten())
    out = torch.zeros_like(rows)
    for e in range(OWN):
        out = out.index_add(0, (of == e).nonzero().flatten(), expert(rows[of == e], w, e))
    back = AllToAll.apply(comm, out, received, sent)
    return torch.zeros_like(x).index_add(0, tokens, gates[order, None]*back), taken.view(-1, k)


def weights(comm, own=None):
    """All weights, or the router and the experts of `own`; the same on every rank."""
    torch.manual_seed(0)
    E = OWN*comm.size
    w = {"router": torch.randn(HIDDEN, E), "up": torch.randn(E, HIDDEN, FFN), "down": torch.randn(E, FFN, HIDDEN)}
    return {name: (t[own] if own and name != "router" else t).double().to(comm.device).requires_grad_()
            for name, t in w.items()}


def every_gradient(comm, xs, dys, k):
    """Unequal counts everywhere: tokens of the ranks, rows from rank to rank."""
    P, r, own = comm.size, comm.rank, slice(OWN*comm.rank, OWN*(comm.rank + 1))
    serial, w = weights(comm), weights(comm, own)
    all_x, x = torch.cat(xs).requires_grad_(), xs[r].clone().requires_grad_()
    want = dense(all_x, serial, top(k))
    want.backward(torch.cat(dys))
    got, _ = parallel(comm, x, w, top(k))
    got.backward(dys[r])
    split = [len(t) for t in xs]
    check(comm, f"{split} tokens, {k} of {OWN*P} experts: output and gradient of the input as in the loop over experts",
          equal(got, want.split(split)[r]) and equal(x.grad, all_x.grad.split(split)[r]))
    check(comm, "each expert's gradients are whole where the expert is, without any reduction",
          equal(w["up"].grad, serial["up"].grad[own]) and equal(w["down"].grad, serial["down"].grad[own]))
    check(comm, "the router's are not: wrong on every rank, right when summed",
          not equal(w["router"].grad, serial["router"].grad) and
          equal(summed(w["router"].grad), serial["router"].grad))



def sent_bytes(comm, xs, k):
    """What the all-to-alls send: as the routing says, and as the formula does, which knows no routing."""
    P, r, w = comm.size, comm.rank, weights(comm)
    away = torch.stack([(top(k)(x @ w["router"])[0]//OWN).flatten().bincount(minlength=P) for x in xs])
    away.fill_diagonal_(0)                                   # pairs from rank to rank
    go, come = (int(n)*HIDDEN*FP64 for n in (away[r].sum(), away[:, r].sum()))
    check(comm, f"four all-to-alls: dispatch, combine, and the transposes of both; from {int(away[away > 0].min())} "
                f"to {int(away.max())} rows from one rank to another", AllToAll.log == [go, come, go, come])
    pairs = k*sum(map(len, xs))
    share, deviation = int(away.sum())/pairs/(1 - 1/P), math.sqrt(1/pairs/(P - 1))
    answer(100*away.sum()/pairs, "%")
    check(comm, f"all ranks together send {share:.3f} times k T H s (P - 1)/P, a random routing 1 with a standard "
                f"deviation of {deviation:.3f}", abs(share - 1) < 4*deviation)

    AllToAll.log.clear()
    x = torch.cat([xs[r]]*OWN*P)
    got, _ = parallel(comm, x, weights(comm, slice(OWN*r, OWN*(r + 1))), in_turn(k))
    n = dispatch_bytes(routed_tokens=len(x), active=k, hidden=HIDDEN, element_bytes=FP64, P=P)
    check(comm, f"where all experts get as many, an all-to-all sends k T H s (P - 1)/P to the byte, {n:,.0f} on rank 0",
          AllToAll.log[0] == n and equal(got, dense(x, w, in_turn(k))))


def dropped(comm, xs, k):
    """An expert that takes only its share: what is dropped is missing, and nothing else changes."""
    r, E = comm.rank, OWN*comm.size
    x, w, own = xs[r], weights(comm), slice(OWN*r, OWN*(r + 1))
    capacity = math.ceil(k*len(x)/E)
    got, taken = parallel(comm, x, weights(comm, own), top(k), capacity)
    experts, gates = top(k)(x @ w["router"])
    each = torch.stack([expert(x, w, e) for e in range(E)], 1)           # (token, expert, hidden)
    missing = ((gates*~taken)[:, :, None]*each.take_along_dim(experts[:, :, None], 1)).sum(1)
    want, short = dense(x, w, top(k)), ~taken.all(1)
    check(comm, f"capacity T k/E = {capacity}: {int(short.sum())} of {len(x)} tokens of rank 0 lose an expert; these "
                "differ, by what it would have added, and no others",
          bool(short.any()) and not short.all() and equal(got + missing, want) and
          torch.equal((got - want).abs().amax(1) > 1e-9, short) and equal(got[~short], want[~short]))


def gate_of_one(comm, xs, dys):
    """Top-1 with renormalized gates: g/g = 1, and the router learns nothing."""
    r, norms = comm.rank, []
    for renormalize in (False, True):
        w = weights(comm, slice(OWN*r, OWN*(r + 1)))
        got, _ = parallel(comm, xs[r], w, top(1, renormalize))
        got.backward(dys[r])
        norms.append(float(w["router"].grad.abs().max()))
    check(comm, "top-1: the router has a gradient, and none if its one gate is renormalized",
          norms[0] > 0.1 and norms[1] < 1e-12*norms[0])


def main(comm):
    k, at = 2, torch.Generator().manual_seed(1)
    xs, dys = ([torch.randn(24 + 8*q, HIDDEN, generator=at).double().to(comm.device) for q in range(comm.size)]
               for _ in range(2))
    every_gradient(comm, xs, dys, k)
    sent_bytes(comm, xs, k)
    dropped(comm, xs, k)
    gate_of_one(comm, xs, dys)


if __name__ == "__main__":
    lab(main)
