"""Hydra finds the launcher `ray` here: it looks for plugins below `hydra_plugins` alone."""
