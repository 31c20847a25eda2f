"""Accelerators, links and clusters: sizes in bytes, rates in bytes or flops per second, every bandwidth one direction of one device."""
import datetime
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from . import specs


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What every datum of the book carries: where it was read, and when.

    source   key of references.bib; an entry without one cannot be made (TypeError)
    sources  keys for the single fields that come from another document: {"measured": "bekman2026"}
    assumed  fields that no document gives, with the reason for the value chosen
    read     the date on which the source was read
    note     what a careful reader should know: disagreements, conditions"""
    source: str
    sources: Mapping = field(default_factory=dict, repr=False)
    assumed: Mapping = field(default_factory=dict, repr=False)
    read: datetime.date | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)

    def __post_init__(self):
        if not self.source or not isinstance(self.source, str):
            raise TypeError(f"{type(self).__name__}: source = {self.source!r}: a key of references.bib is wanted")


@dataclass(frozen=True, kw_only=True)
class Accelerator(Fact):
    """One device: peak dense arithmetic by format, memory size and bandwidth, each with the document it was read from.

    dense      flop/s by format ("bf16", "fp8", ...), without structured sparsity
    sparse     flop/s by format with 2:4 sparsity, where the vendor prints it
    measured   flop/s by format that a large matrix product was seen to reach
    memory     B; bandwidth, B/s between the device and its memory
    scale_up   B/s leaving the device in one direction over its fast network (NVLink, Infinity Fabric, ICI), all links together
    nic        B/s leaving the device in one direction over its share of the data-centre network, in the reference system
    units, per_clock, clock   processors (SMs, compute units), dense 16-bit flops of one a clock, clocks a second
    Fields may be numbers, arrays or symbols; None where no document gives the value. Negative sizes raise ValueError."""
    name: str
    dense: Mapping
    memory: Any
    bandwidth: Any
    scale_up: Any = None
    nic: Any = None
    sparse: Mapping = field(default_factory=dict, repr=False)
    measured: Mapping = field(default_factory=dict, repr=False)
    units: Any = field(default=None, repr=False)
    per_clock: Any = field(default=None, repr=False)
    clock: Any = field(default=None, repr=False)
    key: str = field(default="", repr=False)

    def __post_init__(self):
        super().__post_init__()
        specs.at_least(0, memory=self.memory, bandwidth=self.bandwidth, scale_up=self.scale_up, nic=self.nic,
                       clock=self.clock, **self.dense, **{f"sparse {k}": v for k, v in self.sparse.items()})
        specs.at_least(1, units=self.units, per_clock=self.per_clock)

    def peak(self, format="bf16"):
        """Dense peak in flop/s; raises ValueError for a format the device lacks."""
        return self._rate(self.dense, "dense peak", format)

    def ceiling(self, format="bf16"):
        """Fastest matrix product measured, in flop/s; raises ValueError where none is published."""
        return self._rate(self.measured, "measured ceiling", format)

    def _rate(self, rates, what, format):
        if format not in rates:
            raise ValueError(f"{self.name} has no {what} for {format!r}; it has {', '.join(rates) or 'none'}")
        return rates[format]


@dataclass(frozen=True, kw_only=True)
class Link(Fact):
    """One hop: latency alpha in seconds, bandwidth beta in bytes per second, per direction per device.

    `f(n, **link)` passes both. `measured` is the bandwidth that a large transfer was seen to reach, None where none is published.
    Negative values raise ValueError; numbers, arrays and symbols are welcome."""
    alpha: Any
    beta: Any
    measured: Any = None
    name: str = ""
    key: str = field(default="", repr=False)

    def __post_init__(self):
        super().__post_init__()
        specs.at_least(0, alpha=self.alpha, beta=self.beta, measured=self.measured)

    def keys(self):
        return "alpha", "beta"

    def __getitem__(self, name):
        return {"alpha": self.alpha, "beta": self.beta}[name]


@dataclass(frozen=True)
class Level:
    """One level of a cluster: groups of `devices` joined by `link`; each byte out of a device gets 1/oversubscription of its rate."""
    devices: Any
    link: Link
    oversubscription: Any = 1

    def __post_init__(self):
        specs.at_least(1, devices=self.devices, oversubscription=self.oversubscription)

    @property
    def bandwidth(self):
        """B/s leaving one device in one direction when every device of the group talks across this level."""
        return self.link.beta/self.oversubscription


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Devices in nodes in pods: a Link per level, innermost first.

    device  the Accelerator;  levels  Levels, innermost first, each with the devices of one of its groups, all inner groups included."""
    device: Accelerator
    levels: tuple
    name: str = ""
    source: str = ""
    sources: Mapping = field(default_factory=dict, repr=False)
    assumed: Mapping = field(default_factory=dict, repr=False)
    read: datetime.date | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    def __post_init__(self):
        object.__setattr__(self, "levels", tuple(x if isinstance(x, Level) else Level(*x) for x in self.levels))
        if not self.levels:
            raise ValueError("levels = (): at least one (devices, link) is wanted")

    @property
    def devices(self):
        """Devices in the whole cluster."""
        return self.levels[-1].devices

    @property
    def node(self):
        """Devices in one node: the group of the innermost level."""
        return self.levels[0].devices

    @property
    def nodes(self):
        """Nodes in the whole cluster."""
        return self.devices//self.node

    @property
    def inner(self):
        """The Link inside a node."""
        return self.levels[0].link

    @property
    def outer(self):
        """The Link that leaves a node, per device: its share of the node's network cards. The inner link where there is one level."""
        return self.levels[min(1, len(self.levels) - 1)].link

    @property
    def oversubscription(self):
        """How many times less than its link a device gets at the outermost level when all devices use it at once."""
        return self.levels[-1].oversubscription

    def sized(self, devices):
        """This machine with another number of devices in its outermost level; inner levels that it does not fill are dropped.

        Raises ValueError for devices that leave a node part empty beside full ones, naming them."""
        inner = tuple(x for x in self.levels[:-1] if not isinstance(devices, Real) or x.devices < devices)
        if inner and isinstance(devices, Real) and devices % self.node:
            raise ValueError(f"devices = {devices!r}: whole nodes of {self.node} are wanted")
        return replace(self, levels=inner + (replace(self.levels[len(inner)], devices=devices),))


