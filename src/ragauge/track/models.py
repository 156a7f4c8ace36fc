"""Writes, logs and loads MLflow models: predictors and networks.

`mlflow.pyfunc.load_model` loads a predictor by the name of this module.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from ragauge.contract import __version__, provenance
from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate.portable import MAX_BYTES, PortablePredictor, portable, read_portable
from ragauge.track.connection import connect, quiet, reason

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.models import Model

_SETTINGS = "ragauge_settings"  # key of a model's metadata
_PREDICTOR = "predictor"  # the name of the logged model
_FOLDER = "data"  # where MLflow's pyfunc flavour puts what a loader reads
_FILE = "predictor.json"
_NETWORK = "model"  # the name of the logged model, and of the folder in it that holds the network
_SCHEMES = ("models:/", "runs:/", "mlflow-artifacts:/")


def save_predictor(folder: Path, model: Any, example: pd.DataFrame, settings: Mapping[str, Any]) -> None:
    """Writes a fitted estimator of `fit_predictor` as the files of an MLflow model with a signature.

    The model is JSON that `ragauge.track.models` reads: no file of it can execute. `settings` say what its
    scores mean (`ragauge.estimate.prediction.settings_of`).
    """
    import mlflow
    from mlflow.models import infer_signature
    from mlflow.utils import requirements_utils

    predictor = portable(model, settings)
    # To compare the one requirement with what is installed, MLflow would list the files of every package for seconds.
    unlisted: Any = patch.object(requirements_utils, "_MODULES_TO_PACKAGES", {}, create=True)
    with quiet(), unlisted, tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / _FILE
        file.write_text(predictor.to_json(), encoding="utf-8")
        mlflow.pyfunc.save_model(
            str(folder),
            loader_module="ragauge.track.models",
            data_path=str(file),
            signature=infer_signature(example, predictor.predict_proba(example)),
            input_example=example,
            # Given, because inferring them imports the model in a process of its own for seconds.
            pip_requirements=[f"ragauge=={__version__}"],
        )


def log_predictor(
    client: MlflowClient, experiment_id: str, run_id: str, saved: Path, registered_name: str | None
) -> str:
    """Logs the files of `save_predictor` as a run's model; returns models:/m-<id>."""

    def make(files: Path) -> Model:
        from mlflow.models import Model

        shutil.copytree(saved, files)
        return Model.load(str(files))

    return _log(client, experiment_id, run_id, _PREDICTOR, make, registered_name)


def log_network(
    client: MlflowClient,
    experiment_id: str,
    run_id: str,
    folder: Path,
    card: str,
    facts: Mapping[str, Any],
    registered_name: str | None,
) -> str:
    """Logs a folder of config and safetensors as a run's model, with its card; returns models:/m-<id>.

    `facts` become metadata of the model.
    """

    def make(files: Path) -> Model:
        from mlflow.models import Model

        shutil.copytree(folder, files / _NETWORK)
        (files / _NETWORK / "README.md").write_text(card, encoding="utf-8")
        return Model(metadata={key: str(value) for key, value in facts.items()})

    return _log(client, experiment_id, run_id, _NETWORK, make, registered_name)


def _log(
    client: MlflowClient,
    experiment_id: str,
    run_id: str,
    name: str,
    make: Callable[[Path], Model],
    registered_name: str | None,
) -> str:
    """Logs the files that `make` writes into a folder, then registers them under the name, if any."""
    import mlflow
    from mlflow.entities import LoggedModelOutput
    from mlflow.models.model import MLMODEL_FILE_NAME

    with quiet(), tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / name
        model = make(files)
        logged = client.create_logged_model(
            experiment_id, name=name, source_run_id=run_id, tags=provenance.origin_tags()
        )
        model.run_id = run_id
        model.model_id = model.model_uuid = logged.model_id
        model.artifact_path = logged.artifact_location
        model.save(str(files / MLMODEL_FILE_NAME))
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
    """A logged predictor and the settings of its fit ({} if unknown).

    `model_uri` is any of MLflow's: models:/<name>/<version>, runs:/<run id>/predictor, models:/m-<id>. It reads only
    the JSON that `save_predictor` wrote. Any other scikit-learn model executes code of its author when it is loaded,
    which needs `trust`. Raises ConfigError where there is none, or none to trust.
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


class PredictorModel:
    """A predictor behind MLflow's interface: `predict` returns the probabilities of its classes."""

    def __init__(self, predictor: PortablePredictor) -> None:
        self.predictor = predictor

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """float64 [rows, classes] in the order of the predictor's classes."""
        return self.predictor.predict_proba(frame)


def read_file(path: Path) -> PortablePredictor:
    """The predictor in a JSON file; DataError if it holds none or is too large."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"more than {MAX_BYTES:,} bytes, which no predictor takes")
    return read_portable(data.decode("utf-8", "replace"))


def _load_pyfunc(path: str) -> PredictorModel:
    return PredictorModel(read_file(Path(path)))


def is_model_uri(model: Any) -> bool:
    """Whether this is the URI of a model in MLflow: models:/<name>/<version>, runs:/<run id>/<name>."""
    return isinstance(model, str) and model.startswith(_SCHEMES)


@lru_cache(maxsize=8)
def model_folder(uri: str, model_uri: str, key: str) -> Path:
    """Local copy of the single folder with config.json and safetensors in a logged model.

    A folder with modules.json is one network with all below it, such as the module of a dense layer. Nothing
    is loaded. ConfigError, which names the config key, where MLflow has no such model, and where no folder of
    it, or more than one, holds a network.
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    connect(uri)
    scratch = tempfile.mkdtemp(prefix="ragauge-model-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    try:
        with quiet():
            mlflow.set_tracking_uri(uri)
            mlflow.artifacts.download_artifacts(model_uri, dst_path=scratch)
    except (MlflowException, OSError) as error:
        raise ConfigError(f"{key}={model_uri} cannot be had from MLflow: {reason(error)}") from error
    found = sorted({f.parent for f in Path(scratch).rglob("*.safetensors") if (f.parent / "config.json").is_file()})
    whole = {file.parent for file in Path(scratch).rglob("modules.json")}
    found = sorted({next((at for at in (*reversed(f.parents), f) if at in whole), f) for f in found})
    if len(found) != 1:
        raise ConfigError(
            f"{key}={model_uri}: config.json and *.safetensors are needed in one folder of it, and "
            f"{len(found) or 'none'} have them"
        )
    return found[0]
