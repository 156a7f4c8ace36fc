"""Config group `reranker`: a run to another order of its chunks."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.rerankers._hits import NoReranker, candidates, fused_scores
    from ragauge.retrieval.rerankers._pair_model import (
        MODEL_FILES,
        PairModel,
        checked_config,
        is_pair_model,
        require_one_score,
    )
    from ragauge.retrieval.rerankers.cross_encoder import CrossEncoderReranker

__all__ = [
    "MODEL_FILES",
    "CrossEncoderReranker",
    "NoReranker",
    "PairModel",
    "candidates",
    "checked_config",
    "fused_scores",
    "is_pair_model",
    "require_one_score",
]

__getattr__ = lazily(__name__)
