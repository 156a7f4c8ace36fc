"""Config group `rewriter`: questions to the queries that are searched."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.rewriters._none import NoRewriter
    from ragauge.retrieval.rewriters.hyde import HyDE
    from ragauge.retrieval.rewriters.multi_query import Decompose, MultiQuery, RagFusion
    from ragauge.retrieval.rewriters.prf import PRF
    from ragauge.retrieval.rewriters.recorded import Recorded

__all__ = ["PRF", "Decompose", "HyDE", "MultiQuery", "NoRewriter", "RagFusion", "Recorded"]

__getattr__ = lazily(__name__)
