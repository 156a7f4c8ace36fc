from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from processes import ROOT
from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.benchmarks.hotpotqa import HotpotQA

DATA = ROOT / "../shared/data"

ROWS: list[dict[str, Any]] = [
    {
        "_id": "a1",
        "question": "Which is older?",
        "answer": "Alpha",
        "type": "comparison",
        "level": "easy",
        "supporting_facts": [["Alpha One", 0], ["Beta", 1], ["Beta", 1]],
        "context": [
            ["Alpha One", ["Alpha is old.", " It is at example.", "net too."]],
            ["Beta", ["Beta is not.", " It is young."]],
        ],
    },
    {
        "_id": "a2",
        "question": "What is Gamma?",
        "answer": "a letter",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Alpha One", 0]],
        "context": [
            ["Beta", ["Beta is not.", " It is young."]],
            ["Alpha One", ["Another Alpha."]],
            ["100%pure", [""]],
        ],
    },
]


def write(folder: Path, rows: Any, extra: Any = None, **fields: Any) -> HotpotQA:
    (folder / "hotpot.json").write_text(json.dumps(rows), encoding="utf-8")
    if extra is not None:
        (folder / "extra.json").write_text(json.dumps(extra), encoding="utf-8")
        fields["extra"] = str(folder / "extra.json")
    return HotpotQA(path=str(folder / "hotpot.json"), **fields)


def test_distinct_paragraphs_are_the_documents(tmp_path: Path) -> None:
    data = write(tmp_path, ROWS).load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    assert data.docs.values.tolist() == [
        ["Alpha_One", "Alpha One", "Alpha is old. It is at example.net too."],
        ["Beta", "Beta", "Beta is not. It is young."],
        ["Alpha_One~2", "Alpha One", "Another Alpha."],
        ["100%25pure", "100%pure", ""],
    ]
    assert data.topics.values.tolist() == [
        ["a1", "Which is older?", "Alpha", "comparison", "easy"],
        ["a2", "What is Gamma?", "a letter", "bridge", "hard"],
    ]
    assert data.evidence.values.tolist() == [
        ["a1", 0, "Alpha_One", "Alpha is old."],
        ["a1", 1, "Beta", "It is young."],
        ["a2", 0, "Alpha_One~2", "Another Alpha."],
    ]


def test_extra_passages_join_unless_they_are_there(tmp_path: Path) -> None:
    extra = [
        {"title": "Beta", "text": "Beta is not. It is young."},
        {"title": "Delta", "text": "D."},
        {"title": "Delta", "text": "D."},
        {"title": "Alpha\tOne", "text": "A third."},
        {"title": "Alpha_One~2", "text": "A fourth."},
        {"title": " ", "text": "No title."},
    ]
    docs = write(tmp_path, ROWS, extra).load().docs
    assert docs["docno"].tolist()[4:] == ["Delta", "Alpha_One~3", "Alpha_One~2~2", "untitled"]
    assert docs["title"].tolist()[5] == "Alpha\tOne"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"supporting_facts": [["Beta", 2]]}, "points past its paragraph of 2 sentences"),
        ({"supporting_facts": [["Beta", -1]]}, "points past"),
        ({"supporting_facts": [["Gamma", 0]]}, "no paragraph of the context has that title"),
        ({"supporting_facts": [["100%pure", 0]]}, "points to an empty sentence"),
        ({"supporting_facts": [["Beta", "0"]]}, "is not a [title, sentence number]"),
        ({"supporting_facts": []}, "no evidence"),
        ({"supporting_facts": None}, "'supporting_facts' is not a list"),
        ({"question": ""}, "query is empty"),
        ({"_id": "a1"}, "stands twice"),
    ],
)
def test_bad_row_is_named_or_dropped_while_its_paragraphs_stay(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1].update(change)
    with pytest.raises(DataError) as caught:
        write(tmp_path, rows).load()
    assert f"{tmp_path / 'hotpot.json'}, row 1, qid {rows[1]['_id']!r}" in str(caught.value)
    assert what in str(caught.value)
    data = write(tmp_path, rows, on_error="skip").load()
    assert data.topics["qid"].tolist() == ["a1"]
    assert len(data.docs) == 4
    assert len(data.skipped) == 1


def test_row_without_a_readable_context_is_dropped_whole(tmp_path: Path) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1]["context"][0] = ["Beta", "Beta is not."]
    with pytest.raises(DataError, match="row 1, qid 'a2': an entry of 'context'"):
        write(tmp_path, rows).load()
    data = write(tmp_path, rows, on_error="skip").load()
    assert len(data.docs) == 2
    assert len(data.skipped) == 1


def test_bad_extra_passage_names_file_and_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"extra\.json, row 1: key 'text' is missing"):
        write(tmp_path, ROWS, [{"title": "a", "text": "b"}, {"title": "c"}]).load()


@pytest.mark.parametrize(("content", "what"), [("[1,", "not a JSON file"), ('{"a": 1}', "expected a JSON list")])
def test_file_that_is_no_list(tmp_path: Path, content: str, what: str) -> None:
    source = write(tmp_path, ROWS)
    (tmp_path / "hotpot.json").write_text(content)
    with pytest.raises(DataError, match=what):
        source.load()


def test_missing_files_name_the_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.path is not set"):
        HotpotQA().files()
    with pytest.raises(ConfigError, match=r"dataset\.extra=.*nowhere"):
        HotpotQA(path=write(tmp_path, ROWS).path, extra=tmp_path / "nowhere.json").files()


def test_limit_keeps_the_documents_of_all_rows(tmp_path: Path) -> None:
    data = write(tmp_path, ROWS, limit=1).load()
    assert data.topics["qid"].tolist() == ["a1"]
    assert len(data.docs) == 4


@pytest.mark.skipif(not DATA.is_dir(), reason="shared data is not there")
def test_hundred_real_questions_with_extra_passages() -> None:
    source = HotpotQA(path=DATA / "hotpot_train_100.json", extra=DATA / "wiki_passages_6119.json")
    data = source.load()
    assert set(source.files()) == {"path", "extra"}
    assert (len(data.docs), len(data.topics), len(data.evidence)) == (7112, 100, 229)
    text = dict(zip(data.docs["docno"], data.docs["text"], strict=True))
    assert all(row.text in text[row.docno] for row in data.evidence.itertuples())
    assert not data.docs["docno"].str.contains(r"\s|%p").any()
