"""Measures by an LLM, the evaluator: claims, relevance, nuggets, citations, support (docs/claims.md)."""

PROMPTS = f"{__name__}.prompts"
