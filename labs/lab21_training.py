"""Lab 21. One training run, four ways: alone, DDP, FSDP2, and tensor times pipeline parallelism; the same losses.

    torchrun --standalone --nproc-per-node=4 labs/lab21_training.py
    torchrun --standalone --nproc-per-node=4 labs/lab21_training.py --trace FOLDER

A small transformer learns to write the Markdown of this repository, byte by byte. Weights, data and their order are the same in
all ways, so the losses must be. What a rank holds and what it sends are compared with the formulas; the times are printed, and
the profiler records two steps, which `capacity trace FOLDER/*.json.gz` accounts for.

Before you look (chapter 20): the model has 295,488 weights, all in fp32, and Adam keeps two numbers for each. How many bytes of
weights, gradients and moments does a rank of four hold under FSDP?

Break it: every rank reads the same part of the batch, `rows = batch.chunk(P)[0]`.
"""
import argparse
import tempfile
import time
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
from capacity import all_reduce_egress, fsdp_egress, model_state_bytes, pipeline_egress, tensor_parallel_bytes
from capacity.witness import trace
from counting import Count
from lab5_tensor_parallel import TENSOR, SwiGLU
from processes import check, lab, summed

WIDTH, HEADS, FFN, BLOCKS, BYTES, FP32 = 64, 4, 256, 4, 256, 4
BATCH, LENGTH, MICRO, STEPS, RECORDED = 16, 64, 4, 20, 2
TOLERANCE = 1e-4                                             # of a loss, in fp32, fixed before the first run


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

def plain(net, rows):
    value = loss(net(rows[:, :-1]), rows[:, 1:])
    value.backward()
    return value.detach()


def alone(comm):
    net = model(comm)
    return net, lambda batch: plain(net, batch)


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


def train(comm, make, everybody=True, file=None):
    """{losses, held, sent, seconds of a step} of this rank; the last steps are recorded into `file`."""
    net, step = make(comm)
    adam = torch.optim.AdamW(net.parameters(), lr=3e-3, foreach=False)
    losses, out = [], {}
    watch = profile(schedule=schedule(wait=STEPS - 1, warmup=1, active=RECORDED, repeat=1)) if file else nullcontext()
    with watch:
        for t, batch in enumerate(batches(comm)):
            if t == 5:                                       # what is made once has been made
                start = time.perf_counter()
            counting = Count() if t == 4 else nullcontext()
            adam.zero_grad()
            with counting:
                losses.append(step(batch))
            adam.step()
            if t == 4:
                out["sent"] = counting.nbytes
            if t == STEPS - 1:
                losses[-1].item()
                out["seconds"] = (time.perf_counter() - start)/(STEPS - 5)
            if file:
                watch.step()
    out["held"] = held(net, adam)
    if file:
        watch.export_chrome_trace(str(file))
    losses = torch.stack(losses)
    out["losses"] = (summed(losses) if everybody else losses).tolist()
    return out


def main(comm):
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", metavar="FOLDER", help="keep the traces of the last two steps there")
    args = parser.parse_args()
    P, n = comm.size, sum(p.numel() for p in model(comm).parameters())
    assert BATCH % P == 0 and HEADS % (P//2) == 0, f"{P} processes; allowed: 2, 4, 8"
    serial = [train(comm, alone, everybody=False) if comm.rank == 0 else None]
    dist.broadcast_object_list(serial)
    want, rows = serial[0]["losses"], [("alone", serial[0])]
    check(comm, f"{STEPS} steps of {BATCH*LENGTH} bytes: the loss falls from {want[0]:.2f} to {want[STEPS - 1]:.2f}",
          want[STEPS - 1] < .7*want[0])

    states = lambda weights, ranks: model_state_bytes(weights, FP32, FP32, 2*FP32, ranks, ranks, ranks)
    t, tokens = P//2, BATCH*LENGTH
    split = BLOCKS*(4*WIDTH*WIDTH + 3*WIDTH*FFN)             # the weights that tensor parallelism cuts
    stage = split/2/t + BLOCKS*WIDTH + BYTES*WIDTH + (WIDTH if comm.rank >= t else 0)
    layers = BLOCKS/2*MICRO*tensor_parallel_bytes(tokens/MICRO, WIDTH, t, FP32, 4)
    ways = {"DDP": (ddp, states(n, 1), {"all_reduce": all_reduce_egress(FP32*n, P)}),
            "FSDP2": (fsdp, states(n, P), {"all": fsdp_egress(FP32*n, P)}),
            "TP x PP": (tensor_pipeline, states(stage, 1),
                        {"all_reduce": layers, "send": pipeline_egress(MICRO, 1, tokens/MICRO, WIDTH, FP32)/2})}
    with tempfile.TemporaryDirectory() as passing:
        for name, (make, state, sends) in ways.items():
            folder = Path(args.trace or passing)
            folder.mkdir(exist_ok=True)
            file = folder/f"{name.replace(' ', '')}-{comm.rank}.json.gz"
            got = train(comm, make, file=file)
            off = max(abs(a - b) for a, b in zip(got["losses"], want))
            check(comm, f"{name}: all {len(want)} losses are those of one process, to {TOLERANCE:g} (at most {off:.0e} off)",
                  off < TOLERANCE)
            check(comm, f"{name}: a rank holds {got['held']:,} bytes of weights, gradients and moments, the formula's",
                  got["held"] == state)
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
        for name, got in rows:
            what = "; " + ", ".join(f"{k} {v:.0%}" for k, v in got["parts"].items()) if "parts" in got else ""
            sent, speed = int(sum(got["sent"].values())), BATCH*LENGTH/got["seconds"]
            print(f"    {name:8} loss {got['losses'][STEPS - 1]:.4f}   held {got['held']:>9,} B   sent {sent:>9,} B   "
                  f"{speed:>7,.0f} bytes of text a second{what}", flush=True)


if __name__ == "__main__":
    lab(main, "an even number of")
