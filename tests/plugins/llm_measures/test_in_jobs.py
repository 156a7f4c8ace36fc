"""Measures of citations, passages and nuggets in a job: what they need, lack, and send again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from answer_inputs import generator
from chat_server import ChatServer
from ragauge.answering import ChatGenerator, NoLLM
from ragauge.contract.errors import ConfigError, DataError
from ragauge.experiment.dry_run import needs
from ragauge.experiment.stages.checks import check_measures
from ragauge.measures.answers import ExactMatch
from ragauge.plugins.llm_measures.citations import Citations
from ragauge.plugins.llm_measures.context_precision import ContextPrecision
from ragauge.plugins.llm_measures.nuggets import NuggetRecall
from ragauge.retrieval.retrievers import NoRetrieval
from scripted_chat import unframed
from small_pipeline import SmallPipelines

BRIDGE = "Where is the bridge?"


def reply(prompt: str) -> str:
    """An answer that cites the first passage and one that is not there; a verdict."""
    if '"supported"' in prompt:
        return json.dumps({"reason": "so", "supported": True})
    return "Anna [1]. [9]"


def citing(server: ChatServer, **fields: Any) -> ChatGenerator:
    return generator(server.url, cite=True, **fields)


def test_the_marks_of_an_answer_are_measured_and_the_rest_of_it_as_an_answer(small: SmallPipelines) -> None:
    with ChatServer(reply) as server:
        job = small(llm=citing(server), answers={"citations": Citations(), "em": ExactMatch()})
        check_measures(job)
        asked = needs(job)
        rows = job.outcomes.set_index("qid")
    assert rows["em"]["q1"] == 1
    assert rows["citation_recall"]["q1"] == 1
    assert rows["citation_precision"]["q1"] == rows["citations_invented"]["q1"] == 1 / 2
    assert rows["uncited"]["q1"] == 0
    # What a dry run counts are the prompts that are sent.
    assert set(asked.query("who == 'llm'")["key"]) == set(needs(job).query("who == 'llm' and known")["key"])


def test_without_contexts_there_are_no_marks_and_no_citations(small: SmallPipelines) -> None:
    with ChatServer(reply) as server:
        job = small(llm=citing(server), retriever=NoRetrieval(), answers={"citations": Citations()})
        rows = job.outcomes
        assert not any("Passages" in prompt for prompt in server.whole)
    assert rows["answer"].tolist() == ["Anna."] * 3
    assert rows["citation_recall"].isna().all()


def test_what_citations_and_nuggets_lack_is_told_before_any_work(small: SmallPipelines, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^answers.citations measures citations, .* llm.cite=true"):
        check_measures(small(llm=generator(), answers={"citations": Citations()}))
    with pytest.raises(ConfigError, match=r"^answers.citations measures citations"):
        check_measures(small(answers={"citations": Citations(by="words")}))
    file = tmp_path / "nuggets.jsonl"
    file.write_text('{"qid": "q1", "nuggets": [{"text": "a", "importance": "high"}]}\n')
    with pytest.raises(DataError, match=r"nuggets.jsonl, line 1: nugget 1 has the importance 'high'"):
        check_measures(small(llm=generator(), answers={"nuggets": NuggetRecall(path=file)}))
    with pytest.raises(ConfigError, match=r"^answers.context_precision asks an LLM"):
        check_measures(small(answers={"context_precision": ContextPrecision()}))


def test_other_nuggets_in_the_file_are_another_result(small: SmallPipelines, tmp_path: Path) -> None:
    file = tmp_path / "nuggets.jsonl"

    def scores(importance: str) -> list[float]:
        row = {"qid": "q1", "nuggets": [{"text": "Anna", "importance": importance}]}
        file.write_text(json.dumps(row) + "\n")
        job = small(llm=generator(server.url), answers={"nuggets": NuggetRecall(path=file)})
        return job.outcomes["nuggets_strict_vital"].tolist()

    with ChatServer(lambda prompt: '{"1": "support"}' if "Nuggets, each" in prompt else "Anna.") as server:
        assert pd.isna(scores("okay")[0])
        assert scores("vital")[0] == 1
        assert len([prompt for prompt in server.whole if "Nuggets, each" in prompt]) == 1


def test_a_passage_whose_request_failed_is_missing_and_a_rerun_asks_for_it_alone(
    small: SmallPipelines,
) -> None:
    broken = True

    def fault(prompt: str, n: int) -> str | None:
        return "500" if broken and "You judge" in prompt and BRIDGE in prompt else None

    def said(prompt: str) -> str:
        return '{"useful": true}' if "You judge" in prompt else "An answer."

    with ChatServer(said, faults=fault) as server:
        measures = {"context_precision": ContextPrecision()}
        rows = small(llm=generator(server.url), answers=measures).outcomes.set_index("qid")
        assert rows["context_precision"].isna().to_dict() == {"q1": False, "q2": True, "q3": False}
        broken = False
        before = dict(server.whole)
        rows = small(llm=generator(server.url), answers=measures).outcomes.set_index("qid")
        assert rows["context_precision"].to_dict() == {"q1": 1, "q2": 1, "q3": 1}
        asked = {prompt for prompt, n in server.whole.items() if n > before.get(prompt, 0)}
        assert asked
        assert all(BRIDGE in prompt and "You judge" in prompt for prompt in asked)
        assert max(server.whole.values()) == 1


def test_an_evaluator_of_its_own_judges_passages_where_nobody_answers(small: SmallPipelines) -> None:
    with ChatServer(lambda prompt: '{"reason": "so", "useful": false}') as server:
        job = small(llm=NoLLM(), evaluator=generator(server.url), answers={"context_precision": ContextPrecision()})
        check_measures(job)
        assert job.outcomes["context_precision"].tolist() == [0, 0, 0]


def test_a_question_sent_alone_shows_its_passages_numbered_too(small: SmallPipelines) -> None:
    latency = pytest.importorskip("ragauge.plugins.latency.measured")
    with ChatServer(reply) as server:
        job = small(llm=citing(server), answers={"citations": Citations(by="words")})
        found = latency.latency(job, n_topics=2, seed=0)
        assert found["latency_failed"] == 0
        assert found["latency_llm_calls"] > 0
        assert all("\nPassages:\n[1] " in unframed(prompt) for prompt in server.whole)
