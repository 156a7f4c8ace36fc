"""The judge's expected error on every answer, and the share of the sample that ignores it.

Probabilities that grow with the root of the expected squared error give the narrowest interval (Neyman 1934; for judges
Angelopoulos et al. 2025, arXiv:2506.07949). A share of uniform probabilities is mixed in. It bounds the variance of the
correction: at most 1 / share times that of a uniform sample, whatever the judge's errors are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.outcomes import PROBABILITY_COLUMNS
from ragauge.estimate.outcomes import RIGHT, class_indicators, labels_of, topic_codes, topic_folds
from ragauge.estimate.pairs import OF_CLASSES, of_class
from ragauge.estimate.ppi import cross_fit
from ragauge.estimate.prompts import over_prompts

UNIFORM = 0.7  # where no labels show that the expectation holds
_SHARES = (0.2, 0.4, 0.6)  # of uniform, where earlier labels show that the expectation holds
_ERROR = 0.1  # of a judge that nothing is known of
_LEAST, _LEAST_ERRORS, _FOLDS = 30, 5, 5
_PENALTY = 3.0  # scikit-learn's C


@dataclass(frozen=True)
class Expected:
    """sizes: of every row; drawing probabilities within a system are proportional to them. uniform: the share equal
    for all answers. learnt_from: the number of labelled answers behind the judge's expected errors, 0 for none.
    """

    sizes: np.ndarray
    uniform: float
    learnt_from: int


def expected(frame: pd.DataFrame, uniform: float | None = None, seed: int = 0) -> Expected:
    """The sizes to which drawing probabilities are proportional.

    `frame` has a row per answer: qid, system, label, ir_score, those of other prompts (`label_2` ...), and
    `earlier_human`, the class that people gave the answer before (missing for most). `uniform` in (0, 1] sets the share
    that is uniform.
    """
    said = of_class(labels_of(frame))
    wrong = _wrong(frame, said, seed)
    earlier = frame["earlier_human"].astype("Int64").fillna(0).to_numpy(dtype=np.int64)
    people, known = of_class(earlier), earlier > 0
    errors = np.column_stack([people[name] != said[name] for name in OF_CLASSES])
    learnt = int(known.sum()) >= _LEAST and int(errors[known].any(axis=1).sum()) >= _LEAST_ERRORS
    if learnt:
        wrong = _learnt(frame, wrong, errors, known, seed)
    left = [_left(wrong[:, k], said[name]) for k, name in enumerate(OF_CLASSES)]
    of_answer = np.sum(
        [(1 - v) * right + v * otherwise for v, (right, otherwise) in zip(wrong.T, left, strict=True)], 0
    )
    sizes = np.sqrt(of_answer + 1e-6)
    sizes /= pd.Series(sizes).groupby(frame["system"].to_numpy()).transform("mean").to_numpy()
    if uniform is None:
        seen = np.sum([np.where(e, *pair[::-1]) for e, pair in zip(errors.T, left, strict=True)], axis=0)
        uniform = _share(sizes[known], seen[known], frame.loc[known, "qid"]) if learnt else UNIFORM
    return Expected(uniform + (1 - uniform) * sizes, uniform, int(known.sum()) if learnt else 0)


def _wrong(frame: pd.DataFrame, said: dict[str, np.ndarray], seed: int) -> np.ndarray:
    """float64 [answers, OF_CLASSES]: the probability that the judge is wrong, from its verdicts alone.

    Bayes' rule for a judge that errs on one of ten answers of every kind: a verdict that the predictor (of the verdict
    from the IR score, cross-fitted) finds improbable is wrong more often. With several prompts the variance of their
    verdicts is added.
    """
    found = cross_fit(frame.assign(judged=True), seed=seed)[list(PROBABILITY_COLUMNS)].to_numpy(dtype=float)
    members = class_indicators(np.arange(1, found.shape[1] + 1))
    share = {name: found @ (members @ of_class(np.arange(1, 6))[name]) for name in OF_CLASSES}
    spread = over_prompts(frame, lambda one: np.column_stack([of_class(labels_of(one))[name] for name in OF_CLASSES]))
    columns = []
    for k, name in enumerate(OF_CLASSES):
        p = np.clip(np.where(said[name] > 0, share[name], 1 - share[name]), 0.01, 0.99)
        odds = _ERROR / (1 - _ERROR) * (1 - p) / p
        columns.append(np.clip(odds / (1 + odds) + spread[:, k] * (1 - spread[:, k]), 0, 1))
    return np.column_stack(columns)


def _learnt(frame: pd.DataFrame, wrong: np.ndarray, errors: np.ndarray, known: np.ndarray, seed: int) -> np.ndarray:
    """`_wrong` corrected by labels: logistic regression on it, the IR score and the verdict's class.

    A labelled answer is predicted by a model that did not see its topic, the others by the mean of the models.
    """
    from sklearn.linear_model import LogisticRegression

    prior = np.log(np.clip(wrong, 1e-3, 0.999) / (1 - np.clip(wrong, 1e-3, 0.999)))
    scores = frame["ir_score"].astype(float).fillna(frame["ir_score"].astype(float).mean()).fillna(0).to_numpy()
    verdict = class_indicators(labels_of(frame))
    x = np.column_stack([prior, scores, verdict, scores * verdict[:, RIGHT - 1]])
    topics, n_topics = topic_codes(frame["qid"])
    fold = topic_folds(topics, n_topics, _FOLDS, seed)
    found = np.zeros_like(wrong)
    for number in range(_FOLDS):
        inside, seen = known & (fold == number), known & (fold != number)
        for k in range(errors.shape[1]):
            if errors[seen, k].all() or not errors[seen, k].any():
                at = np.full(len(x), errors[seen, k].mean())
            else:
                model: Any = LogisticRegression(C=_PENALTY, max_iter=500).fit(x[seen], errors[seen, k])
                at = model.predict_proba(x)[:, 1]
            found[inside, k] = at[inside]
            found[~known, k] += at[~known] / _FOLDS
    return found


def _left(wrong: np.ndarray, said: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64 [answers] each: the estimate's squared residual if the judge is right and if it is wrong.

    The estimate shrinks verdicts to their mean by about the slope of labels on verdicts (`weighted_means`).
    """
    yes = said > 0
    of_yes, of_no = (float(wrong[side].mean()) if side.any() else 0.0 for side in (yes, ~yes))
    at = said.mean() + min(max(1 - of_yes - of_no, 0.0), 1.0) * (said - said.mean())
    return (said - at) ** 2, (1 - said - at) ** 2


def _share(sizes: np.ndarray, seen: np.ndarray, qids: pd.Series) -> float:
    """The uniform share with the smallest variance on the earlier labels, by one standard error; UNIFORM for none.

    `seen` [labelled answers] are squared errors. The variance of a design is in proportion to the sum of the squared
    error over the probability.
    """
    gains = pd.DataFrame({share: seen * (1 - 1 / (share + (1 - share) * sizes)) for share in _SHARES})
    of_topic = gains.groupby(qids.to_numpy()).mean()
    sure = of_topic.mean() - of_topic.std() / np.sqrt(len(of_topic))
    return float(sure.idxmax()) if sure.max() > 0 else UNIFORM
