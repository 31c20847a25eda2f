"""Lab 11. The mesh: PyTorch's DeviceMesh and DTensor against the digits of a rank and the algebra of placements.

    torchrun --standalone --nproc-per-node=4 labs/lab11_mesh.py

Coordinates and groups; what each rank holds in every layout of a matrix; every change of layout: the result, and what
PyTorch sends against what the shortest path sends. The processes must be even in number, four or more.

Before you look (chapter 23): on a mesh of two times two ranks, a matrix of 512 bytes lies in terms over both axes. How many bytes
does a rank send until everybody has the sum, if PyTorch goes axis by axis?

Break it: the parts are gathered outer axis first, `gather(["node", "gpu"])`.
"""
import itertools
import logging
import math
from fractions import Fraction

logging.disable(logging.WARNING)                # two all-reduces in a row: that they cost more is the point

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from capacity import Placement, mesh_coordinate
from capacity.placement import conversion
from capacity.witness.resharding import coordinates, gathered, groups, perform, place
from capacity.witness import spmd
from counting import Count
from asking import answer, broken
from processes import check, lab

KINDS = {"copies": Replicate(), "rows": Shard(0), "cols": Shard(1), "terms": Partial()}


def everything(comm, value):
    """The values of all ranks."""
    out = [None]*comm.size
    dist.all_gather_object(out, value)
    return out


def counting(comm, mesh, devices):
    """Coordinates are the digits of a rank, groups what is left when the other digits are fixed."""
    at, strides = [*devices.get_coordinate()], [math.prod([*mesh.values()][k + 1:]) for k in range(len(mesh))]
    check(comm, "DeviceMesh: a rank's coordinates are its digits, the last axis fastest",
          at == [*coordinates(mesh, comm.rank).values()]
          == [mesh_coordinate(comm.rank, s, q) for s, q in zip(strides, mesh.values())])
    for axis in mesh:
        mine = dist.get_process_group_ranks(devices[axis].get_group())
        check(comm, f"its groups along {axis} are the ranks that differ there alone",
              mine == next(g for g in groups(mesh, [axis]) if comm.rank in g))


def layouts(mesh):
    """Pairs of a placement and DTensor's list for it; where both axes cut rows, the first axis cuts first."""
    for kinds in itertools.product(KINDS, repeat=len(mesh)):
        cuts = {a: [x for x, k in zip(mesh, kinds) if k == a] for a in ("rows", "cols")}
        yield Placement.of(cuts, [x for x, k in zip(mesh, kinds) if k == "terms"]), [KINDS[k] for k in kinds]


def changes(comm, mesh, devices):
    """Every layout, and every way from one to another."""
    P = comm.size
    shape = {"rows": 2*P, "cols": 2*P}
    matrix = np.arange(4*P*P).reshape(2*P, 2*P)
    fits = right = True
    equal = less = 0
    for source, have in layouts(mesh):
        local = torch.tensor(place(matrix, source, mesh)[comm.rank]).double()
        tensor = DTensor.from_local(local, devices, have)
        fits &= tuple(source.local_shape(shape, mesh).values()) == tuple(local.shape) and tensor.shape == matrix.shape
        for target, want in layouts(mesh):
            if target.partial:
                continue
            with Count() as count:
                came = tensor.redistribute(devices, want).to_local()
            right &= np.array_equal(came.numpy(), matrix[target.slices(shape, mesh, comm.rank)])
            sends = sum(count.nbytes.values(), Fraction())
            if have == [Partial()]*2 and want == [Replicate()]*2:
                answer(sends, "bytes")
            least = sum(m.nbytes for m in conversion(source, target, shape, mesh, 8, also=tuple(mesh)))
            assert least <= sends, f"{source} to {target}: {sends} bytes, and the shortest path has {least}"
            equal, less = equal + (least == sends), less + (least < sends)
    check(comm, "DTensor: in 16 layouts of a matrix each rank holds the shape of the placement", bool(fits))
    check(comm, f"redistribute: all {equal + less} changes to parts and copies give the right tensor", bool(right))
    check(comm, f"the shortest path sends as many bytes as PyTorch in {equal} of them, fewer in {less}, more in none "
                "(on gloo DTensor has no all-to-all and gathers)",
          less > 0)


def programs(comm, mesh):
    """The route that the search finds, as a program of messages: the same bits as on simulated ranks."""
    P, shape = comm.size, {"rows": 2*comm.size, "cols": 2*comm.size}
    matrix = np.arange(4*P*P).reshape(2*P, 2*P)
    for text in ("rows cols {gpu node}", "rows cols {node}", "rows/node/gpu cols"):
        source, target = Placement(text), Placement("rows cols")
        route = conversion(source, target, shape, mesh, 8, also=tuple(mesh))
        held = place(matrix, source, mesh)
        there = spmd.run(perform, held, route, mesh, shape)
        before = len(comm.log)
        here = perform(comm, held[comm.rank], route, mesh, shape)
        sent = sum(nbytes for _, nbytes in comm.log[before:])
        check(comm, f"{text} to copies: {', '.join(m.collective for m in route)} give the matrix and send "
                    f"{sum(m.nbytes for m in route)} bytes, as on simulated ranks",
              np.array_equal(here, there.results[comm.rank]) and sent == there.sent()[comm.rank] == sum(
                  m.nbytes for m in route) and np.array_equal(gathered(there.results, target, mesh, shape), matrix))


def outer_first(comm, mesh, devices):
    """Parts of parts: gathered over the outer axis first the numbers are there, in the wrong order."""
    part = torch.arange(2*comm.size).reshape(comm.size, 2)[comm.rank].double()

    def gather(over):
        value = part
        for axis in over:
            group = devices[axis].get_group()
            out = [torch.empty_like(value) for _ in range(group.size())]
            dist.all_gather(out, value, group)
            value = torch.cat(out)
        return value
    want = torch.arange(2*comm.size).double()
    wrong = gather(["node", "gpu"])
    check(comm, "gathered inner axis first the numbers are in order; outer first all are there, and they are not",
          torch.equal(gather(["node", "gpu"] if broken() else ["gpu", "node"]), want) and not torch.equal(wrong, want)
          and torch.equal(wrong.sort().values, want))


def strided(comm, devices):
    """FSDP over tensor parallelism: both cut the rows of a weight, the inner mesh axis first."""
    net = nn.Sequential(nn.Linear(8, 4*comm.size, bias=False))
    parallelize_module(net, devices["gpu"], {"0": ColwiseParallel()})
    weight = fully_shard(net, mesh=devices["node"])[0].weight
    check(comm, f"FSDP over tensor parallelism: PyTorch writes {weight.placements[0]!r}, because the inner axis cuts first",
          type(weight.placements[0]).__name__ == "_StridedShard" and weight.placements[1] == Shard(0))


def main(comm):
    mesh = {"node": 2, "gpu": comm.size//2}
    devices = init_device_mesh("cpu", tuple(mesh.values()), mesh_dim_names=tuple(mesh))
    outer_first(comm, mesh, devices)
    counting(comm, mesh, devices)
    changes(comm, mesh, devices)
    programs(comm, mesh)
    strided(comm, devices)


if __name__ == "__main__":
    lab(main, "an even number, four or more,")
