"""Stored estimates from the verdicts of one job: metrics, predictor, figure and sampled shares.

They depend on the outcomes and the settings alone: a job whose verdicts are known takes them from the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract import provenance
from ragauge.contract.frames import content_digest
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import CLUSTER, TARGET
from ragauge.estimate import ppi_shares, summary
from ragauge.estimate.outcomes import fit_rows, with_classes
from ragauge.show.drawing import save
from ragauge.show.figures import sorted_scores
from ragauge.store import Key, Store
from ragauge.track import save_predictor

VERSION = 7  # raised when this code gives other numbers or another figure: tests/golden
_PACKAGES = ("mlflow", "numpy", "pandas", "scikit-learn", "scipy")
_METRICS, _PREDICTOR, _FIGURE, _SHARES = (
    "metrics.json", "predictor", "sorted_scores.png", "sampled_shares.parquet",
)  # fmt: skip


@dataclass(frozen=True)
class Findings:
    """The folder of a job's findings in the store."""

    folder: Path

    @property
    def metrics(self) -> dict[str, float]:
        """Every metric of the verdicts, by MLflow name."""
        found: dict[str, float] = json.loads((self.folder / _METRICS).read_text(encoding="utf-8"))
        return found

    @property
    def predictor(self) -> Path | None:
        """The folder of the predictor as an MLflow model; None without a verdict."""
        return self._if_there(_PREDICTOR)

    @property
    def figure(self) -> Path | None:
        """The sorted scores with their thresholds; None without a verdict."""
        return self._if_there(_FIGURE)

    @property
    def sampled_shares(self) -> pd.DataFrame | None:
        """The frame of `ppi_shares`; None if all topics were judged."""
        path = self._if_there(_SHARES)
        return None if path is None else pd.read_parquet(path)

    def _if_there(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.exists() else None


def findings(
    store: Store,
    outcomes: pd.DataFrame,
    name: str,
    n_boot: int,
    seed: int,
    estimate: Mapping[str, Any],
    settings: Mapping[str, Any],
    answer_measures: Sequence[AnswerMeasureInfo] = (),
    floor: float | None = None,
) -> Findings:
    """The estimates from the outcomes of the job `name`, from the store or made now.

    `estimate` are the arguments of `summary.estimate` that the config gives, `settings` what the scores mean
    to a predictor, `answer_measures` the columns that answer measures filled. Outcomes with a sample of judged topics
    have the columns judged, stratum and p1 to p5. `floor` is what unrelated text scores at their budget: a mark in the
    figure.
    """
    named = ("qid", "label", "judged", "human_label", "judge_status", "unanswerable", CLUSTER, "prompts_are", TARGET)
    columns = outcomes.select_dtypes("number").columns.union([c for c in named if c in outcomes], sort=False)
    installed = provenance.installed_packages()
    key = Key(
        "findings",
        VERSION,
        {
            "name": name,
            "bootstrap": n_boot,
            "seed": seed,
            "estimate": dict(estimate),
            "settings": dict(settings),
            "floor": floor,
            "answer_measures": [[info.name, info.unit] for info in answer_measures],
            "packages": {name: installed.get(name, "none") for name in _PACKAGES},
        },
        {"outcomes": content_digest(outcomes[columns])},
    )

    def make(folder: Path) -> None:
        classed = with_classes(outcomes)
        shares = ppi_shares(classed) if "judged" in outcomes and len(classed) else None
        estimates = summary.estimate(outcomes, n_boot, seed, **estimate)
        values = {
            **summary.quality(outcomes, shares),
            **estimates.metrics,
            **summary.human(outcomes),
            **summary.answer_measures(outcomes, answer_measures, n_boot, seed),
        }
        (folder / _METRICS).write_text(json.dumps(values, default=float), encoding="utf-8")
        if shares is not None:
            shares.to_parquet(folder / _SHARES, index=False)
        if estimates.model is not None:
            save_predictor(folder / _PREDICTOR, estimates.model, estimates.example, settings)
        if estimates.thresholds.k.n:
            drawn = sorted_scores(fit_rows(outcomes), estimates.thresholds, name, estimates.zones, floor)
            save(drawn, folder / _FIGURE)

    return Findings(store.get(key, make).path)
