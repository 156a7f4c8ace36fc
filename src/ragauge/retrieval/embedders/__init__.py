"""Config group `embedder`: texts to unit vectors."""

from ragauge.retrieval.embedders._cached import CachedEmbedder
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder, settle_backend

__all__ = ["CachedEmbedder", "SentenceTransformerEmbedder", "settle_backend"]
