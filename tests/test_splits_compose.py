"""Splits composed: the pipeline runs stages with the hooks of the other splits, each over its own axis of the ranks.

Loss and every gradient of the unsplit model, of every kind of message the bytes of its split alone, and what must fail.
"""
import numpy as np
import pytest

from capacity.witness import tiny
from capacity.witness.collectives import window_all_reduce
from capacity.witness.schedule import Op, Schedule, dualpipe, gpipe, interleaved, one_f_one_b, zb_h1, zb_v
from capacity.witness.splits import context, data, expert, pipeline, tensor
from capacity.witness.spmd import Deadlock, Each, Link, Mismatch, Run, run

W = tiny.weights(layers=4, heads=4, kv_heads=4)
TOKENS, TARGETS = tiny.data(sequences=8)
TARGETS = np.where(np.arange(8) < np.array([[8], [1], [5], [2], [7], [8], [3], [4]]), TARGETS, -1)
SAMPLES = TOKENS, TARGETS
BETWEEN = [tensor.tensor_parallel, tensor.sequence_parallel]


def axes(**sizes):
    """The link between two ranks of a grid, named like the one axis in which they differ; no other pair may speak."""
    def link(a, b):
        at, to = (np.unravel_index(r, tuple(sizes.values())) for r in (a, b))
        name, = (name for name, i, j in zip(sizes, at, to) if i != j)
        return Link(name=name)
    return link


def serial(w=W, **hooks):
    total, back = tiny.loss(w, *SAMPLES, **hooks)
    return total, back()


def same(got, want):
    assert abs(got[0] - want[0]) < 1e-10
    assert got[1].keys() == want[1].keys()
    for name in want[1]:
        np.testing.assert_allclose(got[1][name], want[1][name], rtol=0, atol=1e-10, err_msg=name)


def wrong(got, want):
    """The names whose gradients are not the unsplit ones; loss and names must be."""
    assert abs(got[0] - want[0]) < 1e-10 and got[1].keys() == want[1].keys()
    return {name for name in want[1] if not np.allclose(got[1][name], want[1][name], rtol=0, atol=1e-10)}


# Data x pipeline x tensor.

