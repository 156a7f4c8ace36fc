"""Python functions in the place of a retriever or an llm."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ragauge
from plugins.service.test_service_contexts import CHUNKS, TOPICS, rows
from ragauge.commands import given
from ragauge.contract import frames, loading
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.retrieval import BringsTexts, TopicsFailed
from ragauge.contract.usage import Usage
from ragauge.plugins.service.functions import FunctionChat, FunctionRetriever
from ragauge.retrieval.passages import name_of


class Document:
    page_content, metadata = "Carl.", {"docno": "c"}


def retriever(monkeypatch: pytest.MonkeyPatch, function: Any, **settings: Any) -> FunctionRetriever:
    monkeypatch.setitem(loading.GIVEN, "here.find", function)
    made = FunctionRetriever({"_target_": "here.find"}, **settings)
    assert isinstance(made, BringsTexts)
    return made


def test_texts_docnos_scores_and_documents_become_a_run(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = {"Who built it?": ["New.", "a", {"docno": "b%p0"}, Document()], "Who left?": [("b%p0", 3.5), ("a%p0", 2)]}
    run, texts = retriever(monkeypatch, hits.get).bring(TOPICS, CHUNKS, tools)
    frames.check("run", run)
    # Document a stands for its two chunks; not every entry has a score, so that the order alone counts.
    first = [(name_of("New."), 1.0), ("a%p0", 1 / 2), ("a%p1", 1 / 3), ("b%p0", 1 / 4), ("c", 1 / 5)]
    second = [("b%p0", 1.0), ("a%p0", 0.5)]
    wanted = [("q1", docno, score, rank) for rank, (docno, score) in enumerate(first)]
    assert rows(run) == wanted + [("q2", docno, score, rank) for rank, (docno, score) in enumerate(second)]
    assert dict(texts.itertuples(index=False, name=None)) == {name_of("New."): "New.", "c": "Carl."}
    scored, _ = retriever(monkeypatch, lambda q: [("b%p0", 3.5), ("a%p0", 2)], top_k=1).bring(TOPICS, CHUNKS, tools)
    assert rows(scored) == [("q1", "b%p0", 3.5, 0), ("q2", "b%p0", 3.5, 0)]


def test_a_topic_for_which_the_function_raises_is_asked_again(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TopicsFailed) as failed:
        retriever(monkeypatch, lambda q: ["a"] if "built" in q else 1 / 0).bring(TOPICS, CHUNKS, tools)
    assert failed.value.qids == ["q2"]
    assert set(failed.value.run["qid"]) == {"q1"}
    with pytest.raises(DataError, match=r"^find: topic 'q2': ZeroDivisionError: .*; so for every topic$"):
        retriever(monkeypatch, lambda q: 1 / 0).bring(TOPICS, CHUNKS, tools)


@pytest.mark.parametrize("hits", ["a text", None, {"text": "x"}, [None], [" "], [{"score": 1}], [("a", "high")]])
def test_what_is_no_list_of_entries_is_refused_with_its_topic(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, hits: Any
) -> None:
    with pytest.raises(DataError, match=r"^find: topic 'q1': (returned a \w+; allowed is|entry 1: .* is none of)"):
        retriever(monkeypatch, lambda q: hits).bring(TOPICS, CHUNKS, tools)


def test_an_llm_that_is_a_function_replies_to_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(function: Any) -> Any:
        monkeypatch.setitem(loading.GIVEN, "here.reply", function)
        return asyncio.run(FunctionChat("here.reply", "reply").ainvoke([("human", "12345678")]))

    reply = asked(lambda prompt: f"{prompt}9")
    assert (reply.text, reply.usage, reply.refused) == ("123456789", Usage(2, 3), None)
    assert asked(lambda prompt: None).refused == "reply returned a NoneType, and no text"
    assert asked(lambda prompt: " ").refused == "an empty reply"


def test_functions_are_options_with_names_of_their_own() -> None:
    def my_search(question: str) -> list[str]:
        return []

    def bm25(question: str) -> list[str]:
        return []

    settings = {"retriever": ["bm25", my_search], "llm": my_search}
    assert given.overrides((), settings, swept=True) == ["retriever=bm25,my_search", "llm=my_search"]
    assert loading.locate("retriever", f"{__name__}.my_search") is my_search
    for retrievers, why in (
        ([lambda q: []], "'<lambda>' is none; define it with def"),
        ([bm25], r"^retriever=bm25: there is an option of that name"),
        ([my_search, my_search], r"^retriever=my_search,my_search: two functions have the same name; .*"),
    ):
        with pytest.raises(ConfigError, match=why):
            given.overrides((), {"retriever": retrievers}, swept=True)
    with pytest.raises(ConfigError, match=r"^judge: function is none of text"):
        given.overrides((), {"judge": bm25}, swept=False)


def test_results_of_a_function_are_kept_for_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (retriever(monkeypatch, list, call=call) for call in "ab")
    assert identity(one) != identity(other)


@pytest.mark.slow
def test_a_sweep_with_functions_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE"):
        monkeypatch.delenv(name, raising=False)
    searched, asked = [], []

    def my_search(question: str) -> list[str]:
        searched.append(question)
        return ["A text that is in no corpus."]

    def my_llm(prompt: str) -> str:
        asked.append(prompt)
        return "Nothing."

    base = {"dataset": "sample", "chunker": "none", "tokenizer": "words", "judge": "none", "dataset.limit": 20}
    kept = {"retriever": ["bm25", my_search], "llm": my_llm}
    swept = ragauge.sweep(base, n_tokens=[50, 100], **kept)
    assert not swept.failed
    assert swept.leaderboard["system"].tolist() == ["bm25", "my_search"]
    assert swept.jobs[1].contexts["text"].unique().tolist() == ["A text that is in no corpus."]
    assert swept.jobs[0].answers["answer"].unique().tolist() == ["Nothing."]
    assert len(searched) == 20  # once for both budgets
    n_asked = len(asked)
    assert len(set(asked)) == n_asked
    ragauge.sweep(base, n_tokens=[50, 100], **kept)
    assert (len(searched), len(asked)) == (40, n_asked)  # searched anew, and no answer is asked for twice
