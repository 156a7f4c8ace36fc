"""A race over HTTP: a server of the tests counts what is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chat_server import ChatServer, on_one_line
from processes import Command, clean_environment, until

ARGUMENTS = (
    "hydra/sweeper=race", "retriever=bm25,none", "n_tokens=100,300", "dataset=sample", "chunker=none", "bootstrap=20",
    "llm=openai_compatible", "llm.chat.model=parrot", "llm.concurrency=1", "judge=none", "answers=[contains]",
    "race.measure=contains", "race.first=20", "race.batch=10",
)  # fmt: skip

PRICE = "llm.price={prompt: 1, completion: 2}"


def raced(folder: Path, server: ChatServer, *arguments: str) -> Command:
    environment = clean_environment(RAGAUGE_API_KEY="sk-planted-0123456789abcdef")
    return Command(folder, "-m", *ARGUMENTS, f"llm.chat.base_url={server.url}/v1", *arguments, environment=environment)


@pytest.mark.slow
def test_a_race_goes_on_after_a_kill_and_after_its_money_ran_out_and_pays_for_no_answer_twice(tmp_path: Path) -> None:
    # Each answer repeats the prompt, so that it is right where the context holds the reference.
    with ChatServer(on_one_line) as server:
        killed = raced(tmp_path, server, "race.margin=0.2")
        until(lambda: sum(server.whole.values()) >= 15 or not killed.runs, "answers")
        killed.kill()
        short = raced(tmp_path, server, PRICE, "llm.max_cost_usd=0.036").wait()
        assert short.returncode == 0, short.stderr
        assert "of 0.036 USD are spent" in short.stderr
        assert "the money ran out; 80 of 480 answers" in short.stderr
        paid = sum(server.calls.values())
        done = raced(tmp_path, server, PRICE, "llm.max_cost_usd=5").wait()
        assert sum(server.calls.values()) > paid
    assert done.returncode == 0, done.stderr
    assert "these systems raced before with margin 0.2" in done.stderr
    assert done.stderr.index("is dropped, beaten") < done.stderr.index("race: over after")
    assert sum(server.calls.values()) <= len(server.calls) + 1  # the one that was in flight at the kill
    *_, file = sorted(tmp_path.glob("multirun/*/*/race.json"))
    race = json.loads(file.read_text(encoding="utf-8"))
    used = {row["system"]: row["topics"] for row in race["results"]}
    records = [json.loads((file.parent / str(n) / "job.json").read_text(encoding="utf-8")) for n in range(4)]
    systems = {record["number"]: (record["choices"]["retriever"], record["n_tokens"]) for record in records}
    for record in records:
        assert f"llm.sample={used[record['number']]}" in record["overrides"]
        assert record["metrics"]["llm_calls"] == 0  # the race asked before
    # Without documents the prompts of both budgets are equal.
    of = {system: used[number] for number, system in systems.items()}
    asked = of["bm25", 100] + of["bm25", 300] + max(of["none", 100], of["none", 300])
    assert len(server.calls) == asked
    assert systems[race["best"]][0] == "bm25"
    assert race["dropped"][str(next(n for n, s in systems.items() if s[0] == "none"))]["n"] < 120
    assert "Race by contains" in done.stdout
