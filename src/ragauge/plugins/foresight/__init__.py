"""Compares every measure per topic with the outcome of the answer, to find which one predicts it."""