def accelerator(name):
    """The Accelerator with this key, such as "h100-sxm"; an unknown key raises ValueError with the close ones."""
    return specs.pick(accelerators(), name, "accelerator")


def link(name):
    """The Link with this key, such as "nvlink4"; an unknown key raises ValueError with the close ones."""
    return specs.pick(links(), name, "link")


def cluster(name, devices=None):
    """The Cluster with this key, such as "dgx-h100", at its own size or with `devices` devices; an unknown key raises ValueError."""
    found = specs.pick(clusters(), name, "cluster")
    return found if devices is None else found.sized(devices)


@functools.cache
def accelerators():
    """Every Accelerator of specs/accelerators.toml by its key."""
    sizes = dict(memory="memory", bandwidth="bandwidth", scale_up="bandwidth", nic="bandwidth", clock="frequency")
    return {key: Accelerator(key=key, **_read(f"accelerators.toml: {key}", entry, sizes, rates=("dense", "sparse", "measured")))
            for key, entry in specs.read("accelerators").items()}


@functools.cache
def links():
    """Every Link of specs/links.toml by its key."""
    return {key: Link(key=key, **_read(f"links.toml: {key}", entry, dict(alpha="time", beta="bandwidth", measured="bandwidth")))
            for key, entry in specs.read("links").items()}


@functools.cache
def clusters():
    """Every Cluster of specs/clusters.toml by its key."""
    def build(key, device, levels, **entry):
        return Cluster(key=key, device=accelerator(device), **entry,
                       levels=tuple(Level(x["devices"], link(x["link"]), x.get("oversubscription", 1)) for x in levels))
    return {key: build(key, **entry) for key, entry in specs.read("clusters").items()}


def _read(where, entry, sizes, rates=()):
    """The entry with its texts turned into numbers: `sizes` maps fields to dimensions, `rates` are tables of flop/s."""
    def value(name, text):
        if name in rates:
            return {f: specs.quantity(t, "rate", f"{where}.{name}.{f}") for f, t in text.items()}
        return specs.quantity(text, sizes[name], f"{where}.{name}") if name in sizes else text
    return {name: value(name, text) for name, text in entry.items()}
