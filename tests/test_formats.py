"""Lists of codes against numpy's float16 and printed tables, rounding, scales, narrow sums, and a transformer in few bits."""
import hashlib
from fractions import Fraction

import numpy as np
import pytest

from capacity import cut_sum_loss, half_step, largest_mark, rounding_rms, stochastic_spread
from capacity.witness import formats, tiny
from capacity.witness.formats import FORMATS, at_random, marks, nearest, scaled, values

each = pytest.mark.parametrize("f", FORMATS.values(), ids=lambda f: f.name)
floats = [f for f in FORMATS.values() if f.rule != "integer"]


# ---- the lists
def test_fp16_is_numpys_float16():
    want = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(float)
    assert np.array_equal(values(FORMATS["fp16"]), want, equal_nan=True)


def test_bf16_is_the_upper_half_of_float32():
    with np.errstate(invalid="ignore"):
        want = (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32).astype(float)
    assert np.array_equal(values(FORMATS["bf16"]), want, equal_nan=True)


PRINTED = {"e2m1": (4, 2, .5, 1, 6, 0, 0), "e2m3": (6, 2, .125, 1, 7.5, 0, 0), "e3m2": (6, 3, .0625, .25, 28, 0, 0),
           "e4m3": (8, 4, 2**-9, .015625, 448, 2, 0), "e5m2": (8, 5, 2**-16, 2**-14, 57344, 6, 2),
           "fp16": (16, 5, 2**-24, 2**-14, 65504, 2046, 2), "bf16": (16, 8, 2**-133, 2**-126, 255/128*2.0**127, 254, 2),
           "int8": (8, 0, 1/64, None, 127/64, 0, 0)}


@pytest.mark.parametrize("name", PRINTED)
def test_the_rows_of_graphcores_table(name):
    """gfloat, docs/source/formats.rst at b142762de8: bits, exponent bits, least, least normal, largest, NaNs, infinities."""
    f, v = FORMATS[name], values(FORMATS[name])
    bits, exponent, least, normal, largest, nans, infinities = PRINTED[name]
    assert (f.bits, f.exponent) == (bits, exponent)
    assert (marks(f)[1], marks(f)[-1], int(np.isnan(v).sum()), int(np.isinf(v).sum())) == (least, largest, nans, infinities)
    assert normal is None or normal == 2.0**(1 - f.bias)


def test_e2m1_is_eight_sizes():
    assert marks(FORMATS["e2m1"]).tolist() == [0, .5, 1, 1.5, 2, 3, 4, 6]


def test_no_list_has_changed():
    """One digest of all codes of all lists, in float64: they were compared with PyTorch's conversions in lab 16, and those
    of 4, 6, 8 and 16 bits with all codes of ml_dtypes 0.6.0."""
    all_ = np.concatenate([np.nan_to_num(values(f), nan=12345.0, posinf=1e300, neginf=-1e300) for f in FORMATS.values()])
    assert hashlib.sha256(all_.tobytes()).hexdigest()[:16] == DIGEST


DIGEST = "486e8087c04d3660"


def test_a_code_outside_is_named():
    with pytest.raises(ValueError, match="code is 16; allowed: 0 to 15 in e2m1"):
        formats.value(16, FORMATS["e2m1"])


@pytest.mark.parametrize("f", floats, ids=lambda f: f.name)
def test_the_largest_mark(f):
    top = 2.0**(2**f.exponent - 1 - (f.rule == "ieee") - f.bias)
    assert largest_mark(2.0**-f.mantissa, top, int(f.rule == "one nan")) == marks(f)[-1]


# ---- rounding
def numbers(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n)*2.0**rng.integers(-30, 20, n)


@each
def test_nearest_is_nearest_and_a_projection(f):
    x, v = numbers(2000), values(f)[np.isfinite(values(f))]
    y = nearest(x, f, "last")
    best = np.abs(np.clip(x, v.min(), v.max())[:, None] - v[None, ::1 if len(v) < 999 else 1]).min(1) if len(v) < 999 else None
    if best is not None:
        inside = np.abs(x) <= marks(f)[-1]
        assert np.allclose(np.abs(y - x)[inside], best[inside])
    assert np.array_equal(nearest(y, f, "last"), y)
    assert np.array_equal(nearest(marks(f), f), marks(f))


