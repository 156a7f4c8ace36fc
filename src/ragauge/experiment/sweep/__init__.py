"""Sweeps: groups of jobs, pooling, judging at the end, contrasts, reports."""
