"""Lab 6. Pipeline parallelism: five schedules of PyTorch, and the same five in `capacity.witness.schedule`.

    torchrun --standalone --nproc-per-node=4 labs/lab6_pipeline.py

Every schedule gives the loss and the gradients of one process, in fp64. What each rank did, in which order, what it
kept and what it sent, is recorded while it runs and compared with the schedule of chapter 16.

Before you look (chapter 16): four stages, eight micro-batches, the schedule 1F1B. How many micro-batches does the first stage
hold at most?

Break it: the schedule keeps PyTorch's default, `scale_grads=True`.
"""
import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import (Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B,
                                                    ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble)
from torch.nn.functional import cross_entropy

from capacity import interleaved_activations, one_f_one_b_activations, pipeline_egress, pipeline_time
from capacity.witness.collectives import ring_all_gather
from capacity.witness.schedule import Op, Schedule, gpipe, interleaved, one_f_one_b, simulate, zb_v
from counting import Count
from asking import answer, broken
from processes import check, equal, lab, summed

ROWS, LENGTH, HIDDEN, VOCAB, FP64 = 2, 5, 6, 11, 8           # sequences of a micro-batch, ...


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x):
        return x + torch.tanh(self.linear(x))


def model(comm):
    """2P layers, the first an embedding, the last with the same matrix; the same weights on every rank."""
    torch.manual_seed(0)
    blocks = [Block() for _ in range(2*comm.size - 2)]
    layers = [nn.Embedding(VOCAB, HIDDEN), *blocks, nn.Linear(HIDDEN, VOCAB, bias=False)]
    layers[-1].weight.data = layers[0].weight.data.clone()
    return nn.Sequential(*layers).double().to(comm.device)


def loss(y, targets):
    """The sum of the tokens' losses; targets of -100 are not counted."""
    return cross_entropy(y.flatten(0, 1), targets.flatten(), reduction="sum")


def mean_loss(y, targets):
    return loss(y, targets)/(targets >= 0).sum()


class Stage(PipelineStage):
    """A stage that writes down what it does, and how many micro-batches all stages of this rank hold then."""
    here, orders, held = [], [], []

    def did(self, kind, j):
        Stage.orders.append(Op(kind, self.stage_index, j))
        Stage.held.append(sum(len(stage.fwd_cache) + len(stage.backward_state) for stage in Stage.here))

    def forward_one_chunk(self, j, *args, **kwargs):
        y = super().forward_one_chunk(j, *args, **kwargs)
        self.did("F", j)
        return y

    def backward_one_chunk(self, j, *args, full_backward=True, **kwargs):
        super().backward_one_chunk(j, *args, full_backward=full_backward, **kwargs)
        self.did("B" if full_backward else "I", j)

    def backward_weight_one_chunk(self, j, *args, **kwargs):
        super().backward_weight_one_chunk(j, *args, **kwargs)
        self.did("W", j)


def run(comm, kind, mine, stages, m, x, targets, loss_fn=loss, scale_grads=False):
    """A step of a schedule. Returns the losses, this rank's gradients, by layer, and the bytes that it sent."""
    layers = model(comm)
    each = len(layers)//stages
    Stage.here = [Stage(layers[s*each:(s + 1)*each], s, stages, comm.device) for s in mine]
    schedule = kind(Stage.here if len(mine) > 1 else Stage.here[0], m, loss_fn=loss_fn, scale_grads=scale_grads or broken())
    for _ in range(2):                                       # in the first, the stages also tell each other shapes
        layers.zero_grad()
        Stage.orders, Stage.held, losses = [], [], []
        with Count() as count:
            schedule.step(*[x][:0 in mine], target=targets if stages - 1 in mine else None, losses=losses)
    own = [i for s in mine for i in range(s*each, (s + 1)*each)]
    return losses, {i: gradient(layers[i]) for i in own}, count.nbytes["send", comm.size]


def gradient(layer):
    return torch.cat([p.grad.flatten() for p in layer.parameters()])


def compare(comm, name, kind, mine, stages, expected, most, x, targets, m):
    """One schedule: what it computes, in which order, what it holds and what it sends. Returns its timeline.

    expected: the schedule of chapter 16; most: the activations that this rank may hold, from its formulas.
    """
    P, r, chunks = comm.size, comm.rank, len(mine)
    serial = model(comm)
    total = loss(serial(x), targets)
    total.backward()
    losses, got, nbytes = run(comm, kind, mine, stages, m, x, targets)
    check(comm, f"{name}: the sum of the micro-batches' losses, and every gradient, as on one process",
          all(equal(g, gradient(serial[i])) for i, g in got.items()) and
          (equal(sum(losses).detach(), total.detach()) if losses else stages - 1 not in mine))
    order = Schedule(name, ring_all_gather(comm, Stage.orders), chunks)
    timeline = simulate(order)
    if expected:
        check(comm, f"{name}: every rank does what the schedule of chapter 16 says, in its order",
              order.orders == expected.orders)
    check(comm, f"{name}: rank 0 holds {max(Stage.held)/chunks:g} micro-batches at most; every rank as many as formula "
                "and simulator say", max(Stage.held)/chunks == most == timeline.peak_activations[r])
    if name == "1F1B":
        answer(max(Stage.held), "micro-batches")
    home = {op.stage: d for d, ops in enumerate(order.orders) for op in ops}
    crossings = sum(home[s] != home[s + 1] for s in range(stages - 1))
    egress = pipeline_egress(microbatches=m, chunks=chunks, microbatch_tokens=ROWS*LENGTH, hidden=HIDDEN,
                             element_bytes=FP64)
    sent = summed(torch.tensor(nbytes))
    check(comm, f"{name}: over {crossings} stage boundaries between ranks, the activation of each micro-batch and its "
                f"cotangent: {sent:,} bytes, {egress:,} from an inner rank",
          sent == crossings*egress/chunks and (r in (0, P - 1) or nbytes == egress))
    return timeline


