"""Names of the config groups, and of the default ranking measures."""

from __future__ import annotations

# Of each one option is chosen. `answers` is a group, too, of which any number is chosen.
GROUPS = (
    "dataset", "chunker", "embedder", "tokenizer", "rewriter", "retriever", "reranker", "expander",
    "compressor", "order", "measure", "llm", "evaluator", "judge",
)  # fmt: skip
ANSWERS = "answers"
ENGINE = "engine"  # one option, too, but no part of what is measured: it changes no result
AROUND_RETRIEVER = ("rewriter", "reranker", "expander", "compressor", "order")

# Whose calls of chat models are counted, by what their metrics begin with: {"judge_": "Verdicts"}. A latency
# measurement asks once more what the parts of a job ask.
CALLS = {
    "rewriter_": "Queries", "retriever_": "Queries of the retriever", "reranker_": "Reranking",
    "expander_": "Passages", "compressor_": "Compression",
    "measure_": "Measure of evidence", "": "Answers", "answers_": "Answer measures",
    "judge_": "Verdicts", "erag_": "Answers from one text alone", "erag_judge_": "Verdicts on these",
    "alignment_": "Answers without a passage", "latency_": "Latency",
}  # fmt: skip

# Measures of a ranking that a job logs unless its config lists others (`measures`), in the order of reports.
RANKINGS = ("nDCG@10", "RR", "P@1", "P@5", "R@1", "R@5", "R@10")

RENAMED = {"rankings": "measures"}  # root keys of the config: what they were called, and are
