"""Config group `answers`: what an answer is worth beside its judge class."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily
from ragauge.contract.topics import references

if TYPE_CHECKING:
    from ragauge.measures.answers._bleu import Bleu
    from ragauge.measures.answers._chrf import ChrF
    from ragauge.measures.answers._evidence import EvidenceMeasure
    from ragauge.measures.answers._exact import Contains, ExactMatch, TokenF1
    from ragauge.measures.answers._frame import measured
    from ragauge.measures.answers._rouge import RougeL, RougeN
    from ragauge.measures.answers._similarity import Similarity
    from ragauge.measures.answers._slots import Slots
    from ragauge.measures.answers._tokens import normalised
    from ragauge.measures.answers._usual import Usual

__all__ = [
    "Bleu",
    "ChrF",
    "Contains",
    "EvidenceMeasure",
    "ExactMatch",
    "RougeL",
    "RougeN",
    "Similarity",
    "Slots",
    "TokenF1",
    "Usual",
    "measured",
    "normalised",
    "references",
]

__getattr__ = lazily(__name__)
