"""The metrics of one job or of pooled jobs, by MLflow name.

Scores and shares are in [0, 1], money in US dollars, times in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import (
    HEADLINE_SHARES,
    Agreement,
    CrossValidation,
    Estimate,
    Stability,
    Thresholds,
    Zones,
    bounded_mean,
    class_shares,
    cross_validate,
    fit_predictor,
    fit_thresholds,
    fit_zones,
    ppi_shares,
    share_estimates,
)
from ragauge.estimate.board import measured_mean, rejection
from ragauge.estimate.human import human_agreement, human_shares
from ragauge.estimate.outcomes import clusters_of, fit_rows, missing_share, scored, with_classes
from ragauge.estimate.prompts import are_repeats, by_prompt, other_labels


@dataclass(frozen=True)
class Estimates:
    """The estimates from score and class of the outcomes; `model` is None without verdicts.

    `example` are a few rows of the model's features, `metrics` the contract's names and values.
    """

    thresholds: Thresholds
    zones: Zones
    validation: CrossValidation
    model: Any
    example: pd.DataFrame
    metrics: dict[str, float]


def quality(outcomes: pd.DataFrame, sampled: pd.DataFrame | None = None) -> dict[str, float]:
    """IR score and the share of every judge class, each with its 95 % interval over topics (`_lo`, `_hi`).

    The IR score is of the topics that have one, the shares of the rows `with_classes`; both are left out
    where there is none. Unanswerable topics add `rejection_share`. Where only some topics were judged (columns judged
    and p1..p5), the shares are prediction-powered estimates for all topics, beside the classical ones of the headlines.
    `sampled` is the result of `ppi_shares` for these outcomes, where it is known. With several of the judge's prompts
    there is the share of right answers by each, and their spread. Without any verdict there is no share of a class:
    `judge_share_missing` is 1 if a judge was asked, and left out if the job has none.
    """
    values: dict[str, float] = {}
    known = scored(outcomes)
    if len(known):
        values |= with_interval("ir_score", bounded_mean(known["ir_score"], known["qid"], clusters=clusters_of(known)))
    for name, share in rejection(outcomes).items():
        values |= with_interval(name, share)
    outcomes = with_classes(outcomes)
    if outcomes.empty:
        return values
    if outcomes["label"].isna().all():
        asked_of = "judge_status" not in outcomes or outcomes["judge_status"].ne("none").any()
        return {**values, **({"judge_share_missing": 1.0} if asked_of else {})}
    values |= _by_wording(outcomes)
    if "judged" in outcomes:
        sampled = ppi_shares(outcomes) if sampled is None else sampled
        columns = ("effective_n", "classical", "classical_lo", "classical_hi")
        return {
            **values,
            **_sampled_shares(sampled),
            **_headlines(sampled, columns),
            "judged_topics": int(sampled["n_judged"].iloc[0]),
            "judged_of_topics": int(sampled["n_topics"].iloc[0]),
        }
    for name, share in share_estimates(outcomes).items():
        values |= with_interval(name, share)
    return values


def with_interval(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate as the three metrics name, name_lo and name_hi."""
    return {name: estimate.value, f"{name}_lo": estimate.lo, f"{name}_hi": estimate.hi}


def _by_wording(outcomes: pd.DataFrame) -> dict[str, float]:
    """The share of right answers by each judge prompt, and their range; {} for a single prompt."""
    if not other_labels(outcomes) or are_repeats(outcomes):
        return {}
    shares = [
        float(ppi_shares(one)["estimate"].iloc[-1]) if "judged" in one else class_shares(one)["correct_share"]
        for one in by_prompt(outcomes)
    ]
    by_number = {f"correct_share_prompt_{number}": share for number, share in enumerate(shares, 1)}
    return {**by_number, "judge_prompt_spread": max(shares) - min(shares)}


def _sampled_shares(shares: pd.DataFrame) -> dict[str, float]:
    """Every row of `ppi_shares` with its interval."""
    return {
        f"{row['share']}{end}": float(row[column])
        for row in shares.to_dict("records")
        for column, end in (("estimate", ""), ("lo", "_lo"), ("hi", "_hi"))
    }


