"""Ray: workers for the blocks of a stage (docs/cluster.md#engines-work-inside-a-job-on-many-machines), and the jobs of a sweep on many machines (docs/cluster.md).

Hydra wants launchers in its own namespace: `src/hydra_plugins/ragauge_ray/` holds the class that it calls.
"""
