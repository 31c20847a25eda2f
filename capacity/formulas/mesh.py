"""The device mesh: a rank's coordinates, what a group of ranks spans, and what a change of layout sends."""
from __future__ import annotations

from ..algebra import floor, maximum, minimum, where
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Group, Index, Ratio


@formula(chapter="23-device-mesh", source="derived")
def mesh_coordinate(rank: Index, stride: Count, axis_ranks: Count) -> Ratio:
    """Place of a rank along the axis of a mesh whose neighbors are `stride` ranks apart, from 0."""
    return floor(rank/stride) - axis_ranks*floor(rank/(stride*axis_ranks))


@formula(chapter="23-device-mesh", source="derived")
def nodes_spanned(stride: Count, axis_ranks: Count, node_size: Count) -> Ratio:
    """Nodes over which a group of ranks lies that are `stride` apart, if nodes and groups divide one another."""
    return maximum(1, minimum(axis_ranks, stride*axis_ranks/node_size))


@formula(chapter="23-device-mesh", source="derived")
def axis_bandwidth(stride: Count, axis_ranks: Count, node_size: Count, beta1: BytesPerSecond,
                   beta2: BytesPerSecond) -> BytesPerSecond:
    """What each rank of an axis can send while all groups of that axis run rings in the order of the ranks.

    Groups that stay inside a node have beta1. The others cross its edge once each, stride of them or one for each
    device, and share the node's cards, one of beta2 for each device. A block of nodes is a node one level up.
    """
    return where(stride*axis_ranks > node_size,
                 minimum(beta1, beta2*node_size/minimum(node_size, stride)), beta1)


@formula(chapter="23-device-mesh", source="derived")
def innermost_first_key(nbytes: Bytes, axis_ranks: Group) -> Bytes:
    """Sort axes by this, largest innermost, if each one's bandwidth is in proportion to 1/stride."""
    return nbytes/(axis_ranks - 1)


@formula(chapter="23-device-mesh", source="derived")
def reshard_gather_bytes(whole: Bytes, axis_ranks: Count) -> Bytes:
    """Bytes that a rank sends to make copies of parts; to make parts of terms, the same."""
    return whole*(axis_ranks - 1)/axis_ranks


@formula(chapter="23-device-mesh", source="derived")
def reshard_swap_bytes(whole: Bytes, axis_ranks: Count) -> Bytes:
    """Bytes that a rank sends, directly, to cut a tensor along another of its axes: a part of its part to each other."""
    return whole*(axis_ranks - 1)/axis_ranks**2
