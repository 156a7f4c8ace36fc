"""Measures of rankings by topic: by hand, beside ir-measures on the written files, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures import document_run, qrels_of, ranking_values, write_qrels, write_trec_run
from ragauge.measures.rankings import (
    _check_ratio,
    check_rankings,
    cut_short,
    full_name,
    metric_of,
    part_qrels,
    ranking_infos,
    unjudged,
)

RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "docno": ["c%p0", "a%p1", "c%p2", "b%p0", "x%p9", "y%p0"],
        "score": [0.9, 0.8, 0.7, 0.2, 0.5, 0.4],
        "rank": [0, 1, 2, 3, 0, 1],
    }
)
QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2", "q3"], "docno": ["a", "b", "y", "d"], "relevance": [1, 2, 1, 1]})


def by_topic(name: str, qrels: pd.DataFrame = QRELS) -> list[float]:
    """The values of q1, q2, q3."""
    found = ranking_values(document_run(RUN), qrels, [name])
    assert found["measure"].unique().tolist() == [metric_of(full_name(name))]
    return found.set_index("qid")["value"].reindex(["q1", "q2", "q3"]).tolist()


def test_every_topic_has_its_own_value() -> None:
    # q1 ranks c, A, B (B of grade 2), q2 ranks x, Y, q3 has no hits.
    assert by_topic("P@2") == [0.5, 0.5, 0]
    assert by_topic("P(rel=2)@5") == [1 / 5, 0, 0]
    assert by_topic("RR@10") == [0.5, 0.5, 0]
    assert by_topic("RR(rel=2)") == pytest.approx([1 / 3, 0, 0])
    assert by_topic("AP") == pytest.approx([(1 / 2 + 2 / 3) / 2, 1 / 2, 0])
    assert by_topic("F1@2") == pytest.approx([0.5, 2 * 0.5 * 1 / 1.5, 0])
    assert by_topic("Judged@10") == pytest.approx([2 / 3, 1 / 2, 0])
    assert by_topic("NumRet") == [3, 2, 0]


def test_documents_judged_not_relevant_are_judged() -> None:
    more = pd.concat([QRELS, pd.DataFrame({"qid": ["q1"], "docno": ["c"], "relevance": [0]})])
    assert by_topic("Judged@10", more) == [1, 0.5, 0]
    assert by_topic("P@2", more) == [0.5, 0.5, 0]
    assert by_topic("Bpref", more)[0] == 0  # one judged document that is not relevant stands before both


def test_measures_of_what_was_judged_are_told_where_only_the_relevant_is_known() -> None:
    told = unjudged(["AP", "Judged@10", "P(judged_only=True)@5", "chunk:Bpref"], QRELS)
    assert told is not None
    assert told.startswith("measures: Judged@10, P(judged_only=True)@5, chunk:Bpref tell documents that were")
    assert unjudged(["Judged@10"], QRELS.assign(relevance=[0, 1, 1, 1])) is None
    assert unjudged(["AP"], QRELS) is None


def test_a_long_run_in_its_files_has_the_same_values_by_ir_measures(tmp_path: Path) -> None:
    """Scores of six digits were equal from rank 1,000 on, and read back in another order."""
    import ir_measures

    rng = np.random.default_rng(0)
    docnos = [f"d{i}" for i in rng.permutation(1500)]
    run = pd.DataFrame({"qid": "q", "docno": docnos, "score": np.arange(1500, 0, -1.0), "rank": range(1500)})
    deep = sorted(rng.choice(np.arange(1000, 1500), 40, replace=False))
    evidence = pd.DataFrame(
        {"qid": "q", "docno": [docnos[i] for i in (3, 40, *deep)], "relevance": [2, 1, *[1, 2] * 20]}
    )
    write_trec_run(run, tmp_path / "run.trec", "t")
    write_qrels(evidence, tmp_path / "qrels.trec")
    names = ["AP", "nDCG", "P(rel=2)@1001", "R@1200", "RR(rel=2)", "Judged@1100", "Rprec"]
    found = ranking_values(document_run(run), qrels_of(evidence), names)
    read = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(name) for name in names],
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.trec"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run.trec"))),
    )
    expected = {metric_of(str(measure)): value for measure, value in read.items()}
    assert found.set_index("measure")["value"].to_dict() == pytest.approx(expected, abs=1e-12)


def test_infos_say_what_lies_between_0_and_1() -> None:
    infos = ranking_infos(["nDCG@10", "chunk:R@5", "NumRet", "Judged", "SDCG@5"] if _cwl() else
                          ["nDCG@10", "chunk:R@5", "NumRet", "Judged"])  # fmt: skip
    assert [(i.name, i.label, i.unit) for i in infos[:4]] == [
        ("ndcg_at_10", "nDCG@10", "ratio"),
        ("chunk_r_at_5", "R@5, chunks", "ratio"),
        ("numret", "NumRet", "score"),
        ("judged_share", "Judged", "ratio"),  # `judged` is a column of the outcomes
    ]
    assert {(i.of, i.section) for i in infos} == {("ranking", "Rankings")}


def _cwl() -> bool:
    import ir_measures

    return bool(ir_measures.cwl_eval.is_available())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("R@0", "has the cutoff 0"),
        ("chunk:AP@0", "has the cutoff 0"),
        ("P", "no measure that ir-measures knows"),
        ("P(foo=1)@5", "no measure that ir-measures knows"),
        ("nDCG(gains={1:-5})@3", "no measure that ir-measures knows"),
        ("P(rel=0)@5", "cannot be computed"),
        ("ERR@10", "gdeval, which computes it, takes topics and documents by number"),
        ("chunk:chunk", "no measure that ir-measures knows"),
    ],
)
def test_names_that_are_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"^measures: ") as error:
        check_rankings([name])
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(_cwl(), reason="the package is installed here")
def test_a_measure_whose_package_is_not_installed_names_it() -> None:
    with pytest.raises(ConfigError, match=r"'RBP\(p=0.8,rel=1\)' takes a package that is not installed: pip"):
        check_rankings(["RBP(p=0.8,rel=1)"])


def test_trec_eval_ends_the_process_that_asks_for_a_cutoff_of_0() -> None:
    """Why the cutoff is looked at before ir-measures is asked."""
    code = (
        "import ir_measures as m; q=[m.Qrel('q','d',1)]; r=[m.ScoredDoc('q','d',1.0)];"
        "print(list(m.iter_calc([m.parse_measure('R@0')],q,r)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode < 0


def test_a_value_outside_of_its_range_is_told() -> None:
    values = pd.Series([0.5, -0.25], index=["q1", "q2"])
    with pytest.raises(DataError, match=r"^measures: nDCG@5 of qid='q2' is -0.25; allowed are qrels by which"):
        _check_ratio("nDCG@5", values)
    _check_ratio("NumRet", values * 100)


def test_a_measure_below_the_end_of_a_cut_run_is_told() -> None:
    names = ["nDCG@10", "R@4", "chunk:R@5"]
    assert cut_short(names, RUN, (4, None)) == (
        "measures: R@4, chunk:R@5 look further down than the run reaches, 3 documents in 4 chunks: what lies "
        "below counts as not found (retriever.top_k, reranker.depth and top_k)"
    )
    assert cut_short(names, RUN, (30, None)) is None  # all that there is
    assert cut_short(["AP", "RR", "R@3"], RUN, (4, None)) is None


def test_measures_of_parts_count_what_a_document_adds() -> None:
    docnos = ["a", "a", "b", None]  # the last part names no document, and is none of those to be found
    evidence = pd.DataFrame({"qid": ["q"] * 4, "part": [0, 1, 2, 3], "docno": docnos, "text": list("xyzw")})
    assert part_qrels(evidence.assign(relevance=[3, 1, 2, 1])).to_numpy().tolist() == [
        ["q", "a", 0, 3], ["q", "a", 1, 1], ["q", "b", 2, 2],
    ]  # fmt: skip
    run = pd.DataFrame({"qid": ["q"] * 3, "docno": ["c", "a", "b"], "rank": [0, 1, 2]})
    names = ["StRecall@1", "StRecall@2", "StRecall@3", "alpha_nDCG@3", "ERR_IA@3", "P@1", "nDCG@3"]
    found = ranking_values(run, qrels_of(evidence), names, part_qrels(evidence)).set_index("measure")["value"]
    log = np.log2
    by_hand = {
        "strecall_at_1": 0, "strecall_at_2": 2 / 3, "strecall_at_3": 1,
        # a brings two parts at rank 2, b the third at rank 3; the best order has a first.
        "alpha_ndcg_at_3": (2 / log(3) + 1 / log(4)) / (2 / log(2) + 1 / log(3)),
        # The mean over the parts of 1 / rank, over what documents that all hold the part would reach: 1 + 1/4 + 1/12.
        "err_ia_at_3": (2 / 2 + 1 / 3) / 3 / (1 + 1 / 4 + 1 / 12),
        "p_at_1": 0, "ndcg_at_3": (1 / log(3) + 1 / log(4)) / (1 + 1 / log(3)),
    }  # fmt: skip
    assert found[list(by_hand)].tolist() == pytest.approx(list(by_hand.values()))


def test_measures_of_parts_are_of_documents_and_need_the_parts() -> None:
    with pytest.raises(ConfigError, match="chunk:StRecall@5 is of documents alone"):
        check_rankings(["chunk:StRecall@5"])
    run = pd.DataFrame({"qid": ["q"], "docno": ["a"], "rank": [0]})
    with pytest.raises(ConfigError, match="StRecall@5 takes the parts of the evidence"):
        ranking_values(run, pd.DataFrame({"qid": ["q"], "docno": ["a"], "relevance": [1]}), ["StRecall@5"])
