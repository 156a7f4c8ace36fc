"""Planting small bugs in copies of the package, and trying whether the tests notice them."""
