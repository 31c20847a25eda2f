"""Parameters, traffic and load of mixtures of experts."""
