"""Money and time."""
from __future__ import annotations

from ..algebra import sqrt
from ..grammar import formula
from ..units import (Count, Dollars, DollarsPerSecond, Flops, FlopsPerSecond, Share, Ratio, Seconds)


@formula(chapter="05-economics-of-compute", source="derived")
def training_cost(flops: Flops, peak: FlopsPerSecond, mfu: Share, price: DollarsPerSecond) -> Dollars:
    """Rent of a job: no number of devices in it while utilization is fixed."""
    return price*flops/(peak*mfu)


@formula(chapter="05-economics-of-compute", source="derived")
def scaled_mfu(P: Count, peak_mfu: Share, half_devices: Ratio) -> Ratio:
    """Utilization when a part of every step does not shrink with P: exposed communication, bubbles."""
    return peak_mfu/(1 + P/half_devices)


@formula(chapter="05-economics-of-compute", source="derived")
def scaled_training_time(flops: Flops, P: Count, peak: FlopsPerSecond, peak_mfu: Share,
                         half_devices: Ratio) -> Seconds:
    """Time of a job at the utilization `scaled_mfu`."""
    return flops*(1/P + 1/half_devices)/(peak*peak_mfu)


@formula(chapter="05-economics-of-compute", source="derived")
def scaled_training_cost(flops: Flops, P: Count, peak: FlopsPerSecond, peak_mfu: Share, half_devices: Ratio,
                         price: DollarsPerSecond) -> Dollars:
    """Rent of a job at the utilization `scaled_mfu`."""
    return price*flops*(1 + P/half_devices)/(peak*peak_mfu)


@formula(chapter="05-economics-of-compute", source="derived")
def cost_optimal_devices(value_of_time: DollarsPerSecond, half_devices: Ratio, price: DollarsPerSecond) -> Ratio:
    """Devices that minimize rent plus value of time lost, at the utilization `scaled_mfu`."""
    return sqrt(value_of_time*half_devices/price)


@formula(chapter="05-economics-of-compute", source="derived")
def ownership_cost_rate(capex: Dollars, life: Seconds, opex: DollarsPerSecond, utilization: Share) -> DollarsPerSecond:
    """Cost of a useful second of an owned device, straight-line depreciation."""
    return (capex/life + opex)/utilization
