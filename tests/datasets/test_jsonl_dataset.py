from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.topics import (
    attributes_of,
    is_unanswerable,
    references,
    scorable,
    without_reference,
    wrong_answers,
)
from ragauge.datasets import JsonlDataset
from ragauge.measures import qrels_of

DOCS = [
    {"docno": "rhine", "title": "Rhine", "text": "The Rhine rises in Switzerland. It ends in the North Sea."},
    {"docno": "aare", "title": "Aare", "text": "The Aare flows into the Rhine."},
    {"docno": "blank", "title": "", "text": ""},
]
TOPIC = {
    "qid": "q1",
    "query": "Where does the river rise that the Aare flows into?",
    "answer": "Switzerland",
    "type": "bridge",
    "evidence": [
        {"docno": "aare", "text": "The Aare flows into the Rhine."},
        "The Rhine rises in Switzerland.",
    ],
}


def write(folder: Path, docs: Sequence[Any], topics: Sequence[Any], **fields: Any) -> JsonlDataset:
    for name, rows in (("docs", docs), ("topics", topics)):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    return JsonlDataset(docs=folder / "docs.jsonl", topics=str(folder / "topics.jsonl"), **fields)


def without(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k != key}


def test_frames_hold_what_the_lines_say(tmp_path: Path) -> None:
    second = {**without(TOPIC, "type"), "qid": "q2", "evidence": ["x", "x", " x "]}
    data = write(tmp_path, DOCS, [TOPIC, "", second]).load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    assert data.docs["docno"].tolist() == ["rhine", "aare", "blank"]
    assert data.docs["text"].tolist() == [row["text"] for row in DOCS]
    assert data.topics["qid"].tolist() == ["q1", "q2"]
    assert data.topics["type"].iloc[0] == "bridge"
    assert data.topics["type"].isna().tolist() == [False, True]
    assert "level" not in data.topics
    assert data.evidence[["qid", "part"]].values.tolist() == [["q1", 0], ["q1", 1], ["q2", 0]]
    assert data.evidence["docno"].isna().tolist() == [False, True, True]
    assert data.evidence["text"].iloc[1] == "The Rhine rises in Switzerland."
    assert data.skipped == ()


def test_evidence_all_without_docno_is_a_nullable_string_column(tmp_path: Path) -> None:
    evidence = write(tmp_path, DOCS, [{**TOPIC, "evidence": ["x"]}]).load().evidence
    frames.check("evidence", evidence)
    evidence.to_parquet(tmp_path / "evidence.parquet")


@pytest.mark.parametrize(
    ("topic", "what"),
    [
        ("{'qid': 'q1'}", "not a line of JSON"),
        ('["q1"]', "expected a JSON object"),
        ({**TOPIC, "evidence": "text"}, "'evidence' is not a list"),
        ({**TOPIC, "answers": {"a": 1}}, "'answers' is neither a text nor a list of texts: {'a': 1}"),
        ({**TOPIC, "unanswerable": "yes"}, "'unanswerable' is neither true nor false"),
        ({**TOPIC, "unanswerable": True}, "is unanswerable, and has the reference answer"),
        ({**TOPIC, "label": "x"}, "attribute 'label': the name is taken"),
        ({**TOPIC, "evidence": [{"docno": "aare", "relevance": 0}]}, "relevance 0 is no whole number"),
        ({**TOPIC, "evidence": [{"docno": None}]}, "key 'text' is missing"),
        ({**TOPIC, "evidence": [7]}, "expected a JSON object with the key 'text', found 7"),
        ({**TOPIC, "evidence": ["text", " "]}, "evidence part 1 is empty"),
        ({**TOPIC, "evidence": [{"docno": "nile", "text": "x"}]}, "'nile', which is no document"),
        ({**TOPIC, "query": " \n"}, "query is empty"),
        ({**TOPIC, "answer": ""}, "reference answer is empty"),
        ({**TOPIC, "query": ["a"]}, "'query' is not a string: ['a']"),
        ({**TOPIC, "qid": "q 1"}, "white space"),
        ({**TOPIC, "qid": "q0"}, "stands twice"),
    ],
)
def test_bad_topic_is_named_or_dropped(tmp_path: Path, topic: Any, what: str) -> None:
    topics = [{**TOPIC, "qid": "q0"}, topic, {**TOPIC, "qid": "q2"}]
    with pytest.raises(DataError) as caught:
        write(tmp_path, DOCS, topics).load()
    message = str(caught.value)
    assert f"{tmp_path / 'topics.jsonl'}, line 2" in message
    assert what in message
    if isinstance(topic, dict) and "qid" in topic:
        assert f"qid {topic['qid']!r}" in message

    data = write(tmp_path, DOCS, topics, on_error="skip").load()
    assert data.topics["qid"].tolist() == ["q0", "q2"]
    assert data.evidence["qid"].unique().tolist() == ["q0", "q2"]
    (skipped,) = data.skipped
    assert message.startswith(skipped)


