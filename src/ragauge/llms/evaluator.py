"""Config group `evaluator`: the chat model that measures of answers ask, which need not be the llm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragauge.llms.chat import ChatLLM


@dataclass(frozen=True)
class TheLLM:
    """Measures ask the job's llm, where it is a chat model."""

    component: ClassVar[str] = "the_llm"


@dataclass(frozen=True)
class Evaluator(ChatLLM):
    """A chat model of its own for the measures, with the settings of `ChatSettings`."""

    component: ClassVar[str] = "evaluator"
