"""The network as a hierarchy: cuts, nodes and rails."""
from __future__ import annotations

from typing import Annotated, Any

from ..algebra import sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Group, Ratio, Seconds, Unit

Oversubscription = Annotated[Any, Unit(least=1)]              # 1: as much bandwidth above a switch as below it
Crowd = Annotated[Any, Unit(least=3, whole=True)]             # 3, 4, ...: devices of which two neighbors have a third
Even = Annotated[Any, Unit(least=2, whole=True, multiple=2)]  # 2, 4, ...: ranks that a cut through the middle divides


@formula(chapter="03-cluster-memory-hierarchy", source="patarasuk2009")
def all_reduce_egress(n: Bytes, P: Count) -> Bytes:
    """Fewest bytes that each of P ranks must send in an all-reduce of n bytes, if only ranks add, all equally much."""
    return 2*n*(P - 1)/P


@formula(chapter="03-cluster-memory-hierarchy", source="derived")
def cut_time(crossing: Bytes, cut_bandwidth: BytesPerSecond) -> Seconds:
    """Lower bound on a collective's time: the bytes that must cross a cut over the cut's bandwidth."""
    return crossing/cut_bandwidth


@formula(chapter="03-cluster-memory-hierarchy", source="nccl-tests")
def algorithm_bandwidth(n: Bytes, duration: Seconds) -> BytesPerSecond:
    """What the user sees: bytes of the buffer over the time of the collective."""
    return n/duration


@formula(chapter="03-cluster-memory-hierarchy", source="nccl-tests")
def all_reduce_bus_bandwidth(n: Bytes, P: Count, duration: Seconds) -> BytesPerSecond:
    """What each link would carry if the all-reduce were a ring: the figure nccl-tests prints as busbw."""
    return 2*n*(P - 1)/(P*duration)


@formula(chapter="03-cluster-memory-hierarchy", source="derived")
def oversubscribed_bandwidth(beta2: BytesPerSecond, oversubscription: Oversubscription) -> BytesPerSecond:
    """Bandwidth per device, one direction, when all devices below a switch talk across it at once."""
    return beta2/oversubscription


@formula(chapter="13a-topology-aware-collectives", source="derived")
def all_gather_cut_bytes(n: Bytes, P: Count, inside: Count) -> Bytes:
    """Fewest bytes that enter a set of ranks in an all-gather to n bytes, or leave it in a reduce-scatter."""
    return n*(P - inside)/P


@formula(chapter="13a-topology-aware-collectives", source="derived")
def all_to_all_cut_bytes(n: Bytes, P: Count, inside: Count) -> Bytes:
    """Bytes that leave a set of ranks, and enter it, in an all-to-all of n bytes per rank."""
    return n*inside*(P - inside)/P


@formula(chapter="13a-topology-aware-collectives", source="derived")
def flat_ring_nic_bytes(n: Bytes, node_size: Count, nodes: Group, channels: Count) -> Bytes:
    """Bytes that a NIC in use sends in an all-reduce over c rings through all devices, one NIC of each node to a ring."""
    return 2*n*(node_size*nodes - 1)/(node_size*nodes*channels)


@formula(chapter="13a-topology-aware-collectives", source="cho2019")
def hierarchical_nic_bytes(n: Bytes, node_size: Count, nodes: Count) -> Bytes:
    """Bytes that each NIC sends in a two-level all-reduce: the fewest possible, if only devices add."""
    return 2*n*(nodes - 1)/(node_size*nodes)


@formula(chapter="13a-topology-aware-collectives", source="derived")
def flat_ring_latency(node_size: Crowd, nodes: Group, alpha1: Seconds, alpha2: Seconds) -> Seconds:
    """Time of a ring all-reduce of empty messages, node by node, if latency passes on the wire and alpha1 <= alpha2."""
    return 2*nodes*alpha2 + 2*(node_size*nodes - nodes - 1)*alpha1


@formula(chapter="13a-topology-aware-collectives", source="derived")
def pipelined_stages_time(slowest: Seconds, others: Seconds, segments: Ratio, segment_cost: Seconds) -> Seconds:
    """Time of stages one behind the other, cut into k segments: once begun, the slowest stage never waits."""
    return slowest + others/segments + segments*segment_cost


@formula(chapter="13a-topology-aware-collectives", source="derived")
def optimal_stage_segments(others: Seconds, segment_cost: Seconds) -> Ratio:
    """Number of segments that minimizes `pipelined_stages_time`, as a real number; below 1, do not cut."""
    return sqrt(others/segment_cost)


@formula(chapter="13a-topology-aware-collectives", source="austin2025")
def torus_all_gather_bound(n: Bytes, P: Count, axes: Count, beta: BytesPerSecond) -> Seconds:
    """Least time of an all-gather to n bytes along some axes of a torus with two links of bandwidth beta for each."""
    return n*(P - 1)/(2*axes*P*beta)


@formula(chapter="13a-topology-aware-collectives", source="dally1990")
def torus_all_to_all_bound(n: Bytes, side: Even, beta: BytesPerSecond) -> Seconds:
    """Least time of an all-to-all of n bytes per rank on a torus with sides that are even, by its longest side."""
    return n*side/(8*beta)


@formula(chapter="13-collective-cost-model", source="nccl-tests")
def all_gather_bus_bandwidth(n: Bytes, P: Count, duration: Seconds) -> BytesPerSecond:
    """What each rank sends per second in an all-gather to n bytes: the figure nccl-tests prints as busbw.

    The same holds for a reduce-scatter of n bytes and for an all-to-all of n bytes per rank.
    """
    return n*(P - 1)/(P*duration)


@formula(chapter="13-collective-cost-model", source="derived")
def in_switch_all_reduce_egress(n: Bytes, P: Group) -> Bytes:
    """Bytes that each rank sends if the switch adds: its buffer, and the P-th of the sums that it has copied to all."""
    return n*(P + 1)/P
