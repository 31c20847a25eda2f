"""The loader of capacity.witness.loading against cases by hand, and its drawings."""
import numpy as np
import pytest

from capacity.pictures.drawings import loading as drawn
from capacity.witness.loading import as_free, as_ready, in_step, in_turn


def test_two_workers_by_hand():
    run = in_turn([4, 1, 1, 1], [1, 1, 1, 1], workers=2, ahead=1)
    assert list(run.begun) == [0, 0, 4, 5] and list(run.ready) == [4, 1, 5, 6]       # batch 2 waits for batch 1
    assert list(run.taken) == [4, 5, 6, 7] and run.busy() == 4/8
    free = as_ready([4, 1, 1, 1], [1, 1, 1, 1], workers=2, ahead=1)
    assert free.worker == [1, 1, 1, 0] and free.batch == [1, 2, 3, 0] and list(free.taken) == [1, 2, 3, 4] and free.busy() == 4/5


@pytest.mark.parametrize("workers, ahead", [(1, 1), (1, 3), (2, 2), (4, 2)])
def test_regular_times_keep_their_order(workers, ahead):
    load, train = np.full(60, 3.0), np.full(60, 1.0)
    runs = [how(load, train, workers, ahead).ended for how in (in_turn, as_ready, as_free)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


def test_never_more_ahead_than_asked():
    rng = np.random.default_rng(3)
    load, train = rng.exponential(1, (2, 400))
    for how in (in_turn, as_ready, as_free):
        for workers, ahead in ((1, 2), (3, 1), (4, 2)):
            run = how(load*workers, train, workers, ahead)
            for t in run.taken[50:]:
                assert ((run.begun < t) & (run.taken > t)).sum() <= workers*ahead
            assert (run.taken[1:] >= run.ended[:-1]).all() and (run.ready <= run.taken).all()


def test_one_in_step_is_one_with_steady_steps():
    load = np.random.default_rng(4).exponential(1, (500, 1))
    assert np.isclose(in_step(load, 2, 3, first=100), in_turn(load[:, 0], 1, 2, 3).busy(100))


@pytest.mark.parametrize("W", [680, 644, 336, 300])
def test_drawings_keep_inside_their_sheet(W):
    rng = np.random.default_rng(5)
    load, train = rng.exponential(1, (2, 16))
    sheets = [drawn.graph(W), drawn.graph(W, 2, 3), drawn.states(W)] + [
        drawn.lanes(W, how(load*w, train, w, 2), w, 20) for w in (1, 2, 4) for how in (in_turn, as_ready)]
    assert [s.faults() for s in sheets] == [[]]*len(sheets)
