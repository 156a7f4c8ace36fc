"""Hydra finds the sweeper `race` here: it looks for plugins below `hydra_plugins` alone."""
