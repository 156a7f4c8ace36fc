"""Which runs still go on; which runs a prefix may mean."""

from __future__ import annotations

import os

import pytest

from ragauge.contract import provenance
from ragauge.track import LoggedRun, connection


def run(number: int = 0, status: str = "FINISHED", **tags: str) -> LoggedRun:
    return LoggedRun(f"{number:032x}", f"run {number}", status, "1", "e", float(number), {}, tags, {})


def test_a_run_goes_on_while_it_is_running_and_its_process_may_be_alive() -> None:
    alive = provenance.process_tags()
    assert run(status="RUNNING", **alive).going
    assert not run(status="FINISHED", **alive).going
    gone = alive | {"ragauge.process": "boot namespace 0", "ragauge.pid": "not a number"}
    assert not run(status="RUNNING", **gone).going
    assert run(status="RUNNING", **(gone | {"ragauge.host": "elsewhere"})).going


def test_mlflow_prints_and_reports_nothing_by_itself() -> None:
    assert connection.os is os
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
             "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}  # fmt: skip
    assert {name: os.environ.get(name) for name in quiet} == quiet


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n b", "a b"),
        ("", "ValueError"),
        ("x [SQL: select 1] more (Background on this error at: y)", "x"),
        ("401 from host", "401 from host; MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
                          "MLFLOW_TRACKING_TOKEN, say who asks"),
    ],
)  # fmt: skip
def test_the_reason_of_an_error_is_one_line(text: str, said: str) -> None:
    assert connection.reason(ValueError(text)) == said
    assert len(connection.reason(ValueError("x" * 5000))) == connection._LONGEST_REASON + 1


def test_the_reason_of_a_server_s_silence_is_the_network_error_that_caused_it() -> None:
    from mlflow.exceptions import MlflowException
    from requests.exceptions import ConnectionError as NoConnection

    error = MlflowException("API request failed")
    error.__cause__ = NoConnection("max retries")
    error.__cause__.__cause__ = OSError("connection refused")
    assert connection.is_silence(error)
    assert connection.reason(error) == "connection refused"
    assert not connection.is_silence(MlflowException("bad request"))
    assert connection.reason(MlflowException("bad request")) == "bad request"
