"""Config group `rewriter`: questions to the queries that are searched."""

from ragauge.retrieval.rewriters._none import NoRewriter

__all__ = ["NoRewriter"]
