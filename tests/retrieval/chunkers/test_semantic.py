from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patched import instead_of
from ragauge.contract import frames
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError
from ragauge.retrieval.chunkers import SemanticChunker, _semantic
from ragauge.retrieval.chunkers._semantic import (
    above_percentile,
)


@dataclass
class SubjectEmbedder(Embedder):
    """Vectors whose direction is the share of the letter z among x, y and z; keeps what it was asked."""

    calls: list[list[str]] = field(default_factory=list)

    def embed(self, texts: Sequence[str], store: Any = None) -> np.ndarray:
        self.calls.append(list(texts))
        angle = np.array([text.count("z") / max(1, sum(map(text.count, "xyz"))) for text in texts])
        return np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)


def docs_of(*texts: str) -> pd.DataFrame:
    return pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "title": "", "text": list(texts)}).astype("str")


def chunk(tools: Tools, docs: pd.DataFrame, **fields: Any) -> tuple[pd.DataFrame, list[list[str]]]:
    embedder = SubjectEmbedder()
    chunks = SemanticChunker(**fields).chunk(docs, replace(tools, embedder=embedder))
    return frames.check("chunks", chunks), embedder.calls


PLAIN = {"min_sentence_chars": 0, "window_each_side": 0, "breakpoint_percentile": 80}


def test_break_is_where_the_subject_changes(tools: Tools) -> None:
    docs = docs_of("A x. B x. C z. D z. ", "", "E z. F z. G z. H x.", "I x.")
    chunks, calls = chunk(tools, docs, **PLAIN)
    assert chunks["text"].tolist() == ["A x. B x.", "C z. D z.", "E z. F z. G z.", "H x.", "I x."]
    assert chunks["docno"].tolist() == ["d0%p0", "d0%p1", "d2%p0", "d2%p1", "d3%p0"]
    assert len(calls) == 1


def test_windows_hold_the_neighbours_with_the_text_between_them(tools: Tools) -> None:
    docs = docs_of("A x.\nB x.  C z. D z. E z.")
    _, calls = chunk(tools, docs, **{**PLAIN, "window_each_side": 1})
    assert calls == [["A x.\nB x.", "A x.\nB x.  C z.", "B x.  C z. D z.", "C z. D z. E z.", "D z. E z."]]


def test_document_whose_windows_are_all_equal_is_not_embedded(tools: Tools) -> None:
    docs = docs_of("A x. B z. C x. D z.", "A x. B z.")
    chunks, calls = chunk(tools, docs, **{**PLAIN, "window_each_side": 3})
    assert chunks["text"].tolist() == docs["text"].tolist()
    assert calls in ([], [[]])
    assert len(chunk(tools, docs, **PLAIN)[1][0]) == 4  # two sentences have one distance, never above itself


def test_chunk_over_the_maximum_is_split_at_sentence_ends(tools: Tools) -> None:
    docs = docs_of("A x. B x. C z. D z. E z. F z.")
    chunks, _ = chunk(tools, docs, **PLAIN, max_tokens=9)
    assert chunks["text"].tolist() == ["A x. B x.", "C z. D z. E z.", "F z."]
    whole, _ = chunk(tools, docs, **PLAIN, max_tokens=None)
    assert whole["text"].tolist() == ["A x. B x.", "C z. D z. E z. F z."]


def test_no_documents_or_no_text(tools: Tools) -> None:
    assert chunk(tools, docs_of("", " \n"), **PLAIN)[0].empty
    assert chunk(tools, frames.empty("docs"), **PLAIN)[0].empty