def test_fp16_rounds_as_numpy_does():
    x = numbers().astype(np.float32)
    with np.errstate(over="ignore"):
        want = x.astype(np.float16).astype(float)
    assert np.array_equal(nearest(x, FORMATS["fp16"]), want)
    ends = np.array([65504, 65519.9, 65520, 65520.1, -1e9, np.inf, np.nan, 2**-25, 1.01*2**-25])
    assert np.array_equal(nearest(ends, FORMATS["fp16"]), [65504, 65504, np.inf, np.inf, -np.inf, np.inf, np.nan, 0, 2**-24],
                          equal_nan=True)


@pytest.mark.parametrize("name, digest", {"e2m1": "dd13d51a045c6bfd", "e2m3": "3ce32abca8372024", "e3m2": "33a4724f5e20424f",
                                          "e4m3": "410f1948dc966260", "e5m2": "38c04a170e9ad858"}.items())
def test_few_bits_round_as_ml_dtypes_does(name, digest):
    """Each mark, the middle to the next one, and three places on either side of it; digests by tools/ml_dtypes_digest.py."""
    m = marks(FORMATS[name])
    x = (m[:-1, None] + np.diff(m)[:, None]*np.arange(8)/8).ravel()
    got = nearest(np.concatenate([x, -x]), FORMATS[name]) + 0.0          # one zero
    assert hashlib.sha256(got.tobytes()).hexdigest()[:16] == digest


def test_bf16_rounds_as_the_upper_half_of_float32_with_its_carry():
    x = numbers().astype(np.float32)
    word = x.view(np.uint32)
    want = ((word + 0x7fff + (word >> 16 & 1)) & 0xffff0000).view(np.float32)
    assert np.array_equal(nearest(x, FORMATS["bf16"]), want.astype(float))


def test_e4m3_stops_at_its_last_mark():
    assert nearest(np.array([464, 1e9, np.inf, -500]), FORMATS["e4m3"]).tolist() == [448, 448, 448, -448]


@each
def test_random_rounding_takes_a_neighbour_and_is_right_on_average(f):
    rng = np.random.default_rng(3)
    top = marks(f)[-1]
    for x in (.37*min(top, 4), -.9*min(top, 2), 0.0, float(marks(f)[3])):
        got = at_random(np.full(20_000, x), f, rng)
        ends = np.unique(got)
        assert len(ends) <= 2 and set(ends) <= set(values(f))
        step = ends[-1] - ends[0] if len(ends) == 2 else 0
        assert abs(got.mean() - x) <= 4*step/2/20_000**.5 + 1e-300
    assert np.isnan(at_random(np.array([np.nan]), f, rng)).all()
    assert at_random(np.array([3*top]), f, rng) == top


def test_an_unknown_end_is_named():
    with pytest.raises(ValueError, match="over is 'nan'; allowed: infinity, last"):
        nearest(1.0, FORMATS["fp16"], "nan")


@pytest.mark.parametrize("name, w", [("bf16", 1.0), ("bf16", 1.9921875), ("fp16", 3.0), ("e4m3", 13.0)])
def test_half_a_step_moves_a_weight(name, w):
    f = FORMATS[name]
    need = half_step(w, 2.0**-f.mantissa)
    assert nearest(w + .999*need, f) == w < nearest(w + 1.001*need, f)


