"""Records of jobs and the outcomes that go with them, as a sweep's findings read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.jobs import Jobs, systems_of
from ragauge.contract.record import JobRecord


def record_of(given: Mapping[str, Any] | None = None, /, **more: Any) -> JobRecord:
    """A job's record with these entries."""
    usual: dict[str, Any] = {
        "status": "FINISHED", "name": "a job", "number": 0, "attempt": None, "choices": {}, "overrides": [],
        "exit_code": 0, "experiment": "e", "sweep_id": None, "n_tokens": 100, "seed": 0, "bootstrap": 10,
        "written_in": "",
    }  # fmt: skip
    entries = {**usual, **(given or {}), **more}
    own = {field.name for field in fields(JobRecord)}
    added = {name: value for name, value in entries.items() if name not in own}
    return JobRecord(**{name: value for name, value in entries.items() if name in own}, added=added)


def job_json(folder: Path, given: Mapping[str, Any]) -> None:
    """Writes the `job.json` of such a record."""
    record_of(given, folder=folder).write()


def record(*overrides: str, n: int = 100, **metrics: float) -> JobRecord:
    given = dict(o.split("=", 1) for o in overrides)
    choices = {"retriever": "bm25", "chunker": "tokens", "llm": "extractive"}
    choices |= {key: value for key, value in given.items() if key in choices}
    return record_of(
        overrides=[*overrides, f"n_tokens={n}"],
        choices=choices,
        n_tokens=n,
        ir_score_at_n={n: metrics.get("ir_score", 0.5)},
        metrics={"ir_score": 0.5, "judge_share_missing": 0.0, "correct_share": 0.25, **metrics},
    )


def sweep(*records: JobRecord, labels: dict[str, list[int]] | None = None) -> Jobs:
    parts = [
        pd.DataFrame(
            {
                "qid": ["q1", "q2"],
                "system": system,
                "n_tokens": r.n_tokens,
                "ir_score": r.metrics["ir_score"],
                "label": pd.array((labels or {}).get(system, [1, 1]), dtype="Int8"),
            }
        )
        for r, system in zip(records, systems_of(records), strict=True)
    ]
    return Jobs("s", "e", list(records), [], pd.concat(parts, ignore_index=True))
