"""Config group `compressor`: passages to what of them matters for the question."""

from ragauge.retrieval.compressors._none import NoCompressor

__all__ = ["NoCompressor"]
