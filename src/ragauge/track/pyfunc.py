"""What MLflow's pyfunc flavour loads a predictor by: `mlflow.pyfunc.load_model` finds this module's name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.portable import MAX_BYTES, PortablePredictor, read_portable


class PredictorModel:
    """A predictor behind MLflow's interface: `predict` returns the probabilities of its classes."""

    def __init__(self, predictor: PortablePredictor) -> None:
        self.predictor = predictor

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """float64 [rows, classes] in the order of the predictor's classes."""
        return self.predictor.predict_proba(frame)


def read_file(path: Path) -> PortablePredictor:
    """The predictor of a JSON file; DataError where it is none, or larger than one can be."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"more than {MAX_BYTES:,} bytes, which no predictor takes")
    return read_portable(data.decode("utf-8", "replace"))


def _load_pyfunc(path: str) -> PredictorModel:
    return PredictorModel(read_file(Path(path)))
