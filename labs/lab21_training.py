"""Lab 21. One training run, four ways: alone, DDP, FSDP2, and tensor times pipeline parallelism; the same losses.

    torchrun --standalone --nproc-per-node=4 labs/lab21_training.py
    torchrun --standalone --nproc-per-node=4 labs/lab21_training.py --trace FOLDER

A small transformer learns to write the Markdown of this repository, byte by byte. Weights, data and their order are the same in
all ways, so the losses must be, and so must the norm of a gradient: Adam divides by it, so the losses cannot see a factor. Compared
with the formulas are weights, gradients and moments, what autograd saves for the backward pass at most, and what a rank sends; not
counted are what lives for a moment, as gradients of activations do, and buffers of communication. The profiler records two steps,
which `capacity trace FOLDER/*.json.gz` accounts for. Speeds are printed and not compared: the ranks share the cores of this machine.

Before you look (chapter 20): the model has 295,488 weights, all in fp32, and Adam keeps two numbers for each. How many bytes of
weights, gradients and moments does a rank of four hold under FSDP?

Break it: every rank reads the same part of the batch, `rows = batch.chunk(P)[0]`.
"""
import argparse
import os
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import profile, schedule

from asking import answer, broken
from capacity import (all_reduce_egress, attention_saved_bytes, fsdp_egress, gated_saved_bytes, model_state_bytes,
                      one_f_one_b_activations, pipeline_egress, tensor_parallel_bytes)
from capacity.witness import trace
from counting import Count
from lab5_tensor_parallel import TENSOR, SwiGLU
from processes import check, lab, summed

WIDTH, HEADS, FFN, BLOCKS, BYTES, FP32 = 64, 4, 256, 4, 256, 4
BATCH, LENGTH, MICRO, STEPS, RECORDED = 16, 64, 4, 20, 2
TOLERANCE = 1e-4                                             # of a loss and of a norm, in fp32, fixed before the first run


class Attention(nn.Module):
    """Causal attention; a rank that has some of the heads runs the same lines."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, WIDTH//HEADS)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return self.o(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(WIDTH), Attention()
        self.ffn_norm, self.ffn = nn.RMSNorm(WIDTH), SwiGLU(WIDTH, FFN)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


def model(comm):
    """The same weights on every rank."""
    torch.manual_seed(21)
    head = nn.Sequential(nn.RMSNorm(WIDTH), nn.Linear(WIDTH, BYTES, bias=False))
    return nn.Sequential(nn.Embedding(BYTES, WIDTH), *[Block() for _ in range(BLOCKS)], head).to(comm.device)


def batches(comm):
    """BATCH sequences of a byte more than LENGTH, for every step the same on every rank."""
    pages = sorted(Path(__file__).resolve().parents[1].glob("*.md"))
    text = torch.tensor(list("".join(p.read_text(encoding="utf-8") for p in pages).encode()))
    at = torch.Generator().manual_seed(1)
    for _ in range(STEPS + RECORDED):
        starts = torch.randint(len(text) - LENGTH, (BATCH, 1), generator=at)
        yield text[starts + torch.arange(LENGTH + 1)].to(comm.device)


def loss(y, goal):
    return cross_entropy(y.flatten(0, 1), goal.flatten())


def sum_up(_, bucket):
    """What DDP does with a bucket of gradients, in sight of Count."""
    done = torch.futures.Future()
    done.set_result(summed(bucket.buffer())/dist.get_world_size())
    return done


# A way: what this rank keeps, and what it does with a batch; `step` leaves the gradients and returns the mean loss it knows, or 0

def plain(net, rows, times=1):
    value = loss(net(rows[:, :-1]), rows[:, 1:])
    (times*value).backward()
    return value.detach()


def alone(comm, times=1):
    net = model(comm)
    return net, lambda batch: plain(net, batch, times)


def data_parallel(comm, net):
    def step(batch):
        rows = batch.chunk(comm.size)[0 if broken() else comm.rank]
        return plain(net, rows)/comm.size
    return net, step


def ddp(comm):
    net = DistributedDataParallel(model(comm))
    net.register_comm_hook(None, sum_up)
    return data_parallel(comm, net)


def fsdp(comm):
    net, mesh = model(comm), init_device_mesh(comm.device.type, (comm.size,))
    for layer in [*net, net]:
        fully_shard(layer, mesh=mesh)
    return data_parallel(comm, net)


def tensor_pipeline(comm):
    """Two stages, each cut over the other ranks."""
    mesh = init_device_mesh(comm.device.type, (2, comm.size//2), mesh_dim_names=("pp", "tp"))
    s, each = mesh.get_local_rank("pp"), BLOCKS//2 + 1
    net = model(comm)[s*each:(s + 1)*each]
    for block in net:
        if isinstance(block, Block):
            parallelize_module(block, mesh["tp"], TENSOR)
    stages = Schedule1F1B(PipelineStage(net, s, 2, comm.device, group=mesh.get_group("pp")), MICRO, loss_fn=loss)

    def step(batch):
        losses = []
        stages.step(*[batch[:, :-1]][:s == 0], target=batch[:, 1:] if s else None, losses=losses)
        return sum(losses).detach()/MICRO/(comm.size//2) if s else torch.zeros((), device=comm.device)
    return net, step


# The run

def local(x):
    return getattr(x, "to_local", lambda: x)()


def held(net, adam):
    """Bytes of weights, gradients and moments on this rank; Adam's count of steps is left out."""
    moments = [x for state in adam.state.values() for key, x in state.items() if key != "step"]
    return sum(local(x).nbytes for x in [*net.parameters(), *(p.grad for p in net.parameters()), *moments])


