"""Budgets: simultaneous bands, the smallest sufficient budget, and tests over all."""
