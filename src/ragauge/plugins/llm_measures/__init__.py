"""Measures by an LLM, the evaluator: claims, relevance, nuggets, citations, support (docs/claims.md)."""

from __future__ import annotations

from typing import Any

PROMPTS = f"{__package__}.prompts"


def read_prompt(measure: Any, field: str, shipped: str, placeholders: tuple[str, ...]) -> None:
    """Replaces a field of a measure, a prompt or None, by the prompt's text, which is part of its identity."""
    from ragauge.llms.prompts import load_prompt

    key = f"answers.{measure.component}.{field}"
    object.__setattr__(measure, field, load_prompt(getattr(measure, field), shipped, placeholders, (), key, PROMPTS))
