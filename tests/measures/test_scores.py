"""Scores of topics: means over evidence, topics without hits, errors that name what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.measures import Measure, MeasuresPieces, Pieces
from ragauge.measures import Subsequence, Substring, Words, mean_over_parts, measured_parts, part_scores, score_frame
from ragauge.measures.answers import EvidenceMeasure
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.order import LongContextOrder
from ragauge.texts.tokenizers import WordTokenizer

CHUNKS = pd.DataFrame(
    {"docno": ["a%p0", "a%p1", "b%p0"], "text": ["the cat sat", "on the mat.", "A dog"]}
)  # fmt: skip
RUN = pd.DataFrame(
    {
        "qid": ["q1", "q1", "q1", "q2"],
        "docno": ["b%p0", "a%p0", "a%p1", "a%p1"],
        "score": [3.0, 2.0, 1.0, 1.0],
        "rank": [0, 1, 2, 0],
    }
)
EVIDENCE = pd.DataFrame(
    {
        "qid": ["q1", "q3", "q1", "q2"],
        "part": [1, 0, 0, 0],
        "docno": ["b", None, "a", "a"],
        "text": ["dogs", "gone", "cat  sat on", "mat"],
    }
)
TOPICS = ["q2", "q3", "q1"]


def contexts(reorder_after_cut: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    order = LongContextOrder("first") if reorder_after_cut else None
    return build_contexts(RUN, CHUNKS, WordTokenizer(), [0, 4, 8], TOPICS, order)


def test_parts_by_hand() -> None:
    parts = part_scores(Substring(), EVIDENCE, *contexts())
    assert parts.columns.tolist() == ["qid", "n_tokens", "part", "value"]
    rows = {(q, n, p): v for q, n, p, v in parts.itertuples(index=False)}
    # C of q1 is "A dog the cat sat on the mat."; four tokens are "A dog the cat".
    assert rows == {
        ("q2", 0, 0): 0.0,
        ("q2", 4, 0): 1.0,
        ("q2", 8, 0): 1.0,
        ("q3", 0, 0): 0.0,
        ("q3", 4, 0): 0.0,
        ("q3", 8, 0): 0.0,
        ("q1", 0, 0): 0.0,
        ("q1", 0, 1): 0.0,
        ("q1", 4, 0): 3 / 10,
        ("q1", 4, 1): 3 / 4,
        ("q1", 8, 0): 1.0,
        ("q1", 8, 1): 3 / 4,
    }
    assert list(rows) == sorted(rows, key=lambda row: (TOPICS.index(row[0]), row[1], row[2]))


def test_a_score_is_the_mean_over_the_parts_and_topics_without_hits_are_zero() -> None:
    layouts, prefixes = contexts()
    scores = frames.check("scores", score_frame(Substring(), EVIDENCE, layouts, prefixes))
    assert scores["qid"].tolist() == prefixes["qid"].tolist()
    assert scores["n_tokens"].tolist() == prefixes["n_tokens"].tolist()
    assert set(scores["measure"]) == {"substring"}
    assert scores["value"].tolist() == [0, 1, 1, 0, 0, 0, 0, (3 / 10 + 3 / 4) / 2, (1 + 3 / 4) / 2]
    parts = part_scores(Substring(), EVIDENCE, layouts, prefixes)
    pd.testing.assert_frame_equal(scores, mean_over_parts(parts, "substring"))


@pytest.mark.parametrize("reorder_after_cut", [False, True])
@pytest.mark.parametrize("measure", [Substring(), Subsequence(), Words()])
def test_a_score_is_that_of_the_context_that_the_llm_reads(measure: Substring, reorder_after_cut: bool) -> None:
    layouts, prefixes = contexts(reorder_after_cut)
    scores = score_frame(measure, EVIDENCE, layouts, prefixes).set_index(["qid", "n_tokens"])["value"]
    for n in (0, 4, 8):
        for qid, _, text, *_ in contexts_at(layouts, prefixes, n).itertuples(index=False):
            evidence = EVIDENCE.loc[EVIDENCE["qid"] == qid, "text"].tolist()
            expected = measure.score(evidence, text, np.array([len(text)])).mean()
            assert scores[qid, n] == pytest.approx(expected, abs=1e-15)


def test_the_order_of_rows_does_not_matter() -> None:
    layouts, prefixes = contexts()
    straight = score_frame(Substring(), EVIDENCE, layouts, prefixes)
    shuffled = score_frame(
        Substring(),
        EVIDENCE.sample(frac=1, random_state=1),
        layouts.sample(frac=1, random_state=2),
        prefixes.sample(frac=1, random_state=3),
    )
    keys = ["qid", "n_tokens"]
    pd.testing.assert_frame_equal(
        straight.sort_values(keys, ignore_index=True), shuffled.sort_values(keys, ignore_index=True)
    )


def test_a_measure_with_nothing_but_the_protocol() -> None:
    class Share(Measure):
        """Whether the evidence stands in the context as it is."""

        name = "verbatim"

        def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
            return np.array([[float(text in context[:end]) for end in ends] for text in evidence])

    scores = score_frame(Share(), EVIDENCE, *contexts())
    assert scores["measure"].unique().tolist() == ["verbatim"]
    assert scores["value"].tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0]


class OfPieces(MeasuresPieces):
    """A measure of single passages: a hundredth for every character up to an end, NaN for a part "lost"."""

    name = "pieces"
    uses: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.seen: list[Pieces] = []

    def score_pieces(
        self, evidence: Sequence[Sequence[str]], layouts: Sequence[Pieces], ends: Sequence[np.ndarray], tools: Tools
    ) -> list[np.ndarray]:
        self.seen += layouts
        return [
            np.array([[np.nan if text == "lost" else end / 100 for end in of] for text in texts])
            for texts, of in zip(evidence, ends, strict=True)
        ]


def test_a_measure_of_passages_is_given_each_without_the_space_behind_it(tools: Tools) -> None:
    measure, (layouts, prefixes) = OfPieces(), contexts()
    parts = part_scores(measure, EVIDENCE, layouts, prefixes, tools)
    by_start = {tuple(pieces.starts): pieces.texts for pieces in measure.seen}
    assert by_start == {(): [], (0,): ["on the mat."], (0, 6, 18): ["A dog", "the cat sat", "on the mat."]}
    assert parts["value"].max() == 28 / 100  # the whole context but for its full stop, a ninth token
    with pytest.raises(TypeError, match="takes shared models"):
        part_scores(measure, EVIDENCE, layouts, prefixes)


def test_topics_and_budgets_with_a_part_that_is_not_known_are_left_out() -> None:
    rows = [("q1", 4, 0, 0.5), ("q1", 4, 1, None), ("q1", 8, 0, 0.5), ("q1", 8, 1, 1.0), ("q2", 4, 0, 0.25)]
    parts = pd.DataFrame(rows, columns=["qid", "n_tokens", "part", "value"])
    kept = measured_parts(parts)
    assert kept.to_numpy().tolist() == [list(row) for row in rows[2:]]
    assert kept.index.tolist() == [0, 1, 2]
    assert mean_over_parts(kept, "m")["value"].tolist() == [0.75, 0.25]
    assert measured_parts(kept) is kept


def test_a_measure_of_evidence_is_a_column_of_the_outcomes(tools: Tools) -> None:
    layouts, prefixes = contexts()
    here = prefixes[prefixes["n_tokens"] == 4]
    qids = ["q1", "q2", "q3", "q4"]  # q3 has no hits, q4 no evidence
    answers = pd.DataFrame({"qid": qids, "n_tokens": 4, "answer": "x"})

    def measured(measure: Any, evidence: pd.DataFrame) -> list[tuple[float | None, str]]:
        found = EvidenceMeasure(measure=measure).measure_layouts(evidence, layouts, here, answers, tools)
        assert found["measure"].unique().tolist() == [f"evidence_{measure.name}"]
        values = [None if np.isnan(value) else round(value, 9) for value in found["value"]]
        return list(zip(values, found["status"], strict=True))

    # "A dog the cat" has "cat" of "cat sat on", and "dog" of "dogs"; "on the mat." has "mat".
    by_hand = [((3 / 10 + 3 / 4) / 2, "ok"), (1, "ok"), (0, "ok"), (None, "no evidence")]
    assert measured(Substring(), EVIDENCE) == by_hand
    assert measured(Substring(), EVIDENCE[EVIDENCE["qid"] != "q3"])[2:] == [(None, "no evidence")] * 2
    # A part whose reply failed leaves its topic without a value.
    failing = EVIDENCE.assign(text=["lost", "gone", "cat", "mat"])
    assert measured(OfPieces(), failing) == [(None, "failed"), (0.11, "ok"), (0, "ok"), (None, "no evidence")]
    info = EvidenceMeasure(measure=Substring()).info
    assert (info.label, info.unit, info.section, info.of) == ("evidence in one piece", "ratio", "Evidence", "context")
    assert EvidenceMeasure(measure=OfPieces()).info.label == "evidence, pieces"


def test_a_topic_without_evidence_is_named() -> None:
    with pytest.raises(DataError, match=r"1 topic\(s\) have no evidence, the first is qid='q3'"):
        score_frame(Substring(), EVIDENCE[EVIDENCE["qid"] != "q3"], *contexts())


def test_evidence_of_nothing_is_named() -> None:
    blank = EVIDENCE.assign(text=["dogs", "gone", " \n", "mat"])
    with pytest.raises(DataError, match="qid='q1', part=0: the text is empty or white space"):
        score_frame(Substring(), blank, *contexts())


def test_a_layout_that_is_not_there_is_named() -> None:
    layouts, prefixes = contexts()
    with pytest.raises(DataError, match="no layout 0 of qid='q3'"):
        score_frame(Substring(), EVIDENCE, layouts[layouts["qid"] != "q3"], prefixes)


def test_no_prefixes() -> None:
    layouts, prefixes = build_contexts(RUN, CHUNKS, WordTokenizer(), [4], [])
    assert len(frames.check("scores", score_frame(Substring(), EVIDENCE, layouts, prefixes))) == 0
