"""P(right) of every topic, from what jobs retrieved for it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.records import OUTCOMES_FILE
from ragauge.estimate.outcomes import fit_rows
from ragauge.estimate.prediction import predict_right
from ragauge.estimate.predictor import fit_predictor


def outcomes_in(folder: Path) -> pd.DataFrame:
    """The outcomes of the job in a folder, or of the jobs of a sweep there; DataError where there are none."""
    files = [file for file in (folder / OUTCOMES_FILE, *sorted(folder.glob(f"*/{OUTCOMES_FILE}"))) if file.is_file()]
    if not files:
        raise DataError(f"{folder}: no {OUTCOMES_FILE} in it or one level below; allowed are jobs' and sweeps' folders")
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)


def chances_of_right(rows: pd.DataFrame, predictor: str | None, uri: str | None, trust: bool = False) -> pd.Series:
    """P(right) of each row by qid: by a logged predictor, else by one that is fitted on the verdicts among the rows.

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
