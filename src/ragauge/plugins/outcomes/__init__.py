"""Scores and classes from elsewhere, in a table: a job of them only estimates (docs/datasets.md)."""
