from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from loader_files import checked, json_lines, named_or_dropped
from ragauge.contract.errors import ConfigError
from ragauge.plugins.robustness.rgb import RGB
from ragauge.retrieval.chunkers import NoChunker
from ragauge.retrieval.retrievers import BM25
from small_pipeline import SmallPipelines

GRAZ = "The tower stands in Graz."
ROWS: list[dict[str, Any]] = [
    {
        "id": 0,
        "query": "When and where?",
        "answer": [["January 2 2022", "Jan 2, 2022"], "Graz"],
        "positive": [GRAZ, "On Jan 2, 2022 it fell, in Graz."],
        "negative": ["Linz has a bridge."],
    },
    {
        "id": 1,
        "query": "Where?",
        "answer": "Linz",
        "positive": ["Linz has a bridge."],
        "negative": [GRAZ, GRAZ],
    },
]
INTEGRATION = {
    "id": 2,
    "query": "Who built the tower, and who the bridge?",
    "answer": ["Anna", "Berta"],
    "answer1": "Anna",
    "positive": [["Anna built the tower.", "Anna did."], ["Berta built the bridge."]],
    "negative": [],
}
FACT = {
    "id": "f3",
    "query": "Where is the tower?",
    "answer": "Graz",
    "fakeanswer": "Linz",
    "positive": [GRAZ, "It is a tower."],
    "positive_wrong": ["The tower stands in Linz.", "It is a tower."],
    "negative": [],
}


def write(folder: Path, rows: list[Any], **fields: Any) -> RGB:
    return RGB(path=json_lines(folder / "en.json", rows), **fields)


def test_snippets_for_and_against_are_the_documents(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS).load())
    assert data.docs.values.tolist() == [
        ["0-positive-0", "", GRAZ],
        ["0-positive-1", "", "On Jan 2, 2022 it fell, in Graz."],
        ["0-negative-0", "", "Linz has a bridge."],
    ]
    assert data.evidence.values.tolist() == [
        ["0", 0, "0-positive-0", GRAZ],
        ["1", 0, "0-negative-0", "Linz has a bridge."],
    ]
    every = write(tmp_path, ROWS, evidence="all").load().evidence
    assert every["docno"].tolist() == ["0-positive-0", "0-positive-1", "0-negative-0"]


def test_every_alternative_of_a_slot_stands_in_a_reference(tmp_path: Path) -> None:
    rows = [*ROWS, {**ROWS[1], "id": 2, "answer": "格拉茨"}]
    topics = write(tmp_path, rows).load().topics
    assert topics["answers"].tolist() == [["January 2 2022, Graz", "Jan 2, 2022, Graz"], ["Linz"], ["格拉茨"]]
    assert topics["slots"].tolist() == [2.0, 1.0, 1.0]
    assert topics["answer_slots"].tolist() == [
        '[["January 2 2022", "Jan 2, 2022"], ["Graz"]]', '[["Linz"]]', '[["格拉茨"]]',
    ]  # fmt: skip


def test_integration_needs_a_snippet_for_each_part_of_the_answer(tmp_path: Path) -> None:
    data = checked(write(tmp_path, [INTEGRATION]).load())
    assert data.docs["docno"].tolist() == ["2-positive-0", "2-positive-1", "2-positive-2"]
    assert data.evidence["docno"].tolist() == ["2-positive-0", "2-positive-2"]
    assert data.topics["answer"].tolist() == ["Anna, Berta"]


def test_snippets_with_a_wrong_answer_are_documents_beside_the_true_ones(tmp_path: Path) -> None:
    data = checked(write(tmp_path, [FACT]).load())
    # positive and positive_wrong pair by number; one that was left as it is has no document of its own
    assert data.docs.values.tolist() == [
        ["f3-positive-0", "", GRAZ],
        ["f3-positive-1", "", "It is a tower."],
        ["f3~changed~f3-positive-0", "", "The tower stands in Linz."],
    ]
    assert data.topics["wrong_answers"].tolist() == [["Linz"]]
    assert data.evidence["docno"].tolist() == ["f3-positive-0"]
    without = write(tmp_path, [FACT], wrong=False).load()
    assert without.docs["docno"].tolist() == ["f3-positive-0", "f3-positive-1"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"answer": [["Graz", ""]]}, "slot 0 of 'answer' is empty"),
        ({"answer": ["Graz", 7]}, "slot 1 of 'answer' is not a string"),
        ({"answer": []}, "'answer' has no slot"),
        ({"answer": None}, "key 'answer' is missing"),
        ({"positive": "text"}, "key 'positive' is not a list"),
        ({"positive": [["a"], "b"]}, "entry 1 of 'positive' is not a list"),
        ({"negative": [" "]}, "an entry of 'negative' is empty"),
        ({"positive_wrong": [3]}, "entry 0 of 'positive_wrong' is not a string"),
        ({"query": None}, "'query' is not a string"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1].update(change)
    where = f"{tmp_path / 'en.json'}, line 2, qid '1'"
    named_or_dropped(lambda **of: write(tmp_path, rows, **of), where, field, ["0"])


def test_id_that_is_none_or_stands_twice(tmp_path: Path) -> None:
    named_or_dropped(lambda **of: write(tmp_path, [ROWS[0], ROWS[0]], **of), "line 2, qid '0'", "twice", ["0"])
    bad = {**ROWS[1], "id": None}
    named_or_dropped(lambda **of: write(tmp_path, [ROWS[0], bad], **of), "line 2", "'id' is not a string", ["0"])


def test_known_snippets_of_an_answer_are_evidence_without_a_text(tmp_path: Path) -> None:
    data = write(tmp_path, [INTEGRATION, FACT], evidence="known").load()
    found = data.evidence[["docno", "text"]].astype(object).where(data.evidence[["docno", "text"]].notna(), None)
    assert found.values.tolist() == [
        ["2-positive-0", "Anna built the tower."],
        ["2-positive-1", None],
        ["2-positive-2", "Berta built the bridge."],
        ["f3-positive-0", GRAZ],
        ["f3-positive-1", None],
    ]


def test_choices(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.evidence"):
        RGB(evidence="best")
    with pytest.raises(ConfigError, match=r"dataset\.wrong"):
        RGB(wrong="yes")  # type: ignore[arg-type]
    data = write(tmp_path, ROWS, limit=1).load()
    assert (len(data.docs), len(data.topics)) == (3, 1)


def test_a_job_passes_whatever_topics_lack(tmp_path: Path, small: SmallPipelines) -> None:
    tower, bridge = (
        "Anna built the tower. It stands high above Graz.",
        "The bridge stands in Linz. It is made of stone.",
    )
    rows = [
        {"id": 0, "query": "Who built the tower?", "answer": [["Anna", "Anne"]], "positive": [tower],
         "negative": [bridge]},
        {"id": 1, "query": "Where is the bridge?", "answer": "Linz", "positive": [bridge], "negative": []},
        {"id": 2, "query": "Who painted the tower?", "answer": ["Berta", "Carl"], "positive": [], "negative": [tower]},
    ]  # fmt: skip
    source = RGB(path=json_lines(tmp_path / "rgb.json", rows))
    job = small(32, (8, 32), dataset=source, chunker=NoChunker(), retriever=BM25(top_k=2))
    assert len(job.frame("docs")) == 2
    assert job.outcomes["ir_score"].dropna().tolist() == [1, 1]
    assert int(job.outcomes["label"].notna().sum()) == 3
