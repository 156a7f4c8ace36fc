"""Config group `llm`: answers from contexts, by a chat model, by a running system, by a rule, or none."""

from ragauge.answering.chat import ChatGenerator
from ragauge.answering.extractive import Extractive
from ragauge.answering.none import NoLLM
from ragauge.answering.service import ServiceAnswers

__all__ = ["ChatGenerator", "Extractive", "NoLLM", "ServiceAnswers"]
