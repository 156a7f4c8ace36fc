from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loader_files import checked, json_lines, named_or_dropped
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.benchmarks.squad import SQuAD

TOWER = "Dr. Anna Öz built the tower in 1901. It stands in Graz. Its height is 40 m."
SQUAD: dict[str, Any] = {
    "version": "v2.0",
    "data": [
        {
            "title": "Fr%C3%A9d%C3%A9ric_Chopin",
            "paragraphs": [
                {
                    "context": TOWER,
                    "qas": [
                        {
                            "id": "q1",
                            "question": "Who built the tower?",
                            "answers": [
                                {"text": "Dr. Anna Öz", "answer_start": 0},
                                {"text": "Anna Öz", "answer_start": 4},
                                {"text": "Anna Öz", "answer_start": 4},
                            ],
                            "is_impossible": False,
                        },
                        {
                            "id": "q2",
                            "question": "Who painted it?",
                            "answers": [],
                            "plausible_answers": [{"text": "Dr. Anna Öz", "answer_start": 0}],
                            "is_impossible": True,
                        },
                    ],
                },
                {
                    "context": "Another paragraph.",
                    "qas": [
                        {
                            "id": "q3",
                            "question": "Which paragraph?",
                            "answers": [{"text": "Another", "answer_start": 0}],
                        }
                    ],
                },
            ],
        },
        {"title": "Fr%C3%A9d%C3%A9ric_Chopin", "paragraphs": [{"context": TOWER, "qas": []}]},
    ],
}


def write(folder: Path, whole: Any, **fields: Any) -> SQuAD:
    file = folder / "dev-v2.0.json"
    file.write_text(json.dumps(whole, ensure_ascii=False), encoding="utf-8")
    return SQuAD(path=str(file), **fields)


def asked(folder: Path, context: str, *answers: tuple[str, int], **fields: Any) -> list[str]:
    """The evidence of one question with these answers."""
    entries = [{"text": text, "answer_start": start} for text, start in answers]
    question = {"id": "q", "question": "What?", "answers": entries}
    article = {"title": "T", "paragraphs": [{"context": context, "qas": [question]}]}
    data = checked(write(folder, {"data": [article]}, **fields).load())
    return data.evidence["text"].tolist()


def test_paragraphs_answers_and_the_sentence_of_the_answer(tmp_path: Path) -> None:
    data = checked(write(tmp_path, SQUAD).load())
    assert data.docs.values.tolist() == [
        ["Frédéric_Chopin", "Frédéric Chopin", TOWER],
        ["Frédéric_Chopin~2", "Frédéric Chopin", "Another paragraph."],
    ]
    topics = data.topics.astype(object).where(data.topics.notna(), None)
    assert topics.values.tolist() == [
        ["q1", "Who built the tower?", "Dr. Anna Öz", ["Dr. Anna Öz", "Anna Öz"], False],
        ["q2", "Who painted it?", None, [], True],
        ["q3", "Which paragraph?", "Another", ["Another"], False],
    ]
    assert data.evidence.values.tolist() == [
        ["q1", 0, "Frédéric_Chopin", "Dr. Anna Öz built the tower in 1901."],
        ["q3", 0, "Frédéric_Chopin~2", "Another paragraph."],
    ]


def test_answer_that_reaches_into_the_next_sentence_has_both(tmp_path: Path) -> None:
    assert asked(tmp_path, TOWER, ("1901. It stands", 31)) == [
        "Dr. Anna Öz built the tower in 1901.",
        "It stands in Graz.",
    ]


def test_sentences_of_all_annotators_on_request(tmp_path: Path) -> None:
    answers = (("Graz", 50), ("40 m", TOWER.index("40 m")))
    assert asked(tmp_path, TOWER, *answers) == ["It stands in Graz."]
    assert asked(tmp_path, TOWER, *answers, evidence="all") == ["It stands in Graz.", "Its height is 40 m."]


def test_answer_start_in_bytes_is_understood(tmp_path: Path) -> None:
    context = "Öö is one. Øø is one. Øø is two. The Øø is one."
    wanted = context.rindex("Øø")
    in_bytes = len(context[:wanted].encode())
    assert not context.startswith("Øø", in_bytes)
    assert asked(tmp_path, context, ("Øø", in_bytes)) == ["The Øø is one."]


def test_answer_that_stands_once_is_found_though_its_start_is_off(tmp_path: Path) -> None:
    assert asked(tmp_path, TOWER, ("Graz", 48)) == ["It stands in Graz."]


