"""`ragauge check` on small worlds whose every case was counted by hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragauge.commands.stages import composed
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import Batches, as_frame
from ragauge.plugins.hygiene.checking import FINDINGS, TEXTS, question_set, training_questions
from ragauge.plugins.hygiene.command import main
from ragauge.plugins.hygiene.outliers import in_another_language, of_unusual_length
from ragauge.plugins.hygiene.unanswerable import names_and_numbers

LONG = "The bridge of Flims crosses the Rhine on nine arches of grey stone and was opened in"
DOCS = {
    "flims": f"{LONG} 1901.",
    "flims-copy": f"{LONG} 1902.",  # 18 words: 13 of 15 shingles, which is 0.87
    "flims-again": f"- {LONG.upper()} 1901!",
    "jona": "Jona has a mill. It grinds rye. The miller Anna Meier came in 1877.",
    "faq": "Q: How many wheels does the mill of Jona have? A: It has four wheels, they say.",
    "horgen": "It grinds rye. Horgen has a mill, too, with two wheels.",
    "lucerne": "Le moulin de Lucerne est le plus vieux de la région et il a cinq roues dans la rivière.",
}
TOPICS: list[dict[str, Any]] = [
    {"qid": "q1", "query": "In which year was the bridge of Flims, which crosses the Rhine on nine arches, opened?",
     "answer": "1901", "evidence": [{"docno": "flims", "text": DOCS["flims"]}]},
    # Other case and punctuation than q1.
    {"qid": "q2", "query": "in which year was the bridge of flims which crosses the rhine on nine arches opened",
     "answer": "the year 1903", "evidence": [{"docno": "flims", "text": "opened in 1901"}]},
    # Its words stand in faq, with the answer behind them. "It grinds rye." stands in jona and horgen.
    {"qid": "q3", "query": "How many wheels does the mill of Jona have?", "answer": "four",
     "evidence": [{"docno": "faq", "text": "It has four wheels"}, {"docno": "jona", "text": "It grinds rye."}]},
    {"qid": "q4", "query": "Does the mill of Jona grind rye?", "answer": "yes", "evidence": ["It grinds wheat."]},
    # 9 words without the article, and the evidence holds 3: miller, came, 1877.
    {"qid": "q5", "query": "Who came?", "answer": "a young miller whose family came there long before 1877",
     "evidence": [{"docno": "jona", "text": "The miller Anna Meier came in 1877."}]},
    # 6 of 7 words.
    {"qid": "q6", "query": "Who is Anna Meier?", "answer": "the miller Anna Meier, who came in 1877",
     "evidence": [{"docno": "jona", "text": "The miller Anna Meier came in 1877."}]},
    # Horgen, and mill, of mill and cost.
    {"qid": "u1", "query": "What does the mill of Horgen cost?", "unanswerable": True},
    # Anna, Meier and 1877, and miller, of miller and die; in the next miller, of miller, bake, bread, sell and cheese.
    {"qid": "u2", "query": "Did the miller Anna Meier die in 1877?", "unanswerable": True},
    {"qid": "u3", "query": "Did the miller Anna Meier bake bread and sell cheese in 1877?", "unanswerable": True},
    {"qid": "u4", "query": "How deep is it?", "unanswerable": True},
]  # fmt: skip
TRAINED = [
    "Who is Anna Meier",
    "Something else entirely?",
    "In which year was the bridge of Flims, which crosses the Rhine on nine arches, built?",
]
# By finding: the cases as (id, others), and how many were looked at.
EXPECTED: Mapping[str, tuple[list[tuple[str, tuple[str, ...]]] | None, int]] = {
    "repeated_questions": ([("q2", ("q1",))], 10),
    "repeated_documents": ([("flims-copy", ("flims",)), ("flims-again", ("flims",))], 7),
    "questions_in_documents": ([("q3", ("faq",))], 9),  # q5 has two words
    # q1 and q2 have 16 words: the last is another, and 11 of 13 shingles are shared.
    "leaked_questions": (
        [("q1", ("trained.jsonl, line 3",)), ("q2", ("trained.jsonl, line 3",)), ("q6", ("trained.jsonl, line 1",))],
        10,
    ),
    "evidence_in_several_documents": ([("q2", ("flims", "flims-again")), ("q3", ("jona", "horgen"))], 7),
    "lost_evidence": ([("q4", ("jona",))], 7),
    "references_not_in_evidence": ([("q2", ()), ("q5", ())], 5),  # q4 is yes
    "answerable_after_all": ([("u1", ("horgen",)), ("u2", ("jona",))], 3),
    "questions_in_another_language": ([], 10),
    "documents_in_another_language": ([("lucerne", ())], 7),
    "questions_of_unusual_length": ([], 10),
    "references_of_unusual_length": (None, 5),
    "documents_of_unusual_length": (None, 7),
}


def write(folder: Path, topics: Sequence[Mapping[str, Any]] = TOPICS) -> list[str]:
    """The arguments that name the files of a world."""
    rows = {
        "docs": [{"docno": docno, "text": text} for docno, text in DOCS.items()],
        "topics": topics,
        "trained": [{"question": text} for text in TRAINED],
    }
    for name, of in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of), encoding="utf-8")
    given = [f"dataset.{name}={folder / f'{name}.jsonl'}" for name in ("docs", "topics")]
    return ["dataset=jsonl", *given, "measure.fold=[case]"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("world")
    arguments = [*write(folder), "--against", str(folder / "trained.jsonl"), "--json", str(folder / "found.json")]
    assert main([*arguments, "--csv", str(folder / "found.csv")]) == 0
    with (folder / "found.csv").open(encoding="utf-8") as file:
        return {"csv": list(csv.DictReader(file)), "json": json.loads((folder / "found.json").read_text("utf-8"))}


def named(found: Mapping[str, Any]) -> dict[str, Any]:
    return {one["name"]: one for one in found["json"]["findings"]}


@pytest.mark.parametrize("name", FINDINGS)
def test_cases_are_those_counted_by_hand(name: str, found: dict[str, Any]) -> None:
    cases, of = EXPECTED[name]
    one = named(found)[name]
    assert [(case["id"], tuple(case["others"])) for case in one["cases"]] == (cases or [])
    assert (one["count"], one["of"]) == (None if cases is None else len(cases), of)


def test_details_say_where_and_how_much(found: dict[str, Any]) -> None:
    details = {(name, case["id"]): case["detail"] for name, one in named(found).items() for case in one["cases"]}
    assert details["repeated_documents", "flims-copy"] == "Jaccard similarity 0.87"
    assert details["repeated_documents", "flims-again"] == "the same words"
    assert details["questions_in_documents", "q3"] == "the question, and a reference answer behind it"
    assert details["evidence_in_several_documents", "q3"] == "part 1, which names jona"
    assert details["lost_evidence", "q4"] == "part 0 is in no document: It grinds wheat."
    assert details["references_not_in_evidence", "q2"] == "reference answer: the year 1903"
    assert details["answerable_after_all", "u1"] == "words of the question: horgen, mill"
    assert details["answerable_after_all", "u2"] == "words of the question: 1877, anna, meier, miller"
    assert details["documents_in_another_language", "lucerne"] == "french"
    notes = {name: one["note"] for name, one in named(found).items()}
    assert notes["answerable_after_all"] == "1 of 4 topics have no name and no number in the question"
    assert notes["documents_in_another_language"] == "most are in English"
    assert notes["documents_of_unusual_length"] == "there are fewer than 10"


def test_csv_has_a_row_for_every_case(found: dict[str, Any]) -> None:
    listed = [
        {"finding": one["name"], "id": case["id"], "others": " | ".join(case["others"]), "detail": case["detail"]}
        for one in found["json"]["findings"]
        for case in one["cases"]
    ]
    assert found["csv"] == listed
    assert len(listed) == 15
    assert found["json"]["checked"] == {"documents": 7, "topics": 10, "pieces of evidence": 7}


def test_every_finding_has_a_rule_and_a_remedy_of_one_sentence() -> None:
    assert list(TEXTS) == list(FINDINGS)
    assert all(texts["rule"] and texts["remedy"].endswith(".") for texts in TEXTS.values())


def test_the_terminal_shows_counts_first_ids_and_remedies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = "--only=lost_evidence,repeated_documents,leaked_questions"
    assert main([*write(tmp_path), only]) == 0
    assert capsys.readouterr().out == (
        "7 documents, 10 topics, 7 pieces of evidence\n"
        "finding             found  of  the first\n"
        "repeated_documents      2   7  flims-copy (flims), flims-again (flims)\n"
        "leaked_questions        –  10\n"
        "lost_evidence           1   7  q4 (jona)\n\n"
        f"repeated_documents: {TEXTS['repeated_documents']['remedy']}\n"
        f"lost_evidence: {TEXTS['lost_evidence']['remedy']}\n\n"
        "leaked_questions: --against names no file of training questions\n"
    )


@pytest.mark.parametrize(
    ("only", "count", "code"),
    [("lost_evidence", 1, 3), ("questions_in_another_language", 0, 0), ("leaked_questions", None, 0)],
)
def test_strict_fails_where_something_is_found(
    only: str, count: int | None, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*write(tmp_path), "--strict", "--json", "-", "--only", only]) == code
    assert [one["count"] for one in json.loads(capsys.readouterr().out)["findings"]] == [count]


def test_documents_in_batches_have_the_same_cases(tmp_path: Path) -> None:
    of = question_set(composed(write(tmp_path)), str(tmp_path / "trained.jsonl"))
    docs = as_frame(of.docs)
    batched = replace(of, docs=Batches(lambda: iter([docs[:3], docs[3:5], docs[5:]])))
    for name, find in FINDINGS.items():
        assert find(batched) == find(of), name
    assert FINDINGS["answerable_after_all"](batched).count == 2


def test_questions_alone_have_findings_of_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = tmp_path / "samples.jsonl"
    rows = [{"question": text} for text in (*TRAINED, TRAINED[2].lower())]
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["dataset=samples", f"dataset.path={samples}", "--json", "-"]) == 0
    counts = {one["name"]: one["count"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert {name: n for name, n in counts.items() if n is not None} == {
        "repeated_questions": 1,
        "questions_in_another_language": 0,
    }


def test_questions_with_earlier_turns_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two conversations may both go on with "And when was it built?"."""
    turn = {"query": "And when was it built?", "answer": "1901", "evidence": [{"docno": "flims", "text": "1901"}]}
    topics = [{"qid": f"{i}", "history": [f"Bridge {i}?", "Yes."], **turn} for i in range(2)]
    assert main([*write(tmp_path, [*topics, TOPICS[0]]), "--json", "-", "--only", "repeated_questions"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["findings"]
    assert (one["count"], one["of"]) == (0, 1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--only", "duplicates"], "--only duplicates: allowed are repeated_questions, repeated_documents, "),
        (["--json", "-", "--csv", "-"], "--json and --csv: one format goes to standard output"),
        (["--against", "nowhere.jsonl"], "--against=nowhere.jsonl: there is no such file"),
        (["dataset=study"], "it holds outcomes, and no test set to check"),
        (["dataset=nothing"], "dataset=nothing: there is no such option"),
    ],
)
def test_wrong_arguments_end_in_a_line(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=sample", *more]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_file_of_others_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("a,b\n", encoding="utf-8")
    arguments = ["dataset=sample", "--only", "repeated_questions", "--csv", str(file)]
    assert main(arguments) == 2
    assert "ragauge did not write it" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0
    assert main(arguments) == 0
    assert file.read_text(encoding="utf-8") == "finding,id,others,detail\n"


def test_training_questions_are_read_from_tables(tmp_path: Path) -> None:
    table = tmp_path / "trained.csv"
    table.write_text("id,question\n1,Who?\n2,When?\n", encoding="utf-8")
    assert training_questions(str(table)) == [("trained.csv, row 1", "Who?"), ("trained.csv, row 2", "When?")]
    table.write_text("id,asked\n1,Who?\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"trained\.csv, row 1: no question in it; allowed names are question, query"):
        training_questions(str(table))
    with pytest.raises(ConfigError, match="--against"):
        training_questions(str(tmp_path))


def test_bounds_of_lengths_by_hand() -> None:
    """Lengths e^2, e^3, e^4 thrice each, rounded: median 20, MAD log(55 / 20), so that bounds are 0.1 and 3,829."""
    sized = [(f"{n}-{i}", "x" * n) for n in (7, 20, 55) for i in range(3)]
    spread = 3.5 * 1.4826 * np.log(55 / 20)
    high = round(20 * np.exp(spread))
    found = of_unusual_length([*sized, ("all", "x" * (high + 1)), ("", " ")])
    # The tenth text moves the median to 20 still (of 20 and 20), and the MAD to log(55 / 20) still.
    assert found.of == 10
    assert [item.id for item in found.items or ()] == ["all"]
    assert of_unusual_length([*sized, ("just", "x" * (high - 1))]).items == []
    assert found.note == f"usual are 0 to {high:,} characters"
    assert of_unusual_length(sized).note == "there are fewer than 10"
    assert of_unusual_length([(str(i), "same") for i in range(12)]).items is None


def test_foreign_names_make_no_foreign_text() -> None:
    english = [(str(i), f"This is the text of the year {i}, and it is in English.") for i in range(3)]
    others = [
        ("french", "Quel est le fleuve qui rejoint la Seine dans la ville de Paris ?"),
        ("japanese", "富士山は日本で一番高い山です。"),
        ("film", "La colpa di una madre is a film by an Italian that was made in the year of the war."),
    ]
    found = in_another_language([*english, *others])
    assert [item.id for item in found.items or ()] == ["french", "japanese"]
    assert in_another_language([*english[:2], *others[:2]]).items is None  # two of four are no majority
    assert in_another_language([("name", "Bern")]).note == "no language is recognised"


def test_names_and_numbers_of_a_question() -> None:
    assert names_and_numbers("Where did Anna Meier's mill, the Old Mill, burn in 1877?") == {
        "anna", "meier", "old", "mill", "1877",
    }  # fmt: skip
    assert names_and_numbers("How deep is it?") == frozenset()