@pytest.mark.parametrize(
    ("doc", "what"),
    [
        ({**DOCS[0], "docno": "aare"}, "'aare' stands twice"),
        ({**DOCS[0], "docno": "the rhine"}, "white space"),
        ({**DOCS[0], "docno": "rhine%p0"}, "'%p'"),
        ({**DOCS[0], "docno": ""}, "empty"),
        ({**DOCS[0], "docno": 12}, "'docno' is not a string: 12"),
        ({**DOCS[0], "text": None}, "'text' is not a string: None"),
        ({**DOCS[0], "title": 7}, "'title' is not a string: 7"),
        (without(DOCS[0], "text"), "key 'text' is missing"),
    ],
)
def test_bad_document_is_named_or_dropped(tmp_path: Path, doc: Any, what: str) -> None:
    docs = [*DOCS, doc]
    with pytest.raises(DataError, match=r"docs\.jsonl, line 4") as caught:
        write(tmp_path, docs, [TOPIC]).load()
    assert what in str(caught.value)
    data = write(tmp_path, docs, [TOPIC], on_error="skip").load()
    assert len(data.docs) == 3
    assert len(data.skipped) == 1


def test_a_document_may_have_no_title(tmp_path: Path) -> None:
    data = write(tmp_path, [without(DOCS[0], "title"), {**DOCS[1], "title": None}, DOCS[2]], [TOPIC]).load()
    assert data.docs["title"].tolist() == ["", "", ""]


def test_topic_goes_with_the_dropped_document_it_needs(tmp_path: Path) -> None:
    docs = [DOCS[0], {**DOCS[1], "text": 7}]
    data = write(tmp_path, docs, [TOPIC, {**TOPIC, "qid": "q2", "evidence": ["x"]}], on_error="skip").load()
    assert data.topics["qid"].tolist() == ["q2"]
    assert len(data.skipped) == 2


def test_bytes_that_are_no_utf8_spoil_one_line_only(tmp_path: Path) -> None:
    source = write(tmp_path, DOCS, [TOPIC], on_error="skip")
    with (tmp_path / "docs.jsonl").open("ab") as stream:
        stream.write(b'{"docno": "caf\xe9", "title": "", "text": ""}\n{"docno": "d", "title": "", "text": ""}\n')
    data = source.load()
    assert data.docs["docno"].tolist() == ["rhine", "aare", "blank", "d"]
    assert "line 4" in data.skipped[0]


def test_limit_counts_good_topics_and_keeps_all_documents(tmp_path: Path) -> None:
    topics = [{**TOPIC, "qid": "bad", "query": ""}, *({**TOPIC, "qid": f"q{i}"} for i in range(5))]
    data = write(tmp_path, DOCS, topics, limit=2, on_error="skip").load()
    assert data.topics["qid"].tolist() == ["q0", "q1"]
    assert len(data.docs) == 3


@pytest.mark.parametrize(("docs", "topics", "what"), [([], [TOPIC], "no document"), (DOCS, [], "no topic")])
def test_empty_file(tmp_path: Path, docs: list[Any], topics: list[Any], what: str) -> None:
    with pytest.raises(DataError, match=what):
        write(tmp_path, docs, topics, on_error="skip" if not docs else "raise").load()


def test_missing_file_names_key_and_path(tmp_path: Path) -> None:
    source = write(tmp_path, DOCS, [TOPIC])
    (tmp_path / "topics.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"dataset\.topics=.*topics\.jsonl"):
        source.files()
    with pytest.raises(ConfigError, match=r"dataset\.docs is not set"):
        JsonlDataset().files()


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, DOCS, [TOPIC])
    files = JsonlDataset(docs="~/docs.jsonl", topics="~/topics.jsonl").files()
    assert files == {"docs": tmp_path / "docs.jsonl", "topics": tmp_path / "topics.jsonl"}


@pytest.mark.parametrize("fields", [{"on_error": "ignore"}, {"limit": 0}, {"limit": True}, {"name": " "}])
def test_values_out_of_range_name_the_key(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(fields))}="):
        JsonlDataset(**fields)


