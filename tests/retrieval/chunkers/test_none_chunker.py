from __future__ import annotations

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.retrieval.chunkers import NoChunker


def test_a_document_is_a_chunk_and_none_without_text(tools: Tools) -> None:
    docs = pd.DataFrame({"docno": ["a", "b", "c"], "title": "", "text": [" One. Two.\n", "", "Three"]}).astype("str")
    chunks = frames.check("chunks", NoChunker().chunk(docs, tools))
    assert chunks.values.tolist() == [["a%p0", "One. Two.", "a", 1, 10], ["c%p0", "Three", "c", 0, 5]]
