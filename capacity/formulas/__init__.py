"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..formula import REGISTRY
from . import collectives, compute, economics, estimation, io, memory, network, precision, reliability  # noqa: F401

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
