"""Measures of the rankings over whole documents or chunks; they do not depend on the budget."""

from __future__ import annotations

from ragauge.contract.answer_measures import is_ranking
from ragauge.contract.finding import Cell, Col, Finding, Found, Founds, Grid, Heads, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.findings.hyde_fusion import published_rankings


class Rankings(Finding):
    """nDCG, recall and the like, as the jobs have measured them."""

    name = "rankings"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """{metric: name} in the order of the config; None where no evidence names its document."""
        names = {info.name: info.label for info in jobs.answer_measures if is_ranking(info)}
        for record in jobs.records:
            names = {**record.get("rankings", {}), **names}
        known = {m: name for m, name in names.items() if any(m in r["metrics"] for r in jobs.records)}
        return Found(known) if known else None

    def show(self, jobs: Jobs, value: dict[str, str], found: Founds) -> Shown:
        """A row per system."""
        of_jobs = jobs.metrics_by_system()
        rows: list[list[Cell]] = []
        for row in found["leaderboard"].frame.to_dict("records"):
            metrics = next(iter(of_jobs[row["system"]].values()))
            cells = [
                Num(
                    metrics.get(key),
                    "score",
                    metrics.get(f"{key}_lo"),
                    metrics.get(f"{key}_hi"),
                    "≈ best" if row.get(f"{key}_in_best_set") is True else "",
                )
                for key in value
            ]
            rows.append([str(row["system"]), *cells])
        published = published_rankings(jobs.records)
        rows += [[name, *(Num(of.get(key)) for key in value)] for name, of in published.items()]
        study = (
            " The rows that are called published are those of the study behind `experiment=hyde_fusion`."
            if published
            else ""
        )
        about = Text(
            "Over whole documents, with the documents of the evidence as relevant, or over chunks where a name says "
            "so; they do not depend on N. Means over the topics that have a relevant one, with intervals. The mark "
            f"“≈ best” is as in the leaderboard; the paired tests are among those there.{study}"
        )
        columns: Heads = ["System", *(Col(name) for name in value.values())]
        section = Section("Measures of the rankings", [about, Grid("Measures of the rankings", columns, rows)])
        return Shown([section])
