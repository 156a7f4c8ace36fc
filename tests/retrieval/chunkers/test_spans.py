from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.contract import frames
from ragauge.contract.component import Tokenizer
from ragauge.retrieval.chunkers.spans import chunks_frame, split_long
from ragauge.texts.tokenizers import WordTokenizer


class ByteTokenizer(Tokenizer):
    """A token per UTF-8 byte, as the worst of byte-level tokenizers: bytes of one character overlap."""

    name = "bytes"

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [
            np.array(
                [(i, i + 1) for i, char in enumerate(text) for _ in char.encode("utf-8", "surrogatepass")],
                dtype=np.int64,
            ).reshape(-1, 2)
            for text in texts
        ]


class StartTokenizer(WordTokenizer):
    """Words, of which a text's first counts twice: a piece has more tokens than the same words inside."""

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.concatenate([tokens[:1], tokens]) for tokens in super().offsets(texts)]


def docs_of(*texts: str) -> pd.DataFrame:
    return pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "title": "", "text": list(texts)}).astype("str")


def pieces(texts: list[str], spans: list[tuple[int, int, int]]) -> list[str]:
    return [texts[row][start:end] for row, start, end in spans]


def test_chunks_frame_numbers_the_chunks_of_each_document() -> None:
    docs = docs_of("one two", "", " three ")
    chunks = frames.check("chunks", chunks_frame(docs, [(0, 0, 4), (0, 4, 7), (1, 0, 0), (2, 0, 7)]))
    assert chunks.values.tolist() == [
        ["d0%p0", "one", "d0", 0, 3],
        ["d0%p1", "two", "d0", 4, 7],
        ["d2%p0", "three", "d2", 1, 6],
    ]


def test_long_sentence_is_split_behind_a_word_and_joined_by_the_next_sentence() -> None:
    texts = ["Short one. Aa bb cc dd ee ff. Gg."]
    spans = split_long(texts, [(0, 0, len(texts[0]))], WordTokenizer(), 5)
    assert pieces(texts, spans) == ["Short one.", "Aa bb cc dd ee", "ff. Gg."]
    # Three tokens would end at "bb", in front of its comma.
    texts = ["aa, bb, cc dd"]
    assert pieces(texts, split_long(texts, [(0, 0, 13)], WordTokenizer(), 3)) == ["aa,", "bb, cc", "dd"]


def test_one_character_of_many_tokens_stands_alone() -> None:
    assert pieces(["a😀b"], split_long(["a😀b"], [(0, 0, 3)], ByteTokenizer(), 2)) == ["a", "😀", "b"]


@pytest.mark.parametrize("tokenizer", [WordTokenizer(), StartTokenizer(), ByteTokenizer()])
@given(
    texts=st.lists(st.one_of(st.text(), st.lists(st.sampled_from(["Aa", "bb.", "C!", ",", "é", "  "])).map(" ".join))),
    max_tokens=st.integers(4, 9),
)
def test_no_piece_is_too_long_and_no_token_is_lost(
    tokenizer: WordTokenizer | ByteTokenizer, texts: list[str], max_tokens: int
) -> None:
    whole = [(row, 0, len(text)) for row, text in enumerate(texts)]
    spans = split_long(texts, whole, tokenizer, max_tokens)
    assert all(len(own) <= max_tokens for own in tokenizer.offsets(pieces(texts, spans)))
    assert all(piece == piece.strip() != "" for piece in pieces(texts, spans))
    for row, text in enumerate(texts):
        mine = [(start, end) for own, start, end in spans if own == row]
        assert all(end <= start for (_, end), (start, _) in pairwise(mine))
        covered = "".join(text[start:end] for start, end in mine)
        assert "".join(covered.split()) == "".join(text.split())
