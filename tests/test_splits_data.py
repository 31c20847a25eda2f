"""Data parallelism: the loss and every gradient of the unsplit model, the bytes, and what must not be split so."""
from functools import partial, reduce

import numpy as np
import pytest

from capacity import all_reduce_egress, all_reduce_total_bytes
from capacity.witness import tiny
from capacity.witness.collectives import ring_all_reduce
from capacity.witness.splits.data import accumulate, all_reduce, buckets, loss, mean, shard, sums
from capacity.witness.spmd import Each, run
from capacity.witness.tiny import add

W = tiny.weights()
TOKENS, TARGETS = tiny.data(sequences=8)
TARGETS = np.where(np.arange(8) < np.array([[8], [1], [5], [2], [7], [8], [3], [4]]), TARGETS, -1)
BYTES = 8*(2 + sum(value.size for value in W.values()))


def dealt(P, seed=0):
    """All sequences in some order, at least one for each rank."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, 8), P - 1, replace=False))
    order = rng.permutation(8)
    return list(zip(np.split(TOKENS[order], cuts), np.split(TARGETS[order], cuts)))


def serial(**hooks):
    total, back = tiny.loss(W, TOKENS, TARGETS, **hooks)
    count = (TARGETS >= 0).sum()
    return total/count, {name: value/count for name, value in back().items()}


def same(got, want):
    """Losses and gradients, or pairs."""
    got, want = ({"loss": x[0], **x[1]} if isinstance(x, tuple) else x for x in (got, want))
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=1e-10, err_msg=name)


def trained(samples, *how, program=loss):
    return run(program, [W]*len(samples), Each(samples), *how)


@pytest.mark.parametrize("P", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("microbatches, limit", [(1, np.inf), (1, 500), (3, 2000)])
def test_loss_and_every_gradient(P, microbatches, limit):
    samples = dealt(P, P)
    assert P == 1 or len({(targets >= 0).sum() for _, targets in samples}) > 1
    if microbatches > 1:
        samples = [(np.repeat(tokens, 3, 0), np.repeat(targets, 3, 0)) for tokens, targets in samples]
    for got in trained(samples, microbatches, limit).results:
        same(got, serial())


def test_shards_are_the_samples():
    for size in (1, 3, 8, 9):
        parts = [shard((TOKENS, TARGETS), r, size) for r in range(size)]
        for whole, cut in zip((TOKENS, TARGETS), zip(*parts)):
            assert np.array_equal(np.concatenate(cut), whole)


def test_accumulation_is_the_same_sum_in_time():
    for k in (1, 2, 3, 8):
        same(mean(accumulate(W, (TOKENS, TARGETS), k)), serial())


def test_a_rank_without_counted_tokens_adds_zero():
    (tokens, targets), more = dealt(2)
    same(trained([(tokens, targets), more, (tokens, 0*targets - 1)]).results[2], serial())


def test_every_rank_has_the_same_bits():
    (total, first), *others = trained(dealt(5), 1, 900).results
    assert all(total == other and (first[name] == grads[name]).all() for other, grads in others for name in first)


@pytest.mark.parametrize("P", [2, 3, 4, 7])
@pytest.mark.parametrize("limit", [np.inf, 1000, 0])
def test_bytes_and_messages(P, limit):
    did = trained(dealt(P), 1, limit)
    assert did.sent().sum() == all_reduce_total_bytes(BYTES, P)
    rings = len(buckets(sums(W, (TOKENS, TARGETS)), limit))
    assert (did.count() == 2*(P - 1)*rings).all()
    assert rings == (len(W) + 2 if limit == 0 else 1 if limit == np.inf else rings)


def test_bytes_of_each_rank_if_it_divides():
    x = {"a": np.ones(24), "b": np.ones((3, 8))}
    did = run(all_reduce, [x]*4)
    assert (did.sent() == all_reduce_egress(48*8, 4)).all()
    assert (did.results[2]["b"] == 4*np.ones((3, 8))).all()


def test_buckets_come_as_backward_ends_them():
    x = {"embed": np.ones(10), "first": np.ones(2), "second": np.ones(3), "head": np.ones(1)}
    assert buckets(x, 8*4) == [["head", "second"], ["first", "embed"]]
    assert buckets(x, 8*4, first=8) == [["head"], ["second", "first"], ["embed"]]
    assert buckets(x, np.inf) == [["head", "second", "first", "embed"]]
    assert buckets(x, 0) == [["head"], ["second"], ["first"], ["embed"]]


def test_the_last_layer_leaves_first():
    left = sum(buckets(sums(W, (TOKENS, TARGETS)), 0), [])
    layers = [name.split(".")[0] for name in left if name.split(".")[0] in ("head", "norm", "0", "1", "embed")]
    assert list(dict.fromkeys(layers)) == ["head", "norm", "1", "0", "embed"]
    assert left[-2:] == ["loss", "count"]


def test_mean_of_means_fails_by_the_weights():
    def mean_of_means(comm, w, samples):
        _, grads = mean(sums(w, samples))
        return {name: value/comm.size for name, value in all_reduce(comm, grads).items()}

    samples = dealt(3, 1)
    wrong, (_, right) = trained(samples, program=mean_of_means).results[0], serial()
    pairs = [sums(W, s) for s in samples]
    count = sum(p["count"] for p in pairs)
    for name in W:
        error = sum((1/3 - p["count"]/count)*mean(p)[1][name] for p in pairs)
        np.testing.assert_allclose(wrong[name] - right[name], error, atol=1e-12)
    assert np.abs(wrong["head"] - right["head"]).max() > 1e-2

    equal = [(tokens, np.abs(targets)) for tokens, targets in zip(np.split(TOKENS, 4), np.split(TARGETS, 4))]
    same(trained(equal, program=mean_of_means).results[0], trained(equal).results[0][1])


def test_clip_before_the_sum_fails():
    def clip(g):
        return g*min(1, 1/np.linalg.norm(g))

    def clipped(comm, g):
        return np.concatenate(ring_all_reduce(comm, np.array_split(clip(g), comm.size)))

    g = [np.array([3.0, 0]), np.array([0, 0.5])]
    assert not np.allclose(run(clipped, g).results[0], clip(sum(g)))
    small = [v/10 for v in g]                                # where clip is the identity, it is linear
    np.testing.assert_allclose(run(clipped, small).results[0], clip(sum(small)))


def batch_norm(x):
    """x (b, s, h) less its mean over samples and tokens, over its root mean square there."""
    axes, n = (0, 1), x.shape[0]*x.shape[1]
    d = x - x.mean(axes)
    r = 1/np.sqrt((d*d).mean(axes) + 1e-6)

    def back(dy):
        g = dy - dy.mean(axes)
        return r*(g - d*r*r*(g*d).sum(axes)/n)
    return d*r, back


def test_the_gradient_of_batch_norm_is_the_slope():
    h = 1e-5
    along = np.random.default_rng(3).normal(size=W["embed"].shape)
    up, down = (tiny.loss(W | {"embed": W["embed"] + d*along}, TOKENS, TARGETS, enter=batch_norm)[0] for d in (h, -h))
    slope = (tiny.loss(W, TOKENS, TARGETS, enter=batch_norm)[1]()["embed"]*along).sum()
    assert (up - down)/(2*h) == pytest.approx(slope, rel=1e-6)


def test_batch_statistics_fail_because_their_loss_does_not_add():
    hooks = {"enter": batch_norm}
    parts = [tiny.loss(W, *s, **hooks)[0] for s in dealt(2)]
    assert abs(sum(parts) - tiny.loss(W, TOKENS, TARGETS, **hooks)[0]) > 1e-2
    alone = trained([(TOKENS, TARGETS)], program=partial(loss, **hooks)).results[0]
    same(alone, serial(**hooks))                             # the program runs the hook; only the split is wrong
    got = trained(dealt(2), program=partial(loss, **hooks)).results[0]
    assert np.abs(got[1]["head"] - serial(**hooks)[1]["head"]).max() > 1e-3


def test_batch_statistics_are_those_of_a_micro_batch():
    parts = [sums(W, (TOKENS[i:i + 2], TARGETS[i:i + 2]), enter=batch_norm) for i in range(0, 8, 2)]
    got = trained([(TOKENS, TARGETS)], 4, program=partial(loss, enter=batch_norm)).results[0]
    same(got, mean(reduce(add, parts)))
    assert np.abs(got[1]["head"] - serial(enter=batch_norm)[1]["head"]).max() > 1e-3


def test_pairs_are_a_commutative_monoid():
    a, b, c = (sums(W, (TOKENS[i:i + 2], TARGETS[i:i + 2])) for i in (0, 2, 4))
    nothing = {name: 0*value for name, value in a.items()}
    same(add(add(a, b), c), add(a, add(b, c)))
    same(add(a, b), add(b, a))
    same(add(a, nothing), a)
    same(sums(W, (TOKENS[:1], 0*TARGETS[:1] - 1)), nothing)
