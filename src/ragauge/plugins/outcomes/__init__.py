"""Scores and classes that somebody else measured, in a table: a job of them only estimates (docs/datasets.md)."""
