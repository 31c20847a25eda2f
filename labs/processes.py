"""Ranks as processes: the programs of `capacity.witness.collectives`, unchanged, over torch.distributed.

    def main(comm): ...
    if __name__ == "__main__":
        lab(main)                  # torchrun --standalone --nproc-per-node=4 this_file.py

`comm` is the `Comm` of `capacity.witness.spmd`; only what carries its messages is new: gloo for tensors on the CPU, NCCL for
tensors on a GPU.  A rank that raises, dies or hangs ends the lab within a minute, with a message that names it.
"""
import io
import os
import pickle
import re
import socket
import sys
import time
import traceback
import warnings
from collections import defaultdict, deque
from datetime import timedelta

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
os.environ.setdefault("KINETO_LOG_LEVEL", "99")               # the profiler keeps quiet
warnings.filterwarnings("ignore", ".*deprecated. Please use `torch.distributed", FutureWarning)     # a new name since 2.13
os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")       # NCCL too reports a rank that does not come

import torch
import torch.distributed as dist

import asking
from capacity.witness import spmd

TIMEOUT = int(os.environ.get("LABS_TIMEOUT", 25))   # seconds that a rank waits for another
GRACE = 2                                           # seconds more in which the others say what they wait for
NETWORK = re.compile("(?i)time[d ]*out|closed by peer|reset by peer|broken pipe|connect")


class Lost(RuntimeError):
    """A message did not come, or nobody took it; the text says what this rank was waiting for."""


class Comm(spmd.Comm):
    """One rank's view of its group, as in `capacity.witness.spmd`.

    Any value can be sent: it goes as a description and the bytes of its tensors.  `comm.raw` is the same rank with
    tensors, and lists of tensors, sent as they are; there `like` must tell every receive what comes.
    """

    @property
    def raw(self):
        return Comm(Raw(self.device, self.log, self._world.directions), self._ranks, self.rank)

    @property
    def device(self):
        """Where this rank's tensors belong: its GPU, or the CPU."""
        return self._world.device

    @property
    def log(self):
        """(to, bytes) of every message that this rank sent, counted as `capacity.witness.spmd` counts."""
        return self._world.log

    def group(self, ranks):
        """The same rank seen from a smaller group: ranks[i] becomes rank i."""
        small = super().group(ranks)
        return Comm(self._world, small._ranks, small.rank)

    def sendrecv(self, value, to, source, like=None, sendtag=None, recvtag=None):
        """Send `value` to rank `to` while receiving from rank `source`, and return what came."""
        if isinstance(self._world, Raw) and self._world.directions:
            to, source = self._global("to", to), self._global("source", source)
            return self._world.sendrecv(self._me, value, to, source, like)
        return super().sendrecv(value, to, source, like, sendtag, recvtag)

    def barrier(self):
        """Wait until every rank of the group has come: empty messages, which are objects."""
        if isinstance(self._world, Raw):
            Comm(Objects(self.device, self.log), self._ranks, self.rank).barrier()
        else:
            super().barrier()


class Objects:
    """Messages of any value.  A send ends when the value is copied, so it waits for nobody."""
    leaving = []                                             # what was sent; kept until the lab ends
    expected = defaultdict(deque)                            # receives from each source, in order
    directions = None                                        # of the raw ranks made from this one

    def __init__(self, device, log):
        self.device, self.log = device, log

    def hold(self, rank, state):
        """Nothing: nobody draws a run of processes."""

    def send(self, me, to, value, tag):
        self.log.append((to, spmd.size_of(value)))
        form, body = pack((tag, value))
        self.leaving += [dist.isend(t, to) for t in (torch.tensor([len(form), len(body)]), form, body) if len(t)]
        return Handle(lambda: None)

    def recv(self, source, me, like, tag):
        queue = self.expected[source]

        def finish():
            while queue[0] is not handle:
                queue[0].wait()
            queue.popleft()
            return self.receive(source, me, like, tag)

        handle = Handle(finish)
        queue.append(handle)
        return handle

    def receive(self, source, me, like, tag):
        what = f"to receive a message{'' if tag is None else f' (tag {tag!r})'} from rank {source}"

        def part(n, dtype=torch.uint8):
            t = torch.empty(n, dtype=dtype)
            if n:
                wait(dist.irecv(t, source), what)
            return t

        sizes = part(2, torch.int64).tolist()
        came, value = unpack(part(sizes[0]), part(sizes[1]), self.device)
        if tag is not None and came != tag:
            raise spmd.Mismatch(f"rank {me} waits {what}, which sent it tag {came!r}")
        if like is not None and form_of(value) != form_of(like):
            raise spmd.Mismatch(f"rank {me} waits {what} like {form_of(like)}, which sent it {form_of(value)}")
        return value

    def finish(self):
        """Wait until everything that was sent has left."""
        for work in self.leaving:
            wait(work, "for what it sent to be received")
        self.leaving.clear()


