"""Networks in MLflow as files: found, and nothing of them loaded."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.track import is_model_uri, model_folder
from ragauge.track.connection import client_of


class Marks:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.marker,)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('models') / 'mlflow.db'}"


def logged(uri: str, files: Path) -> str:
    """The files as an artifact of a run; their URI."""
    client, experiment = client_of(uri, "models")
    run = client.create_run(experiment)
    client.log_artifacts(run.info.run_id, str(files), "reranker")
    return f"runs:/{run.info.run_id}/reranker"


def network(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.mark.parametrize("place", ["", "model", "artifacts/network"])
def test_the_folder_of_a_network_is_found_wherever_it_lies(uri: str, tmp_path: Path, place: str) -> None:
    network(tmp_path / "files" / place if place else tmp_path / "files")
    (tmp_path / "files" / "MLmodel").write_text("flavors: {}")
    marker = tmp_path / "ran"
    (tmp_path / "files" / "python_model.pkl").write_bytes(pickle.dumps(Marks(marker)))
    folder = model_folder(uri, logged(uri, tmp_path / "files"), "reranker.model")
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert not marker.exists()


def test_what_is_no_network_is_one_line(uri: str, tmp_path: Path) -> None:
    network(tmp_path / "two" / "a")
    network(tmp_path / "two" / "b")
    with pytest.raises(ConfigError, match=r"^reranker\.model=runs:.* needed in one folder of it, and 2 have"):
        model_folder(uri, logged(uri, tmp_path / "two"), "reranker.model")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ConfigError, match="and none have them"):
        model_folder(uri, logged(uri, tmp_path / "none"), "reranker.model")
    with pytest.raises(ConfigError, match=r"^reranker\.model=models:/nobody/1 cannot be had") as caught:
        model_folder(uri, "models:/nobody/1", "reranker.model")
    assert "\n" not in str(caught.value)


def test_a_network_of_several_modules_with_weights_is_one(uri: str, tmp_path: Path) -> None:
    """A dense layer after the pooling has a folder of its own with config.json and safetensors."""
    whole = network(tmp_path / "files" / "model")
    network(whole / "2_Dense")
    (whole / "modules.json").write_text("[]")
    folder = model_folder(uri, logged(uri, tmp_path / "files"), "embedder.model")
    assert (folder / "modules.json").is_file()
    network(tmp_path / "files" / "other")
    with pytest.raises(ConfigError, match="needed in one folder of it, and 2 have"):
        model_folder(uri, logged(uri, tmp_path / "files"), "embedder.model")


def test_which_names_are_models_of_mlflow() -> None:
    assert is_model_uri("models:/a/1")
    assert is_model_uri("runs:/0af/reranker")
    assert not any(map(is_model_uri, ("cross-encoder/ms-marco", "/models/a", "models", None)))
