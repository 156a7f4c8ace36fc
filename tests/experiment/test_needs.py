"""What a job would need of LLM and judge: counted from the real prompts, nobody is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering import ChatGenerator, Extractive, NoLLM
from ragauge.answering.judges import ChatJudge, LexicalJudge, Verdict, verdict_frame
from ragauge.contract.answering import Generator, Judge
from ragauge.contract.component import ChatModel, Tools
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages, VariesContexts
from ragauge.contract.replies import Reply
from ragauge.experiment.dry_run import needs as requests_of
from ragauge.experiment.need_sums import added_up, describe_needs, gathered
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.measures.answers import ExactMatch
from ragauge.plugins.reranking.llm import ListwiseReranker
from ragauge.plugins.rewriting.multi_query import MultiQuery
from ragauge.retrieval.chunkers import SemanticChunker
from ragauge.retrieval.retrievers import MLQ, NoRetrieval
from ragauge.store.vectors import nothing_computed
from small_pipeline import DOCS, SmallPipelines

# A class that LangChain has not got: importing it, let alone asking it, would be an error.
CHAT = {"_target_": "nowhere.NoChatModel", "model": "none"}
PRICE = {"prompt": 1.0, "completion": 2.0}


def needs(job: Pipeline) -> dict[str, dict[str, float]]:
    return added_up(requests_of(job))


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


def test_a_dry_run_runs_no_embedder_and_counts_with_stand_ins(small: SmallPipelines) -> None:
    parts = {"llm": llm(), "judge": judge(), "chunker": SemanticChunker(breakpoint_percentile=95, max_tokens=None)}
    docs = [
        *DOCS,
        {"docno": "d9", "text": " ".join(f"Sentence number {i} stands here, and is long." for i in range(9))},
    ]
    with nothing_computed():
        job = small(docs=docs, **parts)
        found = needs(job)
    assert {who: (counts["calls"], counts["calls_guessed"]) for who, counts in found.items()} == {
        "llm": (3, 3), "judge": (3, 3),
    }  # fmt: skip
    assert [stage.label for stage in job.not_computed] == ["chunks"]
    with nothing_computed():
        assert needs(small(docs=docs, **parts, retriever=MLQ(top_k=3)))["retriever"]["calls"] == 3
        asked = needs(small(docs=docs, **parts, rewriter=MultiQuery(), reranker=ListwiseReranker(depth=3)))
    assert (asked["rewriter"]["calls"], asked["reranker"]) == (3, {})
    assert not (job.store.root / "vectors").exists()
    small(docs=docs, **parts).frame("contexts")
    with nothing_computed():
        job = small(docs=docs, **parts)
        assert needs(job)["llm"]["calls_guessed"] == 0


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
def test_only_those_count_who_would_be_asked(small: SmallPipelines, parts: dict[str, Any], who: set[str]) -> None:
    assert set(needs(small(**parts))) == who


def test_where_the_retriever_asks_contexts_are_as_long_as_the_budget(small: SmallPipelines) -> None:
    job = small(llm=llm(), judge=LexicalJudge(), retriever=MLQ(), n_tokens=1000)
    found = needs(job)
    assert job.made == ["dataset", "chunks", "index"]
    assert found["retriever"]["calls"] == found["llm"]["calls"] == 3
    assert (found["retriever"]["calls_guessed"], found["llm"]["calls_guessed"]) == (0, 3)
    shortest = needs(small(llm=llm(), judge=LexicalJudge(), retriever=MLQ(), n_tokens=100))["llm"]
    assert found["llm"]["prompt_tokens"] - shortest["prompt_tokens"] == pytest.approx(3 * 900 * 5 / 4, abs=3)


def test_equal_requests_of_several_jobs_count_once(small: SmallPipelines) -> None:
    # Without documents the prompts are the same at every budget.
    jobs = [small(llm=llm(), judge=LexicalJudge(), retriever=NoRetrieval(), n_tokens=n) for n in (4, 8)]
    assert [needs(job)["llm"]["calls"] for job in jobs] == [3, 3]
    both = added_up(gathered([requests_of(job) for job in jobs]))["llm"]
    assert (both["calls"], both["calls_cached"], both["calls_shared"]) == (3, 0, 3)


def test_what_several_jobs_share_was_paid_once(small: SmallPipelines) -> None:
    with ChatServer(reply=reply) as server:
        parts = {"llm": asking(server)["llm"], "judge": LexicalJudge(), "retriever": NoRetrieval()}
        small(**parts, n_tokens=4).frame("answers")
        assert sum(server.calls.values()) == 3
        both = added_up(gathered([requests_of(small(**parts, n_tokens=n)) for n in (4, 8)]))["llm"]
    assert (both["calls"], both["calls_cached"], both["calls_shared"], both["cost_usd"]) == (0, 3, 3, 0)


@pytest.mark.parametrize("mode", ["single", "batch"])
def test_the_unknown_answers_of_every_job_are_judged(small: SmallPipelines, mode: Any) -> None:
    parts = {"llm": llm(), "judge": judge(mode=mode)}
    jobs = [small(**parts, n_tokens=n) for n in (4, 8)]
    both = added_up(gathered([requests_of(job) for job in jobs]))["judge"]
    assert (both["calls"], both["calls_guessed"]) == (6, 6)
    assert gathered([]).empty
    assert added_up(gathered([])) == {}


# --- what is answered already ------------------------------------------------------------------------------


def reply(prompt: str) -> str:
    if "label" in prompt:
        return '{"label": 5, "reason": "so it is"}'
    return "5" if "one a line:" in prompt else f"Graz\nLinz and {len(prompt)}"


def asking(server: ChatServer, **fields: Any) -> dict[str, Any]:
    chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
    usual = {"chat": chat, "backoff": 0.01, "retries": 0, "price": PRICE}
    return {"llm": ChatGenerator(**usual), "judge": ChatJudge(**{**usual, **fields})}


def calls_needed(job: Pipeline) -> int:
    return sum(int(counts["calls"]) for counts in needs(job).values())


@pytest.mark.parametrize("mode", ["single", "batch"])
@pytest.mark.parametrize("retriever", [None, MLQ(top_k=3)], ids=["sim", "mlq"])
def test_a_finished_job_needs_nothing(small: SmallPipelines, mode: Any, retriever: Any) -> None:
    with ChatServer(reply=reply) as server:
        parts = asking(server, mode=mode) | ({"retriever": retriever} if retriever else {})
        assert calls_needed(small(**parts)) == (9 if retriever else 6)
        done = small(**parts)
        assert done.verdicts["label"].notna().all()
        calls = sum(server.calls.values())
        again = small(**parts)
        assert calls_needed(again) == 0
        assert all(counts["cost_usd"] == 0 for counts in needs(again).values())
        # The ledger may be gone, as long as the store holds what it was for.
        for file in again.store.root.glob("ledger.db*"):
            file.rename(file.with_name(f"gone-{file.name}"))
        elsewhere = {"ledger": str(again.store.root / "other.db")}
        parts |= {name: replace(parts[name], **elsewhere) for name in ("llm", "judge")}
        assert calls_needed(small(**parts)) == 0
        assert sum(server.calls.values()) == calls


@pytest.mark.parametrize("mode", ["single", "batch"])
@pytest.mark.parametrize("mlq", [False, True])
def test_a_half_finished_job_needs_exactly_what_the_rerun_then_asks(
    small: SmallPipelines, mode: Any, mlq: bool
) -> None:
    def failing(prompt: str, n: int) -> str | None:
        # Of the answers and verdicts those on the bridge are not there yet.
        queries = "one per line" in prompt.lower() or "search" in prompt.lower()
        return "500" if "bridge" in prompt.split("uestion")[-1] and not queries else None

    with ChatServer(reply=reply, faults=failing) as server:
        parts = asking(server, mode=mode) | ({"retriever": MLQ(top_k=3)} if mlq else {})
        first = small(**parts)
        assert first.verdicts["label"].notna().sum() < 3
        server.faults = lambda prompt, n: None
        found = needs(small(**parts))
        before = sum(server.calls.values())
        rerun = small(**parts)
        assert rerun.verdicts["label"].notna().all()
        asked = sum(server.calls.values()) - before
        assert 0 < asked == sum(counts["calls"] for counts in found.values())
        # The request for a verdict on an answer that is not there yet cannot be known.
        assert found["judge"]["calls_guessed"] == found["llm"]["calls"]


def test_calls_of_a_retriever_are_counted(small: SmallPipelines) -> None:
    with ChatServer(reply=reply) as server:
        parts = asking(server) | {"retriever": MLQ(top_k=3), "judge": LexicalJudge()}
        first, second = small(**parts), small(**parts)
        assert len(first.answers) == len(second.answers) == 3
        assert sum(server.calls.values()) == 6
    assert first.shared_chat is not None
    assert second.shared_chat is not None
    assert first.shared_chat.replies("retriever")["calls"].tolist() == [1, 1, 1]
    assert len(second.shared_chat.replies("retriever")) == 0


def test_needs_are_told_in_a_line() -> None:
    counts = {
        "calls": 1200,
        "calls_cached": 34,
        "calls_shared": 0,
        "calls_guessed": 0,
        "prompt_tokens": 56789,
        "completion_tokens": 6000,
    }
    assert describe_needs({"llm": {**counts, "cost_usd": 1.234}}) == (
        "llm: 1,200 calls (34 paid before), about 56,789 + 6,000 tokens, 1.23 USD"
    )
    two = describe_needs({"llm": {**counts, "cost_usd": 0}, "judge": {**counts, "cost_usd": 2}})
    assert [part.split(":")[0] for part in two.split("; ")] == ["llm", "judge"]
    guessed = describe_needs({"llm": {**counts, "calls_guessed": 12, "cost_usd": 0}})
    assert guessed.startswith("llm: 1,200 calls (34 paid before; 12 are estimates), about")
    shared = describe_needs({"llm": {**counts, "calls_shared": 56, "calls_guessed": 12, "cost_usd": 0}})
    assert "(34 paid before, 56 shared with others; 12 are estimates)" in shared
    assert describe_needs({"llm": {**counts, "cost_usd": 0}}).endswith("tokens, no price given")
    assert describe_needs({"llm": {**counts, "calls": 0, "cost_usd": 0}}).endswith(
        "tokens, 0.00 USD"
    )  # all paid before
    assert describe_needs({}) == "no LLM calls"


@dataclass(frozen=True)
class OwnChatJudge(Judge):
    """A judge that asks a model by means of its own: no mode, no estimate, no description."""

    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        return verdict_frame(answers[["qid", "n_tokens"]], [Verdict(5) for _ in answers["qid"]])


def test_a_chat_judge_that_only_judges_is_told_in_words_and_runs(small: SmallPipelines) -> None:
    job = small(llm=llm(), judge=OwnChatJudge())
    found = requests_of(job)
    assert describe_needs(added_up(found)).endswith("; judge: cannot tell before it is asked")
    assert added_up(gathered([found, found]))["judge"] == {}
    assert added_up(found)["llm"]["calls"] == 3
    assert small(llm=Extractive(), judge=OwnChatJudge()).verdicts["label"].tolist() == [5, 5, 5]


@dataclass(frozen=True)
class Echo(ChatModel, Generator):
    """A chat model of one's own that answers and tells nothing of what it answered before."""

    kind: ClassVar[str] = "chat"
    uses: ClassVar[tuple[str, ...]] = ()

    def ask(self, prompts: Sequence[str], store: Any, what: str, **how: Any) -> list[Reply]:
        raise AssertionError("a dry run asks nobody")

    def answer(self, topics: Any, contexts: Any, store: Any) -> Any:
        raise AssertionError("a dry run asks nobody")


