"""Config group `chunker`: documents to chunks, the units that are retrieved.

Every chunk is a piece of one document, given by offsets, without white space at its ends. A document
without text has no chunk, whatever the chunker.
"""

from ragauge.chunkers._none import NoChunker
from ragauge.chunkers._semantic import SemanticChunker
from ragauge.chunkers._spans import chunks_frame
from ragauge.chunkers._tokens import TokenChunker

__all__ = ["NoChunker", "SemanticChunker", "TokenChunker", "chunks_frame"]
