"""Simulations with known truth, a module per kind of estimate; benchmarks/validity.py runs them."""
