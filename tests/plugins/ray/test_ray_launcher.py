"""hydra/launcher=ray: the jobs of a sweep on many machines, of which some die."""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_chat_sweep import reply
from test_sweep import job_records, mlflow_runs, sweep_folders

from chat_server import ChatServer
from namespaces import in_a_namespace
from processes import ROOT, RUN, clean_environment, until
from ragauge import __version__
from ragauge.contract.errors import ConfigError
from ragauge.contract.interruption import Terminated
from ragauge.contract.metrics import without_groups
from ragauge.plugins.ray import job as ray_job
from ragauge.plugins.ray import sweep_cluster as ray_cluster

TRIAL = [sys.executable, str(ROOT / "examples" / "cluster" / "trial.py")]
CONCURRENCY = 4
INSIDE = "RAGAUGE_TEST_IN_A_NAMESPACE"
SETTINGS: dict[str, Any] = {
    "address": None, "n_jobs": None, "num_cpus": 1.0, "num_gpus": 0.0, "max_retries": 3, "environment": [],
    "runtime_env": {},
}  # fmt: skip


# --- what needs no Ray ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"num_cpus": -1.0}, "num_cpus=-1.0: give a number of at least 0"),
        ({"num_gpus": float("nan")}, "num_gpus=nan: give a number of at least 0"),
        ({"num_cpus": 0.0}, "num_cpus=0.0: give more than 0, or num_gpus"),
        ({"max_retries": -1}, "max_retries=-1: give 0 or more"),
        ({"n_jobs": 0}, "n_jobs=0: give 1 or more, or null"),
        ({"n_jobs": 2, "address": "head:6379"}, "n_jobs=2: give null"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_is_allowed(changed: dict, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace(".", r"\.")):
        ray_cluster.check(SETTINGS | changed)


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'ragauge\[ray\]'"), ray_cluster.connected(SETTINGS):
        pass


class UnwillingRay:
    """As much of Ray as is asked before a sweep begins; it does not start."""

    def __init__(self, error: Exception) -> None:
        self.error, self.tried = error, 0
        self.given: dict[str, Any] = {}

    def init(self, **given: Any) -> None:
        self.tried += 1
        self.given = given
        raise self.error

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "address", "tried", "told"),
    [
        (Exception("The current node timed out during startup. This"), None, 4, "Ray on this machine cannot"),
        (OSError("no space"), None, 1, "Ray on this machine cannot be used: no space"),
        (ConnectionError("nobody"), "head:6379", 1, "Ray at head:6379 cannot be used: nobody"),
        (RuntimeError(""), "head:6379", 1, "Ray at head:6379 cannot be used: RuntimeError"),
    ],
)
def test_a_ray_that_cannot_be_used_is_told_in_a_line_and_a_slow_one_tried_again(
    error: Exception, address: str | None, tried: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = UnwillingRay(error)
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setitem(sys.modules, "ray", ray)
    settings = SETTINGS | {"address": address, "num_cpus": 1.5, "n_jobs": None if address else 3}
    ray_cluster.check(settings)
    with pytest.raises(ConfigError, match=told), ray_cluster.connected(settings):
        pass
    assert ray.tried == tried
    here = {
        "num_cpus": 5,
        "include_dashboard": False,
        "object_store_memory": 100_000_000,
    }  # three jobs of one and a half
    quiet = {"log_to_driver": False, "logging_level": 50}
    assert ray.given == {"address": address or "local", **({} if address else here), **quiet}


@pytest.mark.parametrize(("each", "cores"), [(3.0, 6), (7.5, 8), (0.5, 7)])
def test_as_many_jobs_run_here_as_there_are_cores_for_and_one_at_least(
    each: float, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = UnwillingRay(OSError("no space"))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    environment = {"pip": ["x"]}
    settings = SETTINGS | {"num_cpus": each, "runtime_env": environment}
    with pytest.raises(ConfigError), ray_cluster.connected(settings):
        pass
    assert (ray.given["num_cpus"], ray.given["runtime_env"]) == (cores, environment)


def test_one_job_at_a_time_is_allowed() -> None:
    ray_cluster.check(SETTINGS | {"n_jobs": 1, "max_retries": 0, "num_gpus": 1.0, "num_cpus": 0.0})


def sent(folder: Path, **changed: Any) -> ray_job.Sent:
    places = {name: str(folder) for name in ("cwd", "sweep", "marks")}
    given = {"number": 0, "attempt": 0, "environment": {}, "version": __version__, "pickled": b""}
    return ray_job.Sent(**{**given, **places, **changed})


def test_a_machine_with_another_version_or_without_the_folder_runs_nothing(tmp_path: Path) -> None:
    other = ray_job.run_sent(sent(tmp_path, version="0.0.1"))
    assert other.refused is not None
    assert f"has ragauge {__version__}, this one 0.0.1" in other.refused
    for name in ("cwd", "sweep"):
        alone = ray_job.run_sent(sent(tmp_path, **{name: str(tmp_path / "there")}))
        assert alone.refused is not None
        assert f"has no folder {tmp_path / 'there'}: " in alone.refused
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_that_is_no_signal_wakes_a_job_that_waits_for_a_lock() -> None:
    held = threading.Lock()
    held.acquire()
    # A shell may have had the tests started with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, _thread.interrupt_main).start()  # as Ray cancels a task
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt), ray_job._interruptible():
            held.acquire(timeout=60)
        assert time.monotonic() - began < 30
    finally:
        signal.signal(signal.SIGINT, before)


def test_sigterm_ends_a_job_in_order_where_somebody_handled_it_before() -> None:
    from ragauge.contract import interruption

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ray's workers do
    try:
        handler = signal.getsignal(signal.SIGTERM)
        with pytest.raises(Terminated), ray_job._interruptible(), interruption.terminable():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


# --- on Ray, in a network of its own ----------------------------------------------------------------------


@pytest.fixture
def inside(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Runs the test once more in a namespace; True there, and False here, where that is the whole test."""
    pytest.importorskip("ray")
    if os.environ.get(INSIDE):
        yield True
        return
    done = in_a_namespace(
        ["env", f"{INSIDE}=1", sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider",
         f"{__file__}::{request.node.name}"]
    )  # fmt: skip
    print(done.stdout[-6000:])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    yield False


@contextmanager
def trial(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a cluster of a head without cores and two workers of one."""
    began = [*TRIAL, "--folder", str(folder), "start", "--no-mlflow", "--no-postgres"]
    done = subprocess.run(began, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    try:
        yield json.loads((folder / "trial.json").read_text())["environment"]
    finally:
        subprocess.run([*TRIAL, "--folder", str(folder), "stop"], check=True)


def study(server: ChatServer, limit: int) -> list[str]:
    return [
        "dataset=sample", f"dataset.limit={limit}", "chunker=none", "bootstrap=20", "llm=openai_compatible",
        "llm.chat.model=dice", f"llm.chat.base_url={server.url}/v1", f"llm.concurrency={CONCURRENCY}",
        "llm.timeout=600",
    ]  # fmt: skip


def swept(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, RUN, "-m", *arguments], cwd=folder, text=True,
        env=clean_environment(RAGAUGE_API_KEY="unused", **environment),
        stdout=(folder / "out").open("w"), stderr=(folder / "err").open("w"),
    )  # fmt: skip


# Which job asks what jobs share is a matter of time; what a lost one had asked is in the ledger for the next.
_WHO_ASKED = (
    "stages_made", "llm_cached_calls", "llm_calls", "llm_calls_cached", "prompt_tokens", "completion_tokens",
)  # fmt: skip


def measured(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    """The metrics of every job but for times and what was asked, and those of the pooled run."""
    kept: dict[tuple[str, str], dict[str, float]] = {}
    for role in ("job", "sweep"):
        for run in mlflow_runs(folder, role)[1]:
            assert run.info.status == "FINISHED"
            key = (run.data.tags.get("retriever", ""), run.data.tags.get("n_tokens", "")) if role == "job" else ("", "")
            assert key not in kept
            kept[key] = {
                name: value
                for name, value in without_groups(run.data.metrics).items()
                # Of jobs side by side it is chance which of those with one retriever has its queries written.
                if not name.startswith("seconds_") and name.removeprefix("retriever_") not in _WHO_ASKED
            }
    return kept


@pytest.mark.slow
def test_a_node_dies_in_the_middle_of_a_sweep_and_all_is_as_without_ray(inside: bool, tmp_path: Path) -> None:
    if not inside:
        return
    jobs = ["retriever=bm25,sim,mmr,mlq,reo", "n_tokens=100,300"]
    with ChatServer(reply, delay=0.05) as server, trial(tmp_path / "trial") as environment:
        folder = tmp_path / "ray"
        launcher = ["hydra/launcher=ray", "hydra.launcher.address=127.0.0.1:6379"]
        sweep = swept(folder, *jobs, *study(server, 30), *launcher, **environment)
        two_done = lambda: len(list(folder.glob("multirun/*/*/*/job.json"))) >= 2  # noqa: E731
        until(lambda: (two_done() and server.in_flight > 0) or sweep.poll() is not None, "calls", 1500)
        in_flight = server.in_flight
        subprocess.run([*TRIAL, "--folder", str(tmp_path / "trial"), "kill", "1"], check=True)
        assert sweep.wait(1500) == 0, (folder / "err").read_text()
        told = (folder / "err").read_text()
        again = sum(server.calls.values()) - len(server.calls)
    print(told)
    print((folder / "out").read_text())
    print(f"distinct prompts {len(server.calls)}, asked again {again}, in flight at the kill {in_flight}")
    records = job_records(sweep_folders(folder)[0])
    assert [record["status"] for record in records] == ["FINISHED"] * 10
    assert told.count(": lost by ") == told.count("run again, 1 of 3") >= 1
    assert told.count(": done in ") == 10
    assert "raylet" not in told
    assert "Traceback" not in told
    # Of what the dead node had asked, no reply that had reached the ledger is asked for again.
    assert again <= CONCURRENCY
    by_the_cluster = set(server.calls)
    with ChatServer(reply) as server:
        alone = swept(tmp_path / "basic", *jobs, *study(server, 30))
        assert alone.wait(1500) == 0, (tmp_path / "basic" / "err").read_text()
    assert set(server.calls) == by_the_cluster
    by_ray, by_basic = measured(folder), measured(tmp_path / "basic")
    assert len(by_ray) == 11
    assert by_ray.keys() == by_basic.keys()
    differing = {
        (key, name): (by_ray[key].get(name), value)
        for key, values in by_basic.items()
        for name, value in values.items()
        if by_ray[key].get(name) != value
    }
    print(differing)
    assert differing == {}


@pytest.mark.slow
def test_sigterm_ends_the_jobs_on_ray_closes_their_runs_and_says_how_to_go_on(inside: bool, tmp_path: Path) -> None:
    if not inside:
        return
    go = threading.Event()

    def held(prompt: str) -> str:
        go.wait(1500)
        return reply(prompt)

    with ChatServer(held) as server:
        launcher = ["hydra/launcher=ray", "hydra.launcher.n_jobs=2"]
        sweep = swept(tmp_path, "retriever=bm25,none", "n_tokens=100,300", *study(server, 40), *launcher)
        until(lambda: server.in_flight >= 1 or sweep.poll() is not None, "calls in flight", 1500)
        sweep.send_signal(signal.SIGTERM)
        assert sweep.wait(600) == 143, (tmp_path / "err").read_text()
        go.set()
    told = (tmp_path / "err").read_text()
    print(told)
    assert "ending " in told
    assert "terminated by SIGTERM; what is finished is kept" in told
    assert "Traceback" not in told
    # What the jobs could not close themselves the next command closes, when their processes are gone.
    after = swept(tmp_path / "after", "retriever=none", "n_tokens=100", "dataset=sample", "dataset.limit=2",
                  "llm=none", "judge=none", "chunker=none", "bootstrap=0",
                  f"tracking.uri=sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")  # fmt: skip
    assert after.wait(600) == 0, (tmp_path / "after" / "err").read_text()
    _, jobs = mlflow_runs(tmp_path, "job")
    ended = [job.info.status for job in jobs if job.data.tags["retriever"] == "bm25"]
    assert 1 <= len(ended) <= 2
    assert set(ended) == {"KILLED"}
    assert {record["error"] for record in job_records(sweep_folders(tmp_path)[0])} <= {
        "interrupted",
        "terminated by SIGTERM",
    }