def answer_measures(
    outcomes: pd.DataFrame, infos: Sequence[AnswerMeasureInfo], n_boot: int, seed: int
) -> dict[str, float]:
    """The mean of every answer measure over topics with a value, with interval and `missing_share`."""
    values: dict[str, float] = {}
    for info in infos:
        name, mean = info.name, measured_mean(outcomes, info, n_boot, seed)
        missing = missing_share(outcomes, info.name)
        values |= {name: mean.value, f"{name}_lo": mean.lo, f"{name}_hi": mean.hi, f"{name}_missing": missing}
    return values


def _headlines(shares: pd.DataFrame, columns: Sequence[str]) -> dict[str, float]:
    """Columns of the headline rows of `ppi_shares`, as <share>_<column>."""
    by_name = shares.set_index("share")[list(columns)].astype(float)
    return {f"{name}_{c}": float(by_name[c][name]) for name in HEADLINE_SHARES for c in columns}


def human(outcomes: pd.DataFrame) -> dict[str, float]:
    """The judge's agreement with column human_label, and prediction-powered shares of human classes.

    {} without a human label. The shares use the judge's verdicts as predictions of the human labels, so every topic
    needs its verdict. With a sample of judged topics, or with labels that are no sample of the topics, there is the
    agreement alone.
    """
    if "human_label" not in outcomes or outcomes["human_label"].isna().all():
        return {}
    values = agreement(human_agreement(outcomes))
    try:
        shares = human_shares(outcomes)
    except DataError:
        return values
    if shares is None:
        return values
    found = _headlines(shares, ("estimate", "lo", "hi", "effective_n", "classical"))
    return values | {f"human_{name.removesuffix('_estimate')}": value for name, value in found.items()}


def agreement(found: Agreement | None) -> dict[str, float]:
    """The number of human labels, Cohen's kappa and the share of equal labels; {} for None."""
    if found is None:
        return {}
    values: dict[str, float] = {"human_labels": found.n + found.n_missing}
    for name, measured in (("judge_kappa", found.kappa), ("judge_agreement", found.agreement)):
        values |= with_interval(name, measured)
    return values


def stability(found: Stability | None) -> dict[str, float]:
    """A judge's agreement with itself, with the number of answers and topics; {} for None.

    judge_repeat_*: the first request once more; judge_reorder_*: the candidates in another order;
    judge_position_effect: their difference. A kappa that is not defined is left out.
    """
    if found is None:
        return {}
    values: dict[str, float] = {"judge_repeat_pairs": found.n_pairs, "judge_repeat_topics": found.n_topics}
    for name, measured in (
        ("judge_repeat_agreement", found.agreement),
        ("judge_repeat_kappa", found.kappa),
        ("judge_reorder_agreement", found.agreement_other),
        ("judge_reorder_kappa", found.kappa_other),
        ("judge_position_effect", found.position_effect),
    ):
        if measured is not None:
            values |= with_interval(name, measured)
    return {name: value for name, value in values.items() if value == value}


def detectable(found: pd.DataFrame | None) -> dict[str, float]:
    """detectable_difference_<measure> and ..._median of `detectable_differences`, without NaN."""
    if found is None:
        return {}
    values: dict[str, float] = {}
    for row in found.to_dict("records"):
        name = f"detectable_difference_{row['measure']}"
        values |= {name: row["difference"], f"{name}_median": row["difference_median"]}
    return {name: float(value) for name, value in values.items() if value == value}


def estimate(
    outcomes: pd.DataFrame,
    n_boot: int,
    seed: int,
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    zones: Mapping[str, float] | None = None,
) -> Estimates:
    """Thresholds, zones and predictor of a frame of outcomes (qid, ir_score, label, and other features).

    Thresholds and zones are of the rows with an IR score, the predictor of those with all features. `zones` are the
    alpha and the confidence of `fit_zones`, where they are not the default ones.
    """
    scores, rows = fit_rows(outcomes), fit_rows(outcomes, features)
    thresholds = fit_thresholds(scores, n_boot, seed)
    zone_pair = fit_zones(scores, **(zones or {}))
    validation = cross_validate(rows, features, spline, calibrate, n_boot=n_boot, seed=seed)
    judged = rows["label"].notna().any()
    predictor = fit_predictor(rows, features, spline, calibrate, seed=seed) if judged else None
    return Estimates(
        thresholds,
        zone_pair,
        validation,
        None if predictor is None else predictor.model,
        rows[list(features)].astype(float).head(5).reset_index(drop=True),
        {**thresholds.metrics(), **zone_pair.metrics(), **validation.metrics()},
    )
