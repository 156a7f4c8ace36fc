"""Topics sent one by one: slow parts show in their stage, no cache answers, and nothing is measured twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest
from test_pipeline import FakeChat

from chat_server import ChatServer
from patched import instead_of
from ragauge.answering import ChatGenerator, NoLLM
from ragauge.answering.judges import LexicalJudge
from ragauge.contract.component import Embedder, Role, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.replies import Reply
from ragauge.contract.retrieval import Rewriter
from ragauge.contract.settings import Settings
from ragauge.contract.usage import Usage, usage_columns
from ragauge.experiment.dry_run import needs
from ragauge.experiment.need_sums import added_up
from ragauge.findings.cost import costs_of_parts
from ragauge.llms.ledger import open_ledger
from ragauge.plugins.latency import finding as room
from ragauge.plugins.latency import measured as module
from ragauge.plugins.latency.measured import latency, needs_of_latency
from ragauge.retrieval.retrievers import BM25, Sim
from ragauge.retrieval.searching import queries_frame
from small_pipeline import TOPICS, SmallPipelines

PRICE = {"prompt": 1.0, "completion": 2.0}


@dataclass(frozen=True)
class SlowRewriter(Rewriter):
    """Asks the chat model once a topic, and takes its time."""

    kind: ClassVar[str] = "slow"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})
    feedback: ClassVar[bool] = False
    needs_chat: ClassVar[bool] = True

    union: Literal["rrf", "first_seen"] = "rrf"
    rrf_constant: float = 60.0
    clock: Any = runtime(None)

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        if self.clock:
            self.clock.pass_by(REWRITING, topics["qid"])
        assert tools.chat is not None
        tools.chat.ask([f"rewrite {query}" for query in topics["query"]], tools.store, "queries")
        rows = [
            {"qid": qid, "search": 0, "query": query, "origin": "slow"}
            for qid, query in zip(topics["qid"], topics["query"], strict=True)
        ]
        return queries_frame(rows)


@dataclass(frozen=True)
class CountingEmbedder(Embedder):
    """Keeps the texts that it was asked for."""

    inner: Any
    asked: list[str] = runtime(None)

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        self.asked.extend(texts)
        vectors: np.ndarray = self.inner.embed(texts, role, scratch)
        return vectors


@dataclass(frozen=True)
class SlowSim(Sim):
    """Takes its time to load its index, and counts how often that was."""

    loaded: list[str] = runtime(None)

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        self.loaded.append(folder.name)
        return super().transformer(chunks, folder, tools)


# Seconds that a rewriter and a model take for each topic; q4 has no answer, and q5 is the question of q1.
REWRITING = {"q1": 1.0, "q2": 2.0, "q3": 4.0, "q4": 8.0, "q5": 16.0, "q6": 32.0}
ANSWERING = {"q1": 0.5, "q2": 0.25, "q3": 64.0, "q4": 1.0, "q5": 1.0, "q6": 128.0}


@dataclass
class Clock:
    """A clock that stands still but for what components take."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, took: dict[str, float], qids: Sequence[str]) -> None:
        self.now += sum(took[qid] for qid in qids)


@dataclass(frozen=True)
class TimedChat(FakeChat):
    clock: Any = runtime(None)

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        self.clock.pass_by(ANSWERING, contexts["qid"])
        return super().answer(topics, contexts, tools)


