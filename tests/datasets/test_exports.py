"""Rows as FlashRAG, promptfoo, Langfuse, LangSmith, Braintrust and AutoRAG export them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.topics import references
from ragauge.datasets import SamplesDataset
from ragauge.datasets.recordings import read_rows

PASSAGE = "Paris is the capital of France."
FLASHRAG = {
    "id": "test_0", "question": "Capital of France?", "golden_answers": ["Paris", "City of Paris"], "metadata": {},
    "output": {"retrieval_result": [{"id": "17", "contents": PASSAGE, "score": 0.5}], "prompt": "…", "pred": "Paris",
               "metric_score": {"em": 1.0}},
}  # fmt: skip
LANGFUSE = {
    "id": "a1", "input": {"question": "Capital of France?", "lang": "en"}, "output": "Paris",
    "expectedOutput": {"answer": "Paris"}, "metadata": {"source": "x"}, "sourceTraceId": None,
}  # fmt: skip
LANGFUSE_CSV = (
    "id,input,output,expectedOutput\n"
    'a1,"{""question"": ""Capital of France?""}","{""answer"": ""Paris"", ""contexts"": [""' + PASSAGE + '""]}",Paris\n'
)
LANGSMITH = {
    "inputs": {"question": "Capital of France?"}, "outputs": {"output": "Paris"},
    "reference_outputs": {"answer": "Paris"},
}  # fmt: skip
BRAINTRUST = {"input": "Capital of France?", "output": "Paris", "expected": "Paris", "metadata": {"lang": "en"}}
AUTORAG = {
    "qid": "q", "query": "Capital of France?", "retrieved_contents": [PASSAGE], "retrieved_ids": ["d1"],
    "generated_texts": "Paris", "generation_gt": ["Paris"],
}  # fmt: skip


def written(folder: Path, content: Any, name: str = "s.json") -> Path:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("content", "name", "expected", "contexts"),
    [
        ([FLASHRAG], "s.json", ("Paris", "City of Paris"), [PASSAGE]), ([LANGFUSE], "s.json", ("Paris",), None),
        (LANGFUSE_CSV, "s.csv", ("Paris",), [PASSAGE]), ([LANGSMITH], "s.json", ("Paris",), None),
        ({"data": [LANGFUSE, {**LANGFUSE, "id": "a2"}]}, "s.json", ("Paris",), None),
        (json.dumps(BRAINTRUST), "s.jsonl", ("Paris",), None), (json.dumps(AUTORAG), "s.jsonl", ("Paris",), [PASSAGE]),
    ],
)  # fmt: skip
def test_an_export_is_read_as_rows_of_samples(
    tmp_path: Path, content: Any, name: str, expected: tuple[str, ...], contexts: list[str] | None
) -> None:
    file = written(tmp_path, content, name)
    row = read_rows(file, None, "recorded.system")[0]
    assert (row.text("question"), row.text("answer")) == ("Capital of France?", "Paris")
    assert (row.references(), row.texts("contexts")) == (expected, contexts)
    assert next(iter(references(SamplesDataset(path=file).load().topics).values())) == expected
    with pytest.raises(DataError, match="'output' is no system of it: none of its rows names one"):
        read_rows(file, "output", "recorded.system")


def test_passages_that_are_objects_have_their_ids_as_docnos(tmp_path: Path) -> None:
    (row,) = read_rows(written(tmp_path, [FLASHRAG]), None, "recorded.system")
    assert (row.qid, row.texts("docnos")) == ("test_0", ["17"])
    for second, docnos in (({"doc_id": 4}, ["17", "4"]), ({"id": "a b"}, None), ({}, None), ("a text", None)):
        passage = {"text": "So.", **second} if isinstance(second, dict) else second
        both = {"question": "?", "contexts": [FLASHRAG["output"]["retrieval_result"][0], passage]}
        (row,) = read_rows(written(tmp_path, [both]), None, "recorded.system")
        assert row.texts("docnos") == docnos


def result(number: int, provider: str, output: str | None, **more: Any) -> dict[str, Any]:
    return {
        "testIdx": number, "promptIdx": 0, "provider": {"id": provider, "label": ""}, "prompt": {"raw": "…"},
        "vars": {"query": f"Question {number}?", "context": PASSAGE, "lang": "en"}, "score": 1,
        "response": {"output": output, "tokenUsage": {"prompt": 12, "completion": 3}}, "cost": 0.001,
        "testCase": {"assert": [{"type": "equals", "value": "Paris"}, {"type": "latency", "value": 5}]}, **more,
    }  # fmt: skip


def test_results_of_promptfoo_are_rows_of_a_system_for_each_provider(tmp_path: Path) -> None:
    results = [
        result(0, "openai:a", "Paris"),
        result(0, "openai:b", None, error="timed out"),
        result(1, "openai:a", "Rome"),
    ]
    file = written(tmp_path, {"evalId": "e", "results": {"version": 3, "results": results, "stats": {}}, "config": {}})
    rows = read_rows(file, "openai:a", "recorded.system")
    assert [(row.qid, row.text("question"), row.text("answer")) for row in rows] == [
        ("0", "Question 0?", "Paris"), ("1", "Question 1?", "Rome"),
    ]  # fmt: skip
    assert (rows[0].references(), rows[0].texts("contexts"), rows[0].count("prompt_tokens")) == (
        ("Paris",),
        [PASSAGE],
        12,
    )
    assert (rows[0].number("cost_usd"), rows[0].extra) == (0.001, {"lang": "en"})
    (failed,) = read_rows(file, "openai:b", "recorded.system")
    assert (failed.text("answer"), failed.text("error")) == (None, "timed out")
    with pytest.raises(DataError, match=r"it holds several systems, choose one: recorded.system=openai:a, openai:b"):
        read_rows(file, None, "recorded.system")
    assert len(SamplesDataset(path=file).load().topics) == 2


def test_a_result_of_promptfoo_without_a_question_is_named_for_what_it_is(tmp_path: Path) -> None:
    file = written(tmp_path, [{**result(0, "a", "x"), "vars": {"topic": "bananas", "tone": "grim"}}])
    with pytest.raises(
        DataError, match=r"row 1: this is a result of promptfoo, and none of its vars \(topic, tone\) is"
    ):
        SamplesDataset(path=file).load()


def test_systems_of_a_row_are_objects_with_answers_or_contexts_alone(tmp_path: Path) -> None:
    row = {"question": "?", "hyde": {"answer": "a"}, "plain": {"contexts": []}, "scores": {"f1": 1}, "metadata": {}}
    with pytest.raises(DataError, match=r"choose one: s=hyde, plain \(or -m"):
        read_rows(written(tmp_path, [row]), None, "s")
