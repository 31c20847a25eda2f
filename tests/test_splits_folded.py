"""Two meshes over the same ranks: gradients in every fold of eight, which mistakes change them, which folds are refused."""
import itertools

import numpy as np
import pytest

from capacity import run
from capacity.witness import tiny
from capacity.witness.splits import expert, folded, tensor
from capacity.witness.splits.folded import Fold
from capacity.witness.spmd import Each

W = expert.with_experts(tiny.weights(), 8)
BATCH = tiny.data(sequences=8, length=8)
TOTAL, BACK = tiny.loss(W, *BATCH, feed=expert.mixture(2))
GRADS = BACK()
FOLDS = [Fold(t, c, 8//(t*c), te, e) for t, c, te, e in itertools.product((1, 2), (1, 2, 4), (1, 2, 4), (1, 2, 4, 8))
         if te*e <= 8]


def trained(fold, **how):
    each, at = range(fold.ranks), folded.places(BATCH, fold)
    return run(lambda comm, part, mine: folded.loss(comm, part, mine, fold, 2, at, **how),
               [folded.shard(W, r, fold) for r in each], Each([folded.samples(BATCH, r, fold) for r in each])).results


def off(did, fold):
    return max(abs(grads[k] - want[k]).max() for r, (_, grads) in enumerate(did)
               for want in [folded.shard(GRADS, r, fold)] for k in want)


@pytest.mark.parametrize("fold", FOLDS, ids=str)
def test_every_fold_has_the_serial_gradients(fold):
    did = trained(fold)
    assert off(did, fold) < 1e-10 and all(np.isclose(total, TOTAL) for total, _ in did)
    whole = folded.unshard([grads for _, grads in did], fold)
    assert whole.keys() == GRADS.keys() and all(np.allclose(whole[k], GRADS[k], atol=1e-10) for k in GRADS)


def test_parts_are_of_the_whole():
    for fold in FOLDS:
        whole = folded.unshard([folded.shard(W, r, fold) for r in range(fold.ranks)], fold)
        assert all(np.array_equal(whole[k], W[k]) for k in W)


@pytest.mark.parametrize("kind, axes", [(expert.is_expert, ("c", "d")), (lambda k: k.endswith("router"), ("c", "d")),
                                        (lambda k: k.endswith("norm"), ("c", "d")), (lambda k: k.endswith("q"), ("d",)),
                                        (lambda k: k.endswith("q"), ("t", "c", "d"))])
def test_another_group_gives_other_gradients(kind, axes):
    fold = Fold(2, 2, 2, 1, 4)
    did = trained(fold, summed_over=lambda name, between: axes if kind(name) else folded.summed_over(name, between))
    assert off(did, fold) > 1e-2


def test_whole_tokens_between_layers():
    fold = Fold(2, 2, 2, 2, 2)
    assert off(trained(fold, between=tensor.tensor_parallel), fold) < 1e-10


def test_a_fold_that_does_not_divide():
    with pytest.raises(ValueError, match=r"te\*e = 16; allowed: a divisor of t\*c\*d = 8"):
        Fold(2, 1, 4, 2, 8).place(0)
