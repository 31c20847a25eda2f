"""Lab 3. What PyTorch sends on 8192 ranks: counted in one process, predicted by the algebra of placements.

    python labs/lab3_fake_ranks.py

The fake process group carries nothing out; it lets one rank of a large job run alone. DDP, FSDP2 and tensor
parallelism are the real code, so which collectives they call on how many bytes is real; values and times are not.

Before you look (chapter 20): a block of two weights, 256 x 16 and 16 x 256, is cut by rows over 8192 ranks. How many times its bytes
does FSDP2 gather?

Break it: in `fsdp` the line `shard_placement_fn=...` is left out, and FSDP2 cuts rows.
"""
import logging
import math
import os
import warnings
from fractions import Fraction

logging.disable(logging.WARNING)            # DTensor warns of two all-reduces in a row, and is right
warnings.simplefilter("ignore")             # FSDP2 warns of in-place changes, of which there are none here

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._redistribute import _gen_transform_infos, use_min_cost_redistribution_plan
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

import asking
from asking import answer, broken
from capacity import all_reduce_egress
from capacity.placement import conversion
from counting import Count

P, BLOCKS, ROWS, FP32, BF16 = 8192, 3, 4, 4, 2


def model(width, hidden):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, hidden, bias=False), nn.ReLU(),
                                         nn.Linear(hidden, width, bias=False)) for _ in range(BLOCKS)])


def shard(net, mesh, **options):
    for block in net:
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)


def step(net, width):
    """One forward and backward pass, counted."""
    with Count() as count:
        net(torch.randn(ROWS, width, requires_grad=True)).sum().backward()
    return count


def nbytes(source, target, sizes, mesh):
    """Bytes that a rank sends in the one collective between two placements of an fp32 tensor."""
    move, = conversion(source, target, {a: n for a, n in sizes.items() if a in source}, mesh, FP32)
    return move.nbytes


def check(text, ok):
    assert ok, text
    if os.environ.get("RANK", "0") == "0":
        print(f"ok  {text}", flush=True)


def ddp():
    """Data parallelism: every gradient all-reduced once, in buckets."""
    width, hidden = 16, P
    net = DistributedDataParallel(model(width, hidden))

    def hook(_, bucket):                                     # what DDP does itself, in sight of Count
        dist.all_reduce(bucket.buffer())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    net.register_comm_hook(None, hook)
    count, n = step(net, width), BLOCKS*2*width*hidden*FP32
    check(f"DDP, {P} ranks: all-reduces only; a rank sends 2 (P - 1)/P of its {n:,} bytes of gradients",
          dict(count.nbytes) == {("all_reduce", P): all_reduce_egress(n=n, P=P)})
    return sum(count.nbytes.values())


def fsdp(replicated):
    """FSDP2: weights gathered forward, gathered backward, gradients scattered. Both weights are cut along `hidden`."""
    width, hidden, mesh = 16, P, {"dp": P}
    net = shard(model(width, hidden), init_device_mesh("cpu", (P,)),
                **({} if broken() else {"shard_placement_fn": lambda w: Shard(w.shape.index(hidden))}))
    count, sizes = step(net, width), {"H": hidden, "D": width}
    gather, scatter = nbytes("H/dp D", "H D", sizes, mesh), nbytes("H D {dp}", "H/dp D", sizes, mesh)
    check(f"FSDP, {P} ranks: {2*BLOCKS} all-gathers and {BLOCKS} reduce-scatters, the placements' bytes",
          dict(count.calls) == {("all_gather", P): 2*BLOCKS, ("reduce_scatter", P): BLOCKS} and
          dict(count.nbytes) == {("all_gather", P): 2*BLOCKS*2*gather, ("reduce_scatter", P): BLOCKS*2*scatter})
    check("three passes over the weights against DDP's two: 3/2 of its bytes",
          sum(count.nbytes.values()) == Fraction(3, 2)*replicated)


