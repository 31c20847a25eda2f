"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import (architecture, asynchrony, collectives, composition, compression, compute, diagnosis, economics,  # noqa: F401
               estimation, experts, folding, formats, inference, io, mesh, network, offload, overlap, parallel,
               pipeline, precision, prediction, profiling, recomputation, reliability, rollout, scaling, search, sharding,
               states, systems)

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
