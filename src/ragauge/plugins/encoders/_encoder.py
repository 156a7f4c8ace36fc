"""Encodes texts as arrays of varying length, by a sentence-transformers model, once each; the store keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_text
from ragauge.contract.component import Role, Tools
from ragauge.contract.engine import in_blocks
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import Batches, in_pieces
from ragauge.contract.identity import later, named, runtime
from ragauge.contract.option import CONF
from ragauge.contract.retrieval import Retriever
from ragauge.retrieval.pretrained import first_line, hub_folder, model_digest, quiet, read_json, safe_parts
from ragauge.retrieval.reading import Reader, reader_of
from ragauge.store.vectors import VectorCache, vectors_name

Kind = Literal["SparseEncoder", "MultiVectorEncoder"]
# Modules that hold nothing but numbers, beside those of an embedding model.
_MODULES = {
    "SparseEncoder": frozenset({"SparseAutoEncoder", "SparseStaticEmbedding", "SpladePooling"}),
    "MultiVectorEncoder": frozenset({"HierarchicalTokenPooling", "MultiVectorMask"}),
}
_FILES = ("*.json", "*.txt", "*.model", "*.metadata", "*.safetensors", "*.bin")
_OWN_CONFIG = "config_sentence_transformers.json"
_REMEDY = "Give the path of the model's folder (the one with modules.json)"
_TEXTS = 8192  # whose arrays are in memory at a time while an index is built


@dataclass(frozen=True)
class EncoderRetriever(Retriever):
    """The base of retrievers over a model that gives a text an array with any number of rows.

    model: the name of a sentence-transformers model on the hub, or the path of its folder; for a sweep over retrievers
    a mapping from their names (learned_sparse, late_interaction) to these. device: where torch runs it.
    batch_size: texts at once; threads: CPU threads, None is torch's own choice. Both change the speed alone.
    long: a chunk with more tokens than the model reads is `cut` there; with `max` it has the united arrays of windows
    over all of it.
    """

    kind_of_model: ClassVar[Kind]
    rows_of_record: ClassVar[int]  # rows of a text that one record of the cache holds
    indexes_batches = True
    search_columns = ("docno",)

    model: str  # of a mapping, after __post_init__ this retriever's own
    top_k: int = CONF
    device: str = CONF
    batch_size: int = runtime(CONF)
    threads: int | None = runtime(CONF)
    long: str = later("cut")

    def __post_init__(self) -> None:
        if isinstance(self.model, Mapping):
            name = named(self)["component"]
            if name not in self.model:
                raise ConfigError(f"retriever.model={dict(self.model)}: has no model for {name}")
            object.__setattr__(self, "model", self.model[name])
        require_text("retriever.model", self.model, "a model's name and the path of its folder")
        require_count("retriever.top_k", self.top_k)
        require_text("retriever.device", self.device, "devices of torch: cpu, cuda, cuda:1, mps")
        require_count("retriever.batch_size", self.batch_size)
        require_count("retriever.threads", self.threads, null="torch's own choice")
        require_choice("retriever.long", self.long, ("cut", "max"))

    def identity(self) -> dict[str, Any]:
        """The inputs of the run: the model's name, content and device (`scorer`), and the number of hits."""
        own = {**named(self), "model": Path(self.model).name, "scorer": self._scorer(), "top_k": self.top_k}
        return {**own, **self._long()}

    def index_identity(self) -> dict[str, Any]:
        """Equal for all retrievers with this model and `long`."""
        return {"index": named(self)["component"], "version": 1, "scorer": self._scorer(), **self._long()}

    def _long(self) -> dict[str, str]:
        return {} if self.long == "cut" else {"long": self.long}

    def _scorer(self) -> dict[str, Any]:
        digest = model_digest(self._folder)
        return {"kind": self.kind_of_model, "digest": digest, "device": self.device.partition(":")[0], "version": 1}

    def reader(self) -> Reader | None:
        """Counts tokens against the model's limit; None without one, or if windows cover all text."""
        return reader_of(self._folder) if self.long == "cut" else None

    @property
    def _folder(self) -> Path:
        return model_folder(self.model, self.kind_of_model)

    def arrays(self, texts: Sequence[str], role: Role, tools: Tools) -> list[np.ndarray]:
        """For each text float32 [rows, d]; loads the model only for a text missing from the store."""
        reader = reader_of(self._folder) if self.long == "max" and role == "passage" else None
        if reader is None:
            return self._arrays(texts, role, tools)
        distinct = list(dict.fromkeys(texts))
        windows = reader.windows(distinct, _document_prompt(self._folder), "retriever.long")
        parts = iter(self._arrays([window for of_text in windows for window, _ in of_text], role, tools))
        found = {
            text: own[0] if len(own := [next(parts) for _ in of_text]) == 1 else self.united(own)
            for text, of_text in zip(distinct, windows, strict=True)
        }
        return [found[text] for text in texts]

    def united(self, windows: list[np.ndarray]) -> np.ndarray:
        """The array of a text from those of its windows."""
        raise NotImplementedError

    def _arrays(self, texts: Sequence[str], role: Role, tools: Tools) -> list[np.ndarray]:
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return []
        name = vectors_name(self._scorer())
        name = f"{name}-{role}" if role == "query" else name
        cache = VectorCache(tools.store.root, name, f"encoding with {Path(self.model).name}")
        work = _Encoding(self.kind_of_model, str(self._folder), self.device, self.batch_size, self.threads, role)

        def encode(missing: list[str]) -> list[np.ndarray]:
            return [array for some in tools.engine.map(work, in_blocks(missing, tools.engine)) for array in some]

        found = dict(zip(distinct, _kept(distinct, encode, cache, self.rows_of_record), strict=True))
        return [found[text] for text in texts]

    def arrays_of_chunks(self, chunks: pd.DataFrame | Batches, tools: Tools) -> Iterator[list[np.ndarray]]:
        """The arrays of the chunks' texts, some thousands of chunks at a time."""
        for some in in_pieces(chunks, _TEXTS):
            yield self.arrays(some["text"].tolist(), "passage", tools)


