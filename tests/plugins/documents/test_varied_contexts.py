"""Measures for which the llm answers from other contexts: who is asked, how often, and what comes of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from chat_server import ChatServer
from processes import Command, clean_environment, until
from quoting import Quoting
from ragauge.answering import ChatGenerator, NoLLM, RecordedAnswers
from ragauge.answering.judges import LexicalJudge, NoJudge
from ragauge.contract.errors import ConfigError
from ragauge.experiment.dry_run import needs
from ragauge.experiment.need_sums import added_up
from ragauge.experiment.stages.checks import check_measures
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.answers import warnings_of
from ragauge.findings.cost import costs_of_parts
from ragauge.plugins.documents.alignment import alignment
from ragauge.plugins.documents.erag import ERag
from ragauge.retrieval.retrievers import BM25, MLQ, MMR, NoRetrieval, Reo, Sim
from small_pipeline import DOCS, TOPICS, SmallPipelines, own_values
from whole import Whole

PRICE = {"prompt": 1.0, "completion": 2.0}
BUDGETS = (2, 5, 8, 16)


def chat(server: ChatServer, **fields: Any) -> ChatGenerator:
    model = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "model": "m"}
    return ChatGenerator(chat=model, backoff=0.01, retries=0, price=PRICE, **fields)


def reads(prompt: str) -> str:
    """What the documents say, as far as it is asked for: an answer that depends on the context."""
    found = re.findall(r"Anna|Linz|Snow", prompt)
    return " ".join(found) or "I do not know."


def pairs_of(job: Pipeline, depth: int) -> set[tuple[str, str]]:
    """(qid, text) of what is to be asked, worked out from the run."""
    chunks = job.frame("chunks").set_index("docno")["text"]
    run = job.frame("run")
    cut = {}
    for text in chunks:
        tokens = job.components.tokenizer.offsets([text])[0]
        cut[text] = text if len(tokens) <= job.n_tokens else text[: int(tokens[job.n_tokens - 1, 1])]
    return {
        (qid, cut[chunks[docno]])
        for qid, docno, rank in zip(run["qid"], run["docno"], run["rank"], strict=True)
        if rank < depth
    }


def erag_values(job: Pipeline) -> pd.DataFrame:
    return own_values(job).pivot(index="qid", columns="measure", values="value")


def test_erag_equals_a_brute_force_twin_over_three_topics(small: SmallPipelines) -> None:
    job = small(answers={"erag": ERag(depth=3, measures=("P@1", "P@3", "RR"))}, llm=Quoting(threshold=0.3))
    found = erag_values(job)
    llm, run = job.components.llm, job.frame("run")
    chunks = job.frame("chunks").set_index("docno")["text"]
    topics = job.frame("topics")
    for qid, reference in zip(topics["qid"], topics["answer"], strict=True):
        ranked = run[run["qid"] == qid].sort_values("rank")["docno"].head(3)
        labels = []
        for docno in ranked:
            alone = pd.DataFrame({"qid": [qid], "n_tokens": [8], "text": [chunks[docno]]})
            answer = llm.answer(topics, alone, job.tools)["answer"].item()
            words = re.findall(r"\w+", answer.lower())
            labels.append(float(reference.lower() in words))
        first = [i for i, label in enumerate(labels, 1) if label]
        assert found.loc[qid].to_dict() == pytest.approx(
            {
                "erag_p_at_1": labels[0],
                "erag_p_at_3": sum(labels) / 3,
                "erag_rr": 1 / first[0] if first else 0,
            }
        )
    assert 0 < found.to_numpy().sum() < found.size  # neither all nor nothing


def test_one_answer_a_question_and_text_serves_all_retrievers_and_budgets(small: SmallPipelines) -> None:
    erag = ERag(depth=3, measures=("P@1", "RR"))
    retrievers = [Sim(top_k=3), BM25(top_k=3), MMR(top_k=3), BM25(top_k=2), Reo(top_k=3)]
    asked: set[str] = set()
    alone = 0
    with ChatServer(reply=reads) as server:
        for retriever in retrievers:
            for n_tokens in BUDGETS:
                before = len(server.calls)
                job = small(
                    answers={"erag": erag},
                    llm=chat(server),
                    retriever=retriever,
                    n_tokens=n_tokens,
                    n_grid=BUDGETS,
                )
                quoted = added_up(needs(job))
                assert len(server.calls) == before  # a dry run asks nobody
                own_values(job)
                pairs = pairs_of(job, 3)
                contexts = pd.DataFrame(sorted(pairs), columns=["qid", "text"]).assign(n_tokens=n_tokens)
                prompts = set(job.components.llm.prompts(job.frame("topics"), contexts))
                whole = set(job.components.llm.prompts(job.frame("topics"), job.contexts))
                assert quoted["answers.erag"]["calls"] == len(prompts - asked)
                paid = costs_of_parts(job)
                assert paid["erag_llm_calls"] <= len(prompts - asked)
                asked |= prompts | whole
                alone += paid["erag_llm_calls"]
        assert set(server.calls) == asked
        assert set(server.calls.values()) == {1}
        # Where a budget cuts no chunk, nothing is asked that another budget asked.
        assert alone < len(retrievers) * len(BUDGETS) * 3
        again = small(answers={"erag": erag}, llm=chat(server), retriever=retrievers[0], n_tokens=8, n_grid=BUDGETS)
        own_values(again)
        assert again.made == []
        assert costs_of_parts(again)["erag_llm_calls"] == 0
        assert costs_of_parts(again)["erag_cost_usd"] == 0
        assert added_up(needs(again))["answers.erag"]["calls"] == 0


def test_a_dry_run_counts_stand_ins_where_the_llm_decides_what_is_found(small: SmallPipelines) -> None:
    with ChatServer(reply=reads) as server:
        parts = {"llm": chat(server), "retriever": MLQ(top_k=3)}
        quoted = added_up(needs(small(answers={"erag": ERag(depth=2, measures=("P@1",))}, **parts)))
        assert (quoted["answers.erag"]["calls"], quoted["answers.erag"]["calls_guessed"]) == (6, 6)
        assert quoted["answers.erag"]["cost_usd"] > 0
        # How many passages stand in a context is not known before.
        assert added_up(needs(small(answers={"a": alignment(by="leave_one_out")}, **parts)))["answers.a"] == {}
        assert not server.calls


def test_a_failed_answer_from_one_text_is_missing_and_alone_asked_for_again(small: SmallPipelines) -> None:
    erag = ERag(depth=3, measures=("P@1",))
    with ChatServer(reply=reads) as server:
        parts = {"answers": {"erag": erag}, "llm": chat(server), "n_tokens": 16}
        first = small(**parts)
        alone = first.frame("erag_contexts")
        (lost,) = first.components.llm.prompts(first.frame("topics"), alone[alone["qid"] == "q2"].head(1))
        server.faults = lambda prompt, n: "500" if prompt == lost else None
        values = own_values(first).set_index("qid")
        assert values["status"].to_dict() == {"q1": "ok", "q2": "failed", "q3": "ok"}
        assert np.isnan(values.loc["q2", "value"])
        assert [prompt for prompt, n in server.whole.items() if n == 0] == [lost]
        before = dict(server.whole)
        server.faults = lambda prompt, n: None
        second = small(**parts)
        assert own_values(second)["value"].notna().all()
        assert dict(server.whole) == before | {lost: 1}


def test_the_judge_labels_what_is_answered_from_one_text(small: SmallPipelines) -> None:
    job = small(answers={"erag": ERag(depth=3, by="judge", measures=("P@3",))}, judge=LexicalJudge())
    values = own_values(job)
    assert values["value"].between(0, 1).all()
    labels = job.entry("varied_verdicts_erag").frame("varied_verdicts")
    topics = labels.groupby("qid")["label"].apply(lambda own: own.eq(5).sum() / 3)
    assert values.set_index("qid")["value"].to_dict() == pytest.approx(topics.to_dict())
    assert costs_of_parts(job)["erag_judge_llm_calls"] == 0


def test_what_an_expander_made_of_the_texts_is_what_stands_alone(small: SmallPipelines) -> None:
    job = small(answers={"erag": ERag(depth=1, measures=("P@1",))}, expander=Whole(), n_tokens=50)
    texts = job.frame("erag_contexts")["text"]
    assert set(texts) <= {row["text"] for row in DOCS}


# --- leaving one out -------------------------------------------------------------------------------------


def needs_both(prompt: str) -> str:
    """An answer that takes two passages, wherever they stand."""
    return "Anna of Linz" if "Anna" in prompt and "Linz" in prompt else "I do not know"


def test_leaving_one_out_finds_the_two_passages_that_an_answer_takes(small: SmallPipelines) -> None:
    with ChatServer(reply=needs_both) as server:
        parts = {
            "answers": {"alignment": alignment(by="leave_one_out")},
            "llm": chat(server),
            "retriever": Sim(top_k=8),
            "n_tokens": 60,
        }
        quoted = added_up(needs(small(**parts)))
        assert not server.calls
        job = small(**parts)
        values = own_values(job)
        passages = job.frame("used_passages")
        # An answer with all of a topic's k passages, and k without one of them.
        assert (
            sum(server.calls.values())
            == len(job.contexts) + len(passages)
            == quoted["llm"]["calls"] + (quoted["answers.alignment"]["calls"])
        )
        assert set(server.calls.values()) == {1}
        assert costs_of_parts(job)["alignment_llm_calls"] == len(passages)
        for qid, own in passages.groupby("qid"):
            text = values[(values["qid"] == qid) & values["detail"].notna()]["detail"].item()
            needed = [d for d, t in zip(own["docno"], own["text"], strict=True) if "Anna" in t or "Linz" in t]
            assert json.loads(text)["used"] == needed
            assert len(needed) == 2
            places = own.sort_values("rank")["docno"].tolist()
            at = values[(values["qid"] == qid) & (values["measure"] == "used_rank")]["value"].item()
            assert at == np.mean([places.index(docno) + 1 for docno in needed])
        own_values(small(**parts))
        assert set(server.calls.values()) == {1}


def test_all_three_ways_stand_in_whole_jobs_and_say_what_is_ignored(small: SmallPipelines) -> None:
    for by in ("words", "leave_one_out"):
        job = small(answers={"alignment": alignment(by=by)}, n_tokens=16)
        values = own_values(job)
        assert set(values["measure"]) == {info.name for info in alignment(by=by).infos}
        assert values.loc[values["status"] == "ok", "value"].notna().all()
    ranked_badly = values.assign(value=1.0)
    measures = {"alignment": alignment()}
    assert "100.0%" in str(warnings_of(ranked_badly, measures))
    assert warnings_of(ranked_badly.assign(value=0.0), measures) == []
    assert warnings_of(ranked_badly.assign(measure="em"), measures) == []
    with ChatServer(reply=lambda p: '{"used": [1]}' if "material to compare" in p else "Anna") as server:
        job = small(answers={"alignment": alignment(by="llm")}, llm=chat(server), n_tokens=16)
        values = own_values(job).pivot(index="qid", columns="measure", values="value")
        assert (values["used_rank"] == 1).all()
        assert (values["top_ranked_ignored_share"] == 0).all()


def test_both_measures_of_one_job_get_their_own_answers(small: SmallPipelines) -> None:
    both = {"erag": ERag(depth=2, measures=("P@2",)), "alignment": alignment(by="leave_one_out")}
    together = own_values(small(answers=both, n_tokens=16))
    for key, measure in both.items():
        alone = own_values(small(answers={key: measure}, n_tokens=16))
        own = together[together["measure"].isin(alone["measure"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, alone)


# --- whole sweeps ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_twice_a_sweep_sends_no_finished_request_again(
    tmp_path: Path,
) -> None:
    fields = ("chat.model=reads", "price={prompt: 1.0, completion: 2.0}", "concurrency=1", "backoff=0.01")

    def started(folder: Path, server: ChatServer) -> Command:
        return Command(
            folder, "-m", "llm=openai_compatible", *(f"llm.{field}" for field in fields),
            f"llm.chat.base_url={server.url}/v1", "judge=lexical", "chunker=none", "bootstrap=20",
            "dataset.limit=5", "retriever=bm25", "n_tokens=100,300", "answers=[erag,alignment]",
            "answers.erag.depth=4", "answers.erag.measures=[P@1,RR]", "answers.alignment.by=leave_one_out",
            environment=clean_environment(RAGAUGE_API_KEY="sk-planted-0123456789abcdef"),
        )  # fmt: skip

    def outcomes(folder: Path) -> pd.DataFrame:
        sweep = max((folder / "multirun").glob("*/*"))
        found = pd.concat([pd.read_parquet(file) for file in sorted(sweep.glob("*/outcomes.parquet"))])
        return found.sort_values(["n_tokens", "qid"]).reset_index(drop=True)

    def reply(prompt: str) -> str:
        return f"It is number {sum(map(ord, prompt)) % 7}."

    with ChatServer(reply, delay=0.1) as server:
        finished: set[str] = set()
        for stop_after in (12, 35):
            command = started(tmp_path, server)
            until(lambda n=stop_after, c=command: sum(server.calls.values()) >= n or not c.runs, "calls")
            assert command.runs
            command.kill()
            *before, _in_flight = server.bodies  # the last one may not have reached the ledger
            finished |= {body["messages"][-1]["content"] for body in before}
        done = started(tmp_path, server).wait()
        assert done.returncode == 0, done.stderr
        assert "answers rest on other passages than the top-ranked ones" in done.stderr + done.stdout
        sent = Counter(body["messages"][-1]["content"] for body in server.bodies)
        assert len(finished) >= 30
        assert sum(sent[prompt] - 1 for prompt in finished) <= 1  # in flight at the first kill
        assert sum(n - 1 for n in sent.values()) <= 2  # one a kill
        requests = len(sent)
    other = tmp_path / "other"
    other.mkdir()
    with ChatServer(reply) as server:
        done = started(other, server).wait()
        assert done.returncode == 0, done.stderr
        assert len(server.calls) == requests
        assert set(server.calls.values()) == {1}
    columns = ["qid", "n_tokens", "answer", "erag_p_at_1", "erag_rr", "top_ranked_ignored_share", "used_rank"]
    pd.testing.assert_frame_equal(outcomes(tmp_path)[columns], outcomes(other)[columns])
    (report,) = (tmp_path / "mlruns").rglob("report.html")
    page = report.read_text(encoding="utf-8")
    for told in (
        "Documents by their use",
        "What the answers rest on",
        "are ignored, more than 30%",
        "eRAG P@1",
    ):
        assert told in page
    assert "Answers from one text alone" in page  # among the costs


# --- what a job lacks ------------------------------------------------------------------------------------


def test_what_cannot_be_asked_is_told_before_any_work(small: SmallPipelines, tmp_path: Path) -> None:
    erag = {"erag": ERag()}
    check_measures(small(answers=erag))
    recorded = RecordedAnswers(path=tmp_path / "none.jsonl")
    for llm, told in ((NoLLM(), "gives no answers"), (recorded, "was asked before; no LLM is set up here")):
        with pytest.raises(ConfigError, match=rf"^answers.erag has the llm answer .* llm {told}$"):
            check_measures(small(answers=erag, llm=llm))
    with pytest.raises(ConfigError, match=r"^answers.alignment has the llm answer .* no LLM is set up here$"):
        check_measures(small(answers={"alignment": alignment(by="leave_one_out")}, llm=recorded))
    check_measures(small(answers={"alignment": alignment()}, llm=recorded))
    with pytest.raises(ConfigError, match=r"^answers.erag has the judge label answers, .* that are new$"):
        check_measures(small(answers={"erag": ERag(by="judge")}, judge=NoJudge()))
    with pytest.raises(ConfigError, match=r"^answers.erag measures contexts, and this job gives"):
        check_measures(small(answers=erag, retriever=NoRetrieval()))
    bare = tuple({"qid": row["qid"], "query": row["query"]} for row in TOPICS)
    with pytest.raises(ConfigError, match=r"^answers.erag compares with reference answers"):
        check_measures(small(answers=erag, topics=bare))


def test_a_baseline_without_contexts_in_a_sweep_scores_zero_or_has_no_context(small: SmallPipelines) -> None:
    both = {"erag": ERag(depth=2, measures=("P@2",)), "alignment": alignment(by="leave_one_out")}
    values = own_values(small(answers=both, retriever=NoRetrieval()))
    assert (values.loc[values["measure"] == "erag_p_at_2", "value"] == 0).all()
    assert (values.loc[values["measure"] != "erag_p_at_2", "status"] == "no context").all()