class Saved(torch.autograd.graph.saved_tensors_hooks):
    """Bytes of the numbers that autograd saves for the backward pass, `most` at once; weights are counted elsewhere."""

    def __init__(self, net):
        super().__init__(self.pack, lambda kept: kept.tensor if isinstance(kept, Kept) else kept)
        self.net, self.users, self.now, self.most = net, Counter(), 0, 0

    def pack(self, x):
        storage = local(x).untyped_storage()
        if x.dim() == 0 or not x.is_floating_point() or any(
                storage.data_ptr() == local(p).untyped_storage().data_ptr() for p in self.net.parameters()):
            return x
        return Kept(self, x.detach(), storage)

    def use(self, storage, by):
        """One user more or less; two tensors of one storage are saved once."""
        at = storage.data_ptr()
        before = self.users[at] > 0
        self.users[at] += by
        self.now += storage.nbytes()*((self.users[at] > 0) - before)
        self.most = max(self.most, self.now)


class Kept:
    """A saved tensor; autograd drops it after it was used."""

    def __init__(self, saved, tensor, storage):
        self.saved, self.tensor, self.storage = saved, tensor, storage
        saved.use(storage, 1)

    def __del__(self):
        self.saved.use(self.storage, -1)


def norm(net, copies):
    """Of the whole gradient, which so many ranks have; alone, nobody is asked."""
    squares = sum(getattr(p.grad, "full_tensor", lambda p=p: p.grad)().double().square().sum() for p in net.parameters())
    return float(summed(squares)/copies if copies else squares)**.5


def train(comm, make, copies=0, file=None):
    """{losses, norm, held, saved, sent, seconds of a step} of this rank; the last steps are recorded into `file`.

    copies: how many ranks have each gradient; 0: this rank trains alone.
    """
    net, step = make(comm)
    adam = torch.optim.AdamW(net.parameters(), lr=3e-3, foreach=False)
    losses, out = [], {}
    watch = profile(schedule=schedule(wait=STEPS - 1, warmup=1, active=RECORDED, repeat=1)) if file else nullcontext()
    with watch:
        for t, batch in enumerate(batches(comm)):
            if t == 5:                                       # what is made once has been made
                start = time.perf_counter()
            counting = Saved(net) if t == 3 else Count() if t == 4 else nullcontext()
            adam.zero_grad()
            with counting:
                losses.append(step(batch))
            if t == 3:
                out["saved"], out["norm"] = counting.most, norm(net, copies)
            if t == 4:
                out["sent"] = counting.nbytes
            adam.step()
            if t == STEPS - 1:
                losses[-1].item()
                out["seconds"] = (time.perf_counter() - start)/(STEPS - 5)
            if file:
                watch.step()
    out["held"] = held(net, adam)
    if file:
        watch.export_chrome_trace(str(file))
    losses = torch.stack(losses)
    out["losses"] = (summed(losses) if copies else losses).tolist()
    return out


def apart(some, others):
    return max(abs(a - b) for a, b in zip(some, others))


def saved(tokens, blocks, t, head):
    """Bytes for so many tokens: chapter 19's, and what plain modules keep besides, a norm's x/rms and the silu of the gate."""
    block = attention_saved_bytes(WIDTH, WIDTH, WIDTH, HEADS, t, half=FP32) + gated_saved_bytes(WIDTH, FFN, t, half=FP32)
    block += FP32*(WIDTH + WIDTH + FFN/t)
    return tokens*(blocks*block + head*FP32*(3*WIDTH + 1 + BYTES))       # head: a norm, and the logarithms of the loss


