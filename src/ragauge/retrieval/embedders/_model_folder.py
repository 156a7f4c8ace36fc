"""The folder of an embedding model, and what of it is refused before anything of it is loaded."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.retrieval.pretrained import hub_folder
from ragauge.texts.model_files import model_path

GIVE_A_FOLDER = "Give the path of a sentence-transformers model's folder (the one with modules.json)"
_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")
# Modules that hold nothing but numbers; others of sentence-transformers import what their files name.
_MODULES = frozenset(
    {
        "CNN", "Dense", "Dropout", "LSTM", "LayerNorm", "Normalize", "Pooling", "StaticEmbedding",
        "Transformer", "WeightedLayerPooling",
    }
)  # fmt: skip
_MODULE = re.compile(r"sentence_transformers(\.[a-z_]+)+\.(\w+)")
_ACTIVATION = re.compile(r"torch\.nn\.(modules\.(activation|linear)\.)?[A-Z]\w*")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5")


def encoder_folder(key: str, model: str, remedy: str, folder: str | None = None) -> Path:
    """The folder that holds the model's files; a hub model is downloaded if it is not at hand.

    key: the config key that errors name; remedy: how the one about a model that is not there ends. folder:
    where the files of a model of MLflow lie. ConfigError where there is none, and where loading it might
    execute something: a module or an activation that is neither sentence-transformers' nor torch.nn's, and,
    of a model of MLflow, weights other than safetensors.
    """
    carried = model_path(model)
    if carried is not None and folder is None:
        return carried
    path = Path(folder or model).expanduser()
    if not path.is_dir():
        path = hub_folder(key, model, "sentence-transformers", _FILES, f"{GIVE_A_FOLDER}{remedy}")
    elif not any((path / name).is_file() for name in ("modules.json", "config.json")):
        raise ConfigError(f"{key}={model}: the folder holds no model. {GIVE_A_FOLDER}")
    return _checked(key, model, path.resolve(), folder is not None)


@lru_cache(maxsize=8)
def _checked(key: str, model: str, path: Path, of_mlflow: bool) -> Path:
    def refused(why: str) -> ConfigError:
        return ConfigError(f"{key}={model}: {why}")

    def read(file: Path) -> Any:
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise refused(f"{file.relative_to(path)} cannot be read: {error}") from None

    parts = [path]
    if (path / "modules.json").is_file():
        modules = read(path / "modules.json")
        if not isinstance(modules, list) or not all(isinstance(entry, dict) for entry in modules):
            raise refused("modules.json holds no list of modules")
        for entry in modules:
            place, kind = PurePosixPath(str(entry.get("path", ""))), entry.get("type")
            named = _MODULE.fullmatch(str(kind))
            if kind is not None and (named is None or named[2] not in _MODULES):
                raise refused(
                    f"modules.json names the module {kind!r}; allowed are those of sentence_transformers "
                    f"called {', '.join(sorted(_MODULES))}, since others may execute code"
                )
            if place.is_absolute() or ".." in place.parts:
                raise refused(f"modules.json names the folder {str(place)!r}, outside of the model's own")
            parts.append(path / place)
    for part in dict.fromkeys(parts):
        config = read(part / "config.json") if (part / "config.json").is_file() else {}
        activation = config.get("activation_function") if isinstance(config, dict) else None
        if activation is not None and part != path and not _ACTIVATION.fullmatch(str(activation)):
            raise refused(
                f"{part.name}/config.json names the activation {activation!r}; allowed are classes of torch.nn"
            )
        if of_mlflow and not any(part.glob("*.safetensors")):
            pickled = sorted(file.name for pattern in _PICKLED for file in part.glob(pattern))
            if pickled or (part == path and len(parts) == 1):
                raise refused(
                    f"holds {pickled[0] if pickled else 'no weights'}; of a model of MLflow only "
                    "*.safetensors are loaded, since other weights may execute code"
                )
    return path
