"""`retriever=hybrid`: fused runs by hand, arms and their options, and every bad one in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.option import values_of
from ragauge.contract.retrieval import Retriever
from ragauge.retrieval.queries import NoRewriter
from ragauge.retrieval.retrievers import BM25, MLQ, MMR, Hybrid, NoRetrieval, Oracle, Reo, Sim
from ragauge.retrieval.retrievers.ranking import as_transformer
from ragauge.retrieval.searching import queries_frame

HITS = values_of("hydra/shared/hits")["top_k"]
OPTIONS: dict[str, Any] = {"bm25": BM25(), "sim": Sim(), "mmr": MMR(fetch_k=200)}
CHUNKS = pd.DataFrame({"docno": ["a", "b", "c", "d"], "text": ["one", "two", "three", "four"]}, dtype="str")


@dataclass(frozen=True)
class Fixed(Retriever):
    """Ranks as it is told: {query: [docno, …]}, with falling scores."""

    space: ClassVar[str] = "text"
    uses: ClassVar[frozenset[str]] = frozenset()
    reorder_after_cut: ClassVar[bool] = False

    lists: dict[str, list[str]] = field(default_factory=dict)
    scores: tuple[float, ...] = (5.0, 4.0, 1.0, 0.0)
    top_k: int = 30

    def index_identity(self) -> dict[str, Any]:
        return {"index": "fixed"}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        (folder / "made").touch()

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        assert (folder / "made").exists()

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            rows = [
                (qid, query, docno, self.scores[rank], rank)
                for qid, query in topics[["qid", "query"]].itertuples(index=False)
                for rank, docno in enumerate(self.lists.get(query, [])[: self.top_k])
            ]
            return pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank"])

        return as_transformer("Fixed", rank)


ONE = Fixed({"x": ["a", "b", "c"], "y": ["d"]})
TWO = Fixed({"x": ["c", "d"], "x again": ["b"]})


def run_of(hybrid: Hybrid, folder: Path, tools: Tools) -> pd.DataFrame:
    hybrid.build_index(CHUNKS, folder, tools)
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["x", "nothing", "y"]}, dtype="str")
    return hybrid.transformer(CHUNKS, folder, tools)(topics)


def test_two_lists_are_one_by_reciprocal_ranks(tmp_path: Path, tools: Tools) -> None:
    hybrid = Hybrid(arms=["one", "two"], options={"one": ONE, "two": TWO})
    run = run_of(hybrid, tmp_path, tools)
    assert run[["qid", "docno", "rank"]].to_numpy().tolist() == [
        ["q1", "c", 0], ["q1", "a", 1], ["q1", "b", 2], ["q1", "d", 3], ["q3", "d", 0],
    ]  # fmt: skip
    assert run["score"].tolist() == pytest.approx([1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62, 1 / 61], abs=1e-11)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        # One: a 1, b 3/4, c 0. Two: c 1, d 0.
        ({"alpha": 0.25}, {"a": 0.75, "b": 0.5625, "c": 0.25, "d": 0}),
        ({"weights": {"two": 3, "one": 1}}, {"a": 1, "b": 0.75, "c": 3, "d": 0}),
        ({}, {"a": 1, "b": 0.75, "c": 1, "d": 0}),
        ({"depth": 2, "top_k": 2}, {"a": 1, "c": 1}),  # of two hits the second is the lowest
    ],
    ids=str,
)
def test_weights_and_depth_by_hand(
    how: dict[str, Any], expected: dict[str, float], tmp_path: Path, tools: Tools
) -> None:
    hybrid = Hybrid(arms=["one", "two"], options={"one": ONE, "two": TWO}, fusion="weighted", **how)
    run = run_of(hybrid, tmp_path, tools)
    found = run[run["qid"] == "q1"]
    assert dict(zip(found["docno"], found["score"], strict=True)) == pytest.approx(expected, abs=1e-11)


def test_a_rewriter_s_queries_go_to_every_arm_before_lists_are_fused(tmp_path: Path, tools: Tools) -> None:
    @dataclass(frozen=True)
    class TwoSearches(NoRewriter):
        union: str = "first_seen"

    hybrid = Hybrid(arms=["one", "two"], options={"one": ONE, "two": TWO})
    hybrid.build_index(CHUNKS, tmp_path, tools)
    topics = pd.DataFrame({"qid": ["q1"], "query": ["x"]}, dtype="str")
    queries = queries_frame(
        {"qid": "q1", "search": n, "query": query, "origin": "toy"} for n, query in enumerate(["x", "x again"])
    )
    run = hybrid.search(topics, queries, TwoSearches(), CHUNKS, tmp_path, tools)  # type: ignore[arg-type]
    # One finds a b c (for `x again` nothing), two c d, then b.
    score = {"a": 1 / 61, "b": 1 / 62 + 1 / 63, "c": 1 / 63 + 1 / 61, "d": 1 / 62}
    assert run["docno"].tolist() == ["c", "b", "a", "d"]
    assert run["score"].tolist() == pytest.approx(sorted(score.values(), reverse=True), abs=1e-11)


@pytest.mark.parametrize(
    ("lists", "scores", "says"),
    [
        (["a", "z"], (1.0, 0.5), "retriever.options.two: qid='q1', docno='z' is unknown here"),
        (["a", "a"], (1.0, 0.5), "docno='a' stands twice"),
        (["a", "b"], (1.0, float("nan")), "docno='b' has no finite score"),
    ],
)
def test_an_arm_that_returns_nonsense_is_named(
    lists: list[str], scores: tuple[float, ...], says: str, tmp_path: Path, tools: Tools
) -> None:
    arms = {"one": ONE, "two": Fixed({"x": lists}, scores)}
    with pytest.raises(DataError) as told:
        run_of(Hybrid(arms=["one", "two"], options=arms), tmp_path, tools)
    assert says in str(told.value)


def test_an_arm_s_options_count_and_those_of_others_do_not() -> None:
    plain = identity(Hybrid(options=OPTIONS))
    assert plain == identity(Hybrid(options={**OPTIONS, "mmr": MMR(fetch_k=300)}))
    assert plain != identity(Hybrid(options={**OPTIONS, "bm25": BM25(k1=2.0)}))
    assert plain["options"]["bm25"]["top_k"] == 100
    assert identity(Hybrid(options=OPTIONS, depth=None))["options"]["bm25"]["top_k"] == HITS


def test_models_are_those_of_the_arms() -> None:
    assert Hybrid(options=OPTIONS).uses == {"embedder"}
    assert Hybrid(options={**OPTIONS, "other": BM25(k1=2)}, arms=["bm25", "other"]).uses == frozenset()


class NoRetriever:
    """Nothing that an arm must be."""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"arms": ["bm25"]}, "retriever.arms=['bm25']: allowed are lists of 2 or more retrievers"),
        ({"arms": "bm25"}, "retriever.arms='bm25': allowed are lists"),
        ({"arms": ["sim", "sim"]}, "retriever.arms=['sim', 'sim']: sim stands twice"),
        ({"arms": ["sim", "splade"]}, "'splade' is no retriever here; allowed are bm25, sim, mmr"),
        ({"arms": ["sim", "mlq"]}, "'mlq' writes queries of its own; rewriter=multi_query"),
        ({"arms": ["sim", "none"]}, "'none' finds nothing"),
        ({"arms": ["sim", "oracle"]}, "'oracle' is told the evidence"),
        ({"arms": ["sim", "noise"]}, "'noise' is told the evidence"),
        ({"arms": ["sim", "reo"]}, "'reo' is sim in another order"),
        ({"arms": ["sim", "hybrid"]}, "'hybrid' is several retrievers"),
        (
            {"arms": ["sim", "x"], "options": {**OPTIONS, "x": MLQ()}},
            "retriever.options.x: mlq writes queries",
        ),
        ({"arms": ["sim", "x"], "options": {**OPTIONS, "x": NoRetrieval()}}, "options.x: none finds nothing"),
        ({"arms": ["sim", "x"], "options": {**OPTIONS, "x": Oracle()}}, "options.x: oracle is told"),
        ({"arms": ["sim", "x"], "options": {**OPTIONS, "x": Reo()}}, "options.x: reo is sim in another"),
        (
            {"arms": ["sim", "x"], "options": {**OPTIONS, "x": NoRetriever()}},
            "NoRetriever is no Retriever: it has no build",
        ),
        (
            {"arms": ["sim", "x"], "options": {**OPTIONS, "x": {"_target_": "collections.OrderedDict"}}},
            "retriever.options.x: collections.OrderedDict is no Retriever: it has no",
        ),
        (
            {"arms": ["sim", "mmr"], "options": {**OPTIONS, "mmr": MMR()}},
            "retriever.options.mmr: retriever.fetch_k=60: allowed are integers from 100",
        ),
        ({"depth": 10}, f"retriever.depth=10: allowed are integers from {HITS} (retriever.top_k"),
        ({"fusion": "sum"}, "retriever.fusion='sum': allowed are rrf, weighted, mnz, isr, max"),
        ({"normalise": "l2"}, "retriever.normalise='l2': allowed are min_max, z_score"),
        ({"alpha": 1.2}, "retriever.alpha=1.2: allowed are numbers from 0 to 1"),
        ({"alpha": 0.5, "weights": {"bm25": 1, "sim": 1}}, "with weights given leave it null"),
        ({"alpha": 0.5, "arms": ["bm25", "sim", "mmr"]}, "retriever.alpha=0.5 weighs two arms"),
        ({"weights": {"bm25": 1}}, "retriever.weights={'bm25': 1}: allowed are null and a number from 0 for"),
        ({"weights": {"bm25": 1, "sim": -1}}, "retriever.weights"),
        ({"weights": {"bm25": 0, "sim": 0}}, "one of them above 0"),
    ],
)
def test_what_is_no_hybrid_is_told_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        Hybrid(**{"options": OPTIONS, **given})
    assert says in str(told.value)
    assert "\n" not in str(told.value)
