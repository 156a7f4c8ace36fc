"""Config group `reranker`: a run to another order of its chunks."""

from ragauge.retrieval.rerankers._none import NoReranker
from ragauge.retrieval.rerankers.cross_encoder import CrossEncoderReranker
from ragauge.retrieval.rerankers.llm import ListwiseReranker
from ragauge.retrieval.rerankers.wrapped import LangChainReranker, PyTerrierReranker

__all__ = [
    "CrossEncoderReranker",
    "LangChainReranker",
    "ListwiseReranker",
    "NoReranker",
    "PyTerrierReranker",
]
