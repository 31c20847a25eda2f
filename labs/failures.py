"""A lab that breaks ends within a minute, with a message that names the rank.

    python labs/failures.py

It starts itself as a lab of three ranks that is broken on purpose, once in every way. Then it runs every lab with `--break`, every
lab as one process, one with a guess, and both tasks, blank and solved: what the reader is told must be what is written here.
"""
import os
import signal
import subprocess
import sys
import time

from pathlib import Path

from capacity.witness.collectives import ring_all_reduce

LIMIT = 60                      # seconds from the first process to the last
WAYS = {                        # what rank 2 does -> what the reader must be told
    "hangs": ["no rank can go on", "rank 0 waited to receive 8 bytes from rank 2",
              "rank 2 did not answer: it hangs, or its process is gone"],
    "makes a group alone": ["no rank can go on", "rank 2 waited inside torch.distributed: wait timeout"],
    "raises": ["rank 2 raised ValueError: on purpose"],
    "is killed": ["rank      : 2 (local_rank: 2)\n  exitcode  : -9"],
    "sends to itself": ["rank 2 raised ValueError: to = 2 on rank 2; allowed: another rank of 0 to 2"],
}
BREAKS = {                      # lab -> the sentence in which its --break ends
    0: "one loss, computed on every rank: all-reduce forward, identity backward is right: not so on rank 0, 1, 2, 3",
    1: "ring_all_reduce on 4 processes is dist.all_reduce: 1,000,003 integers: not so on rank 0, 1, 2, 3",
    2: "ring all-reduce of 9 sizes: equal to dist.all_reduce, each rank sends 2 n (P - 1)/P bytes: not so",
    3: "FSDP, 8192 ranks: 6 all-gathers and 3 reduce-scatters, the placements' bytes",
    4: "sum and count: the ranks' sums over the count of all, 1,300: the serial gradient to 1e-12: not so",
    5: "mat1 and mat2 shapes cannot be multiplied (48x12 and 48x32)",
    6: "GPipe: the sum of the micro-batches' losses, and every gradient, as on one process: not so",
    7: "contiguous: the output, and the gradients of x, q, k and v, are those of PyTorch's attention: not so",
    8: "Split sizes doesn't match total dim 0 size",
    9: "1B, fused: layers and head at the turn 14.757 GB predicted, 20.226 counted",
    10: "in a step of 3 micro-batches each of 4 units is gathered 6 and scattered 3 x, 6 all-gathers in all: not so",
    11: "gathered inner axis first the numbers are in order; outer first all are there, and they are not: not so",
    12: "PyTorch, 1 x 2 x 2: the loss and all 68 gradients of one process: not so",
    13: "not so: the losses of the steps that are done again, and of all that follow, are the same bit for bit",
    14: "the largest 2 % of 4 ranks: a dense sum of 16 bits sends 5.05 times the bytes: not so",
    15: "with H = 1 and outer SGD of rate 1, DiLoCo gives the weights of DDP on 4 ranks: not so",
    16: "e4m3: all 256 codes mean what the list says: not so",
    17: "cap 1: 12 buckets, as many all-reduces, and the bytes of the model: not so",
    18: "rank 0 waited inside torch.distributed",
    19: "1 layers from one seed: no rank differs: not so",
    20: "both sides have the same hash, and before the slices came they had not: not so on rank 2, 3",
    21: "DDP: all 22 losses are those of one process",
    22: "a fingerprint with the line finds another order: not so on rank 0, 1, 2, 3",
    23: "rank 2 never starts: nothing after 35 s; it waits for 600",
}
BY_THEMSELVES = 3, 9, 13, 23    # labs that start no ranks, or start them themselves
TASKS = {"task1_ring": "block_to_add is blank: it returns the number of a block, from 0 to 3",
         "task2_tensor_parallel": "Leave.forward is blank: it returns its argument, or the sum of all ranks' arguments"}
LABS = Path(__file__).resolve().parent


