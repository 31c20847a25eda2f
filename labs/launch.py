"""Ranks of this machine, each a fork of one Python that has imported PyTorch: torchrun for many short jobs.

    python labs/launch.py 4 labs/lab0_autograd.py labs/lab1_ring.py

runs each file on four ranks, one file after the other, and ends with the first that fails.  A rank finds the variables that
torchrun sets.  torchrun itself imports PyTorch once for every rank of every job, which takes longer than most of the labs.
"""
import os
import runpy
import signal
import socket
import sys
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")                # ranks share the cores
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

import torch.distributed as dist
import torch.distributed.fsdp
import torch.distributed.pipelining
import torch.distributed.tensor.parallel
import torch.profiler                                        # noqa: F401  what the labs need: imported before the forks

import capacity                                              # noqa: F401
import capacity.witness.spmd                                 # noqa: F401


class Job:
    """A file on ranks of this machine, some of which may be absent.  `env` is set in the ranks, `kept` collects what they say."""

    def __init__(self, path, *arguments, ranks=4, absent=(), keep=True, **env):
        self.kept = tempfile.TemporaryFile() if keep else None       # noqa: SIM115  open until the job is waited for
        self.began = time.monotonic()
        sys.stdout.flush()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
               "TORCHELASTIC_USE_AGENT_STORE": True, **env}
        self.store = self._fork(lambda: serve(port))
        self.running = {self._fork(lambda: execute(path, arguments, {**env, "RANK": r, "LOCAL_RANK": r})): r
                        for r in range(ranks) if r not in absent}
        self.code = 0

    def _fork(self, work):
        pid = os.fork()
        if pid:
            return pid
        if self.kept:
            os.dup2(self.kept.fileno(), 1)
            os.dup2(self.kept.fileno(), 2)
        work()

    def poll(self):
        """Whether it has ended; the first rank that fails ends the others, as under torchrun."""
        for pid, rank in list(self.running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.running[pid]
                code = os.waitstatus_to_exitcode(status)
                if code and not self.code:
                    self.code = code
                    if code < 0:
                        self.say(f"rank {rank} was ended by {signal.Signals(-code).name}")
                    self.stop(signal.SIGTERM)
        if not self.running and self.store:
            os.kill(self.store, signal.SIGKILL)
            os.waitpid(self.store, 0)
            self.store = 0
        return not self.running

    def stop(self, how=signal.SIGKILL):
        for pid in self.running:
            os.kill(pid, how)

    def say(self, text):
        os.write(self.kept.fileno() if self.kept else 2, f"\nThe job ends: {text}\n".encode())

    def wait(self, limit=600):
        """(exit code, what the ranks said, seconds); after `limit` seconds everything is killed."""
        while not self.poll():
            if time.monotonic() - self.began > limit:
                self.say(f"it still ran after {limit} s")
                self.code = 124
                self.stop()
                limit = float("inf")
            time.sleep(.02)
        text = ""
        if self.kept:
            self.kept.seek(0)
            text = self.kept.read().decode()
        return self.code, text, time.monotonic() - self.began


def execute(path, arguments, env):
    """This process becomes `python path arguments`."""
    os.environ.update({key: str(value) for key, value in env.items()})
    sys.argv[:] = [str(path), *map(str, arguments)]
    sys.path.insert(0, str(Path(path).resolve().parent))
    code = 0
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else error.code is not None
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        os._exit(code)


def serve(port):
    """Where the ranks meet, and leave word; it outlives them."""
    store = dist.TCPStore("127.0.0.1", port, None, True, timedelta(seconds=60), wait_for_workers=False)    # noqa: F841
    while os.getppid() != 1:
        time.sleep(1)


def main(ranks, *files):
    for path in files:
        print(f"{path} on {ranks} processes", flush=True)
        code, _, seconds = Job(path, ranks=int(ranks), keep=False).wait()
        if code:
            sys.exit(1)
        print(f"    {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
