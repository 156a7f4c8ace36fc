"""Budgets: bands that hold at all of them at once, the smallest that is enough, and tests over all."""
