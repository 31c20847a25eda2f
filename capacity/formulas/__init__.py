"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import (collectives, compute, economics, estimation, experts, io, memory, network, parallel, pipeline,  # noqa: F401
               precision, recomputation, reliability, scaling, sharding)

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
