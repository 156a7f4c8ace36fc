"""Races: a sweep whose systems are answered in batches of topics, and which stops paying for those that cannot win.

Hydra wants sweepers in its own namespace: `src/hydra_plugins/ragauge_race/` holds the class that it calls.
"""