def test_paths_and_name_are_no_part_of_the_identity() -> None:
    assert identity(JsonlDataset(docs="a", topics="b", name="x")) == identity(JsonlDataset())
    assert identity(JsonlDataset(limit=3)) != identity(JsonlDataset())


def test_what_a_topic_may_lack_and_have(tmp_path: Path) -> None:
    topics = [
        {"qid": "1", "query": "q", "answers": ["a", "b", "a"], "hops": 2, "open": True},
        {"qid": "2", "query": "q", "unanswerable": True, "nested": {"a": 1}},
        {"qid": "3", "query": "q", "answer": None, "evidence": [{"docno": "aare", "relevance": n} for n in (1, 2, 1)]},
        {"qid": "4", "query": "q", "answer": "c", "answers": ["d"], "evidence": [{"docno": "aare"}, "text"]},
    ]
    data = write(tmp_path, DOCS, topics).load()
    frames.check("topics", data.topics)
    frames.check("evidence", data.evidence)
    assert attributes_of(data.topics) == ["hops", "open"]
    assert data.topics["hops"].isna().tolist() == [False, True, True, True]
    assert data.topics["open"].tolist()[0] == "true"
    assert references(data.topics) == {"1": ("a", "b"), "2": (), "3": (), "4": ("c", "d")}
    assert is_unanswerable(data.topics).tolist() == [False, True, False, False]
    assert without_reference(data.topics) == {"3"}
    assert data.evidence[["qid", "part", "docno", "relevance"]].fillna("-").to_numpy().tolist() == [
        ["3", 0, "aare", 2],
        ["4", 0, "aare", 1],
        ["4", 1, "-", 1],
    ]
    assert scorable(data.evidence, data.topics)[["qid", "text"]].to_numpy().tolist() == [["4", "text"]]
    assert qrels_of(data.evidence).to_numpy().tolist() == [["3", "aare", 2], ["4", "aare", 1]]


def test_number_that_no_float_holds_is_a_bad_row(tmp_path: Path) -> None:
    source = write(tmp_path, DOCS, [{**TOPIC, "hops": 10**309}])
    with pytest.raises(DataError, match=r"line 1.*attribute 'hops': 1000.* is no finite number"):
        source.load()


def test_wrong_answers_are_what_a_changed_document_leads_to(tmp_path: Path) -> None:
    topic = {**TOPIC, "wrong_answers": ["Austria", "Austria", "Tyrol"]}
    found = write(tmp_path, DOCS, [topic, {**TOPIC, "qid": "q2"}]).load().topics
    frames.check("topics", found)
    assert found["wrong_answers"].tolist() == [["Austria", "Tyrol"], []]
    assert wrong_answers(found) == {"q1": ("Austria", "Tyrol")}
    assert "wrong_answers" not in attributes_of(found)
    assert wrong_answers(write(tmp_path, DOCS, [TOPIC]).load().topics) == {}
    for given, told in (
        ([" "], "a wrong answer is empty"),
        (["Switzerland"], "'Switzerland' is both a reference answer and a wrong one"),
        ([3], "an answer in 'wrong_answers' is not a string"),
    ):
        with pytest.raises(DataError, match=told):
            write(tmp_path, DOCS, [{**TOPIC, "wrong_answers": given}]).load()


def test_a_csv_file_of_questions_is_read_by_its_columns(tmp_path: Path) -> None:
    dataset = write(tmp_path, DOCS, [])
    (tmp_path / "own.csv").write_text(
        "question,answer,evidence,type,unanswerable\n"
        "Where?,Switzerland,The Aare flows into the Rhine. | The Rhine rises in Switzerland.,bridge,\n"
        "Why?,,,,TRUE\n",
        encoding="utf-8",
    )
    loaded = JsonlDataset(docs=dataset.docs, topics=tmp_path / "own.csv").load()
    assert loaded.topics["qid"].tolist() == ["1", "2"]
    assert loaded.topics["query"].tolist() == ["Where?", "Why?"]
    assert loaded.topics["answer"].iloc[0] == "Switzerland"
    assert loaded.evidence["text"].tolist() == ["The Aare flows into the Rhine.", "The Rhine rises in Switzerland."]
    assert loaded.topics["type"].iloc[0] == "bridge"
    assert is_unanswerable(loaded.topics).tolist() == [False, True]
    (tmp_path / "own.csv").write_text("question,answer\nWhere?,Here,There\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"own\.csv, row 1: 3 cells where the header names 2 columns"):
        JsonlDataset(docs=dataset.docs, topics=tmp_path / "own.csv").load()
