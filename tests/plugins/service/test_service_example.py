"""examples/service: the app as a server of its own, measured by its config, killed and started again."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processes import ROOT, Command, clean_environment, run, until
from servers import http_server

pytestmark = pytest.mark.slow

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

EXAMPLE = ROOT / "examples" / "service"
CORPUS = ROOT / "src" / "ragauge" / "datasets" / "sample" / "corpus.jsonl"
TOPICS = 60
SMALL = [f"dataset.limit={TOPICS}", "bootstrap=20", "tokenizer=words", "service.concurrency=2"]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Where the example listens, and the file with a line for every question that it got."""
    asked = tmp_path / "asked.txt"
    asked.touch()
    # It answers in a millisecond: slowed down, so that there is time to kill who asks.
    slow = tmp_path / "slow_app.py"
    slow.write_text(
        "import asyncio\nfrom app import app\n\n"
        "@app.get('/health')\ndef health():\n    return {}\n\n"
        "@app.middleware('http')\nasync def wait(request, call_next):\n"
        "    await asyncio.sleep(0.2)\n    return await call_next(request)\n"
    )
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(tmp_path), "slow_app:app"]
    environment = {"DOCS": str(CORPUS), "COUNT": str(asked), "PYTHONPATH": str(EXAMPLE)}
    with http_server(command, tmp_path / "app.log", **environment) as url:
        yield f"{url}/ask", asked


def questions(asked: Path) -> Counter[str]:
    return Counter(asked.read_text(encoding="utf-8").splitlines())


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Those of the jobs of the last sweep."""
    last = max((folder / "multirun").glob("*/*"))
    return [json.loads((last / n / "job.json").read_text())["metrics"] for n in ("0", "1")]


def params_of(folder: Path, run_id: str) -> dict[str, str]:
    """What MLflow holds of a run's config."""
    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
        return dict(database.execute("select key, value from params where run_uuid = ?", (run_id,)).fetchall())


def test_the_example_at_two_budgets_killed_and_restarted_is_asked_nothing_twice(
    app: tuple[str, Path], tmp_path: Path
) -> None:
    url, asked = app
    sweep = [
        "-m", "--config-dir", str(EXAMPLE / "conf"), "experiment=service_example", f"service.url={url}",
        "n_tokens=100,300", *SMALL,
    ]  # fmt: skip
    told = run(tmp_path, *sweep, "dry_run=true").stdout
    assert f"2 job(s) would need retriever: {TOPICS} calls" in told
    assert "llm: 0 calls" in told
    assert not questions(asked)

    killed = Command(tmp_path, *sweep, environment=clean_environment())
    until(lambda: sum(questions(asked).values()) >= TOPICS // 3, "a third of the questions")
    killed.kill()
    killed.wait()
    before = questions(asked)
    assert TOPICS // 3 <= sum(before.values()) < TOPICS
    done = run(tmp_path, *sweep)
    assert done.returncode == 0, done.stderr
    found = questions(asked)
    assert len(found) == TOPICS
    # Those whose answers were on their way when it was killed, two at most, are nobody's fault.
    assert sum(found.values()) <= TOPICS + 2
    assert set(found.values()) <= {1, 2}

    small, large = metrics(tmp_path)
    assert small["retriever_llm_calls"] + small["retriever_llm_calls_cached"] == TOPICS
    assert small["retriever_llm_calls_cached"] >= TOPICS // 3 - 2
    assert [job["llm_calls"] for job in (small, large)] == [0, 0]
    assert large["retriever_llm_calls"] == 0
    assert 0 < small["ir_score"] < large["ir_score"]
    assert large["r_at_5"] > 0.5  # documents are known by the app's names
    assert large["judge_share_missing"] == 0

    # What a run logged names the service once, and is enough to run it again.
    record = json.loads((max((tmp_path / "multirun").glob("*/*")) / "1" / "job.json").read_text())
    params = params_of(tmp_path, record["run_id"])
    assert (params["retriever.service"], params["llm.service"]) == ("${service}", "${service}")
    assert params["service.url"] == url
    told = run(tmp_path, *sweep, "dry_run=true").stdout
    assert re.search(r"2 job\(s\) would need llm: 0 calls", told)
    assert questions(asked) == found

    pytest.importorskip("ragauge.plugins.rerun")
    again = run(tmp_path, f"rerun={record['run_id']}")
    assert again.returncode == 0, again.stderr
    assert "metrics equal to the last bit" in again.stdout
    assert "retriever.service" not in again.stdout + again.stderr
    assert questions(asked) == found


def test_the_example_is_short() -> None:
    lines = (EXAMPLE / "app.py").read_text(encoding="utf-8").split('"""', 2)[2].splitlines()
    assert len([line for line in lines if line.strip()]) <= 30
