"""measure=semantic: by hand, and beside a brute-force twin at every budget."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hash_embedder import HashEmbedder
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.measures import Pieces
from ragauge.experiment.measured import measured_by
from ragauge.measures import part_scores
from ragauge.measures.floor import floors
from ragauge.plugins.semantic import measure as semantic
from ragauge.plugins.semantic.measure import Semantic
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.tokenizers import WordTokenizer
from small_pipeline import SmallPipelines


class Axes(Embedder):
    """An embedder of words that are directions: the cosine of two texts is known by hand."""

    asked: list[str]

    def __init__(self) -> None:
        self.asked = []

    def embed(self, texts, role="passage", scratch: Path | None = None) -> np.ndarray:  # type: ignore[no-untyped-def]
        self.asked += texts
        axes = ("east", "north", "west")
        vectors = np.array([[text.lower().count(axis) for axis in axes] for text in texts], dtype=np.float32)
        vectors[:, 0] -= vectors[:, 2]  # west is the opposite of east
        return vectors[:, :2] / np.maximum(np.linalg.norm(vectors[:, :2], axis=1, keepdims=True), 1e-9)


def scored(evidence: list[str], passages: list[str], ends: list[int], tools: Tools) -> list[list[float]]:
    starts = np.cumsum([0, *(len(text) + 1 for text in passages)])[:-1].tolist()
    [values] = Semantic().score_pieces([evidence], [Pieces(passages, starts)], [np.array(ends)], tools)
    return values.tolist()


@pytest.fixture
def axes(tools: Tools) -> Tools:
    import dataclasses

    return dataclasses.replace(tools, embedder=Axes())


def test_the_nearest_sentence_counts_with_the_share_that_is_there(axes: Tools) -> None:
    # "East." has 5 characters, "North east." is 6 to 17; of north it has a cosine of 1/sqrt(2).
    context = ["East. To the east.", "West west."]
    assert scored(["north."], ["East. North east."], [0, 5, 6, 17], axes)[0] == [0, 0, 0, 0.707107]
    half = scored(["north."], ["north of it."], [0, 6, 12], axes)[0]
    assert half == pytest.approx([0, 0.5, 1])
    assert scored(["west."], context, [len(context[0])], axes)[0] == [0]  # below 0 is 0
    assert scored(["west."], context, [len(context[0]) + 11], axes)[0] == pytest.approx([1])


def test_a_part_of_several_sentences_is_their_mean(axes: Tools) -> None:
    assert scored(["north. It is west of it."], ["go north."], [9], axes)[0] == [0.5]


def test_equal_sentences_are_embedded_once(axes: Tools) -> None:
    pieces = Pieces(["Go north. Go east."], [0])
    Semantic().score_pieces([["Go  north."]] * 3, [pieces] * 3, [np.array([18])] * 3, axes)
    assert sorted(axes.embedder.asked) == ["Go east.", "Go north."]  # type: ignore[attr-defined]


def test_random_contexts_beside_brute_force_at_all_budgets(tools: Tools, hash_embedder: HashEmbedder) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]

    def text(n: int) -> str:
        return " ".join(" ".join(rng.choice(words, rng.integers(1, 9))) + "." for _ in range(n)).title()

    rows, prefixes, parts = [], [], []
    for topic in range(30):
        passages = [text(int(rng.integers(1, 5))) for _ in range(int(rng.integers(0, 6)))]
        starts = np.cumsum([0, *(len(p) + 1 for p in passages)])[:-1]
        whole = " ".join(passages)
        rows.append((f"q{topic}", 0, whole, [f"d{i}" for i in range(len(passages))], starts))
        for n in (4, 16, 64):
            prefixes.append((f"q{topic}", n, 0, int(min(len(whole), rng.integers(1, 5) * n)), 0, 0))
        parts += [(f"q{topic}", part, None, text(int(rng.integers(1, 3)))) for part in range(2)]
    layouts = pd.DataFrame(rows, columns=["qid", "layout", "text", "docnos", "starts"])
    ends = pd.DataFrame(prefixes, columns=["qid", "n_tokens", "layout", "end", "n_used", "n_chunks"])
    evidence = pd.DataFrame(parts, columns=["qid", "part", "docno", "text"])
    found = part_scores(Semantic(), evidence, layouts, ends, tools).set_index(["qid", "n_tokens", "part"])
    for qid, n, _, end, *_ in prefixes:
        _, _, whole, _, starts = rows[int(qid[1:])]
        for _, part, _, statement in (p for p in parts if p[0] == qid):
            values = []
            for a, b in sentence_spans(statement):
                best = 0.0
                for start, stop in zip(starts, [*(s - 1 for s in starts[1:]), len(whole)], strict=False):
                    for c, d in sentence_spans(whole[start:stop]):
                        pair = hash_embedder.embed([statement[a:b], whole[start + c : start + d]])
                        held = min(max(end - (start + c), 0) / (d - c), 1)
                        best = max(best, held * float(pair[0] @ pair[1]))
                values.append(best)
            assert found.loc[(qid, n, part), "value"] == pytest.approx(np.mean(values), abs=2e-6)
    assert found["value"].between(0, 1).all()


def test_its_floor_is_that_of_unrelated_sentences(tools: Tools) -> None:
    words = np.random.default_rng(0).choice([f"w{i}" for i in range(60)], (40, 8))
    chunks = pd.DataFrame({"docno": [f"c{i}%p0" for i in range(40)], "parent": [f"c{i}" for i in range(40)],
                           "text": [" ".join(row) + "." for row in words], "start": 0, "end": 1})  # fmt: skip
    evidence = pd.DataFrame({"qid": ["q"], "part": [0], "docno": ["c0"], "text": [chunks["text"][0]]})
    found = floors(Semantic(), evidence, chunks, WordTokenizer(), [9, 90], tools=tools)
    assert (found["value"] > 0.05).all()
    assert found["value"].is_monotonic_increasing
    assert (found["value"] < 1).all()  # its own chunk is left out


def test_a_correction_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"measure\.correct"):
        Semantic(correct="ceiling")


def test_blocks_of_layouts_end_where_they_have_as_many_sentences_as_they_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(semantic, "_BLOCK", 3)
    texts = [["One. Two."], ["One."], ["One. Two. Three. Four."], [], ["One."]]
    layouts = [SimpleNamespace(texts=of) for of in texts]
    assert list(semantic._blocks(layouts, semantic._Spans())) == [slice(0, 2), slice(2, 3), slice(3, 5)]
    assert list(semantic._blocks(layouts[:2], semantic._Spans())) == [slice(0, 2)]
    assert list(semantic._blocks([], semantic._Spans())) == []


def test_of_another_embedder_the_semantic_score_is_another(small: SmallPipelines) -> None:
    first = small(measure=Semantic(correct="floor"))
    other = small(measure=Semantic(correct="floor"), embedder=HashEmbedder(16))
    assert first.entry("corrected").digest != other.entry("corrected").digest
    assert first.frame("scores")["value"].between(0, 1).all()
    assert measured_by(first)["embedder"] != measured_by(other)["embedder"]
    assert first.entry("scores").key.params["component"]["component"] == "semantic"
