"""Verdicts by several judge prompts: means over prompts, and intervals that include their choice.

Outcomes have `label` by the first prompt and `label_2`, `label_3` ... by the others, all missing where one is.
Column `prompts_are` says what they are: `fixed`, the prompts that are of interest, or a `sample` of those that
might have been written. `repeats` are verdicts on further answers of the llm, or further verdicts on them. A mean over
them is taken, too, and 0 is a verdict that is missing.
With a sample the mean's error between prompts enters. For P prompts whose estimates have standard deviation s, a side
of the interval at distance d becomes sqrt(d^2 + (t s)^2 / P), t of P - 1 degrees of freedom (Zou & Donner 2008 for the
sum of an error over topics and one over prompts).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ragauge.estimate.intervals import Estimate

FIXED, SAMPLE = CHOICES = ("fixed", "sample")
REPEATS = "repeats"
OF_REPEATS = ["qid", "n_tokens", "sample", "repeat", "answer", "answer_status", "label", "judge_status"]
_OTHER = re.compile(r"label_\d+")


def other_labels(frame: pd.DataFrame) -> list[str]:
    """The columns of verdicts by prompts other than the first."""
    return [str(name) for name in frame if _OTHER.fullmatch(str(name))]


def by_prompt(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The outcomes by each prompt, with one `label`; the frame itself for a single prompt.

    Rows judged by fewer prompts, such as of another run, repeat their first verdict.
    """
    others = other_labels(frame)
    if not others:
        return [frame]
    alone = frame.drop(columns=others)
    labels = (frame[name].astype("Int8").fillna(frame["label"].astype("Int8")) for name in others)
    return [alone, *(alone.assign(label=label.mask(label.eq(0).fillna(False))) for label in labels)]


def are_repeats(frame: pd.DataFrame) -> bool:
    """Whether the further verdicts are repeats and not from other prompts."""
    return "prompts_are" in frame and bool(frame["prompts_are"].eq(REPEATS).any())


def outcomes_of_repeats(rows: pd.DataFrame, repeated: pd.DataFrame, judged: bool = True) -> pd.DataFrame:
    """Outcomes [qid, ...] with the verdicts of `repeated` as label, label_2, ..., and its measures as means.

    repeated: [OF_REPEATS, measure, ...], a row per topic, sample (an answer) and repeat (a verdict on it), from 0. A
    mean is over the answers to a topic that have a value.
    """
    found = rows.assign(prompts_are=REPEATS)
    known = repeated[repeated["judge_status"].notna()]
    parts = [of_part for _, of_part in known.groupby(["sample", "repeat"])][1:] if judged else []
    for number, of_part in enumerate(parts, 2):
        labels = of_part.set_index("qid")["label"].fillna(0)
        found[f"label_{number}"] = found["qid"].map(labels).astype("Int8")
    by_topic = repeated[repeated["repeat"] == 0].groupby("qid")
    means = {name: by_topic[name].mean() for name in repeated.columns.difference(OF_REPEATS, sort=False)}
    return found.assign(**{name: found["qid"].map(of) for name, of in means.items()})


def over_prompts(frame: pd.DataFrame, values: Callable[[pd.DataFrame], np.ndarray]) -> np.ndarray:
    """The mean over prompts of an array computed from each prompt's frame."""
    found = [values(one) for one in by_prompt(frame)]
    return found[0] if len(found) == 1 else np.asarray(np.mean(found, axis=0))


def drawn(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The frames of `by_prompt` if the prompts are a sample of several, else []."""
    frames = by_prompt(frame)
    return frames if len(frames) > 1 and "prompts_are" in frame and frame["prompts_are"].eq(SAMPLE).any() else []


def widened(found: Estimate, of_prompts: Sequence[float], low: float = 0.0) -> Estimate:
    """The estimate in [low, 1] with an interval for sampled prompts; `of_prompts` are its values by prompt."""
    lo, hi = limits(np.array([found.value, found.lo, found.hi]), np.array(of_prompts), found.level, low)
    return replace(found, lo=float(lo), hi=float(hi))


def limits(found: np.ndarray, of_prompts: np.ndarray, level: float, low: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """lo and hi [...] for sampled prompts.

    `found` is [3, ...]: estimates in [low, 1] with lo and hi over topics at `level`; `of_prompts` [prompts, ...].
    """
    from scipy.stats import t

    reach = t.isf((1 - level) / 2, len(of_prompts) - 1) * _error(of_prompts)
    value, lo, hi = found
    return np.maximum(value - np.hypot(value - lo, reach), low), np.minimum(value + np.hypot(hi - value, reach), 1.0)


def p_of_sample(p: float, found: Estimate, of_prompts: Sequence[float]) -> float:
    """p of a zero difference for sampled prompts: the level at which the widened interval ends at 0."""
    from scipy.optimize import brentq
    from scipy.stats import t

    if not p < 1 or not found.value:
        return p
    seen, by_error = float(t.isf(p / 2, found.n - 1)), float(_error(np.array(of_prompts))) / abs(found.value)

    def beyond(at: float) -> float:
        topics, prompts = t.isf(at / 2, [found.n - 1, len(of_prompts) - 1])
        return math.hypot(topics / seen, prompts * by_error) - 1

    return p if by_error == 0 or seen == math.inf else float(brentq(beyond, p, 1))


def _error(of_prompts: np.ndarray) -> np.ndarray:
    """Standard error [...] of the mean over prompts."""
    return np.asarray(of_prompts.std(axis=0, ddof=1) / math.sqrt(len(of_prompts)))
