"""Failures and checkpoints."""
from __future__ import annotations

from ..algebra import exp, lambertw, maximum, minimum, sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Share, PerSecond, Ratio, Seconds


@formula(chapter="05-economics-of-compute", source="daly2006")
def expected_segment_time(failure_rate: PerSecond, interval: Seconds, checkpoint: Seconds, restart: Seconds) -> Seconds:
    """Expected time to do `interval` of work and save it, failures Poisson, each followed by a restart.

    No failure strikes during a restart; after one the whole segment is done again.
    """
    return (1/failure_rate + restart)*(exp(failure_rate*(interval + checkpoint)) - 1)


@formula(chapter="05-economics-of-compute", source="young1974")
def young_interval(checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Work between checkpoints that minimizes lost time when failures are rare."""
    return sqrt(2*checkpoint*mtbf)


@formula(chapter="05-economics-of-compute", source="daly2006")
def daly_interval(checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Work between checkpoints that minimizes the time per useful second, two orders beyond Young's.

    For a checkpoint shorter than twice the time between failures; Daly's sum of four terms, factored.
    """
    return sqrt(2*checkpoint*mtbf)*(1 - sqrt(checkpoint/(2*mtbf))/3)**2


@formula(chapter="26-failures-checkpoints", source="derived")
def job_failure_rate(P: Count, device_rate: PerSecond, nodes: Count, node_rate: PerSecond) -> PerSecond:
    """Failures per second of a job that stops with any of its devices and with any of its nodes."""
    return P*device_rate + nodes*node_rate


@formula(chapter="26-failures-checkpoints", source="daly2006")
def optimal_interval(checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Work between checkpoints that minimizes the time per useful second, exactly; failures Poisson."""
    return mtbf*(1 + lambertw(-exp(-1 - checkpoint/mtbf)))


@formula(chapter="26-failures-checkpoints", source="daly2006")
def training_goodput(interval: Seconds, checkpoint: Seconds, restart: Seconds, mtbf: Seconds) -> Ratio:
    """Share of the time that becomes training that stays, failures Poisson, none during a restart."""
    return interval/expected_segment_time(1/mtbf, interval, checkpoint, restart)


@formula(chapter="26-failures-checkpoints", source="derived")
def longest_restart(goodput: Share, interval: Seconds, checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Longest mean time from a failure to work again that leaves this goodput; 0 where none does."""
    return maximum(0, interval/(goodput*(exp((interval + checkpoint)/mtbf) - 1)) - mtbf)


@formula(chapter="26-failures-checkpoints", source="derived")
def lost_work(interval: Seconds, checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Mean time into a segment at which a failure strikes that strikes it: what has to be done again."""
    return mtbf - (interval + checkpoint)/(exp((interval + checkpoint)/mtbf) - 1)


@formula(chapter="26-failures-checkpoints", source="derived")
def async_waste(interval: Seconds, checkpoint: Seconds, drain: Seconds, slowdown: Ratio, restart: Seconds,
                mtbf: Seconds) -> Ratio:
    """Lost time per useful second, to first order, if a checkpoint stops the work shortly and is written beside it.

    For an interval not below the drain: one copy is written at a time.
    """
    return (checkpoint + slowdown*drain)/interval + (interval/2 + drain + restart)/mtbf


@formula(chapter="26-failures-checkpoints", source="derived")
def async_interval(checkpoint: Seconds, drain: Seconds, slowdown: Ratio, mtbf: Seconds) -> Seconds:
    """Work between checkpoints that are written beside the work, best to first order; not below the drain."""
    return maximum(drain, sqrt(2*mtbf*(checkpoint + slowdown*drain)))


@formula(chapter="26-failures-checkpoints", source="derived")
def two_level_waste(near_rate: PerSecond, near_checkpoint: Seconds, near_restart: Seconds, far_rate: PerSecond,
                    far_checkpoint: Seconds, far_restart: Seconds) -> Ratio:
    """Lost time per useful second, to first order, of near and far checkpoints, each at its own best interval."""
    return (sqrt(2*near_rate*near_checkpoint) + near_rate*near_restart
            + sqrt(2*far_rate*far_checkpoint) + far_rate*far_restart)


@formula(chapter="26-failures-checkpoints", source="derived")
def replica_waste(failure_rate: PerSecond, restart: Seconds, replicas: Count) -> Ratio:
    """Share of the devices' time that restarts take, to first order, if a failure stops one of the replicas alone."""
    return failure_rate*restart/replicas


@formula(chapter="26-failures-checkpoints", source="kleinrock1975")
def nodes_in_repair(nodes: Count, node_rate: PerSecond, repair: Seconds) -> Ratio:
    """Nodes that are away at a time, on average; their number is Poisson, whatever the distribution of repairs."""
    return nodes*node_rate*repair


@formula(chapter="26-failures-checkpoints", source="derived")
def spare_nodes(nodes: Count, node_rate: PerSecond, repair: Seconds, deviations: Ratio) -> Ratio:
    """Spare nodes that are enough up to so many standard deviations; within one of the Poisson quantile.

    The two first terms of Cornish and Fisher's expansion; 3.09 deviations are 99.9 % of the time.
    """
    return nodes*node_rate*repair + deviations*sqrt(nodes*node_rate*repair) + (deviations**2 - 1)/6


@formula(chapter="26-failures-checkpoints", source="derived")
def check_interval(check: Seconds, silent_rate: PerSecond) -> Seconds:
    """Work between checks for silent errors that minimizes the time per useful second, exactly.

    A check finds what struck since the last one, and all of the interval is done again.
    """
    return sqrt(check/silent_rate + check**2/4) - check/2


@formula(chapter="26-failures-checkpoints", source="derived")
def checked_segment_time(silent_rate: PerSecond, interval: Seconds, check: Seconds, restart: Seconds) -> Seconds:
    """Expected time to do `interval` of work and find it sound, silent errors Poisson and found by the check alone."""
    return (interval + check)*exp(silent_rate*interval) + restart*(exp(silent_rate*interval) - 1)


@formula(chapter="26-failures-checkpoints", source="derived")
def save_time(params: Count, bytes_per_param: Bytes, writers: Count, beta: BytesPerSecond,
              storage_bandwidth: BytesPerSecond) -> Seconds:
    """Time to save a model state that is shared by ranks that write at once, until storage is the limit."""
    return params*bytes_per_param/minimum(writers*beta, storage_bandwidth)
