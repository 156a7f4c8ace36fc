"""The best two systems of a sweep side by side on MLflow's page of evaluation runs."""

from __future__ import annotations

from dataclasses import dataclass

from ragauge.contract.finding import Finding, Found, Founds, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.experiment.described import where_text
from ragauge.plugins.mlflow_pages.finding import RUN_TAG


@dataclass(frozen=True)
class Pair:
    """Two systems, the better one first, and how to open the page."""

    systems: tuple[str, str]
    where: str


class SideBySide(Finding):
    """Where the first two systems of the leaderboard stand side by side, question by question."""

    name = "side_by_side"
    after = "topics"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Pair`; None where fewer than two systems have an evaluation run at the budget of the leaderboard."""
        rows = zip(jobs.systems, jobs.records, strict=True)
        of_system = {s: r for s, r in rows if RUN_TAG in r and int(r["n_tokens"]) == jobs.n_tokens}
        best = [system for system in found["leaderboard"].frame["system"] if system in of_system][:2]
        if len(best) < 2:
            return None
        first, second = (of_system[system] for system in best)
        page = comparison_page(first["experiment_id"], first[RUN_TAG], second[RUN_TAG])
        return Found(Pair((best[0], best[1]), where_text(first["tracking_uri"], page)))

    def show(self, jobs: Jobs, value: Pair, found: Founds) -> Shown:
        """The address, on the terminal and in the report."""
        first, second = value.systems
        told = (
            f"MLflow shows the answers of {first} and {second} at N = {jobs.n_tokens} tokens side by side, a row per "
            "question. Its averages leave out missing values and have no intervals; those of this report do."
        )
        return Shown(
            [Section("Answers side by side", [Text(told), Text(f"`{value.where}`", page=_address(value.where))])],
            [f"{first} and {second}, question by question: {value.where.removeprefix('MLflow UI: ')}"],
        )


def _address(where: str) -> str:
    """The address at the end of `where`."""
    return where[where.index("http") :]


def comparison_page(experiment_id: str, run_id: str, other: str) -> str:
    """The address of MLflow's comparison of two evaluation runs, below that of the server."""
    return f"#/experiments/{experiment_id}/evaluation-runs?selectedRunUuid={run_id}&compareToRunUuid={other}"