def five(comm, x, targets, m):
    P, r = comm.size, comm.rank
    loop, v, twice = [r, P + r], [r, 2*P - 1 - r], interleaved(P, m, 2)
    few = one_f_one_b_activations(pp=P, microbatches=m, stage=r)
    more = interleaved_activations(pp=P, microbatches=m, chunks=2, stage=r)
    compare(comm, "GPipe", ScheduleGPipe, [r], P, gpipe(P, m), m, x, targets, m)
    compare(comm, "1F1B", Schedule1F1B, [r], P, one_f_one_b(P, m), few, x, targets, m)
    plain = compare(comm, "Interleaved1F1B", ScheduleInterleaved1F1B, loop, 2*P, twice, more, x, targets, m)
    zero = compare(comm, "InterleavedZeroBubble", ScheduleInterleavedZeroBubble, loop, 2*P, None, P, x, targets, m)
    compare(comm, "ZBVZeroBubble", ScheduleZBVZeroBubble, v, 2*P, zb_v(P, m), P, x, targets, m)
    first = [[next(i for i, op in enumerate(order) if op.kind != "F") for order in line.schedule.orders]
             for line in (plain, zero)]
    check(comm, f"InterleavedZeroBubble does fewer forwards first than Interleaved1F1B, {first[1]} for {first[0]} on "
                "the ranks: p - s - 1 fewer on rank s, and all hold p micro-batches",
          [a - b for a, b in zip(*first)] == [P - s - 1 for s in range(P)])
    check(comm, f"its order is feasible and no slower: {float(zero.makespan):g} units for {float(plain.makespan):g}, "
                "if F, I and W take one each",
          zero.makespan <= plain.makespan == pipeline_time(pp=P, microbatches=m, chunks=2, forward=1, backward=2))


def mean_of_means(comm, x, targets, m):
    """What the schedules do unless told otherwise: average over micro-batches, which differ in counted tokens."""
    serial, r = model(comm), comm.rank

    def layer_gradients(total):
        serial.zero_grad()
        total.backward()
        return {i: gradient(layer) for i, layer in enumerate(serial)}

    _, got, _ = run(comm, Schedule1F1B, [r], comm.size, m, x, targets, mean_loss, scale_grads=True)
    right = layer_gradients(mean_loss(serial(x), targets))
    wrong = layer_gradients(sum(mean_loss(serial(a), b) for a, b in zip(x.chunk(m), targets.chunk(m)))/m)
    check(comm, "a mean loss and scale_grads=True, the default: the mean of the micro-batches' means, a wrong gradient",
          all(equal(g, wrong[i]) and not equal(g, right[i]) for i, g in got.items()))


def tied(comm, x, targets, m):
    """One matrix on two stages: the embedding of the first, the head of the last."""
    P, r, serial = comm.size, comm.rank, model(comm)
    serial[-1].weight = serial[0].weight
    loss(serial(x), targets).backward()
    want = gradient(serial[0])
    _, got, _ = run(comm, Schedule1F1B, [r], P, m, x, targets)
    part = got.get(0, got.get(2*P - 1, torch.zeros_like(want)))
    _, v, _ = run(comm, ScheduleZBVZeroBubble, [r, 2*P - 1 - r], 2*P, m, x, targets)
    check(comm, "a matrix that the first and the last stage share: each has a part of its gradient, the sum is right; "
                "in a V one rank has both", not equal(part, want) and equal(summed(part), want) and
          (r > 0 or equal(v[0] + v[2*P - 1], want)))


def main(comm):
    m, at = 2*comm.size, torch.Generator().manual_seed(1)
    x, targets = torch.randint(VOCAB, (2, m*ROWS, LENGTH), generator=at).to(comm.device)
    for j in range(m):                                       # micro-batches with fewer and fewer counted tokens
        targets[j*ROWS:(j + 1)*ROWS].view(-1)[:j] = -100
    five(comm, x, targets, m)
    mean_of_means(comm, x, targets, m)
    tied(comm, x, targets, m)


if __name__ == "__main__":
    lab(main)
