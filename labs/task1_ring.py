"""Task 1. Write the ring all-reduce (chapter 12): two blanks.

    torchrun --standalone --nproc-per-node=4 labs/task1_ring.py

Every rank has P blocks. In P - 1 rounds each rank sends one block to the next rank and adds what comes from the one before: then
it has the whole sum of one block. In P - 1 more rounds the sums go round. Fill the two lines that end in `...`, and run it: the
check says what is wrong.
"""
import torch

from processes import lab

# Which block rank r sends in round t (0, 1, ...); the one that it receives is the one that rank r - 1 sends.


def block_to_add(r, t, P):
    """In the first P - 1 rounds, whose end is that rank r has the sum of block r + 1."""
    return ...                                               # BLANK 1


def block_to_pass(r, t, P):
    """In the last P - 1 rounds: a block whose sum rank r has."""
    return ...                                               # BLANK 2


def ring_all_reduce(comm, blocks):
    blocks, r, P = list(blocks), comm.rank, comm.size
    for choose, add in ((block_to_add, True), (block_to_pass, False)):
        for t in range(P - 1):
            out, into = choose(r, t, P), choose((r - 1) % P, t, P)
            if out is ... or into is ...:
                raise SystemExit(f"{choose.__name__} is blank: it returns the number of a block, from 0 to {P - 1}")
            came = comm.sendrecv(blocks[out % P], (r + 1) % P, (r - 1) % P)
            blocks[into % P] = blocks[into % P] + came if add else came
    return blocks


def main(comm):
    P, r = comm.size, comm.rank
    comm.log.clear()
    got = ring_all_reduce(comm, [torch.eye(P, dtype=torch.float64)[r]*(1000 + j) for j in range(P)])
    sent, said = len(comm.log), ""
    for j, block in enumerate(got):                          # number q of block j is rank q's part of it
        parts = [round(x/(1000 + j), 6) for x in block.tolist()]
        for q, part in enumerate(parts):
            if part != 1 and not said:
                said = f"block {j} " + (f"lacks the part of rank {q}" if part == 0 else
                                        f"has the part of rank {q} {part:g} times" if part == round(part) else
                                        f"has a part of another block from rank {q}")
    if not said and sent != 2*(P - 1):
        said = f"{sent} messages; a ring needs 2 (P - 1) = {2*(P - 1)}"
    every = [None]*P
    torch.distributed.all_gather_object(every, said)
    wrong = [q for q in range(P) if every[q]]
    if wrong:
        raise SystemExit(f"not yet: on rank {wrong[0]} {every[wrong[0]]}")
    if r == 0:
        print(f"ok  every rank has all {P} sums, after 2 (P - 1) = {sent} messages", flush=True)


if __name__ == "__main__":
    lab(main)
