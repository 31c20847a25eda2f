"""Lab 12. Three axes: data, pipeline and tensor parallelism at once, by the programs of chapter 24 and by PyTorch.

    torchrun --standalone --nproc-per-node=8 labs/lab12_three_axes.py              # 2 x 2 x 2
    torchrun --standalone --nproc-per-node=6 labs/lab12_three_axes.py 3 2 1        # replicas, stages, tensor ranks

Loss and every gradient against one process, in fp64, to 1e-10. Each sum that somebody forgets must show. Without
sizes, tensor ranks and stages are 2 where they can be, and replicas are the rest.

Before you look (chapter 24): the small GPT, 4 blocks of 16 tensors, an embedding and a norm, forgets the sum backwards over two
tensor ranks. How many of its 68 gradients are wrong?

Break it: the tied embedding is not summed over the stages, `if False and p > 1`.
"""
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from capacity.witness import spmd, tiny
from capacity.witness.schedule import one_f_one_b
from capacity.witness.splits import data, pipeline, tensor
from asking import answer, broken
from processes import check, lab

VOCAB, HIDDEN, HEADS, BLOCKS, MICRO, LENGTH = 12, 16, 4, 4, 4, 6


def sizes(comm):
    """Replicas, stages, tensor ranks."""
    if sys.argv[1:]:
        return tuple(map(int, sys.argv[1:]))
    t = 2 if comm.size % 2 == 0 else 1
    p = 2 if comm.size//t % 2 == 0 else 1
    return comm.size//t//p, p, t


# The programs of the simulated ranks

def program(comm, part, samples, shape, between, norms):
    dp, pp, tp = comm.grid(*shape)
    loss, grads = pipeline.loss(pp, part, samples, one_f_one_b(shape[1], MICRO), **tensor.hooks(tp, between))
    if between is tensor.sequence_parallel:
        grads = norms(tp, grads)
    return data.mean(data.all_reduce(dp, data.pair(samples, loss, grads)))


def programs(comm, shape):
    d, p, t = shape
    w, schedule = tiny.weights(layers=BLOCKS, heads=4, kv_heads=4), one_f_one_b(p, MICRO)
    samples, ranks = tiny.data(sequences=d*MICRO), [np.unravel_index(r, shape) for r in range(comm.size)]
    total, back = tiny.loss(w, *samples)
    want = {name: g/samples[1].size for name, g in back().items()}
    parts = [pipeline.shard(tensor.shard(w, k, t), j, schedule) for _, j, k in ranks]
    mine = [data.shard(samples, i, d) for i, _, _ in ranks]
    forget = lambda tp, grads: grads                                             # noqa: E731
    k = ranks[comm.rank][2]
    for between, norms, name in ((tensor.tensor_parallel, forget, "tensor parallelism"),
                                 (tensor.sequence_parallel, tensor.sum_norms, "sequence parallelism")):
        how = shape, between, norms
        loss, grads = program(comm, parts[comm.rank], mine[comm.rank], *how)
        _, there = spmd.run(program, parts, spmd.Each(mine), *how).results[comm.rank]
        serial = tensor.shard(want, k, t)
        check(comm, f"{d} x {p} x {t}, {name}: the bits of the simulated ranks, the gradients of one process",
              grads.keys() == there.keys() and all((grads[n] == there[n]).all() for n in grads) and
              all(abs(grads[n] - serial[n]).max() < 1e-10 for n in grads))
    if t > 1:
        _, grads = program(comm, parts[comm.rank], mine[comm.rank], shape, tensor.sequence_parallel, forget)
        wrong = {n for n in grads if abs(grads[n] - tensor.shard(want, k, t)[n]).max() > 1e-10}
        check(comm, "without the sum of the norms' gradients over tensor ranks, they are wrong and nothing else is",
              wrong == {n for n in grads if n.endswith("norm")})


# The same in PyTorch: a small GPT with biases, its columns and rows cut by hand