def test_spread_of_a_path():
    rng, w = np.random.default_rng(1), np.ones(2000)
    for _ in range(500):
        w = at_random(w + 1e-3, FORMATS["bf16"], rng)
    want = stochastic_spread(2**-7, 500, 1e-3*2**7)
    assert w.std() == pytest.approx(want, rel=.06) and w.mean() == pytest.approx(1.5, abs=4*want/2000**.5)


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "fp16"])
def test_the_mean_square_of_a_rounding(name):
    f, x = FORMATS[name], 2**np.random.default_rng(0).uniform(-3, 5, 100_000)
    seen = np.sqrt(((nearest(x, f)/x - 1)**2).mean())
    assert seen == pytest.approx(rounding_rms(2.0**-f.mantissa), rel=.02)


# ---- scales
def test_an_mx_scale_is_a_power_of_two_and_a_block_is_its_own():
    x = np.random.default_rng(0).normal(size=(4, 64))
    y = scaled(x, FORMATS["e2m1"], 32, "e8m0")
    assert np.array_equal(y[2, 32:], scaled(x[2, 32:], FORMATS["e2m1"], 32, "e8m0"))
    assert np.array_equal(scaled(8*x, FORMATS["e2m1"], 32, "e8m0"), 8*y)
    top = np.array([[7.9, *[1.0]*31]])                     # 7.9 is clipped to 6, and rounded up to a scale of 2
    assert scaled(top, FORMATS["e2m1"], 32, "e8m0")[0, 0] == 6 and scaled(top, FORMATS["e2m1"], 32, "e8m0 up")[0, 0] == 8


def some_blocks(size, spread):
    """200 blocks whose sizes differ by powers of two, one with an outlier, one of zeros: as in tools/ml_dtypes_digest.py."""
    rng = np.random.default_rng(30)
    x = rng.normal(size=(200, size))*2.0**rng.integers(-spread, spread, (200, 1))
    x[7, 3] *= 30
    x[11] = 0
    return x


BLOCKS = {("int8", 32, "e8m0"): "87ce07ab0da7a5e2", ("e2m1", 32, "e8m0"): "1a16e19965516873",
          ("e2m3", 32, "e8m0"): "bddd11138f64bc06", ("e3m2", 32, "e8m0"): "31acf05c96ccf89e",
          ("e4m3", 32, "e8m0"): "8c086aa8fba8465c", ("e5m2", 32, "e8m0"): "81eb0f469dbcfd60",
          ("e2m1", 16, "nvfp4"): "7406b25d853a8853"}


@pytest.mark.parametrize("name, size, scale", BLOCKS)
def test_blocks_are_those_of_a_quantiser_made_of_casts(name, size, scale):
    """MXINT8, MXFP4, both MXFP6, both MXFP8 and NVFP4, from casts of ml_dtypes 0.6.0 (tools/ml_dtypes_digest.py)."""
    x = some_blocks(size, 4 if scale == "nvfp4" else 12)
    got = scaled(x, FORMATS[name], size, scale) + 0.0                    # one zero
    assert hashlib.sha256(got.tobytes()).hexdigest()[:16] == BLOCKS[name, size, scale]
    for rival in {"float", "e8m0", "e8m0 up", "nvfp4"} - {scale}:
        other = scaled(x, FORMATS[name], size, rival) + 0.0
        assert hashlib.sha256(other.tobytes()).hexdigest()[:16] != BLOCKS[name, size, scale], rival


def test_nvfp4_holds_the_largest_number_of_a_block_to_e4m3():
    x = np.random.default_rng(0).normal(size=(8, 32))*np.exp(np.random.default_rng(1).normal(size=(8, 1)))
    y, at = scaled(x, FORMATS["e2m1"], 16, "nvfp4").reshape(-1, 16), np.abs(x.reshape(-1, 16)).argmax(1)
    rows = np.arange(len(at))
    assert np.abs(y[rows, at]/x.reshape(-1, 16)[rows, at] - 1).max() <= 2**-4
    assert (scaled(np.zeros((1, 16)), FORMATS["e2m1"], 16, "nvfp4") == 0).all()


@pytest.mark.parametrize("bad, said", [(dict(scale="e5"), "scale is 'e5'"), (dict(block=5), "block is 5")])
def test_bad_scales_are_named(bad, said):
    with pytest.raises(ValueError, match=said):
        scaled(np.ones((2, 8)), FORMATS["e2m1"], **bad)


