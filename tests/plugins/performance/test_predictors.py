"""Query performance predictors: values by hand, twins, what is missing, and a predictor that reads no evidence."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ragauge
from ragauge.contract.answer_measures import besides_rankings
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.contract.measures import MeasuresRanking
from ragauge.estimate.topic_samples import Sample
from ragauge.plugins.performance.predictors import QueryPerformance
from small_pipeline import SmallPipelines

DEPTH, P = 2, 0.5
# c has no hit; a, b, d, e and f are five lists. d has function words alone, e no word; beyond the depth b has a score
# below 0, and f one of 0.
QUESTIONS = {"a": "the red fox", "b": "blue whale song", "c": "green", "d": "the of", "e": "!!!", "f": "deep sea"}
SCORES = {"a": [4, 2, 1, 1], "b": [6, 3, -3], "d": [5, 5], "e": [9, 1, 2], "f": [2, 1, 0], "x": [70, 1]}
# By rank: qid, text, how much of it stands in the context, and its cosine with the question.
PASSAGES = [
    ("a", "of no use", 9, 0.9), ("a", "a red fox", 9, 0.1), ("a", "red hen", 7, 0.5),
    ("b", "a whale", 7, 0.2), ("b", "cut off song", 0, 1.0), ("d", "the end", 7, -0.3), ("e", "red", 3, 0.4),
    ("x", "of another job", 14, 0.0),
]  # fmt: skip
# First the order by words, then by cosine, beside the order by rank. [1, 2, 0]: (1 - p) (0 + p / 2 + p^2) + p^3;
# [0, 2, 1]: (1 - p) (1 + p / 2 + p^2) + p^3.
OF_TEXTS = {
    "question_coverage": {"a": 2 / 2, "b": 1 / 3, "d": 1 / 2, "e": "none"},
    "order_agreement": {"a": (0.375 + 0.875) / 2, "b": 1, "d": 1, "e": "none"},
    "question_similarity": {"a": 0.9, "b": 0.2, "d": -0.3, "e": 0.4},
    "mean_similarity": {"a": 0.5, "b": 0.2, "d": -0.3, "e": 0.4},
}


@dataclass(frozen=True)
class Cosines(Embedder):
    """Vectors by the table above: a question is (1, 0), a passage has its cosine first."""

    def embed(self, texts: list[str], role: str = "passage", scratch: object = None) -> np.ndarray:
        of = {text: cosine for _, text, _, cosine in PASSAGES}
        return np.array([[1.0, 0.0] if role == "query" else [of[text], 0.0] for text in texts])


def frames(scores: dict[str, list[float]]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The topics, a run in no order, and the passages as the context holds them: the last of a topic first."""
    rows = [(qid, f"{qid}{i}", float(s), i) for qid, own in scores.items() for i, s in enumerate(own)]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]).sample(frac=1, random_state=0)
    passages = pd.DataFrame(
        [(q, 100, 9 - i, i, f"{q}{i}", text, chars) for i, (q, text, chars, _) in enumerate(PASSAGES)],
        columns=["qid", "n_tokens", "position", "rank", "docno", "text", "chars"],
    )
    return pd.DataFrame({"qid": list(QUESTIONS), "query": list(QUESTIONS.values())}), run, passages


