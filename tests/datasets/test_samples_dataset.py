"""dataset=samples: RAGAS's and DeepEval's files as they write them, several systems, bad rows by name."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.topics import SAME_QUESTION, attributes_of, is_unanswerable, references, scorable
from ragauge.datasets import SamplesDataset, recordings

RAGAS = {
    "user_input": "Where does the Aare end?",
    "retrieved_contexts": ["The Aare joins the Rhine.", "It's long."],
    "reference_contexts": ["The Aare joins the Rhine.", 'It is called "Aare".'],
    "response": "In the Rhine.",
    "reference": "The Rhine",
}
OLD_RAGAS = {
    "question": RAGAS["user_input"],
    "contexts": RAGAS["retrieved_contexts"],
    "answer": RAGAS["response"],
    "ground_truth": RAGAS["reference"],
}
DEEPEVAL = {
    "input": RAGAS["user_input"],
    "actual_output": RAGAS["response"],
    "expected_output": RAGAS["reference"],
    "retrieval_context": RAGAS["retrieved_contexts"],
    "context": RAGAS["reference_contexts"],
    "source_file": None,
}
CAMEL = {
    "input": RAGAS["user_input"],
    "actualOutput": RAGAS["response"],
    "expectedOutput": RAGAS["reference"],
    "retrievalContext": RAGAS["retrieved_contexts"],
    "context": RAGAS["reference_contexts"],
}


def written(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """The rows in the format that the name ends with; CSV as csv.DictWriter prints Python's lists."""
    path = folder / name
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=4), encoding="utf-8")
    elif path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


def load(path: Path, **how: Any) -> Dataset:
    data = SamplesDataset(path=path, **how).load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    return data


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("row", [RAGAS, OLD_RAGAS, DEEPEVAL, CAMEL], ids=["ragas", "old", "deepeval", "camel"])
def test_a_sample_is_question_reference_evidence_contexts_and_answer(
    tmp_path: Path, row: Mapping[str, Any], ending: str
) -> None:
    path = written(tmp_path, f"samples.{ending}", [row, {**row, next(iter(row)): "Another?"}])
    data = load(path)
    assert data.topics["qid"].tolist() == ["1", "2"]
    assert data.topics["query"].tolist() == [RAGAS["user_input"], "Another?"]
    assert data.topics["answer"].tolist() == ["The Rhine"] * 2
    wanted = [] if row is OLD_RAGAS else RAGAS["reference_contexts"] * 2
    assert data.evidence["text"].tolist() == wanted
    assert data.evidence["docno"].isna().all()
    assert attributes_of(data.topics) == []
    assert data.docs.empty
    first = recordings.read_rows(path, None, "a.system")[0]
    assert first.texts("contexts") == RAGAS["retrieved_contexts"]
    assert first.text("answer") == "In the Rhine."


def test_deepevals_csv_divides_lists_by_bars(tmp_path: Path) -> None:
    row = {**DEEPEVAL, "retrieval_context": "[1] One.|Two, three.", "context": "Just one"}
    path = written(tmp_path, "d.csv", [row])
    assert recordings.read_rows(path, None, "a")[0].texts("contexts") == ["[1] One.", "Two, three."]
    assert load(path).evidence["text"].tolist() == ["Just one"]


def test_attributes_references_unanswerable_and_ids(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "query": "a?", "reference": "x", "references": ["y", "x"], "hops": 2, "type": "bridge",
         "faithfulness": 0.5, "label": 5, "status": "taken", "metadata": {"a": 1}},
        {"_id": "q8", "query": "b?", "unanswerable": True, "reference": "", "hops": 3},
        {"qid": "q9", "query": "c?", "reference": None, "hops": None},
    ]  # fmt: skip
    topics = load(written(tmp_path, "s.jsonl", rows)).topics
    assert topics["qid"].tolist() == ["7", "q8", "q9"]
    assert references(topics) == {"7": ("x", "y"), "q8": (), "q9": ()}
    assert is_unanswerable(topics).tolist() == [False, True, False]
    assert attributes_of(topics) == ["hops", "type", "faithfulness"]
    assert topics["hops"].tolist()[:2] == [2.0, 3.0]