def cube(comm, part, samples, schedule, d, t, between=tensor.tensor_parallel, add=data.all_reduce, **changed):
    """One rank of d x p x t: the mean loss (0 but on the last stage) and the gradients of its part."""
    dp, pp, tp = comm.grid(d, comm.size//d//t, t)
    loss, grads = pipeline.loss(pp, part, samples, schedule, **tensor.hooks(tp, between) | changed)
    if between is tensor.sequence_parallel:
        grads = tensor.sum_norms(tp, grads)
    return data.mean(add(dp, data.pair(samples, loss, grads)))


def trained(schedule, d, t, between=tensor.tensor_parallel, program=cube, w=W, **changed):
    p = len(schedule.orders)
    ranks = [np.unravel_index(r, (d, p, t)) for r in range(d*p*t)]
    return run(lambda comm, part, samples: program(comm, part, samples, schedule, d, t, between, **changed),
               [pipeline.shard(tensor.shard(w, k, t), j, schedule) for _, j, k in ranks],
               Each([data.shard(SAMPLES, i, d) for i, _, _ in ranks]), link=axes(dp=d, pp=p, tp=t))


def whole(did, d, t):
    """Loss and gradients of the model from the ranks of the first replica; the others have the same bits."""
    replicas = np.reshape(np.array(did.results, dtype=object), (d, -1, t, 2))
    for loss, grads in replicas[1:].reshape(-1, 2):
        assert any(loss == one and grads.keys() == other.keys() and all((grads[k] == other[k]).all() for k in grads)
                   for one, other in replicas[0].reshape(-1, 2))
    stages = [(ranks[0][0], tensor.unshard([grads for _, grads in ranks])) for ranks in replicas[0]]
    return sum(loss for loss, _ in stages), {k: v for _, grads in stages for k, v in grads.items()}


def mean(w=W):
    loss, grads = serial(w)
    count = (TARGETS >= 0).sum()
    return loss/count, {name: value/count for name, value in grads.items()}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("d, schedule, t", [
    (2, one_f_one_b(2, 4), 2), (2, gpipe(2, 2), 2), (2, zb_h1(2, 4), 2), (2, interleaved(2, 4, 2), 2),
    (2, zb_v(2, 4), 2), (2, dualpipe(2, 4), 2), (1, one_f_one_b(4, 8), 2), (1, one_f_one_b(2, 3), 4),
    (4, one_f_one_b(2, 2), 1), (2, one_f_one_b(1, 2), 4), (2, one_f_one_b(4, 4), 2)],
    ids=lambda x: f"{x.name} of {len(x.orders)}" if isinstance(x, Schedule) else str(x))
def test_data_pipeline_tensor(d, schedule, t, between):
    did = trained(schedule, d, t, between)
    same(whole(did, d, t), mean())


@pytest.mark.parametrize("between", BETWEEN)
def test_tied_embeddings(between):
    tied = {name: value for name, value in W.items() if name != "head"}
    same(whole(trained(one_f_one_b(2, 4), 2, 2, between, w=tied), 2, 2), mean(tied))


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("schedule", [one_f_one_b(2, 4), interleaved(2, 4, 2)], ids=lambda s: s.name)
def test_bytes_are_those_of_the_single_splits(schedule, between):
    """Of all ranks together; tensor ranks send the pipeline's activations t times, under sequence parallelism once."""
    d, p, t = 2, 2, 2
    did = trained(schedule, d, t, between)
    sent = {name: did.sent(name).sum() for name in ("dp", "pp", "tp")}
    parts = [tensor.shard(W, r, t) for r in range(t)]
    alone = {"pp": run(pipeline.loss, [pipeline.shard(W, r, schedule) for r in range(p)], SAMPLES, schedule),
             "tp": run(tensor.loss, parts, SAMPLES, between)}
    alone = {name: did.sent().sum() for name, did in alone.items()}
    copies = t if between is tensor.tensor_parallel else 1
    norms = 8*sum(v.size for name, v in W.items() if name.endswith("norm"))
    again = (d - 1)*2*(t - 1)*norms if copies == 1 else 0             # each replica sums its norms once
    assert sent["pp"] == copies*alone["pp"]
    assert sent["tp"] == alone["tp"] + again
    assert sent["dp"] == sum(run(data.all_reduce, [data.pair(SAMPLES, 0.0, grads)]*d).sent().sum()
                             for _, grads in did.results[:p*t])
    assert sum(sent.values()) == did.sent().sum()


def test_without_the_sum_over_data_every_gradient_is_that_of_half_the_samples():
    did = trained(one_f_one_b(2, 4), 2, 2, add=lambda dp, pair: pair)
    half = [data.mean(data.sums(W, data.shard(SAMPLES, i, 2))) for i in range(2)]
    for i, want in enumerate(half):
        same(whole(Run(4, did.results[4*i:4*i + 4]), 1, 2), want)
        assert all(np.abs(want[1][name] - value).max() > 1e-3 for name, value in mean()[1].items())


def test_without_f_every_gradient_below_the_head_is_wrong():
    did = trained(one_f_one_b(2, 4), 2, 2, enter=tiny.identity)
    assert wrong(whole(did, 2, 2), mean()) == set(W) - {"head"}


def test_without_the_sum_of_the_norms_only_they_are_wrong():
    def program(comm, part, samples, schedule, d, t, between):
        dp, pp, tp = comm.grid(d, comm.size//d//t, t)
        pair = data.pair(samples, *pipeline.loss(pp, part, samples, schedule, **tensor.hooks(tp, between)))
        return data.mean(data.all_reduce(dp, pair))
    did = trained(one_f_one_b(2, 4), 2, 2, tensor.sequence_parallel, program)
    assert wrong(whole(did, 2, 2), mean()) == {name for name in W if name.endswith("norm")}


def other_orders(schedule):
    """The second tensor rank of each pair runs this one."""
    def program(comm, part, samples, usual, *rest):
        return cube(comm, part, samples, (usual, schedule)[comm.rank % 2], *rest)
    return program


def test_tensor_ranks_in_different_orders_do_not_meet():
    with pytest.raises(Mismatch, match=r"rank 2 waits to receive a float64 array of shape \(32,\) from rank 3"):
        trained(one_f_one_b(2, 4), 2, 2, program=other_orders(gpipe(2, 4)))


def test_tensor_ranks_with_their_micro_batches_in_different_orders_are_wrong():
    """All shapes fit, nothing stops, and what is added does not belong together."""
    usual = gpipe(2, 4)
    other = Schedule("from the last", [[op._replace(microbatch=3 - op.microbatch) for op in order]
                                       for order in usual.orders])
    same(whole(trained(other, 2, 2), 2, 2), mean())                     # for all alike the order is as good
    calm, did = trained(usual, 2, 2), trained(usual, 2, 2, program=other_orders(other))
    assert len(did.messages) == len(calm.messages)
    for (_, grads), (_, want) in zip(did.results, calm.results):
        assert all(np.abs(grads[name] - want[name]).max() > 1e-3 for name in want)


def test_stages_in_the_wrong_order_are_another_model():
    """Whoever swaps two stages' blocks gets a loss and gradients, and not these."""
    def swapped(part):
        names = {f"{i}.{k}": f"{(i + 2) % 4}.{k}" for i in range(4) for k in tiny.block_weights(W, 0)}
        return {names.get(name, name): value for name, value in part.items()}
    got = whole(trained(one_f_one_b(2, 4), 2, 2, w=swapped(W)), 2, 2)
    assert abs(got[0] - mean()[0]) > 1e-3
    got = swapped(got[1])
    assert all(np.abs(got[name] - value).max() > 1e-3 for name, value in mean()[1].items())


def test_an_order_that_cannot_run_deadlocks_with_its_reason():
    """Each stage warms up with as many forwards as the other should: one waits for a B, the other for its next F."""
    inverted = Schedule("inverted", [[Op("F", 0, 0), Op("B", 0, 0), Op("F", 0, 1), Op("B", 0, 1)],
                                     [Op("F", 1, 0), Op("F", 1, 1), Op("B", 1, 0), Op("B", 1, 1)]])
    with pytest.raises(Deadlock) as caught:
        trained(inverted, 2, 2)
    for r, (kind, source) in enumerate([("B(stage 1, micro-batch 0)", 2), ("B(stage 1, micro-batch 0)", 3),
                                        ("F(stage 0, micro-batch 1)", 0), ("F(stage 0, micro-batch 1)", 1)]):
        assert f"rank {r} waits to receive a message (tag '{kind}') from rank {source}\n" in str(caught.value)


# Context x pipeline, expert x pipeline, context x tensor, and four at once.

@pytest.mark.parametrize("schedule", [one_f_one_b(2, 4), zb_v(2, 4)], ids=lambda s: s.name)
@pytest.mark.parametrize("method", [context.ring_attention, context.gathered_attention, context.ulysses])
@pytest.mark.parametrize("layout", [context.contiguous, context.zigzag])
def test_context_pipeline(schedule, method, layout):
    places, ranks = layout(8, 2), [divmod(r, 2) for r in range(4)]

    def program(comm, part, samples):
        pp, cp = comm.grid(2, 2)
        loss, grads = pipeline.loss(pp, part, samples, schedule, **context.hooks(cp, places, method))
        return window_all_reduce(cp, loss), {name: window_all_reduce(cp, g) for name, g in grads.items()}

    did = run(program, [pipeline.shard(W, j, schedule) for j, _ in ranks],
              Each([context.shard(SAMPLES, k, places) for _, k in ranks]), link=axes(pp=2, cp=2))
    same(pipeline.total(Run(2, did.results[::2])), serial())
    alone = [run(context.loss, [W]*2, Each([context.shard(SAMPLES, k, places) for k in range(2)]), places, method),
             run(pipeline.loss, [pipeline.shard(W, j, schedule) for j in range(2)], SAMPLES, schedule)]
    loss = 2*8                                             # of each stage, that of the first is 0
    assert [did.sent("cp").sum() - loss, did.sent("pp").sum()] == [a.sent().sum() for a in alone]


@pytest.mark.parametrize("schedule", [one_f_one_b(2, 2), dualpipe(2, 4)], ids=lambda s: s.name)
def test_expert_pipeline(schedule):
    w, ranks = expert.with_experts(W, 4), [divmod(r, 2) for r in range(4)]

    def program(comm, part, samples):
        pp, ep = comm.grid(2, 2)
        loss, grads = pipeline.loss(pp, part, samples, schedule, feed=expert.spread(ep, 2))
        return window_all_reduce(ep, loss), expert.sum_grads(ep, grads, 2)

    did = run(program, [pipeline.shard(expert.shard(w, k, 2), j, schedule) for j, k in ranks],
              Each([data.shard(SAMPLES, k, 2) for _, k in ranks]), link=axes(pp=2, ep=2))
    want = serial(w, feed=expert.mixture(2))
    for k in range(2):
        same(pipeline.total(Run(2, did.results[k::2])), (want[0], expert.shard(want[1], k, 2)))
    alone = run(expert.loss, [expert.shard(w, k, 2) for k in range(2)],
                Each([data.shard(SAMPLES, k, 2) for k in range(2)]), 2, 2)
    routed = [sum(m.nbytes for m in x.messages if m.tag in ("dispatch", "combine", "combine back", "dispatch back"))
              for x in (did, alone)]
    assert routed[0] == routed[1] > 0


@pytest.mark.parametrize("between", BETWEEN)
def test_data_pipeline_context_tensor(between):
    """2 x 2 x 2 x 2: sixteen ranks."""
    schedule, places = one_f_one_b(2, 2), context.zigzag(8, 2)
    ranks = [np.unravel_index(r, (2, 2, 2, 2)) for r in range(16)]

    def program(comm, part, samples):
        dp, pp, cp, tp = comm.grid(2, 2, 2, 2)
        loss, grads = pipeline.loss(pp, part, samples, schedule, **tensor.hooks(tp, between),
                                    **context.hooks(cp, places, context.ring_attention))
        if between is tensor.sequence_parallel:
            grads = tensor.sum_norms(tp, grads)
        pair = {name: window_all_reduce(cp, value) for name, value in data.pair(samples, loss, grads).items()}
        return data.mean(data.all_reduce(dp, pair))

    did = run(program, [pipeline.shard(tensor.shard(W, k, 2), j, schedule) for _, j, _, k in ranks],
              Each([context.shard(data.shard(SAMPLES, i, 2), c, places) for i, _, c, _ in ranks]),
              link=axes(dp=2, pp=2, cp=2, tp=2))
    same(whole(Run(4, [did.results[r] for r in (0, 1, 4, 5)]), 1, 2), mean())
