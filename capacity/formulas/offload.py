"""Offloading: a staged pipeline, what hides a transfer, where state fits, how long drives live.

A link's bandwidth is that of one direction; a memory's and a drive's counts reads and writes together.
"""
from __future__ import annotations

from ..algebra import ceil, maximum, minimum
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Flops, FlopsPerByte, FlopsPerSecond, Share, Index, Ratio, Seconds


@formula(chapter="22-offloading", source="baccelli1992")
def offload_layer_time(layer_compute: Seconds, layer_transfer: Seconds, link_latency: Seconds, ahead: Index) -> Seconds:
    """Time per layer, in the long run, of layers fetched one by one into 1 + ahead buffers and then computed."""
    return maximum(maximum(layer_compute, layer_transfer),
                   (layer_compute + layer_transfer + link_latency)/(1 + ahead))


@formula(chapter="22-offloading", source="derived")
def prefetch_depth(layer_compute: Seconds, layer_transfer: Seconds, link_latency: Seconds) -> Ratio:
    """Layers to fetch ahead, the least number beyond which `offload_layer_time` falls no further."""
    return ceil((layer_compute + layer_transfer + link_latency)/maximum(layer_compute, layer_transfer)) - 1


@formula(chapter="22-offloading", source="derived")
def tokens_to_hide(moved: Bytes, covered: Flops, peak: FlopsPerSecond, mfu: Share, channel: BytesPerSecond) -> Ratio:
    """Tokens whose work lasts as long as moving the state once; the number of parameters cancels.

    moved: bytes per parameter; covered: FLOP per parameter and token during which they move.  peak and channel
    belong to the same devices: one GPU and its link, or a node and its drives.
    """
    return moved*peak*mfu/(covered*channel)


@formula(chapter="22-offloading", source="rajbhandari2021")
def shared_stream(node_size: Count, link_bandwidth: BytesPerSecond, host_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Bytes of a layer that reach each GPU per second if each fetches its share and the GPUs gather the rest."""
    return minimum(node_size*link_bandwidth, host_bandwidth)


@formula(chapter="22-offloading", source="derived")
def own_stream(node_size: Count, link_bandwidth: BytesPerSecond, host_bandwidth: BytesPerSecond) -> BytesPerSecond:
    """Bytes of a layer that reach each GPU per second if each fetches all of it."""
    return minimum(link_bandwidth, host_bandwidth/node_size)


@formula(chapter="22-offloading", source="ren2021")
def host_update_time(params: Count, host_bandwidth: BytesPerSecond, *, touched: Bytes = 28) -> Seconds:
    """Least time of an Adam step on the host: it reads and writes its memory and does little else.

    Per parameter 28 bytes: a 16-bit gradient, fp32 weight and two moments read, these three and a 16-bit weight
    written.
    """
    return touched*params/host_bandwidth


@formula(chapter="22-offloading", source="derived")
def activation_offload_bandwidth(hidden: Count, seq_len: Count, peak: FlopsPerSecond, mfu: Share, numbers: Ratio, *,
                                 element: Bytes = 1, multiply_add: Flops = 2) -> BytesPerSecond:
    """Bandwidth out of one device at which the activations of a layer leave while the next layer goes forward.

    numbers: bytes stored per token and unit of width, 34 for all of a GPT layer, 2 for its input.
    """
    return numbers*element*peak*mfu/(multiply_add*(12*hidden + 2*seq_len))


@formula(chapter="22-offloading", source="rajbhandari2021")
def intensity_efficiency(intensity: FlopsPerByte, channel: BytesPerSecond, peak: FlopsPerSecond) -> Ratio:
    """Share of the time that a device computes if nothing overlaps: intensity FLOP for each byte over the channel."""
    return intensity*channel/(intensity*channel + peak)


@formula(chapter="22-offloading", source="derived")
def codec_rate(compression: Ratio, channel: BytesPerSecond) -> BytesPerSecond:
    """Raw bytes per second that a codec must exceed to gain anything if it works before the link and not beside it."""
    return channel*compression/(compression - 1)


@formula(chapter="22-offloading", source="derived")
def drive_life_steps(params: Count, written: Bytes, endurance: Bytes) -> Ratio:
    """Optimizer steps until drives have been written as often as they are rated for; written: bytes per parameter."""
    return endurance/(written*params)
