"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import (collectives, compute, economics, estimation, experts, io, memory, mesh, network, offload, parallel,  # noqa: F401
               pipeline, precision, recomputation, reliability, scaling, sharding)

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
