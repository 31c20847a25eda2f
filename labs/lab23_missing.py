"""Lab 23. A rank that is not there: three jobs end within a minute, each with a sentence that names the rank; a node that is not.

    python labs/lab23_missing.py

It starts itself as three jobs at once, each of four ranks that add up numbers forever. In one, rank 2 never starts; in one it is
killed after a second; in one it hangs. Without torchrun, as under `srun`: the ranks meet in a store, and leave word there.
Beside them torchrun waits on one of two nodes for the other, once for the second node and once for the first, whose store the
nodes meet in. It ends by two different time-outs, and names no node: before the nodes have met there are no ranks.

Before you look (chapter 26): the ranks wait 25 seconds for each other, and two more for what the others say. After how many
seconds does the job end whose rank 2 never starts?

Break it: the ranks wait ten minutes, as many frameworks do: `LABS_TIMEOUT=600`.
"""
import os
import signal
import socket
import subprocess
import sys
import time

MINUTE = 60
CASES = {"never starts": ["rank 2 of 4 did not start in 25 s"],
         "is killed": ["rank 2 was ended by SIGKILL"],
         "hangs": ["no rank can go on", "rank 2 did not answer: it hangs, or its process is gone"]}
NODES = {"second": ("join_timeout=10", "RendezvousTimeoutError"),        # node that is not there: (--rdzv-conf, torchrun's word)
         "first": ("join_timeout=10,read_timeout=5,is_host=0", "RendezvousConnectionError")}


def job(comm):
    from capacity.witness.collectives import ring_all_reduce
    import torch
    began = time.monotonic()
    while True:
        if comm.rank == 2 and time.monotonic() > began + 1:
            if sys.argv[1] == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(10*MINUTE)
        ring_all_reduce(comm.raw, [torch.ones(1)]*comm.size)
        time.sleep(.1)


def torchrun(conf):
    """One of two nodes, without the other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d",
                             f"--rdzv-endpoint=localhost:{port}", f"--rdzv-conf={conf}", __file__],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    import asking
    from launch import Job
    asking.begin()
    wait = 600 if asking.broken() else 25
    limit = 35 if asking.broken() else MINUTE                # nobody waits ten minutes to see it
    jobs = {case: Job(__file__, case, absent=[2]*(case == "never starts"), LABS_TIMEOUT=wait) for case in CASES}
    nodes = {} if asking.broken() else {node: torchrun(conf) for node, (conf, _) in NODES.items()}
    ended = {}
    while len(ended) < len(jobs) + len(nodes) and time.monotonic() < jobs["hangs"].began + limit:
        ended |= {case: run.wait() for case, run in jobs.items() if case not in ended and run.poll()}
        ended |= {node: (run.returncode, run.stdout.read(), time.monotonic() - jobs["hangs"].began) for node, run in nodes.items()
                  if node not in ended and run.poll() is not None}
        time.sleep(.1)
    for case, sentences in CASES.items():
        if case not in ended:
            for run in jobs.values():
                run.stop()
            sys.exit(f"rank 2 {case}: nothing after {limit} s; it waits for {wait}")
        code, text, seconds = ended[case]
        print("    " + "\n    ".join(line for line in text.splitlines() if line)[:600])
        assert code and all(sentence in text for sentence in sentences), f"rank 2 {case}: not told so in\n{text}"
        print(f"ok  rank 2 {case}: the job ends after {seconds:.0f} s and says so", flush=True)
    for node, (conf, word) in NODES.items():
        if node not in ended:
            nodes[node].kill()
            sys.exit(f"the {node} node never starts: nothing after {limit} s")
        code, text, seconds = ended[node]
        last = text.strip().splitlines()[-1]
        print(f"    {last}")
        assert code and word in last, f"the {node} node never starts: not told so in\n{text}"
        print(f"ok  the {node} of two nodes never starts, torchrun with {conf}: "
              f"it ends after {seconds:.0f} s and names no node", flush=True)
    asking.answer(ended["never starts"][2], "s")
    asking.end()


if __name__ == "__main__":
    if "RANK" in os.environ:
        from processes import lab
        lab(job, asks=False)
    else:
        main()
