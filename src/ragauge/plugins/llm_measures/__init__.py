"""Measures by an LLM, the evaluator: claims, relevance, nuggets, citations, support (docs/claims.md)."""

from __future__ import annotations

from typing import Any

PROMPTS = f"{__package__}.prompts"


def read_prompt(measure: Any, field: str, shipped: str, placeholders: tuple[str, ...]) -> None:
    """Replaces a measure's prompt field by the prompt's text, which enters the measure's identity; None for none."""
    from ragauge.llms.prompts import load_prompt

    key = f"answers.{measure.component}.{field}"
    object.__setattr__(measure, field, load_prompt(getattr(measure, field), shipped, placeholders, (), key, PROMPTS))
