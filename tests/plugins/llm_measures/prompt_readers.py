"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.plugins.llm_measures import (
    answer_relevancy,
    citation_support,
    citations,
    claims,
    context_precision,
    context_recall,
    context_relevance,
    criterion,
    nuggets,
    sufficient_context,
    support,
)

READ: dict[str, Any] = {
    f"llm_measures/{name}": read
    for name, read in {
        "citation_levels": citation_support.read_level,
        "citation_support": citations.read_supported,
        "claims": claims._read_claims,
        "claims_in_passages": lambda text: claims._read_verdicts(text, 2, 3),
        "claims_match": lambda text: claims._read_match(text, 2, 1),
        "context_precision": context_precision.read_useful,
        "context_relevance": lambda text: context_relevance.read_needed(text, 5),
        "criterion": lambda text: criterion.read_grade(text, None),
        "criterion_grade": lambda text: criterion.read_grade(text, 3),
        "nuggets": nuggets.NuggetRecall()._made,
        "nuggets_in_answer": lambda text: nuggets._read_support(text, 3),
        "questions_of_answer": lambda text: answer_relevancy._read(text, 2),
        "statements_in_sentences": lambda text: context_recall.read_ways(text, 2, 9),
        "sufficient_context": sufficient_context.read_verdict,
        "support": support._stated,
    }.items()
}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
