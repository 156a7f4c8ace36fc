"""Config group `embedder`: texts to unit vectors."""

from ragauge.retrieval.embedders._cached import CachedEmbedder
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder

__all__ = ["CachedEmbedder", "SentenceTransformerEmbedder"]
