"""Models of MLflow as files: the folder that holds a network's weights."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.track._connection import connect, quiet, reason

_SCHEMES = ("models:/", "runs:/", "mlflow-artifacts:/")


def is_model_uri(model: Any) -> bool:
    """Whether this is the URI of a model in MLflow: models:/<name>/<version>, runs:/<run id>/<name>."""
    return isinstance(model, str) and model.startswith(_SCHEMES)


@lru_cache(maxsize=8)
def model_folder(uri: str, model_uri: str, key: str) -> Path:
    """The one folder of a logged model that has config.json and safetensors, copied here for this process.

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
