"""The model of `capacity.witness.tiny`, split: one module a strategy, programs of one rank for `capacity.witness.spmd.run`."""
