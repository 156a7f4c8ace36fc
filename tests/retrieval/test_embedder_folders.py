"""Folders of embedding models that others wrote: what might execute something is refused unread."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.retrieval.embedders import SentenceTransformerEmbedder, encoder_folder
from tiny_encoder import write_encoder

ATTACK = """
from pathlib import Path
Path({marker!r}).mkdir()
class Module:
    @classmethod
    def load(cls, *_, **__):
        return cls()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "tiny", dense=True)


def embedder(model: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder("models:/of-others/1", backend="torch", folder=str(model))


def named(model: Path, last: dict[str, Any]) -> None:
    """Puts one more module at the end of modules.json."""
    modules = json.loads((model / "modules.json").read_text(encoding="utf-8"))
    (model / "modules.json").write_text(json.dumps([*modules, {"idx": 9, "name": "9", **last}]))


def test_a_model_with_a_dense_layer_is_read(model: Path) -> None:
    assert embedder(model).embed(["abc"]).shape == (1, 16)


def test_a_module_that_the_folder_brings_along_is_not_run(model: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (model / "modeling.py").write_text(ATTACK.format(marker=str(marker)))
    named(model, {"path": "", "type": "modeling.Module"})
    with pytest.raises(ConfigError, match=r"modules\.json names the module 'modeling\.Module'; allowed are"):
        embedder(model).embed(["abc"])
    assert not marker.exists()


@pytest.mark.parametrize(
    "kind",
    [
        "os.system",
        "sentence_transformers.util.import_from_string",
        "sentence_transformers.base.modules.router.Router",
        "sentence_transformers.models.WordEmbeddings",
        "sentence_transformers_evil.Transformer",
    ],
)
def test_modules_that_might_import_what_a_file_names_are_refused(model: Path, kind: str) -> None:
    named(model, {"path": "", "type": kind})
    with pytest.raises(ConfigError) as raised:
        identity(embedder(model))
    assert f"names the module {kind!r}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_module_outside_of_the_folder_and_a_strange_activation_are_refused(model: Path) -> None:
    whole = (model / "modules.json").read_text(encoding="utf-8")
    named(model, {"path": "../other", "type": "sentence_transformers.models.Normalize"})
    with pytest.raises(ConfigError, match=r"names the folder '../other', outside of the model's own"):
        embedder(model).embed(["abc"])
    (model / "modules.json").write_text(whole + " ")
    config = model / "2_Dense" / "config.json"
    config.write_text(config.read_text().replace("torch.nn.modules.activation.Tanh", "torch.hub.load"))
    assert "torch.hub.load" in config.read_text()
    with pytest.raises(ConfigError, match=r"2_Dense/config\.json names the activation 'torch\.hub\.load'"):
        embedder(model).embed(["abc"])


def test_a_layer_at_the_root_has_its_activation_checked_too_and_kernels_of_the_hub_are_refused(
    model: Path,
) -> None:
    whole = (model / "modules.json").read_text(encoding="utf-8")
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps(config | {"activation_function": "torch.hub.load"}))
    named(model, {"path": "", "type": "sentence_transformers.models.Dense"})
    with pytest.raises(ConfigError, match=r": config\.json names the activation 'torch\.hub\.load'"):
        embedder(model).embed(["abc"])
    (model / "modules.json").write_text(whole)
    args = {"model_args": {"allow_all_kernels": True, "attn_implementation": "of-others/kernel"}}
    (model / "sentence_bert_config.json").write_text(json.dumps(args))
    with pytest.raises(ConfigError, match=r"sentence_bert_config\.json holds allow_all_kernels"):
        embedder(model).embed(["abc"])


class Marks:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.marker,)


@pytest.mark.parametrize("place", ["", "2_Dense"])
def test_weights_that_are_pickled_are_not_read_of_a_model_of_mlflow(model: Path, tmp_path: Path, place: str) -> None:
    marker = tmp_path / "ran"
    (model / place / "model.safetensors").unlink()
    (model / place / "pytorch_model.bin").write_bytes(pickle.dumps(Marks(marker)))
    with pytest.raises(ConfigError, match=r"holds pytorch_model\.bin; of a model of MLflow only"):
        embedder(model).embed(["abc"])
    assert not marker.exists()


def test_a_model_of_mlflow_without_any_weights_is_refused(model: Path) -> None:
    (model / "modules.json").unlink()
    (model / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="holds no weights; of a model of MLflow only"):
        embedder(model).embed(["abc"])


def test_a_folder_without_a_model_is_told_by_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^trainer\.model=.*: the folder holds no model\. Give the path"):
        encoder_folder("trainer.model", str(tmp_path), "")
