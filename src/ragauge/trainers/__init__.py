"""Config group `trainer`: networks that are tuned on topics and their evidence."""

from ragauge.trainers.encoder import Encoder

__all__ = ["Encoder"]
