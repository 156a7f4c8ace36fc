"""Predictors as MLflow models: made once as files, and logged wherever they are fitted again."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract import __version__, provenance
from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate.portable import portable
from ragauge.track._connection import connect, quiet, reason
from ragauge.track.pyfunc import read_file

if TYPE_CHECKING:
    from mlflow import MlflowClient

_SETTINGS = "ragauge_settings"  # key of a model's metadata
_NAME = "predictor"
_FOLDER = "data"  # where MLflow's pyfunc flavour puts what a loader reads
_FILE = "predictor.json"


def save_predictor(folder: Path, model: Any, example: pd.DataFrame, settings: Mapping[str, Any]) -> None:
    """Writes a fitted estimator of `fit_predictor` as the files of an MLflow model with a signature.

    The model is JSON that `ragauge.track.pyfunc` reads: no file of it can execute. `settings` say what its
    scores mean (`ragauge.estimate.prediction.settings_of`).
    """
    import mlflow
    from mlflow.models import infer_signature

    predictor = portable(model, settings)
    with quiet(), tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / _FILE
        file.write_text(predictor.to_json(), encoding="utf-8")
        mlflow.pyfunc.save_model(
            str(folder),
            loader_module="ragauge.track.pyfunc",
            data_path=str(file),
            signature=infer_signature(example, predictor.predict_proba(example)),
            input_example=example,
            # Given, because inferring them imports the model in a process of its own for seconds.
            pip_requirements=[f"ragauge=={__version__}"],
        )


def log_predictor(
    client: MlflowClient, experiment_id: str, run_id: str, saved: Path, registered_name: str | None
) -> str:
    """Logs the files of `save_predictor` as a run's model, registers it where there is a name, and returns
    its URI models:/m-<id>.
    """
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
    uri = f"models:/{logged.model_id}"
    if registered_name is not None:
        mlflow.set_tracking_uri(client.tracking_uri)
        with quiet():
            mlflow.register_model(uri, registered_name)
    return uri


def load_predictor(uri: str, model_uri: str, trust: bool = False) -> tuple[Any, dict[str, Any]]:
    """A logged predictor and the settings it was fitted under ({} where it does not say).

    `model_uri` is any of MLflow's: models:/<name>/<version>, runs:/<run id>/predictor, models:/m-<id>. Of a
    model only the JSON that `save_predictor` wrote is read. Any other scikit-learn model executes code of its
    author when it is loaded, which needs `trust`. Raises ConfigError where there is none, or none to trust.
    """
    import mlflow
    from mlflow.exceptions import MlflowException
    from mlflow.models import get_model_info

    connect(uri)
    try:
        with quiet(), tempfile.TemporaryDirectory() as scratch:
            mlflow.set_tracking_uri(uri)
            # From the model's folder, or from that of the run: what comes before the name differs.
            found = mlflow.artifacts.list_artifacts(f"{model_uri}/{_FOLDER}")
            if _FILE in {file.path.rpartition("/")[2] for file in found}:
                path = mlflow.artifacts.download_artifacts(f"{model_uri}/{_FOLDER}/{_FILE}", dst_path=scratch)
                predictor = read_file(Path(path))
                return predictor, dict(predictor.settings)
            metadata = get_model_info(model_uri).metadata or {}
            if trust:
                return mlflow.sklearn.load_model(model_uri), json.loads(metadata.get(_SETTINGS, "{}"))
    except DataError as error:
        raise ConfigError(f"predictor: {model_uri}: {_FILE} {error}") from error
    except (MlflowException, OSError) as error:
        raise ConfigError(f"predictor: {model_uri} cannot be loaded from MLflow: {reason(error)}") from error
    raise ConfigError(
        f"predictor: {model_uri} has no {_FOLDER}/{_FILE}; loading another kind of model runs code of "
        "whoever logged it: trust=true does so"
    )
