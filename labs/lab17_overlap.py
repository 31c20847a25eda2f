"""Lab 17. Overlap in a real trace: what DDP hides and what is exposed, by interval arithmetic.

    torchrun --standalone --nproc-per-node=4 labs/lab17_overlap.py
    torchrun --standalone --nproc-per-node=4 labs/lab17_overlap.py --record labs/recorded/mine.json
    torchrun --standalone --nproc-per-node=4 labs/lab17_overlap.py --asleep labs/recorded/asleep.json
    python labs/lab17_overlap.py --trace FILE --network internode

A backward pass under DDP is recorded by torch.profiler, with gradients in many buckets, in some, and in one. The checks
are identities, orders and bytes; times are printed, and recorded if you ask. The last line reads any trace of a GPU that
torch.profiler has exported; the pattern says which kernels communicate.

Then a backward pass that sleeps: a layer takes a time that is known and no core, so nothing is shared but the wire. Two
all-reduces alone, of the whole gradient and of a twelfth, give what a call and the bytes cost. From these and the naps
the law of pieces and the simulated streams say how long one to twelve buckets take. The band, set before a run was
recorded: each span within 10 %, what is exposed within 10 % of the span, the best number of buckets within a factor of
two. On Linux a wire of known rate is a loopback of its own, and disturbs nobody:

    unshare -rn sh -c 'ip link set lo mtu 9000 up && tc qdisc add dev lo root tbf rate 1600mbit burst 128kb limit 64mb &&
        torchrun --master-addr 127.0.0.1 --master-port 29500 --nproc-per-node=4 labs/lab17_overlap.py --asleep asleep.json'

Before you look (chapter 31): 12 layers of 512 times 512 weights and 512 biases in fp32, DDP with buckets of 1 MiB. How many
all-reduces does a backward pass call?

Break it: the recorded backward pass runs under `no_sync`, as if it were not the last micro-batch.
"""
import argparse
import datetime
import json
import re
import statistics
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from asking import answer, broken
from capacity import pieces_time
from capacity.witness import streams, trace

LAYERS, WIDTH, ROWS = 12, 512, 512
NUMBERS = 200_000                                             # of a layer that sleeps
MEGABYTE = 2**20


def sweep(network, compute):
    """Hidden time once more, by another way: walk over all starts and stops, and count who is at work."""
    events = sorted([(t, kind, step) for kind, spans in enumerate((network, compute)) for a, b in spans
                     for t, step in ((a, 1), (b, -1))])
    at_work, last, hidden = [0, 0], 0, 0.0
    for t, kind, step in events:
        hidden += (t - last)*(min(at_work) > 0)
        at_work[kind] += step
        last = t
    return hidden


def close(x, y):
    return abs(x - y) <= 1e-6*max(abs(x), abs(y), 1)


def traced(loss):
    """A backward pass: the intervals of each kind of event, in microseconds."""
    from torch.profiler import profile
    with profile() as seen:
        loss.backward()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)/"trace.json"
        seen.export_chrome_trace(str(path))
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]
    of = lambda pick: sorted((e["ts"], e["ts"] + e["dur"]) for e in events if pick(e["name"]))
    return {"grads": of(lambda n: n == "torch::autograd::AccumulateGrad"),
            "calls": of(lambda n: n == "c10d::allreduce_"),
            "network": of(lambda n: n == "gloo:all_reduce"),
            "compute": of(lambda n: n.startswith("autograd::engine::evaluate_function") and n.endswith("Backward0")),
            "naps": of(lambda n: n == "NapBackward")}


