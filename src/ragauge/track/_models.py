"""Predictors as MLflow models: made once as files, and logged wherever they are fitted again."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.track import provenance
from ragauge.track._connection import connect, quiet

if TYPE_CHECKING:
    from mlflow import MlflowClient

# What a predictor may be made of beside scikit-learn's own: splines, and calibration.
_MODEL_TYPES = [
    "ragauge.estimate._calibration.RightCalibrated",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
]
_SETTINGS = "ragauge_settings"  # key of a model's metadata
_NAME = "predictor"


def save_predictor(folder: Path, model: Any, example: pd.DataFrame, settings: Mapping[str, Any]) -> None:
    """Writes a fitted scikit-learn estimator as the files of an MLflow model with a signature.

    `settings` say what its scores mean (`ragauge.estimate.prediction.settings_of`).
    """
    import mlflow
    import sklearn
    from mlflow.models import infer_signature

    with quiet():
        mlflow.sklearn.save_model(
            model,
            str(folder),
            signature=infer_signature(example, model.predict_proba(example)),
            input_example=example,
            pyfunc_predict_fn="predict_proba",
            # Given, because inferring them imports the model in a process of its own for seconds.
            pip_requirements=[f"scikit-learn=={sklearn.__version__}", f"pandas=={pd.__version__}"],
            skops_trusted_types=_MODEL_TYPES,
            metadata={_SETTINGS: json.dumps(settings, sort_keys=True)},
        )


def log_predictor(
    client: MlflowClient, experiment_id: str, run_id: str, saved: Path, registered_name: str | None
) -> None:
    """Logs the files of `save_predictor` as a run's model, and registers it where there is a name."""
    import mlflow
    from mlflow.entities import LoggedModelOutput
    from mlflow.models import Model
    from mlflow.models.model import MLMODEL_FILE_NAME

    tags = provenance.origin_tags()
    logged = client.create_logged_model(experiment_id, name=_NAME, source_run_id=run_id, tags=tags)
    with tempfile.TemporaryDirectory() as scratch:
        files = shutil.copytree(saved, Path(scratch) / _NAME)
        of_run = Model.load(str(files))
        of_run.run_id = run_id
        of_run.model_id = of_run.model_uuid = logged.model_id
        of_run.artifact_path = logged.artifact_location
        of_run.save(str(files / MLMODEL_FILE_NAME))
        client.log_model_artifacts(logged.model_id, str(files))
    client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(logged.model_id, step=0)])
    if registered_name is not None:
        mlflow.set_tracking_uri(client.tracking_uri)
        with quiet():
            mlflow.register_model(f"models:/{logged.model_id}", registered_name)


def load_predictor(uri: str, model_uri: str) -> tuple[Any, dict[str, Any]]:
    """A logged predictor and the settings it was fitted under ({} where it does not say).

    `model_uri` is any of MLflow's: models:/<name>/<version>, runs:/<run id>/predictor, models:/m-<id>.
    """
    import mlflow
    from mlflow.exceptions import MlflowException
    from mlflow.models import get_model_info

    connect(uri)
    try:
        with quiet():
            mlflow.set_tracking_uri(uri)
            metadata = get_model_info(model_uri).metadata or {}
            return mlflow.sklearn.load_model(model_uri), json.loads(metadata.get(_SETTINGS, "{}"))
    except (MlflowException, OSError) as error:
        raise ConfigError(f"predictor: {model_uri} cannot be loaded from MLflow: {error}") from error
