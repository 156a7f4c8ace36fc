"""What people say on MLflow's traces: of several labels the newest counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ragauge.track import _feedback, labels_of_people


def label(value: object, at: int | None, **told: Any) -> SimpleNamespace:
    source = SimpleNamespace(source_type="HUMAN")
    given = {"name": "label", "source": source, "valid": None, "last_update_time_ms": at, **told}
    return SimpleNamespace(feedback=SimpleNamespace(value=value), **given)


def labels(monkeypatch: pytest.MonkeyPatch, *of_traces: list[SimpleNamespace]) -> dict[str, tuple[int, int]]:
    """{trace id: (label, when)} of traces t0, t1, ... with these assessments."""
    tags = {_feedback.OWN_TAG: "q0", _feedback.ANSWER_TAG: "digest"}
    infos = [
        SimpleNamespace(trace_id=f"t{number}", client_request_id=None, tags=tags, assessments=given)
        for number, given in enumerate(of_traces)
    ]

    class Page(list[Any]):
        token = None

    class Client:
        def get_experiment_by_name(self, name: str) -> SimpleNamespace:
            return SimpleNamespace(experiment_id="0")

        def search_traces(self, filter_string: str, **how: Any) -> Page:
            named = [info for info in infos if any(f".{one.name} " in filter_string for one in info.assessments)]
            return Page(SimpleNamespace(info=info) for info in named)

    @contextmanager
    def at(uri: str) -> Iterator[Client]:
        yield Client()

    monkeypatch.setattr(_feedback, "at", at)
    rows = labels_of_people("sqlite:///none.db", "helpdesk")
    return {row["trace_id"]: (row["label"], row["labelled_ms"]) for row in rows.to_dict("records")}


def test_of_several_labels_on_a_trace_the_newest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    first_said_last = [label(5, 30), label(1, 10), label(3, 20, name="judge_class")]
    last_said_last = [label(1, 10), label(4, 20), label(2, 40, name="judge_class")]
    assert labels(monkeypatch, first_said_last, last_said_last) == {"t0": (5, 30), "t1": (2, 40)}


def test_only_what_people_said_and_still_hold_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = SimpleNamespace(source_type="LLM_JUDGE")
    given = [
        label(2, 10),
        label(5, 20, source=judge),
        label(4, 30, valid=False),
        label(None, 40),
        label(3, 50, name="x"),
    ]
    assert labels(monkeypatch, given, [label(5, 20, source=judge)]) == {"t0": (2, 10)}
