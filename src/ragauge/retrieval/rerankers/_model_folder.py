"""The folder of a cross-encoder, and what of it is refused before anything of it is loaded."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.retrieval.pretrained import ACTIVATION, hub_folder, read_json, safe_parts

GIVE_A_FOLDER = "Give the path of a cross-encoder's folder (with config.json and *.safetensors)"
MODEL_FILES = ("*.json", "*.txt", "*.model", "*.jinja", "*.safetensors")
_HEADS = ("ForSequenceClassification", "ForCausalLM")  # architectures that score a pair


def pair_model_folder(model: str, folder: str | None = None) -> Path:
    """The folder that holds the model's files; a hub model is downloaded if it is not at hand.

    ConfigError where there is none, where it is no cross-encoder or one of several scores, and where loading
    it might execute something: weights other than safetensors, and what `safe_parts` refuses.
    """
    path = Path(folder or model).expanduser()
    if not path.is_dir():
        remedy = f"{GIVE_A_FOLDER}, or the URI of an MLflow model"
        path = hub_folder("reranker.model", model, "cross-encoder", MODEL_FILES, remedy)
    return _checked(path.resolve(), model)


@lru_cache(maxsize=8)
def _checked(path: Path, model: str) -> Path:
    config, own = checked_config("reranker.model", model, path, GIVE_A_FOLDER)
    if not is_pair_model(path, config, own):
        # sentence-transformers would put a head of random numbers upon it.
        raise ConfigError(
            f"reranker.model={model}: is no cross-encoder (an embedding model gives vectors, and no score of a pair)"
        )
    if any(name.endswith(_HEADS[0]) for name in _architectures(config)):
        require_one_score(model, len(config.get("id2label") or ()) or int(config.get("num_labels", 2)))
    return path


def checked_config(key: str, model: str, path: Path, remedy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What config.json and config_sentence_transformers.json of a model's folder hold.

    ConfigError, which names the key, where there is no model, and where loading it might execute something:
    weights other than safetensors, an activation that is none of torch.nn, and what `safe_parts` refuses.
    """

    def refused(why: str) -> ConfigError:
        return ConfigError(f"{key}={model}: {why}")

    if not (path / "config.json").is_file():
        raise refused(f"the folder holds no model. {remedy}")
    if not any(path.glob("*.safetensors")):
        raise refused("holds no *.safetensors; other weights are not loaded, since that may execute code")
    safe_parts(key, model, path)
    config, own = (_json(path / file, key, model) for file in ("config.json", "config_sentence_transformers.json"))
    for file, found in (("config.json", config), ("config_sentence_transformers.json", own)):
        nested = found.get("sentence_transformers")
        named = [found.get("activation_fn"), found.get("sbert_ce_default_activation_function")]
        named += [nested.get("activation_fn")] if isinstance(nested, dict) else []
        for name in named:
            if name is not None and not ACTIVATION.fullmatch(str(name)):
                raise refused(f"{file} names the activation {name!r}; allowed are classes of torch.nn")
    return config, own


def is_pair_model(path: Path, config: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether the folder, whose files `checked_config` read, holds a network that scores pairs."""
    alone = not (path / "modules.json").is_file() and any(name.endswith(_HEADS) for name in _architectures(config))
    return own.get("model_type") == "CrossEncoder" or alone


def _architectures(config: dict[str, Any]) -> list[str]:
    return [str(name) for name in config.get("architectures") or []]


def require_one_score(model: object, n: int, key: str = "reranker.model") -> None:
    """ConfigError for a model that gives a pair several scores."""
    if n != 1:
        raise ConfigError(
            f"{key}={model}: gives a pair {n} scores; allowed are models with a single one (num_labels=1)"
        )


def _json(file: Path, key: str, model: str) -> dict[str, Any]:
    """A configuration file; {} where there is none."""
    if not file.is_file():
        return {}
    found = read_json(key, model, file)
    if not isinstance(found, dict):
        raise ConfigError(f"{key}={model}: {file.name} holds no mapping")
    return found
