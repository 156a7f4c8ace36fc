"""Config group `evaluator`: the chat model that measures of answers ask. `llms.chat` has one of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TheLLM:
    """Measures ask the job's llm, where it is a chat model."""

    component: ClassVar[str] = "the_llm"