def main(comm):
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", metavar="FOLDER", help="keep the traces of the last two steps there")
    args = parser.parse_args()
    P, n = comm.size, sum(p.numel() for p in model(comm).parameters())
    assert BATCH % P == 0 and HEADS % (P//2) == 0, f"{P} processes; allowed: 2, 4, 8"
    times, runs = {0: 1, 1: P}, [None]*P                     # two ranks train at once, each alone
    dist.all_gather_object(runs, train(comm, lambda comm: alone(comm, times[comm.rank])) if comm.rank in times else None)
    single, large = runs[:2]
    want, rows = single["losses"], [("alone", single)]
    check(comm, f"{STEPS} steps of {BATCH*LENGTH} bytes: the loss falls from {want[0]:.2f} to {want[STEPS - 1]:.2f}",
          want[STEPS - 1] < .7*want[0])
    check(comm, f"gradients {P} times too large, as their sum is: Adam's losses are off by {apart(large['losses'], want):.0e} at most, "
                f"the norm is {large['norm']/single['norm']:.3f} times as large",
          apart(large["losses"], want) < TOLERANCE and abs(large["norm"]/single["norm"] - P) < TOLERANCE*P)

    states = lambda weights, ranks: model_state_bytes(weights, FP32, FP32, 2*FP32, ranks, ranks, ranks)
    t, tokens = P//2, BATCH*LENGTH
    split = BLOCKS*(4*WIDTH*WIDTH + 3*WIDTH*FFN)             # the weights that tensor parallelism cuts
    stage = split/2/t + BLOCKS*WIDTH + BYTES*WIDTH + (WIDTH if comm.rank >= t else 0)
    layers = BLOCKS/2*MICRO*tensor_parallel_bytes(tokens/MICRO, WIDTH, t, FP32, 4)
    s = comm.rank//t
    pieces = one_f_one_b_activations(2, MICRO, s)*saved(tokens/MICRO, BLOCKS/2, t, head=s)
    ways = {"DDP": (ddp, P, states(n, 1), saved(tokens/P, BLOCKS, 1, 1), {"all_reduce": all_reduce_egress(FP32*n, P)}),
            "FSDP2": (fsdp, P, states(n, P), saved(tokens/P, BLOCKS, 1, 1), {"all": fsdp_egress(FP32*n, P)}),
            "TP x PP": (tensor_pipeline, t, states(stage, 1), pieces,
                        {"all_reduce": layers, "send": pipeline_egress(MICRO, 1, tokens/MICRO, WIDTH, FP32)/2})}
    with tempfile.TemporaryDirectory() as passing:
        for name, (make, copies, state, keeps, sends) in ways.items():
            folder = Path(args.trace or passing)
            folder.mkdir(exist_ok=True)
            file = folder/f"{name.replace(' ', '')}-{comm.rank}.json.gz"
            got = train(comm, make, copies, file)
            off, ratio = apart(got["losses"], want), got["norm"]/single["norm"]
            check(comm, f"{name}: all {len(want)} losses are those of one process, to {TOLERANCE:g} (at most {off:.0e} off)",
                  off < TOLERANCE)
            check(comm, f"{name}: the norm of the fourth gradient is that of one process, to {TOLERANCE:g} ({abs(ratio - 1):.0e} off)",
                  abs(ratio - 1) < TOLERANCE)
            check(comm, f"{name}: a rank holds {got['held']:,} bytes of weights, gradients and moments, the formula's",
                  got["held"] == state)
            check(comm, f"{name}: autograd saves at most {got['saved']:,} bytes, those of chapter 19 and of plain modules",
                  got["saved"] == keeps)
            sent = {kind: sum(b for (call, _), b in got["sent"].items() if kind in ("all", call)) for kind in sends}
            check(comm, f"{name}: it sends {sum(map(int, sent.values())):,} bytes in a step, the formula's", sent == sends
                  and sum(got["sent"].values()) == sum(sends.values()))
            seen = trace.read(file)
            parts = trace.account(seen)
            check(comm, f"{name}: the profiler's two steps are accounted for to the nanosecond",
                  seen.steps == RECORDED and sum(parts.values()) == seen.stop - seen.start)
            rows.append((name, got | {"parts": {k: v/(seen.stop - seen.start) for k, v in parts.items()}}))
            if name == "FSDP2":
                answer(got["held"], "bytes")
    if comm.rank == 0:
        print(f"    {P} processes on {os.cpu_count()} cores, over the loopback: the speeds are no measure of the ways")
        for name, got in rows:
            what = "; " + ", ".join(f"{k} {v:.0%}" for k, v in got["parts"].items()) if "parts" in got else ""
            sent, speed = int(sum(got["sent"].values())), BATCH*LENGTH/got["seconds"]
            print(f"    {name:8} loss {got['losses'][STEPS - 1]:.4f}   held {got['held']:>9,} B   saved {got['saved']:>10,} B   "
                  f"sent {sent:>9,} B   {speed:>7,.0f} bytes of text a second{what}", flush=True)


if __name__ == "__main__":
    lab(main, "an even number of")
