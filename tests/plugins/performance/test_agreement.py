"""Rank-biased overlap against other implementations; the agreement of retrievers in a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.contract.retrieval import BringsTexts
from ragauge.plugins.performance.agreement import Agreement
from ragauge.plugins.performance.overlap import rank_biased_overlap
from ragauge.retrieval.retrievers import BM25, Oracle, Sim
from small_pipeline import SmallPipelines, own_values


def test_the_overlap_by_hand() -> None:
    assert rank_biased_overlap("abc", "abc", 0.9) == pytest.approx(1.0)
    assert rank_biased_overlap("abc", "xyz", 0.9) == 0.0
    assert rank_biased_overlap("", "abc", 0.9) == 0.0
    # The first ranks differ, from the second on both hold the same.
    assert rank_biased_overlap("ba", "ab", 0.5) == pytest.approx((1 - 0.5) * 0.5 + 0.5**2)
    # (1 - p) (0 + p / 2 + 2 p^2 / 3 + p^3 + p^4) + p^5 = 0.828, which published implementations print of these.
    assert rank_biased_overlap("12345", "23415", 0.9) == pytest.approx(0.828)
    # One ends after "a": it goes on to agree as far as there, wholly. X_2 = 1, X_1 = 1.
    assert rank_biased_overlap("a", "ab", 0.5) == pytest.approx(1.0)
    # "b" of two: agreement 1/2 at rank 2, and 1/2 of what follows.
    assert rank_biased_overlap("xb", "ab", 0.5) == pytest.approx(0.5 * (0.5 * 0.5) + 0.5**2 * 0.5)


def series(first: Sequence[int], second: Sequence[int], p: float) -> float:
    """(1 - p) sum of p^(d-1) A_d to rank 4,000, formula 4 of the paper; A_d of unseen ranks as RBO_EXT takes it."""
    short, long = sorted((first, second), key=len)
    s, n = len(short), len(long)
    total = 0.0
    agreed = 0.0
    for d in range(1, 4001):
        if d <= n:
            common = len(set(short[:d]) & set(long[:d]))
            seen = len(set(short) & set(long[:s]))
            agreed = (common + (seen * (d - s) / s if d > s else 0.0)) / d
        total += p ** (d - 1) * agreed
    return (1 - p) * total


def test_the_overlap_of_rankings_of_any_length_against_its_series() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        pool = int(rng.integers(6, 20))
        first, second = (rng.permutation(pool)[: int(rng.integers(1, 12))].tolist() for _ in range(2))
        p = float(rng.uniform(0.3, 0.98))
        assert rank_biased_overlap(first, second, p) == pytest.approx(series(first, second, p), abs=1e-9)


def test_the_overlap_equals_that_of_pyterrier_alpha() -> None:
    """That one stops at rank 1,000 and extends nothing: of rankings of the same 1,000 items both say the same."""
    pyterrier_alpha = pytest.importorskip("pyterrier_alpha")
    rng = np.random.default_rng(5)
    rest = list(range(12, 1000))
    for p in (0.5, 0.9):
        first, second = (rng.permutation(12).tolist() for _ in range(2))
        runs = [
            pd.DataFrame({"qid": "q", "docno": list(map(str, own + rest)), "score": np.arange(1000, 0, -1)})
            for own in (first, second)
        ]
        ((_, value),) = pyterrier_alpha.rbo(*runs, p=p)
        assert rank_biased_overlap(first, second, p) == pytest.approx(value, abs=1e-9)


def test_the_mean_agreement_leaves_out_the_system_itself() -> None:
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["a", "b", "c"]})

    def run(**lists: str) -> pd.DataFrame:
        rows = [(qid, docno, rank) for qid, own in lists.items() for rank, docno in enumerate(own)]
        return pd.DataFrame(rows, columns=["qid", "docno", "rank"])

    own, other = run(q1="abcz", q2="ab"), run(q1="bac", q3="a")
    measure = Agreement(beside=["bm25"], options={"bm25": Sim()}, depth=3, persistence=0.5)
    found = check("answer_values", measure.measure_beside(topics, own, {"x": other, "y": own}, 7), "test")
    assert found["value"].tolist()[:2] == [pytest.approx(0.5), 0.0]  # (1 - p) (0 + p + p^2) + p^3, and nothing found
    assert found["status"].tolist() == ["ok", "ok", "no context"]
    alone = measure.measure_beside(topics, own, {"y": own}, 7)
    assert alone["status"].tolist() == ["none", "none", "no context"]


def test_a_job_ranks_beside_what_the_measure_names(small: SmallPipelines) -> None:
    sim = {"_target_": "ragauge.retrieval.retrievers.Sim", "top_k": 1}
    options = {"sim": sim, "bm25": BM25(), "other": Sim()}
    job = small(answers={"agreement": Agreement(beside=["sim"], depth=2, options=options)}, retriever=Sim(top_k=2))
    assert set(own_values(job)["status"]) == {"none"}  # the reference is the system itself, at the depth compared
    assert "agreement" in job.foreseeing  # a predictor reads it before an answer is made
    # The same is stored under other settings and budgets, and is not taken for what these ask for.
    lists = [small(retriever=one).frame("run").groupby("qid")["docno"].agg(list) for one in (Sim(3), BM25(top_k=3))]
    assert not lists[0].equals(lists[1])
    for p, n_tokens in ((0.9, 8), (0.5, 8), (0.5, 4)):
        agreement = Agreement(beside=["bm25", "sim"], depth=3, persistence=p, options=options)
        values = own_values(small(answers={"agreement": agreement}, retriever=Sim(top_k=2), n_tokens=n_tokens))
        assert values["n_tokens"].tolist() == [n_tokens] * 3
        # Two hits beside three of BM25, and beside three that begin with the two.
        expected = [(rank_biased_overlap(own[:2], other, p) + 1) / 2 for own, other in zip(*lists, strict=True)]
        assert values["value"].tolist() == pytest.approx(expected)


@dataclass(frozen=True)
class Brings(Sim, BringsTexts):
    """A retriever that has texts of its own beside the chunks."""

    def bring(self, *_: object) -> None: ...


@dataclass(frozen=True)
class SearchesNothing:
    top_k: int = 10


def test_what_cannot_be_asked_beside_is_named() -> None:
    usual = Agreement(beside=["sim", "sim"], options={"sim": Sim(), "other": Oracle()})
    assert (usual.beside, usual.options, usual.depth, usual.persistence) == (["sim"], {"sim": Sim(10)}, 10, 0.9)
    (info,) = usual.infos
    assert (info.of, info.unit, info.on_terminal, info.compared) == ("ranking", "ratio", False, False)
    with pytest.raises(ConfigError, match=r"answers\.agreement\.beside.*allowed are lists of one or more of sim"):
        Agreement(beside=["mmr"], options={"sim": Sim()})
    for wrong in (Oracle(), Brings()):
        with pytest.raises(ConfigError, match=rf"answers\.agreement\.options\.x: {type(wrong).__name__} does not"):
            Agreement(beside=["x"], options={"x": wrong})
    for changes, key in (({"depth": 0}, "depth"), ({"persistence": 1.0}, "persistence")):
        with pytest.raises(ConfigError, match=f"answers.agreement.{key}"):
            Agreement(beside=["sim"], options={"sim": Sim()}, **changes)
