"""The model of `capacity.tiny`, split: one module a strategy, programs of one rank for `capacity.spmd.run`."""