@pytest.mark.parametrize("n", [1, 2, 16, 64])
def test_a_hadamard_matrix_turns_and_turns_back(n):
    x = np.random.default_rng(0).normal(size=(3, 2*n))
    y, turn = formats.rotated(x, n, np.random.default_rng(1))
    assert np.allclose(turn @ turn.T, np.eye(n)) and np.allclose(np.abs(turn), n**-.5)
    assert np.allclose((y.reshape(-1, n) @ turn.T).reshape(x.shape), x)


def test_a_hadamard_matrix_of_twelve_is_refused():
    with pytest.raises(ValueError, match="n is 12; allowed: a power of two"):
        formats.hadamard(12)


# ---- sums
def test_kept_bits():
    assert formats.kept(np.array([5.0, 7.0, -7.0, 0.0]), 2).tolist() == [4, 8, -8, 0]         # a tie to even: 5 is 4
    assert formats.kept(np.array([5.0, 7.0, -7.0, 0.0]), 2, "cut").tolist() == [4, 6, -6, 0]
    x = np.random.default_rng(0).normal(size=1000)
    assert np.array_equal(formats.kept(x, 24), x.astype(np.float32).astype(float))
    assert np.array_equal(formats.kept(x, 11), x.astype(np.float16).astype(float))


def test_sums_of_all_bits_are_exact():
    x = np.random.default_rng(0).integers(-8, 9, (256, 5)).astype(float)
    for got in (formats.chain_sum(x, 24), formats.tree_sum(x, 24), formats.tensor_core(x, 30), formats.tensor_core(x, 30, promote=64)):
        assert np.array_equal(got, x.sum(0))


def test_a_chain_of_fp32_is_numpys():
    x = np.random.default_rng(0).normal(size=(100, 7)).astype(np.float32)
    want = np.zeros(7, np.float32)
    for row in x:
        want = want + row
    assert np.array_equal(formats.chain_sum(x.astype(float), 24), want.astype(float))


def test_a_core_cuts_below_its_largest():
    """Sixteen and 2**-13 of it are kept at 13 bits behind the leading one; what is smaller is dropped."""
    x = np.array([16.0, 16*2**-13, 16*2**-14])[:, None]
    assert formats.tensor_core(x)[0] == 16 + 16*2**-13
    exact = sum(map(Fraction, x[:, 0]))
    assert Fraction(formats.tensor_core(x)[0]) < exact


@pytest.mark.parametrize("group", [8, 32, 128])
def test_the_loss_of_a_cut_sum_depends_on_its_length_and_not_on_the_group(group):
    x = np.random.default_rng(0).random((2048, 40))
    lost = (1 - formats.tensor_core(x, group=group)/x.sum(0)).mean()
    law = cut_sum_loss(2048, 2**-13)
    assert .9*law < lost < 9/8*1.05*law


# ---- a transformer
def test_products_in_full_are_the_transformers():
    w, data = tiny.weights(**formats.SIZE), tiny.data(vocab=32)
    value, back = tiny.loss(w, *data)
    true = back()
    got, back = formats.rounded_loss(w, *data)
    grads = back()
    assert np.isclose(got, value, rtol=1e-12) and all(np.allclose(grads[k], true[k]) for k in true)
    grads = formats.rounded_loss(w, *data, turn=formats.hadamard(32))[1]()
    assert all(np.allclose(grads[k], true[k]) for k in true)


def test_every_matrix_of_a_product_ends_in_what_is_summed():
    shapes = []

    def seen(x):
        shapes.append(x.shape)
        return x
    formats.rounded_loss(tiny.weights(**formats.SIZE), *tiny.data(vocab=32), inputs=seen)[1]()
    assert {s[1] for s in shapes} == {32, 64} and {s[0] for s in shapes} == {32, 64}


