"""How far work has come: lines of a log by a clock that the test sets, and a bar on a real terminal."""

from __future__ import annotations

import io
import logging
import os
import pty
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from processes import until
from ragauge.contract.errors import DataError
from ragauge.contract.progress import Teller, duration, progress, working


class Told:
    """A teller whose clock stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.teller = Teller(lambda: self.now, self.lines.append)

    def after(self, seconds: float) -> list[str]:
        """The lines that the next seconds bring, each second looked at."""
        before = len(self.lines)
        for _ in range(round(seconds)):
            self.now += 1
            self.teller.tick()
        return self.lines[before:]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_line_says_what_is_to_be_done_and_one_every_half_minute_what_is_left(told: Told) -> None:
    with told.teller.open(19_340, "embedding", "text") as bar:
        assert told.after(1) == ["embedding: 19,340 texts"]
        bar.update(1_934)
        assert told.after(29) == []
        # a tenth took 31 s, so nine times as long is left
        assert told.after(1) == ["embedding: 1,934 of 19,340 texts (10%), 31 s so far, about 4 min 39 s left"]
        bar.update(9_670 - 1_934)
        bar.set_postfix_str("0.21 USD", refresh=False)
        assert told.after(30) == [
            "embedding: 9,670 of 19,340 texts (50%), 0.21 USD, 1 min 01 s so far, about 1 min 01 s left"
        ]
        bar.update(9_670)
    assert told.lines[-1] == "embedding: 19,340 texts in 1 min 01 s, 0.21 USD"


def test_work_of_less_than_a_second_leaves_no_line(told: Told) -> None:
    with told.teller.open(3, "scoring", "context") as bar:
        bar.update(3)
    assert told.after(100) == []
    assert told.lines == []


def test_work_without_any_step_done_says_no_time_left(told: Told) -> None:
    with told.teller.open(7, "reading", "entry"):
        assert told.after(31) == ["reading: 7 entries", "reading: 0 of 7 entries (0%), 31 s so far"]


def test_work_that_nobody_counts_says_how_long_it_has_been(told: Told) -> None:
    with told.teller.open(None, "indexing 1,890 chunks", ""):
        assert told.after(31) == ["indexing 1,890 chunks", "indexing 1,890 chunks: 31 s so far"]
    assert told.lines[-1] == "indexing 1,890 chunks: done in 31 s"
    with told.teller.open(None, "reading traces", "trace") as bar:
        bar.update(40)
        assert told.after(31)[-1] == "reading traces: 40 traces, 31 s so far"


def test_of_work_within_work_the_inner_one_is_told(told: Told) -> None:
    with told.teller.open(None, "chunking 2 documents", ""):
        with told.teller.open(8, "embedding", "text") as inner:
            assert told.after(2) == ["chunking 2 documents", "embedding: 8 texts"]
            inner.update(4)
            assert told.after(29) == [
                "embedding: 4 of 8 texts (50%), 31 s so far, about 31 s left",
            ]
            inner.update(4)
        assert told.lines[-1] == "embedding: 8 texts in 31 s"
        assert told.after(29) == []
        assert told.after(1) == ["chunking 2 documents: 1 min 01 s so far"]


def test_work_that_failed_is_not_told_as_done(told: Told) -> None:
    def work() -> None:
        with told.teller.open(8, "embedding", "text"):
            told.after(40)
            raise DataError("a text is none")

    with pytest.raises(DataError, match="a text is none"):
        work()
    assert told.lines == ["embedding: 8 texts", "embedding: 0 of 8 texts (0%), 31 s so far"]
    assert told.after(100) == []


def test_what_was_done_by_an_earlier_process_is_no_speed_of_this_one(told: Told) -> None:
    with told.teller.open(None, "training", "step") as bar:
        told.now = 100.0  # the network is validated before the first step
        bar.restart(1_000, done=900)
        assert told.after(1) == ["training: 100 steps"]
        bar.update(10)
        # 31 s since the restart for ten steps, and 90 are left
        assert told.after(30) == ["training: 910 of 1,000 steps (91%), 31 s so far, about 4 min 39 s left"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (740, "12 min"),
        (3900, "1 h 05 min"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_without_a_terminal_lines_go_to_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    caplog.set_level(logging.INFO, "ragauge")
    with working("chunking 2 documents"):
        until(lambda: bool(caplog.messages), "the line of the log")
    assert caplog.messages == ["chunking 2 documents"]
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


@contextmanager
def terminal() -> Iterator[int]:
    """Standard error is a terminal of 80 columns; what is read of the descriptor is what it shows."""
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 80))
    # Not in a fixture: pytest puts its own stream in place between setup and test.
    with os.fdopen(writer, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        yield reader
    os.close(reader)


def test_a_terminal_gets_a_bar_and_the_log_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ragauge")
    with terminal() as screen, progress(8, "embedding", "text") as bar:
        time.sleep(1.1)
        bar.update(4)
        shown = os.read(screen, 10_000).decode()
    assert "embedding:  50%" in shown
    assert "4/8" in shown
    assert caplog.messages == []


def test_a_terminal_shows_the_time_of_work_that_nobody_counts() -> None:
    with terminal() as screen, working("indexing 1,890 chunks"):
        shown = os.read(screen, 10_000).decode()  # waits for it
    assert "indexing 1,890 chunks, 00:0" in shown
