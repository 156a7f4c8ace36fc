"""Config group `llm`: answers from contexts, by a chat model, by a rule, from a file, or none."""

from ragauge.answering.chat import ChatGenerator
from ragauge.answering.extractive import Extractive
from ragauge.answering.none import NoLLM
from ragauge.answering.recorded import RecordedAnswers

__all__ = ["ChatGenerator", "Extractive", "NoLLM", "RecordedAnswers"]
