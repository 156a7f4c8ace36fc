"""retriever=recorded of a TREC run: its ranking by hand, what it refuses, and as an arm of a hybrid."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
import pytrec_eval

from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures.rankings import document_run, ranking_values
from ragauge.retrieval.retrievers import RecordedRetrieval
from ragauge.retrieval.retrievers.recorded import read_trec_run
from recorded_inputs import CHUNKS, TOPICS


def ranked(folder: Path, text: str, **how: Any) -> list[tuple[str, str, int]]:
    path = folder / "some.trec"
    path.write_text(text, encoding="utf-8")
    run = RecordedRetrieval(path=str(path), **how).transformer(CHUNKS, folder, None)(TOPICS)
    return list(run[["qid", "docno", "rank"]].itertuples(index=False, name=None))


def test_the_score_decides_and_of_ties_the_later_docno_is_first(tmp_path: Path) -> None:
    text = "q1 Q0 c%p0 1 2.0 me\nq1 Q0 b%p0 9 3.0 me\nq1 Q0 a%p1 2 2.0 me\n\nq2 Q0 c%p0 1 -1e3 me\n"
    assert ranked(tmp_path, text) == [
        ("q1", "b%p0", 0),
        ("q1", "c%p0", 1),
        ("q1", "a%p1", 2),
        ("q2", "c%p0", 0),
    ]


def test_measures_of_a_run_with_ties_are_those_of_trec_eval(tmp_path: Path) -> None:
    random = Random(3)
    docnos = [f"{letter}{number}" for letter in "dDé_" for number in range(12)]
    chunks = pd.DataFrame({"docno": docnos, "text": "x", "parent": docnos, "start": 0, "end": 1})
    topics = pd.DataFrame({"qid": [f"t{i}" for i in range(20)], "query": "x"})
    # The last two differ in digits that a 32-bit number does not have.
    scores = [1.0, 2.0, -1.0, 123.456, 123.4560000001]
    run = {qid: {docno: random.choice(scores) for docno in random.sample(docnos, 30)} for qid in topics["qid"]}
    qrels = {qid: {docno: random.randint(0, 2) for docno in random.sample(docnos, 9)} for qid in topics["qid"]}
    rows = [f"{qid} Q0 {docno} 0 {score!r} t\n" for qid, of in run.items() for docno, score in of.items()]
    (tmp_path / "run.gz").write_bytes(gzip.compress("".join(rows).encode()))
    found = RecordedRetrieval(path=tmp_path / "run.gz").transformer(chunks, tmp_path, None)(topics)  # type: ignore[arg-type]
    truth = pd.DataFrame(
        [(q, d, g) for q, of in qrels.items() for d, g in of.items()], columns=["qid", "docno", "relevance"]
    )
    values = ranking_values(document_run(found), truth, ["nDCG@5", "RR", "P@3", "AP"])
    own = values.pivot(index="qid", columns="measure", values="value")
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.5", "recip_rank", "P.3", "map"})
    theirs = pd.DataFrame(evaluator.evaluate(run)).T.loc[own.index]
    for name, metric in {"ndcg_cut_5": "ndcg_at_5", "recip_rank": "rr", "P_3": "p_at_3", "map": "ap"}.items():
        assert own[metric].to_numpy() == pytest.approx(theirs[name].to_numpy(), abs=1e-6)


def test_a_byte_order_mark_is_no_part_of_the_first_qid(tmp_path: Path) -> None:
    text = "\ufeffq1 Q0 b 1 2.0 me\r\nq2 Q0 c 1 1.0 me\r\n"
    assert ranked(tmp_path, text) == [("q1", "b%p0", 0), ("q2", "c%p0", 0)]


def test_a_qid_may_begin_as_a_comment_does(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("#qid Q0 docno rank score tag\n# a b c 1 d\n#3 Q0 #5 1 7.0 t\n3 Q0 #4 1 6.0 t\n")
    assert read_trec_run(tmp_path / "run")[["qid", "docno"]].to_numpy().tolist() == [["#3", "#5"], ["3", "#4"]]
    (tmp_path / "run").write_text("#3 Q0 #5 1 seven t\n")
    with pytest.raises(DataError, match="run, line 1: score 'seven' is no finite number"):
        read_trec_run(tmp_path / "run")


def test_comments_such_as_those_of_ir_metadata_are_passed_over(tmp_path: Path) -> None:
    text = "# ir_metadata.start\n# tag: me\n# ir_metadata.end\nq1 Q0 b%p0 1 2.0 me\nq2 Q0 c%p0 1 1.0 me\n"
    assert ranked(tmp_path, text) == [("q1", "b%p0", 0), ("q2", "c%p0", 0)]


def test_a_document_stands_for_its_chunks_in_order(tmp_path: Path) -> None:
    text = "q1 Q0 b 1 3 me\nq1 Q0 a%p1 2 2 me\nq1 Q0 a 3 1 me\nq2 Q0 c 1 1 me\n"
    found = [("q1", "b%p0", 0), ("q1", "a%p1", 1), ("q1", "a%p0", 2), ("q2", "c%p0", 0)]
    assert ranked(tmp_path, text) == found
    assert ranked(tmp_path, text, top_k=1) == [found[0], found[3]]


def test_topics_without_hits_are_an_error_or_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "elsewhere Q0 zzz 1 1 me\nq2 Q0 b 1 1 me\n"
    with pytest.raises(DataError) as error:
        ranked(tmp_path, text)
    unknown = "1 qids in it are no topic of the dataset ('elsewhere')"
    told = f"some.trec: 1 of 2 topics have no hits in it ('q1'); {unknown}"
    assert told in str(error.value)
    assert str(error.value).endswith("as missing, retriever.on_missing=empty as ones without hits")
    with caplog.at_level(logging.WARNING):
        assert ranked(tmp_path, text, on_missing="missing") == [("q2", "b%p0", 0)]
    assert told in caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("q1 Q0 b 1 3\n", "line 1: 5 fields"),
        ("q1 Q0 b 1 3 me\nq1 Q0 c 2 high me\n", "line 2: score 'high'"),
        ("q1 Q0 b 1 nan me\n", "line 1: score 'nan'"),
        ("q1 Q0 b 1 3 me\n\nq1 Q0 b 2 2 me\n", "line 3: docno 'b' stands twice for qid 'q1'"),
        ("q1 Q0 zzz 1 3 me\nq2 Q0 b 1 3 me\n", "line 1: docno 'zzz' is neither a document nor a chunk"),
        ("q7 Q0 b 1 3 me\n", "2 of 2 topics have no hits"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        ranked(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"retriever\.path=.*no such file"):
        RecordedRetrieval(path=str(tmp_path / "no.trec")).files()
    with pytest.raises(ConfigError, match=r"retriever\.path is not set: give the path"):
        RecordedRetrieval().files()


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"x\.trec, line 1: .*0xff"):
        RecordedRetrieval(path=str(tmp_path / "x.trec")).transformer(CHUNKS, tmp_path, None)(TOPICS)


def test_texts_of_no_corpus_cannot_be_fused(tmp_path: Path) -> None:
    rows = '{"qid": "q1", "contexts": ["x"]}\n{"qid": "q2", "contexts": []}\n'
    with pytest.raises(DataError, match="1 contexts are in no corpus; only docnos can be fused"):
        ranked(tmp_path, rows)
