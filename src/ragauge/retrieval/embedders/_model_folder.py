"""The folder of an embedding model, and what of it is refused before anything of it is loaded."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ragauge.contract.errors import ConfigError
from ragauge.retrieval.pretrained import hub_folder, safe_parts
from ragauge.texts.model_files import model_path

GIVE_A_FOLDER = "Give the path of a sentence-transformers model's folder (the one with modules.json)"
_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")
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

    parts = safe_parts(key, model, path)
    for part in parts:
        if of_mlflow and not any(part.glob("*.safetensors")):
            pickled = sorted(file.name for pattern in _PICKLED for file in part.glob(pattern))
            if pickled or (part == path and len(parts) == 1):
                raise refused(
                    f"holds {pickled[0] if pickled else 'no weights'}; of a model of MLflow only "
                    "*.safetensors are loaded, since other weights may execute code"
                )
    return path
