"""Config group `embedder`: texts to unit vectors."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.embedders.cached import CachedEmbedder
    from ragauge.retrieval.embedders.sentence_transformers import (
        SentenceTransformerEmbedder,
        encoder_folder,
        read_encoder,
    )

__all__ = ["CachedEmbedder", "SentenceTransformerEmbedder", "encoder_folder", "read_encoder"]

__getattr__ = lazily(__name__)
