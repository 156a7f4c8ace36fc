"""Simulations with known truth, shared by tests/validity and by benchmarks/validity.py."""
