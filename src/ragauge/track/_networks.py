"""Networks as MLflow models: their files, which nothing executes, under a name."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract import provenance
from ragauge.track._connection import quiet

if TYPE_CHECKING:
    from mlflow import MlflowClient

NETWORK = "model"  # the name of the logged model, and of the folder in it that holds the network


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

    Registered under the name, if any, only when all files are there. `facts` become metadata of the model.
    """
    import mlflow
    from mlflow.entities import LoggedModelOutput
    from mlflow.models import Model
    from mlflow.models.model import MLMODEL_FILE_NAME

    tags = provenance.origin_tags()
    with quiet(), tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / NETWORK
        shutil.copytree(folder, files / NETWORK)
        (files / NETWORK / "README.md").write_text(card, encoding="utf-8")
        logged = client.create_logged_model(experiment_id, name=NETWORK, source_run_id=run_id, tags=tags)
        Model(
            artifact_path=logged.artifact_location,
            run_id=run_id,
            model_uuid=logged.model_id,
            model_id=logged.model_id,
            metadata={key: str(value) for key, value in facts.items()},
        ).save(str(files / MLMODEL_FILE_NAME))
        client.log_model_artifacts(logged.model_id, str(files))
    client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(logged.model_id, step=0)])
    uri = f"models:/{logged.model_id}"
    if registered_name is not None:
        mlflow.set_tracking_uri(client.tracking_uri)
        with quiet():
            mlflow.register_model(uri, registered_name)
    return uri
