"""Config group `llm`: answers from contexts, by a chat model, by a rule, or none."""

from ragauge.answering.chat import ChatGenerator
from ragauge.answering.extractive import Extractive
from ragauge.answering.none import NoLLM

__all__ = ["ChatGenerator", "Extractive", "NoLLM"]
