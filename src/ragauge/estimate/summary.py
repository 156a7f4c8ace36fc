"""The metrics of one job or of pooled jobs, under the names that MLflow shows.

Scores and shares are in [0, 1], money in US dollars, times in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.estimate import (
    HEADLINE_SHARES,
    Agreement,
    CrossValidation,
    Thresholds,
    bootstrap_mean,
    class_shares,
    cross_validate,
    fit_predictor,
    fit_thresholds,
    ppi_shares,
)
from ragauge.estimate.human import human_agreement, human_shares


@dataclass(frozen=True)
class Estimates:
    """What the outcomes say of score and class; `model` is None where no row has a verdict.

    `example` are a few rows of the model's features, `metrics` the contract's names and values.
    """

    thresholds: Thresholds
    validation: CrossValidation
    model: Any
    example: pd.DataFrame
    metrics: dict[str, float]


def quality(
    outcomes: pd.DataFrame, n_boot: int, seed: int, sampled: pd.DataFrame | None = None
) -> dict[str, float]:
    """IR score and correct share with 95 % intervals over topics, and the share of every judge class.

    Where only some topics were judged (columns judged and p1..p5), the shares are prediction-powered
    estimates for all topics, beside the classical ones of the headlines; `sampled` is what `ppi_shares`
    makes of the outcomes, where that is known.
    """
    score = bootstrap_mean(outcomes["ir_score"], outcomes["qid"], n_boot, seed)
    values = {"ir_score": score.value, "ir_score_lo": score.lo, "ir_score_hi": score.hi}
    if "judged" in outcomes:
        sampled = ppi_shares(outcomes) if sampled is None else sampled
        of_classes = sampled.set_index("share")["estimate"].astype(float)
        columns = ("lo", "hi", "effective_n", "classical", "classical_lo", "classical_hi")
        return {
            **values,
            **{str(name): float(share) for name, share in of_classes.items()},
            **_headlines(sampled, columns),
            "judged_topics": int(sampled["n_judged"].iloc[0]),
        }
    right = bootstrap_mean(outcomes["label"].eq(5).fillna(False), outcomes["qid"], n_boot, seed)
    return {
        **values,
        **class_shares(outcomes),
        "correct_share_lo": right.lo,
        "correct_share_hi": right.hi,
    }


def answer_measures(outcomes: pd.DataFrame, names: Sequence[str], n_boot: int, seed: int) -> dict[str, float]:
    """Of every answer measure the mean over topics that have a value, its interval, and the share without."""
    values: dict[str, float] = {}
    for name in names:
        column = outcomes[name].astype(float)
        known = column.notna()
        mean = bootstrap_mean(column[known], outcomes.loc[known, "qid"], n_boot, seed)
        missing = 1 - float(known.mean()) if len(column) else float("nan")
        values |= {name: mean.value, f"{name}_lo": mean.lo, f"{name}_hi": mean.hi, f"{name}_missing": missing}
    return values


def _headlines(shares: pd.DataFrame, columns: Sequence[str]) -> dict[str, float]:
    """Columns of the rows of `ppi_shares` that are headlines, as <share>_<column>."""
    by_name = shares.set_index("share")[list(columns)].astype(float)
    return {f"{name}_{c}": float(by_name[c][name]) for name in HEADLINE_SHARES for c in columns}


def human(outcomes: pd.DataFrame, n_boot: int, seed: int) -> dict[str, float]:
    """The judge's agreement with people (column human_label), and prediction-powered shares of their classes.

    {} without a human label. The shares take the judge's verdicts for predictions of the human labels, so
    every topic needs its verdict: with a sample of judged topics there is the agreement alone.
    """
    if "human_label" not in outcomes or outcomes["human_label"].isna().all():
        return {}
    values = agreement(human_agreement(outcomes, n_boot, seed))
    shares = human_shares(outcomes)
    if shares is None:
        return values
    found = _headlines(shares, ("estimate", "lo", "hi", "effective_n", "classical"))
    return values | {f"human_{name.removesuffix('_estimate')}": value for name, value in found.items()}


def agreement(found: Agreement | None) -> dict[str, float]:
    """How many human labels there are, Cohen's kappa and the share of equal labels; {} for None."""
    if found is None:
        return {}
    values: dict[str, float] = {"human_labels": found.n + found.n_missing}
    for name, measured in (("judge_kappa", found.kappa), ("judge_agreement", found.agreement)):
        values |= {name: measured.value, f"{name}_lo": measured.lo, f"{name}_hi": measured.hi}
    return values


def estimate(
    outcomes: pd.DataFrame,
    n_boot: int,
    seed: int,
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
) -> Estimates:
    """Thresholds and predictor of a frame of outcomes (qid, ir_score, label, and the other features)."""
    thresholds = fit_thresholds(outcomes, n_boot, seed)
    validation = cross_validate(outcomes, features, spline, calibrate, n_boot=n_boot, seed=seed)
    judged = outcomes["label"].notna().any()
    predictor = fit_predictor(outcomes, features, spline, calibrate, seed=seed) if judged else None
    return Estimates(
        thresholds,
        validation,
        None if predictor is None else predictor.model,
        outcomes[list(features)].astype(float).head(5).reset_index(drop=True),
        {**thresholds.metrics(), **validation.metrics()},
    )
