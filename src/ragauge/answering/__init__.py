"""Config group `llm`: answers by a chat model, a running system, a rule, from a file, or none."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.answering.chat import ChatGenerator
    from ragauge.answering.extractive import Extractive
    from ragauge.answering.frame import NoLLM, answer_frame
    from ragauge.answering.recorded import RecordedAnswers

__all__ = ["ChatGenerator", "Extractive", "NoLLM", "RecordedAnswers", "answer_frame"]

__getattr__ = lazily(__name__)
