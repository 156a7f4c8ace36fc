"""Sweeps that ask a real server over HTTP: nothing paid twice, nothing lost, no key on disk."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_sweep import job_records, mlflow_runs, sweep_folders

import ragauge
from chat_server import QUICK_FAULTS, ChatServer, faults_at
from processes import Command, clean_environment, until
from ragauge.contract.metrics import without_groups
from ragauge.llms.ledger import open_ledger

KEY = "sk-planted-0123456789abcdef"
FAST = [
    "llm.backoff=0.01",
    "judge.backoff=0.01",
    "llm.timeout=60",
    "judge.timeout=60",
    "llm.retries=8",
    "judge.retries=8",
]


def reply(prompt: str) -> str:
    """Answers questions with a sentence, judges them by a digest of what they are shown."""
    numbered = re.findall(r"^\d+\. ", prompt, re.M)
    dice = random.Random(prompt)
    if "comma" in prompt and numbered:
        return ", ".join(str(dice.randint(1, 5)) for _ in numbered)
    if '"label"' in prompt or "label" in prompt:
        return json.dumps({"label": dice.randint(1, 5), "reason": "by dice"})
    return f"It is number {dice.randint(0, 9)}."


def started(folder: Path, server: ChatServer, *arguments: str) -> Command:
    """A sweep that asks the server."""
    values = ("chat.model=dice", f"chat.base_url={server.url}/v1", "price={prompt: 1.0, completion: 2.0}")
    chat = [f"{part}.{value}" for part in ("llm", "judge") for value in values]
    groups = ["llm=openai_compatible", "judge=openai_compatible", "chunker=none", "bootstrap=20"]
    environment = clean_environment(RAGAUGE_API_KEY=KEY)
    return Command(folder, "-m", *groups, *chat, *FAST, *arguments, environment=environment)


def sweep(folder: Path, server: ChatServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return started(folder, server, *arguments).wait()


def outcomes(folder: Path) -> pd.DataFrame:
    files = sorted(sweep_folders(folder)[-1].glob("*/outcomes.parquet"))
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)


@pytest.mark.slow
def test_with_thirty_percent_faults_every_request_succeeds_once_and_no_key_is_on_disk(tmp_path) -> None:
    with ChatServer(reply, faults_at(0.3, 1, QUICK_FAULTS)) as server:
        done = sweep(tmp_path, server, "retriever=bm25,none", "n_tokens=100,300", "dataset.limit=20")
    assert done.returncode == 0, done.stderr
    rows = outcomes(tmp_path)
    assert len(rows) == 80
    assert (rows["answer"].notna() | rows["answer_error"].notna()).all()
    assert (rows["label"].notna() | rows["judge_status"].ne("ok")).all()
    # Each request that succeeded did so once: none was paid for twice.
    assert set(server.whole.values()) == {1}
    assert sum(server.calls.values()) > sum(server.whole.values())
    paid = sum(
        r["metrics"][name] for r in job_records(sweep_folders(tmp_path)[0]) for name in ("llm_calls", "judge_llm_calls")
    )
    # Beside them, calls may have been charged that were cut, empty, too late or reset.
    assert sum(server.whole.values()) <= paid <= sum(server.calls.values())
    assert all(f"Bearer {KEY}" in headers.values() for headers in server.headers)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes(), file
    assert KEY not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_larger_sample_pays_for_its_new_topics_alone(tmp_path) -> None:
    arguments = ["retriever=bm25,sim", "n_tokens=100", "dataset.limit=30"]
    with ChatServer(reply) as server:
        asked = []
        for n in (8, 14):
            done = sweep(tmp_path, server, *arguments, f"llm.sample={n}")
            assert done.returncode == 0, done.stderr
            asked.append(Counter("label" in prompt for prompt in server.whole))
        rows = outcomes(tmp_path)
    # Equal contexts are one request, and equal answers one verdict.
    for kind in (False, True):
        assert 8 <= asked[0][kind] <= 16 < asked[1][kind] <= 28
    assert set(server.whole.values()) == {1}
    answered = rows[rows["answer"].notna()].groupby("retriever")["qid"].agg(frozenset)
    assert answered["bm25"] == answered["sim"]
    assert len(answered["sim"]) == 14
    assert len(rows) == 60
    assert rows["ir_score"].notna().all()
    for record in job_records(sweep_folders(tmp_path)[-1]):
        assert (record["metrics"]["judged_topics"], record["metrics"]["judged_of_topics"]) == (14, 30)
    calls = sum(record["metrics"]["llm_calls"] for record in job_records(sweep_folders(tmp_path)[-1]))
    assert calls == asked[1][False] - asked[0][False]


@pytest.mark.slow
def test_batch_mode_judges_all_jobs_at_the_end_and_writes_the_verdicts_back(tmp_path) -> None:
    arguments = [
        "retriever=bm25,none",
        "n_tokens=100,300",
        "dataset.limit=10",
        "judge.mode=batch",
        "judge.repeat=5",
    ]
    with ChatServer(reply) as server:
        done = sweep(tmp_path, server, *arguments)
        assert done.returncode == 0, done.stderr
        judged = [prompt for prompt in server.whole if re.search(r"^1\. ", prompt, re.M)]
        # One request a topic (the jobs without retrieval give equal answers), and those that are repeated:
        # in the same order, so the same prompt, and in another.
        assert 10 <= len(judged) <= 15
        requests = sum(server.whole[prompt] for prompt in judged)
        assert requests == 10 + 2 * (len(judged) - 10)
        before = sum(server.whole.values())
        (folder,) = sweep_folders(tmp_path)
        # What the answers cost stays on record when the verdicts come.
        assert sum(r["metrics"]["llm_calls"] for r in job_records(folder)) == before - requests
        # Each request is one job's, the repeated ones too.
        assert sum(r["metrics"]["judge_llm_calls"] for r in job_records(folder)) == requests
        made_by = Counter(open_ledger(tmp_path / ".ragauge" / "ledger.db").each(lambda call, at: call.job))
        assert made_by.pop(str(folder)) == requests  # for all jobs
        assert {Path(job).parent for job in made_by} == {folder}
        again = subprocess.run(
            [sys.executable, "-m", "ragauge", "pool", str(folder)],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
        )
        assert again.returncode == 0, again.stderr
        assert sum(server.whole.values()) == before
    records = job_records(folder)
    assert [r["status"] for r in records] == ["FINISHED"] * 4
    assert not any(r["deferred"] for r in records)
    assert outcomes(tmp_path)["label"].notna().all()
    _, jobs = mlflow_runs(tmp_path, "job")
    for job in jobs:
        assert job.info.status == "FINISHED"
        shares = [job.data.metrics[f"judge_share_{c}"] for c in (1, 2, 3, 4, 5, "missing")]
        assert sum(shares) == pytest.approx(1)
        found = without_groups(job.data.metrics)
        # The server's dice are those of the prompt: no noise, but another order is another prompt.
        assert found["judge_repeat_agreement"] == 1
        assert found["judge_reorder_agreement"] < 1
        assert found["judge_position_effect"] == pytest.approx(1 - found["judge_reorder_agreement"])
        assert found["judge_position_effect_lo"] <= found["judge_position_effect"]
        assert found["judge_repeat_pairs"] >= 2 * found["judge_repeat_topics"]
        # What the job used before its verdicts, and what was found by them.
        used = {name.split("/")[0] for name in json.loads(job.data.tags["ragauge.entries"])}
        assert used >= {
            "dataset",
            "chunks",
            "index",
            "run",
            "context",
            "scores",
            "classics",
            "answers",
            "findings",
        }


def needed(done: subprocess.CompletedProcess[str]) -> int:
    """The calls that a dry run of a sweep says would be made."""
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if " job(s) would need " in line]
    return sum(int(n.replace(",", "")) for n in re.findall(r": ([\d,]+) calls", line))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "batch"])
def test_the_dry_run_of_a_finished_sweep_needs_nothing_and_of_a_part_what_is_missing(tmp_path, mode) -> None:
    def arguments(retrievers: str, n_tokens: str) -> list[str]:
        judging = [f"judge.mode={mode}", "judge.repeat=3", "judge.probes=true"]
        return [f"retriever={retrievers}", f"n_tokens={n_tokens}", "dataset.limit=8", *judging]

    whole = arguments("bm25,mlq,none", "100,300")
    with ChatServer(reply) as server:
        # A part of the sweep is there, its llm has answered all; then the store loses answers and verdicts.
        planned = sweep(tmp_path, server, *arguments("bm25,mlq,none", "100"), "dry_run=true")
        done = sweep(tmp_path, server, *arguments("bm25,mlq,none", "100"))
        assert done.returncode == 0, done.stderr
        first = sum(server.calls.values())
        # One probe a request, or the two answers to a question together.
        probes = {"single": 30, "batch": 15}[mode]
        assert f"judge, probes: {probes} calls (0 paid before" in planned.stdout
        assert 15 * sum("lighthouse of Vestrand" in prompt for prompt in server.calls) == probes < first
        judge = r"Judge dice \(openai_compatible\): kappa .* on 30 probes; not to be believed\."
        assert re.search(judge, " ".join(done.stdout.split()))
        for role in ("job", "sweep"):
            for run in mlflow_runs(tmp_path, role)[1]:
                assert re.search(judge, run.data.tags["mlflow.note.content"])
        assert needed(sweep(tmp_path, server, *arguments("bm25,mlq,none", "100"), "dry_run=true")) == 0
        for stage in ("answers", "verdicts", "run"):
            shutil.rmtree(tmp_path / ".ragauge" / stage, ignore_errors=True)
        assert needed(sweep(tmp_path, server, *arguments("bm25,mlq,none", "100"), "dry_run=true")) == 0
        missing = needed(sweep(tmp_path, server, *whole, "dry_run=true"))
        assert sum(server.calls.values()) == first
        assert sweep(tmp_path, server, *whole).returncode == 0
        asked = sum(server.calls.values()) - first
        # Equal answers at both budgets would be judged once, which a dry run cannot know.
        assert 0 < asked <= missing
        assert needed(sweep(tmp_path, server, *whole, "dry_run=true")) == 0
        assert sum(server.calls.values()) == first + asked
        records = job_records(sweep_folders(tmp_path)[-2])
        counts = ("llm_calls", "judge_llm_calls", "retriever_llm_calls")
        assert sum(r["metrics"].get(name, 0) for r in records for name in counts) == asked
        # One answer a request has no order.
        for record in records:
            assert record["metrics"]["judge_repeat_agreement"] == 1
            assert ("judge_position_effect" in record["metrics"]) == (mode == "batch")


@pytest.mark.slow
def test_a_sweep_stops_before_it_spends_more_than_allowed_and_keeps_what_was_paid(tmp_path) -> None:
    arguments = ["retriever=none", "n_tokens=100", "dataset.limit=20"]
    with ChatServer(reply) as server:
        done = sweep(tmp_path, server, *arguments, "llm.max_cost_usd=0.002", "llm.concurrency=1")
        assert done.returncode == 3, done.stderr
        assert "max_cost_usd" in done.stderr
        answered = sum(server.whole.values())
        assert 0 < answered < 20
        done = sweep(tmp_path, server, *arguments)
        assert done.returncode == 0, done.stderr
        assert set(server.whole.values()) == {1}


@pytest.mark.slow
def test_killed_at_random_moments_a_sweep_repeats_no_finished_request(tmp_path) -> None:
    arguments = ["retriever=bm25,none", "n_tokens=100,300", "dataset.limit=10"]
    arguments += ["llm.concurrency=4", "judge.concurrency=4"]
    dice = random.Random(3)
    with ChatServer(reply, delay=0.15) as server:
        for _ in range(4):
            command = started(tmp_path, server, *arguments)
            stop_after = sum(server.calls.values()) + dice.randint(1, 15)
            until(lambda n=stop_after, c=command: sum(server.calls.values()) >= n or not c.runs, "calls")
            command.kill()
        done = sweep(tmp_path, server, *arguments)
        assert done.returncode == 0, done.stderr
        # A request may be sent again only if it was in flight at a kill: at most the concurrency, per kill.
        again = sum(n - 1 for n in server.whole.values())
        assert again <= 4 * 4
    killed = outcomes(tmp_path)
    with ChatServer(reply) as server:
        other = tmp_path / "other"
        other.mkdir()
        done = sweep(other, server, *arguments, "llm.ahead=false")
        assert done.returncode == 0, done.stderr
    # Nor do answers, verdicts and measures depend on which job asked.
    pd.testing.assert_frame_equal(killed, outcomes(other))


class RefusingServer(ChatServer):
    """A server that has every model but one."""

    def begin(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[str, str | None]:
        prompt, fault = super().begin(body, headers)
        return prompt, "401" if body["model"] == "refused" else fault


@pytest.mark.slow
def test_a_failing_group_of_shared_judging_leaves_the_others_their_verdicts(tmp_path) -> None:
    arguments = [
        "retriever=none", "n_tokens=100", "dataset.limit=10", "judge.mode=batch",
        "judge.chat.model=refused,dice",
    ]  # fmt: skip
    with RefusingServer(reply) as server:
        done = sweep(tmp_path, server, *arguments)
    assert done.returncode == 2, done.stderr
    assert "refuses with 401" in done.stderr
    assert "Leaderboard at N = 100 tokens" in done.stdout
    failed, finished = job_records(sweep_folders(tmp_path)[0])
    assert (failed["status"], failed["exit_code"], failed["deferred"]) == ("FAILED", 2, True)
    assert (finished["status"], finished["exit_code"], finished["deferred"]) == ("FINISHED", 0, False)
    _, jobs = mlflow_runs(tmp_path, "job")
    assert {job.info.run_id: job.info.status for job in jobs} == {
        failed["run_id"]: "FAILED",
        finished["run_id"]: "FINISHED",
    }


def test_a_job_in_the_store_needs_neither_server_nor_ledger_and_a_new_one_ends_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGAUGE_API_KEY", "k")
    small = ["dataset=sample", "dataset.limit=3", "retriever=bm25", "chunker=none", "n_tokens=50", "bootstrap=0"]
    with ChatServer(reply) as server:
        llm = ["llm=openai_compatible", "llm.chat.model=m", f"llm.chat.base_url={server.url}/v1", "judge=lexical"]
        first = ragauge.run([*small, *llm])
        assert len(server.calls) == 3
    again = ragauge.run([*small, *llm, "llm.ledger=other.db"])
    assert again.answers["answer"].tolist() == first.answers["answer"].tolist()
    with pytest.raises(
        ragauge.RagaugeError, match=r"^nothing listens at http://127\.0\.0\.1:\d+/v1, where model new is"
    ):
        ragauge.run([*small, *llm, "llm.ledger=other.db", "llm.chat.model=new"])
