"""Lab 22. Out of step: two collectives of equal size in another order, and nobody complains.

    torchrun --standalone --nproc-per-node=4 labs/lab22_out_of_step.py

The last rank does something else than the others: it calls two all-reduces in the other order, or brings numbers of another
type, or of another shape. The bytes fit, so the sums are made, and are sums of the wrong things. Three cures are tried on
all three: PyTorch's own comparison (`TORCH_DISTRIBUTED_DEBUG=DETAIL`), a monitored barrier before each call, and a fingerprint
of each call, with the line of the program that makes it. The fingerprint costs an all-gather of eight bytes a rank before each
call, and it is blind to the other order in a loop, as over a dictionary that was filled otherwise: there the line is the same.

Before you look (chapter 33): rank r has a = r + 1 and b = 10 (r + 1). Ranks 0, 1 and 2 sum a and then b, rank 3 sums b and then a.
What does rank 0 find in a?

Break it: the fingerprint forgets who calls, `call = "all_reduce", tuple(x.shape), str(x.dtype)`.
"""
import hashlib
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from asking import answer, broken
from counting import Count
from processes import check, lab

WAIT = timedelta(seconds=5)


def plain(x, group):
    dist.all_reduce(x, group=group)


def barrier_first(x, group):
    dist.monitored_barrier(group, WAIT)
    dist.all_reduce(x, group=group)


class Mismatch(RuntimeError):
    """The ranks are about to do different things."""


def fingerprint_first(x, group):
    """All ranks show eight bytes of what they are about to do, and go on if all are the same."""
    line = sys._getframe(1).f_lineno
    call = ("all_reduce", tuple(x.shape), str(x.dtype)) + (() if broken() else (f"line {line}",))
    mark = int.from_bytes(hashlib.sha256(repr(call).encode()).digest()[:8], signed=True)
    marks = torch.empty(dist.get_world_size(), dtype=torch.int64)
    dist.all_gather_into_tensor(marks, torch.tensor([mark]))
    if (marks != marks[0]).any():                            # the words travel only when something is wrong
        calls = [None]*len(marks)
        dist.all_gather_object(calls, call)
        raise Mismatch("; ".join(f"rank {r} calls {' '.join(map(str, c))}" for r, c in enumerate(calls)))
    dist.all_reduce(x, group=group)


def two_sums(comm, all_reduce, group, case):
    """a and b after two all-reduces, of which the last rank makes something else."""
    a, b = torch.full((4,), comm.rank + 1.), torch.full((4,), 10.*(comm.rank + 1))
    odd = comm.rank == comm.size - 1
    if odd and case == "type":
        a = a.int()
    if odd and case == "shape":
        a = a.view(2, 2)
    if case == "loop":
        for x in (b, a) if odd else (a, b):
            all_reduce(x, group)
    elif odd and case == "order":
        all_reduce(b, group)
        all_reduce(a, group)
    else:
        all_reduce(a, group)
        all_reduce(b, group)
    return a.flatten().tolist()[0], b.tolist()[0]


def tried(comm, all_reduce, group, case):
    """(what rank 0 has in a and b, or what it was told)."""
    try:
        result, said = two_sums(comm, all_reduce, group, case), None
    except RuntimeError as error:
        result, said = None, str(error)
    comm.barrier()
    return result, said


def main(comm):
    P = comm.size
    want = P*(P + 1)/2, 10*P*(P + 1)/2
    swapped = want[0] + 9*P, want[1] - 9*P
    bare = dist.new_group(timeout=WAIT)

    got, said = tried(comm, plain, bare, "order")
    answer(got[0], "in a")
    first = comm.rank < P - 1
    check(comm, f"another order: a = {swapped[0]:g} and b = {swapped[1]:g} for {want[0]:g} and {want[1]:g}, and nobody complains",
          said is None and got == (swapped if first else swapped[::-1]))
    got, said = tried(comm, plain, bare, "type")
    check(comm, f"another type of as many bytes: a = {got[0]:g} on rank 0, and nobody complains",
          said is None and got[0] != want[0] and got[1] == want[1])
    got, said = tried(comm, plain, bare, "shape")
    check(comm, "another shape of as many numbers: the sums are right, by luck", said is None and got == want)

    with Count() as count:
        tried(comm, fingerprint_first, bare, "none")
    check(comm, f"two fingerprints cost two all-gathers, in which a rank sends {8*(P - 1)} bytes each",
          count.calls["all_gather", P] == 2 and count.nbytes["all_gather", P] == 2*8*(P - 1))
    got, said = tried(comm, fingerprint_first, bare, "loop")
    check(comm, "the other order in a loop: every rank calls from the same line, and the fingerprint does not find it",
          said is None and got == (swapped if first else swapped[::-1]))

    before = dist.get_debug_level()
    dist.set_debug_level(dist.DebugLevel.DETAIL)             # what TORCH_DISTRIBUTED_DEBUG=DETAIL does for a whole job
    detail = {case: dist.new_group(timeout=WAIT) for case in ("order", "type", "shape")}
    dist.set_debug_level(before)
    for how, all_reduce, groups, caught in (
            ("DETAIL", plain, detail, {"type", "shape"}),
            ("a monitored barrier", barrier_first, dict.fromkeys(detail, bare), set()),
            ("a fingerprint with the line", fingerprint_first, dict.fromkeys(detail, bare), {"order", "type", "shape"})):
        for case in detail:
            got, said = tried(comm, all_reduce, groups[case], case)
            if said and comm.rank == 0:
                print("    rank 0 is told: " + shortened(said), flush=True)
            check(comm, f"{how} {'finds' if case in caught else 'does not find'} another {case}", bool(said) == (case in caught))


def shortened(said):
    """The first sentence, without what is the same for all."""
    return " ".join(said.replace("TensorOptions(dtype=float (default), ", "(").split())[:330]


if __name__ == "__main__":
    lab(main)
