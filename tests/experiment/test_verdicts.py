"""Which topics are judged where a predictor chooses them, for several systems at once."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd

from ragauge.estimate import choose_topics
from ragauge.estimate.topic_samples import Sample
from ragauge.experiment.measured import sample_topics
from ragauge.experiment.stages.pipeline import Pipeline

QIDS = [f"q{i:03d}" for i in range(120)]


class RightAsOftenAsTheScore:
    """A predictor whose P(5) is the IR score."""

    feature_names_in_ = ("ir_score",)
    classes_ = np.arange(1, 6)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        score = frame["ir_score"].to_numpy(dtype=float)
        return np.column_stack([1 - score, *[np.zeros_like(score)] * 3, score])


class Retrieved:
    """What `sample_topics` uses of a pipeline."""

    sampled_by_prediction = True

    def __init__(self, scores: np.ndarray) -> None:
        self.sample = Sample(n=60, seed=2, design="neyman")
        self.foreseeing = pd.DataFrame({"qid": QIDS, "ir_score": scores})
        self.sampled: pd.DataFrame | None = None

    def set_sampled(self, frame: pd.DataFrame) -> None:
        self.sampled = frame


def test_the_topics_of_a_sample_are_chosen_by_what_all_systems_retrieved() -> None:
    rng = np.random.default_rng(0)
    first, second = Retrieved(rng.random(120)), Retrieved(rng.random(120))
    predictor: Any = RightAsOftenAsTheScore()
    sample_topics([cast(Pipeline, first), cast(Pipeline, second)], predictor)
    assert first.sampled is not None
    pd.testing.assert_frame_equal(first.sampled, cast(pd.DataFrame, second.sampled))

    def chosen(*of: Retrieved) -> pd.DataFrame:
        p5 = pd.concat([r.foreseeing.set_index("qid")["ir_score"] for r in of])
        return choose_topics(p5, 60, seed=2, design="neyman")

    pd.testing.assert_frame_equal(first.sampled, chosen(first, second))
    assert not first.sampled["judged"].equals(chosen(first)["judged"])