class Enter(torch.autograd.Function):
    """Into a layer that is cut by columns: the gradient of its input is a sum over the ranks."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, dy):
        dy = dy.contiguous()
        dist.all_reduce(dy, group=ctx.group)
        return dy, None


class Leave(torch.autograd.Function):
    """Out of a layer that is cut by rows: its output is a sum over the ranks."""
    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, dy):
        return dy, None


class Block(nn.Module):
    """A transformer block; with a group, this rank's heads, columns and rows of it."""
    group, enter, bias_first, t = None, True, False, 1

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(2))
        self.qkv = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.o, self.up, self.down = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 4*HIDDEN), nn.Linear(4*HIDDEN, HIDDEN)
        for norm in self.norms:
            nn.init.normal_(norm.weight, 1, .1)

    def cut(self, group, rank, t):
        self.group, self.t = group, t
        for layer in (*self.qkv, self.up):
            layer.weight, layer.bias = (nn.Parameter(w.detach().chunk(t)[rank].clone()) for w in (layer.weight, layer.bias))
        for layer in (self.o, self.down):
            layer.weight = nn.Parameter(layer.weight.detach().chunk(t, 1)[rank].clone())

    def columns(self, x):
        return Enter.apply(x, self.group) if self.group and self.enter else x

    def rows(self, layer, x):
        if self.group is None or self.bias_first:
            x = layer(x)
            return x if self.group is None else Leave.apply(x, self.group)
        return Leave.apply(x @ layer.weight.T, self.group) + layer.bias

    def forward(self, x):
        h = self.columns(self.norms[0](x))
        q, k, v = (f(h).unflatten(-1, (HEADS//self.t, -1)).transpose(1, 2) for f in self.qkv)
        x = x + self.rows(self.o, scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.rows(self.down, gelu(self.up(self.columns(self.norms[1](x)))))


class Head(nn.Module):
    """The last norm, and the embedding once more."""
    def __init__(self, table):
        super().__init__()
        self.norm, self.weight = nn.LayerNorm(HIDDEN), table

    def forward(self, x):
        return self.norm(x) @ self.weight.T


def model(comm):
    torch.manual_seed(0)
    table = nn.Embedding(VOCAB, HIDDEN)
    return nn.Sequential(table, *[Block() for _ in range(BLOCKS)], Head(table.weight)).double().to(comm.device)


def loss(y, goal):
    return cross_entropy(y.flatten(0, 1), goal.flatten(), reduction="sum")


def step(comm, shape, batch, **change):
    """(the loss on the last stage, {layer: its gradients whole, by name}) of this rank's stage, after all sums."""
    d, p, t = shape
    mesh = init_device_mesh(comm.device.type, shape, mesh_dim_names=("dp", "pp", "tp"))
    i, s, k = (mesh.get_local_rank(axis) for axis in ("dp", "pp", "tp"))
    dp, pp, tp = (mesh.get_group(axis) for axis in ("dp", "pp", "tp"))
    net, each = model(comm), (BLOCKS + 2)//p
    mine = range(s*each, (s + 1)*each)
    table = net[0].weight
    for block in net[1:-1]:
        if t > 1:
            block.cut(tp, k, t)
        block.enter, block.bias_first = change.get("enter", True), change.get("bias_first", False)
    part = nn.Sequential(*[net[j] for j in mine])
    x, goal = (z.chunk(d)[i] for z in batch)
    losses = []
    if p > 1:
        schedule = Schedule1F1B(PipelineStage(part, s, p, comm.device, group=pp), MICRO, loss_fn=loss, scale_grads=False)
        schedule.step(*[x][:s == 0], target=goal if s == p - 1 else None, losses=losses)
    else:
        for a, b in zip(x.chunk(MICRO), goal.chunk(MICRO)):
            losses.append(loss(part(a), b))
            losses[-1].backward()
    if change.get("tie", not broken()) and p > 1:                      # the ends of each pipeline, the others give zero
        whole = table.grad if table.grad is not None else torch.zeros_like(table)
        dist.all_reduce(whole, group=pp)
        table.grad = whole
    total = sum(losses).detach() if losses else torch.zeros((), dtype=torch.float64)
    if change.get("replicas", True):
        for w in {id(w): w for w in part.parameters()}.values():
            dist.all_reduce(w.grad, group=dp)
        dist.all_reduce(total, group=dp)
    return total, {j: {n: gathered(w, net[j], n, tp, t) for n, w in net[j].named_parameters()} for j in mine}


def gathered(w, layer, name, group, t):
    """The gradient of a whole matrix from those of its parts."""
    if t == 1 or not isinstance(layer, Block) or name.startswith("norms") or name in ("o.bias", "down.bias"):
        return w.grad
    parts = [torch.empty_like(w) for _ in range(t)]
    dist.all_gather(parts, w.grad.contiguous(), group=group)
    return torch.cat(parts, 1 if name in ("o.weight", "down.weight") else 0)


def library(comm, shape):
    d, p, t = shape
    at = torch.Generator().manual_seed(1)
    batch = torch.randint(VOCAB, (2, d*MICRO*2, LENGTH), generator=at).to(comm.device)
    serial = model(comm)
    value = loss(serial(batch[0]), batch[1])
    value.backward()
    want = {j: {n: w.grad for n, w in layer.named_parameters()} for j, layer in enumerate(serial)}

    def wrong(**change):
        """Whether the loss is wrong on any rank, and which gradients are, as layer and name."""
        total, grads = step(comm, shape, batch, **change)
        last = comm.rank//t % p == p - 1
        names = [(j, n) for j in want for n in want[j]]
        bad = torch.tensor([float(last and abs(total - value) > 1e-10)] + [
            float(j in grads and (grads[j][n] - want[j][n]).abs().max() > 1e-10) for j, n in names])
        dist.all_reduce(bad)
        return bool(bad[0]), {name for name, x in zip(names, bad[1:]) if x}

    every = {(j, n) for j in want for n in want[j]}
    check(comm, f"PyTorch, {d} x {p} x {t}: the loss and all {len(every)} gradients of one process", wrong() == (False, set()))
    if d > 1:
        blind = {(j, "qkv.1.bias") for j in want}              # softmax does not see the keys' bias: its gradient is 0
        check(comm, "without the sum over replicas everything is wrong", wrong(replicas=False) == (True, every - blind))
    if p > 1:
        check(comm, "without the sum over its two stages the tied embedding is wrong, and nothing else; the loss is right",
              wrong(tie=False) == (False, {(0, "weight"), (BLOCKS + 1, "weight")}))
    if t > 1:
        off, names = wrong(enter=False)
        answer(len(names), "gradients")
        check(comm, f"without the sum backwards {len(names)} gradients are wrong, and the loss is right",
              not off and (0, "weight") in names and (BLOCKS, "norms.1.weight") in names and (BLOCKS, "down.weight") not in names)
        off, names = wrong(bias_first=True)
        check(comm, f"a bias added before the sum counts {t} times: the loss is wrong", off and len(names) > len(every)/2)


def main(comm):
    shape = sizes(comm)
    assert len(shape) == 3 and np.prod(shape) == comm.size, f"sizes {shape}; allowed: three with the product {comm.size}"
    assert (BLOCKS + 2) % shape[1] == 0 and HEADS % shape[2] == 0, (
        f"sizes {shape}; allowed: stages that divide {BLOCKS + 2}, tensor ranks that divide {HEADS}")
    if not broken():
        programs(comm, shape)
    library(comm, shape)


if __name__ == "__main__":
    lab(main)
