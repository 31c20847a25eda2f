"""What the software of a year brings to a step, and the few fitted constants that price it.

A `Stack` holds everything "by year or library"; `constants()` are the fitted shares of specs/calibration.toml; `rates`
says which of them apply to a device, a format and a stack.
"""
import functools
from dataclasses import dataclass
from typing import Any

from . import specs
from .hardware import accelerator

NARROW = "fp8", "int8", "fp4"                             # formats in which attention is not computed
ATTENTION = "scores", "flash2", "flash3"
GRAPHS = "none", "modules", "iteration"
GRAPHED = 1/2                                             # assumed: what graphs of single modules leave of the host's time
SLOW_HEADS = 4                                            # assumed: an unfused kernel's loss where a head is no multiple of 8


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Kernels, graphs and overlap of a training library; the default is a current one.

    attention  "scores" stores them, as before 2022; "flash2" and "flash3" are the generations of fused kernels: they
               differ on Hopper, since cuDNN's and FlashAttention 3 use what it brought
    graphs     how the host starts kernels: "none", CUDA graphs of "modules", or one of the whole "iteration"
    tensor, exchange, sends   shares of the messages inside layers, of the experts' exchanges and of those between
               stages that are waited for
    all_reduce   True where ZeRO-1 sums whole gradients everywhere, as DeepSpeed did
    shared_adapters   False where each rank of a sharded group moves all bytes through its own adapter, as ZeRO-3 of 2021
    balanced   1 where layers are dealt to stages by cost, the output head's included; 0 where evenly
    idle       share of a pipeline's filling that the schedule leaves: 1 for 1F1B, about 1/3 for ZB-H1, 0 for ZB-H2

    ValueError for an unknown generation, and for a share outside 0 to 1.
    """
    attention: str = "flash3"
    graphs: str = "iteration"
    tensor: Any = 0.5
    exchange: Any = 0.5
    sends: Any = 0.3
    all_reduce: bool = False
    shared_adapters: bool = True
    balanced: Any = 0
    idle: Any = 1
    name: str = ""

    def __post_init__(self):
        for field, known in (("attention", ATTENTION), ("graphs", GRAPHS)):
            if getattr(self, field) not in known:
                raise ValueError(f"{field} = {getattr(self, field)!r}; allowed: {', '.join(known)}")
        for field in ("tensor", "exchange", "sends", "balanced", "idle"):
            specs.at_least(0, **{field: getattr(self, field)})
            specs.at_least(0, **{f"1 - {field}": 1 - getattr(self, field)})


@functools.cache
def calibration():
    """The raw entries of specs/calibration.toml by name."""
    return specs.Facts(specs.read("calibration"))


@functools.cache
def constants():
    """The constants of `estimate`, {name: value}; seconds for the host's, shares for the others."""
    return specs.Facts({name: entry["value"] for name, entry in calibration().items() if "value" in entry})


@functools.cache
def _families():
    """Family of each device: {key: family}."""
    return {key: family for family, entry in calibration().items() for key in entry.get("devices", ())}


def ceiling(device, format="bf16"):
    """(FLOP/s, where from) of the fastest matrix product: measured, or carried over to a format or device without one.

    A 4-bit ceiling is the 8-bit one times the ratio of the peaks; that of a device `like` another has its share of the
    peak; a TPU's is its peak. ValueError where nothing is published.
    """
    measured = device.measured
    if format in measured:
        return measured[format]
    if format == "fp16" and "bf16" in measured and device.dense.get("bf16") == device.dense.get("fp16"):
        return measured["bf16"]
    if format == "fp4" and "fp8" in measured:
        return measured["fp8"]*device.peak("fp4")/device.peak("fp8")
    if _families().get(device.key, "").startswith("matmul-tpu"):
        return device.peak(format)
    if device.like:
        other = accelerator(device.like)
        near = format if format in other.dense else "bf16"
        return ceiling(other, near)*device.peak(format)/other.peak(near)
    return device.ceiling(format)


def rates(device, format, stack):
    """{role: (factor, names of constants)} of a device: what the role's number is, factor times the constants.

    Roles: product, expert, wide (16 bits) and attention, FLOP/s; memory, B/s; adapters and links, shares of bandwidths;
    step and routing, seconds, the latter of the host for the experts of a layer and micro-batch.
    """
    family = _families().get(device.key, "matmul-other")
    tpu = family.startswith("matmul-tpu")
    wide = "fp16" if format == "fp16" else "bf16" if "bf16" in device.dense else "fp16"
    matmul = (family,)
    bits = {"fp8": ("eight-bits",), "int8": ("eight-bits",), "fp4": ("four-bits",)}.get(format, ())
    full = ceiling(device, wide)
    kernel = {("matmul-hopper", "flash2"): "attention-flash2-hopper"}.get((family, stack.attention))
    if not kernel:
        new = family in ("matmul-hopper", "matmul-blackwell", "matmul-blackwell-ultra")
        kernel = "attention-flash3" if new else "attention-flash2"
    product = ceiling(device, format), (*matmul, *(() if tpu else bits))
    return dict(
        product=product, expert=(product[0], (*product[1], "experts-tpu")) if tpu else product, wide=(full, matmul),
        attention=(full, matmul if stack.attention == "scores" else (kernel,)), memory=(device.bandwidth, ("memory",)),
        adapters=(1, ("adapters",)), links=(1, ("links",)), step=(1, ("step",)),
        routing=(0, ()) if tpu else (GRAPHED if stack.graphs == "modules" else 1,
                                     ("routing", "graph") if stack.graphs == "iteration" else ("routing",)))
