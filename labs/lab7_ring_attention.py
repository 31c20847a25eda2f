"""Lab 7. Ring attention: every rank has a part of the sequence, and keys and values travel round the ring.

    torchrun --standalone --nproc-per-node=4 labs/lab7_ring_attention.py

Forward and backward are written by hand and compared with PyTorch's attention on one process, in fp64; messages and
bytes are compared with the formula, the work of each rank and step with what chapter 17 counts.

Before you look (chapter 17): causal ring attention on four ranks, each with a contiguous part of the sequence. How many percent
of the time do the ranks work?

Break it: the ring turns the other way in the mask alone, `places[(r + step) % P]`.
"""
from functools import partial

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention

from capacity import causal_ring_efficiency, ring_attention_bytes
from asking import answer, broken
from processes import check, equal, lab, summed

BATCH, HIDDEN, HEADS, KV_HEADS, DIM, FP64 = 2, 8, 4, 2, 3, 8     # q: (b, heads, s, d); k and v: (b, kv_heads, s, d)


def zigzag(S, P):
    """Rank r keeps the half-chunks r and 2P - 1 - r of 2P."""
    half = torch.arange(S).chunk(2*P)
    return [torch.cat([half[r], half[2*P - 1 - r]]) for r in range(P)]


def heads(k):
    """Keys or values, a copy for every query head."""
    return k.repeat_interleave(HEADS//KV_HEADS, dim=1)


def summed_heads(dk):
    """The transpose: the copies' cotangents, added up."""
    return dk.unflatten(1, (KV_HEADS, -1)).sum(2)


def scores(q, k, seen):
    return (q @ heads(k).mT*DIM**-0.5).masked_fill(~seen, -torch.inf)


def see(q, k, v, seen):
    """(m, s, o) of one block of keys: a reference, the sum of e^(score - m), the sum of e^(score - m) v."""
    z = scores(q, k, seen)
    m = z.amax(-1, keepdim=True)
    e = (z - finite(m)).exp()
    return m, e.sum(-1, keepdim=True), e @ heads(v)


def merge(x, y):
    """Both sums of both, moved to a common reference."""
    m = torch.maximum(x[0], y[0])
    a, b = ((part[0] - finite(m)).exp() for part in (x, y))
    return m, a*x[1] + b*y[1], a*x[2] + b*y[2]


def finite(m):
    """The reference, or 0 where no key was seen: there it is -inf, and -inf + inf is no number."""
    return m.masked_fill(m == -torch.inf, 0)


class Ring(torch.autograd.Function):
    """Causal attention of this rank's queries to the keys of all ranks; places[r]: the positions that rank r has."""

    @staticmethod
    def blocks(comm, places, k, v):
        """(k, v, seen) of each rank as they come by, our own first; seen: which of our queries see which keys."""
        P, r = comm.size, comm.rank
        for step in range(P):
            source = (r + step if broken() else r - step) % P
            yield k, v, (places[r][:, None] >= places[source]).to(k.device)
            if step < P - 1:
                k, v = comm.sendrecv([k, v], (r + 1) % P, (r - 1) % P, like=[k, v])

    @staticmethod
    def forward(ctx, comm, places, work, q, k, v):
        state = None
        for k_, v_, seen in Ring.blocks(comm, places, k, v):
            work.append(int(seen.sum()))
            if seen.any():
                state = see(q, k_, v_, seen) if state is None else merge(state, see(q, k_, v_, seen))
        m, s, o = state
        ctx.comm, ctx.places = comm, places
        ctx.save_for_backward(q, k, v, o/s, m + s.log())
        return o/s

    @staticmethod
    def backward(ctx, do):
        """k and v travel again; their cotangents follow one step behind, and the last step takes them home."""
        (q, k, v, o, logsum), comm = ctx.saved_tensors, ctx.comm
        P, r, dq = comm.size, comm.rank, torch.zeros_like(q)
        own, travels = ([torch.zeros_like(k), torch.zeros_like(v)] for _ in range(2))
        for step, (k_, v_, seen) in enumerate(Ring.blocks(comm, ctx.places, k, v)):
            p = (scores(q, k_, seen) - logsum).exp()
            dz = p*(do @ heads(v_).mT - (do*o).sum(-1, keepdim=True))*DIM**-0.5
            dq += dz @ heads(k_)
            if step > 1:
                travels = comm.sendrecv(travels, (r + 1) % P, (r - 1) % P, like=travels)
            into = travels if step else own
            into[0] += summed_heads(dz.mT @ q)
            into[1] += summed_heads(p.mT @ do)
        if P > 1:
            travels = comm.sendrecv(travels, (r + 1) % P, (r - 1) % P, like=travels)
        return None, None, None, dq, own[0] + travels[0], own[1] + travels[1]


def layer(x, w, attend):
    """x (b, s, hidden): q, k, v, attention, o. Also returns what autograd shall keep the gradients of."""
    q, k, v = (torch.einsum("bsh,had->basd", x, w[name]) for name in "qkv")
    for t in (q, k, v):
        t.retain_grad()
    return torch.einsum("basd,adh->bsh", attend(q, k, v), w["o"]), (x, q, k, v)


def weights(comm):
    torch.manual_seed(0)
    kv = HIDDEN, KV_HEADS, DIM
    shapes = {"q": (HIDDEN, HEADS, DIM), "k": kv, "v": kv, "o": (HEADS, DIM, HIDDEN)}
    return {name: torch.randn(shape, dtype=torch.float64).to(comm.device).requires_grad_()
            for name, shape in shapes.items()}


def main(comm):
    P, S = comm.size, 16*comm.size
    x, dy = torch.randn(2, BATCH, S, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x, dy = x.to(comm.device).requires_grad_(), dy.to(comm.device)
    w = weights(comm)
    y, kept = layer(x, w, lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
    y.backward(dy)
    for name, places in (("contiguous", torch.arange(S).chunk(P)), ("zig-zag", zigzag(S, P))):
        ring(comm, name, places, (x.detach(), dy), (y.detach(), [t.grad for t in kept], w))
    masked(comm, *(t.detach() for t in kept[1:3]), zigzag(S, P))


def ring(comm, name, places, given, want):
    """This rank's tokens by ring attention: what comes out, what is sent, how long each rank works."""
    P, mine, raw, work = comm.size, places[comm.rank].to(comm.device), comm.raw, []
    (x, dy), (y, kept_grads, serial), w = (t[:, mine] for t in given), want, weights(comm)
    raw.log.clear()
    got, kept = layer(x.requires_grad_(), w, partial(Ring.apply, raw, places, work))
    forward = [nbytes for _, nbytes in raw.log]
    got.backward(dy)
    backward = [nbytes for _, nbytes in raw.log[P - 1:]]
    axis = (1, 2, 2, 2)                                      # of the sequence in x, q, k, v
    check(comm, f"{name}: the output, and the gradients of x, q, k and v, are those of PyTorch's attention",
          equal(got, y[:, mine]) and
          all(equal(t.grad, g.index_select(a, mine)) for t, g, a in zip(kept, kept_grads, axis)))
    check(comm, f"{name}: each rank has its tokens' part of the weights' gradients; their sum is right",
          all(equal(summed(w[i].grad), serial[i].grad) and not equal(w[i].grad, serial[i].grad) for i in w))
    n = BATCH*ring_attention_bytes(seq_len=len(mine)*P, kv_width=KV_HEADS*DIM, P=P, element_bytes=FP64)
    check(comm, f"{name}: P - 1 transfers of k and v, {n:,.0f} bytes; backward P - 1 of k and v, P - 1 of dk and dv",
          len(forward) == P - 1 and sum(forward) == n and len(backward) == 2*(P - 1) and sum(backward) == 2*n)
    balance(comm, name, torch.tensor(work), P*len(mine))


def balance(comm, name, work, S):
    """Pairs of query and key: in each step everybody waits for the rank that has most."""
    P, steps = comm.size, [torch.empty_like(work) for _ in range(comm.size)]
    dist.all_gather(steps, work)
    steps = torch.stack(steps, 1)                            # (step, rank)
    makespan, c = int(steps.amax(1).sum()), S//P
    efficiency = S*(S + 1)/2/P/makespan
    if name == "contiguous":
        answer(100*efficiency, "%")
        check(comm, f"contiguous: the ranks work {efficiency:.1%} of the time; P/(2 P - 1) = "
                    f"{causal_ring_efficiency(P=P):.1%} for long chunks",
              makespan == c*(c + 1)//2 + (P - 1)*c*c and abs(efficiency - causal_ring_efficiency(P=P)) < 1/c)
    else:
        check(comm, f"zig-zag: every step takes all ranks {steps[-1, 0]} pairs, the first {steps[0, 0]}: no rank waits",
              bool((steps == steps[:, :1]).all()) and efficiency == 1)


def masked(comm, q, k, places):
    """A query that sees no key of a block: its softmax is no number, and no weight of zero cures it."""
    P, r = comm.size, comm.rank
    mine, right = places[r].to(comm.device), places[(r + 1) % P].to(comm.device)
    q, k, seen = q[:, :, mine], k[:, :, right], mine[:, None] >= right
    blind = ~seen.any(-1)                                    # those of our queries that see no key of the right
    naive = 0*scores(q, k, seen).softmax(-1)
    m, s, o = see(q, k, k, seen)
    check(comm, "a softmax over no key is not a number, zero times it neither; as (m, s, o) it is (-inf, 0, 0)",
          torch.equal(naive.isnan().any(-1), blind.expand(naive.shape[:-1])) and bool(blind.any()) == (r < P - 1) and
          not s[:, :, blind].any() and not o[:, :, blind].any() and not o.isnan().any())


if __name__ == "__main__":
    lab(main)
