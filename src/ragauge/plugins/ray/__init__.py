"""Ray: workers for the blocks of a stage, and sweep jobs on many machines (docs/cluster.md).

Hydra wants launchers in its own namespace: `src/hydra_plugins/ragauge_ray/` holds the class that it calls.
"""