def main(comm):
    import torch
    from lab2_alpha_beta import machine
    from processes import check
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", metavar="FILE", help="write what was measured to FILE")
    parser.add_argument("--asleep", metavar="FILE", help="the same of the pass that sleeps, with longer naps and nine turns")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    data = [torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(r)) for r in range(comm.size)]
    size = 4*sum(p.numel() for p in model.parameters())
    want = torch.autograd.grad(model(torch.cat(data)).square().mean(), list(model.parameters()))
    rows = []
    for cap in (1, 4, 100):
        model.zero_grad()
        net = DDP(model, bucket_cap_mb=cap)
        for _ in range(3):                                    # the first step rebuilds the buckets, the third tells of it
            net(data[comm.rank]).square().mean().backward()
        model.zero_grad()
        info = net._get_ddp_logging_data()
        with net.no_sync() if broken() else nullcontext():
            seen = traced(net(data[comm.rank]).square().mean())
        buckets = [int(n) for n in info["rebuilt_bucket_sizes"].split(",")]
        got = streams.account(seen["network"], seen["compute"])
        check(comm, f"cap {cap}: {len(buckets)} buckets, as many all-reduces, and the bytes of the model",
              len(buckets) == len(seen["network"]) == len(seen["calls"]) and sum(buckets) == size)
        check(comm, f"cap {cap}: the gradient is that of one process", all(
            torch.allclose(p.grad, g, rtol=1e-4, atol=1e-7) for p, g in zip(model.parameters(), want)))
        check(comm, f"cap {cap}: exposed and hidden add up to communication, and a second way of counting agrees",
              close(got["exposed"] + got["hidden"], got["network"]) and close(
                  got["hidden"], sweep(seen["network"], seen["compute"])))
        check(comm, f"cap {cap}: arithmetic, exposed communication and idle time add up to the span",
              close(got["compute"] + got["exposed"] + got["idle"], got["span"]))
        check(comm, f"cap {cap}: no all-reduce is called before gradients for it exist, and no bucket overtakes another",
              all(sum(b <= call[0] for _, b in seen["grads"]) >= j for j, call in enumerate(seen["calls"]))
              and all(start >= call for (start, _), (call, _) in zip(seen["network"], seen["calls"])))
        if cap == 1:
            answer(len(seen["network"]), "all-reduces")
        last = seen["compute"][-1][0]                         # the last piece of arithmetic begins
        early = sum(start < last for start, _ in seen["network"])
        check(comm, f"cap {cap}: " + ("all-reduces begin while the backward pass runs" if len(buckets) > 1 else
                                      "the one all-reduce begins after the last product"), (early > 0) == (len(buckets) > 1))
        rows.append({"cap_megabytes": cap, "buckets": len(buckets),
                     "microseconds": {k: round(v) for k, v in got.items()}})
        if comm.rank == 0:
            print("    " + ", ".join(f"{k} {v/1e3:.1f} ms" for k, v in got.items()), flush=True)
    if comm.rank == 0 and args.record:
        record = {"machine": machine(comm), "date": str(datetime.date.today()), "ranks": comm.size, "parameter_bytes": size,
                  "what": f"backward pass of {LAYERS} layers of width {WIDTH} on {ROWS} rows, DDP, rank 0; one step a row",
                  "rows": rows}
        Path(args.record).write_text(json.dumps(record, indent=1) + "\n")
    asleep(comm, *((.02, 9) if args.asleep else (.004, 1)), args.asleep)


