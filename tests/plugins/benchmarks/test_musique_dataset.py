from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from loader_files import checked, json_lines, named_or_dropped
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.benchmarks.musique import MuSiQue


def paragraph(idx: int, title: str, text: str, supports: bool | None = False) -> dict[str, Any]:
    entry = {"idx": idx, "title": title, "paragraph_text": text, "is_supporting": supports}
    return {key: value for key, value in entry.items() if value is not None}


ANNA = paragraph(0, "Anna Ö", "Anna built the tower.", True)
TOWER = paragraph(1, "Tower", "The tower stands in Graz.", True)
ROWS: list[dict[str, Any]] = [
    {
        "id": "2hop__460946_294723",
        "paragraphs": [ANNA, TOWER, paragraph(2, "Tower", "Another tower fell.")],
        "question": "Where does what Anna built stand?",
        "question_decomposition": [
            {"id": 460946, "question": "Anna >> built", "answer": "the tower", "paragraph_support_idx": 0},
            {"id": 294723, "question": "Where is #1?", "answer": "Graz", "paragraph_support_idx": 1},
        ],
        "answer": "Graz",
        "answer_aliases": ["Graz, Styria", "Graz"],
        "answerable": True,
    },
    {
        "id": "3hop1__1_2_3",
        "paragraphs": [{**TOWER, "idx": 0}, paragraph(1, "Linz", "Linz is a town.")],
        "question": "Which town?",
        "question_decomposition": [],
        "answer": "Linz",
        "answer_aliases": [],
        "answerable": True,
    },
]
TWIN = {  # as MuSiQue-Full has it: the same id and answer, a supporting paragraph withheld, no mark left
    **ROWS[0],
    "paragraphs": [{**ANNA, "is_supporting": False}, paragraph(1, "Bridge", "The bridge stands in Linz.")],
    "answerable": False,
}


def write(folder: Path, rows: list[Any], **fields: Any) -> MuSiQue:
    return MuSiQue(path=json_lines(folder / "musique.jsonl", rows), **fields)


def test_supporting_paragraphs_are_the_evidence(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS).load())
    assert data.docs.values.tolist() == [
        ["Anna_Ö", "Anna Ö", "Anna built the tower."],
        ["Tower", "Tower", "The tower stands in Graz."],
        ["Tower~2", "Tower", "Another tower fell."],
        ["Linz", "Linz", "Linz is a town."],
    ]
    assert data.topics.to_dict("records") == [
        {
            "qid": "2hop__460946_294723",
            "query": "Where does what Anna built stand?",
            "answer": "Graz",
            "answers": ["Graz", "Graz, Styria"],
            "type": "2hop",
            "hops": 2.0,
        },
        {
            "qid": "3hop1__1_2_3",
            "query": "Which town?",
            "answer": "Linz",
            "answers": ["Linz"],
            "type": "3hop1",
            "hops": 3.0,
        },
    ]
    assert data.evidence.values.tolist() == [
        ["2hop__460946_294723", 0, "Anna_Ö", "Anna built the tower."],
        ["2hop__460946_294723", 1, "Tower", "The tower stands in Graz."],
        ["3hop1__1_2_3", 0, "Tower", "The tower stands in Graz."],
    ]


def test_question_in_both_forms_is_refused_until_one_is_chosen(tmp_path: Path) -> None:
    """Pooled, the paragraphs of the answerable form answer the unanswerable one."""
    with pytest.raises(DataError, match=r"1 questions .*'2hop__460946_294723'.*dataset\.questions"):
        write(tmp_path, [ROWS[0], TWIN]).load()
    data = checked(write(tmp_path, [ROWS[0], TWIN], questions="answerable").load())
    assert data.docs["docno"].tolist() == ["Anna_Ö", "Tower", "Tower~2"]
    assert "unanswerable" not in data.topics
    data = checked(write(tmp_path, [ROWS[0], TWIN], questions="unanswerable").load())
    assert data.docs["docno"].tolist() == ["Anna_Ö", "Bridge"]
    assert data.topics["unanswerable"].tolist() == [True]
    assert data.topics["answer"].isna().all()
    assert data.evidence.empty


def test_question_that_another_one_s_paragraphs_answer_is_not_unanswerable(tmp_path: Path) -> None:
    brings = {**TWIN, "id": "2hop__1_2", "paragraphs": [{**TOWER, "is_supporting": False}]}
    rows = [ROWS[0], TWIN, brings]
    where = f"{tmp_path / 'musique.jsonl'}, line 2, qid '2hop__460946_294723'"
    named_or_dropped(
        lambda **of: write(tmp_path, rows, questions="unanswerable", **of),
        where,
        "another question brings the paragraph 'Tower'",
        ["2hop__1_2"],
    )


def test_unanswerable_questions_without_their_pairs_need_no_choice(tmp_path: Path) -> None:
    data = checked(write(tmp_path, [ROWS[1], TWIN]).load())
    assert data.topics["unanswerable"].tolist() == [False, True]


def test_test_file_has_neither_answers_nor_evidence(tmp_path: Path) -> None:
    hidden = {
        "id": "4hop3__1_2_3_4",
        "question": "Which?",
        "paragraphs": [paragraph(0, "Anna Ö", "Anna built the tower.", None)],
    }
    data = checked(write(tmp_path, [hidden]).load())
    assert data.topics[["type", "hops"]].values.tolist() == [["4hop3", 4.0]]
    assert data.topics["answer"].isna().all()
    assert data.evidence.empty


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"paragraphs": "none"}, "key 'paragraphs' is not a list"),
        ({"paragraphs": [{"title": "T"}]}, "entry 0 of 'paragraphs': key 'paragraph_text' is missing"),
        ({"paragraphs": [ANNA, "text"]}, "entry 1 of 'paragraphs': expected a JSON object"),
        ({"paragraphs": [{**ANNA, "is_supporting": 1}]}, "key 'is_supporting' is neither true nor false"),
        ({"paragraphs": [{**ANNA, "is_supporting": False}]}, "'is_supporting'"),
        ({"paragraphs": [ANNA, paragraph(1, "T", "t", None)]}, "'is_supporting'"),
        ({"answerable": "yes"}, "key 'answerable'"),
        ({"answer_aliases": "Graz"}, "key 'answer_aliases' is not a list"),
        ({"answer": " "}, "reference answer is empty"),
        ({"question": 7}, "'question' is not a string"),
        ({"id": "3hop1__1_2_3"}, "qid stands twice"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = copy.deepcopy([ROWS[1], ROWS[0]])
    rows[1].update(change)
    where = f"{tmp_path / 'musique.jsonl'}, line 2, qid {rows[1]['id']!r}"
    named_or_dropped(lambda **of: write(tmp_path, rows, **of), where, field, ["3hop1__1_2_3"])


def test_limit_and_choices(tmp_path: Path) -> None:
    data = write(tmp_path, ROWS, limit=1).load()
    assert (len(data.docs), len(data.topics)) == (4, 1)
    with pytest.raises(ConfigError, match=r"dataset\.questions.*answerable"):
        MuSiQue(questions="all")
