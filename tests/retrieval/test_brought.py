"""Texts that come with a retriever, and a job of one that brings them."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.retrieval.passages import MARK, name_of, with_brought

CHUNKS = pd.DataFrame({"docno": ["a%p0"], "text": ["Anna."], "parent": ["a"], "start": [0], "end": [5]})


def test_brought_texts_are_chunks_of_their_own() -> None:
    texts = pd.DataFrame({"docno": [name_of("Bert.")], "text": ["Bert."]})
    found = with_brought(CHUNKS, texts, "Mine")
    frames.check("chunks", found)
    assert found.iloc[0].tolist() == CHUNKS.iloc[0].tolist()
    assert found.iloc[1].tolist() == [name_of("Bert."), "Bert.", name_of("Bert."), 0, 5]
    assert name_of("Bert.").startswith(MARK)
    assert name_of("Bert.") != name_of("Carl.")
    assert len(with_brought(frames.empty("chunks"), texts, "Mine")) == 1
    assert with_brought(CHUNKS, texts[:0], "Mine").equals(CHUNKS)


@pytest.mark.parametrize("docnos", [["a%p0"], ["b", "b"]])
def test_a_docno_of_two_texts_is_named(docnos: list[str]) -> None:
    texts = pd.DataFrame({"docno": docnos, "text": ["x", "y"][: len(docnos)]})
    with pytest.raises(DataError, match=f"Mine: docno '{docnos[-1]}'"):
        with_brought(CHUNKS, texts, "Mine")
