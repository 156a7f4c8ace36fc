"""Config group `chunker`: documents to chunks, the units of retrieval.

Every chunk is a piece of one document, given by offsets, without white space at its ends. A document
without text has no chunk, whatever the chunker.
"""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.chunkers._semantic import SemanticChunker
    from ragauge.retrieval.chunkers._tokens import NoChunker, TokenChunker
    from ragauge.retrieval.chunkers.spans import chunked, chunks_frame

__all__ = ["NoChunker", "SemanticChunker", "TokenChunker", "chunked", "chunks_frame"]

__getattr__ = lazily(__name__)
