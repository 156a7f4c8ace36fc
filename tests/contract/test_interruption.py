"""A worker of a parallel sweep ends with the process that started it."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from ragauge.contract import interruption


class Ended(BaseException):
    """The process would be gone."""


def test_a_worker_whose_parent_is_gone_is_asked_to_end_and_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([False, False, True])
    did: list[object] = []

    class Parent:
        def gone(self) -> bool:
            return next(looks)

    def end(code: int) -> None:
        did.append(code)
        raise Ended

    monkeypatch.setattr(signal, "pthread_kill", lambda thread, number: did.append((thread, number)))
    monkeypatch.setattr(time, "sleep", lambda seconds: did.append("waits"))
    monkeypatch.setattr(interruption.os, "_exit", end)
    with pytest.raises(Ended):
        interruption._end_with(Parent())  # type: ignore[arg-type]
    assert did == ["waits", "waits", (threading.main_thread().ident, signal.SIGTERM), "waits", 143]