def test_white_space_around_an_answer_does_not_reach_the_next_sentence(tmp_path: Path) -> None:
    start = TOWER.index("Graz")
    assert asked(tmp_path, "One. " + TOWER, (" Graz. ", start + 4)) == ["It stands in Graz."]


def test_other_languages_have_other_marks(tmp_path: Path) -> None:
    context = "塔はアンナが建てた。高さは四十メートルです。"
    assert asked(tmp_path, context, ("四十メートル", context.index("四十"))) == ["高さは四十メートルです。"]


def changed(values: dict[str, Any]) -> dict[str, Any]:
    whole = copy.deepcopy(SQUAD)
    whole["data"][0]["paragraphs"][0]["qas"][0].update(values)
    return whole


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"answers": [{"text": "It", "answer_start": 2}]}, "stands 2 times"),  # in "It" and "Its": no guess
        ({"answers": [{"text": "Peter", "answer_start": 0}]}, "'answer_start' 0 of answer 0"),
        ({"answers": [{"text": "Anna", "answer_start": "4"}]}, "'answer_start' of answer 0"),
        ({"answers": [{"answer_start": 4}]}, "key 'text' is missing"),
        ({"answers": "Anna"}, "key 'answers' is not a list"),
        ({"answers": []}, "key 'answers' is empty"),
        ({"is_impossible": True}, "unanswerable, and has the reference answer"),
        ({"is_impossible": "no"}, "key 'is_impossible'"),
        ({"question": None}, "'question' is not a string"),
        ({"id": "q3 "}, "qid 'q3 '"),
    ],
)
def test_bad_question_is_named_or_dropped(tmp_path: Path, values: dict[str, Any], field: str) -> None:
    whole = changed(values)
    where = f"{tmp_path / 'dev-v2.0.json'}, article 0, paragraph 0, question 0, qid"
    named_or_dropped(lambda **of: write(tmp_path, whole, **of), where, field, ["q2", "q3"])


def test_bad_paragraph_and_article_are_named_or_dropped(tmp_path: Path) -> None:
    whole = copy.deepcopy(SQUAD)
    del whole["data"][0]["paragraphs"][1]["context"]
    where = "article 0, paragraph 1"
    named_or_dropped(lambda **of: write(tmp_path, whole, **of), where, "'context' is missing", ["q1", "q2"])
    whole = copy.deepcopy(SQUAD)
    whole["data"][1]["title"] = 7
    named_or_dropped(lambda **of: write(tmp_path, whole, **of), "article 1", "'title'", ["q1", "q2", "q3"])


def test_flat_table_has_the_same_questions(tmp_path: Path) -> None:
    flat = [
        {
            "title": article["title"],
            "context": paragraph["context"],
            "id": row["id"],
            "question": row["question"],
            "answers": {key: [one[key] for one in row["answers"]] for key in ("text", "answer_start")},
        }
        for article in SQUAD["data"]
        for paragraph in article["paragraphs"]
        for row in paragraph["qas"]
    ]
    pq.write_table(pa.Table.from_pylist(flat), tmp_path / "validation.parquet")
    nested = write(tmp_path, SQUAD).load()
    for file in (tmp_path / "validation.parquet", json_lines(tmp_path / "flat.jsonl.gz", flat)):
        found = checked(SQuAD(path=file).load())
        for name in ("docs", "topics", "evidence"):
            assert getattr(found, name).equals(getattr(nested, name))
    flat[0]["answers"]["answer_start"] = []
    file = json_lines(tmp_path / "flat.jsonl", flat)
    where = f"{file}, line 1: 'answers' has 3 entries in 'text' and 0 in 'answer_start'"
    named_or_dropped(lambda **of: SQuAD(path=file, **of), where, "answers", ["q2", "q3"])


def test_limit_keeps_all_paragraphs(tmp_path: Path) -> None:
    data = write(tmp_path, SQUAD, limit=1).load()
    assert (len(data.docs), data.topics["qid"].tolist()) == (2, ["q1"])


def test_what_is_no_squad_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the list 'data' of articles"):
        write(tmp_path, [1]).load()
    with pytest.raises(ConfigError, match=r"dataset\.evidence"):
        SQuAD(evidence="none")
    (tmp_path / "x.parquet").write_text("no table")
    with pytest.raises(DataError, match=r"x\.parquet.*not a Parquet file"):
        SQuAD(path=tmp_path / "x.parquet").load()