@given(
    texts=st.lists(st.lists(st.sampled_from(["Ax z.", "Bz.", "C.", "Dx y z?", "\n\n", "é!"])).map(" ".join)),
    min_chars=st.integers(0, 12),
    window=st.integers(0, 3),
    percentile=st.integers(0, 100),
    max_tokens=st.integers(1, 12),
)
def test_chunks_cover_the_text_in_order_and_keep_the_maximum(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    min_chars: int,
    window: int,
    percentile: int,
    max_tokens: int,
) -> None:
    from ragauge.store import Store
    from ragauge.texts.tokenizers import WordTokenizer

    tools = Tools(Store(tmp_path_factory.getbasetemp()), SubjectEmbedder(), WordTokenizer())
    chunker = SemanticChunker(min_chars, window, percentile, max_tokens)
    chunks = frames.check("chunks", chunker.chunk(docs_of(*texts), tools))
    assert all(len(own) <= max_tokens for own in tools.tokenizer.offsets(chunks["text"].tolist()))
    for i, text in enumerate(texts):
        own = chunks[chunks["parent"] == f"d{i}"]
        assert own["docno"].tolist() == [f"d{i}%p{j}" for j in range(len(own))]
        assert [text[s:e] for s, e in zip(own["start"], own["end"], strict=True)] == own["text"].tolist()
        assert "".join("".join(own["text"]).split()) == "".join(text.split())


def test_documents_in_small_blocks_get_the_same_chunks(tools: Tools, monkeypatch) -> None:
    texts = ["A x. B x. C z. D z. ", "E z. F z. G z. H x.", "I x. J y. K z. L x. M x.", "N x."]
    whole, calls = chunk(tools, docs_of(*texts), **PLAIN)
    monkeypatch.setattr(_semantic, "_BLOCK_WINDOWS", 5)
    blocks, more_calls = chunk(tools, docs_of(*texts), **PLAIN)
    pd.testing.assert_frame_equal(blocks, whole)
    assert [len(call) for call in calls] == [13]
    assert [len(call) for call in more_calls] == [8, 5]


@given(st.lists(st.lists(st.floats(0, 2), min_size=1)), st.integers(0, 100))
def test_percentiles_are_numpys_group_by_group(groups: list[list[float]], percentile: int) -> None:
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    expected = [value > np.percentile(group, percentile) for group in groups for value in group]
    values = np.array([value for group in groups for value in group])
    if groups:
        assert above_percentile(values, labels, percentile).tolist() == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"min_sentence_chars": -1},
        {"window_each_side": 1.5},
        {"breakpoint_percentile": 101},
        {"breakpoint_percentile": "80"},
        {"max_tokens": 0},
    ],
)
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"chunker.{next(iter(fields))}="):
        SemanticChunker(**fields)


@pytest.mark.parametrize(("milliseconds", "n_warned"), [(100, 1), (10, 0)])
def test_what_takes_long_is_announced_before_it_is_embedded(
    tools: Tools,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    milliseconds: int,
    n_warned: int,
) -> None:
    now = [0.0]
    seen: list[tuple[int, int]] = []

    class Slow(SubjectEmbedder):
        def embed(self, texts: Sequence[str], store: Any = None) -> np.ndarray:
            now[0] += len(texts) * milliseconds / 1000 + (0 if seen else 60)  # the model is loaded
            seen.append((len(texts), len(caplog.messages)))
            return super().embed(texts)

    monkeypatch.setattr(_semantic, "time", instead_of(time, monotonic=lambda: now[0]))
    docs = docs_of("".join(f"Word {i:04} {'xyz'[i % 3]}. " for i in range(6_000)), "Short x.")
    chunks = SemanticChunker(**PLAIN).chunk(docs, replace(tools, embedder=Slow()))
    assert seen == [(1, 0), (131, 0), (6_000, n_warned)]  # every 46th from the second on
    if n_warned:
        assert caplog.messages == [
            "chunker=semantic embeds 6,000 windows of sentences, about 10 min with this embedder (documents: 2, the "
            "longest of 78,000 characters); chunker.window_each_side=0 embeds a sentence once, chunker=tokens none"
        ]
    monkeypatch.setattr(_semantic, "_MANY_WINDOWS", 10_000)
    unasked, calls = chunk(tools, docs, **PLAIN)
    assert len(calls) == 1
    pd.testing.assert_frame_equal(chunks, unasked)
