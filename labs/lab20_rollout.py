"""Lab 20. A loop of rollouts: two ranks train, two write, and weights, samples and versions go round.

    torchrun --standalone --nproc-per-node=4 labs/lab20_rollout.py

The trainers hold the flat weights in two halves, as FSDP does; the generators hold columns of one matrix and rows of the
other, as tensor parallelism does. What is sent between them, against the intervals; what comes, by its hash; how old the
samples are; and what two orders of summation do to the ratio of two policies that are the same. Four processes.

Before you look (chapter 36a): two halves of 3,584 flat weights go to two ranks, one with the left and one with the right columns of
a 24 x 64 matrix and then half of the rows of a 64 x 32 one. How many slices are sent?

Break it: the slices go in half precision, `comm.raw.send(flat[a:b].half().float(), TRAINERS + to)`.
"""
import hashlib

import torch
import torch.distributed as dist

from capacity import admitted_staleness, sequence_ess
from capacity.witness.rollout import columns, moves, shards
from asking import answer, broken
from processes import check, lab

HIDDEN, INNER, WORDS = 24, 64, 32
SHAPES = {"up": (HIDDEN, INNER), "down": (INNER, WORDS)}
SIZE = sum(a*b for a, b in SHAPES.values())
TRAINERS, GENERATORS, BATCH, LEAD, BATCHES = 2, 2, 4, 1, 6


def wanted():
    """Intervals of the flat weights for each generator: columns of `up`, rows of `down`."""
    first = HIDDEN*INNER
    return [[*cols, *((first + a, first + b) for a, b in rows)]
            for cols, rows in zip(columns(HIDDEN, INNER, GENERATORS), shards(INNER*WORDS, GENERATORS))]


def digest(flat, intervals):
    """A hash of the numbers in these intervals."""
    return hashlib.sha256(b"".join(flat[a:b].numpy().tobytes() for a, b in intervals)).hexdigest()


def synchronise(comm, flat, plan):
    """Slices go from trainers to generators; the messages that this rank sent, and their bytes."""
    sent = []
    for source, to, a, b in plan:
        if comm.rank == source:
            comm.raw.send(flat[a:b].half().float() if broken() else flat[a:b].clone(), TRAINERS + to)
            sent.append((b - a)*flat.element_size())
        elif comm.rank == TRAINERS + to:
            flat[a:b] = comm.raw.recv(source, like=flat[a:b].clone())
    return sent


def log_probs(flat, x, parts, dtype):
    """Log-probabilities of all words; the inner sum runs in so many parts, as over ranks."""
    up, down = (w.view(s).to(dtype) for w, s in zip(flat.split([a*b for a, b in SHAPES.values()]), SHAPES.values()))
    inner = torch.relu(x.to(dtype) @ up)
    terms = [a @ b for a, b in zip(inner.chunk(parts, 1), down.chunk(parts, 0))]
    return sum(terms[1:], terms[0]).double().log_softmax(1)


def weights(comm):
    """Two synchronisations with a training step between them."""
    torch.manual_seed(20)
    whole = torch.randn(SIZE)*HIDDEN**-.5
    held, want = shards(SIZE, TRAINERS), wanted()
    plan = moves(held, want)
    flat = torch.zeros(SIZE)
    if comm.rank < TRAINERS:
        for a, b in held[comm.rank]:
            flat[a:b] = whole[a:b]
    for version in range(2):
        if version and comm.rank < TRAINERS:                   # every number of the trainers changes
            flat *= 1.5
        stale = digest(flat, want[comm.rank - TRAINERS]) if comm.rank >= TRAINERS else ""
        sent = synchronise(comm, flat, plan)
        counts = torch.tensor([len(sent), sum(sent)], dtype=torch.int64)
        dist.all_reduce(counts)
        answer(counts[0], "slices")
        everything = [torch.zeros(SIZE) for _ in range(comm.size)]
        dist.all_gather(everything, flat)
        there = torch.cat([everything[r][a:b] for r in range(TRAINERS) for a, b in held[r]])
        expected = [digest(there, want[g]) for g in range(GENERATORS)]
        mine = digest(flat, want[comm.rank - TRAINERS]) if comm.rank >= TRAINERS else ""
        check(comm, f"version {version + 1}: {len(plan)} slices, as many as intervals that meet, and {4*SIZE} bytes are sent, "
                    "each number once", counts.tolist() == [len(plan), 4*SIZE])
        check(comm, f"version {version + 1}: both sides have the same hash, and before the slices came they had not",
              comm.rank < TRAINERS or mine == expected[comm.rank - TRAINERS] != stale)


def ages(comm):
    """Rollouts of unequal length go round the loop: rank 0 admits, the generators write, batches are used as they come."""
    total = BATCH*BATCHES
    seconds = torch.randint(1, 30, (total,), generator=torch.Generator().manual_seed(3)).tolist()
    used = []
    if comm.rank == 0:
        version, following, waiting, began = 0, 0, [], {}
        while len(used) < total:
            while following < total and following//BATCH <= version + LEAD:
                comm.send((following, version, seconds[following]), TRAINERS + following % GENERATORS)
                began[following] = version
                following += 1
            for g in range(GENERATORS):
                comm.send(None, TRAINERS + g)                  # work off what you have, and tell
                waiting += comm.recv(TRAINERS + g)
            while len(waiting) >= BATCH:                       # the last that came are used first
                used += [(version, v) for _, v in waiting[-BATCH:]]
                del waiting[-BATCH:]
                version += 1
        for g in range(GENERATORS):
            comm.send("end", TRAINERS + g)
    elif comm.rank >= TRAINERS:
        active, word = [], comm.recv(0)
        while word != "end":
            if word is None:
                least = min((left for *_, left in active), default=0)
                active = [(j, v, left - least) for j, v, left in active]
                comm.send([(j, v) for j, v, left in active if left == 0], 0)
                active = [a for a in active if a[2]]
            else:
                active.append(word)
            word = comm.recv(0)
    old = [b - v for b, v in used]
    check(comm, f"{total} rollouts in {BATCHES} batches, the last done used first: their ages add up as if used in order",
          comm.rank != 0 or sum(old) == sum(j//BATCH - v for j, v in began.items()))
    check(comm, f"with a lead of {LEAD} the mean age is at most {admitted_staleness(LEAD, BATCHES):.3f}, and some are older than "
                f"{LEAD}", comm.rank != 0 or sum(old)/total <= admitted_staleness(LEAD, BATCHES) + 1e-12 and max(old) > LEAD)


def ratios(comm):
    """The same weights and the same words; the trainer sums the inner products whole, the generators in two parts."""
    torch.manual_seed(21)
    flat, x = torch.randn(SIZE)*HIDDEN**-.5, torch.randn(512, HIDDEN)
    word = torch.randint(WORDS, (512, 1))
    shown = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        whole, again, parts = (log_probs(flat, x, n, dtype).gather(1, word) for n in (1, 1, GENERATORS))
        shown[name] = float((whole - parts).std())
        check(comm, f"{name}: in one order the ratio of a policy to itself is 1, in two orders it is not",
              bool((whole == again).all()) and bool((whole != parts).any()))
    if comm.rank == 0:
        print("    a token's log-ratio spreads by " + ", ".join(
            f"{s:.1e} in {n} (of 32,768 tokens' samples {sequence_ess(s, 32768):.2%} are left)" for n, s in shown.items()))
    check(comm, "bf16 spreads a thousand times as far as fp32, or more", shown["bf16"] > 1e3*shown["fp32"])


def main(comm):
    weights(comm)
    ages(comm)
    ratios(comm)


if __name__ == "__main__":
    lab(main, "four")
