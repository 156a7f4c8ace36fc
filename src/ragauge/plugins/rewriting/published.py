"""The published tables of the study behind `experiment=hyde_fusion`, beside one's own rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord


class Published(Finding):
    """The results of the study, if the jobs have its preset."""

    name = "published_rankings"
    after = "rankings"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`published_rankings`; None without the preset or measures of rankings."""
        value = published_rankings(jobs.records)
        return Found(value) if value and "rankings" in found else None

    def show(self, jobs: Jobs, value: dict[str, dict[str, float]], found: Founds) -> Shown:
        """A row per system of the study, in the columns of the preceding table."""
        measures = found["rankings"]
        rows: list[list[Cell]] = [[name, *(Num(of.get(key)) for key in measures)] for name, of in value.items()]
        title = "Measures of the rankings, as published"
        about = Text("The tables of the study behind `experiment=hyde_fusion`, on its own questions.")
        return Shown([Section(title, [about, Grid(title, ["System", *measures.values()], rows)])])


PRESET = "hyde_fusion"

_TABLES: Mapping[str, Mapping[str, Sequence[float]]] = {
    "simple, tuned encoder": {
        "p": (0.87, 0.679, 0.582667, 0.5185, 0.4556),
        "r": (0.326167, 0.495167, 0.629333, 0.738833, 0.805167),
        "f1": (0.4678, 0.562867, 0.594533, 0.599119, 0.572635),
    },
    "HyDE": {
        "p": (0.644, 0.507, 0.426, 0.382, 0.338),
        "r": (0.241667, 0.369333, 0.460167, 0.545667, 0.599667),
        "f1": (0.346467, 0.4198, 0.434552, 0.441619, 0.425206),
    },
    "RAG-Fusion": {
        "p": (0.862, 0.669, 0.576667, 0.5245, 0.4752),
        "r": (0.322, 0.485333, 0.620167, 0.743167, 0.838333),
        "f1": (0.4624, 0.553, 0.58741, 0.604833, 0.597024),
    },
    "RAG-Fusion, tuned reranker": {"f1": (0.508, 0.577, 0.602, 0.618, 0.613)},
}


def published_rankings(records: Sequence[JobRecord]) -> dict[str, dict[str, float]]:
    """{name: {metric: value}} of the study's tables, if the jobs have its preset; else {}.

    The metrics are named as MLflow's are: p_at_1 to f1_at_5.
    """
    if any(record.choices.get("experiment") != PRESET for record in records):
        return {}
    return {
        f"{name} (published)": {
            f"{measure}_at_{k}": value for measure, values in table.items() for k, value in enumerate(values, 1)
        }
        for name, table in _TABLES.items()
    }
