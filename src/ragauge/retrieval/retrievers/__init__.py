"""Retrievers: chunks and topics to a run, as PyTerrier transformers."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.retrievers.bm25 import BM25
    from ragauge.retrieval.retrievers.dense import MMR, Reo, Sim
    from ragauge.retrieval.retrievers.evidence import Oracle
    from ragauge.retrieval.retrievers.hybrid import Hybrid
    from ragauge.retrieval.retrievers.multi_query import MLQ
    from ragauge.retrieval.retrievers.ranking import NoRetrieval
    from ragauge.retrieval.retrievers.recorded import RecordedRetrieval

__all__ = ["BM25", "MLQ", "MMR", "Hybrid", "NoRetrieval", "Oracle", "RecordedRetrieval", "Reo", "Sim"]

__getattr__ = lazily(__name__)
