"""Scores of contexts by evidence: the IR score and its kernels; ir-measures for rankings."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.measures.floor import corrected_parts, floor_means, floors
    from ragauge.measures.located import chunk_qrels
    from ragauge.measures.matching import Subsequence, Substring, Words
    from ragauge.measures.rankings import (
        document_run,
        qrels_of,
        ranking_means,
        ranking_values,
        write_qrels,
        write_trec_run,
    )
    from ragauge.measures.scores import mean_over_parts, measured_parts, part_scores, score_frame

__all__ = [
    "Subsequence",
    "Substring",
    "Words",
    "chunk_qrels",
    "corrected_parts",
    "document_run",
    "floor_means",
    "floors",
    "mean_over_parts",
    "measured_parts",
    "part_scores",
    "qrels_of",
    "ranking_means",
    "ranking_values",
    "score_frame",
    "write_qrels",
    "write_trec_run",
]

__getattr__ = lazily(__name__)
