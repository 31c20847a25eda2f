"""Arithmetic: how many FLOP a job needs, and how fast a device can do them."""
from __future__ import annotations

from ..algebra import ceil, maximum, minimum, sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Flops, FlopsPerByte, FlopsPerSecond, Share, Ratio, Seconds


# ---- chapter 1: the three walls ------------------------------------------------------------------
@formula(chapter="01-scale-imperative", source="golub2013")
def matmul_flops(rows: Count, inner: Count, cols: Count, *, multiply_add: Flops = 2) -> Flops:
    """FLOP of a matrix product, (rows x inner) times (inner x cols); a multiply-add counts as two."""
    return multiply_add*rows*inner*cols


@formula(chapter="01-scale-imperative", source="kaplan2020")
def train_flops(params: Count, tokens: Count, *, per_weight: Flops = 6) -> Flops:
    """FLOP of training: two per parameter and token forward, four backward; attention scores left out."""
    return per_weight*params*tokens


@formula(chapter="01-scale-imperative", source="chowdhery2022")
def train_flops_per_token(matmul_params: Count, layers: Count, attention_width: Count, context: Ratio,
                          *, per_weight: Flops = 6, per_pair: Flops = 12) -> Flops:
    """FLOP of training on one token, attention scores included.

    `context` is the number of keys a query attends to on average: S for full attention, S/2 for causal.
    """
    return per_weight*matmul_params + per_pair*layers*attention_width*context


@formula(chapter="01-scale-imperative", source="chowdhery2022")
def training_time(flops: Flops, P: Count, peak: FlopsPerSecond, mfu: Share) -> Seconds:
    """Time of a job of so many FLOP on P devices at a given utilization."""
    return flops/(P*peak*mfu)


@formula(chapter="01-scale-imperative", source="chowdhery2022")
def model_flops_utilization(flops: Flops, P: Count, peak: FlopsPerSecond, duration: Seconds) -> Ratio:
    """MFU: the model's own FLOP over what P devices at dense peak could have done in that time."""
    return flops/(P*peak*duration)


@formula(chapter="01-scale-imperative", source="chowdhery2022")
def devices_for_deadline(flops: Flops, peak: FlopsPerSecond, mfu: Share, duration: Seconds) -> Count:
    """The time wall: fewest devices that finish the job in the given time, utilization held fixed."""
    return ceil(flops/(peak*mfu*duration))


@formula(chapter="01-scale-imperative", source="rajbhandari2020")
def devices_for_memory(params: Count, bytes_per_param: Bytes, memory: Bytes) -> Count:
    """The memory wall: fewest devices whose memory holds the model state, activations left out."""
    return ceil(bytes_per_param*params/memory)


@formula(chapter="01-scale-imperative", source="derived")
def balance_duration(tokens: Count, memory: Bytes, peak: FlopsPerSecond, mfu: Share, bytes_per_param: Bytes,
                     *, per_weight: Flops = 6) -> Seconds:
    """Training time at which the memory wall and the time wall ask for equally many devices."""
    return per_weight*tokens*memory/(peak*mfu*bytes_per_param)


# ---- chapter 2: the roofline ---------------------------------------------------------------------
@formula(chapter="02-extended-roofline", source="williams2009")
def roofline_time(flops: Flops, nbytes: Bytes, peak: FlopsPerSecond, bandwidth: BytesPerSecond) -> Seconds:
    """Lower bound on a kernel's time: whichever of arithmetic and memory traffic is slower."""
    return maximum(flops/peak, nbytes/bandwidth)


@formula(chapter="02-extended-roofline", source="williams2009")
def roofline_rate(intensity: FlopsPerByte, peak: FlopsPerSecond, bandwidth: BytesPerSecond) -> FlopsPerSecond:
    """Upper bound on the arithmetic rate at a given intensity."""
    return minimum(peak, bandwidth*intensity)


@formula(chapter="02-extended-roofline", source="williams2009")
def ridge_point(peak: FlopsPerSecond, bandwidth: BytesPerSecond) -> FlopsPerByte:
    """Intensity at which the slope meets the ceiling."""
    return peak/bandwidth


@formula(chapter="02-extended-roofline", source="williams2009")
def matmul_intensity(rows: Count, inner: Count, cols: Count, element_bytes: Bytes,
                     *, multiply_add: Flops = 2) -> FlopsPerByte:
    """FLOP per byte of a matrix product when each of the three matrices moves once."""
    return multiply_add*rows*inner*cols/(element_bytes*(rows*inner + inner*cols + rows*cols))


@formula(chapter="02-extended-roofline", source="hong1981")
def tiled_matmul_intensity(cache: Bytes, element_bytes: Bytes, *, multiply_add: Flops = 2) -> FlopsPerByte:
    """FLOP per byte of a large square product cut into tiles, three of which fill the fast memory."""
    return multiply_add*sqrt(cache/(3*element_bytes))/(2*element_bytes)


@formula(chapter="02-extended-roofline", source="kung1982")
def systolic_utilization(rows: Count, array: Count) -> Ratio:
    """Share of its cells that a weight-stationary systolic array keeps busy while `rows` inputs pass through."""
    return rows/(rows + 2*array - 2)


@formula(chapter="02-extended-roofline", source="nvidia-matmul")
def tile_utilization(rows: Count, cols: Count, tile_rows: Count, tile_cols: Count, processors: Count) -> Ratio:
    """Useful share of the output slots of a product whose tiles are dealt to processors in whole waves."""
    return rows*cols/(tile_rows*tile_cols*processors
                      * ceil(ceil(rows/tile_rows)*ceil(cols/tile_cols)/processors))
