"""Rewriters in whole jobs: who is asked how often, what is logged, and what stands in the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering import ChatGenerator, NoLLM
from ragauge.answering.judges import LexicalJudge, NoJudge
from ragauge.contract.errors import ConfigError, DataError
from ragauge.experiment.dry_run import needs
from ragauge.experiment.need_sums import added_up
from ragauge.experiment.stages.checks import check_together
from ragauge.findings.per_question import per_question
from ragauge.findings.rankings import rewriting
from ragauge.plugins.rewriting.hyde import HyDE
from ragauge.plugins.rewriting.multi_query import Decompose, MultiQuery, RagFusion
from ragauge.plugins.rewriting.prf import PRF
from ragauge.plugins.rewriting.recorded import Recorded
from ragauge.retrieval.retrievers import BM25, MLQ, Hybrid, NoRetrieval, RecordedRetrieval, Sim
from small_pipeline import SmallPipelines

PRICE = {"prompt": 1.0, "completion": 2.0}
BY_LLM = [MultiQuery(), RagFusion(), HyDE(), HyDE(n_passages=2), Decompose()]


def asked_by_name(prompt: str) -> str:
    """An answer to questions with documents; else two lines that are queries, or passages, of three words."""
    return "Anna" if "Documents" in prompt or "documents" in prompt else "tower of Anna\n---\nbridge in Linz"


def chat(server: ChatServer) -> ChatGenerator:
    model = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
    return ChatGenerator(chat=model, backoff=0.01, retries=0, price=PRICE)


def rewriting_calls(server: ChatServer) -> int:
    return sum(n for prompt, n in server.calls.items() if asked_by_name(prompt) != "Anna")


@pytest.mark.parametrize("rewriter", BY_LLM, ids=lambda r: f"{r.component}{getattr(r, 'n_passages', '')}")
def test_one_request_a_topic_serves_all_retrievers_and_budgets(small: SmallPipelines, rewriter: Any) -> None:
    with ChatServer(reply=asked_by_name) as server:
        parts = {"llm": chat(server), "judge": LexicalJudge(), "rewriter": rewriter}
        for n, (retriever, n_tokens) in enumerate([(Sim(top_k=3), 8), (BM25(top_k=3), 8), (Sim(top_k=2), 4)]):
            job = small(**parts, retriever=retriever, n_tokens=n_tokens)
            quoted = added_up(needs(job)).get("rewriter", {})
            if n == 0:
                assert (quoted["calls"], quoted["calls_guessed"]) == (3, 0)
                assert quoted["cost_usd"] > 0
                assert rewriting_calls(server) == 0
            else:
                assert not quoted
            job = small(**parts, retriever=retriever, n_tokens=n_tokens)
            assert len(job.contexts) == len(job.frame("query_checks")) == 3
            assert rewriting_calls(server) == 3
            assert ("queries" in job.made) == (n == 0)
            assert job.shared_chat is not None
            assert job.shared_chat.replies("rewriter")["calls"].sum() == (3 if n == 0 else 0)
        again = small(**parts)
        assert len(again.frame("query_checks")) == 3
        assert again.made == []


def test_a_topic_whose_rewrite_failed_is_asked_for_again_and_the_others_are_not(
    small: SmallPipelines,
) -> None:
    with ChatServer(reply=asked_by_name, faults=lambda p, n: "500" if "bridge?" in p else None) as server:
        parts = {"llm": chat(server), "rewriter": MultiQuery()}
        first = small(**parts)
        checks = first.frame("query_checks")
        assert checks["failed"].tolist() == [False, True, False]
        assert rewriting(checks)["rewriter_failed"] == 1
        plain = small(llm=chat(server)).frame("run")
        for run in (first.frame("run"), plain):
            assert len(run[run["qid"] == "q2"]) == 3
        docnos = [run.loc[run["qid"] == "q2", "docno"].tolist() for run in (first.frame("run"), plain)]
        assert docnos[0] == docnos[1]
        server.faults = lambda prompt, n: None
        before = rewriting_calls(server)
        rerun = small(**parts)
        assert not rerun.frame("query_checks")["failed"].any()
        assert rewriting_calls(server) == before + 1
        assert small(**parts).frame("queries")["origin"].ne("failed").all()
        assert rewriting_calls(server) == before + 1


def test_nobody_is_asked_where_nothing_is_retrieved(small: SmallPipelines) -> None:
    with ChatServer(reply=asked_by_name) as server:
        job = small(llm=chat(server), rewriter=HyDE(), retriever=NoRetrieval())
        assert job.contexts["text"].eq("").all()
        assert not job.rewritten
        assert sum(server.calls.values()) == 0


def test_the_queries_stand_in_the_run_s_table(small: SmallPipelines) -> None:
    job = small(rewriter=MultiQuery(queries="rules"))
    table = per_question(job, job.outcomes.assign(llm="x"))
    texts = dict(zip(table["qid"], table["queries"], strict=True))
    assert texts["q1"] == "Who built the tower?\nbuilt tower"
    assert "queries" not in per_question(small(), small().outcomes)
    fed = small(rewriter=PRF(fb_docs=1, fb_terms=1), retriever=BM25(top_k=3))
    table = per_question(fed, fed.outcomes)
    # The question, and a word; the passages are for dense retrievers.
    assert table["queries"].str.count("\n").tolist() == [1, 1, 1]
    assert table["queries"].str.contains(r"\n\w+\^0\.5$").all()


def test_what_is_logged_of_the_queries(small: SmallPipelines) -> None:
    job = small(rewriter=MultiQuery(queries="rules"))
    found = rewriting(job.frame("query_checks"))
    assert set(found) == {"rewriter_failed", "rewriter_similarity", "rewriter_new_hits"}
    assert found["rewriter_failed"] == 0
    assert 0 < found["rewriter_similarity"] < 1
    assert 0 <= found["rewriter_new_hits"] <= 1
    # Words for BM25 alone have no vector that says something.
    words = small(rewriter=PRF(), retriever=BM25(top_k=3))
    assert set(rewriting(words.frame("query_checks"))) == {"rewriter_failed", "rewriter_new_hits"}


def test_another_file_under_the_same_path_is_another_stage(small: SmallPipelines, tmp_path: Path) -> None:
    file = tmp_path / "passages.jsonl"

    def run() -> tuple[list[str], pd.DataFrame]:
        job = small(rewriter=Recorded(path=file, with_question=False), retriever=BM25(top_k=3))
        return job.frame("run")["docno"].tolist(), job.frame("query_checks")

    def write(q1: str) -> None:
        lines = [{"qid": "q1", "passage": q1}, {"qid": "q2", "passage": "water"}]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    write("stone bridge")
    first, checks = run()
    assert checks["failed"].tolist() == [False, False, True]
    write("cold snow")
    second, _ = run()
    assert first != second
    write("stone bridge")
    assert run()[0] == first


def test_a_rewriter_of_vectors_and_words_is_refused_by_a_retriever_of_texts(small: SmallPipelines) -> None:
    class OfTexts(Sim):
        space = "text"

    with pytest.raises(DataError, match=r"OfTexts: .* for dense and lexical retrievers, this one is text"):
        small(rewriter=PRF(), retriever=OfTexts(top_k=3)).frame("run")


@pytest.mark.parametrize("rewriter", [HyDE(), RagFusion(), MultiQuery(queries="llm"), Decompose(queries="llm")])
def test_without_a_chat_model_those_that_need_one_say_which_do_not(small: SmallPipelines, rewriter: Any) -> None:
    choices = {"rewriter": rewriter.component, "llm": "none", "retriever": "sim"}
    parts = {"llm": NoLLM(), "judge": NoJudge()}
    with pytest.raises(ConfigError) as told:
        check_together(small.components(rewriter=rewriter, **parts), choices)
    assert f"rewriter={rewriter.component} asks a chat model, and llm=none is none" in str(told.value)
    assert "or a rewriter that asks none" in str(told.value)
    assert "\n" not in str(told.value)
    for other in (MultiQuery(), Decompose(), PRF(), Recorded(path="x")):
        check_together(small.components(rewriter=other, **parts), choices)


@pytest.mark.parametrize(
    ("name", "retriever"),
    [
        ("mlq", MLQ()),
        ("recorded", RecordedRetrieval(path="x")),
        ("hybrid", Hybrid(arms=["sim", "run"], options={"sim": Sim(), "run": RecordedRetrieval(path="x")})),
    ],
)
def test_a_retriever_that_takes_no_queries_takes_no_rewriter(name: str, retriever: Any, small: SmallPipelines) -> None:
    parts = small.components(rewriter=PRF(), retriever=retriever)
    told = f"retriever={name} takes no queries of a rewriter: with rewriter=prf choose another"
    with pytest.raises(ConfigError, match=told):
        check_together(parts, {"retriever": name, "rewriter": "prf"})