def _kept(texts: list[str], encode: Any, cache: VectorCache, size: int) -> list[np.ndarray]:
    """The array of each distinct text, from the cache if there.

    The cache holds vectors of one length. An array lies in it as records of `size` rows, each behind the number of all
    rows: the first by the text, the others by the text and their place. The first is written last, so that it tells
    that the others are there.
    """

    def records(missing: list[str]) -> dict[str, np.ndarray]:
        return {text: _records(array, size) for text, array in zip(missing, encode(missing), strict=True)}

    def first(missing: list[str]) -> np.ndarray:
        known = records(missing)
        later = [(text, str(i)) for text in missing for i in range(1, len(known[text]))]
        if later:
            cache.get(later, lambda pairs: np.stack([known[text][int(i)] for text, i in pairs]))
        return np.stack([known[text][0] for text in missing])

    def again(pairs: list[tuple[str, str]]) -> np.ndarray:  # of a damaged segment
        known = records(list(dict.fromkeys(text for text, _ in pairs)))
        return np.stack([known[text][int(i)] for text, i in pairs])

    firsts = cache.get(texts, first)
    rows = firsts[:, 0].astype(np.int64)
    places = [(text, str(i)) for text, n in zip(texts, rows, strict=True) for i in range(1, -(-int(n) // size))]
    rest = iter(cache.get(places, again)[:, 1:]) if places else iter(())
    found = []
    for record, n in zip(firsts[:, 1:], rows, strict=True):
        parts = [record, *(next(rest) for _ in range(1, -(-int(n) // size)))]
        found.append(np.concatenate(parts).reshape(-1, record.size // size)[:n])
    return found


def _records(array: np.ndarray, size: int) -> np.ndarray:
    """float32 [records, 1 + size * d] of an array [n, d]: n, then `size` of its rows; one record at least."""
    n, d = array.shape
    count = max(1, -(-n // size))
    records = np.zeros((count, 1 + size * d), dtype=np.float32)
    records[:, 0] = n
    padded = np.zeros((count * size, d), dtype=np.float32)
    padded[:n] = array
    records[:, 1:] = padded.reshape(count, -1)
    return records


# --- the model --------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def model_folder(model: str, kind: Kind) -> Path:
    """The folder of the model's files; downloads a hub model if missing.

    ConfigError where there is none, and where loading it might execute something.
    """
    path = Path(model).expanduser()
    if not path.is_dir():
        path = hub_folder("retriever.model", model, "sentence-transformers", _FILES, _REMEDY)
    elif not any((path / name).is_file() for name in ("modules.json", "config.json")):
        raise ConfigError(f"retriever.model={model}: the folder holds no model. {_REMEDY}")
    path = path.resolve()
    if not _is(kind, model, path):
        # sentence-transformers would put layers of random numbers upon it.
        raise ConfigError(f"retriever.model={model}: is no {kind} of sentence-transformers. {_REMEDY}")
    safe_parts("retriever.model", model, path, _MODULES[kind])
    return path


def _is(kind: Kind, model: str, path: Path) -> bool:
    """Whether the folder holds all weights of a model of this kind, in any package's format."""
    config, own = (_content(model, path / name) for name in ("config.json", _OWN_CONFIG))
    if (path / "modules.json").is_file():
        of_pylate = kind == "MultiVectorEncoder" and (own.get("model_type") == "ColBERT" or "query_prefix" in own)
        return own.get("model_type") == kind or of_pylate
    ending = "ForMaskedLM" if kind == "SparseEncoder" else "HF_ColBERT"  # SPLADE's and ColBERT's own checkpoints
    return any(str(name).endswith(ending) for name in config.get("architectures") or ())


def compares_by_cosine(folder: Path) -> bool:
    """Whether the model in a folder compares vectors by their cosine."""
    return _content(str(folder), folder / _OWN_CONFIG).get("similarity_fn_name") == "cosine"


def _content(model: str, file: Path) -> dict[str, Any]:
    """The content of a JSON file of the model's folder; {} without the file."""
    return read_json("retriever.model", model, file) if file.is_file() else {}


def _document_prompt(folder: Path) -> str:
    """What sentence-transformers puts before a document."""
    own = _content(str(folder), folder / _OWN_CONFIG)
    prompts = own.get("prompts") or {}
    named = next((prompts[role] for role in ("document", "passage", "corpus") if prompts.get(role)), "")
    before = own.get("document_prefix") or ""  # of PyLate's models
    return before + named.removeprefix(before)


@dataclass(frozen=True)
class _Encoding:
    """Maps texts to their arrays, by a model loaded once per process."""

    kind: Kind
    folder: str
    device: str
    batch_size: int
    threads: int | None
    role: Role

    def __call__(self, texts: Sequence[str]) -> list[np.ndarray]:
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        model = _load(self.kind, self.folder, self.device)
        encode = model.encode_query if self.role == "query" else model.encode_document
        # A lone surrogate has no UTF-8, which the model's tokenizer needs.
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        if self.kind == "MultiVectorEncoder":
            return list(encode(readable, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True))
        found = encode(
            readable,
            batch_size=self.batch_size,
            show_progress_bar=False,
            save_to_cpu=True,
            convert_to_sparse_tensor=True,
            convert_to_tensor=False,
        )
        return [_terms(vector.coalesce(), model.similarity_fn_name == "cosine") for vector in found]


def _terms(vector: Any, cosine: bool) -> np.ndarray:
    """float32 [terms, 2]: index and weight of the nonzero entries of a sparse vector, by rising index."""
    weights = vector.values().numpy().astype(np.float32)
    if cosine and len(weights):
        weights /= np.linalg.norm(weights)
    found = np.column_stack([vector.indices()[0].numpy(), weights]).astype(np.float32)
    return np.asarray(found[weights != 0])


@lru_cache(maxsize=2)
def _load(kind: Kind, folder: str, device: str) -> Any:
    """The model, cached for the process: the jobs of a sweep share it."""
    with quiet():
        import sentence_transformers

        try:
            model = getattr(sentence_transformers, kind)(folder, device=device, local_files_only=True)
        except Exception as error:
            raise ConfigError(
                f"retriever.model: {folder} cannot be loaded as a {kind} of sentence-transformers with "
                f"device={device}: {first_line(error)}. {_REMEDY}"
            ) from error
    allowed = ("dot", "cosine") if kind == "SparseEncoder" else ("maxsim", "meanmaxsim")
    if model.similarity_fn_name not in allowed:
        raise ConfigError(
            f"retriever.model: {folder} compares by {model.similarity_fn_name}; allowed are {' and '.join(allowed)}"
        )
    return model
