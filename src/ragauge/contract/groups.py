"""The names of the config groups, and of what a predictor may look at."""

from __future__ import annotations

GROUPS = ("dataset", "chunker", "embedder", "tokenizer", "retriever", "measure", "llm", "judge")


FEATURES = ("ir_score", "evidence_best", "evidence_worst", "answer_in_context", "n_used", "score_gap")