def of_scores() -> dict[str, dict[str, Any]]:
    """Twins, one score at a time, of Shtok et al. 2012, Zhou & Croft 2007 (lambda = 1 / sqrt(words)) and Tao & Wu
    2014; the mean of the list stands for the corpus, and every predictor is standardised over the lists.
    """
    raw: dict[str, dict[str, float]] = {name: {} for name in ("top_score", "score_drop", "nqc", "wig", "smv")}
    for qid, scores in SCORES.items():
        if qid != "x":
            n_words = {"a": 3, "b": 3, "d": 2, "e": 1, "f": 2}[qid]
            first, corpus = scores[:DEPTH], sum(scores) / len(scores)
            mean = sum(first) / len(first)
            raw["top_score"][qid], raw["score_drop"][qid] = first[0], first[0] - first[-1]
            deviation = math.sqrt(sum((s - mean) ** 2 for s in first) / len(first))
            raw["nqc"][qid] = deviation / (sum(map(abs, scores)) / len(scores))
            raw["wig"][qid] = sum((s - corpus) / math.sqrt(n_words) for s in first) / len(first)
            if min(scores) > 0:
                raw["smv"][qid] = sum(s * abs(math.log(s / mean)) for s in first) / len(first) / corpus
    found: dict[str, dict[str, Any]] = {}
    for name, values in raw.items():
        mean = sum(values.values()) / len(values)
        spread = math.sqrt(sum((v - mean) ** 2 for v in values.values()) / len(values))
        found[name] = {qid: (v - mean) / spread for qid, v in values.items()}
    found["smv"] |= {"b": "none", "f": "none"}
    return found


@pytest.mark.parametrize("vectors", [True, False])
def test_every_topic_has_a_row_of_every_predictor(tools: Tools, vectors: bool) -> None:
    measure = QueryPerformance(depth=DEPTH, persistence=P, vectors=vectors)
    assert isinstance(measure, MeasuresRanking)
    assert measure.uses == ({"embedder"} if vectors else set())
    given = replace(tools, embedder=Cosines()) if vectors else tools
    found = check("answer_values", measure.measure_ranking(*frames(SCORES), 100, given), "test")
    expected: dict[str, dict[str, Any]] = of_scores() | OF_TEXTS
    if not vectors:
        expected["order_agreement"] = OF_TEXTS["order_agreement"] | {"a": 0.375}
        del expected["question_similarity"], expected["mean_similarity"]
    rows = [(name, qid, of.get(qid, "no context")) for name, of in expected.items() for qid in QUESTIONS]
    assert list(zip(found["measure"], found["qid"], strict=True)) == [(name, qid) for name, qid, _ in rows]
    assert found["status"].tolist() == [v if isinstance(v, str) else "ok" for *_, v in rows]
    numbers = [math.nan if isinstance(v, str) else v for *_, v in rows]
    assert found["value"].tolist() == pytest.approx(numbers, nan_ok=True)
    assert set(found["n_tokens"]) == {100}
    assert found.index.equals(pd.RangeIndex(len(rows)))


def test_labels_units_and_usual_settings() -> None:
    shown = [(i.name, i.label, i.of) for i in QueryPerformance().infos]
    assert shown == [
        ("top_score", "first score", "ranking"), ("score_drop", "first score less the last", "ranking"),
        ("nqc", "NQC", "ranking"), ("wig", "WIG", "ranking"), ("smv", "SMV", "ranking"),
        ("question_coverage", "question's words in the context", "context"),
        ("order_agreement", "agreement of orders", "context"),
        ("question_similarity", "similarity of the nearest passage", "context"),
        ("mean_similarity", "mean similarity of the passages", "context"),
    ]  # fmt: skip
    others = {(i.direction, i.unit, i.section, i.on_terminal, i.compared) for i in QueryPerformance().infos}
    assert others == {("higher", "score", "Without evidence", False, False)}
    assert QueryPerformance() == QueryPerformance(depth=10, persistence=0.9, vectors=True)
    assert QueryPerformance(depth=2, persistence=0.999, vectors=False)


