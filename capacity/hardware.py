"""Accelerators, links and clusters.

Sizes are bytes, rates bytes or FLOP per second, bandwidths those of one device in one direction.
"""
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from . import specs


@dataclass(frozen=True, kw_only=True)
class Accelerator(specs.Entry):
    """One device: peak dense arithmetic by format, memory size and bandwidth, each with its source.

    dense      FLOP/s by format ("bf16", "fp8", ...), without structured sparsity
    sparse     FLOP/s by format with 2:4 sparsity, where the vendor prints it
    measured   FLOP/s by format that a large matrix product was seen to reach
    memory     B
    bandwidth  B/s between the device and its memory
    scale_up   B/s leaving the device in one direction over its fast network (NVLink, Infinity
               Fabric, ICI), all links together
    nic        B/s leaving the device in one direction over its share of the data-centre network, in
               the reference system
    units      processors (SMs, compute units), each doing `per_clock` dense 16-bit FLOP a clock
    clock      Hz at which units*per_clock*clock is the dense 16-bit peak
    like       key of the accelerator whose measured share of the peak is assumed where none was measured

    Fields may be numbers, arrays or symbols, and are None where no document gives the value. Raises
    TypeError without a source, ValueError for a negative size; both name the field.
    """
    dense: Mapping = field(hash=False)
    memory: Any
    bandwidth: Any
    scale_up: Any = None
    nic: Any = None
    sparse: Mapping = field(default_factory=dict, repr=False, hash=False)
    measured: Mapping = field(default_factory=dict, repr=False, hash=False)
    units: Any = field(default=None, repr=False)
    per_clock: Any = field(default=None, repr=False)
    clock: Any = field(default=None, repr=False)
    like: str = field(default="", repr=False)

    def __post_init__(self):
        super().__post_init__()
        self.need_source()
        specs.at_least(0, memory=self.memory, bandwidth=self.bandwidth, scale_up=self.scale_up,
                       nic=self.nic, clock=self.clock)
        for what in ("dense", "sparse", "measured"):
            specs.at_least(0, **{f"{what}.{k}": x for k, x in getattr(self, what).items()})
        specs.at_least(1, units=self.units, per_clock=self.per_clock)

    def peak(self, format="bf16"):
        """Dense peak in FLOP/s; raises ValueError for a format the device lacks."""
        return self._rate("dense peak", self.dense, format)

    def ceiling(self, format="bf16"):
        """Fastest matrix product measured, in FLOP/s; raises ValueError where none is published."""
        return self._rate("measured ceiling", self.measured, format)

    def _rate(self, what, rates, format):
        if format not in rates:
            known = ", ".join(rates) or "none"
            raise ValueError(f"{self.name} has no {what} for format = {format!r}; it has {known}")
        return rates[format]


@dataclass(frozen=True, kw_only=True)
class PublishedLink(specs.Entry):
    """One hop: latency alpha in seconds, bandwidth beta in bytes/second, per direction per device.

    `measured` is the bandwidth that a large transfer was seen to reach, None where none is
    published. `f(n, **link)` passes alpha and beta. Fields may be numbers, arrays or symbols.
    Raises TypeError without a source, ValueError for a negative value.
    """
    alpha: Any
    beta: Any
    measured: Any = None

    def __post_init__(self):
        super().__post_init__()
        self.need_source()
        specs.at_least(0, alpha=self.alpha, beta=self.beta, measured=self.measured)

    def keys(self):
        return "alpha", "beta"

    def __getitem__(self, name):
        return {"alpha": self.alpha, "beta": self.beta}[name]


@dataclass(frozen=True)
class Level:
    """One level of a cluster: groups of `devices`, all inner groups included, joined by `link`.

    `oversubscription` says how many times less than its link a device gets when all of them talk
    across this level at once; `axes` how many axes a torus has, along each of which a device has two
    such links, and 0 stands for a switch. Raises ValueError where one is too small.
    """
    devices: Any
    link: PublishedLink
    oversubscription: Any = 1
    axes: int = 0

    def __post_init__(self):
        specs.at_least(1, devices=self.devices, oversubscription=self.oversubscription)
        specs.at_least(0, axes=self.axes)

    @property
    def bandwidth(self):
        """B/s leaving one device in one direction when every device talks across this level."""
        return self.link.beta/self.oversubscription


@dataclass(frozen=True, kw_only=True)
class Cluster(specs.Entry):
    """Devices in nodes in pods: a PublishedLink per level, innermost first.

    device  the Accelerator
    levels  Levels, or tuples (devices, link) or (devices, link, oversubscription), innermost first

    Raises ValueError for no level, and for a level of numbers or arrays that does not hold whole groups of the one inside.
    """
    device: Accelerator
    levels: tuple

    def __post_init__(self):
        super().__post_init__()
        levels = tuple(x if isinstance(x, Level) else Level(*x) for x in self.levels)
        if not levels:
            raise ValueError("levels = (); allowed: at least one (devices, link)")
        for inside, level in itertools.pairwise(levels):
            known = all(isinstance(x.devices, (Real, np.ndarray)) for x in (inside, level))
            if known and np.any(level.devices % inside.devices):
                raise ValueError(f"levels: {level.devices} devices around groups of {inside.devices}; allowed: a multiple "
                                 f"of {inside.devices}")
        object.__setattr__(self, "levels", levels)

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
        """The PublishedLink inside a node."""
        return self.levels[0].link

    @property
    def outer(self):
        """The PublishedLink by which one device leaves its node; the inner one where there is one level."""
        return self.levels[min(1, len(self.levels) - 1)].link

    @property
    def oversubscription(self):
        """Oversubscription of the outermost level."""
        return self.levels[-1].oversubscription

    def sized(self, devices):
        """This machine with another number of devices; inner levels they do not fill are dropped.

        Raises ValueError, naming devices, where they do not fill whole nodes, or not the whole groups of another level, with the
        numbers next to one of numbers.
        """
        known = isinstance(devices, Real)
        inner = tuple(x for x in self.levels[:-1] if not known or x.devices < devices)
        if inner and (known or isinstance(devices, np.ndarray)):
            size = inner[-1].devices if known else self.node
            if np.any(devices % size):
                near = f", such as {devices//size*size:,} or {(devices//size + 1)*size:,}" if known else ""
                raise ValueError(f"devices = {devices!r}; allowed: whole {'nodes' if size == self.node else 'groups'} of {size}{near}")
        return replace(self, levels=(*inner, replace(self.levels[len(inner)], devices=devices)))