def test_what_breaks_first():
    """Two seeds: bf16 to the nearest lags, at random does not; E4M3 without a scale breaks, with one it does not."""
    for seed in range(2):
        def loss(**how):
            return formats.train(60, rate=.005, seed=seed, **how)[0]
        rng = np.random.default_rng(seed)
        exact, bf16, e4m3 = loss(), FORMATS["bf16"], FORMATS["e4m3"]
        assert loss(store=lambda x: nearest(x, bf16)) - exact > .03 > abs(loss(store=lambda x: at_random(x, bf16, rng)) - exact)
        raw = dict.fromkeys(("inputs", "weights", "gradients"), lambda x: nearest(x, e4m3))
        one = dict.fromkeys(("inputs", "weights", "gradients"), lambda x: scaled(x, e4m3))
        assert loss(**raw) - exact > .08 > .03 > abs(loss(**one) - exact)


# ---- numbers worth knowing
def test_sums_of_a_thousand_ranks_in_bf16():
    """1,024 normal numbers: root mean square error over that of the sum, of a chain and of a tree, in per cent."""
    x = np.random.default_rng(30).normal(size=(1024, 4000))
    exact, given_ = x.sum(0), formats.kept(x, 8)
    off = [100*np.sqrt(((s - exact)**2).mean()/(exact**2).mean()) for s in (
        formats.chain_sum(given_, 8), formats.tree_sum(given_, 8))]
    assert off == [pytest.approx(3.7, rel=.06), pytest.approx(.58, rel=.06)]


@pytest.mark.parametrize("name, bits, percent", [("fp16", 11, .0293), ("bf16", 8, .2346)])
def test_a_product_summed_wide_errs_by_two_roundings(name, bits, percent):
    """Whatever the length: each term carries two independent roundings."""
    assert 100*2**.5*rounding_rms(2.0**-FORMATS[name].mantissa) == pytest.approx(percent, rel=.002)
    rng = np.random.default_rng(0)
    for n in (30, 1000):
        a, b = rng.normal(size=(2, 2000, n))
        got, want = (formats.kept(a, bits)*formats.kept(b, bits)).sum(1), (a*b).sum(1)
        assert 100*np.sqrt(((got - want)**2).mean()/(want**2).mean()) == pytest.approx(percent, rel=.08)


@pytest.mark.parametrize("name, limit", [("fp16", 11.09), ("bf16", 88.72)])
def test_where_an_exponential_overflows(name, limit):
    assert np.isfinite(nearest(np.exp(limit), FORMATS[name])) and np.isinf(nearest(np.exp(limit + .005), FORMATS[name]))


@pytest.mark.parametrize("N", [5, 50])
def test_a_scale_that_doubles_after_n_clean_steps_skips_one_of_n_plus_one(N):
    scale, clean, skipped, steps = 1.0, 0, 0, 100*(N + 1)
    for _ in range(20*N + steps):
        over = scale*1.5 > 2.0**12                       # the largest gradient is 1.5, all fit below 4,096
        scale, clean = (scale/2, 0) if over else (scale, clean + 1)
        if clean == N:
            scale, clean = 2*scale, 0
        skipped += over
    assert skipped/steps == pytest.approx(1/(N + 1), rel=.1)


@each
def test_looking_up_is_searching(f):
    """On turns, right beside them, on marks, far away and at random: the mark that a search among all turns finds."""
    rng, turns = np.random.default_rng(3), formats.turns(f)
    x = np.concatenate([turns, np.nextafter(turns, 0), np.nextafter(turns, np.inf), formats.marks(f), [0, 5e-324, 1e308, np.inf],
                        rng.normal(size=20_000)*2.0**rng.integers(-160, 140, 20_000)])
    x = np.concatenate([x, -x])
    for over in ("infinity", "last"):
        want = np.copysign(formats.reached(f, over)[np.searchsorted(turns, np.abs(x))], x)
        got = nearest(x, f, over)
        assert np.array_equal(got, want) and np.array_equal(np.signbit(got), np.signbit(want))
    assert np.isnan(nearest(np.nan, f)) and nearest(1.0, f).shape == ()