class Raw(Objects):
    """Messages of tensors and lists of tensors, nothing else on the wire.

    directions: two process groups, for messages to higher and to lower ranks.  NCCL needs them: in one group a pair
    of ranks does one thing after the other, and two ranks that both send first would never end.
    """

    def __init__(self, device, log, directions=None):
        super().__init__(device, log)
        self.directions = directions

    def send(self, me, to, value, tag):
        work = dist.isend(self.goes(to, value), to, self.group(me, to))
        return Handle(lambda: wait(work, f"for rank {to} to receive"))

    def recv(self, source, me, like, tag):
        buffer = self.comes(me, like)
        work = dist.irecv(buffer, source, self.group(source, me))

        def finish():
            wait(work, f"to receive {buffer.nbytes} bytes from rank {source}")
            return split(buffer, like)
        return Handle(finish)

    def sendrecv(self, me, value, to, source, like):
        """Both at once, in the one way that NCCL recommends."""
        buffer = self.comes(me, like)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, self.goes(to, value), to),
                                            dist.P2POp(dist.irecv, buffer, source)]):
            wait(work, f"for rank {to} to receive and to receive {buffer.nbytes} bytes from rank {source}")
        return split(buffer, like)

    def goes(self, to, value):
        self.log.append((to, spmd.size_of(value)))
        return join(value)

    def comes(self, me, like):
        if not all(isinstance(x, torch.Tensor) for x in (like if isinstance(like, (list, tuple)) else [like])):
            raise ValueError(f"like = {like!r} on rank {me}; allowed on raw ranks: tensors as they will come")
        return torch.empty_like(join(like))

    def group(self, source, to):
        return self.directions and self.directions[source > to]


class Handle:
    """A message under way, seen from one of its ends."""

    def __init__(self, finish):
        self.finish, self.done = finish, False

    def wait(self):
        if not self.done:
            self.value, self.done = self.finish(), True
        return self.value


def wait(work, what):
    """Wait for a message of torch.distributed; Lost after TIMEOUT, or when the other process is gone."""
    try:
        work.wait()
    except RuntimeError as error:
        reason = first_line(error)
        raise Lost(what + ("" if NETWORK.search(reason) else f": {reason}")) from error


def first_line(error):
    """What an error says, without the place in the C++ sources."""
    return re.sub(r"^\[\S+:\d+\] ", "", str(error)).partition("\n")[0]


# What travels

class _Pickler(pickle.Pickler):
    def __init__(self, file, tensors):
        super().__init__(file)
        self.tensors = tensors

    def persistent_id(self, x):
        if isinstance(x, torch.Tensor):
            self.tensors.append(x)
            return x.dtype, tuple(x.shape)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, body, device):
        super().__init__(file)
        self.body, self.device = body, device

    def persistent_load(self, form):
        dtype, shape = form
        nbytes = torch.Size(shape).numel()*dtype.itemsize
        data, self.body = self.body[:nbytes], self.body[nbytes:]
        return data.clone().view(dtype).view(shape).to(self.device)


def pack(value):
    """A value as two byte tensors: its description, and the contents of its tensors."""
    file, tensors = io.BytesIO(), []
    _Pickler(file, tensors).dump(value)
    data = [t.detach().cpu().contiguous().flatten().view(torch.uint8) for t in tensors]
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8), torch.cat(data or [torch.empty(0).byte()])


def unpack(form, body, device):
    """The value that `pack` packed."""
    return _Unpickler(io.BytesIO(form.numpy().tobytes()), body, device).load()


def join(value):
    """A tensor, or the tensors of a list one behind the other."""
    return torch.cat([t.flatten() for t in value]) if isinstance(value, (list, tuple)) else value.contiguous()


def split(buffer, like):
    """The tensors that `join` joined."""
    if not isinstance(like, (list, tuple)):
        return buffer
    return [t.view(x.shape) for t, x in zip(buffer.split([x.numel() for x in like]), like)]


def form_of(value):
    if isinstance(value, (list, tuple)):
        return [form_of(x) for x in value]
    return (value.dtype, tuple(value.shape)) if hasattr(value, "shape") else type(value)


# A lab from its first line to its last

SIZES = {"two or more": lambda P: P >= 2, "an even number of": lambda P: P % 2 == 0,
         "an even number, four or more,": lambda P: P >= 4 and P % 2 == 0, "four": lambda P: P == 4}


