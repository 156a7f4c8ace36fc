"""A predictor of judge classes from all judged rows: one model for many sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_flag, require_number
from ragauge.contract.errors import DataError
from ragauge.contract.metrics import IR_SCORE
from ragauge.contract.option import CONF, option
from ragauge.contract.outcomes import FEATURES
from ragauge.estimate import cross_validate, fit_predictor
from ragauge.plugins.foresee.reference import as_settings
from ragauge.plugins.training.contract import Fitted, RunsTrainer, Trained
from ragauge.plugins.training.trainers.sources import POOLED, beside_other_fits, mean_errors
from ragauge.plugins.transfer.measured import leave_one_out, transfer_metrics

LEAVE_OUT = ("sweep", "dataset", "llm", "retriever")


@option("trainer/predictor")
class PredictorTrainer(RunsTrainer):
    """Multinomial logistic regression of judge classes on `features` (`ragauge.estimate.fit_predictor`).

    It is tested on topics that it has not seen (cross-validation by topic) and on groups of runs that it has not seen.
    For the latter each column of `leave_out` whose rows have several values is left out in turn.
    """

    component = "predictor"
    version = 2
    kind = "predictor"

    features: Sequence[str] = CONF
    spline: bool = CONF
    calibrate: bool = CONF
    penalty: float = CONF
    leave_out: Sequence[str] = CONF

    def __post_init__(self) -> None:
        for key in ("features", "leave_out"):
            given = getattr(self, key)
            object.__setattr__(self, key, (given,) if isinstance(given, str) else tuple(map(str, given)))
        once = len(set(self.features)) == len(self.features) > 0
        what = f"{', '.join(FEATURES)} and names of the runs' measures that look at no answer, each once"
        require("trainer.features", list(self.features), once, what)
        known = set(self.leave_out) <= set(LEAVE_OUT) and len(set(self.leave_out)) == len(self.leave_out)
        require("trainer.leave_out", list(self.leave_out), known, f"{', '.join(LEAVE_OUT)}, each once")
        require_flag("trainer.spline", self.spline)
        require_flag("trainer.calibrate", self.calibrate)
        bends = not self.spline or "ir_score" in self.features
        require("trainer.spline", self.spline, bends, "false where ir_score is not among trainer.features")
        require_number("trainer.penalty", self.penalty, 0, above=True)

    def fit(
        self, outcomes: pd.DataFrame, n_boot: int, seed: int, embed: Callable[[Sequence[str]], np.ndarray] | None = None
    ) -> Fitted:
        """The predictor of all rows, and its errors on held-out topics and groups.

        Tables: transfer_<by> (`ragauge.plugins.training.trainers.sources.beside_other_fits`), reliability. Values:
        predictor_* of the cross-validation, transfer_* as a sweep logs them, and
        transfer_<by>_error_<fit>, the mean absolute difference on these very topics. DataError where labels
        or topics are too few to learn from.
        """
        rows = self._learnable(outcomes)
        how = (self.features, self.spline, self.calibrate, self.penalty)
        validation = cross_validate(rows, *how, seed=seed, n_boot=n_boot)
        predictor = fit_predictor(rows, *how, seed=seed)
        values = {
            "judged_rows": len(rows),
            "rows_left_out": len(outcomes) - len(rows),
            "topics": rows["qid"].nunique(),
            **validation.metrics(),
        }
        tables = {"reliability": validation.reliability}
        moved, off = {}, dict[str, float]()
        for by in (by for by in self.leave_out if rows[by].nunique() > 1):
            moved[by] = leave_one_out(rows, by, *how, n_boot=n_boot, seed=seed)
            tables[f"transfer_{by}"] = beside_other_fits(moved[by], rows, "sweep", *how, seed=seed)
            for fit, error in mean_errors(tables[f"transfer_{by}"]).items():
                values[f"transfer_{by}_error_{fit.replace(' ', '_')}"] = error
                off |= {by: error} if fit == POOLED else {}
        values |= transfer_metrics(moved)
        example = rows[list(self.features)].astype(float).head(5).reset_index(drop=True)
        values = {name: float(value) for name, value in values.items() if value == value}
        facts = {"Features": ", ".join(self.features), f"{IR_SCORE.label} as a spline": "yes" if self.spline else "no"}
        fitted_by = {"spline": self.spline, "calibrate": self.calibrate, "penalty": self.penalty}
        kept = as_settings(rows, self.features, fitted_by, off, seed)
        return Fitted(predictor.model, example, Trained(tables, values, facts), kept)

    def _learnable(self, outcomes: pd.DataFrame) -> pd.DataFrame:
        """The rows that have a label and every feature."""
        judged = outcomes[outcomes["label"].notna()]
        absent = [name for name in self.features if name not in judged]
        if absent:
            raise DataError(f"trainer.features: the runs did not record {', '.join(absent)}")
        rows = judged.dropna(subset=list(self.features)).reset_index(drop=True)
        if rows.empty:
            raise DataError(
                f"runs: {len(outcomes)} outcomes, {len(judged)} of them with a label, and none that has "
                f"{', '.join(self.features)}, too: a predictor needs judged rows"
            )
        if rows["label"].nunique() < 2:
            raise DataError(
                f"runs: all {len(rows)} labels are of class {rows['label'].iloc[0]}; a predictor learns to "
                "tell at least two classes apart"
            )
        if rows["qid"].nunique() < 2:
            raise DataError(
                f"runs: {len(rows)} judged rows are of one topic; whether a predictor holds on other topics "
                "takes at least two"
            )
        return rows