def precision():
    """Weights in bf16 on the wire, gradients in fp32."""
    width, hidden = 16, P
    net = shard(model(width, hidden), init_device_mesh("cpu", (P,)),
                shard_placement_fn=lambda w: Shard(w.shape.index(hidden)),
                mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    count = step(net, width)
    parameters = BLOCKS*2*width*hidden
    check("FSDP with bf16 weights and fp32 gradients: 2 + 2 + 4 bytes a parameter, times (P - 1)/P",
          sum(count.nbytes.values()) == Fraction((BF16 + BF16 + FP32)*parameters*(P - 1), P))


def padding():
    """FSDP2 cuts rows. Where a weight's rows do not divide, every rank gets ceil(rows/P), most of them empty."""
    width, hidden = 16, 256
    count = step(shard(model(width, hidden), init_device_mesh("cpu", (P,))), width)
    padded = {rows: P*math.ceil(rows/P) for rows in (hidden, width)}
    gathered = count.nbytes["all_gather", P]*P/(P - 1)/(2*BLOCKS)
    answer(gathered/(2*width*hidden*FP32), "times")
    n = sum(rows*columns*FP32 for rows, columns in ((padded[hidden], width), (padded[width], hidden)))
    check(f"FSDP of a block with {hidden} and {width} rows: it gathers {n:,} bytes for {2*width*hidden*FP32:,}, "
          f"{n/(2*width*hidden*FP32):.0f} times as many",
          count.nbytes["all_gather", P] == Fraction(2*BLOCKS*n*(P - 1), P))


def tensor_parallel():
    """FSDP2 over 1024 ranks, inside each of its parts tensor parallelism over 8."""
    mesh, width, hidden = {"dp": P//8, "tp": 8}, 1024, 8192
    devices = init_device_mesh("cpu", tuple(mesh.values()), mesh_dim_names=tuple(mesh))
    net = model(width, hidden)
    for block in net:
        parallelize_module(block, devices["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    count = step(shard(net, devices["dp"]), width)
    sizes = {"B": ROWS, "D": width, "H": hidden}
    up = nbytes("H/tp/dp D", "H/tp D", sizes, mesh)
    down = nbytes("D/dp H/tp", "D H/tp", sizes, mesh)
    activation = nbytes("B D {tp}", "B D", sizes, mesh)
    expected = {("all_gather", mesh["dp"]): 2*BLOCKS*(up + down), ("reduce_scatter", mesh["dp"]): BLOCKS*(up + down),
                ("all_reduce", mesh["tp"]): 2*BLOCKS*activation}
    check(f"FSDP over {mesh['dp']} times TP over {mesh['tp']}: each collective over its own ranks, the placements' "
          "bytes", dict(count.nbytes) == expected)
    check("TP: one all-reduce of the activations a block forward, and its transpose backward",
          count.calls["all_reduce", mesh["tp"]] == 2*BLOCKS)


def routes():
    """Changes of layout on 8 times 8 ranks: what DTensor sends, in units of the whole tensor; it searches if told to."""
    mesh = init_device_mesh("cpu", (P//64, 8, 8), mesh_dim_names=("rest", "node", "gpu"))["node", "gpu"]
    terms, copies, parts = Partial(), Replicate(), Shard(0)

    def sent(source, target, side=64):
        with Count() as count:
            DTensor.from_local(torch.ones(side, side), mesh, source).redistribute(mesh, target)
        return sum(count.nbytes.values())/Fraction(side*side*FP32)

    one, all_ = [sent(source, [copies, copies]) for source in ([terms, copies], [terms, terms])]
    cut, both = [sent([terms, copies], target) for target in ([copies, parts], [parts, parts])]
    check(f"DTensor, terms over nodes to copies: {float(one)} n; over nodes and GPUs: {float(all_)} n; to parts over GPUs "
          f"{float(cut)} n; to parts over both {float(both)} n", [one, all_, cut, both] == [1.75, 3.5, 1.75, .875])
    changes = [([terms, copies], [copies, copies]), ([terms, terms], [copies, copies]),
               ([terms, copies], [copies, parts]), ([terms, copies], [parts, parts])]
    with use_min_cost_redistribution_plan():
        _gen_transform_infos.cache_clear()
        small, large = [[sent(*change, side) for change in changes] for side in (64, 1024)]
    _gen_transform_infos.cache_clear()
    check("DTensor told to search: of 16 KiB as before but for the third, of 4 MiB 1.09375, 1.96875, 0.21875 and 0.21875 n "
          "(0.123 with an all-to-all, for which CPUs gather)",
          [small, large] == [[1.75, 3.5, .21875, .875], [1.09375, 1.96875, .21875, .21875]])
    mesh._flatten("both")
    check("the same with the two axes flattened: one all-reduce over 64, 1.96875 n",
          sent([terms, terms], [copies, copies]) == 1.96875)


if __name__ == "__main__":
    asking.begin()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=P)
    fsdp(ddp())
    precision()
    padding()
    tensor_parallel()
    routes()
    dist.destroy_process_group()
    asking.end()
