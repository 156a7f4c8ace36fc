"""A sweep of 5 retrievers x 5 budgets with the measures that ask an LLM: what is sent, and after kills."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from test_sweep import job_records, sweep_folders

from chat_server import ChatServer
from kills import check_kills, kill_and_read
from plugins.llm_measures.scripted_evaluator import answer_from_documents, kind_of, reply
from processes import ROOT, Command, clean_environment, until
from scripted_chat import unframed

MEASURES = ("faithfulness", "answer_relevancy", "answer_correctness", "context_recall", "noise_sensitivity")
TOPICS, CONCURRENCY = 6, 8


def scripted(prompt: str) -> str:
    if kind_of(prompt) != "other":
        return reply(prompt)
    return answer_from_documents(prompt) if "\nDocuments:\n" in prompt else "What is it?"


def started(folder: Path, server: ChatServer, *more: str) -> Command:
    return Command(
        folder, "-m", "retriever=bm25,sim,mmr,mlq,reo", "n_tokens=range(200,1200,200)",
        f"dataset.limit={TOPICS}", "chunker=none", "bootstrap=20", "llm=openai_compatible",
        "llm.chat.model=scripted", f"llm.chat.base_url={server.url}/v1", f"llm.concurrency={CONCURRENCY}",
        f"answers=[{','.join(MEASURES)}]", *more, environment=clean_environment(RAGAUGE_API_KEY="k"),
    )  # fmt: skip


def passages_of(record: dict) -> int:
    """How many passages stand in the contexts of a job, over its topics."""
    folder = Path(record["store"]) / "context" / record["entries"]["context"]
    rows = pd.read_parquet(folder / "prefixes.parquet")
    return int(rows.loc[rows["n_tokens"] == record["n_tokens"], "n_chunks"].sum())


def of_ragas(records: list[dict]) -> Counter[str]:
    """The requests that RAGAS sends for the samples of the jobs, by measure.

    A sample: faithfulness 2 (statements, verdicts), relevancy 3 (a question each), correctness 3 (statements
    of answer and of reference, classification), recall 1, noise 3 + 2 k (statements of both, verdicts of both
    in each of k passages, and of the answer's in the reference).
    """
    samples = len(records) * TOPICS
    counts = Counter(faithfulness=2, answer_relevancy=3, answer_correctness=3, context_recall=1)
    sent = Counter({name: n * samples for name, n in counts.items()})
    sent["noise_sensitivity"] = 3 * samples + 2 * sum(map(passages_of, records))
    return sent


def sent(prompts: list[str], topics: pd.DataFrame) -> Counter[str]:
    """Distinct requests by what they ask for; those for statements of references apart."""
    asked = zip(topics["query"], topics["answer"], strict=True)
    references = [f"\nQuestion: {query}\n\nAnswer: {answer}\n" for query, answer in asked]
    counts: Counter[str] = Counter()
    for prompt in prompts:
        of_reference = any(one in unframed(prompt) for one in references)
        counts[kind_of(prompt) + (" of references" if of_reference else "")] += 1
    return counts


@pytest.mark.slow
def test_killed_twice_a_sweep_sends_no_finished_request_again_and_each_thing_once(tmp_path: Path) -> None:
    lines = (ROOT / "src/ragauge/datasets/sample/questions.jsonl").read_text(encoding="utf-8").splitlines()
    topics = pd.DataFrame([json.loads(line) for line in lines[:TOPICS]])
    kills = []
    with ChatServer(scripted, delay=0.02) as server:
        for after in (60, 150):
            command = started(tmp_path, server)
            until(lambda n=after, c=command: sum(server.whole.values()) >= n or not c.runs, "requests")
            kills.append(kill_and_read(command, server, tmp_path))
        done = started(tmp_path, server).wait()
        assert done.returncode == 0, done.stderr
        # What was in flight at a kill may be sent again, and nothing whose reply was recorded by then.
        again = check_kills(server.log, kills, CONCURRENCY)
        assert again.recorded[0] < again.recorded[1]
        before = sum(server.calls.values())
        dry = started(tmp_path, server, "dry_run=true").wait()
        assert "answers.faithfulness: 0 calls" in dry.stdout, dry.stdout + dry.stderr
        assert sum(server.calls.values()) == before
    records = job_records(sweep_folders(tmp_path)[-2])
    assert len(records) == 25
    files = sorted(sweep_folders(tmp_path)[-2].glob("*/outcomes.parquet"))
    outcomes = pd.concat([pd.read_parquet(file) for file in files])
    answered = outcomes[outcomes["answer"].notna()]
    n_answers = len(answered.drop_duplicates(["qid", "answer"]))
    counts, theirs = sent(list(server.whole), topics), of_ragas(records)
    # Statements of references once a topic; RAGAS lists them in every sample, for three measures.
    assert counts["claims of references"] == TOPICS
    # Of answers as many as there are distinct ones; one that is its reference word for word is known by then.
    assert n_answers - TOPICS <= counts["claims"] <= n_answers
    assert counts["questions"] == answered["answer"].nunique()
    assert counts["match"] <= n_answers
    assert counts["verdicts"] <= len(records) * TOPICS  # at most one of a context, for claims of its answer
    # What supports the statements is asked once a topic and ranking, for recall and noise sensitivity.
    assert counts["ways"] + counts["claims of references"] <= 0.2 * theirs["context_recall"]
    ours = counts.total() - counts["other"]
    print(f"\nsent {dict(counts)}, {n_answers} distinct answers, again {again}; RAGAS {dict(theirs)}")
    assert ours <= 0.1 * theirs.total()
    for name in ("faithfulness", "answer_correctness", "context_recall", "noise_sensitivity_relevant"):
        assert outcomes[name].notna().any(), name
    report = next((tmp_path / "mlruns").rglob("report.html")).read_text(encoding="utf-8")
    assert "claims that the context contradicts" in report
    assert "What faithfulness rests on" in report
