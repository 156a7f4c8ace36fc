from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import Batches
from ragauge.contract.topics import scorable
from ragauge.measures import qrels_of
from ragauge.plugins.benchmarks.beir import Beir
from ragauge.store import Key, Store
from small_pipeline import SmallPipelines

CORPUS = [
    {"_id": "d1", "title": "Aare", "text": "The Aare is a river.", "metadata": {"url": "x"}},
    {"_id": "d2", "title": "", "text": "It joins the Rhine.", "metadata": {}},
    {"_id": "d3", "text": "Bern lies on it."},
    {"_id": "d4", "title": "", "text": ""},
]
QUERIES = [
    {"_id": "q2", "text": "what joins the rhine", "metadata": {}},
    {"_id": "q1", "text": "which river"},
    {"_id": "q3", "text": "of another split"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq1\td3\t0\nq2\td2\t1\n"


def write(
    folder: Path,
    corpus: Sequence[Any] = CORPUS,
    queries: Sequence[Any] = QUERIES,
    qrels: str = QRELS,
    **fields: Any,
) -> Beir:
    (folder / "qrels").mkdir(exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_bytes(qrels.encode())
    return Beir(path=folder, **fields)


def evidence(source: Beir) -> list[list[Any]]:
    found = source.load().evidence
    grades = found["relevance"] if "relevance" in found else [1] * len(found)
    return [list(row) for row in zip(found["qid"], found["docno"], grades, strict=True)]


def test_frames_hold_what_the_files_say(tmp_path: Path) -> None:
    data = write(tmp_path).load()
    assert isinstance(data.docs, Batches)
    docs = frames.check("docs", data.docs.frame())
    assert docs["docno"].tolist() == ["d1", "d2", "d3", "d4"]
    assert docs["title"].tolist() == ["Aare", "", "", ""]
    assert docs["text"].tolist() == [
        "Aare The Aare is a river.", "It joins the Rhine.", "Bern lies on it.", "",
    ]  # fmt: skip
    frames.check("topics", data.topics)
    assert data.topics["qid"].tolist() == ["q2", "q1"]
    assert data.topics["answer"].isna().all()
    frames.check("evidence", data.evidence)
    qrels = sorted(qrels_of(data.evidence).to_numpy().tolist())
    assert qrels == [["q1", "d1", 2], ["q1", "d2", 1], ["q2", "d2", 1]]
    assert data.evidence["qid"].tolist() == ["q2", "q1", "q1"]
    assert data.evidence.query("docno == 'd1'")["text"].tolist() == ["Aare The Aare is a river."]
    assert data.skipped == ()
    first = write(tmp_path, qrels=f"{QRELS}q9\td1\t1\n", limit=1).load()
    assert (first.topics["qid"].tolist(), first.skipped) == (["q2"], ())  # the file's end is not looked for


def test_title_can_stay_out_of_the_text(tmp_path: Path) -> None:
    data = write(tmp_path, title_in_text=False).load()
    assert isinstance(data.docs, Batches)
    assert data.docs.frame()["text"].tolist()[0] == "The Aare is a river."
    assert data.evidence["text"].tolist()[1] == "The Aare is a river."


def test_judgements_alone_leave_nothing_to_score_by(tmp_path: Path) -> None:
    data = write(tmp_path, evidence="none").load()
    assert data.evidence["text"].isna().all()
    assert scorable(data.evidence, data.topics).empty
    assert len(qrels_of(data.evidence)) == 3


def test_relevant_document_without_text_is_judged_but_not_scored(tmp_path: Path) -> None:
    data = write(tmp_path, qrels=f"{QRELS}q2\td4\t1\n").load()
    assert data.evidence.query("docno == 'd4'")["text"].isna().all()
    assert len(qrels_of(data.evidence)) == 4


@pytest.mark.parametrize(
    ("qrels", "found"),
    [
        pytest.param(QRELS.replace("\n", "\r\n"), None, id="windows line ends"),
        pytest.param(QRELS.split("\n", 1)[1], None, id="no header"),
        pytest.param("\ufeff" + QRELS, None, id="byte order mark"),
        pytest.param(QRELS + "\n\n", None, id="empty lines"),
        pytest.param(QRELS + "q2\td2\t1\n", None, id="the same row twice"),
        pytest.param(QRELS + "q2\td1\t-1\nq2\td3\t-2\n", None, id="negative grades"),
        pytest.param('query-id\tcorpus-id\tscore\n"q1"\td1\t1\n', [["q1", "d1", 1]], id="quoted id"),
    ],
)
def test_what_published_qrels_hold(tmp_path: Path, qrels: str, found: list[Any] | None) -> None:
    usual = [["q2", "d2", 1], ["q1", "d1", 2], ["q1", "d2", 1]]
    source = write(tmp_path, qrels=qrels)
    assert evidence(source) == (found or usual)
    assert source.load().skipped == ()


def test_first_row_is_no_header_for_want_of_a_number(tmp_path: Path) -> None:
    assert evidence(write(tmp_path, qrels="q1\td1\t 2 \n")) == [["q1", "d1", 2]]
    with pytest.raises(DataError, match=r"test\.tsv, line 1: the relevance 'high' is no whole number"):
        write(tmp_path, qrels="q1\td1\thigh\nq2\td2\t1\n").load()


def test_min_relevance(tmp_path: Path) -> None:
    source = write(tmp_path, min_relevance=2)
    assert evidence(source) == [["q1", "d1", 2]]
    (said,) = source.load().skipped
    assert "1 queries have no document of relevance 2 or more, such as 'q2'" in said


def test_query_that_only_irrelevant_documents_are_judged_for_is_no_topic(tmp_path: Path) -> None:
    source = write(tmp_path, qrels=f"{QRELS}q3\td1\t0\nq3\td2\t-1\n")
    assert source.load().topics["qid"].tolist() == ["q2", "q1"]
    assert "such as 'q3'" in source.load().skipped[0]


def test_judgements_of_what_is_not_there_are_counted(tmp_path: Path) -> None:
    qrels = f"{QRELS}q1\tgone\t1\nq2\tgone\t1\nq9\td1\t1\nq3\tgone\t1\n"
    data = write(tmp_path, qrels=qrels).load()
    assert len(qrels_of(data.evidence)) == 3
    documents, topic, queries = data.skipped
    assert "3 relevant documents are not in the corpus, such as 'gone'" in documents
    assert "qid 'q3': none of its relevant documents is in the corpus" in topic
    assert "1 judged queries are not in" in queries
    assert "'q9'" in queries


@pytest.mark.parametrize(
    ("qrels", "what"),
    [
        ("q1\td1\n", "2 cells where three"),
        ("q1\t0\td1\t1\n", "4 cells where three"),
        ("q1\td1\t1.5\n", "'1.5' is no whole number"),
        ("q1\td1\t1_0\n", "'1_0' is no whole number"),
        ("q1\td1\t99999999999999999999\n", "'99999999999999999999' is no whole number"),
        ("q1\td1\t0\n", "docno 'd1' is judged twice, with 2 and 0"),
    ],
)
def test_bad_judgement_is_named_or_dropped(tmp_path: Path, qrels: str, what: str) -> None:
    with pytest.raises(DataError, match=r"test\.tsv, line 6") as caught:
        write(tmp_path, qrels=QRELS + qrels).load()
    assert what in str(caught.value)
    source = write(tmp_path, qrels=QRELS + qrels, on_error="skip")
    (skipped,) = source.load().skipped
    assert what in skipped
    assert len(evidence(source)) == 3


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("{'_id': 'd5'}", "not a line of JSON"),
        ("[]", "expected a JSON object"),
        pytest.param("[" * 100_000, "its values are nested too deep", id="deep"),
        ({"title": "", "text": ""}, "key '_id' is missing"),
        ({"_id": 5, "text": ""}, "'_id' is not a string: 5"),
        ({"_id": "d5"}, "key 'text' is missing"),
        ({"_id": "d5", "text": None}, "'text' is not a string"),
        ({"_id": "d5", "title": 5, "text": ""}, "'title' is not a string: 5"),
        ({"_id": "d1", "text": "again"}, "'d1' stands twice"),
        ({"_id": "d\t5", "text": ""}, "holds white space"),
    ],
)
def test_bad_document_is_named_or_dropped(tmp_path: Path, row: Any, what: str) -> None:
    corpus = [*CORPUS[:2], row, *CORPUS[2:]]
    with pytest.raises(DataError, match=r"corpus\.jsonl, line 3") as caught:
        write(tmp_path, corpus).load()
    assert what in str(caught.value)
    data = write(tmp_path, corpus, on_error="skip").load()
    assert isinstance(data.docs, Batches)
    assert data.docs.frame()["docno"].tolist() == ["d1", "d2", "d3", "d4"]
    assert what in data.skipped[0]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("no JSON", "not a line of JSON"),
        ({"text": "x"}, "key '_id' is missing"),
        ({"_id": "q1"}, "key 'text' is missing"),
        ({"_id": "q1", "text": " "}, "the query is empty"),
        ({"_id": "q1", "text": ["x"]}, "'text' is not a string"),
        ({"_id": "q2", "text": "again"}, "qid 'q2': this qid stands twice"),
    ],
)
def test_bad_query_is_named_or_dropped(tmp_path: Path, row: Any, what: str) -> None:
    with pytest.raises(DataError, match=r"queries\.jsonl, line 2") as caught:
        write(tmp_path, queries=[QUERIES[0], row]).load()
    assert what in str(caught.value)
    data = write(tmp_path, queries=[QUERIES[0], row], on_error="skip").load()
    assert data.topics["qid"].tolist() == ["q2"]
    assert what in data.skipped[0]


