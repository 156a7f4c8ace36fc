"""Rewrites questions into search queries: HyDE, several queries, sub-questions, feedback, recorded ones."""
