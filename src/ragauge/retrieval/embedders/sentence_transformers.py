"""`embedder=minilm`, `embedder=sentence_transformers`: sentence-transformers models, by torch or ONNX."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragauge.contract.checks import require_choice, require_count, require_text
from ragauge.contract.component import Embedder, Role
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import later, named, runtime
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.onnx_encoder import SIDE_BY_SIDE, OnnxEncoder
from ragauge.retrieval.pretrained import (
    first_line,
    hub_folder,
    model_digest,
    quiet,
    require_models,
    safe_parts,
    settle_backend,
)
from ragauge.retrieval.reading import Reader, reader_of
from ragauge.texts.model_files import model_path

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


GIVE_A_FOLDER = "Give the path of a sentence-transformers model's folder (the one with modules.json)"
_WITHOUT = "what embeds nothing (chunker=tokens retriever=bm25)"
_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5")


def encoder_folder(key: str, model: str, remedy: str, folder: str | None = None) -> Path:
    """The folder of the model's files; downloads a hub model if necessary.

    key: the config key that errors name; remedy: how the one about a model that is not there ends. folder:
    where the files of a model of MLflow lie. ConfigError where there is none, and where loading it might execute
    something: a module or an activation that is neither sentence-transformers' nor torch.nn's. A model of MLflow must
    hold its weights as safetensors.
    """
    require_models(key, "" if key != "embedder.model" else _WITHOUT)
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


log = logging.getLogger(__name__)

BATCH_SIZES = {"torch": 16, "onnx": 8}  # what is fast on a CPU: benchmarks/bench_embedding.py

_NO_HUB = ", or embedder=minilm, which needs no hub"


@dataclass(frozen=True)
class SentenceTransformerEmbedder(Embedder):
    """A sentence-transformers model by name, path of its folder or MLflow URI; all vectors have length 1.

    `model` all-MiniLM-L6-v2 is carried by an installed package; other names are looked up on the hub.
    `backend` onnx is faster on a CPU and gives torch's vectors up to float noise. Equal identities promise equal
    results to the last bit, so it is part of the identity. So is `device`: cpu, or another one that torch knows, such
    as cuda. auto becomes onnx where its packages are installed and the device is the CPU, else torch. `query_prefix`
    and `passage_prefix` stand before texts that are searched with and that are to be found, as E5 and BGE want them.
    `long`: a text with more tokens than the model reads is `cut` there, or has the `mean` vector of windows over all of
    it, weighted by their tokens. With `max` each window of a chunk is searched, and the best counts; where a text has
    one vector, it is the mean. `folder`: where the files of `model` lie, where that is no path; found by
    ragauge.
    """

    component = "sentence_transformers"

    model: str = "all-MiniLM-L6-v2"
    backend: str = "auto"
    device: str = "cpu"
    query_prefix: str = ""
    passage_prefix: str = ""
    long: str = later("cut")
    batch_size: int | None = runtime(None)
    threads: int | None = runtime(None)
    folder: str | None = runtime(None)

    def __post_init__(self) -> None:
        require_text("embedder.model", self.model, "a model's name, the path of its folder, and an MLflow model's URI")
        for key in ("batch_size", "threads"):
            require_count(f"embedder.{key}", getattr(self, key), null="")
        require_text("embedder.device", self.device, "devices of torch: cpu, cuda, cuda:1, mps")
        require_choice("embedder.long", self.long, ("cut", "mean", "max"))
        object.__setattr__(self, "backend", settle_backend(self.backend, self.device))

    @property
    def _folder(self) -> Path:
        return encoder_folder("embedder.model", self.model, _NO_HUB, self.folder)

    @property
    def symmetric(self) -> bool:
        """Whether a text has the same vector as a query and as a passage."""
        return self.query_prefix == self.passage_prefix

    def identity(self) -> dict[str, Any]:
        """Name and digest of the model, independent of its folder's path, and its backend."""
        return {
            **named(self),
            "model": self.model if ":/" in self.model else Path(self.model).name,
            "digest": model_digest(self._folder),
            "backend": self.backend,
            "device": self.device.partition(":")[0],
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
            **({} if self.long == "cut" else {"long": self.long}),
        }

    def reader(self) -> Reader | None:
        """Counts tokens against the model's limit; None without one, or if windows cover all text."""
        return reader_of(self._folder) if self.long == "cut" else None

    def windows(self, texts: Sequence[str]) -> list[list[str]] | None:
        """The windows of passages that each have a vector with long=max; None for a model that reads all."""
        reader = reader_of(self._folder) if self.long == "max" else None
        if reader is None:
            return None
        return [[window for window, _ in of_text] for of_text in reader.windows(texts, self.passage_prefix)]

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`.

        Which texts are computed together moves a vector by float noise only (about 1e-7). `scratch` keeps
        what ONNX Runtime runs.
        """
        distinct = list(dict.fromkeys(texts))
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        vectors = self._whole(distinct, prefix, scratch)
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    def _whole(self, texts: list[str], prefix: str, scratch: Path | None) -> np.ndarray:
        """The vectors of texts, truncated or in windows according to `long`."""
        reader = reader_of(self._folder) if self.long != "cut" else None
        if reader is None:
            return self._encode([prefix + text for text in texts], scratch)
        windows = reader.windows(texts, prefix)
        flat = [(text, tokens) for of_text in windows for text, tokens in of_text]
        vectors = self._encode([prefix + text for text, _ in flat], scratch)
        if len(flat) == len(texts):
            return vectors
        weight = np.array([max(tokens, 1) for _, tokens in flat], dtype=np.float64)[:, None]
        first = np.cumsum([0, *map(len, windows)])[:-1]
        mean = np.add.reduceat(vectors * weight, first, axis=0)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)

    def _encode(self, texts: Sequence[str], scratch: Path | None) -> np.ndarray:
        """The model's own vectors, at unit length."""
        folder = self._folder
        root = None if scratch is None else scratch.absolute()  # one model, however its folder is written
        # A lone surrogate has no UTF-8, which the model's tokenizer needs.
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        model = _load_onnx(folder, root) if self.backend == "onnx" else _load(folder, self.device)
        if isinstance(model, OnnxEncoder):
            return model.encode(readable, self.batch_size or BATCH_SIZES["onnx"], self.threads)
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
            at_once *= SIDE_BY_SIDE
        vectors = np.asarray(
            model.encode(
                readable, batch_size=at_once, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
            ),
            dtype=np.float32,
        )
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# --- the model --------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _load(folder: Path, device: str) -> SentenceTransformer:
    """The model run by torch, cached in the process for the jobs of a sweep."""
    return read_encoder("embedder.model", folder, device)


@lru_cache(maxsize=2)
def _load_onnx(folder: Path, root: Path | None) -> SentenceTransformer | OnnxEncoder:
    """The model run by ONNX Runtime, cached in the process; `root` is the store if the user has no other place."""
    digest, place = model_digest(folder), onnx_backend.place_of_exports(root)
    if place is not None and (alone := onnx_backend.encoder_alone(folder, digest, place)) is not None:
        return alone
    model = read_encoder("embedder.model", folder, "cpu")
    import torch

    if torch.cuda.is_available():
        log.warning("embedder.backend=onnx leaves the GPU idle; embedder.backend=torch uses it")
    onnx_backend.run_by_onnx(model, str(folder), digest, place)
    return (place and onnx_backend.encoder_alone(folder, digest, place)) or model


def read_encoder(key: str, folder: Path, device: str) -> SentenceTransformer:
    """The model in a folder checked by `encoder_folder`; ConfigError, naming the key, if it holds none."""
    with quiet():
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(str(folder), device=device, local_files_only=True)
        except Exception as error:
            raise ConfigError(
                f"{key}: {folder} cannot be loaded by sentence-transformers with "
                f"device={device}: {first_line(error)}. {GIVE_A_FOLDER}"
            ) from error
