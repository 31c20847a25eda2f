"""The model of `capacity.witness.tiny`, split: one module a strategy, one shape of program for all.

    shard(...)                                what a rank keeps: of the weights, or of the samples
    loss(comm, part, samples, ...)            the program of one rank for `spmd.run` -> (loss, gradients of its part)

samples are (tokens, targets).  Inside, a split is hooks of `tiny.stage` and sums after it, so splits compose: the
pipeline runs stages with the hooks of the others, each over its own axis of `comm.grid`, and then each adds its sums.
"""
