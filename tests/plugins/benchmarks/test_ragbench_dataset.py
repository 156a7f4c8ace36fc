from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loader_files import checked, json_lines, named_or_dropped
from ragauge.contract.errors import DataError
from ragauge.plugins.benchmarks.ragbench import RAGBench

TOWER = "Anna built the tower. It stands in Graz."
SENTENCES = [["0a", "Anna built the tower."], ["0b", "It stands in Graz."]]
ROWS: list[dict[str, Any]] = [
    {
        "id": "covid 358",
        "question": "Where is the tower?",
        "documents": [TOWER, "Linz has a bridge."],
        "response": "In Graz.",
        "generation_model_name": "gpt-3.5-turbo-0125",
        "dataset_name": "covidqa_test",
        "documents_sentences": [SENTENCES, [["1a", "Linz has a bridge."]]],
        "all_relevant_sentence_keys": ["1a", "0b", "0b"],
        "all_utilized_sentence_keys": ["0b"],
        "relevance_score": 0.5,
        "utilization_score": 0.25,
        "completeness_score": float("nan"),
        "adherence_score": True,
    },
    {
        "id": "1741",
        "question": "Who painted it?",
        "documents": ["Linz has a bridge.", TOWER],
        "response": "Nobody knows.",
        "generation_model_name": "claude-3-haiku-20240307",
        "dataset_name": "covidqa_test",
        "documents_sentences": [[["0a", "Linz has a bridge."]], [["1a", "Anna built the tower."]]],
        "all_relevant_sentence_keys": [],
        "all_utilized_sentence_keys": [],
        "relevance_score": 0.0,
        "utilization_score": None,
        "completeness_score": 1.0,
        "adherence_score": False,
    },
]


def write(folder: Path, rows: list[Any], **fields: Any) -> RAGBench:
    return RAGBench(path=json_lines(folder / "test.jsonl", rows), **fields)


def test_relevant_sentences_are_the_evidence(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS).load())
    assert data.docs.values.tolist() == [
        ["covid_358-0", "", TOWER],
        ["covid_358-1", "", "Linz has a bridge."],
    ]
    assert data.evidence.values.tolist() == [
        ["covid_358", 0, "covid_358-0", "It stands in Graz."],
        ["covid_358", 1, "covid_358-1", "Linz has a bridge."],
    ]


def test_response_is_no_reference_and_scores_are_attributes(tmp_path: Path) -> None:
    topics = write(tmp_path, ROWS).load().topics
    assert topics["answer"].isna().all()
    assert topics["dataset_name"].tolist() == ["covidqa_test", "covidqa_test"]
    assert topics["relevance_score"].tolist() == [0.5, 0.0]
    assert topics["adherence_score"].tolist() == ["true", "false"]
    assert topics["completeness_score"].isna().tolist() == [True, False]
    assert topics["utilization_score"].isna().tolist() == [False, True]


def test_parquet_as_published_gives_the_same(tmp_path: Path) -> None:
    file = tmp_path / "test-00000-of-00001.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), file)
    lines, table = write(tmp_path, ROWS).load(), RAGBench(path=file).load()
    for name in ("docs", "topics", "evidence"):
        assert getattr(lines, name).equals(getattr(table, name))
    rows = copy.deepcopy(ROWS)
    rows[1]["all_relevant_sentence_keys"] = ["7z"]
    pq.write_table(pa.Table.from_pylist(rows), file)
    named_or_dropped(lambda **of: RAGBench(path=file, **of), f"{file}, row 2, qid '1741'", "'7z'", ["covid_358"])
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DataError, match="not a Parquet file"):
        RAGBench(path=file).load()


def test_second_response_to_a_question_is_no_topic_of_its_own(tmp_path: Path) -> None:
    again = {**ROWS[0], "response": "In Linz.", "adherence_score": False}
    topics = write(tmp_path, [*ROWS, again]).load().topics
    assert topics["qid"].tolist() == ["covid_358", "1741"]
    assert topics["responses"].tolist() == [2.0, 1.0]
    assert topics["adherence_score"].tolist() == ["true", "false"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"all_relevant_sentence_keys": ["0a", "0z"]}, "'all_relevant_sentence_keys' names '0z'"),
        ({"all_relevant_sentence_keys": None}, "key 'all_relevant_sentence_keys'"),
        ({"documents_sentences": [[["0a", "x"]]]}, "'documents_sentences' is of 1 documents"),
        ({"documents_sentences": [[["0a"]], []]}, "'documents_sentences' of document 0"),
        ({"documents_sentences": [["0a"], []]}, "'documents_sentences' of document 0"),
        ({"documents_sentences": [[["0a", "x"], ["0a", "y"]], []]}, "the key '0a' twice"),
        ({"documents": None}, "key 'documents' is not a list"),
        ({"relevance_score": "high"}, "key 'relevance_score' is no number"),
        ({"id": "covid 358"}, "this id stands twice, with two questions"),
        ({"question": None}, "'question' is not a string"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1].update(change)
    where = f"{tmp_path / 'test.jsonl'}, line 2, qid {rows[1]['id'].replace(' ', '_')!r}"
    named_or_dropped(lambda **of: write(tmp_path, rows, **of), where, field, ["covid_358"])


def test_limit_keeps_all_documents(tmp_path: Path) -> None:
    data = write(tmp_path, ROWS[::-1], limit=1).load()
    assert (len(data.docs), data.topics["qid"].tolist()) == (2, ["1741"])
