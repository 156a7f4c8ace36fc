"""Config group `trainer`: networks that are tuned on topics and their evidence."""

from ragauge.trainers.encoder import Encoder
from ragauge.trainers.reranker import Reranker

__all__ = ["Encoder", "Reranker"]
