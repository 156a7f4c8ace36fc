"""Config group `compressor`: passages to what of them matters for the question."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.compressors._llm import LLMCompressor
    from ragauge.retrieval.compressors._none import NoCompressor
    from ragauge.retrieval.compressors._sentences import SentenceCompressor

__all__ = ["LLMCompressor", "NoCompressor", "SentenceCompressor"]

__getattr__ = lazily(__name__)