def test_packed_files_are_read_as_they_are(tmp_path: Path) -> None:
    whole = write(tmp_path).load()
    assert isinstance(whole.docs, Batches)
    docs = whole.docs.frame()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        file = tmp_path / name
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    packed = Beir(path=tmp_path).load()
    assert isinstance(packed.docs, Batches)
    assert packed.docs.frame().equals(docs)
    assert packed.evidence.equals(whole.evidence)
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-12])
    with pytest.raises(DataError, match=r"corpus\.jsonl\.gz: cannot be unpacked"):
        Beir(path=tmp_path).load()


def test_absent_file_is_named_with_the_splits_that_are_there(tmp_path: Path) -> None:
    source = write(tmp_path, split="dev")
    with pytest.raises(ConfigError, match=r"no qrels/dev\.tsv or .*dataset\.split may be test"):
        source.files()
    (tmp_path / "queries.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"no queries\.jsonl"):
        Beir(path=tmp_path).files()
    with pytest.raises(ConfigError, match="there is no such folder"):
        Beir(path=tmp_path / "nowhere").files()
    with pytest.raises(ConfigError, match=r"dataset\.path is not set"):
        Beir().files()


@pytest.mark.parametrize("fields", [{"evidence": "text"}, {"min_relevance": 0}, {"split": ""}, {"title_in_text": 1}])
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(fields))}="):
        Beir(**fields)


