"""Thresholds, zones and the predictor as the report shows them; numbers are put in by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate import Zone, Zones
from ragauge.estimate.intervals import Estimate
from ragauge.estimate.thresholds import Threshold
from ragauge.findings.terminal import WIDTH
from ragauge.findings.thresholds import (
    PredictorFound,
    ZonesFound,
    _without_zones,
    predictor_line,
    threshold_line,
    zone_blocks,
)
from sweep_records import record_of

JOBS = SimpleNamespace(records=[record_of(estimate={"features": ["ir_score"]})])


def interval(left: float, right: float) -> pd.Interval:
    return pd.Interval(left, right, closed="left")


def threshold(**changes: Any) -> Threshold:
    known = {
        "side": "above", "value": 0.625, "lo": 0.5, "hi": 0.75, "interval": interval(0.6, 0.65),
        "intervals": (interval(0.6, 0.65),), "accuracy": 0.9, "base_rate": 0.7, "degenerate": "", "disagreements": 4,
        "log_likelihood": -1.0, "n": 40, "not_rejected": (interval(0.4, 0.5), interval(0.6, 0.7)),
        "gain": Estimate(0.2, 0.1, 0.3, 40),
    }  # fmt: skip
    return Threshold(**(known | changes))


def test_a_threshold_in_a_line_says_whether_it_is_useful() -> None:
    line = threshold_line("k", "right above", threshold())
    assert line == "k = 0.625, right above: 20.0 points over guessing (10.0 to 30.0), useful"
    weak = threshold(gain=Estimate(-0.123, -0.13, -0.106, 40))
    line = threshold_line("h", "lack of information below", weak)
    assert line == "h = 0.625, lack below: -12.3 points over guessing (-13.0 to -10.6), no use shown"
    assert len(line) == WIDTH
    for degenerate, says in (("always", "every score lies above it"), ("never", "no score lies above it")):
        flat = threshold_line("k", "right above", threshold(degenerate=degenerate))
        assert flat == f"k = 0.625, right above: {says}, no use shown"


def test_a_zone_says_what_holds_in_it_or_why_there_is_none() -> None:
    zones = Zones(Zone("above", 5, 0.75, 10, 40, 0.1), Zone("below", 1, np.nan, 0, 40, np.nan, "too few topics"),
                  alpha=0.2, confidence=0.9, n_topics=40)  # fmt: skip
    about, right, lack, small = (block.text for block in zone_blocks(zones))
    assert "with 90 % confidence, at most 20 % of the answers" in about
    assert right == (
        "Above 0.75 at most 20 % of the answers are not right. 25.0 % of all answers lie there; 10.0 % of these were "
        "not right."
    )
    assert lack == "There is no zone for “a lack of information”: too few topics."
    assert "Learn then Test" in small
    jobs: Any = None
    assert [section.heading for section in ZonesFound().show(jobs, zones, {}).sections] == ["Zones with a guarantee"]
    none = replace(zones, right=Zone("above", 5, np.nan, 0, 40, np.nan, "no threshold holds"))
    assert not ZonesFound().show(jobs, none, {}).sections
    (text,) = _without_zones(none)
    assert text.text.endswith("Right answers: no threshold holds. Lack of information: too few topics.")


@pytest.mark.parametrize(("lo", "below"), [(0.7, "0.700 to 0.900; 0.5 is chance"), (np.nan, "0.5 is chance")])
def test_the_predictor_s_card_has_an_interval_where_there_is_one(lo: float, below: str) -> None:
    names = ("auc_correct", "auc_lack", "log_loss", "log_loss_base", "brier", "brier_base", "ece")
    estimates = {name: Estimate(0.8, lo, 0.9, 40) for name in names}
    curve = pd.DataFrame({"predicted": [0.1, 0.9], "observed": [0.2, 0.8], "n": [40, 0]})
    value = SimpleNamespace(estimates=estimates, reliability=curve, n_splits=5)
    shown = PredictorFound().show(JOBS, value, {})  # type: ignore[arg-type]
    (card,) = shown.cards
    assert (card.number, card.below) == ("AUC 0.800", below)
    assert shown.lines == ["predictor, on unseen topics: AUC 0.800 for right answers, 0.800 for lack"]
    never_lacks = SimpleNamespace(estimates=estimates | {"auc_lack": Estimate(np.nan, np.nan, np.nan, 0)})
    assert predictor_line(never_lacks, {}) == "predictor, on unseen topics: AUC 0.800 for right answers"
    none = estimates | {"auc_correct": Estimate(np.nan, np.nan, np.nan, 0)}
    without = SimpleNamespace(estimates=none, reliability=curve, n_splits=5)
    assert PredictorFound().show(JOBS, without, {}).cards == []  # type: ignore[arg-type]
    moved = {by: SimpleNamespace(mean_absolute_error=Estimate(error, 0, 1, 40))
             for by, error in (("retriever", np.nan), ("llm", 0.0212))}  # fmt: skip
    shown = PredictorFound().show(JOBS, value, {"transfer": moved})  # type: ignore[arg-type]
    assert shown.lines == ["predictor: an unseen llm's shares 2.1 points off on average; AUC 0.800"]
    (points,) = shown.figures["reliability"].axes[0].collections
    assert points.get_offsets().tolist() == [[0.1, 0.2]]  # an empty bin is not drawn
