from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from loader_files import checked, named_or_dropped
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.benchmarks.dpr import DPR


def passage(number: int | None, title: str | None, text: str, key: str = "passage_id") -> dict[str, Any]:
    entry = {"title": title, "text": text, "score": 1000, "title_score": 1}
    return entry if number is None else {**entry, key: str(number)}


GRAZ = passage(12, "Graz", "Anna built the tower. It stands in Graz.")
LINZ = passage(7, "Linz", "Linz has a bridge.")
ROWS: list[dict[str, Any]] = [
    {
        "dataset": "nq_dev_psgs_w100",
        "question": "where is anna 's tower",
        "answers": ["Graz", "in Graz", "Graz"],
        "positive_ctxs": [GRAZ, passage(13, "Graz", "Graz is a town with a tower.")],
        "negative_ctxs": [LINZ],
        "hard_negative_ctxs": [LINZ, {**GRAZ, "passage_id": "99", "score": "2.5"}],
    },
    {
        "question": "who?",
        "answers": ["Berta"],
        "positive_ctxs": [],
        "negative_ctxs": [],
        "hard_negative_ctxs": [passage(12, None, "Another text of that number.", "psg_id")],
    },
    {
        "question": "what?",
        "answers": ["a bridge"],
        "positive_ctxs": [
            {**passage(None, "Linz", "Linz has a bridge."), "id": 7},
            passage(None, "Linz", "No number."),
        ],
    },
]
TABLE = 'id\ttext\ttitle\n7\t"Linz has a bridge."\tLinz\n8\t"A ""quoted"" word, and 5\t%."\t"""T"""\n'


def write(folder: Path, rows: list[Any], **fields: Any) -> DPR:
    file = folder / "biencoder-nq-dev.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    return DPR(path=file, **fields)


def test_passages_are_the_documents_by_their_numbers(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS).load())
    assert data.docs.values.tolist() == [
        ["12", "Graz", "Anna built the tower. It stands in Graz."],
        ["13", "Graz", "Graz is a town with a tower."],
        ["7", "Linz", "Linz has a bridge."],
        ["12~2", "", "Another text of that number."],
        ["Linz", "Linz", "No number."],
    ]
    assert data.topics["qid"].tolist() == ["0", "1", "2"]
    assert data.topics["answers"].tolist() == [["Graz", "in Graz"], ["Berta"], ["a bridge"]]


def test_first_positive_passage_is_the_evidence_unless_all_are_asked_for(tmp_path: Path) -> None:
    first = checked(write(tmp_path, ROWS).load()).evidence
    assert first[["qid", "docno"]].values.tolist() == [["0", "12"], ["2", "7"]]
    every = checked(write(tmp_path, ROWS, evidence="all").load()).evidence
    assert every[["qid", "part", "docno"]].values.tolist() == [
        ["0", 0, "12"],
        ["0", 1, "13"],
        ["2", 0, "7"],
        ["2", 1, "Linz"],
    ]
    with pytest.raises(ConfigError, match=r"dataset\.evidence"):
        DPR(evidence="best")


def test_passages_of_the_table_come_first(tmp_path: Path) -> None:
    (tmp_path / "psgs_w100.tsv.gz").write_bytes(gzip.compress(TABLE.encode()))
    source = write(tmp_path, ROWS, corpus=tmp_path / "psgs_w100.tsv.gz")
    assert set(source.files()) == {"path", "corpus"}
    data = checked(source.load())
    assert data.docs.values.tolist()[:3] == [
        ["7", "Linz", "Linz has a bridge."],
        ["8", '"T"', 'A "quoted" word, and 5\t%.'],
        ["12", "Graz", "Anna built the tower. It stands in Graz."],
    ]
    assert len(data.docs) == 6


def test_bad_line_of_the_table_is_named(tmp_path: Path) -> None:
    table = tmp_path / "psgs_w100.tsv"
    table.write_text("id\ttext\ttitle\n1\tone\tOne\n2\ttwo\n")
    with pytest.raises(DataError, match=r"psgs_w100\.tsv, line 3: 2 columns in place of id, text, title"):
        write(tmp_path, ROWS, corpus=table).load()
    assert len(write(tmp_path, ROWS, corpus=table, on_error="skip").load().skipped) == 1
    table.write_bytes(b"id\ttext\ttitle\n1\t\xff\xff\tOne\n")
    with pytest.raises(DataError, match=r"psgs_w100\.tsv, line 2: 'utf-8'"):
        write(tmp_path, ROWS, corpus=table).load()
    cut = tmp_path / "cut.tsv.gz"
    cut.write_bytes(gzip.compress(TABLE.encode() * 9)[:-20])
    with pytest.raises(DataError, match=r"cut\.tsv\.gz"):
        write(tmp_path, ROWS, corpus=cut).load()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"positive_ctxs": None}, "key 'positive_ctxs' is not a list"),
        ({"positive_ctxs": ["text"]}, "entry 0 of 'positive_ctxs': expected a JSON object"),
        ({"positive_ctxs": [{"title": "T", "text": " "}]}, "entry 0 of 'positive_ctxs': 'text' is empty"),
        ({"hard_negative_ctxs": [GRAZ, {"title": "T"}]}, "entry 1 of 'hard_negative_ctxs': key 'text' is"),
        ({"negative_ctxs": [{**GRAZ, "passage_id": 1.5}]}, "the passage's id is not a string"),
        ({"answers": "Graz"}, "key 'answers' is not a list"),
        ({"answers": [7]}, "entry 0 of 'answers' is not a string"),
        ({"question": None}, "'question' is not a string"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1].update(change)
    where = f"{tmp_path / 'biencoder-nq-dev.json'}, row 1"
    named_or_dropped(lambda **of: write(tmp_path, rows, **of), where, field, ["0", "2"])


def test_results_of_retrieval_are_no_questions_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 0, qid '0': key 'positive_ctxs' is missing"):
        write(tmp_path, [{"question": "q", "answers": ["a"], "ctxs": [{**GRAZ, "has_answer": True}]}]).load()


def test_limit_keeps_all_passages(tmp_path: Path) -> None:
    data = write(tmp_path, ROWS, limit=1).load()
    assert (len(data.docs), data.topics["qid"].tolist()) == (5, ["0"])
