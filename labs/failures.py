"""A lab that breaks ends within a minute, with a message that names the rank.

    python labs/failures.py

It starts itself as a lab of three ranks that is broken on purpose, once in every way.
"""
import os
import signal
import subprocess
import sys
import time

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


def main():
    waiting = {way: start(way) for way in list(WAYS)[:2]}    # the others break while these wait
    for way in list(WAYS)[2:]:
        end(way, *start(way))
    for way, started in waiting.items():
        end(way, *started)


if __name__ == "__main__":
    if "RANK" in os.environ:
        from processes import lab
        lab(broken)
    else:
        main()
