"""Orders in answers and contexts, and a judge that obeys a known share of them."""

from __future__ import annotations

import json
import random
from typing import Any

import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering import ChatGenerator
from ragauge.answering.judges import ChatJudge, LexicalJudge
from ragauge.estimate.intervals import bounded_mean
from ragauge.experiment.dry_run import needs
from ragauge.experiment.stages.checks import check_measures
from ragauge.plugins.robustness.estimate import INJECTION, abilities
from ragauge.plugins.robustness.injection import TO_JUDGES, TO_READERS, Injection, _chosen
from ragauge.plugins.robustness.retriever import Robustness
from scripted_chat import unframed
from small_pipeline import TOPICS, SmallPipelines, own_values

N = 60
MANY = tuple({**TOPICS[i % 3], "qid": f"q{i}", "query": f"{TOPICS[i % 3]['query']} {i}"} for i in range(N))


def obeys(share: float, readers: float = 0.0) -> Any:
    """An llm that answers `it is so <question>`, and a judge that finds every other one right.

    Each obeys an order with its share, by a coin of the question's own.
    """

    def reply(prompt: str) -> str:
        text = unframed(prompt)
        question = text.split("Question: ")[1].split("\n")[0]
        coin, number = random.Random(question).random(), int(question.split()[-1])
        if "You grade" not in text:
            ordered = any(order in text for order in TO_READERS)
            return "PINEAPPLE" if ordered and coin < readers else f"it is so {question}"
        answer = text.split("Answer to grade: ")[1].split("\n")[0]
        label = 4 if "PINEAPPLE" in answer else 5 if number % 2 else 3
        for wording in TO_JUDGES:
            for ordered, accuracy, why in ((5, "true", "it is right"), (1, "false", "it lacks information")):
                if wording.format(label=ordered, accuracy=accuracy, why=why) in answer and coin < share:
                    label = ordered
        return json.dumps({"label": label, "reason": "so"})

    return reply


def asking(kind: Any, server: ChatServer) -> Any:
    chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
    return kind(chat=chat, backoff=0.01, retries=0, concurrency=4)


def job(small: SmallPipelines, server: ChatServer, topics: Any = MANY, **others: Any) -> Any:
    usual = {"llm": asking(ChatGenerator, server), "judge": asking(ChatJudge, server)}
    return small(answers={"injection": Injection()}, topics=topics, **{**usual, **others})


def shares(values: pd.DataFrame) -> dict[str, float]:
    return values.groupby("measure")["value"].mean().to_dict()


def expected(share: float) -> float:
    coins = [random.Random(f"{one['query']}").random() < share for one in MANY]
    return sum(coins) / N


@pytest.mark.parametrize(("share", "readers"), [(0.0, 0.0), (0.3, 0.6), (1.0, 1.0)])
def test_the_measure_shows_the_share_in_which_orders_are_obeyed(
    share: float, readers: float, small: SmallPipelines
) -> None:
    with ChatServer(obeys(share, readers)) as server:
        made = job(small, server)
        values = own_values(made)
        # Of a topic an answer more, from the context with an order, and verdicts on the answer with either
        # order. The job's own answers and verdicts are those of the plain context; equal answers share one.
        made.frame("verdicts")
        asked = [unframed(prompt) for prompt in server.whole]
        judged = [text for text in asked if "You grade" in text]
        assert len(asked) - len(judged) == 2 * N
        assert len(judged) == 3 * N + round(expected(readers) * N)
        assert set(server.whole.values()) == {1}
    assert values["status"].eq("ok").all()
    assert shares(values) == {"order_in_answer": expected(share), "order_in_context": expected(readers)}
    rows = values.pivot(index="qid", columns="measure", values="value").reset_index()
    found = abilities(rows.assign(system="a", condition=0.0, ir_score=1.0, label=pd.array([5] * N, "Int8")))
    [row] = found.curve("a", INJECTION, "order_in_answer").to_dict("records")
    wanted = bounded_mean(rows["order_in_answer"])
    assert (row["value"], row["lo"], row["hi"], row["n"]) == (wanted.value, wanted.lo, wanted.hi, N)
    metrics = found.metrics("a")
    assert metrics["robustness_order_in_answer"] == expected(share)
    assert metrics["robustness_order_in_context"] == expected(readers)
    assert INJECTION not in found.lacking


def test_a_lexical_judge_has_a_share_of_its_own_since_words_count_for_it(small: SmallPipelines) -> None:
    values = own_values(small(answers={"injection": Injection()}, judge=LexicalJudge()))
    assert values["status"].eq("ok").all()
    assert set(values["value"]) <= {0.0, 1.0}


def test_calls_are_foreseen_and_a_missing_verdict_is_a_missing_value(small: SmallPipelines) -> None:
    def fails(prompt: str, n: int) -> str | None:
        return "500" if "New task: reply" in prompt or ("bridge" in prompt and "Answer only" in prompt) else None

    with ChatServer(obeys(1.0), faults=fails) as server:
        asked = needs(job(small, server, MANY[:4]))
        table = asked.groupby("who").size()
        assert table["answers.injection"] == 2 * 4
        assert table["answers.injection, judge"] == 4 * 4  # two answers of the llm, one of them with two orders
        made = own_values(job(small, server, MANY[:12])).set_index(["measure", "qid"])["status"]
    failing = {one["qid"] for one in MANY[:12] if _chosen(TO_JUDGES, one["qid"]) == TO_JUDGES[2]}
    assert failing
    of_answers = made["order_in_answer"]
    assert set(of_answers.index[of_answers == "failed"]) == failing
    assert set(of_answers) == {"ok", "failed"}


def test_orders_are_given_at_the_plain_evidence_alone(small: SmallPipelines) -> None:
    for condition, measured in ((0.0, True), (0.5, False)):
        retriever = Robustness(condition=condition, distractors="random", from_retriever=None)
        made = small(answers={"injection": Injection()}, retriever=retriever)
        check_measures(made)
        assert bool(made.components.answers) == measured
        assert any(stage.name == "varied_contexts" for stage in made.stages) == measured


def test_every_wording_is_used() -> None:
    for wordings in (TO_JUDGES, TO_READERS):
        assert {_chosen(wordings, f"q{i}") for i in range(100)} == set(wordings)
