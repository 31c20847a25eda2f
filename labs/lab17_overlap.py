"""Lab 17. Overlap in a real trace: what DDP hides and what is exposed, by interval arithmetic.

    torchrun --standalone --nproc-per-node=4 labs/lab17_overlap.py
    torchrun --standalone --nproc-per-node=4 labs/lab17_overlap.py --record labs/recorded/mine.json
    python labs/lab17_overlap.py --trace FILE --network internode

A backward pass under DDP is recorded by torch.profiler, with gradients in many buckets, in some, and in one. The checks
are identities, orders and bytes; times are printed, and recorded if you ask. The third line reads any trace of a GPU that
torch.profiler has exported; the pattern says which kernels communicate.

Before you look (chapter 31): 12 layers of 512 times 512 weights and 512 biases in fp32, DDP with buckets of 1 MiB. How many
all-reduces does a backward pass call?

Break it: the recorded backward pass runs under `no_sync`, as if it were not the last micro-batch.
"""
import argparse
import datetime
import json
import tempfile
from contextlib import nullcontext
from pathlib import Path

from asking import answer, broken
from capacity.witness import streams, trace

LAYERS, WIDTH, ROWS = 12, 512, 512
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


def traced(net, x):
    """A backward pass: (events by name, intervals of the network, of the arithmetic), in microseconds."""
    from torch.profiler import profile
    loss = net(x).square().mean()
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
            "compute": of(lambda n: n.startswith("autograd::engine::evaluate_function") and n.endswith("Backward0"))}


def main(comm):
    import torch
    from lab2_alpha_beta import machine
    from processes import check
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", metavar="FILE", help="write what was measured to FILE")
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
            seen = traced(net, data[comm.rank])
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
