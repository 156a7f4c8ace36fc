"""Config group `compressor`: passages to what of them matters for the question."""

from ragauge.retrieval.compressors._langchain import LangChainCompressor
from ragauge.retrieval.compressors._llm import LLMCompressor
from ragauge.retrieval.compressors._none import NoCompressor
from ragauge.retrieval.compressors._sentences import SentenceCompressor

__all__ = ["LLMCompressor", "LangChainCompressor", "NoCompressor", "SentenceCompressor"]