def test_a_chat_model_that_does_not_say_what_it_replied_is_not_asked_by_a_dry_run(
    small: SmallPipelines,
) -> None:
    found = needs(small(llm=Echo(), judge=LexicalJudge(), retriever=MLQ(top_k=3)))
    assert found == {"retriever": {}, "llm": {}}  # who cannot say what asking would need


# --- what answer measures ask ------------------------------------------------------------------------------


@dataclass(frozen=True)
class AsksOfPassages(ExactMatch, MeasuresPassages):
    """Sends what stands of each passage in the longest context to the chat model."""

    uses = frozenset({"chat"})
    sees_longest: ClassVar[bool] = True
    info = AnswerMeasureInfo("asked", "asked")

    def measure_passages(
        self, topics: Any, evidence: Any, passages: pd.DataFrame, answers: pd.DataFrame, tools: Any
    ) -> pd.DataFrame:
        shown = zip(passages["text"], passages["longest"], strict=True)
        tools.chat.ask([text[:chars] for text, chars in shown], tools.store, "passages")
        return answers[["qid", "n_tokens"]].assign(measure="asked", value=1.0, status="ok")


def test_unknown_contexts_are_one_passage_as_long_as_the_budget(small: SmallPipelines) -> None:
    parts = {"llm": llm(), "judge": LexicalJudge(), "retriever": MLQ(), "answers": {"of": AsksOfPassages()}}
    found, shorter = (needs(small(**parts, n_tokens=n))["answers.of"] for n in (1000, 100))
    assert (found["calls"], found["calls_guessed"]) == (3, 3)
    assert found["prompt_tokens"] - shorter["prompt_tokens"] == pytest.approx(3 * 900 * 5 / 4, abs=3)


@dataclass(frozen=True)
class FromOneWord(ExactMatch, VariesContexts):
    """What the llm answers from one word; with `judged` the judge says what that is worth."""

    varies: ClassVar[Literal["ranking", "context"]] = "context"
    calls: ClassVar[str] = "word_"
    info = AnswerMeasureInfo("word", "word")

    judged: bool = False

    def vary(self, topics: pd.DataFrame, passages: Any, n_tokens: int, tools: Any) -> pd.DataFrame:
        return topics[["qid"]].assign(n_tokens=1, variant=0, text="tower")

    def measure_varied(self, *frames: Any) -> pd.DataFrame:
        raise AssertionError("a dry run measures no answers")


@pytest.mark.parametrize("judged", [False, True])
def test_answers_from_other_contexts_are_judged_where_their_measure_says_so(
    small: SmallPipelines, judged: bool
) -> None:
    found = needs(small(llm=llm(), judge=judge(), answers={"word": FromOneWord(judged=judged)}))
    of_measure = {"answers.word", *(["answers.word, judge"] if judged else [])}
    assert set(found) == {"llm", "judge", *of_measure}
    assert {found[who]["calls"] for who in of_measure} == {3}
