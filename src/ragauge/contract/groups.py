"""The names of the config groups, and of what a predictor may look at."""

from __future__ import annotations

# Of each one option is chosen. `answers` is a group, too, of which any number is chosen.
GROUPS = (
    "dataset", "chunker", "embedder", "tokenizer", "rewriter", "retriever", "reranker", "expander",
    "compressor", "order", "measure", "llm", "judge",
)  # fmt: skip
ANSWERS = "answers"

# Whose calls of chat models are counted, by what their metrics begin with: {"judge_": "Verdicts"}. A latency
# measurement asks once more what the parts of a job ask.
CALLS = {
    "rewriter_": "Queries", "retriever_": "Queries of the retriever", "reranker_": "Reranking",
    "expander_": "Passages", "compressor_": "Compression", "": "Answers", "answers_": "Answer measures",
    "judge_": "Verdicts", "latency_": "Latency",
}  # fmt: skip

FEATURES = ("ir_score", "evidence_best", "evidence_worst", "answer_in_context", "n_used", "score_gap")
