"""The transformer of a sentence-transformers model, run by ONNX Runtime on the CPU in single precision.

Prompts, tokenisation, truncation, pooling and normalisation stay with the model's own modules; only the
network between them is exchanged. It is exported once for each model of a user, and refused
where its vectors, or the scores of a cross-encoder, are not those of torch.
"""

from __future__ import annotations

import inspect
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragauge.contract import extras
from ragauge.contract.errors import ConfigError
from ragauge.retrieval.onnx_encoder import HIDDEN, OnnxEncoder, hidden_states, session_of
from ragauge.store import Key, Store

if TYPE_CHECKING:
    import torch

PACKAGES = ("onnxruntime", "onnx")  # the second only writes the file
_VERSION = 2  # of what is exported
_FILE = "model.onnx"
_ALONE = "alone"  # beside it: an `OnnxEncoder` of the file gives the same vectors
# A graph that holds something of its example as a constant is off by 0.01 and more, float noise by 1e-6.
_TOLERANCE = 1e-4
_TOLERANCE_ALONE = 1e-5  # of other sums of the same hidden states
_PROBES = ("", "A river.", "Rain falls on the Alps, \u00e0 Gen\u00e8ve, \u65e5\u672c. " * 4, "word " * 300)


def installed() -> bool:
    """Whether the packages that export and run a model are installed; imports none."""
    return extras.installed(*PACKAGES)


@dataclass(frozen=True)
class Kind:
    """The kind of an exported model.

    group: its config group. what, output: its result, in words, and the output of its network.
    probe: a model's results for texts of every length, together and one by one.
    stand_in: the object that replaces the network, made of its config and the session that runs it.
    """

    group: str
    what: str
    output: str
    probe: Callable[[Any], np.ndarray]
    stand_in: Callable[[Any, Any], Any]


