"""`dataset=mtrag`: generation tasks as topics with their history, by files in MTRAG's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets import recordings
from ragauge.plugins.conversations.mtrag import MTRAG


def passage(docno: str, text: str, said: str | None = None, **more: Any) -> dict[str, Any]:
    feedback = {"feedback": {"relevant": {"g1": {"value": said, "timestamp": 7}}}} if said else {}
    return {"document_id": docno, "title": "Mill", "text": text, "score": 2.5, **feedback, **more}


MILL = passage("m-1", "Tessa Holm built the mill in 1804.", "yes")
RIVER = passage("m-3", "The mill stands on the Arl.", "no")
ASKED = [
    {"speaker": "user", "text": "Who built the mill?", "metadata": {"author_type": "human"}},
    {"speaker": "agent", "text": "Tessa Holm."},
    {"speaker": "user", "text": "And when?"},
]
FIRST = {
    "conversation_id": "c1", "task_id": "c1::1", "turn": 1, "collection": "mt-rag-clapnq-elser-512-100-20240503",
    "input": ASKED[:1], "contexts": [MILL], "targets": [{"speaker": "agent", "text": "I do not know."}],
    "answerability": ["UNANSWERABLE"], "Question Type": ["Factoid"], "Multi-Turn": float("nan"),
}  # fmt: skip
SECOND = {
    **FIRST, "task_id": "c1<::>2", "input": ASKED, "contexts": [MILL, RIVER], "answerability": ["PARTIAL"],
    "targets": [{"speaker": "agent", "text": "In 1804."}], "Multi-Turn": ["Follow-up", "Clarification"],
}  # fmt: skip
OTHER = {**SECOND, "conversation_id": "g1", "task_id": "g1::1", "collection": None, "Collection": "govt"}


def written(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_task_is_a_turn_with_its_history(tmp_path: Path) -> None:
    path = written(tmp_path, "tasks.jsonl", FIRST, SECOND, OTHER)
    data = MTRAG(path=path, domain="clapnq").load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    topics = data.topics.set_index("qid")
    assert topics.index.tolist() == ["c1-1", "c1-2"]
    assert topics["query"].tolist() == ["Who built the mill?", "And when?"]
    assert topics["history"].map(list).tolist() == [[], ["Who built the mill?", "Tessa Holm."]]
    assert topics["conversation"].tolist() == ["c1", "c1"]
    assert topics["turn"].tolist() == [1, 2]
    assert topics["unanswerable"].tolist() == [True, False]
    assert topics["answer"].fillna("").tolist() == ["", "In 1804."]
    assert topics["domain"].tolist() == ["clapnq", "clapnq"]
    assert topics["answerability"].tolist() == ["UNANSWERABLE", "PARTIAL"]
    assert topics["multi_turn"].fillna("").tolist() == ["", "Follow-up, Clarification"]
    assert data.docs["docno"].tolist() == ["m-1", "m-3"]
    assert data.evidence[["qid", "docno", "text"]].to_numpy().tolist() == [["c1-2", "m-1", MILL["text"]]]
    both = MTRAG(path=path, limit=1).load()
    assert len(both.topics) == 1
    assert len(both.docs) == 2
    assert MTRAG(path=path).load().topics["domain"].tolist() == ["clapnq", "clapnq", "govt"]


def test_a_turn_says_whether_its_evidence_is_that_of_an_earlier_turn(tmp_path: Path) -> None:
    third, fourth = {**SECOND, "task_id": "c1::3"}, {**SECOND, "task_id": "c1::4", "contexts": [passage("m-4", "So.")]}
    data = MTRAG(path=written(tmp_path, "tasks.jsonl", FIRST, SECOND, third, fourth, OTHER)).load()
    assert data.topics["earlier_evidence"].fillna("").tolist() == ["", "", "yes", "no", ""]


def test_of_several_annotators_the_last_one_says_what_is_relevant(tmp_path: Path) -> None:
    contexts = []
    for docno, said in {"m-1": "no 1 yes 2", "m-2": "no 9 yes 3", "m-3": "yes 0", "m-4": "no 5", "m-5": ""}.items():
        words = said.split()
        annotators = {
            f"g{i}": {"value": words[i], "timestamp": int(words[i + 1]) or None} for i in range(0, len(words), 2)
        }
        contexts.append({**passage(docno, f"Text of {docno}."), "feedback": {"relevant": annotators}})
    data = MTRAG(path=written(tmp_path, "tasks.jsonl", {**SECOND, "contexts": contexts})).load()
    assert data.evidence["docno"].tolist() == ["m-1", "m-3"]


def test_corpus_qrels_and_rewrites_stand_beside_the_tasks(tmp_path: Path) -> None:
    other = {"_id": "m-2", "title": None, "text": "The mill of Orrin stands since 1804."}
    qrels = tmp_path / "dev.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\nc1<::>2\tm-2\t1\nc1<::>2\tm-1\t0\n")
    data = MTRAG(
        path=written(tmp_path, "tasks.jsonl", FIRST, SECOND),
        corpus=written(tmp_path, "clapnq.jsonl", other, {"_id": "m-1", "text": MILL["text"]}),
        qrels=qrels,
        rewrites=written(tmp_path, "rewrite.jsonl", {"_id": "c1<::>2", "text": "|user|: When was the mill built?"}),
    ).load()
    assert data.docs["docno"].tolist() == ["m-2", "m-1"]
    assert data.evidence[["qid", "docno", "text"]].to_numpy().tolist() == [["c1-2", "m-2", other["text"]]]
    assert data.topics["standalone_question"].tolist()[1] == "When was the mill built?"


def test_contexts_that_nobody_judged_are_evidence_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare = [{key: one[key] for key in ("document_id", "text", "score")} for one in (MILL, RIVER)]
    path = written(tmp_path, "RAG.jsonl", {**SECOND, "contexts": bare})
    assert MTRAG(path=path).load().evidence["docno"].tolist() == ["m-1", "m-3"]
    assert "1 tasks do not say which of their contexts are relevant" in caplog.text


def test_a_bad_file_is_told_in_one_line(tmp_path: Path) -> None:
    for task, told in (
        ({**SECOND, "input": ASKED[:2]}, r"line 1: the last message of 'input' is no question of the user"),
        ({**SECOND, "input": []}, r"the last message of 'input' is no question"),
        ({"author": "g1", "messages": ASKED}, r"line 1: no task of MTRAG's generation_tasks"),
        ({**SECOND, "contexts": [{"text": "x"}]}, r"key 'document_id' is missing"),
    ):
        with pytest.raises(DataError, match=told):
            MTRAG(path=written(tmp_path, "tasks.jsonl", task, OTHER)).load()
    for key in ("path", "corpus", "qrels", "rewrites"):
        with pytest.raises(ConfigError, match=rf"{key}"):
            MTRAG(**{"path": tmp_path / "tasks.jsonl", key: tmp_path / "none"}).files()
    with pytest.raises(ConfigError, match=r"dataset\.domain"):
        MTRAG(path=tmp_path, domain=" ")
    qrels = tmp_path / "dev.tsv"
    qrels.write_text("c1::2 m-1 1\n")
    path = written(tmp_path, "tasks.jsonl", SECOND)
    with pytest.raises(DataError, match=r"dev\.tsv, line 1: expected query-id, corpus-id and a whole number"):
        MTRAG(path=path, qrels=qrels).load()
    qrels.write_text("c1::2\tm-9\t1\n")
    with pytest.raises(DataError, match=r"qid 'c1-2': evidence names docno 'm-9', which is no document of the corpus"):
        MTRAG(path=path, qrels=qrels).load()


def test_a_task_with_predictions_is_a_row_of_a_recorded_system(tmp_path: Path) -> None:
    path = written(tmp_path, "answers.jsonl", {**SECOND, "predictions": [{"text": "1804."}]}, FIRST)
    second, first = recordings.read_rows(path, None, "llm.system")
    assert (second.qid, second.text("question"), second.text("answer")) == ("c1-2", "And when?", "1804.")
    assert second.texts("docnos") == ["m-1", "m-3"]
    assert second.texts("contexts") == [MILL["text"], RIVER["text"]]
    assert list(second.history) == ["Who built the mill?", "Tessa Holm."]
    assert first.values["unanswerable"] is True
    assert first.text("answer") is None
