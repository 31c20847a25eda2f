"""The formulas, one module a theme.  `capacity.formulas.NAME` is `capacity.NAME`."""
from ..grammar import REGISTRY
from . import (architecture, asynchrony, collectives, composition, compression, compute, economics, estimation,  # noqa: F401
               experts, folding, formats, inference, io, memory, mesh, network, offload, overlap, parallel,
               pipeline, precision, prediction, recomputation, reliability, scaling, search, sharding)

globals().update(REGISTRY)
__all__ = sorted(REGISTRY)
