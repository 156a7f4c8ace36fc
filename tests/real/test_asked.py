"""Whatever ragauge asks LLMs for, asked of a real one: replies are read or counted, and echoes never become values.

SmolLM2 is too small to do most of it well, and these tests hold for any model.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragauge
from processes import Command, run, until
from ragauge.contract.errors import MissingError
from real_model import Call, listening, needs_the_model, smollm2, write_dataset

pytestmark = [pytest.mark.slow, needs_the_model]

MEASURES = (
    "faithfulness,answer_relevancy,answer_correctness,context_precision,context_recall,context_relevance,"
    "noise_sensitivity,nuggets,sufficient_context,citations,citation_support,evidence_support,criterion"
)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The overrides of a job over the short documents, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return write_dataset(tmp_path)


@pytest.fixture
def calls() -> Iterator[list[Call]]:
    """The replies of the model in this test; each has the server's counts of tokens."""
    with listening() as calls:
        yield calls
    assert calls
    assert all(call.prompt_tokens > 20 and call.completion_tokens > 0 for call in calls)


def are_verdicts(verdicts: pd.DataFrame) -> bool:
    """Whether each is a class from 1 to 5, or missing with a status that says so."""
    read = verdicts["label"].notna()
    return bool(
        verdicts["label"][read].between(1, 5).all()
        and (verdicts["status"][read] == "ok").all()
        and (verdicts["status"][~read] != "ok").all()
    )


def test_answers_with_citations_verdicts_and_every_measure(job: list[str], calls: list[Call]) -> None:
    asked = [*job, *smollm2("llm"), *smollm2("judge", "evaluator", tokens=48), "llm.cite=true", "dataset.limit=1"]
    asked += ["answers.criterion.text='names a person'", "answers.criterion.sees=[question,reference,answer]"]
    found = ragauge.run([*asked, f"answers=[{MEASURES}]", "measure=support"])
    (answer,) = found.answers.to_dict("records")
    said = next(call for call in calls if call.text == (answer["cited_answer"] or answer["answer"]))
    assert (answer["prompt_tokens"], answer["completion_tokens"]) == (said.prompt_tokens, said.completion_tokens)
    assert are_verdicts(found.verdicts)
    values = found.outcomes[[name for name in MEASURES.split(",") if name in found.outcomes]].iloc[0]
    assert ((values >= 0) & (values <= 1) | values.isna()).all()
    told = [call.text for call in calls if call.echo]
    assert not set(told) & {answer["answer"]}
    before = len(calls)
    again = ragauge.run([*asked, f"answers=[{MEASURES}]", "measure=support"])
    assert said.prompt not in {call.prompt for call in calls[before:]}  # the ledger has it
    pd.testing.assert_series_equal(again.answers["answer"], found.answers["answer"])


def test_without_documents_judged_in_batches_and_repeated(job: list[str], calls: list[Call]) -> None:
    alone = [*job, *smollm2("llm", tokens=16), "n_tokens=0"]
    found = ragauge.run([*alone, *smollm2("judge", tokens=16), "judge.mode=batch"])
    assert set(found.answers["status"]) <= {"ok", "cut", "missing"}
    assert are_verdicts(found.verdicts)
    before = len(calls)
    ragauge.run([*alone, "llm.chat.temperature=0.8", "llm.repeat=2", "judge=none", "dataset.limit=1"])
    assert len(calls) - before == 2


def test_a_question_rewritten_its_hits_reordered_and_compressed(job: list[str], calls: list[Call]) -> None:
    parts = ["rewriter=multi_query", "reranker=llm", "compressor=llm"]
    with contextlib.suppress(MissingError):  # of compressor=llm, where it can read no reply
        found = ragauge.run([*job, *smollm2("llm"), *parts, "judge=none", "dataset.limit=1"])
        assert len(found.contexts) == 1
        assert found.contexts["text"][0]
        echoes = {call.text for call in calls if call.echo}
        assert not echoes & set(found.answers["answer"].dropna())


def test_later_turns_of_a_conversation_are_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[Call]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = [f"dataset.{name}" for name in ("conversations=2", "turns=2", "towns=4")]
    small = ["dataset=conversations", *made, "chunker=none", "n_tokens=60", "n_grid=[60]", "bootstrap=20"]
    contextual = ["rewriter=contextual", "rewriter.by=llm", "judge=none", "max_missing_share=1"]
    found = ragauge.run([*small, *contextual, *smollm2("llm", tokens=24)])
    assert len(found.answers) == 4


def test_an_injected_instruction_is_counted(job: list[str], calls: list[Call]) -> None:
    found = ragauge.run([*job, *smollm2("llm", tokens=24), "answers=[injection]", "judge=none"])
    assert set(found.answers["status"]) <= {"ok", "cut", "missing"}


def test_questions_are_written_and_evidence_is_quoted(job: list[str], tmp_path: Path) -> None:
    documents, _topics = job[1], job[2]
    chosen = ["dataset=jsonl", documents, "chunker=none", "max_missing_share=1"]
    written = run(
        tmp_path, "synthesize", *chosen, *smollm2("llm", tokens=96), "n_questions=1", "out=questions.jsonl",
        "filters.round_trip=skip",
    )  # fmt: skip
    assert written.returncode in (0, 4), written.stderr
    assert "Traceback" not in written.stderr
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"qid": "a", "query": "Who built the red tower?"}\n')
    annotated = run(
        tmp_path, "annotate", *chosen, f"dataset.topics={bare}", *smollm2("evaluator", tokens=48), "pool=[bm25,sim]",
        "depth=1", "out=annotated.jsonl",
    )  # fmt: skip
    assert annotated.returncode in (0, 4), annotated.stderr
    assert "Traceback" not in annotated.stderr


def test_a_race_and_a_sample(job: list[str], calls: list[Call]) -> None:
    race = ["hydra/sweeper=race", "race.first=2", "race.batch=2", "race.measure=contains", "retriever=bm25,sim"]
    found = ragauge.sweep([*job, *smollm2("llm", tokens=16), "judge=none", *race])
    assert len(found.leaderboard) == 2
    sampled = ragauge.run([*job, *smollm2("llm", tokens=16), "judge=none", "dataset.limit=3", "llm.sample=2"])
    assert len(sampled.topics) == 3
    assert sampled.answers["answer"].notna().sum() <= 2


def test_a_killed_job_goes_on_with_what_it_had(job: list[str], tmp_path: Path) -> None:
    asked = [*job, *smollm2("llm", "judge", tokens=48), "llm.concurrency=1", "judge.concurrency=1"]
    killed = Command(tmp_path, *asked)
    until(lambda: _n_calls(tmp_path) >= 1, "a reply in the ledger", 240)
    killed.signal(signal.SIGKILL)
    before = _n_calls(tmp_path)
    with listening() as calls:
        found = ragauge.run(asked)
    assert before + len(calls) >= 4
    assert len(calls) <= 4 * 2 - before  # each is asked for twice at most
    assert len(found.answers) == 2


def _n_calls(folder: Path) -> int:
    """Finished calls in the folder's ledger."""
    import sqlite3

    file = folder / ".ragauge" / "ledger.db"
    if not file.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as ledger:
            found: Any = ledger.execute("select count(*) from calls").fetchone()[0]
    except sqlite3.OperationalError:  # it has no tables yet
        return 0
    return int(found)
