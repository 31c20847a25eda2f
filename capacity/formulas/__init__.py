"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import (collectives, compute, economics, estimation, experts, io, memory, network, offload, parallel,  # noqa: F401
               pipeline, precision, prediction, recomputation, reliability, scaling, search, sharding)

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