def place_of_exports(store: Path | None) -> Store | None:
    """The folder of exported models, one for all stores of a user; that of a job's store if it cannot be written.

    It is RAGAUGE_CACHE, else ragauge within XDG_CACHE_HOME or ~/.cache.
    """
    named = os.environ.get("RAGAUGE_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/ragauge"
    try:
        place = Path(named).expanduser()
        place.mkdir(parents=True, exist_ok=True)
        if os.access(place, os.W_OK):
            return Store(place)
    except (OSError, RuntimeError):  # no home, or no place in it
        pass
    return None if store is None else Store(store)


def encoder_alone(folder: Path, digest: str, place: Store) -> OnnxEncoder | None:
    """The exported embedding model, run without torch; None if it is not exported, or has parts that torch runs."""
    entry = place.find(_key(digest, EMBEDDER))
    if entry is None or not (entry.path / _ALONE).is_file():
        return None
    return OnnxEncoder.read(folder, session_of(entry.path / _FILE))


def _key(digest: str, kind: Kind) -> Key:
    packages = {package: version(package) for package in ("torch", "transformers")}
    output = {} if kind.output == HIDDEN else {"output": kind.output}
    return Key("onnx", _VERSION, {**packages, **output}, {"model": digest})


def run_by_onnx(model: Any, name: str, digest: str, place: Store | None, kind: Kind | None = None) -> None:
    """Replaces a sentence-transformers model's transformer, in place, by one run by ONNX Runtime.

    `digest` is that of the model's files; without a `kind` it is an embedder. The exported file is kept in the
    place; without one it is made again each time. ConfigError where the model cannot be exported, or has other results
    than by torch.
    """
    kind = kind or EMBEDDER
    key = _key(digest, kind)
    remedy = f"{kind.group}.backend=torch runs every sentence-transformers model"

    def export(folder: Path) -> None:
        expected = kind.probe(model)
        try:
            export_transformer(model[0], folder / _FILE, kind.output)
            exchange_transformer(model, folder / _FILE, kind.stand_in)
            deviation = float(np.abs(kind.probe(model) - expected).max())
        except Exception as error:  # whatever the exporter, the runtime or a later module stumbles on
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ConfigError(f"{kind.group}.backend=onnx cannot run {name}: {reason}. {remedy}") from error
        if not deviation <= _TOLERANCE * max(1.0, float(np.abs(expected).max())):
            raise ConfigError(
                f"{kind.group}.backend=onnx gives {name} other {kind.what} than torch (by {deviation:.2g}). {remedy}"
            )
        if kind is EMBEDDER and _is_read_alone(Path(name), model[0].model.session, expected):
            (folder / _ALONE).touch()

    if place is not None:
        exchange_transformer(model, place.get(key, export).path / _FILE, kind.stand_in)
        return
    with tempfile.TemporaryDirectory(prefix="ragauge-onnx-") as scratch:
        export(Path(scratch))


@dataclass
class OnnxTransformer:
    """Replaces a model's transformer inside a sentence-transformers `Transformer` module."""

    config: Any
    session: Any
    batch_size: int = 8
    threads: int = 1

    def forward(self, **features: Any) -> dict[str, torch.Tensor]:
        """`last_hidden_state` as of `hidden_states`."""
        import torch

        values = {name: value.numpy() for name, value in features.items() if torch.is_tensor(value)}
        return {HIDDEN: torch.from_numpy(hidden_states(self.session, values, self.batch_size, self.threads))}


def exchange_transformer(model: Any, file: Path, stand_in: Callable[[Any, Any], Any] = OnnxTransformer) -> None:
    """Replaces the model's own transformer by an exported one."""
    transformer: Any = model[0]
    config = transformer.model.config
    del transformer.model  # as a torch module it could be replaced by another only
    transformer.model = stand_in(config, session_of(file))


def _probe(model: Any) -> np.ndarray:
    """Vectors of texts of every length, together and one by one."""
    together = model.encode(list(_PROBES), normalize_embeddings=True, show_progress_bar=False)
    alone = [model.encode([text], normalize_embeddings=True, show_progress_bar=False) for text in _PROBES]
    return np.concatenate([together, *alone])


def _is_read_alone(folder: Path, session: Any, expected: np.ndarray) -> bool:
    """Whether an `OnnxEncoder` of the model gives the probes' vectors."""
    encoder = OnnxEncoder.read(folder, session)
    if encoder is None:
        return False
    found = [encoder.encode(texts, 8) for texts in (_PROBES, *([text] for text in _PROBES))]
    return bool(np.abs(np.concatenate(found) - expected).max() <= _TOLERANCE_ALONE)


EMBEDDER = Kind("embedder", "vectors", HIDDEN, _probe, OnnxTransformer)


def export_transformer(transformer: Any, file: Path, output: str = HIDDEN) -> None:
    """Writes the network from token ids to one of its outputs, for any number of texts of any length.

    `transformer` is a model's first module. ValueError where the weights are not float32.
    """
    import torch

    network = transformer.model.eval()
    dtype = next(network.parameters()).dtype
    if dtype != torch.float32:
        raise ValueError(f"its weights are {dtype}, not torch.float32")
    example = transformer.preprocess(["A river.", "Rain falls on the mountains all day long."])
    known = inspect.signature(network.forward).parameters
    names = [name for name, value in example.items() if name in known and torch.is_tensor(value)]

    class OneOutput(torch.nn.Module):
        """A module with positional tensors in and one tensor out, for the exporter to trace."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *values: torch.Tensor) -> Any:
            return self.network(**dict(zip(names, values, strict=True)), return_dict=True)[output]

    axes = {0: "texts", 1: "tokens"}
    output_axes = axes if output == HIDDEN else {0: "texts"}
    with warnings.catch_warnings(), torch.inference_mode():
        # It warns of all that might become a constant; whether anything did is what the probes show.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            OneOutput(),
            tuple(example[name] for name in names),
            str(file),
            input_names=names,
            output_names=[output],
            dynamic_axes={**dict.fromkeys(names, axes), output: output_axes},
            dynamo=False,  # the newer exporter needs two more packages, and what it writes runs no faster
        )
