"""Config group `reranker`: a run to another order of its chunks."""

from ragauge.retrieval.rerankers._none import NoReranker

__all__ = ["NoReranker"]
