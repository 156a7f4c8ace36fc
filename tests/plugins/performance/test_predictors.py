"""Query performance predictors: values by hand, twins, what is missing, and a predictor that reads no evidence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.answer_measures import besides_rankings
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.contract.measures import MeasuresRanking
from ragauge.contract.protocols import Tools
from ragauge.estimate.topic_samples import Sample
from ragauge.plugins.performance.predictors import QueryPerformance, gives_ranks_alone, nqc, smv, wig
from small_pipeline import SmallPipelines

SCORES = np.array([4.0, 2.0, 1.0, 1.0])  # mean 2


def test_the_predictors_of_scores_by_hand() -> None:
    assert nqc(SCORES, 2) == pytest.approx(1.0 / 2.0)  # 4 and 2 deviate by 1
    assert wig(SCORES, 2, 4) == pytest.approx((3.0 - 2.0) / 2.0)
    assert smv(SCORES, 2) == pytest.approx((4 * math.log(4 / 3) + 2 * math.log(3 / 2)) / 2 / 2.0)
    assert nqc(np.zeros(3), 2) == 0.0
    assert math.isnan(smv(np.array([1.0, -0.5]), 2))


def test_the_predictors_of_scores_against_twins_of_their_formulas() -> None:
    """Twins in plain Python, one score at a time, of Shtok et al. 2012, Zhou & Croft 2007 (lambda = 1 / sqrt(words))
    and Tao & Wu 2014; the mean of the list stands for the corpus throughout.
    """
    rng = np.random.default_rng(7)
    for n, k, words in ((30, 10, 4), (6, 10, 9), (2, 2, 1)):
        scores = np.sort(rng.gamma(2.0, 3.0, n))[::-1]
        first = list(map(float, scores[:k]))
        corpus = math.fsum(map(float, scores)) / n
        mean = math.fsum(first) / len(first)
        deviation = math.sqrt(math.fsum((s - mean) ** 2 for s in first) / len(first))
        gain = math.fsum((s - corpus) / math.sqrt(words) for s in first) / len(first)
        variance = math.fsum(s * abs(math.log(s / mean)) for s in first) / len(first)
        assert nqc(scores, k) == pytest.approx(deviation / corpus, rel=1e-12)
        assert wig(scores, k, words) == pytest.approx(gain, rel=1e-12, abs=1e-12)
        assert smv(scores, k) == pytest.approx(variance / corpus, rel=1e-12)


def test_ranks_alone_are_no_scores() -> None:
    assert gives_ranks_alone([np.array([1, 0.5]), np.array([1, 0.5, 0.3]), np.array([1, 0.5])])
    assert not gives_ranks_alone([np.array([1, 0.5]), np.array([0.9, 0.5])])


def frames(scores: dict[str, list[float]]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Topics a, b and c, a run with these scores, and two passages of a and b."""
    topics = pd.DataFrame({"qid": ["a", "b", "c"], "query": ["the red fox", "blue whale song", "green"]})
    rows = [(qid, f"{qid}{i}", s, i) for qid, own in scores.items() for i, s in enumerate(own)]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])
    texts = [("a", "a fox", 5), ("a", "red red", 7), ("b", "a whale", 7), ("b", "cut off song", 0)]
    passages = pd.DataFrame(
        [(q, 100, i % 2, i % 2, f"{q}{i % 2}", text, chars) for i, (q, text, chars) in enumerate(texts)],
        columns=["qid", "n_tokens", "position", "rank", "docno", "text", "chars"],
    )
    return topics, run, passages


def wide(found: pd.DataFrame) -> pd.DataFrame:
    return check("answer_values", found, "test").pivot(index="qid", columns="measure", values="value")


def test_every_topic_has_a_row_of_every_predictor(tools: Tools) -> None:
    measure = QueryPerformance()
    assert isinstance(measure, MeasuresRanking)
    topics, run, passages = frames({"a": [3.0, 1.0], "b": [1.0, 1.0]})
    found = measure.measure_ranking(topics, run, passages, 100, tools)
    assert len(found) == 3 * len(measure.infos)
    assert set(found.loc[found["value"].isna(), "status"]) == {"no context"}
    values = wide(found)
    assert values.loc["c"].isna().all()
    # Two topics: one standard deviation above and one below their mean.
    assert values["top_score"].tolist()[:2] == pytest.approx([1.0, -1.0])
    assert values["score_drop"].tolist()[:2] == pytest.approx([1.0, -1.0])
    # "fox" and "red" stand there; of "blue whale song" the cut passage brings nothing.
    assert values["question_coverage"].tolist()[:2] == pytest.approx([1.0, 1 / 3])
    cosine = tools.embedder.embed(["blue whale song"], "query")[0] @ tools.embedder.embed(["a whale"])[0]
    assert values.loc["b", ["question_similarity", "mean_similarity"]].tolist() == pytest.approx([cosine, cosine])
    assert values.loc["b", "order_agreement"] == 1.0  # of a single passage


def test_orders_that_disagree_and_scores_that_are_ranks(tools: Tools) -> None:
    topics, run, passages = frames({"a": [1.0, 0.5], "b": [1.0, 0.5]})
    passages.loc[0, ["text", "chars"]] = ["of no use", 9]  # the first passage of a has no word of the question
    values = wide(QueryPerformance(vectors=False, persistence=0.5).measure_ranking(topics, run, passages, 100, tools))
    assert values["top_score"].isna().all()
    assert values.loc["a", "order_agreement"] == pytest.approx(0.5)  # (1 - p) / 2 + p^2
    assert "question_similarity" not in values


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
