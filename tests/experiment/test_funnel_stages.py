"""The steps of the funnel in a job: what each holds by hand, and which jobs share it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from dropping import Dropping
from keeping import Keeping
from ragauge.answering import NoLLM
from ragauge.answering.judges import NoJudge
from ragauge.contract.errors import ConfigError
from ragauge.diagnose.failures import check_rules
from ragauge.diagnose.funnel import funnel, funnel_metrics
from ragauge.findings.failures import with_failures
from ragauge.findings.funnel import FunnelFound, evidence_parts
from ragauge.measures import Substring
from ragauge.retrieval.retrievers import NoRetrieval, Oracle, Sim
from small_pipeline import DOCS, SmallPipelines, replaced
from whole import Whole

PART = "Anna built the tower. It stands high"  # of d1: the first chunk has six words of it
SIX = "Anna built the tower. It"  # the first chunk of d1, in which the mark is a word


def trail_of(small: SmallPipelines, **parts: Any) -> pd.Series:
    """The evidence of q1, a sentence and a half, along a pipeline."""
    evidence = [{"docno": "d1", "text": PART}]
    topics = ({"qid": "q1", "query": "Who built the tower?", "answer": "Anna", "evidence": evidence},)
    found = evidence_parts(small(topics=topics, **parts))
    assert found is not None
    assert len(found) == 1
    return found.iloc[0]


def as_job(pipeline: Any) -> Any:
    return SimpleNamespace(pipeline=pipeline)


def funnel_of_job(pipeline: Any) -> Mapping[str, float]:
    return FunnelFound().compute(as_job(pipeline), {}).metrics


def test_every_step_by_hand(small: SmallPipelines) -> None:
    half = len(SIX) / len(PART)
    one = trail_of(small, retriever=Sim(top_k=1), n_tokens=16)
    assert one["corpus"] == 1
    assert one["best_chunk"] == pytest.approx(half)
    assert one["candidates"] == pytest.approx(half)
    assert one["context"] == pytest.approx(half)
    assert set(one.index) == {"qid", "part", "corpus", "best_chunk", "candidates", "context"}


def test_an_expander_puts_back_what_the_chunker_cut(small: SmallPipelines) -> None:
    parts = {"retriever": Sim(top_k=1), "expander": Whole(), "n_tokens": 6}
    one = trail_of(small, **parts)
    assert one["candidates"] < 0.9
    assert one["expanded"] == 1
    assert one["context"] < 0.9  # six tokens of it
    both = trail_of(small, **parts | {"compressor": Keeping(), "n_tokens": 16})
    assert both["expanded"] == 1
    assert both["compressed"] == pytest.approx(len("Anna built the tower.") / len(PART))
    assert both["context"] == both["compressed"]
    assert list(both.index).index("expanded") < list(both.index).index("compressed")


def test_the_run_before_reranking_is_followed_apart_from_the_one_after(small: SmallPipelines) -> None:
    one = trail_of(small, retriever=Sim(top_k=3), reranker=Dropping(1), n_tokens=6)
    assert one["candidates"] > 0.6
    assert one["reranked"] < 0.6
    assert one["context"] < 0.6
    assert one["unreranked"] == pytest.approx(len(SIX) / len(PART))


def test_the_budget_cuts_last(small: SmallPipelines) -> None:
    one = trail_of(small, retriever=Oracle(), n_tokens=3)
    assert one["candidates"] == 1
    assert one["context"] == pytest.approx(len("Anna built the") / len(PART))


def test_retrievers_and_budgets_share_corpus_and_best_chunk(small: SmallPipelines) -> None:
    source = small.source()
    made = []
    for retriever, n in ((Sim(top_k=2), 8), (Sim(top_k=2), 16), (Oracle(), 8)):
        job = small(dataset=source, retriever=retriever, n_tokens=n)
        assert evidence_parts(job) is not None
        made.append([name for name in job.made if name.startswith("funnel")])
    assert made == [["funnel_corpus", "funnel"], [], ["funnel"]]


def test_metrics_of_a_job_are_those_of_its_parts(small: SmallPipelines) -> None:
    job = small()
    parts = evidence_parts(job)
    assert parts is not None
    assert funnel_of_job(job) == pytest.approx(funnel_metrics(funnel(parts)), nan_ok=True)
    assert funnel_of_job(job)["funnel_context"] == pytest.approx(job.retrieved["ir_score"].mean())


def test_a_corrected_measure_is_followed_without_its_correction(small: SmallPipelines) -> None:
    plain, corrected = small(), small(measure=Substring(correct="floor"))
    assert funnel_of_job(corrected) == pytest.approx(funnel_of_job(plain), nan_ok=True)
    assert "corrected" in {stage.name for stage in corrected.stages}


class Asking(Substring):
    """A measure that says that it asks an LLM."""

    component: ClassVar[str] = "asking"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})


def test_a_measure_that_asks_an_llm_has_no_funnel(small: SmallPipelines) -> None:
    job = small(measure=Asking())
    assert not any(stage.name.startswith("funnel") for stage in job.stages)
    assert funnel_of_job(job) == {}
    (told,) = FunnelFound().show(as_job(job), None, {}).lines
    assert "there is no funnel" in told
    assert evidence_parts(job) is None
    assert "failure_cause" not in with_failures(job.outcomes, job, "causes")


def test_topics_without_evidence_have_no_funnel_and_say_so_as_a_cause(small: SmallPipelines) -> None:
    topics = ({"qid": "q1", "query": "Who built the tower?", "answer": "Anna", "evidence": []},)
    job = small(topics=topics, llm=Silent())
    assert funnel_of_job(job) == {}
    rows = with_failures(job.outcomes, job, "causes")
    assert rows["failure_cause"].tolist() == ["no evidence known"]
    assert rows["evidence_in_context"].isna().all()


class Silent(NoLLM):
    """Says that it does not know."""

    component: ClassVar[str] = "silent"
    kind: ClassVar[str] = "embedded"

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Any) -> pd.DataFrame:
        found = super().answer(topics, contexts, tools)
        return found.assign(answer="I do not know.", status="ok")


def test_without_an_llm_a_topic_fails_whose_evidence_is_lost(small: SmallPipelines) -> None:
    topics = replaced(DOCS, 0)  # documents stay
    job = small(docs=topics, llm=NoLLM(), judge=NoJudge(), retriever=Sim(top_k=1))
    rows = with_failures(job.outcomes, job, "causes").set_index("qid")
    lost = rows["evidence_in_context"] != "all"
    assert lost.any()
    assert rows["failure_cause"].notna().eq(lost).all()


def test_nothing_retrieved_is_not_retrieved(small: SmallPipelines) -> None:
    job = small(retriever=NoRetrieval(), n_tokens=0, n_grid=(0,), llm=Silent())
    parts = evidence_parts(job)
    assert parts is not None
    assert np.array_equal(parts[["candidates", "context"]].to_numpy(float), np.zeros((3, 2)))
    rows = with_failures(job.outcomes, job, "causes")
    assert set(rows["failure_cause"]) == {"not retrieved"}


def test_rules_are_refused_before_any_work() -> None:
    with pytest.raises(ConfigError, match="failures=rules looks at context_recall"):
        check_rules(["em", "f1"])
