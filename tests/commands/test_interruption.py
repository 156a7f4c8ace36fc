"""What ends before its work is done: told by SIGTERM or SIGHUP, killed, or left alone by the process it works for."""

from __future__ import annotations

import itertools
import os
import pty
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from test_chat_sweep import reply
from test_sweep import job_records, mlflow_runs, sweep_folders

from chat_server import ChatServer
from processes import Command, clean_environment, run, until
from ragauge.contract import interruption

JOBLIB = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
N_JOBS, CONCURRENCY = 2, 4


class HeldServer(ChatServer):
    """Answers the first few calls at once and holds the others back until `go`."""

    def __init__(self, at_once: int) -> None:
        super().__init__(self._held)
        self.go = threading.Event()
        self._at_once = at_once
        self._number = itertools.count(1)

    def _held(self, prompt: str) -> str:
        if next(self._number) > self._at_once:
            self.go.wait(600)
        return reply(prompt)

    @property
    def asked(self) -> int:
        return sum(self.calls.values())

    def __exit__(self, *error: object) -> None:
        self.go.set()
        super().__exit__(*error)


def chat(server: ChatServer) -> list[str]:
    """The arguments of a run that asks the server, and judges by words."""
    return [
        "llm=openai_compatible", "llm.chat.model=dice", f"llm.chat.base_url={server.url}/v1", "chunker=none",
        f"llm.concurrency={CONCURRENCY}", "llm.timeout=600", "bootstrap=20", "dataset.limit=40",
        "n_tokens=100",
    ]  # fmt: skip


def started(folder: Path, *arguments: str) -> Command:
    return Command(folder, *arguments, environment=clean_environment(RAGAUGE_API_KEY="unused"))


@pytest.mark.slow
def test_workers_of_a_sweep_whose_parent_was_killed_start_no_further_call(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    with HeldServer(at_once=10) as server:
        command = started(tmp_path, "-m", *chat(server), "retriever=bm25,none", *JOBLIB)
        until(lambda: server.asked >= 11 or not command.runs, "calls in flight")
        command.signal(signal.SIGKILL)
        until(lambda: not command.runs, "the end of the killed process")
        seen = server.asked
        server.go.set()
        until(lambda: not command.group_runs, "the end of the workers")
        assert server.asked - seen <= N_JOBS * CONCURRENCY
        # Their runs are ended, by themselves or by the next command.
        done = run(tmp_path, *chat(server), "retriever=bm25")
        assert done.returncode == 0, done.stderr
    _, jobs = mlflow_runs(tmp_path, "job")
    assert {job.info.status for job in jobs} == {"FINISHED", "KILLED"}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["one job", "sweep", "parallel sweep"])
def test_sigterm_ends_runs_as_killed_keeps_what_was_paid_and_says_how_to_go_on(tmp_path: Path, launcher: str) -> None:
    how = {"one job": [], "sweep": ["-m"], "parallel sweep": ["-m", *JOBLIB]}[launcher]
    if launcher == "parallel sweep":
        pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    how += ["retriever=bm25,none" if "-m" in how else "retriever=bm25"]
    with HeldServer(at_once=10) as server:
        command = started(tmp_path, *how, *chat(server))
        until(lambda: sum(server.whole.values()) >= 10 or not command.runs, "ten replies")
        until(lambda: server.asked >= 11 or not command.runs, "a call in flight")
        command.signal(signal.SIGTERM)
        ended = command.wait()
        until(lambda: not command.group_runs, "the end of the workers")
        assert ended.returncode == 143, ended.stderr
        assert "terminated by SIGTERM; what is finished is kept" in ended.stderr
        assert "Traceback" not in ended.stderr
        _, jobs = mlflow_runs(tmp_path, "job")
        assert {job.info.status for job in jobs} == {"KILLED"}
        answered = set(server.whole)
        server.go.set()
        again = started(tmp_path, *how, *chat(server)).wait()
    assert again.returncode == 0, again.stderr
    assert len(answered) >= 10
    # A reply that was on its way when the signal came may be asked for again, none that had arrived before.
    assert sum(server.whole[prompt] == 1 for prompt in answered) >= 10 - N_JOBS * CONCURRENCY


@pytest.mark.slow
def test_the_run_of_a_killed_job_is_closed_by_the_next_command(tmp_path: Path) -> None:
    pytest.importorskip("ragauge.plugins.upkeep")  # ragauge store
    with HeldServer(at_once=0) as server:
        command = started(tmp_path, *chat(server), "retriever=bm25")
        until(lambda: server.asked > 0 or not command.runs, "a call in flight")
        command.kill()
        (job,) = mlflow_runs(tmp_path, "job")[1]
        assert job.info.status == "RUNNING"
        looked = Command(tmp_path, "store", "gc", "--keep-days", "30", "--dry-run").wait()
        assert looked.returncode == 0, looked.stderr
    (job,) = mlflow_runs(tmp_path, "job")[1]
    assert job.info.status == "KILLED"


@pytest.mark.slow
def test_a_job_that_sigterm_ended_says_so_in_its_record(tmp_path: Path) -> None:
    with HeldServer(at_once=0) as server:
        command = started(tmp_path, "-m", *chat(server), "retriever=bm25,none")
        until(lambda: server.asked > 0 or not command.runs, "a call in flight")
        command.signal(signal.SIGTERM)
        assert command.wait().returncode == 143
    (record,) = job_records(sweep_folders(tmp_path)[0])
    assert (record["error"], record["exit_code"]) == ("terminated by SIGTERM", 143)


# What nohup starts, and all that it starts, has this signal ignored.
heeded = pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="SIGHUP is ignored here")


@heeded
@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["one job", "sweep", "parallel sweep"])
def test_a_terminal_that_is_closed_ends_runs_as_killed(tmp_path: Path, launcher: str) -> None:
    how = {"one job": [], "sweep": ["-m"], "parallel sweep": ["-m", *JOBLIB]}[launcher]
    if launcher == "parallel sweep":
        pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    how += ["retriever=bm25,none" if "-m" in how else "retriever=bm25"]
    with HeldServer(at_once=10) as server:
        arguments = [*how, *chat(server), "dataset=sample"]
        shell, terminal = pty.fork()
        if not shell:
            os.chdir(tmp_path)
            command = [sys.executable, "-m", "ragauge", *arguments]
            os.execvpe(command[0], command, clean_environment(RAGAUGE_API_KEY="unused"))
        os.set_blocking(terminal, False)

        def in_flight() -> bool:
            with suppress(BlockingIOError, OSError):
                os.read(terminal, 65536)
            return server.asked >= 11

        until(in_flight, "calls in flight")
        os.close(terminal)  # as sshd does when its connection ends
        _, status = os.waitpid(shell, 0)
        assert os.waitstatus_to_exitcode(status) == 129
        server.go.set()
    _, jobs = mlflow_runs(tmp_path, "job")
    assert {job.info.status for job in jobs} == {"KILLED"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=heeded)])
def test_a_signal_is_raised_once_and_only_in_the_block(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    survived = []

    def closes_its_run() -> None:
        with interruption.terminable(), interruption.terminable():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(signal.SIGTERM)  # a second one while runs are closed
                survived.append(True)

    with pytest.raises(interruption.Terminated) as ended:
        closes_its_run()
    assert survived == [True]
    assert interruption.exit_code(ended.value) == code
    assert interruption.reason(ended.value) == f"terminated by {number.name}"
    assert signal.getsignal(number) is before


def test_a_hangup_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with interruption.terminable():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_process_that_is_no_worker_has_no_parent_to_lose() -> None:
    with interruption.working():
        assert not interruption.parent_gone()
