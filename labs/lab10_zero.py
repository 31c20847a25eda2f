"""Lab 10. Sharding: the programs of `capacity.witness.splits.zero` on processes, and FSDP2 next to them.

    torchrun --standalone --nproc-per-node=4 labs/lab10_zero.py

Ten steps of Adam in fp64, for the programs and for FSDP2, against one process that has everything; calls and bytes of
every collective against the formula. The processes must be even in number; with two there are no copies of parts.

Before you look (chapter 20): four layers, three micro-batches a step, weights cut again after each use. How many all-gathers does
FSDP2 call in a step?

Break it: only the whole model is a unit, `for unit in [cut]: fully_shard(unit, ...)`.
"""
import copy

import numpy as np
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from capacity import sharded_egress
from capacity.witness import spmd, tiny
from capacity.witness.splits import data, zero
from counting import Count
from asking import answer, broken
from processes import check, lab, summed

STEPS, MICRO, UNITS, FP64 = 10, 3, 4, 8


def alone(w, batch, rate=0.01, decay=(0.9, 0.99), eps=1e-8):
    """Adam on one process, array by array, on all samples at once."""
    w, mean, square = dict(w), dict.fromkeys(w, 0), dict.fromkeys(w, 0)
    for t in range(1, STEPS + 1):
        for k, g in tiny.loss(w, *batch)[1](1/batch[1].size).items():
            mean[k] = decay[0]*mean[k] + (1 - decay[0])*g
            square[k] = decay[1]*square[k] + (1 - decay[1])*g*g
            root = np.sqrt(square[k]/(1 - decay[1]**t)) + eps
            w[k] = w[k] - rate*mean[k]/(1 - decay[0]**t)/root
    return w


def programs(comm):
    """The same events as on simulated ranks: the same bits, the bytes of the formula, and the weights of one process."""
    P, w = comm.size, tiny.weights()
    units, batch = zero.units(w), tiny.data(sequences=MICRO*comm.size)
    numbers, want = sum(zero.length(shapes, P) for shapes in units.values()), alone(w, batch)
    for stage, replicas, gathers, scatters in ((0, 1, 0, 2), (1, 1, 1, 1), (2, 1, 1, MICRO), (3, 1, 2*MICRO, MICRO),
                                               (3, 2, 2*MICRO, MICRO)):
        if replicas == P:
            continue
        S = P//replicas if stage else 1
        parts = [zero.shard(w, r % S, S) for r in range(P)]
        samples = [data.shard(batch, r, P) for r in range(P)]
        how = units, zero.step(stage, units, MICRO), STEPS, replicas

        def program(comm, part, samples, units, plan, steps, replicas):
            return zero.train(comm, part, units, samples, plan, steps, replicas=replicas)["master"]

        before = len(comm.log)
        mine = program(comm, parts[comm.rank], samples[comm.rank], *how)
        sent = sum(nbytes for _, nbytes in comm.log[before:])
        simulated = spmd.run(program, parts, spmd.Each(samples), *how).results
        there, got = simulated[comm.rank], zero.unshard(simulated[:S], units)
        expected = STEPS*sharded_egress(numbers, P//replicas, gathers, scatters, FP64, FP64)
        expected += STEPS*sharded_egress(numbers*replicas//P, replicas, 0, 2, FP64, FP64)
        name = f"ZeRO-{stage}" if replicas == 1 else f"{replicas} copies of {P//replicas} parts"
        check(comm, f"{name}: {STEPS} steps of {MICRO} micro-batches give the bits of the simulated ranks and send the "
                    f"{expected:,.0f} bytes of the formula",
              all(np.array_equal(mine[u], there[u]) for u in mine) and sent == expected)
        check(comm, f"{name}: the weights of one process after {STEPS} steps, to 1e-10",
              max(abs(got[k] - want[k]).max() for k in want) < 1e-10)


def model(comm):
    """The same weights on every rank; every layer has rows for all of them."""
    torch.manual_seed(0)
    width = 4*comm.size
    return nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(UNITS)]).double().to(comm.device)


def batch(comm, t, j):
    """Micro-batch j of step t: everybody's rows."""
    at = torch.Generator().manual_seed(100*t + j)
    return torch.randn(2*comm.size, 4*comm.size, generator=at, dtype=torch.float64).to(comm.device)


