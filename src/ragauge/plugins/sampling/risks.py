"""P(right) of every topic, from the jobs' retrieval results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.job_files import OUTCOMES_FILE, read_table
from ragauge.estimate import choose_topics
from ragauge.estimate.outcomes import fit_rows, with_classes
from ragauge.estimate.prediction import predict_right
from ragauge.estimate.predictor import fit_predictor


def outcomes_in(folder: Path) -> pd.DataFrame:
    """The outcomes of the job in a folder, or of a sweep's jobs there; DataError if there are none."""
    files = [file for file in (folder / OUTCOMES_FILE, *sorted(folder.glob(f"*/{OUTCOMES_FILE}"))) if file.is_file()]
    if not files:
        raise DataError(f"{folder}: no {OUTCOMES_FILE} in it or one level below; allowed are jobs' and sweeps' folders")
    return pd.concat([read_table(file.parent, file.name) for file in files], ignore_index=True)


def drawn_by_risk(rows: pd.DataFrame, right: pd.Series, n: int, seed: int) -> pd.DataFrame:
    """`choose_topics` by P(right) of the topics that count in shares of classes (`with_classes`).

    Nothing foresees whether an unanswerable question is rejected. Such topics, and those without a reference answer,
    are a stratum of their own: their part of the n topics, drawn uniformly.
    """
    at_risk = right.index.isin(with_classes(rows)["qid"])
    others = right[~at_risk]
    if others.empty or not at_risk.any():
        return choose_topics(right, n, seed=seed, design="neyman")
    size = others.index.nunique()
    take = min(max(round(n * size / right.index.nunique()), 2), size)
    chosen = choose_topics(right[at_risk], n - take, seed=seed, design="neyman")
    apart = choose_topics(others, max(take, 2), seed=seed)
    return pd.concat([chosen, apart.assign(stratum=int(chosen["stratum"].max()) + 1)], ignore_index=True)


def chances_of_right(rows: pd.DataFrame, predictor: str | None, uri: str | None, trust: bool = False) -> pd.Series:
    """P(right) of each row by qid: by a logged predictor, else by one fitted on the verdicts among the rows.

    ConfigError where there is neither.
    """
    if predictor is not None:
        model, _ = track.load_predictor(track.tracking_uri(uri), predictor, trust)
        return predict_right(model, rows)
    known = fit_rows(rows)
    known = known[known["label"].notna()] if "label" in known else known.iloc[:0]
    if known["qid"].nunique() < 2:
        raise ConfigError("--predictor: the folder has no verdicts to fit one on; give the URI of a logged predictor")
    return predict_right(fit_predictor(known).model, rows)