def lab(main, sizes="two or more", asks=True):
    """Run `main(comm)` on this rank of a torchrun job; on a failure anywhere, say what happened and exit with 1."""
    asks = asks and "Before you look" in (sys.modules["__main__"].__doc__ or "")
    rank, size = int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
    if not SIZES[sizes](size):
        if rank == 0:
            path = os.path.relpath(sys.argv[0])
            print(f"{path} needs {sizes} processes, and this is {size}. Start it with\n"
                  f"    torchrun --standalone --nproc-per-node=4 {path}", file=sys.stderr, flush=True)
        sys.exit(2)
    if asks:
        asking.begin(rank == 0)
    store = _meet(rank, size, TIMEOUT)
    try:
        device = _connect(store, rank, size, TIMEOUT)
        comm = Comm(Objects(device, []), list(range(size)), rank)
        if device.type == "cuda":
            comm._world.directions = dist.new_group(), dist.new_group()
        main(comm)
        comm._world.finish()
        comm.barrier()
        comm._world.finish()
        if rank == 0 and asks:
            asking.end()
    except BaseException as error:
        _explain(error, store, rank, size)
        sys.stdout.flush()
        os._exit(1)                                          # at once: no waiting for ranks that do not answer
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)                                              # at once: gloo's threads may outlive Python, and abort


def check(comm, text, ok):
    """One line: `ok` and the text.  AssertionError on every rank if it does not hold on all of them."""
    wrong = torch.zeros(comm.size, dtype=torch.int64)
    wrong[comm.rank] = not ok
    dist.all_reduce(wrong)
    ranks = wrong.nonzero().flatten().tolist()
    assert not ranks, f"{text}: not so on rank {', '.join(map(str, ranks))}"
    if comm.rank == 0:
        print(f"ok  {text}", flush=True)


def summed(x):
    """The sum of all ranks' tensors, a new tensor on each."""
    x = x.clone()
    dist.all_reduce(x)
    return x


def equal(x, y):
    """Whether two tensors differ nowhere by more than 1e-12 of the largest number in y."""
    return x.shape == y.shape and bool((x - y).abs().max() <= 1e-12*y.abs().max())


def _meet(rank, size, timeout):
    """The store of all ranks, when all of them are there; else the lab ends with the names of those who are not."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    hosting = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = dist.TCPStore(host, port, None, hosting, timedelta(seconds=timeout), wait_for_workers=False)
    except RuntimeError:
        _say(f"rank {rank} found nobody at {host}:{port} in {timeout} s, where rank 0 should be")
        os._exit(1)
    store = dist.PrefixStore(f"lab {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)     # the last try's is still there
    keys = [f"here/{r}" for r in range(size)]
    store.set(keys[rank], "")
    until = time.monotonic() + timeout
    while not store.check(keys):
        if time.monotonic() > until:
            missing = ", ".join(str(r) for r, key in enumerate(keys) if not store.check([key]))
            if store.add("missed", 1) == 1:
                _say(f"rank {missing} of {size} did not start in {timeout} s")
            os._exit(1)
        time.sleep(.02)
    return store


def _connect(store, rank, size, timeout):
    """Join the others; the device of this rank."""
    local, here = int(os.environ.get("LOCAL_RANK", rank)), int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if here == size:                                         # all on this machine: its own loopback, whatever its name
        loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    torch.set_num_threads(1)
    gpu = torch.cuda.is_available() and torch.cuda.device_count() >= here
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", store=dist.PrefixStore("torch", store), rank=rank,
                            world_size=size, timeout=timedelta(seconds=timeout))
    return device


def _explain(error, store, rank, size):
    """Print what stopped the lab, once.  A rank that waited in vain asks what the others waited for."""
    text = first_line(error)
    lost = isinstance(error, Lost)
    try:
        if not lost and not (isinstance(error, RuntimeError) and NETWORK.search(text)):
            if store.add("raised", 1) == 1:
                if isinstance(error, SystemExit):            # a sentence for the reader
                    print(f"\n{text}\n", file=sys.stderr, flush=True)
                else:
                    traceback.print_exception(error)
                    _say(f"rank {rank} raised {type(error).__name__}: {text}")
            else:
                time.sleep(GRACE)                            # the first one speaks; its end ends the others
            return
        store.set(f"end/{rank}", text if lost else f"inside torch.distributed: {text}")
        if store.add("waited", 1) > 1:
            time.sleep(2*GRACE)
            return
        keys = [f"end/{r}" for r in range(size)]
        until = time.monotonic() + GRACE
        while time.monotonic() < until and not store.check(keys):
            time.sleep(0.1)
        if not store.check(["raised"]):
            lines = [f"rank {r} waited {store.get(key).decode()}" if store.check([key]) else
                     f"rank {r} did not answer: it hangs, or its process is gone" for r, key in enumerate(keys)]
            _say("no rank can go on\n  " + "\n  ".join(lines))
    except RuntimeError:                                     # the store is gone too
        _say(f"rank {rank} waited {text}")


def _say(text):
    print(f"\nThe lab ends: {text}\n", file=sys.stderr, flush=True)