@pytest.mark.parametrize(("seed", "failed"), [(0, 1), (1, 0)])
def test_percentiles_are_those_of_topics_sent_one_by_one(
    seed: int, failed: int, small: SmallPipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", instead_of(time, perf_counter=clock))
    queries = ["first", "second", "third", "fourth", "first", "sixth"]
    topics = tuple({**TOPICS[i % 3], "qid": f"q{i + 1}", "query": query} for i, query in enumerate(queries))
    parts = {"judge": LexicalJudge(), "rewriter": SlowRewriter(clock=clock), "topics": topics}
    llm = TimedChat(asked=[], failing=("q4",), clock=clock)
    job = small(llm=llm, **parts)
    assert len(job.answers) == 6
    found = latency(job, 3, seed)
    # Four of the five questions are sent; the first loads what is used.
    sent = pd.Series(["q1", "q2", "q3", "q4", "q6"]).sample(4, random_state=seed).tolist()
    measured = [qid for qid in sent[1:] if qid != "q4"]
    assert (found["latency_topics"], found["latency_failed"]) == (3 - failed, failed) == (len(measured), failed)
    times = {"queries": REWRITING, "answers": ANSWERING}
    for name in ("queries", "rewritten", "context", "contexts", "answers", "total"):
        of = [sum(took[qid] for stage, took in times.items() if name in (stage, "total")) for qid in measured]
        ends = [found[f"latency_{name}_{end}"] for end in ("p50", "p95")]
        assert ends == pytest.approx([np.quantile(of, 0.5), np.quantile(of, 0.95)])
    # Each topic is rewritten and answered once, at half a dollar where there is a reply; tokens are told of answers.
    answered = 4 - ("q4" in sent)
    assert found["latency_llm_calls"] == answered
    assert found["latency_cost_usd"] == pytest.approx(0.5 * (4 + answered))
    assert job.seconds["latency"] == sum(REWRITING[qid] + ANSWERING[qid] for qid in sent)
    # What failed is measured again, everything else is kept.
    again = small(llm=llm, **parts)
    repeated = latency(again, 3, seed)
    assert ("latency" in again.made, repeated["latency_llm_calls"]) == (bool(failed), answered * failed)
    times = [name for name in found if name.endswith(("_p50", "_p95"))]
    assert [repeated[name] for name in times] == pytest.approx([found[name] for name in times])
    assert [name for name in again.store.used if name.startswith("latency/")] or failed


@dataclass(frozen=True)
class OnDevice(BM25):
    """Runs on a device that is no plain value."""

    device: ClassVar[Path] = Path("gpu")


def test_whatever_a_measurement_depends_on_measures_anew(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measures(n_topics: int = 2, seed: int = 0, **parts: Any) -> bool:
        job = small(**{"judge": LexicalJudge(), "retriever": BM25(threads=1), **parts})
        latency(job, n_topics, seed)
        return "latency" in job.made

    changes: list[dict[str, Any]] = [
        {}, {"n_topics": 1}, {"seed": 1}, {"retriever": BM25(threads=2)}, {"retriever": BM25(threads=1, k1=1.5)},
        {"retriever": OnDevice(threads=1)}, {"n_tokens": 4},
    ]  # fmt: skip
    assert [measures(**change) for change in changes] == [True] * len(changes)
    assert [measures(**change) for change in changes] == [False] * len(changes)
    assert not measures(judge=LexicalJudge(cover=1.0))  # a question waits for no verdict
    monkeypatch.setattr(module, "hardware", lambda: {"machine": "another", "processor": "p", "cores": 8})
    assert measures()


def test_no_vector_of_a_question_comes_from_a_cache(small: SmallPipelines) -> None:
    asked: list[str] = []
    small.embedder = CountingEmbedder(small.embedder, asked)
    job = small()
    assert job.outcomes["answer"].notna().all()
    asked.clear()
    latency(job, 2, seed=0)
    queries = job.frame("topics")["query"]
    # By the retriever and by the extractive answers, for the topic that loads as for those measured.
    assert [asked.count(query) for query in queries] == [2, 2, 2]
    # Those that the index holds are not computed anew.
    assert len(asked) < 3 * len(job.frame("chunks"))


def test_the_ledger_does_not_answer_and_holds_what_was_paid(small: SmallPipelines) -> None:
    with ChatServer() as server:
        chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
        llm = ChatGenerator(chat=chat, price=PRICE, retries=0, backoff=0.01)
        parts = {"llm": llm, "judge": LexicalJudge(), "rewriter": SlowRewriter()}
        job = small(**parts)
        assert job.answers["answer"].notna().all()
        assert sum(server.calls.values()) == 6
        asked = costs_of_parts(job)
        assert asked["rewriter_llm_calls"] == 3
        assert asked["rewriter_cost_usd"] > 0
        found = latency(job, 2, seed=0)
        assert sum(server.calls.values()) == 12
        assert found["latency_llm_calls"] == 6
        ledger = open_ledger(job.store.root / "ledger.db")
        spent = float(job.answers["cost_usd"].sum()) + asked["rewriter_cost_usd"] + found["latency_cost_usd"]
        assert ledger.spent(llm.budget_name) == pytest.approx(spent)
        # What came from the store costs nothing.
        again = small(**parts)
        assert again.answers["cost_usd"].sum() == 0
        assert set(costs_of_parts(again).values()) == {0}


@pytest.mark.parametrize(("owner", "way"), [("vllm", "cache_salt"), ("llamacpp", "a line of its own")])
def test_a_server_finds_nothing_of_a_prompt_computed(
    small: SmallPipelines, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, owner: str, way: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    with ChatServer(about={"/v1/models": {"data": [{"id": "m", "owned_by": owner}]}}) as server:
        chat = {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{server.url}/v1", "model": "m"}
        job = small(llm=ChatGenerator(chat={**chat, "extra_body": {"top_k": 7}}, retries=0), judge=LexicalJudge())
        with caplog.at_level("INFO"):
            latency(job, 2, seed=0)
            latency(job, 2, seed=0)  # from the store, which knows the way
    assert caplog.text.count(f"asked cold, by {way}") == 2
    assert {body["top_k"] for body in server.bodies} == {7}
    salts = {body.get("cache_salt") for body in server.bodies}
    first_lines = {body["messages"][-1]["content"].partition("\n")[0] for body in server.bodies}
    assert (len(salts), len(first_lines)) == ((3, 1) if owner == "vllm" else (1, 3))


def test_max_cost_usd_holds_for_the_measurement(small: SmallPipelines) -> None:
    with ChatServer() as server:
        chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
        limit = {"max_cost_usd": 1e-6, "price": {"prompt": 1e-9, "completion": 1e-9}, "budget": "held"}
        llm = ChatGenerator(chat=chat, retries=0, backoff=0.01, **limit)
        job = small(llm=llm, judge=LexicalJudge())
        assert job.answers["answer"].notna().all()
        dear = ChatGenerator(chat=chat, retries=0, backoff=0.01, **{**limit, "price": PRICE})
        settings = Settings(measure_latency=True, latency_topics=2)
        measured: Any = SimpleNamespace(pipeline=small(llm=dear, judge=LexicalJudge()), settings=settings, seed=0)
        # The job keeps its results, and says why it has no times.
        found = room.Latency().compute(measured, {})
        assert found is not None
        assert found.metrics == {}
        (told,) = room.Latency().show(measured, found.value, {}).notes
        assert "latency was not measured: max_cost_usd" in told
        assert sum(server.calls.values()) == 3


def test_the_index_is_loaded_once_and_the_retriever_stays_as_it_was(small: SmallPipelines) -> None:
    loaded: list[str] = []
    job = small(retriever=SlowSim(top_k=3, loaded=loaded))
    assert len(job.contexts) == 3
    before = len(loaded)
    latency(job, 2, seed=0)
    assert len(loaded) == before + 1
    assert "transformer" not in vars(job.components.retriever)


def test_without_an_llm_retrieval_is_measured(small: SmallPipelines) -> None:
    found = latency(small(llm=NoLLM(), judge=LexicalJudge()), 2, seed=0)
    assert found["latency_topics"] == 2
    assert found["latency_run_p50"] > 0
    assert "latency_llm_calls" not in found


def test_one_topic_cannot_be_measured(small: SmallPipelines, caplog: pytest.LogCaptureFixture) -> None:
    assert latency(small(topics=TOPICS[:1]), 5, seed=0) == {}
    assert "two topics" in caplog.text


def test_a_dry_run_counts_the_calls_of_the_measurement(small: SmallPipelines) -> None:
    llm = ChatGenerator(chat={"_target_": "nowhere.NoChatModel", "model": "none"}, price=PRICE)
    job = small(llm=llm, judge=LexicalJudge())
    told = added_up(needs(job, further=[partial(needs_of_latency, job, 1, 0)]))
    assert (told["llm"]["calls"], told["latency"]["calls"]) == (3, 2)
    assert told["latency"]["cost_usd"] > 0
    assert "latency" not in added_up(needs(small(llm=llm, judge=LexicalJudge())))
    job = small(llm=llm, judge=LexicalJudge(), rewriter=SlowRewriter())
    both = added_up(needs(job, further=[partial(needs_of_latency, job, 2, 0)]))
    assert both["latency, rewriter"] == {}


def test_a_reply_of_the_ledger_counts_at_its_price_in_what_a_topic_costs(small: SmallPipelines) -> None:
    def chat() -> FakeChat:
        return FakeChat(asked=[])

    first = small(llm=chat(), judge=LexicalJudge(), rewriter=SlowRewriter())
    assert first.answers["answer"].notna().all()
    again = small(llm=chat(), judge=LexicalJudge(), rewriter=SlowRewriter())
    assert again.answers["cost_usd"].sum() == 0
    for job in (first, again):
        assert job.making["queries"].cost_usd == pytest.approx(1.5)
        assert job.making["answers"].cost_usd == pytest.approx(1.5)
    assert again.making["queries"].seconds == first.making["queries"].seconds > 0


def test_full_cost_takes_cached_replies_at_the_models_price() -> None:
    from ragauge.findings.cost import full_cost

    llm = ChatGenerator(chat={"_target_": "nowhere.NoChatModel", "model": "none"}, price=PRICE)
    replies = [Reply("a", None, Usage(10, 5, 0.7)), Reply("b", None, Usage(1_000_000, 500_000), cached=True)]
    cached = [reply.cached for reply in replies]
    frame = pd.DataFrame({**usage_columns([reply.usage for reply in replies]), "cached": cached})
    assert full_cost(frame, llm) == pytest.approx(0.7 + 1.0 + 1.0)
    assert full_cost(frame, FakeChat(asked=[])) == pytest.approx(0.7)


def test_a_number_of_topics_out_of_its_range_is_refused_before_any_work() -> None:
    room.Latency().check(SimpleNamespace(latency_topics=10_000), [])
    with pytest.raises(ConfigError, match="latency_topics=0: allowed are 1 to 10,000 topics"):
        room.Latency().check(SimpleNamespace(latency_topics=0), [])


def test_a_job_outside_of_sweeps_says_how_long_a_question_takes() -> None:
    found = {"latency_total_p50": 0.5, "latency_total_p95": 2.0, "latency_topics": 5.0}
    for sweep, lines in ((None, ["latency of 5 questions: median 500 ms, 95th percentile 2.0 s"]), ("s", [])):
        job: Any = SimpleNamespace(record=SimpleNamespace(sweep_id=sweep))
        assert list(room.Latency().show(job, found, {}).lines) == lines
