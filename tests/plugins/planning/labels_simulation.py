"""Whether planned numbers of labels keep what they promise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.special import expit

from ragauge.estimate.ppi import ppi_shares
from ragauge.plugins.planning.labels import labels_for_width, plan_labels


def _labelled(n: int, slope: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Right or not of n topics, and a calibrated prediction of it."""
    p = expit(slope * (rng.random(n) - 0.6))
    return rng.random(n) < p, p


def widths_of_planned_labels(
    n_topics: int, slope: float, width: float, trials: int, seed: int
) -> tuple[int, float, float]:
    """Planned labels for an interval of the width, the mean width that `ppi_shares` gives, its coverage."""
    rng = np.random.default_rng(seed)
    y, f = _labelled(1_000_000, slope, rng)
    share, rho = float(y.mean()), float(np.corrcoef(y, f)[0, 1])
    n = int(labels_for_width(share, width, 0.95, rho, float(y.std() / f.std()), n_topics))
    widths, covered = [], 0
    for _ in range(trials):
        y, f = _labelled(n_topics, slope, rng)
        judged = np.zeros(n_topics, dtype=bool)
        judged[rng.choice(n_topics, n, replace=False)] = True
        frame = pd.DataFrame({"qid": np.arange(n_topics), "label": np.where(y, 5, 4), "judged": judged})
        found = ppi_shares(frame.assign(p1=0.0, p2=0.0, p3=0.0, p4=1 - f, p5=f)).iloc[-1]
        widths.append(found["hi"] - found["lo"])
        covered += found["lo"] <= share <= found["hi"]
    return n, float(np.mean(widths)), covered / trials


def pilots_with_labels(n_pilot: int, trials: int, seed: int) -> tuple[float, float]:
    """How many pilots plan enough human labels for a width of 0.1 with the judge: as seen, with confidence.

    The judge is wrong in one of ten; the study has 2,000 topics.
    """
    rng = np.random.default_rng(seed)
    share, error, n_topics = 0.3, 0.1, 2000
    judged = share * (1 - error) + (1 - share) * error
    rho = (share * (1 - error) - share * judged) / math.sqrt(share * (1 - share) * judged * (1 - judged))
    ratio = math.sqrt(share * (1 - share) / judged / (1 - judged))
    needed = labels_for_width(share, 0.1, 0.95, rho, ratio, n_topics)
    enough = np.zeros(2)
    for _ in range(trials):
        people = np.where(rng.random(n_pilot) < share, 5, 4)
        verdicts = np.where(rng.random(n_pilot) < error, 9 - people, people)
        frame = pd.DataFrame(
            {"qid": np.arange(n_pilot), "system": "a", "label": verdicts, "human_label": people}
        ).assign(p5=0.5)
        found = plan_labels(frame, 0.1, n_topics=n_topics).set_index("kind").loc["judge"]
        enough += [found["labels"] >= needed, found["labels_upper"] >= needed]
    return float(enough[0] / trials), float(enough[1] / trials)
