"""A rank is killed in mid-run; the job resumes and gives the same losses, bit for bit, or says why it cannot.

    python labs/lab13_failures.py

It starts itself as jobs of four ranks (data parallel, dropout, shuffled samples, Adam) that save every 5 of 20 steps.
A checkpoint is a folder: a file a rank, then a manifest with checksums that one rename makes valid.

Before you look (chapter 26): the job saves after every fifth step and is killed after the thirteenth. How many steps are done twice?

Break it: the resumed job does not load the place of the sampler, `order, at = state["sampler"]` is left out.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

RANKS, STEPS, EVERY, DIES = 4, 20, 5, 13
LIMIT = 90                                                    # seconds for a job
PARTS = {"dropout": "the random numbers of dropout", "sampler": "the place of the sampler", "adam": "Adam's moments"}


# A checkpoint

def save(folder, step, rank, state, comm):
    """All ranks write, all wait for all, one makes it valid."""
    import torch
    place = folder/f"step {step:03d}"
    if rank == 0:
        place.mkdir(exist_ok=True)
    comm.barrier()
    torch.save(state, place/f"rank {rank}")
    sums = comm.all_gather(zlib.crc32((place/f"rank {rank}").read_bytes()))
    if rank == 0:
        (place/"manifest.part").write_text(json.dumps(sums))
        os.replace(place/"manifest.part", place/"manifest")   # all or nothing
    comm.barrier()


def newest(folder):
    """The newest checkpoint that is whole, and the names of those that were refused."""
    refused = []
    for place in sorted(folder.glob("step *"), reverse=True):
        try:
            sums = json.loads((place/"manifest").read_text())
            if all(zlib.crc32((place/f"rank {r}").read_bytes()) == v for r, v in enumerate(sums)):
                return place, refused
        except FileNotFoundError:
            pass
        refused.append(place.name)
    return None, refused


# The job

def job(comm):
    import torch
    import torch.distributed as dist
    comm.all_gather = lambda x: _all(dist, x)
    folder, dies, without = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    rank = comm.rank
    torch.manual_seed(13)                                     # the same weights everywhere
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Dropout(.2), torch.nn.Linear(16, 1))
    adam = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(1000 + rank)                            # dropout: other numbers on each rank
    order, at = torch.randperm(64, generator=torch.Generator().manual_seed(7)), 0
    data = torch.randn(64, 8, generator=torch.Generator().manual_seed(8))
    start = 0
    place, refused = newest(folder)
    if rank == 0 and refused:
        print(f"refused: {', '.join(refused)}", flush=True)
    if place:
        state = torch.load(place/f"rank {rank}")
        start = state["step"]
        model.load_state_dict(state["model"])
        if without != "adam":
            adam.load_state_dict(state["adam"])
        if without != "dropout":
            torch.set_rng_state(state["dropout"])
        if without != "sampler":
            order, at = state["sampler"]
    for step in range(start, STEPS):
        rows = data[order[(at + 4*rank + torch.arange(4)) % 64]]
        at = (at + 4*RANKS) % 64
        loss = (model(rows) - rows.sum(1, keepdim=True)).square().mean()
        adam.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= RANKS
        adam.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        if rank == 0:
            print(f"loss {step} {shown.item().hex()}", flush=True)
        if step + 1 == dies and rank == 2 and not (folder/"died").exists():
            (folder/"died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if (step + 1) % EVERY == 0:
            save(folder, step + 1, rank, {"step": step + 1, "model": model.state_dict(), "adam": adam.state_dict(),
                                          "dropout": torch.get_rng_state(), "sampler": (order, at)}, comm)


def _all(dist, x):
    out = [None]*RANKS
    dist.all_gather_object(out, x)
    return out


# The lab

def start(folder, dies=0, without="nothing", restarts=None):
    """(exit code, everything it printed, {step: loss as printed last}); under torchrun where its word or its restart counts."""
    from launch import Job
    if restarts is None:
        code, text, _ = Job(__file__, folder, dies, without, ranks=RANKS).wait(LIMIT)
    else:
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}",
                               f"--max-restarts={restarts}", __file__, str(folder), str(dies), without],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        code, text = done.returncode, done.stdout
    lines = [line.split() for line in text.splitlines() if line.startswith("loss ")]
    return code, text, {int(step): loss for _, step, loss in lines}


def check(text, ok, more=""):
    assert ok, f"not so: {text}\n{more}"
    print(f"ok  {text}", flush=True)


def main():
    import asking
    asking.begin()
    with tempfile.TemporaryDirectory() as root:
        fresh = lambda name: (Path(root)/name, (Path(root)/name).mkdir())[0]
        code, text, want = start(fresh("whole"))
        check(f"a job of {STEPS} steps that nothing disturbs ends well", code == 0 and len(want) == STEPS, text)

        folder = fresh("killed")
        code, text, before = start(folder, dies=DIES, restarts=0)
        check("rank 2 is killed in step 13: the job ends, and the message names it", code != 0
              and "rank      : 2 (local_rank: 2)\n  exitcode  : -9" in text, text)
        code, text, after = start(folder, without="sampler" if asking.broken() else "nothing")
        asking.answer(len(before.keys() & after.keys()), "steps")
        check("resumed, it begins after the newest save, step 10", code == 0 and min(after) == 10, text)
        check("the losses of the steps that are done again, and of all that follow, are the same bit for bit",
              {**before, **after} == want and all(before[k] == after[k] for k in before if k >= 10), text)

        code, text, alone = start(fresh("elastic"), dies=DIES, restarts=1)
        check("with --max-restarts=1 torchrun does that without anybody: the same losses", code == 0 and alone == want, text)

        for part, words in PARTS.items():
            folder = fresh(part)
            start(folder, dies=DIES)
            code, text, other = start(folder, without=part)
            same = [k for k in other if other[k] == want[k]]
            check(f"resumed without {words}, it runs, and the comparison finds it", code == 0 and len(same) < len(other), text)

        folder = fresh("torn")
        start(folder, dies=DIES)
        shard = folder/"step 010"/"rank 1"
        shard.write_bytes(shard.read_bytes()[:-7])                       # the last bytes did not arrive
        code, text, after = start(folder)
        check("a torn checkpoint is refused by its name; the one before it is taken, and the losses are the same",
              "refused: step 010" in text and min(after) == 5 and after == {k: v for k, v in want.items() if k >= 5}, text)
        (folder/"step 020"/"manifest").unlink()                          # power went before the rename
        code, text, after = start(folder)
        check("so is one without a manifest", "refused: step 020" in text and min(after) == 15, text)
    asking.end()


if __name__ == "__main__":
    if "RANK" in os.environ:
        from processes import lab
        lab(job, asks=False)
    else:
        main()
