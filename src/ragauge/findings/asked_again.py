"""The judge asked again: how stable its labels are."""

from __future__ import annotations

from typing import Any

from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.show.formats import whole

_REPEATED = (
    "judge_repeat_pairs",
    "judge_repeat_topics",
    "judge_repeat_kappa",
    "judge_reorder_kappa",
    *(
        f"judge_{name}{end}"
        for name in ("repeat_agreement", "reorder_agreement", "position_effect")
        for end in ("", "_lo", "_hi")
    ),
)


class AskedAgain(Finding):
    """How stable the judge's labels are, as the jobs measured it."""

    name = "asked_again"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """[(systems, {metric: value})], a row for jobs that share the values; None where none was repeated."""
        rows: dict[tuple[float | None, ...], tuple[list[str], dict[str, Any]]] = {}
        for system, record in zip(jobs.systems, jobs.records, strict=True):
            known = {name: record["metrics"].get(name) for name in _REPEATED}
            if known["judge_repeat_pairs"] is not None:
                names, _ = rows.setdefault(tuple(known.values()), ([], known))
                names.append(f"{system}, N = {record['n_tokens']}")
        return Found(list(rows.values())) if rows else None

    def show(self, jobs: Jobs, value: list[tuple[list[str], dict[str, Any]]], found: Founds) -> Shown:
        """Equal labels in the same and in another order."""
        columns = (
            "Jobs | Answers / of topics | Same order / equal labels | κ | Other order / equal labels | κ | "
            "Position effect / points"
        )
        rows: list[list[Cell]] = []
        for names, row in value:
            whole_sweep = len(names) == len(jobs.records) > 1

            def cell(name: str, kind: Any, row: dict[str, Any] = row) -> Num:
                return Num(row[name], kind, row.get(f"{name}_lo"), row.get(f"{name}_hi"))

            rows.append(
                [
                    f"all {len(names)}" if whole_sweep else "; ".join(names),
                    f"{whole(row['judge_repeat_pairs'])} of {whole(row['judge_repeat_topics'])}",
                    cell("judge_repeat_agreement", "share"),
                    Num(row["judge_repeat_kappa"]),
                    cell("judge_reorder_agreement", "share"),
                    Num(row["judge_reorder_kappa"]),
                    cell("judge_position_effect", "points"),
                ]
            )
        about = Text(
            "Topics were judged a second time. Labels that are equal to the first ones when the same request is made "
            "once more lack to 100 % what is noise; in another order of the candidates they lack noise and position. "
            "The position effect is the difference. A judge that sees one answer a request has no order, so no "
            "position effect."
        )
        return Shown([Section("The judge asked again", [about, Grid("The judge asked again", columns, rows)])])
