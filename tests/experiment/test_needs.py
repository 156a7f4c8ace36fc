"""What a job would need of LLM and judge: counted from the real prompts, nobody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import pytest

from ragauge.answering.answers import ChatGenerator, Extractive, NoLLM
from ragauge.answering.judges import ChatJudge, LexicalJudge, Verdict, verdict_frame
from ragauge.contract.protocols import Tools
from ragauge.experiment import needs as needs_module
from ragauge.experiment.needs import describe_needs, needs, total
from ragauge.retrieval.retrievers import MLQ, NoRetrieval
from small_pipeline import SmallPipelines

# A class that LangChain has not got: importing it, let alone asking it, would be an error.
CHAT = {"_target_": "nowhere.NoChatModel", "model": "none"}
PRICE = {"prompt": 1.0, "completion": 2.0}


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request was counted by an earlier job."""
    monkeypatch.setattr(needs_module, "_seen", set())


def llm(**fields: Any) -> ChatGenerator:
    return ChatGenerator(chat=CHAT, **{"price": PRICE, "expected_tokens": 50, **fields})


def judge(**fields: Any) -> ChatJudge:
    return ChatJudge(chat=CHAT, **{"price": PRICE, "expected_tokens": 30, **fields})


def test_one_call_a_topic_for_llm_and_judge_with_tokens_and_money(small: SmallPipelines) -> None:
    job = small(llm=llm(), judge=judge())
    found = needs(job)
    assert set(found) == {"llm", "judge"}
    prompts = llm().prompts(job.frame("topics"), job.contexts)
    assert found["llm"]["calls"] == 3
    assert found["llm"]["calls_cached"] == 0
    assert found["llm"]["prompt_tokens"] == sum(-(-len(prompt) // 4) for prompt in prompts)
    assert found["llm"]["completion_tokens"] == 3 * 50
    assert found["judge"]["calls"] == 3
    assert found["judge"]["completion_tokens"] == 3 * 30
    for counts in found.values():
        cost = (counts["prompt_tokens"] + 2 * counts["completion_tokens"]) / 1e6
        assert counts["cost_usd"] == pytest.approx(cost)
    assert not {"answers", "verdicts"} & set(job.made)


@pytest.mark.parametrize(
    ("parts", "who"),
    [
        ({}, set()),
        ({"llm": NoLLM(), "judge": judge()}, set()),
        ({"llm": Extractive(), "judge": judge()}, {"judge"}),
        ({"llm": llm(), "judge": LexicalJudge()}, {"llm"}),
        ({"llm": llm(), "judge": LexicalJudge(), "retriever": MLQ(queries="rules")}, {"llm"}),
        ({"llm": llm(), "judge": LexicalJudge(), "retriever": MLQ()}, {"retriever", "llm"}),
        ({"llm": Extractive(), "retriever": MLQ()}, set()),
    ],
)
def test_only_those_count_who_would_be_asked(
    small: SmallPipelines, parts: dict[str, Any], who: set[str]
) -> None:
    assert set(needs(small(**parts))) == who


def test_where_the_retriever_asks_contexts_are_as_long_as_the_budget(small: SmallPipelines) -> None:
    job = small(llm=llm(), judge=LexicalJudge(), retriever=MLQ(), n_tokens=1000)
    found = needs(job)
    assert job.made == ["dataset"]
    assert found["retriever"]["calls"] == found["llm"]["calls"] == 3
    shortest = needs(small(llm=llm(), judge=LexicalJudge(), retriever=MLQ(), n_tokens=100))["llm"]
    assert found["llm"]["prompt_tokens"] - shortest["prompt_tokens"] == pytest.approx(3 * 900 * 5 / 4, abs=3)


def test_equal_requests_of_a_process_count_once(small: SmallPipelines) -> None:
    # Without documents the prompts are the same at every budget.
    jobs = [small(llm=llm(), judge=LexicalJudge(), retriever=NoRetrieval(), n_tokens=n) for n in (4, 8)]
    first, second = (needs(job)["llm"] for job in jobs)
    assert (first["calls"], first["calls_cached"]) == (3, 0)
    assert (second["calls"], second["calls_cached"], second["cost_usd"]) == (0, 3, 0)


@pytest.mark.parametrize("mode", ["single", "batch"])
def test_the_unknown_answers_of_every_job_are_judged(small: SmallPipelines, mode: Any) -> None:
    # In mode batch the jobs of a sweep share requests: what each needs alone adds up to more.
    who = "judge" if mode == "single" else "judge, at most"
    parts = {"llm": llm(), "judge": judge(mode=mode)}
    job = small(**parts, n_tokens=4)
    assert needs(job)[who]["calls"] == 3
    # Nothing holds on to a job that was counted: the next one may lie at the same place in memory.
    following = vars(small(**parts, n_tokens=8))
    vars(job).clear()
    vars(job).update(following)
    assert needs(job)[who]["calls"] == 3


def test_needs_add_up_by_who_asks() -> None:
    def counts(calls: int, cached: int, cost: float) -> dict[str, float]:
        return {
            "calls": calls,
            "calls_cached": cached,
            "prompt_tokens": 10 * calls,
            "completion_tokens": calls,
            "cost_usd": cost,
        }

    jobs = [{"llm": counts(3, 0, 0.5)}, {}, {"llm": counts(1, 2, 0.25), "judge": counts(4, 0, 1.0)}]
    assert total(jobs) == {"llm": counts(4, 2, 0.75), "judge": counts(4, 0, 1.0)}
    assert total([]) == {}


def test_needs_are_told_in_a_line() -> None:
    counts = {"calls": 1200, "calls_cached": 34, "prompt_tokens": 56789, "completion_tokens": 6000}
    assert describe_needs({"llm": {**counts, "cost_usd": 1.234}}) == (
        "llm: 1,200 calls (34 paid before), about 56,789 + 6,000 tokens, 1.23 USD"
    )
    two = describe_needs({"llm": {**counts, "cost_usd": 0}, "judge": {**counts, "cost_usd": 2}})
    assert [part.split(":")[0] for part in two.split("; ")] == ["llm", "judge"]
    assert describe_needs({}) == "no LLM calls"


@dataclass(frozen=True)
class OwnChatJudge:
    """A judge that asks a model by means of its own: no mode, no estimate, no description."""

    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    def judge(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        return verdict_frame(answers[["qid", "n_tokens"]], [Verdict(5) for _ in answers["qid"]])


def test_a_chat_judge_that_only_judges_is_told_in_words_and_runs(small: SmallPipelines) -> None:
    job = small(llm=llm(), judge=OwnChatJudge())
    found = needs(job)
    assert describe_needs(found).endswith("; judge: cannot tell before it is asked")
    assert total([found, found])["judge"] == {}
    assert total([found])["llm"]["calls"] == found["llm"]["calls"]
    assert small(llm=Extractive(), judge=OwnChatJudge()).verdicts["label"].tolist() == [5, 5, 5]