def test_file_that_changes_between_two_readings_is_an_error(tmp_path: Path) -> None:
    data = write(tmp_path).load()
    assert isinstance(data.docs, Batches)
    write(tmp_path, CORPUS[:3])
    with pytest.raises(DataError, match=r"corpus\.jsonl: it changed while it was read"):
        data.docs.frame()


def test_job_of_a_collection(tmp_path: Path, small: SmallPipelines) -> None:
    source = write(tmp_path)
    pipeline = small(dataset=source)
    assert pipeline.entry("dataset").frame("docs")["docno"].tolist() == ["d1", "d2", "d3", "d4"]
    assert set(pipeline.frame("scores")["qid"]) == {"q1", "q2"}
    assert Store(tmp_path / "store").find(pipeline.key("dataset")) is not None


def test_texts_of_a_large_corpus_are_not_all_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.datasets.gather._BATCH_CHARACTERS", 500_000)
    n, text = 3_000, "ten letters " * 800  # 29 MB
    write(tmp_path, [{"_id": f"d{i}", "title": "", "text": f"{i} {text}"} for i in range(1, n + 1)])
    tracemalloc.start()
    try:
        data = Beir(path=tmp_path).load()
        Store(tmp_path / "store").get_frames(Key("dataset", 1), lambda: {"docs": data.docs})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(data.evidence) == 3
    assert peak < 8_000_000


def test_a_corpus_without_a_text_is_refused_and_documents_without_one_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blank = [{**row, "title": " ", "text": "\n"} for row in CORPUS]
    with pytest.raises(DataError, match=r"corpus\.jsonl: none of its 4 documents has a text") as caught:
        write(tmp_path, blank).load()
    assert "\n" not in str(caught.value)
    assert not caplog.messages
    write(tmp_path).load()
    write(tmp_path, [*blank[1:], *blank[1:2], CORPUS[0]], on_error="skip").load()
    one, three = caplog.messages
    assert one.endswith("corpus.jsonl: 1 of 4 documents has no text and is never retrieved: 'd4'")
    assert three.endswith("3 of 4 documents have no text and are never retrieved: 'd2', 'd3', 'd4'")
