"""Lab 16. Formats of few bits: the lists of `capacity.witness.formats` against PyTorch's conversions, bit for bit.

    torchrun --standalone --nproc-per-node=4 labs/lab16_formats.py

All codes, and a million random floats on each rank, in fp16, bf16, E4M3, E5M2 and E8M0; E2M1 where this PyTorch converts
it; and a ring all-reduce of bf16 gradients against one in fp32.  What PyTorch does beyond the last number is stated.

Before you look (chapter 30): how many different numbers does E4M3 have?

Break it: E4M3 in the variant of another manufacturer, `"e4m3": torch.float8_e4m3fnuz`.
"""
import numpy as np
import torch
import torch.distributed as dist

from capacity.witness import formats
from capacity.witness.collectives import ring_all_reduce
from asking import answer, broken
from processes import check, lab

PAIRS = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
WORDS = {1: torch.uint8, 2: torch.uint16}


def all_codes(comm):
    """Every bit pattern means the same number."""
    for name, dtype in PAIRS.items():
        want = formats.values(formats.FORMATS[name])
        codes = torch.arange(len(want), dtype=torch.int32).to(WORDS[dtype.itemsize])
        if name == "e4m3":
            dtype = torch.float8_e4m3fnuz if broken() else dtype
        got = codes.view(dtype).to(torch.float64).numpy()
        if name == "e4m3":
            answer(len(set(got[np.isfinite(got)])), "numbers")
        check(comm, f"{name}: all {len(want):,} codes mean what the list says", np.array_equal(got, want, equal_nan=True))
    scales = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(torch.float8_e8m0fnu).to(torch.float64).numpy()
    check(comm, "E8M0: code c is 2 to the c - 127, and code 255 is NaN",
          np.array_equal(scales[:255], 2.0**(np.arange(255) - 127)) and np.isnan(scales[255]))


def floats(comm, n=1_000_000):
    """Random bit patterns of fp32, other ones on each rank, and normal numbers near the formats' ends."""
    rng = np.random.default_rng(16 + comm.rank)
    anything = rng.integers(0, 2**32, n//2, dtype=np.uint32).view(np.float32)
    sizes = rng.normal(size=n - n//2)*2.0**rng.integers(-30, 20, n - n//2)
    return np.concatenate([anything, sizes.astype(np.float32)])


def rounding(comm):
    """A conversion is rounding to the nearest mark, ties to even; what lies beyond the last mark differs."""
    x = floats(comm)
    with np.errstate(invalid="ignore"):                  # fp32 has NaNs that signal when they are converted
        wide = x.astype(float)
    for name, dtype in PAIRS.items():
        f = formats.FORMATS[name]
        got = torch.from_numpy(x).to(dtype).to(torch.float64).numpy()
        want = formats.nearest(wide, f)
        check(comm, f"{name}: a million random floats on each rank convert to the same bits"
                    + (", infinity beyond the last number" if f.rule == "ieee" else
                       f", {formats.marks(f)[-1]:g} beyond the last number, for infinity too"),
              np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got[x == x]), np.signbit(want[x == x])))
        ties = (formats.marks(f)[:-1] + formats.marks(f)[1:])/2
        ties = ties[ties.astype(np.float32) == ties].astype(np.float32)
        got = torch.from_numpy(ties).to(dtype).to(torch.float64).numpy()
        check(comm, f"{name}: all {len(ties):,} ties go to the even code", np.array_equal(got, formats.nearest(ties, f)))
    try:
        torch.zeros(2).to(torch.float4_e2m1fn_x2)
        converts = True
    except NotImplementedError:
        converts = False
    check(comm, f"E2M1: this PyTorch {'converts' if converts else 'has the type, and no conversion to it on this device'}", True)


def ring(comm, n=4096):
    """The same bf16 gradients, added by the ring in bf16 and in fp32: each hop of the first rounds."""
    P = comm.size
    blocks = torch.from_numpy(np.random.default_rng(comm.rank).normal(size=(P, n//P))).to(torch.bfloat16)
    sums = {}
    for dtype in (torch.bfloat16, torch.float32):
        mine = [b.to(dtype) for b in blocks]
        sums[dtype] = torch.cat([b.double() for b in ring_all_reduce(comm, mine)])
    exact = blocks.double().flatten()
    dist.all_reduce(exact)
    sizes = blocks.double().abs().flatten()
    dist.all_reduce(sizes)
    wrong = {dtype: (v - exact).abs() for dtype, v in sums.items()}
    check(comm, f"a ring of {P} in bf16 errs by at most (P - 1) roundings of the sum of sizes",
          bool((wrong[torch.bfloat16] <= (P - 1)*2.0**-8*1.01*sizes).all()))
    relative = {dtype: float(v.norm()/exact.norm()) for dtype, v in wrong.items()}
    once = float((sums[torch.float32].to(torch.bfloat16).double() - exact).norm()/exact.norm())
    check(comm, f"in bf16 the ring errs more than in fp32, rounded at the end ({100*relative[torch.bfloat16]:.2f} and "
                f"{100*once:.2f} %)" if P == 4 else "in bf16 the ring errs more than in fp32, rounded at the end",
          relative[torch.float32] < 1e-6 and (P == 1 or relative[torch.bfloat16] > once > 0))


def main(comm):
    all_codes(comm)
    rounding(comm)
    ring(comm)


if __name__ == "__main__":
    lab(main)