def train(comm, net, mine=lambda x: x, sync=lambda net, last: None, clip=None):
    """Ten steps; `mine` are this rank's rows.  The loss is a mean over all rows and micro-batches."""
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for t in range(STEPS):
        adam.zero_grad()
        for j in range(MICRO):
            sync(net, j == MICRO - 1)
            (net(mine(batch(comm, t, j))).square().mean()/MICRO).backward()
        if clip:
            clip(net)
        adam.step()
    return net


def whole(net):
    """All weights as one vector."""
    return torch.cat([getattr(p, "full_tensor", lambda p=p: p)().detach().flatten() for p in net.parameters()])


def off(x, y):
    return float((x - y).norm()/y.norm())


def fsdp(comm, net, serial, mine):
    P, n = comm.size, sum(p.numel() for p in net.parameters())
    flat = init_device_mesh(comm.device.type, (P,))
    grid = init_device_mesh(comm.device.type, (2, P//2), mesh_dim_names=("replicate", "shard"))

    def hold(net, last):
        net.set_requires_gradient_sync(last)
        net.set_reshard_after_backward(last)

    for name, mesh, reshard, sync, gathers, scatters in (
            ("resharded after the forward pass", flat, True, None, 2*MICRO, MICRO),
            ("kept until the backward pass", flat, False, None, MICRO, MICRO),
            ("weights and gradients kept over the micro-batches", flat, False, hold, 1, 1),
            (f"2 copies of {P//2} parts", grid, True, None, 2*MICRO, MICRO)):
        if mesh is grid and P == 2:
            continue
        cut = copy.deepcopy(net)
        for unit in [cut] if broken() else [*cut, cut]:
            fully_shard(unit, mesh=mesh, reshard_after_forward=reshard)
        with Count() as seen:
            train(comm, cut, mine, sync or (lambda net, last: None))
        S = P if mesh is flat else P//2
        if mesh is flat and reshard:
            answer(seen.calls["all_gather", P]/STEPS, "all-gathers")
        calls = {("all_gather", S): STEPS*gathers*UNITS, ("reduce_scatter", S): STEPS*scatters*UNITS}
        sent = STEPS*sharded_egress(n, S, gathers, scatters, FP64, FP64)
        if mesh is grid:                                     # after every micro-batch, unless told otherwise
            calls["all_reduce", 2] = STEPS*MICRO*UNITS
            sent += STEPS*MICRO*sharded_egress(n//S, 2, 0, 2, FP64, FP64)
        gathered = seen.calls["all_gather", S]//STEPS
        check(comm, f"FSDP2, {name}: in a step of {MICRO} micro-batches each of {UNITS} units is gathered {gathers} and "
                    f"scattered {scatters} x, {gathered} all-gathers in all",
              dict(seen.calls) == calls and sum(seen.nbytes.values()) == sent)
        check(comm, f"FSDP2, {name}: the weights of one process after {STEPS} steps, to 1e-10", off(whole(cut), serial) < 1e-10)


def clipping(comm, net, mine):
    """The norm of a part is no norm."""
    bound, mesh = 0.05, init_device_mesh(comm.device.type, (comm.size,))

    def right(net):
        nn.utils.clip_grad_norm_(net.parameters(), bound)

    def own(net):
        parts = [p.grad.to_local() for p in net.parameters()]
        scale = min(1, bound/float(sum(g.square().sum() for g in parts).sqrt()))
        for g in parts:
            g.mul_(scale)
    serial = whole(train(comm, copy.deepcopy(net), clip=right))
    error = {}
    for clip in (right, own):
        cut = copy.deepcopy(net)
        for unit in [*cut, cut]:
            fully_shard(unit, mesh=mesh)
        error[clip] = off(whole(train(comm, cut, mine, clip=clip)), serial)
    check(comm, "clip_grad_norm_ takes the norm of all parts: the weights of one process", error[right] < 1e-10)
    check(comm, f"clipped by the norm of its part, each rank is off: {error[own]:.0e} of the weights", error[own] > 1e-4)


def main(comm):
    if not broken():
        programs(comm)
    net = model(comm)
    serial = whole(train(comm, copy.deepcopy(net)))
    mine = lambda x: x.chunk(comm.size)[comm.rank]
    fsdp(comm, net, serial, mine)
    clipping(comm, net, mine)
    check(comm, "the serial run is the same on every process", bool((summed(serial) == comm.size*serial).all()))


if __name__ == "__main__":
    lab(main, "an even number of")
