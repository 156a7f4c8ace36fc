"""The bounds of a window of traces: it has its beginning and not its end."""

from __future__ import annotations

import operator
import re
from types import SimpleNamespace
from typing import Any

from ragauge.plugins.traces.window import Window, _search

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Page(list[Any]):
    token = None


class Client:
    """Traces of these times; of MLflow's expressions it knows bounds of the time."""

    def __init__(self, *times: int) -> None:
        self.times = times

    def search_traces(self, filter_string: str | None, **how: Any) -> Page:
        bounds = [
            re.fullmatch(r"trace\.timestamp_ms ([<>]=?) (\d+)", one) for one in (filter_string or "").split(" AND ")
        ]
        known = [(COMPARISONS[bound[1]], int(bound[2])) for bound in bounds if bound]
        found = [time for time in self.times if all(holds(time, limit) for holds, limit in known)]
        return Page(SimpleNamespace(time=time) for time in found)


def times(since: int | None, until: int | None) -> list[int]:
    window = Window("sqlite:///none.db", "helpdesk", None, since, until)
    found = _search(Client(99, 100, 101, 199, 200, 201), window, "0", include_spans=False)  # type: ignore[arg-type]
    return [trace.time for trace in found]  # type: ignore[attr-defined]


def test_a_window_has_its_beginning_and_not_its_end() -> None:
    assert times(100, 200) == [100, 101, 199]
    assert times(100, None) == [100, 101, 199, 200, 201]
    assert times(None, 200) == [99, 100, 101, 199]


def test_of_two_windows_that_meet_each_trace_is_in_one() -> None:
    assert [*times(None, 101), *times(101, 200), *times(200, None)] == times(None, None)
