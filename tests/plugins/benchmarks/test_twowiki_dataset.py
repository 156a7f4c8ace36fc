from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from loader_files import checked, json_lines, named_or_dropped
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.benchmarks.hotpotqa import TwoWikiMultihopQA

ROWS: list[dict[str, Any]] = [
    {
        "_id": "8813",
        "type": "compositional",
        "question": "Who is the mother of the director of Tower (film)?",
        "context": [
            ["Tower (film)", ["Tower (film) ", "is a 1955 film by Anna Öz.", " It is long."]],
            ["Anna Öz", ["Anna Öz is a director.", "Her mother is Berta."]],
        ],
        "entity_ids": "Q1_Q2",
        "supporting_facts": [["Tower (film)", 1], ["Anna Öz", 1]],
        "evidences": [["Tower", "director", "Anna Öz"], ["Anna Öz", "mother", "Berta"]],
        "answer": "Berta",
        "evidences_id": [["Q1", "director", "Q2"], ["Q2", "mother", "Q3"]],
        "answer_id": "Q3",
    },
    {
        "_id": "9914",
        "type": "comparison",
        "question": "Which is older?",
        "context": [["Anna Öz", ["Anna Öz is a director.", "Her mother is Berta."]]],
        "supporting_facts": [["Anna Öz", 0]],
        "evidences": [["Tower", "publication date", "1955"], ["Bridge", "publication date", "1956"]],
        "answer": "Tower",
        "evidences_id": [],
        "answer_id": None,
    },
]


def write(folder: Path, rows: Any, **fields: Any) -> TwoWikiMultihopQA:
    file = folder / "dev.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    return TwoWikiMultihopQA(path=file, **fields)


def test_sentences_get_the_space_back_that_they_have_lost(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS).load())
    assert data.docs.values.tolist() == [
        ["Tower_(film)", "Tower (film)", "Tower (film) is a 1955 film by Anna Öz. It is long."],
        ["Anna_Öz", "Anna Öz", "Anna Öz is a director. Her mother is Berta."],
    ]
    assert data.evidence.values.tolist() == [
        ["8813", 0, "Tower_(film)", "is a 1955 film by Anna Öz."],
        ["8813", 1, "Anna_Öz", "Her mother is Berta."],
        ["9914", 0, "Anna_Öz", "Anna Öz is a director."],
    ]


def test_type_and_facts_are_attributes(tmp_path: Path) -> None:
    topics = write(tmp_path, ROWS).load().topics
    assert topics[["qid", "answer", "type", "facts", "relations"]].values.tolist() == [
        ["8813", "Berta", "compositional", 2.0, "director + mother"],
        ["9914", "Tower", "comparison", 2.0, "publication date + publication date"],
    ]


def test_aliases_are_references(tmp_path: Path) -> None:
    lines = [
        {"Q_id": "Q3", "aliases": ["Berta Ö", "Berta", ""], "demonyms": []},
        {"Q_id": "Q9", "aliases": ["Nobody"], "demonyms": []},
    ]
    source = write(tmp_path, ROWS, aliases=json_lines(tmp_path / "id_aliases.json", lines))
    assert set(source.files()) == {"path", "aliases"}
    assert source.load().topics["answers"].tolist() == [["Berta", "Berta Ö"], ["Tower"]]
    json_lines(tmp_path / "id_aliases.json", [*lines, {"Q_id": 3}])
    with pytest.raises(DataError, match=r"id_aliases\.json, line 3: 'Q_id' is not a string"):
        source.load()
    with pytest.raises(ConfigError, match=r"dataset\.aliases"):
        write(tmp_path, ROWS, aliases=tmp_path / "nowhere.json").files()


def test_test_file_has_neither_answers_nor_evidence(tmp_path: Path) -> None:
    hidden = {key: ROWS[0][key] for key in ("_id", "type", "question", "context")}
    data = checked(write(tmp_path, [hidden]).load())
    assert data.topics["answer"].isna().all()
    assert data.evidence.empty


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"supporting_facts": [["Anna Öz", 2]]}, "points past its paragraph of 2 sentences"),
        ({"supporting_facts": [["Nobody", 0]]}, "supporting fact ['Nobody', 0]"),
        ({"supporting_facts": "none"}, "key 'supporting_facts' is not a list"),
        ({"evidences": [["Tower", "director"]]}, "entry 0 of 'evidences'"),
        ({"evidences": "none"}, "key 'evidences' is not a list"),
        ({"answer": 7}, "'answer' is not a string"),
        ({"answer_id": 7}, "'answer_id' is not a string"),
        ({"type": 7}, "'type' is not a string"),
        ({"question": " "}, "query is empty"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1].update(change)
    where = f"{tmp_path / 'dev.json'}, row 1, qid '9914'"
    named_or_dropped(lambda **of: write(tmp_path, rows, **of), where, field, ["8813"])


def test_limit_keeps_the_documents_of_all_rows(tmp_path: Path) -> None:
    data = write(tmp_path, ROWS[::-1], limit=1).load()
    assert (len(data.docs), data.topics["qid"].tolist()) == (2, ["9914"])
