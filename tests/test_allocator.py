"""The ledger of `capacity.witness.allocator` against NumPy's own, and the caching allocator's laws."""
import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.witness import allocator as A
from capacity.witness import tiny

NUMPY = 389047                                    # the domain under which NumPy tells tracemalloc of its buffers


def test_the_ledger_is_numpys_own():
    """What lives at the turn: NumPy's allocations, as Python traces them, are those of the ledger."""
    n = A.SIZES
    raw = tiny.weights(3, n["h"], n["a"], n["g"], n["d"], n["f"], n["v"])
    tokens, targets = (a.copy() for a in tiny.data(1, n["s"], n["v"]))
    gc.collect()
    tracemalloc.start()
    ledger = A.Counted.ledger = A.Ledger(n)
    try:
        w = {name: a.astype(A.NARROW).view(A.Counted) for name, a in raw.items()}
        x, y = (a[None, 0].copy().view(A.Counted) for a in (tokens, targets))
        loss, back = tiny.stage(w, x, y, cross_entropy=A.wide_cross_entropy, **A.FUSED)
        gc.collect()
        traced = sum(t.size for t in tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, NUMPY)]).traces)
    finally:
        A.Counted.ledger = None
        tracemalloc.stop()
    mine = sum(int(np.prod([n[c] for c in shape], dtype=int))*np.dtype(dtype).itemsize
               for _, _, shape, dtype, _, died in ledger.buffers if died is None)
    positions = n["s"]*8                          # np.arange of the positions is no array of the model
    assert traced - positions == mine, (traced, mine)


@pytest.mark.parametrize("gradients", ["made", "narrow", "wide"])
def test_the_weights_move_as_adam_says(gradients):
    """The ledger watches a real step: its gradients are those of `tiny`, so nothing was skipped to save memory."""
    t = A.record(2, gradients=gradients)
    begun = [b for b in t.buffers if b.phase == "start"]
    kinds = {kind: sum(t.nbytes(b) for b in begun if b.kind == kind) for kind in A.KINDS}
    params = kinds["weights"]//4
    assert kinds["optimizer"] == 24*params
    assert kinds["gradients"] == {"made": 0, "narrow": 4, "wide": 8}[gradients]*params
    assert t.total()[-1] == kinds["weights"] + kinds["optimizer"] + kinds["gradients"]


def test_fused_kernels_compute_what_tiny_computes():
    w = tiny.weights(2)
    tokens, targets = tiny.data()
    want, back = tiny.loss(w, tokens, targets)
    got, back_fused = tiny.loss(w, tokens, targets, attend=A.flash(3), feed=A.fused_swiglu)
    assert np.isclose(want, got)
    for (name, a), b in zip(back().items(), back_fused().values()):
        assert np.allclose(a, b, atol=1e-5), name              # its weights pass through the narrow format


def test_sizes_must_tell_letters_apart():
    with pytest.raises(AssertionError, match="one size"):
        A.record(1, sizes={**A.SIZES, "f": A.SIZES["h"]})
    with pytest.raises(ValueError, match="allowed: made, narrow, wide"):
        A.record(1, gradients="fp8")


@pytest.mark.parametrize("gradients, traffic", [("made", "kept"), ("narrow", "kept"), ("wide", "kept"),
                                                ("narrow", "passing"), ("wide", "passing")])
def test_traffic_changes_no_number_and_takes_its_bytes(gradients, traffic):
    bare, sent = A.record(2, gradients=gradients), A.record(2, gradients=gradients, traffic=traffic)
    alive = lambda t: sorted((b.kind, b.shape, b.dtype) for b in t.buffers if b.died is None or b.died >= t.marks["end"])
    own = [b for b in sent.buffers if b.kind == "traffic"]
    weights = sum(sent.nbytes(b) for b in sent.buffers if b.kind == "weights")
    if traffic == "kept":
        assert sum(map(sent.nbytes, own)) == weights == sent.peak().bytes - bare.peak().bytes
        assert [k for k in alive(sent) if k[0] != "traffic"] == alive(bare)
    else:
        head = sent.living()["traffic"][:sent.marks["back to block 1"] + 1].max()
        assert sum(map(sent.nbytes, own)) == weights and alive(sent) == alive(bare)
        assert head == max(sum(sent.nbytes(b) for b in sent.buffers if b.kind == "weights" and "v" in b.shape)//2
                           + sent.nbytes(next(b for b in sent.buffers if b.shape == ("h",) and b.kind == "weights")), 0)


def test_traffic_that_nobody_knows():
    with pytest.raises(ValueError, match="traffic = 'ring'; allowed: None, kept, passing"):
        A.record(1, traffic="ring")
    with pytest.raises(ValueError, match="gradients = 'made'; allowed: narrow, wide"):
        A.record(1, traffic="passing")


def test_more_sequences_keep_no_more():
    one, three = A.record(2, gradients="wide"), A.record(2, gradients="wide", microbatches=3)
    assert one.peak().bytes == three.peak().bytes


@pytest.mark.parametrize("n, segment", [(1, 2*A.MiB), (A.MiB, 2*A.MiB), (A.MiB + 1, 20*A.MiB), (10*A.MiB - 512, 20*A.MiB),
                                        (10*A.MiB, 10*A.MiB), (10*A.MiB + 1, 12*A.MiB)])
def test_segments(n, segment):
    assert A.round_segment(n) == segment
    cache = A.Caching()
    cache.malloc(n)
    assert cache.reserved == segment


@pytest.mark.parametrize("expandable", [False, True])
@settings(max_examples=60, deadline=None)
@given(ops=st.lists(st.tuples(st.integers(0, 40*A.MiB), st.integers(0, 10**6)), max_size=60))
def test_blocks_tile_their_segments(expandable, ops):
    """Blocks of a segment touch and never overlap, free neighbours are one, bytes add up, and all of it comes back."""
    cache, names = A.Caching(expandable), []
    for n, which in ops:
        if n % 3 and n:
            names.append(cache.malloc(n))
        elif names:
            cache.release(names.pop(which % len(names)))
        for size, blocks in cache.layout():
            ends = [0]
            for start, length, _ in blocks:
                assert start == ends[-1] and length > 0
                ends.append(start + length)
            assert ends[-1] == size
            assert not any(not a[2] and not b[2] for a, b in zip(blocks, blocks[1:]))
        assert cache.reserved == sum(size for size, _ in cache.layout())
        assert cache.requested <= cache.allocated <= cache.reserved
    for name in names:
        cache.release(name)
    assert cache.allocated == cache.requested == 0 and cache.split == 0


def test_a_full_device_gives_free_segments_back_and_then_fails():
    cache = A.Caching(limit=40*A.MiB)
    first = cache.malloc(30*A.MiB)
    with pytest.raises(MemoryError, match="41,943,040 on the device"):
        cache.malloc(20*A.MiB)
    cache.release(first)
    cache.malloc(36*A.MiB)
    assert cache.retries == 2 and cache.reserved == 36*A.MiB
