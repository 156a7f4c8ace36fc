"""Measures of answers and contexts beside the classes: a section for each that they name."""

from __future__ import annotations

from typing import Any

from ragauge.contract.answer_measures import besides_rankings, column_label
from ragauge.contract.finding import Block, Cell, Col, Finding, Fold, Found, Founds, Grid, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.findings.classes import by_budget
from ragauge.findings.leaderboard import measured


class Answers(Finding):
    """What answers are worth by the measures of `answers`."""

    name = "answers"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """{section: its measures}; None where there are none. Values and metrics are the leaderboard's."""
        by_section: dict[str, list[AnswerMeasureInfo]] = {}
        for info in besides_rankings(jobs.answer_measures):
            by_section.setdefault(info.section, []).append(info)
        return Found(by_section) if by_section else None

    def show(self, jobs: Jobs, value: dict[str, list[AnswerMeasureInfo]], found: Founds) -> Shown:
        """Means at the sweep's budget, and at every budget behind a click."""
        board = found["leaderboard"].frame.to_dict("records")
        return Shown([Section(name, _blocks(jobs, name, infos, board)) for name, infos in value.items()])


def _blocks(jobs: Jobs, name: str, infos: list[AnswerMeasureInfo], board: list[dict[Any, Any]]) -> list[Block]:
    how = " ".join(
        f"{info.label}: {info.direction} is better{', in per cent' if info.unit == 'share' else ''}." for info in infos
    )
    columns: list[Col | str] = ["System"]
    for info in infos:
        columns += [Col(column_label(info), f"{info.direction} is better"), "No / value"]
    rows: list[list[Cell]] = []
    for row in board:
        cells: list[Cell] = [str(row["system"])]
        for info in infos:
            cells += [measured(row, info), Num(row[f"{info.name}_missing"], "share")]
        rows.append(cells)
    warnings = [told for row in board for info in infos if (told := info.warning(row[info.name], str(row["system"])))]

    def values(info: AnswerMeasureInfo) -> Grid:
        return by_budget(jobs, f"{info.label} by N", lambda metrics: _cell(metrics, info), info.label)

    return [
        Text(f"Means over the topics that have a value, at N = {jobs.n_tokens} tokens. {how}"),
        Grid(name, columns, rows),
        *(Text(f"{warning}.", "note", "warning", "bad") for warning in warnings),
        Fold("By N, with intervals", [values(info) for info in infos]),
    ]


def _cell(metrics: Any, info: AnswerMeasureInfo) -> Num | None:
    if info.name not in metrics:
        return None
    lo, hi = (metrics.get(f"{info.name}{end}") for end in ("_lo", "_hi"))
    return Num(metrics[info.name], "share" if info.unit == "share" else "score", lo, hi)
