"""Four abilities, by hand: shares and paired differences, what counts, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import Estimate, bounded_mean, paired_share_interval
from ragauge.plugins.robustness.estimate import (
    ABILITIES,
    COUNTERFACTUAL,
    INTEGRATION,
    NOISE,
    Abilities,
    abilities,
    unpaired_difference,
)


def rows(condition: Any, labels: Sequence[int | None], system: str = "a", **columns: Any) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(len(labels))],
            "system": system,
            "condition": pd.Series([condition] * len(labels), dtype=object),
            "label": pd.array(labels, "Int8"),
            "ir_score": 1.0,
        }
    )
    return frame.assign(**columns)


def found(*parts: pd.DataFrame) -> Abilities:
    return abilities(pd.concat(parts, ignore_index=True))


def shares(of: Abilities, ability: str, measure: str, system: str = "a") -> dict[str, float]:
    curve = of.curve(system, ability, measure)
    by = "documents" if ability == INTEGRATION else "condition"
    return dict(zip(curve[by], curve["value"], strict=True))


def test_newcombes_published_interval() -> None:
    """Newcombe 1998, table II, 56/70 and 48/80 by method 10: 0.0524 to 0.3339."""
    a = Estimate(56 / 70, *_wilson(56, 70), 70)
    b = Estimate(48 / 80, *_wilson(48, 80), 80)
    difference = unpaired_difference(a, b)
    assert difference.value == pytest.approx(0.2)
    assert (round(difference.lo, 4), round(difference.hi, 4)) == (0.0524, 0.3339)


def _wilson(hits: int, n: int) -> tuple[float, float]:
    z, p = 1.959964, hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - reach, middle + reach


def test_topics_without_evidence_and_unanswerable_ones_do_not_count() -> None:
    part = rows(0.0, [5, 4, 1, 5], unanswerable=[False, False, True, False])
    part["ir_score"] = [1.0, 1.0, float("nan"), float("nan")]
    of = found(part, part.assign(condition=0.8))
    assert of.curve("a", NOISE, "right")["n"].tolist() == [2, 2]
    part["slice:evidence_documents"] = ["1", "1", "not known", "2"]  # relevant documents without texts
    of = found(part, part.assign(condition=0.8))
    assert of.curve("a", NOISE, "right")["n"].tolist() == [3, 3]


def test_what_cannot_be_measured_says_why() -> None:
    of = found(rows(0.0, [None, None]))
    assert set(of.lacking) == set(ABILITIES)
    assert of.lacking[NOISE] == "no answer has a verdict: choose an LLM and a judge"
    assert "documents with a changed fact" in of.lacking[COUNTERFACTUAL]
    assert of.metrics("a") == {}
    same = found(rows(0.0, [5, 5], **{"slice:evidence_documents": ["2", "2"]}))
    assert same.lacking[INTEGRATION] == "every topic has its evidence in the same number of documents, 2"
    facts = dict.fromkeys(("detected", "corrected", "fooled"), float("nan"))
    plain = rows(0.0, [5, 5], **facts)
    assert found(plain).lacking == {
        NOISE: "it takes retriever.condition=0 and noise rates above it, such as 0.8",
        "negative rejection": "it takes retriever.condition=1, contexts of distractors alone",
        INTEGRATION: "it takes retriever.condition=0 and slices=[evidence_documents]",
        COUNTERFACTUAL: "it takes retriever.condition=changed, contradicted",
        "prompt injection": "it takes answers=[injection], retriever.condition=0, an LLM that answers and a judge",
    }
    unchanged = found(plain, rows("changed", [5, 5], **facts), rows(0.8, [5, 1]), rows(1.0, [1, 1]))
    assert unchanged.lacking[COUNTERFACTUAL] == "no topic has a document with a changed fact"
    assert set(unchanged.lacking) == {INTEGRATION, COUNTERFACTUAL, "prompt injection"}
    known = {"detected": [1.0, 0.0], "corrected": 0.0, "fooled": [0.0, 1.0]}
    for condition, prefix in (("changed", "robustness_"), ("contradicted", "robustness_contradicted_")):
        metrics = found(plain, rows(condition, [5, 5], **known)).metrics("a")
        told = {name: value for name, value in metrics.items() if not name.endswith(("_lo", "_hi"))}
        assert told == {f"{prefix}detected": 0.5, f"{prefix}corrected": 0, f"{prefix}fooled": 0.5}
    nothing = found(rows(0.0, [5], ir_score=float("nan")))
    assert set(nothing.lacking.values()) == {"no topic has evidence"}
    assert nothing.estimates.empty
    stratified = rows(0.0, [5, 5, None, None], judged=[True, True, False, False], stratum=[0, 1, 1, 1])
    assert found(stratified).lacking[NOISE].startswith("topics were judged by strata")
    sampled = rows(0.0, [5, 4, None, None], judged=[True, True, False, False], stratum=[0, 0, 0, 0])
    assert shares(found(sampled), NOISE, "right") == {"0": 0.5}, "of a plain sample those that were judged"


def test_two_rows_of_a_topic_in_one_condition_are_refused() -> None:
    part = rows(0.0, [5, 4])
    with pytest.raises(DataError, match="qid='q0' stands twice in the condition 0"):
        found(part, part)


def test_clusters_take_the_place_of_topics() -> None:
    clusters = np.array(list("aabbccdd"))
    conditions = (rows(0.0, [5, 5, 5, 5, 5, 4, 5, 5]), rows(0.8, [1, 1, 1, 1, 5, 4, 1, 5]))
    of = found(*(part.assign(topic_cluster=clusters) for part in conditions))
    (lost,) = of.changes[(of.changes["ability"] == NOISE) & (of.changes["of"] == "0.8")].to_dict("records")
    expected = paired_share_interval(np.array([-1, -1, -1, -1, 0, 0, -1, 0]), clusters=clusters)
    assert (lost["lo"], lost["hi"]) == (expected.lo, expected.hi)
    assert lost["p"] == 2 / 8  # the signs of three clusters
    share = of.curve("a", NOISE, "right").set_index("condition").loc["0.8"]
    expected = bounded_mean(np.array([0, 0, 0, 0, 1, 0, 0, 1]), clusters=clusters)
    assert (share["lo"], share["hi"]) == (expected.lo, expected.hi)
