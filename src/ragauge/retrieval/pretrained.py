"""Folders of pretrained models: download, digest, and backend."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from ragauge.contract.checks import require_choice
from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import MODEL_PACKAGES, require_extra
from ragauge.retrieval import onnx as onnx_backend
from ragauge.store import file_sha256

BACKENDS = ("auto", "torch", "onnx")
# What a model's configuration may have called upon its numbers; sentence-transformers calls what is named.
ACTIVATION = re.compile(r"torch\.nn\.(modules\.(activation|linear)\.)?[A-Z]\w*")
# Modules that hold nothing but numbers; others of sentence-transformers import what their files name.
_MODULES = frozenset(
    {
        "CNN", "Dense", "Dropout", "LSTM", "LayerNorm", "LogitScore", "Normalize", "Pooling",
        "StaticEmbedding", "Transformer", "WeightedLayerPooling",
    }
)  # fmt: skip
# PyLate's Dense is one of sentence-transformers' own, which reads it as such.
_MODULE = re.compile(r"(?:sentence_transformers(?:\.[a-z_]+)+|pylate\.models\.Dense)\.(\w+)")


def settle_backend(backend: str, device: str, group: str = "embedder") -> str:
    """The backend of the model, "torch" or "onnx"; ConfigError, naming the group, if it cannot run here."""
    require_choice(f"{group}.backend", backend, BACKENDS)
    on_cpu = device == "cpu"
    if backend == "auto":
        return "onnx" if on_cpu and onnx_backend.installed() else "torch"
    if backend == "onnx" and not on_cpu:
        raise ConfigError(
            f"{group}.device={device}: backend=onnx runs on the CPU; onnx runs on the CPU alone, "
            f"or {group}.backend=torch"
        )
    if backend == "onnx":
        require_extra(f"{group}.backend=onnx", *onnx_backend.PACKAGES, instead=f"{group}.backend=torch")
    return backend


def require_models(key: str, instead: str = "") -> None:
    """ConfigError, naming the key, if the packages of embedders and rerankers are missing."""
    require_extra(key, *MODEL_PACKAGES, instead=instead)


@lru_cache(maxsize=8)
def hub_folder(key: str, model: str, organisation: str, patterns: tuple[str, ...], remedy: str) -> Path:
    """The folder of a hub model, downloaded if necessary; ConfigError if that fails.

    organisation: the owner of a model whose name has none. patterns: the files that are wanted. remedy: how the message
    ends.
    """
    require_models(key)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    repository = model if "/" in model else f"{organisation}/{model}"
    try:
        folder = snapshot_download(repository, allow_patterns=list(patterns), ignore_patterns=["onnx/*", "openvino/*"])
    except (OSError, HFValidationError, ValueError) as error:
        raise ConfigError(
            f"{key}={model}: neither a folder nor a model that the hub gave ({first_line(error)}). {remedy}"
        ) from None
    return Path(folder)


@lru_cache(maxsize=8)
def model_digest(folder: Path) -> str:
    """SHA-256 (hex) over names and contents of the model's files, read once per process."""
    modules = folder / "modules.json"
    folders = [folder]
    if modules.is_file():
        subfolders = {entry["path"] for entry in json.loads(modules.read_text(encoding="utf-8"))}
        folders += [folder / name for name in sorted(subfolders) if name and (folder / name).is_dir()]
    sha = hashlib.sha256()
    for part in folders:
        weights = {file.suffix for file in part.iterdir()}
        suffixes = {".json", ".txt", ".model", ".metadata", ".safetensors" if ".safetensors" in weights else ".bin"}
        for file in sorted(part.iterdir()):
            if file.is_file() and file.suffix in suffixes:
                sha.update(f"{file.relative_to(folder).as_posix()}\0{file_sha256(file)}\n".encode())
    return sha.hexdigest()


def safe_parts(key: str, model: str, path: Path, also: frozenset[str] = frozenset()) -> list[Path]:
    """The folders of a model and its modules, if sentence-transformers loads them without executing code.

    also: the names of modules that a model of this kind may have beside those of an embedding model.
    ConfigError, which names the key, for a module or an activation that is neither sentence-transformers' nor
    torch.nn's, and for a module outside of the folder. So for a configuration that would run kernels of the hub.
    """

    def refused(why: str) -> ConfigError:
        return ConfigError(f"{key}={model}: {why}")

    modules = _MODULES | also
    entries: Any = [{}]
    if (path / "modules.json").is_file():
        entries = read_json(key, model, path / "modules.json")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise refused("modules.json holds no list of modules")
    parts = [path]
    for entry in entries:
        place, kind = PurePosixPath(str(entry.get("path", ""))), entry.get("type")
        named = _MODULE.fullmatch(str(kind))
        if kind is not None and (named is None or named[1] not in modules):
            raise refused(
                f"modules.json names the module {kind!r}; allowed are those of sentence_transformers "
                f"called {', '.join(sorted(modules))}, since others may execute code"
            )
        if place.is_absolute() or ".." in place.parts:
            raise refused(f"modules.json names the folder {str(place)!r}, outside of the model's own")
        part = path / place
        parts.append(part)
        if named and named[1] == "Dense" and (part / "config.json").is_file():
            config = read_json(key, model, part / "config.json")
            activation = config.get("activation_function") if isinstance(config, dict) else None
            if activation is not None and not ACTIVATION.fullmatch(str(activation)):
                raise refused(
                    f"{(place / 'config.json')} names the activation {activation!r}; allowed are classes of torch.nn"
                )
        for file in part.glob("sentence_*_config.json"):
            if "allow_all_kernels" in json.dumps(read_json(key, model, file)):
                raise refused(f"{place / file.name} holds allow_all_kernels, which runs code of the hub")
    return list(dict.fromkeys(parts))


def read_json(key: str, model: str, file: Path) -> Any:
    """The content of a JSON file in a model's folder; ConfigError, naming the key, if unreadable."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{key}={model}: {file.name} cannot be read: {error}") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Hides progress bars and notes about loading weights, which takes a second from a local folder."""
    from transformers.utils import logging as chatter

    verbosity, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        if bars:
            chatter.enable_progress_bar()


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