def test_rows_of_several_systems_are_one_topic_whose_attributes_they_agree_on(tmp_path: Path) -> None:
    rows = [
        {"question": f"{q}?", "reference": q, "system": s, "type": "t" + q, "rounds": r, "answer": s}
        for s, r in (("x", 1), ("y", 2))
        for q in "ab"
    ]
    del rows[0]["reference"]
    data = load(written(tmp_path, "s.jsonl", rows))
    assert data.topics["qid"].tolist() == ["1", "2"]
    assert data.topics["answer"].tolist() == ["a", "b"]
    assert attributes_of(data.topics) == ["type"]
    limited = load(written(tmp_path, "s.jsonl", rows), limit=1)
    assert limited.topics["qid"].tolist() == ["1"]


def test_rows_without_a_qid_of_one_question_are_told_and_what_one_knows_the_other_takes(
    tmp_path: Path,
) -> None:
    rows = [
        {"question": "Where?", "n": 2, "kind": True}, {"question": "Who?", "n": 3.5, "kind": "x"},
        {"question": " where? ", "n": None, "kind": 7}, {"qid": "own", "question": "Where?"},
    ]  # fmt: skip
    topics = load(written(tmp_path, "s.jsonl", rows)).topics
    assert topics["qid"].tolist() == ["1", "2", "3", "own"]
    assert topics[SAME_QUESTION].fillna("-").tolist() == ["1", "-", "1", "-"]
    assert topics["n"].fillna(-1).tolist() == [2, 3.5, -1, -1]
    assert topics["kind"].fillna("-").tolist() == ["true", "x", "7", "-"]
    rows = [
        {"qid": "a", "question": "?", "history": ["Who?", "Anna"], "unanswerable": True, "system": "x"},
        {"qid": "a", "question": "?", "history": ["Who?", "Berta"], "reference_contexts": ["So."], "system": "y"},
    ]
    data = load(written(tmp_path, "s.jsonl", rows))
    assert list(data.topics["history"][0]) == ["Who?", ""]
    assert (data.topics["unanswerable"].tolist(), data.evidence["text"].tolist()) == ([True], ["So."])


def test_documents_stand_beside_the_samples(tmp_path: Path) -> None:
    docs = written(tmp_path, "docs.jsonl", [{"docno": "d", "text": "x"}, {"docno": "e", "text": "", "title": "E"}])
    data = load(written(tmp_path, "s.jsonl", [RAGAS]), docs=docs)
    assert data.docs["title"].tolist() == ["", "E"]
    assert len(scorable(data.evidence, data.topics)) == 2


GOOD = {"qid": "q0", **RAGAS}
Q1 = {"qid": "q1", "query": "?"}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"qid": "q1", "response": "x"}, "no question; its key is one of question, query, user_input, input"),
        ({"qid": "q1", "query": " "}, "the query is empty"),
        ({**Q1, "reference_contexts": "a text"}, "'reference_contexts' is no list of texts: 'a text'"),
        ({**Q1, "reference_contexts": [{"a": 1}]}, "entry 1 of 'reference_contexts' is not a string"),
        ({**Q1, "reference": {"a": 1}}, "'reference' is neither a text nor a list of texts"),
        ({**Q1, "unanswerable": "perhaps"}, "'unanswerable' is neither true nor false"),
        ({**Q1, "unanswerable": True, "reference": "x"}, "unanswerable, and has the reference"),
        ({"qid": "q 1", "query": "?"}, "qid 'q 1' is empty or holds white space"),
        ({**GOOD, "user_input": "Other?"}, "'user_input': another one than in .*line 1"),
        ({**GOOD, "reference": "Other"}, "'reference': another one than in .*line 1"),
        ({"qid": "q1", "user_input": ["Hi", "there"]}, "'user_input' is a list that holds no messages"),
        ({**Q1, "history": ["Who?"]}, "'history' has 1 texts: each turn has two, question and answer"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_or_dropped(tmp_path: Path, row: Mapping[str, Any], told: str) -> None:
    path = written(tmp_path, "s.jsonl", [GOOD, row, {"qid": "q2", "query": "Last?"}])
    with pytest.raises(DataError, match=rf"s\.jsonl, line 2, qid '{row['qid']}': .*{told}"):
        load(path)
    data = load(path, on_error="skip")
    assert data.topics["qid"].tolist() == ["q0", "q2"]
    assert len(data.skipped) == 1


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.path is not set: give the path of a file"):
        SamplesDataset().files()
    with pytest.raises(ConfigError, match=r"dataset\.path=.*there is no such file"):
        SamplesDataset(path=tmp_path / "no").files()
