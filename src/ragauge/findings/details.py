"""What the value of an answer measure rests on: claims, verdicts and the like, as the report shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.records import DETAILS_FILE

_MOST_LINES = 100  # of one value on the page


@dataclass(frozen=True)
class Detail:
    """What one value rests on: the measure's name, its status, a line for every claim and the like."""

    measure: str
    status: str
    lines: Sequence[str]


def details_of(record: Mapping[str, Any], qids: Iterable[str]) -> dict[str, list[Detail]]:
    """The details of topics of one job by qid, from the folder of its record; {} where it kept none."""
    path = Path(record.get("folder", "")) / DETAILS_FILE
    if not path.is_file():
        return {}
    rows = pd.read_parquet(path, filters=[("qid", "in", list(qids))])
    found: dict[str, list[Detail]] = {}
    for qid, measure, status, detail in zip(*(rows[c] for c in _COLUMNS), strict=True):
        found.setdefault(qid, []).append(Detail(measure, status, detail_lines(detail)))
    return found


_COLUMNS = ("qid", "measure", "status", "detail")


def write_details(values: pd.DataFrame, folder: Path) -> None:
    """Writes the details of a frame `answer_values` into a job's folder; no file where there is none."""
    if "detail" in values and values["detail"].notna().any():
        kept = values.loc[values["detail"].notna(), list(_COLUMNS)]
        kept.to_parquet(folder / DETAILS_FILE, index=False)


def detail_lines(detail: str) -> list[str]:
    """A line for every entry of a detail: its text first, then what is said of it; [] if it is no object."""
    try:
        content = json.loads(detail)
    except ValueError:
        return []
    lines: list[str] = []
    for key, value in content.items() if isinstance(content, dict) else ():
        lines += map(_line, value) if isinstance(value, list) else [f"{key.replace('_', ' ')}: {_said(value)}"]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"and {more} more"] if more > 0 else lines


def _line(entry: object) -> str:
    if not isinstance(entry, dict):
        return _said(entry)
    (_, text), *rest = entry.items() or [("", "")]
    said = [f"{key.replace('_', ' ')} {_said(value)}" for key, value in rest if value not in (None, [])]
    return " · ".join([_said(text), *said])


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_said, value)) if isinstance(value, list) else str(value)
