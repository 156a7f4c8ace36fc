"""The probes: answers of known class by which a judge is tried."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering.judges import ChatJudge, LexicalJudge, NoJudge
from ragauge.answering.judges.probes import Probes
from ragauge.contract.component import Tools
from ragauge.findings.probes import JudgeTried
from ragauge.plugins.benchmarks.crag_judge import CragJudge
from scripted_chat import unframed

PROBES = Probes(LexicalJudge())
KNOWN = {" ".join(row["answer"].split()): row["label"] for row in PROBES.answers.to_dict("records")}


def judge(server: ChatServer, **fields: Any) -> ChatJudge:
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "qwen", "base_url": server.url}
    return ChatJudge(chat=chat, retries=0, backoff=0.0, budget="b", **fields)


def job(part: Any, tools: Tools, labels: list[int], kind: str = "chat", **settings: Any) -> Any:
    of = SimpleNamespace(judge=part, llm=SimpleNamespace(kind=kind))
    return SimpleNamespace(
        pipeline=SimpleNamespace(components=of, tools=tools),
        settings=SimpleNamespace(judge=settings),
        record=SimpleNamespace(choices={"judge": "mine", "llm": "mine"}),
        outcomes=pd.DataFrame({"label": pd.array(labels, dtype="Int8")}),
    )


def honest(prompt: str) -> str:
    said = unframed(prompt).split("Answer to grade: ")[1].split("\n")[0]
    return json.dumps({"label": KNOWN[said], "reason": "so"})


def test_the_probes_are_thirty_answers_of_all_classes_and_languages() -> None:
    assert len(PROBES.answers) == 30
    assert PROBES.answers["label"].value_counts().sort_index().to_dict() == {1: 5, 2: 6, 3: 6, 4: 6, 5: 7}
    assert PROBES.topics["query"].nunique() == 15
    assert set(PROBES.evidence["qid"]) == set(PROBES.topics["qid"])
    assert any("Note to the grader" in text for text in PROBES.answers["answer"])
    assert set(Probes(CragJudge(chat={"_target_": "langchain_ollama.ChatOllama", "model": "m"})).answers["label"]) == {
        1,
        4,
        5,
    }


@pytest.mark.parametrize(
    ("reply", "kappa", "sentence"),
    [
        (honest, 1.0, "Judge qwen (mine): kappa 1.00 (0.74 to 1.00) on 30 probes."),
        (lambda prompt: '{"label": 5}', 0.0, "on 30 probes; not to be believed."),
        (lambda prompt: "hm", None, "Judge qwen (mine): none of 30 probes could be read; not to be believed."),
    ],
)
def test_a_judge_is_asked_once_and_said_not_to_be_believed_where_it_guesses(
    reply: Any, kappa: float | None, sentence: str, tools: Tools
) -> None:
    with ChatServer(reply=reply) as server:
        of = job(judge(server), tools, [5, 4], probes=True)
        [needs] = JudgeTried().needs(of, pd.DataFrame())
        assert (len(needs), needs["known"].any()) == (30, False)
        found = JudgeTried().compute(of, {})
        calls = sum(server.calls.values())
        assert JudgeTried().compute(of, {}) is not None
        assert sum(server.calls.values()) == calls
    assert found is not None
    assert found.metrics.get("judge_probes_kappa") == (None if kappa is None else pytest.approx(kappa))
    assert found.metrics["judge_probes_read"] == (0 if kappa is None else 30)
    assert found.value[0]["judge_llm_calls"] == calls
    assert [line for line in found.value[1] if sentence in line] == found.value[1]
    assert found.record == {"about_the_judge": found.value[1]}


def test_without_probes_nobody_is_asked_and_alike_verdicts_and_word_rules_are_said(tools: Tools) -> None:
    found = JudgeTried().compute(job(LexicalJudge(), tools, [5] * 10), {})
    assert found is not None
    assert not found.metrics
    assert found.value[1] == [
        "Classes by word rules (judge=lexical), which understand nothing: choose judge=... for these answers.",
        "Every verdict of this job is 5.",
    ]
    for kind in ("service", "recorded"):
        found = JudgeTried().compute(job(LexicalJudge(), tools, [5, 4], kind=kind), {})
        assert found is not None
        assert len(found.value[1]) == 1
    few = JudgeTried().compute(job(LexicalJudge(), tools, [5] * 9, kind="embedded"), {})
    assert few is not None
    by_rules = "Answers and classes by word rules (llm=mine, judge=lexical): no LLM was asked."
    assert few.value[1] == [by_rules]
    alone = JudgeTried().compute(job(NoJudge(), tools, [], kind="embedded"), {})
    assert alone is not None
    assert alone.record == {"about_the_judge": ["Answers by word rules (llm=mine): no LLM was asked."]}
    assert JudgeTried().compute(job(LexicalJudge(), tools, [5], kind="none"), {}) is None


def test_the_word_rules_are_tried_for_nothing(tools: Tools) -> None:
    found = JudgeTried().compute(job(LexicalJudge(), tools, [5, 4], kind="embedded", probes=True), {})
    assert found is not None
    assert found.metrics["judge_probes_read"] == 30
    assert found.value[0]["judge_llm_calls"] == 0
    assert 0 < found.metrics["judge_probes_kappa"] < 1
