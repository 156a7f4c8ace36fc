"""Scores and classes from elsewhere, in a table: a job only estimates from them (docs/datasets.md)."""