def test_passages_with_the_same_words_stand_in_the_order_of_words_as_they_come(tools: Tools) -> None:
    rows = [("a", 100, i, i, f"a{i}", f"fox {i}", 9) for i in range(60)]
    passages = pd.DataFrame(rows, columns=["qid", "n_tokens", "position", "rank", "docno", "text", "chars"])
    topics, run, _ = frames(SCORES)
    found = QueryPerformance(vectors=False).measure_ranking(topics, run, passages, 100, tools)
    assert found[found["measure"] == "order_agreement"]["value"].tolist()[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        ({"a": [1, 0.5], "b": [1, 0.5, 0.3], "d": [1, 0.5]}, {"none"}),  # lists of a length are equal: ranks alone
        ({"a": [1, 0.5], "b": [1, 0.5]}, {"none"}),
        ({"a": [1, 0.5], "b": [1, 0.4]}, {"ok"}),
        ({"a": [1, 0.5]}, {"ok"}),
    ],
)
def test_ranks_alone_are_no_scores(tools: Tools, scores: dict[str, list[float]], status: set[str]) -> None:
    found = QueryPerformance(vectors=False).measure_ranking(*frames(scores), 100, tools).set_index("measure")
    there = found[found["qid"].isin(list(scores))]
    assert set(there.loc[["top_score"], "status"]) == status
    if status == {"ok"}:  # all first scores are equal
        assert there.loc[["top_score"], "value"].eq(0).all()


def test_a_list_of_zeros_has_no_spread_beside_its_size(tools: Tools) -> None:
    found = QueryPerformance(vectors=False).measure_ranking(*frames({"a": [0, 0], "b": [2, 0]}), 100, tools)
    assert found[found["measure"] == "nqc"]["value"].tolist()[:2] == [-1, 1]


@pytest.mark.parametrize(("size", "apart", "value"), [(1, 1e-7, 1), (1e-12, 1e-7, 1), (1, 1e-12, 0), (1e6, 1e-12, 0)])
def test_a_spread_that_only_rounding_makes_is_none(tools: Tools, size: float, apart: float, value: float) -> None:
    scores = {"a": [size, 0], "b": [size * (1 + apart), 0]}
    found = QueryPerformance(vectors=False).measure_ranking(*frames(scores), 100, tools)
    assert found[found["measure"] == "top_score"]["value"].tolist()[:2] == pytest.approx([-value, value], abs=1e-3)


def test_a_job_has_them_for_all_topics_though_a_sample_is_answered(small: SmallPipelines) -> None:
    whole = small(answers={"qpp": QueryPerformance()})
    some = replace(small(answers={"qpp": QueryPerformance()}), answered=Sample(2, of="llm"))
    columns = ["question_coverage", "question_similarity", "nqc"]
    assert whole.outcomes[columns].notna().all(axis=None)
    assert whole.outcomes.set_index("qid").loc["q1", "question_coverage"] == 1  # built, tower
    assert some.outcomes["answer"].notna().sum() == 2
    assert some.outcomes[columns].equals(whole.outcomes[columns])
    compared = {info.name for info in besides_rankings(whole.answer_measures)}
    assert not compared.intersection(columns)
    # A predictor reads them before an answer is made.
    fresh = small(answers={"qpp": QueryPerformance()})
    assert fresh.foreseeing[columns].equals(whole.outcomes[columns])
    assert "rr" in fresh.foreseeing
    assert "answers" not in fresh.seconds
    assert [info.of for info in whole.answer_measures if info.name in columns] == ["ranking", "context", "context"]


def test_settings_out_of_range_are_named() -> None:
    for wrong, key in (({"depth": 1}, "depth"), ({"persistence": 1.0}, "persistence"), ({"vectors": 2}, "vectors")):
        with pytest.raises(ConfigError, match=f"answers.qpp.{key}"):
            QueryPerformance(**wrong)


def test_a_topic_without_contexts_has_no_value_and_does_not_end_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"question": "Who wrote Faust?", "contexts": ["Faust is a play by Goethe.", "A duck."], "answer": "Goethe"},
        {"question": "Who wrote Emma?", "contexts": [], "answer": "Jane Austen"},
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    qpp = ["answers=[qpp]", "answers.qpp.vectors=false", "bootstrap=0"]
    found = ragauge.run(["experiment=recorded", "recorded.path=rows.jsonl", "judge=none", *qpp]).outcomes
    assert found["question_coverage"].dropna().tolist() == [0.5]  # of wrote and Faust; Faust
    assert found[["order_agreement", "question_coverage", "wig"]].notna().sum(axis=1).tolist() == [3, 0]
