"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import collectives, compute, economics, estimation, experts, io, memory, network, parallel, pipeline, precision, reliability, scaling  # noqa: F401

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
