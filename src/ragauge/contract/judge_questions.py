"""The three yes-or-no questions that a trained judge answers, and people, too."""

from __future__ import annotations

CONTEXT_RELEVANCE, ANSWER_FAITHFULNESS, ANSWER_RELEVANCE = QUESTIONS = (
    "context_relevance", "answer_faithfulness", "answer_relevance",
)  # fmt: skip
"""Is the context relevant to the question; does the answer follow from it; does it answer the question.

Columns of these names, 1 or 0, are what people say in a file of human labels.
"""


def measured_as(question: str) -> str:
    """The answer measure that holds the trained judge's probability of a yes."""
    return f"ares_{question}"


def labelled_as(question: str) -> str:
    """The column of outcomes that holds what people said."""
    return f"human_{question}"