def broken(comm):
    """Rank 2 breaks; the others begin a ring with it."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist
    if comm.rank == 2:
        match sys.argv[1]:
            case "hangs":
                time.sleep(10*LIMIT)
            case "raises":
                raise ValueError("on purpose")
            case "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "makes a group alone":                      # works, and the next group has another name here
                dist.new_group([2])
            case "sends to itself":
                comm.send(None, to=2)
    if sys.argv[1] == "makes a group alone":
        dist.all_reduce(torch.ones(1), group=dist.new_group([0, 1, 2], timeout=timedelta(seconds=5)))
    ring_all_reduce(comm.raw, [torch.ones(2)]*comm.size)


def start(way):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3", __file__, way]
    return time.monotonic(), subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, text=True)


def end(way, began, process):
    try:
        text, _ = process.communicate(timeout=max(1, began + LIMIT - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.terminate()
        raise AssertionError(f"rank 2 {way}: still running after {LIMIT} s") from None
    assert process.returncode != 0, f"rank 2 {way}: the lab says that it succeeded"
    missing = [sentence for sentence in WAYS[way] if sentence not in text]
    assert not missing, f"rank 2 {way}: {missing} not in\n{text}"
    print(f"ok  rank 2 {way}: the lab ends within a minute and says so", flush=True)


def alone(number):
    """Start a lab without ranks, broken."""
    return subprocess.Popen([sys.executable, path(number), "--break"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def path(number):
    return next(LABS.glob(f"lab{number}_*.py"))


def told(what, code, text, sentence):
    assert code != 0, f"{what}: it says that it succeeded"
    assert sentence in text, f"{what}: {sentence!r} is not in\n{text}"
    print(f"ok  {what}: {sentence}", flush=True)


def breaks():
    """Every lab with its broken line."""
    from launch import Job
    for number in sorted(BREAKS.keys() - set(BY_THEMSELVES)):
        patience = 8 if number == 18 else 25                 # the one that ends in waiting; 21 has ranks that wait for the run alone
        code, text, _ = Job(path(number), "--break", LABS_TIMEOUT=patience).wait(LIMIT)
        told(f"lab {number} --break", code, text, BREAKS[number])


def one_process():
    """A sentence with the command, as one rank of one and without torchrun."""
    from launch import Job
    for number in sorted(BREAKS.keys() - set(BY_THEMSELVES)):
        for env in ({}, {"WORLD_SIZE": ""}):                 # an empty variable: nobody has set it
            code, text, _ = Job(path(number), ranks=1, **env).wait(LIMIT)
            assert code == 2 and "Traceback" not in text, text
            assert "processes, and this is 1. Start it with\n    torchrun --standalone --nproc-per-node=4 " in text, text
    print(f"ok  {len(BREAKS) - len(BY_THEMSELVES)} labs as one process: a sentence, and the command", flush=True)


def guesses():
    """What is said of a right guess and of a wrong one."""
    from launch import Job
    for guess, sentence in (("4", "You said 4, it is 4 times\n"), ("2", "You said 2, it is 4 times: 2 times what you said\n")):
        code, text, _ = Job(path(0), "--guess", guess).wait(LIMIT)
        assert code == 0 and sentence in text, text
    print("ok  a guess is compared with what the lab counts", flush=True)


def tasks():
    from launch import Job
    for name, sentence in TASKS.items():
        code, text, _ = Job(LABS/f"{name}.py").wait(LIMIT)
        told(f"{name}.py", code, text, sentence)
        code, text, _ = Job(LABS/"solutions"/f"{name}.py").wait(LIMIT)
        assert code == 0, text
        print(f"ok  solutions/{name}.py", flush=True)


def main():
    waiting = {way: start(way) for way in list(WAYS)[:2]}    # the others break while these wait
    by_themselves = {number: alone(number) for number in BY_THEMSELVES}
    breaks()
    one_process()
    guesses()
    tasks()
    for way, started in waiting.items():
        end(way, *started)
    for way in list(WAYS)[2:]:
        end(way, *start(way))
    for number, process in by_themselves.items():
        text, _ = process.communicate(timeout=2*LIMIT)
        told(f"lab {number} --break", process.returncode, text, BREAKS[number])


if __name__ == "__main__":
    if "RANK" in os.environ:
        from processes import lab
        lab(broken)
    else:
        main()