def asleep(comm, nap, turns, path):
    """One to twelve buckets of a backward pass of known length, against the law of pieces and the simulated streams."""
    import torch
    import torch.distributed as dist
    from lab2_alpha_beta import machine
    from processes import check
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP

    class Nap(torch.autograd.Function):
        """Nothing forward.  Backward it sleeps, and the gradient of the weights is the rank."""
        seconds = 0

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(w)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            time.sleep(Nap.seconds)
            return g, torch.full_like(ctx.saved_tensors[0], float(comm.rank))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(NUMBERS))

        def forward(self, x):
            return Nap.apply(x, self.w)

    def alone(part):
        """Seconds of an all-reduce of a part of the gradient, with nothing beside it: the middle one of the turns."""
        took = []
        for _ in range(turns):
            x = torch.ones(LAYERS*NUMBERS//part)
            time.sleep(nap)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(x)
            took.append(time.perf_counter() - start)
        return statistics.median(took)

    model, x = nn.Sequential(*[Layer() for _ in range(LAYERS)]), torch.zeros(1, requires_grad=True)
    whole, part = alone(1), alone(LAYERS)
    call = max(0, (LAYERS*part - whole)/(LAYERS - 1))         # whole = call + bytes, part = call + bytes/LAYERS
    wire, work, rows = whole - call, LAYERS*nap, []
    for k in (1, 2, 3, 4, 6, 12):
        net = DDP(model, bucket_cap_mb=4*NUMBERS*(LAYERS/k - .5)/MEGABYTE)
        Nap.seconds = 0
        for _ in range(2):
            net(x).sum().backward()
        Nap.seconds = nap
        runs = []
        for _ in range(turns):
            model.zero_grad()
            loss = net(x).sum()
            dist.barrier()
            seen = traced(loss)
            runs.append((streams.account(seen["network"], seen["naps"]), seen))
        got, seen = sorted(runs, key=lambda run: run[0]["span"])[turns//2]
        played = streams.simulate(streams.buckets([work/k]*k, [call + wire/k]*k))
        law = pieces_time(work, wire, call, 0, k)
        check(comm, f"asleep, {k} buckets: {LAYERS} naps, as many all-reduces as buckets, and the mean of the ranks",
              len(seen["naps"]) == LAYERS and len(seen["network"]) == k and all(
                  torch.allclose(p.grad, torch.full_like(p, (comm.size - 1)/2)) for p in model.parameters()))
        check(comm, f"asleep, {k} buckets: no all-reduce begins before the naps of its bucket are over",
              all(start >= seen["naps"][(j + 1)*LAYERS//k - 1][1] for j, (start, _) in enumerate(seen["network"])))
        check(comm, f"asleep, {k} buckets: exposed and hidden add up, a second way of counting agrees, and the streams take "
              "the law's time", close(got["exposed"] + got["hidden"], got["network"]) and close(
                  got["hidden"], sweep(seen["network"], seen["naps"])) and close(
                  1e6*law, 1e6*streams.end(played)))
        if comm.rank == 0:
            print(f"    span {got['span']/1e3:.1f} ms, the law {1e3*law:.1f}; exposed {got['exposed']/1e3:.1f} ms, the law "
                  f"{1e3*(law - work):.1f}", flush=True)
        first = min(a for a, _ in seen["naps"])
        since = lambda spans: [[round(a - first), round(b - first)] for a, b in spans]
        rows.append({"buckets": k, "spans": [round(run["span"]) for run, _ in runs],
                     "compute": since(seen["naps"]), "network": since(seen["network"])})
    if comm.rank == 0 and path:
        record = {"machine": machine(comm), "date": str(datetime.date.today()), "ranks": comm.size,
                  "what": f"backward pass of {LAYERS} layers that sleep, DDP, rank 0; microseconds; intervals of the turn whose "
                          "span is the middle one", "layers": LAYERS, "nap": round(1e6*nap), "parameter_bytes":
                  4*LAYERS*NUMBERS, "alone": {"whole": round(1e6*whole), "a twelfth": round(1e6*part)}, "rows": rows}
        text = json.dumps(record, indent=1)
        Path(path).write_text(re.sub(r"\[\s+(-?\d+),\s+(-?\d+)\s+\]", r"[\1, \2]", text) + "\n")


def read():
    """Account for a trace of a GPU, without any process group.  False if none was named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", metavar="FILE")
    parser.add_argument("--network", metavar="PATTERN", default="nccl", help="what the names of communication match")
    args, _ = parser.parse_known_args()
    if args.trace:
        for name, us in streams.account(*trace.spans(args.trace, args.network)).items():
            print(f"{name:8} {us/1e3:9.3f} ms")
    return bool(args.trace)


if __name__ == "__main__":
    if not read():
        from processes import lab
        lab(main)
