from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.retrieval.chunkers import TokenChunker
from ragauge.texts.tokenizers import WordTokenizer


def chunk(tools: Tools, texts: list[str], **fields: int) -> pd.DataFrame:
    docs = pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "title": "", "text": texts}).astype("str")
    return frames.check("chunks", TokenChunker(**fields).chunk(docs, tools))


def test_chunks_of_three_that_share_one(tools: Tools) -> None:
    chunks = chunk(tools, [" a b c d e f g ", "", "h i"], size=3, overlap=1)
    assert chunks["text"].tolist() == ["a b c", "c d e", "e f g", "h i"]
    assert chunks["docno"].tolist() == ["d0%p0", "d0%p1", "d0%p2", "d2%p0"]
    assert chunks["start"].tolist() == [1, 5, 9, 0]


def test_last_chunk_is_what_is_left(tools: Tools) -> None:
    assert chunk(tools, ["a b c d"], size=3, overlap=0)["text"].tolist() == ["a b c", "d"]
    assert chunk(tools, ["a b c d"], size=4, overlap=2)["text"].tolist() == ["a b c d"]


class ThreePerCharacter(WordTokenizer):
    """Three tokens for every character but white space, as of bytes."""

    def offsets(self, texts: list[str]) -> list[np.ndarray]:
        return [
            np.array([(i, i + 1) for i, c in enumerate(text) if not c.isspace() for _ in range(3)]).reshape(-1, 2)
            for text in texts
        ]


class LongerAlone(WordTokenizer):
    """Words; a text that begins with "x" has one token more than the words say."""

    def offsets(self, texts: list[str]) -> list[np.ndarray]:
        return [
            np.concatenate([own[:1], own]) if text.startswith("x") else own
            for text, own in zip(texts, super().offsets(texts), strict=True)
        ]


def test_no_cut_falls_inside_a_character(tools: Tools) -> None:
    bytewise = replace(tools, tokenizer=ThreePerCharacter())
    assert chunk(bytewise, ["abcde"], size=7, overlap=4)["text"].tolist() == ["ab", "bc", "cd", "de"]


def test_chunk_that_reads_longer_alone_is_shortened(tools: Tools) -> None:
    longer = replace(tools, tokenizer=LongerAlone())
    assert chunk(longer, ["a b x d e f"], size=2, overlap=0)["text"].tolist() == ["a b", "x", "d e", "f"]
    assert chunk(longer, ["a b x d e f"], size=3, overlap=1)["text"].tolist() == ["a b x", "x d", "d e f"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(texts=st.lists(st.text(st.sampled_from("ab. \n"))), size=st.integers(1, 5), data=st.data())
def test_every_chunk_has_size_tokens_at_most_and_all_tokens_are_in_one(
    tools: Tools, texts: list[str], size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    chunks = chunk(tools, texts, size=size, overlap=overlap)
    for i, text in enumerate(texts):
        own = chunks[chunks["parent"] == f"d{i}"]
        assert [text[s:e] for s, e in zip(own["start"], own["end"], strict=True)] == own["text"].tolist()
        tokens = tools.tokenizer.offsets([text])[0].tolist()
        inside = [[t for t in tokens if s <= t[0] and t[1] <= e] for s, e in own[["start", "end"]].values]
        assert all(len(part) <= size for part in inside)
        assert [len(part) for part in inside[:-1]] == [size] * (len(inside) - 1)
        joined = inside[0] + [t for part in inside[1:] for t in part[overlap:]] if inside else []
        assert joined == tokens


@pytest.mark.parametrize("fields", [{"size": 0}, {"size": 2.5}, {"overlap": -1}, {"size": 8, "overlap": 8}])
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"chunker.{list(fields)[-1]}="):
        TokenChunker(**fields)
