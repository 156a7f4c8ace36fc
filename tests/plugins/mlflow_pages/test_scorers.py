"""Scorers give an app's answers the values of a job, each row measured once, with MLflow's own evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

import ragauge
from chat_server import ChatServer
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.mlflow_pages import scorers
from ragauge.plugins.mlflow_pages.scorers import evidence_in, sample_of

PASSAGES = ["Faust is a play by Goethe.", "Goethe lived in Weimar."]
ROWS = [
    {
        "question": "Who wrote Faust?",
        "contexts": PASSAGES,
        "answer": "Goethe wrote it",
        "reference": "Goethe",
        "reference_contexts": ["Faust, a tragedy, is a play by Goethe.", "It has two parts."],
    },
    {
        "question": "Who lived in Weimar?",
        "contexts": PASSAGES[:1],
        "answer": "Schiller",
        "reference": "Goethe",
        "reference_contexts": ["Goethe lived in Weimar."],
    },
]


def given(row: dict[str, Any]) -> dict[str, Any]:
    """A row as MLflow gives it to a scorer."""
    evidence = [{"content": text} for text in row["reference_contexts"]]
    return {
        "inputs": {"question": row["question"]},
        "outputs": {"answer": row["answer"], "contexts": row["contexts"]},
        "expectations": {"expected_response": row["reference"], "expected_retrieved_context": evidence},
    }


@pytest.mark.slow
def test_values_are_those_of_a_job_to_the_last_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'm.db'}")
    job = ragauge.evaluate(ROWS, ["f1", "rouge_l"], judge="lexical")
    frame = job.outcomes.sort_values("qid").assign(correct=lambda rows: rows["label"].eq(5).astype(float))
    names = {"ir_score": "ir_score", "judge_class": "label", "correct": "correct", "f1": "f1", "rouge_l": "rouge_l"}
    chosen = scorers(*names, judge="lexical")
    for scorer, column in zip(chosen, names.values(), strict=True):
        values = [float(one.value) for row in ROWS for one in scorer(**given(row))]
        assert values == frame[column].astype(float).tolist(), column
    [score] = chosen[0](**given(ROWS[0]))
    assert score.rationale.startswith("The context lacks evidence: part 2 of 2 at 0.")

    # The same app by MLflow's own evaluation: passages are those of its RETRIEVER span.
    search = mlflow.trace(lambda question: [{"page_content": text} for text in PASSAGES], span_type="RETRIEVER")

    @mlflow.trace
    def app(question: str) -> str:
        search(question)
        return "Goethe wrote it"

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'm.db'}")
    try:
        data = [{key: value for key, value in given(ROWS[0]).items() if key != "outputs"}]
        found = mlflow.genai.evaluate(data=data, predict_fn=app, scorers=chosen)
    finally:
        mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    assert found.metrics["ir_score/mean"] == frame["ir_score"].iloc[0]
    assert found.metrics["f1/mean"] == frame["f1"].iloc[0]


@pytest.mark.slow
def test_a_row_says_what_it_lacks() -> None:
    [score, exact] = scorers("ir_score", "em")
    row = given(ROWS[0])
    with pytest.raises(DataError, match="the row has no passages: no span of the type RETRIEVER"):
        score(**{**row, "outputs": "Goethe"})
    assert score(**{**row, "outputs": "Goethe", "expectations": {"expected_response": "Goethe"}}) == []
    [told] = exact(**{**row, "outputs": "Goethe"})
    assert (told.name, told.value, told.source.source_type) == ("em", 1.0, "CODE")
    assert exact(**{**row, "outputs": None}) == []
    with pytest.raises(DataError, match="the row has no question"):
        sample_of({}, "x", None, None)


@pytest.mark.slow
def test_evidence_of_annotated_topics_stands_for_that_of_rows_without_any(tmp_path: Path) -> None:
    topics = tmp_path / "annotated.jsonl"
    row = given(ROWS[0])
    texts = [{"docno": "d1", "text": text} for text in ROWS[0]["reference_contexts"]]
    known = [
        {"qid": "1", "query": ROWS[0]["question"], "evidence": [*texts, {"docno": "d2", "relevance": 2}]},
        {"qid": "2", "query": "What is not there?", "evidence": []},
    ]
    topics.write_text("".join(json.dumps(topic) + "\n" for topic in known), encoding="utf-8")
    [score] = scorers("ir_score", evidence=topics)
    [own] = score(**row)
    [made] = score(**{**row, "expectations": None})
    assert (made.value, made.rationale) == (own.value, own.rationale)
    assert score(**{**row, "inputs": "What is not there?", "expectations": None}) == []
    with pytest.raises(DataError, match="nor has the file of evidence its question 'Who else\\?'"):
        score(**{**row, "inputs": "Who else?", "expectations": None})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"query": "Who?", "evidence": [{"text": 3}]}', "line 1: 'text' is not a string: 3"),
        ('{"qid": "1"}', "line 1: key 'query' is missing; the row has 'qid'"),
    ],
)
def test_a_line_of_evidence_that_is_no_topic_is_named(tmp_path: Path, text: str, said: str) -> None:
    topics = tmp_path / "annotated.jsonl"
    topics.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=said):
        evidence_in(topics)
    with pytest.raises(ConfigError, match=r"scorers\(evidence='none.jsonl'\): there is no such file"):
        evidence_in("none.jsonl")


def test_expectations_of_the_row_come_before_others_and_facts_stand_for_a_reference() -> None:
    row = sample_of("Who?", "her", {"expected_facts": ["one", "two"]}, None)
    assert row == {"user_input": "Who?", "response": "her", "retrieved_contexts": None,
                   "reference": "one\ntwo", "references": ["one\ntwo"]}  # fmt: skip
    assert json.dumps(row)


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        ((), {}, r"scorers\(\): no name; allowed are ir_score, judge_class, correct and options of answers"),
        (("judge_class",), {}, "judge_class and correct need a judge, such as judge='lexical'"),
        (("f2",), {}, "answers"),
    ],
)
def test_a_wrong_name_is_refused_at_once(names: tuple[str, ...], more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scorers(*names, **more)


@pytest.mark.slow
def test_an_llm_is_asked_once_for_an_answer_whatever_scorers_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGAUGE_API_KEY", "k")
    with ChatServer(lambda prompt: '{"label": 5, "reason": "It says so."}') as server:
        model = [
            "judge.chat.model=dice",
            f"judge.chat.base_url={server.url}/v1",
            "judge.price={prompt: 1, completion: 1}",
        ]
        costs: list[float] = []
        for _ in range(2):  # the second finds the replies in the ledger
            label, correct = scorers("judge_class", "correct", judge="openai_compatible", overrides=model)
            [told] = label(**given(ROWS[0]))
            [right] = correct(**given(ROWS[0]))
            assert (told.value, right.value, told.rationale) == (5, True, "right: It says so.")
            assert told.source.source_type == right.source.source_type == "LLM_JUDGE"
            assert told.metadata["mlflow.assessment.judgeOutputTokens"] == "6"
            costs.append(float(told.metadata.get("mlflow.assessment.judgeCost", 0)))
        assert list(server.calls.values()) == [1]
        assert costs[0] > costs[1] == 0
    assert (tmp_path / ".ragauge" / "ledger.db").is_file()
