"""The names of the config groups, and of what a predictor may look at."""

from __future__ import annotations

# Of each one option is chosen. `answers` is a group, too, of which any number is chosen.
GROUPS = (
    "dataset", "chunker", "embedder", "tokenizer", "rewriter", "retriever", "reranker", "expander",
    "compressor", "order", "measure", "llm", "judge",
)  # fmt: skip
ANSWERS = "answers"

FEATURES = ("ir_score", "evidence_best", "evidence_worst", "answer_in_context", "n_used", "score_gap")
