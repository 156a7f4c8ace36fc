"""Races: a sweep answers topics in batches, and stops paying for systems that cannot win.

Hydra wants sweepers in its own namespace: `src/hydra_plugins/ragauge_race/` holds the class that it calls.
"""