def accelerator(name):
    """The Accelerator of this name, "h100-sxm"; ValueError with the close ones if there is none."""
    return specs.pick(accelerators(), name, "accelerator")


def link(name):
    """The PublishedLink of this name, "nvlink4"; ValueError with the close ones if there is none."""
    return specs.pick(links(), name, "link")


def cluster(name, devices=None):
    """The Cluster of this name, "dgx-h100", at its own size or with this many devices.

    Raises ValueError for an unknown name, with the close ones, and for devices that leave a node
    partly filled.
    """
    found = specs.pick(clusters(), name, "cluster")
    return found if devices is None else found.sized(devices)


SIZES = dict(                            # dimension of each field that is a quantity, by kind of entry
    accelerators=dict(memory="memory", bandwidth="bandwidth", scale_up="bandwidth", nic="bandwidth", clock="frequency",
                      dense="rate", sparse="rate", measured="rate"),
    links=dict(alpha="time", beta="bandwidth", measured="bandwidth"))


@functools.cache
def accelerators():
    """Every Accelerator of specs/accelerators.toml by its name."""
    return specs.Facts({key: Accelerator(key=key, **_numbers("accelerators", f"accelerators.toml: {key}", entry))
                        for key, entry in specs.read("accelerators").items()})


@functools.cache
def links():
    """Every PublishedLink of specs/links.toml by its name."""
    return specs.Facts({key: PublishedLink(key=key, **_numbers("links", f"links.toml: {key}", entry))
                        for key, entry in specs.read("links").items()})


@functools.cache
def clusters():
    """Every Cluster of specs/clusters.toml by its name."""
    def build(key, device, levels, **entry):
        levels = [Level(**level | {"link": link(level["link"])}) for level in levels]
        return Cluster(key=key, device=accelerator(device), levels=levels, **entry)
    return specs.Facts({key: build(key, **entry) for key, entry in specs.read("clusters").items()})


def clusters_from_toml(path):
    """The Clusters of a file in the form of specs/clusters.toml, by name.

    `device` may be a table in the form of specs/accelerators.toml instead of a name, a level's `link` one in the form of
    specs/links.toml; `name`, `source` and `read` may be left out. ValueError with file, entry and field for what is wrong.
    """
    import tomllib
    from pathlib import Path
    try:
        entries = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or error}") from None

    def thing(kind, make, known, value, where):
        if not isinstance(value, dict):
            return known(value)
        return _made(make, where, dict(name=where, source=str(path)) | _numbers(kind, where, value))

    def build(key, entry):
        where = f"{path}: {key}"
        if not isinstance(entry, dict) or "device" not in entry or not entry.get("levels"):
            raise ValueError(f"{where}: allowed: a table with device and levels, as in specs/clusters.toml")
        if not isinstance(entry["levels"], list) or not all(isinstance(level, dict) for level in entry["levels"]):
            raise ValueError(f"{where}.levels = {entry['levels']!r}; "
                             'allowed: tables such as { devices = 8, link = "nvlink4" }, in a list')
        levels = [_made(Level, f"{where}.levels", level | {
            "link": thing("links", PublishedLink, link, level.get("link", ""), f"{where}.link")}) for level in entry["levels"]]
        device = thing("accelerators", Accelerator, accelerator, entry["device"], f"{where}.device")
        return _made(Cluster, where, dict(name=key, source=str(path)) | entry | dict(key=key, device=device, levels=tuple(levels)))

    if not entries:
        raise ValueError(f"{path}: no cluster; allowed: tables as in specs/clusters.toml")
    return specs.Facts({key: build(key, entry) for key, entry in entries.items()})


def _made(make, where, fields_):
    """An entry of these fields; ValueError that begins with `where` for unknown ones, missing ones and wrong values."""
    known = {f.name: f for f in fields(make)}
    for name in fields_:
        try:
            specs.pick(known, name, "field")
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    try:
        return make(**fields_)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {str(error).replace(f'{make.__name__}.__init__()', make.__name__)}") from None


def _numbers(kind, where, entry):
    """An entry whose texts have become numbers, by SIZES of its kind; `where` begins the error."""
    def number(value, name, dimension):
        if isinstance(value, dict):
            return {k: number(x, f"{name}.{k}", dimension) for k, x in value.items()}
        return specs.quantity(value, dimension, f"{where}.{name}")
    return {name: number(value, name, SIZES[kind][name]) if name in SIZES[kind] else value for name, value in entry.items()}
