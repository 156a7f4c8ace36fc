"""Retrieval measures over documents by hand, and the TREC files that any tool reads."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.measures import document_run, qrels_of, ranking_values, write_qrels, write_trec_run
from ragauge.measures.rankings import check_rankings, full_name, metric_of, ranking_means

RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 5 + ["q2"] * 2,
        "docno": ["c%p0", "a%p1", "c%p2", "a%p0", "b%p0", "x%p9", "100%pure%p3"],
        # Reordered: the scores do not fall with the rank.
        "score": [0.1, 0.9, 0.8, 0.7, 0.2, 0.5, 0.6],
        "rank": [0, 1, 2, 3, 4, 0, 1],
    }
)
EVIDENCE = pd.DataFrame(
    {
        "qid": ["q1", "q1", "q1", "q2", "q3"],
        "part": [0, 1, 2, 0, 0],
        "docno": ["a", "b", "a", "100%pure", "d"],
        "text": ["."] * 5,
    }
)
LOG = math.log2


def classics(run: pd.DataFrame, qrels: pd.DataFrame, names: list[str]) -> dict[str, float]:
    """The means over topics by full name."""
    means = ranking_means(ranking_values(document_run(run), qrels, names))
    return {name: means[metric_of(name)] for name in map(full_name, names) if metric_of(name) in means}


def test_a_document_ranks_where_its_first_chunk_does() -> None:
    documents = document_run(RUN.sample(frac=1, random_state=0))
    assert documents[["qid", "docno", "rank"]].to_numpy().tolist() == [
        ["q1", "c", 0],
        ["q1", "a", 1],
        ["q1", "b", 2],
        ["q2", "x", 0],
        ["q2", "100%pure", 1],
    ]
    assert documents["score"].tolist() == [1, 1 / 2, 1 / 3, 1, 1 / 2]


def test_hits_that_are_documents_stay_what_they_are() -> None:
    run = pd.DataFrame({"qid": ["q"], "docno": ["d7"], "score": [1.0], "rank": [0]})
    assert document_run(run)["docno"].tolist() == ["d7"]


def test_qrels_are_distinct_documents_with_a_name() -> None:
    qrels = qrels_of(pd.concat([EVIDENCE, EVIDENCE.iloc[:1].assign(qid="q4", docno=None)]))
    assert qrels.to_numpy().tolist() == [
        ["q1", "a", 1],
        ["q1", "b", 1],
        ["q2", "100%pure", 1],
        ["q3", "d", 1],
    ]


def test_qrels_stand_in_the_order_of_the_evidence_graded_or_not(tmp_path: Path) -> None:
    turned = EVIDENCE.iloc[::-1]  # q3 d, q2 100%pure, q1 a, q1 b, q1 a
    write_qrels(turned.assign(relevance=[1, 2, 3, 1, 2]), tmp_path / "graded.trec")
    assert (tmp_path / "graded.trec").read_text() == "q3 0 d 1\nq2 0 100%pure 2\nq1 0 a 3\nq1 0 b 1\n"
    write_qrels(turned, tmp_path / "named.trec")
    assert (tmp_path / "named.trec").read_text() == "q3 0 d 1\nq2 0 100%pure 1\nq1 0 a 1\nq1 0 b 1\n"


def test_means_are_over_all_topics_of_the_qrels() -> None:
    """q1 ranks c, A, B, q2 ranks x, 100%PURE, q3 has no hits and counts as 0."""
    found = classics(RUN, qrels_of(EVIDENCE), ["P@1", "P@2", "R@2", "RR", "AP", "nDCG@10"])
    assert list(found) == ["P@1", "P@2", "R@2", "RR", "AP", "nDCG@10"]
    ndcg_1 = (1 / LOG(3) + 1 / LOG(4)) / (1 + 1 / LOG(3))
    expected = {
        "P@1": 0.0,
        "P@2": (1 / 2 + 1 / 2) / 3,
        "R@2": (1 / 2 + 1) / 3,
        "RR": (1 / 2 + 1 / 2) / 3,
        "AP": ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 3,
        "nDCG@10": (ndcg_1 + 1 / LOG(3)) / 3,
    }
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_run_without_hits_is_zero() -> None:
    assert classics(RUN.iloc[:0], qrels_of(EVIDENCE), ["P@1", "nDCG@10"]) == {"P@1": 0.0, "nDCG@10": 0.0}


def test_names_are_those_of_ir_measures() -> None:
    assert list(classics(RUN, qrels_of(EVIDENCE), ["NDCG@10", "MRR", "Recall@5"])) == ["nDCG@10", "RR", "R@5"]
    with pytest.raises(ConfigError, match="'nonsense@3'"):
        classics(RUN, qrels_of(EVIDENCE), ["nonsense@3"])
    with pytest.raises(ConfigError, match="__import__"):
        classics(RUN, qrels_of(EVIDENCE), ["__import__('os').getcwd()"])


def test_no_measures_and_no_qrels() -> None:
    assert classics(RUN, qrels_of(EVIDENCE), []) == {}
    assert classics(RUN, qrels_of(EVIDENCE.assign(docno=None)), ["P@1"]) == {}


def test_files_are_read_back_by_ir_measures(tmp_path: Path) -> None:
    import ir_measures

    write_trec_run(RUN, tmp_path / "run.trec", "a tag")
    write_qrels(EVIDENCE, tmp_path / "qrels.trec")
    assert (tmp_path / "run.trec").read_text().splitlines()[:2] == [
        "q1 Q0 c 0 1.0000000000 a%20tag",
        "q1 Q0 a 1 0.5000000000 a%20tag",
    ]
    assert (tmp_path / "qrels.trec").read_text().splitlines()[0] == "q1 0 a 1"
    names = ["P@1", "AP", "nDCG@10"]
    found = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(name) for name in names],
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.trec"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run.trec"))),
    )
    expected = classics(RUN, qrels_of(EVIDENCE), names)
    assert {str(measure): value for measure, value in found.items()} == pytest.approx(expected)


def test_white_space_cannot_break_a_line(tmp_path: Path) -> None:
    run = pd.DataFrame({"qid": ["q 1"], "docno": ["The\u00a0Title, 50%%p0"], "score": [1.0], "rank": [0]})
    write_trec_run(run, tmp_path / "run.trec", "t")
    write_qrels(pd.DataFrame({"qid": ["q 1"], "docno": ["The\u00a0Title, 50%"]}), tmp_path / "qrels.trec")
    [line] = (tmp_path / "run.trec").read_text(encoding="utf-8").splitlines()
    [truth] = (tmp_path / "qrels.trec").read_text(encoding="utf-8").splitlines()
    assert line.split(" ")[:3] == ["q%201", "Q0", "The%C2%A0Title,%2050%"]
    assert truth.split(" ")[2] == line.split(" ")[2]


def test_empty_files(tmp_path: Path) -> None:
    write_trec_run(RUN.iloc[:0], tmp_path / "run.trec", "t")
    write_qrels(EVIDENCE.iloc[:0], tmp_path / "qrels.trec")
    assert (tmp_path / "run.trec").read_bytes() == (tmp_path / "qrels.trec").read_bytes() == b""


def test_f1_is_the_mean_of_the_topics_f1() -> None:
    # q1 ranks c, a, b and needs a, b; q2 ranks x, 100%pure and needs the latter; q3 has no hits.
    found = classics(RUN, qrels_of(EVIDENCE), ["F1@1", "F1@2", "F1@3", "P@2", "R@2"])
    q1, q2 = 2 * 0.5 * 0.5 / (0.5 + 0.5), 2 * 0.5 * 1 / (0.5 + 1)
    assert found["F1@1"] == 0
    assert found["F1@2"] == pytest.approx((q1 + q2) / 3)
    assert found["P@2"] == pytest.approx(1 / 3)
    assert found["R@2"] == pytest.approx(0.5)
    # Not the F1 of the mean precision and recall.
    assert found["F1@2"] != pytest.approx(2 * found["P@2"] * found["R@2"] / (found["P@2"] + found["R@2"]))
    assert found["F1@3"] == pytest.approx((2 * (2 / 3) * 1 / (5 / 3) + 2 * (1 / 3) * 1 / (4 / 3)) / 3)


@pytest.mark.parametrize(
    ("name", "metric"), [("P@5", "p_at_5"), ("nDCG@10", "ndcg_at_10"), ("RR", "rr"), ("F1@3", "f1_at_3"),
                         ("AP(rel=2)@100", "ap_rel_2_at_100")]
)  # fmt: skip
def test_a_measure_has_a_name_without_what_mlflow_refuses(name: str, metric: str) -> None:
    assert metric_of(name) == metric


@pytest.mark.parametrize(("names", "told"), [(["P@5", "F1@0"], "F1@0"), (["MRR", "RR"], "MRR and RR are one metric")])
def test_rankings_that_are_refused(names: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_rankings(names)
