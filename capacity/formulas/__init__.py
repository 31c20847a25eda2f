"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import (collectives, composition, compute, economics, estimation, experts, folding, io, memory, mesh,  # noqa: F401
               network, offload, parallel, pipeline, precision, prediction, recomputation, reliability,
               scaling, search, sharding)

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
