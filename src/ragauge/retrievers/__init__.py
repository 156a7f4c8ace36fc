"""Retrievers: chunks and topics to a run. Each is a small part that yields a PyTerrier transformer."""

from ragauge.retrievers.bm25 import BM25
from ragauge.retrievers.dense import MMR, Reo, Sim
from ragauge.retrievers.multi_query import MLQ
from ragauge.retrievers.none import NoRetrieval
from ragauge.retrievers.wrapped import LangChainRetriever, PyTerrierPipeline

__all__ = ["BM25", "MLQ", "MMR", "LangChainRetriever", "NoRetrieval", "PyTerrierPipeline", "Reo", "Sim"]
