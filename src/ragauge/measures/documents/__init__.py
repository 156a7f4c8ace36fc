"""Of the list `answers`: what passages are worth by the answers that the LLM gives from them."""

from ragauge.measures.documents.alignment import (
    IGNORED,
    IGNORED_LIMIT,
    LEAVE_ONE_OUT,
    LLM,
    WORDS,
    alignment,
    ignored_warning,
)
from ragauge.measures.documents.erag import ERag

__all__ = [
    "IGNORED",
    "IGNORED_LIMIT",
    "LEAVE_ONE_OUT",
    "LLM",
    "WORDS",
    "ERag",
    "alignment",
    "ignored_warning",
]
