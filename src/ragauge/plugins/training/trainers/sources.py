"""Class shares of a left-out group, by predictors fitted on different rows.

`ragauge.plugins.transfer` says how far one predictor of everything else is off. Here it stands beside the
constant and the predictors of single sources, on the same topics. A predictor of the group's own rows has no place
among them. The mean of a logistic regression's predictions is the mean of its data, so it is never off on the topics
that it shares with the judged shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.estimate.outcomes import CLASSES, check_outcomes, topic_codes, units_of
from ragauge.estimate.predictor import fit_predictor
from ragauge.plugins.transfer.measured import Transfer
from ragauge.plugins.transfer.refits import Options, Samples, folds_of, judged_rows

POOLED, CONSTANT, SINGLE = "all others", "constant", "single"
COLUMNS = ["group", "fitted_on", "source", "class", "predicted", "judged", "difference", "lo", "hi", "n"]


def beside_other_fits(
    moved: Transfer,
    frame: pd.DataFrame,
    source: str = "sweep",
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    penalty: float = 1.0,
    seed: int = 0,
) -> pd.DataFrame:
    """The rows of `moved.table`, and predictions by other fits for the same topics: `COLUMNS`.

    `moved` is what `leave_one_out` makes of the frame with the same arguments. `fitted_on` names the rows of the fit.
    `all others` is the predictor of all other groups, as in `moved`, and `constant` their class shares. `single` is the
    rows of one `source` (a column of the frame) that are not of the group. A row is predicted by a fit on other topics,
    in the folds of `leave_one_out`. Intervals stand beside `all others` alone.
    """
    if moved.table.empty:
        return pd.DataFrame(columns=COLUMNS)
    check_outcomes(frame, features, ("qid", moved.by, source))
    rows, truth, weights = judged_rows(frame)
    topics, _ = topic_codes(units_of(rows))
    fold = folds_of(topics, seed)
    samples = Samples(rows, weights, fold, Options(features, spline, calibrate, penalty, seed))
    groups, names = pd.factorize(rows[moved.by], sort=True)
    sources, source_names = pd.factorize(rows[source], sort=True)

    def predicted(out: np.ndarray, may_train: np.ndarray, constant: bool) -> np.ndarray | None:
        """float64 [5]: predicted class shares of the rows `out`; None if one of their folds has no rows to fit on."""
        total = np.zeros(len(CLASSES))
        for number in np.unique(fold[out]):
            here, train = out & (fold == number), may_train & (fold != number)
            if not train.any():
                return None
            if constant:
                total += weights[here].sum() * np.average(truth[train], axis=0, weights=weights[train])
                continue
            fitted = fit_predictor(samples.of(train), features, spline, calibrate, penalty, seed)
            total += weights[here] @ fitted.predict_proba(rows.loc[here])
        return np.asarray(total / weights[out].sum())

    found = [moved.table.assign(fitted_on=POOLED, source="")]
    for number, name in enumerate(names):
        out = groups == number
        judged = np.average(truth[out], axis=0, weights=weights[out])
        fits = [(CONSTANT, "", ~out)]
        fits += [(SINGLE, str(s), (sources == at) & ~out) for at, s in enumerate(source_names)]
        for kind, of, train in fits:
            shares = predicted(out, train, kind == CONSTANT)
            if shares is None:
                continue
            found.append(
                pd.DataFrame(
                    {
                        "group": name,
                        "fitted_on": kind,
                        "source": of,
                        "class": CLASSES,
                        "predicted": shares,
                        "judged": judged,
                        "difference": shares - judged,
                        "lo": np.nan,
                        "hi": np.nan,
                        "n": int(out.sum()),
                    }
                )
            )
    return pd.concat(found, ignore_index=True)[COLUMNS].sort_values("group", kind="stable", ignore_index=True)


def mean_errors(table: pd.DataFrame) -> dict[str, float]:
    """The mean absolute difference of each `fitted_on` of `beside_other_fits`, in shares. All groups count equally, and
    all sources of a group.
    """
    absolute = table.assign(error=table["difference"].abs())
    of_fit = absolute.groupby(["fitted_on", "group", "source"], sort=False)["error"].mean()
    means = of_fit.groupby(level=["fitted_on", "group"], sort=False).mean().groupby(level="fitted_on").mean()
    return {str(name): float(value) for name, value in means.items()}
