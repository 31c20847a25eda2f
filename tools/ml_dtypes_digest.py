"""Digests of what ml_dtypes rounds, alone and in blocks with a scale; tests/test_formats.py holds them.

    python3 -m venv /tmp/few && /tmp/few/bin/pip install ml_dtypes==0.6.0 numpy && /tmp/few/bin/python tools/ml_dtypes_digest.py

It imports nothing of this project; every number and every scale is rounded by a cast.  MX: a scale is two to the exponent
of the largest size less that of the format's largest number, numbers beyond the last stop there, int8 counts sixty-fourths
and is symmetric.  NVFP4: an E4M3 scale for 16 numbers behind one factor for the tensor.  Its blocks differ by a factor of 256
at most, so that no scale rounds to zero: there conventions part, and none is compared.
"""
import hashlib

import ml_dtypes as m
import numpy as np

FLOATS = {"e2m1": m.float4_e2m1fn, "e2m3": m.float6_e2m3fn, "e3m2": m.float6_e3m2fn, "e4m3": m.float8_e4m3fn,
          "e5m2": m.float8_e5m2}


def digest(x):
    return hashlib.sha256((np.asarray(x, float) + 0.0).tobytes()).hexdigest()[:16]          # one zero


def middles(name):
    """Each number of a format, the middle to the next one, and three places on either side of it."""
    codes = np.arange(2**(1 + int(name[1]) + int(name[3])), dtype=np.uint8)
    v = codes.view(FLOATS[name]).astype(float)
    v = np.unique(v[np.isfinite(v) & (v >= 0)])
    x = (v[:-1, None] + np.diff(v)[:, None]*np.arange(8)/8).ravel()
    return np.concatenate([x, -x])


def cast(x, name):
    """x rounded by ml_dtypes, and clipped to the largest number, as a conversion that saturates does."""
    if name == "int8":
        return np.clip(np.rint(x*64), -127, 127)/64
    top = float(m.finfo(FLOATS[name]).max)
    return np.clip(x, -top, top).astype(FLOATS[name]).astype(float)


def blocks(size, spread):
    """200 blocks of normal numbers whose sizes differ by powers of two, one of them with an outlier, one of zeros."""
    rng = np.random.default_rng(30)
    x = rng.normal(size=(200, size))*2.0**rng.integers(-spread, spread, (200, 1))
    x[7, 3] *= 30
    x[11] = 0
    return x


def mx(x, name):
    """Blocks of 32 behind a power of two, read from the bits of the largest number."""
    emax = 0 if name == "int8" else int(np.log2(float(m.finfo(FLOATS[name]).max)))
    out = np.zeros_like(x)
    for i, block in enumerate(x):
        top = np.abs(block).max()
        if top:
            scale = float(np.ldexp(1.0, np.frexp(top)[1] - 1 - emax).astype(m.float8_e8m0fnu))
            out[i] = cast(block/scale, name)*scale
    return out


def nvfp4(x):
    """Blocks of 16 behind an E4M3 number, and one factor, here in 64 bits, that brings the largest of these to 448."""
    whole = np.abs(x).max()/(6*448)
    out = np.zeros_like(x)
    for i, block in enumerate(x):
        scale = float(cast(np.abs(block).max()/6/whole, "e4m3"))*whole
        if scale:
            out[i] = cast(block/scale, "e2m1")*scale
    return out


if __name__ == "__main__":
    print(f"ml_dtypes {m.__version__}")
    for name in FLOATS:
        print("numbers", name, digest(cast(middles(name), name)))
    for name in ("int8", *FLOATS):
        print("MX blocks of 32", name, digest(mx(blocks(32, 12), name)))
    print("NVFP4 blocks of 16", digest(nvfp4(blocks(16, 4))))
