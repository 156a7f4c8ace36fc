"""Config group `answers`: what an answer is worth beside its judge class."""

from ragauge.contract.topics import references
from ragauge.measures.answers._counterfactual import Counterfactual, says_documents_err
from ragauge.measures.answers._evidence import EvidenceMeasure
from ragauge.measures.answers._frame import measured
from ragauge.measures.answers._tokens import Contains, ExactMatch, TokenF1, normalised

__all__ = [
    "Contains",
    "Counterfactual",
    "EvidenceMeasure",
    "ExactMatch",
    "TokenF1",
    "measured",
    "normalised",
    "references",
    "says_documents_err",
]
