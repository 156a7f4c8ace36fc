"""Config group `embedder`: texts to unit vectors, each distinct text embedded once, ever.

Vectors are kept in `<store>/vectors/<model digest>/` as segments: folders of sorted keys (hashes of texts)
and their vectors that are written under a temporary name, renamed, and never changed. A kill loses the
slice of texts at hand; a damaged segment is dropped and its texts are embedded again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.progress import progress
from ragauge.retrieval.embedders import onnx as onnx_backend
from ragauge.store import Store, file_sha256, locked
from ragauge.store.vectors import _look_up, _text_keys, _tidy, _write_segment, log
from ragauge.texts.model_files import model_path

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


BACKENDS = ("auto", "torch", "onnx")
BATCH_SIZES = {"torch": 16, "onnx": 8}  # what is fast on a CPU: benchmarks/bench_embedding.py

_GIVE_A_FOLDER = "Give the path of a sentence-transformers model's folder (the one with modules.json)"
_SLICE = 2048  # texts between two writes to the disk: what a kill can lose
_SIDE_BY_SIDE = 16  # batches that ONNX Runtime is handed at once, work for as many threads


@dataclass(frozen=True)
class SentenceTransformerEmbedder:
    """A sentence-transformers model, by name or by the path of its folder; all vectors have length 1.

    `model` all-MiniLM-L6-v2 is carried by an installed package; other names are looked up on the hub.
    `backend` onnx is faster on a CPU and gives torch's vectors up to float noise; since equal identities
    promise equal results to the last bit, it is part of the identity nevertheless. auto becomes onnx where
    its packages are installed and no other device than the CPU is asked for, else torch.
    """

    version: ClassVar[int] = 1

    model: str = "all-MiniLM-L6-v2"
    backend: str = "auto"
    batch_size: int | None = runtime(None)
    device: str | None = runtime(None)
    threads: int | None = runtime(None)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise ConfigError(
                f"embedder.model={self.model!r}: expected a model's name or the path of its folder"
            )
        for key in ("batch_size", "threads"):
            value = getattr(self, key)
            if value is not None and (type(value) is not int or value < 1):
                raise ConfigError(f"embedder.{key}={value!r}: allowed are null and integers from 1")
        object.__setattr__(self, "backend", settle_backend(self.backend, self.device))

    def identity(self) -> dict[str, Any]:
        """The backend, the model's name and the digest of its files: the same wherever its folder lies."""
        return {
            "class": "ragauge.retrieval.embedders.sentence_transformers.SentenceTransformerEmbedder",
            "version": self.version,
            "model": Path(self.model).name,
            "digest": _model_digest(_model_folder(self.model)),
            "backend": self.backend,
        }

    def embed(self, texts: Sequence[str], store: Store | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`.

        With a store only texts that it has no vector of are computed, and torch is not even imported where
        there are none. Which texts are computed together moves a vector by float noise only (about 1e-7).
        """
        distinct = list(dict.fromkeys(texts))
        if store is None or not distinct:
            vectors = self._encode(distinct, store)
        else:
            vectors = self._cached(distinct, store)
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    def _cached(self, texts: list[str], store: Store) -> np.ndarray:
        """Vectors of distinct texts, from the store's segments or else computed and added to them."""
        name = f"{_model_digest(_model_folder(self.model))[:32]}-{self.backend}"
        folder, lock = store.root / "vectors" / name, store.root / ".locks" / f"vectors-{name}.lock"
        keys = _text_keys(texts)
        found, vectors = _look_up(keys, folder)
        if vectors is not None and found.all():
            return vectors
        with locked(lock):
            _tidy(folder)
            found, vectors = _look_up(keys, folder)  # another process may have embedded them meanwhile
            missing = np.flatnonzero(~found)
            # Texts of one length go together, so that little is padded; the longest first.
            missing = missing[np.argsort([-len(texts[i]) for i in missing], kind="stable")]
            with progress(len(missing), f"embedding with {Path(self.model).name}", "text") as bar:
                for first in range(0, len(missing), _SLICE):
                    rows = missing[first : first + _SLICE]
                    new = self._encode([texts[i] for i in rows], store)
                    _write_segment(folder, keys[rows], new)
                    if vectors is None:
                        vectors = np.empty((len(texts), new.shape[1]), dtype=np.float32)
                    vectors[rows] = new
                    bar.update(len(rows))
        assert vectors is not None
        return vectors

    def _encode(self, texts: Sequence[str], store: Store | None) -> np.ndarray:
        """The model's own vectors, at unit length."""
        folder = _model_folder(self.model)
        if self.backend == "onnx":
            model = _load_onnx(folder, None if store is None else store.root)
        else:
            model = _load(folder, self.device)
        if not texts:
            return np.empty((0, model.get_embedding_dimension() or 0), dtype=np.float32)
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        at_once = self.batch_size or BATCH_SIZES[self.backend]
        if self.backend == "onnx":
            transformer: Any = model[0].model
            transformer.batch_size, transformer.threads = at_once, torch.get_num_threads()
            # Always the same number of texts, so that threads do not decide which are computed together.
            at_once *= _SIDE_BY_SIDE
        # A lone surrogate has no UTF-8, which the model's tokenizer needs.
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        vectors = np.asarray(
            model.encode(
                readable,
                batch_size=at_once,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            ),
            dtype=np.float32,
        )
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def settle_backend(backend: str, device: str | None) -> str:
    """What runs the model, "torch" or "onnx"; ConfigError where it cannot be run so here."""
    if backend not in BACKENDS:
        raise ConfigError(f"embedder.backend={backend!r}: allowed are {', '.join(BACKENDS)}")
    on_cpu = device in (None, "cpu")
    if backend == "auto":
        return "onnx" if on_cpu and onnx_backend.installed() else "torch"
    if backend == "onnx" and not on_cpu:
        raise ConfigError(
            f"embedder.device={device}: backend=onnx runs on the CPU; allowed are null and cpu, "
            "or embedder.backend=torch"
        )
    if backend == "onnx" and not onnx_backend.installed():
        raise ConfigError(
            "embedder.backend=onnx needs packages that are not installed: pip install 'ragauge[onnx]'. "
            "Without them: embedder.backend=torch"
        )
    return backend


# --- the model --------------------------------------------------------------------------------------


def _model_folder(model: str) -> Path:
    """The folder that holds the model's files; a hub model is downloaded if it is not at hand."""
    carried = model_path(model)
    if carried is not None:
        return carried
    path = Path(model).expanduser()
    if not path.is_dir():
        return _hub_folder(model)
    if not any((path / name).is_file() for name in ("modules.json", "config.json")):
        raise ConfigError(f"embedder.model={model}: the folder holds no model. {_GIVE_A_FOLDER}")
    return path.resolve()


@lru_cache(maxsize=8)
def _hub_folder(model: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    repository = model if "/" in model else f"sentence-transformers/{model}"
    try:
        folder = snapshot_download(
            repository,
            allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors", "*.bin"],
            ignore_patterns=["onnx/*", "openvino/*"],
        )
    except (OSError, HFValidationError, ValueError) as error:
        raise ConfigError(
            f"embedder.model={model}: neither a folder nor a model that the hub gave ({_first_line(error)}). "
            f"{_GIVE_A_FOLDER}, or embedder=minilm, which needs no hub"
        ) from None
    return Path(folder)


@lru_cache(maxsize=2)
def _load(folder: Path, device: str | None) -> SentenceTransformer:
    """The model run by torch, kept for the process: the jobs of a sweep share it."""
    return _read_model(folder, device)


@lru_cache(maxsize=2)
def _load_onnx(folder: Path, root: Path | None) -> SentenceTransformer:
    """The model run by ONNX Runtime, kept for the process, its exported file in the store at `root`."""
    model = _read_model(folder, "cpu")
    import torch

    if torch.cuda.is_available():
        log.warning("embedder.backend=onnx leaves the GPU idle; embedder.backend=torch uses it")
    store = None if root is None else Store(root)
    onnx_backend.run_by_onnx(model, str(folder), _model_digest(folder), store)
    return model


def _read_model(folder: Path, device: str | None) -> SentenceTransformer:
    with _quiet():
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(str(folder), device=device, local_files_only=True)
        except Exception as error:
            raise ConfigError(
                f"embedder.model: {folder} cannot be loaded by sentence-transformers with "
                f"device={device or 'null'}: {_first_line(error)}. {_GIVE_A_FOLDER}"
            ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and notes about loading weights: a local folder is loaded in a second."""
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


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@lru_cache(maxsize=8)
def _model_digest(folder: Path) -> str:
    """SHA-256 (hex) over the names and contents of the files that make the model, read once per process."""
    modules = folder / "modules.json"
    folders = [folder]
    if modules.is_file():
        subfolders = {entry["path"] for entry in json.loads(modules.read_text(encoding="utf-8"))}
        folders += [folder / name for name in sorted(subfolders) if name and (folder / name).is_dir()]
    sha = hashlib.sha256()
    for part in folders:
        weights = {file.suffix for file in part.iterdir()}
        suffixes = {".json", ".txt", ".model", ".safetensors" if ".safetensors" in weights else ".bin"}
        for file in sorted(part.iterdir()):
            if file.is_file() and file.suffix in suffixes:
                sha.update(f"{file.relative_to(folder).as_posix()}\0{file_sha256(file)}\n".encode())
    return sha.hexdigest()


# --- the vectors on disk ----------------------------------------------------------------------------
