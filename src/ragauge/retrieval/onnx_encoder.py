"""An exported embedding model, run by ONNX Runtime and its tokenizer alone: no torch, ready in half a second."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ragauge.retrieval.reading import reader_of

HIDDEN = "last_hidden_state"
SIDE_BY_SIDE = 16  # batches that ONNX Runtime is handed at once, work for as many threads
_KINDS = ("Transformer", "Pooling", "Normalize")


def session_of(file: Path) -> Any:
    """ONNX Runtime's session of an exported network, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # whole batches side by side: small products are not worth sharing
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def hidden_states(session: Any, features: Mapping[str, np.ndarray], batch_size: int, threads: int) -> np.ndarray:
    """float32 [texts, tokens, dimensions], 0 behind the last token of a text.

    features: token ids, attention mask and whatever else the network takes, int64 [texts, tokens]. A batch
    holds `batch_size` texts of about one length, and is computed as far as its longest text reaches. Batches run side
    by side. One thread computes a batch, so no vector depends on the number of `threads`.
    """
    inputs = {node.name: features[node.name] for node in session.get_inputs()}
    attended = features["attention_mask"] != 0
    lengths = attended.shape[1] - np.argmax(attended[:, ::-1], axis=1)
    order = np.argsort(-lengths, kind="stable")
    groups = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]

    def run(rows: np.ndarray) -> np.ndarray:
        feed = {name: values[rows, : lengths[rows[0]]] for name, values in inputs.items()}
        hidden: np.ndarray = session.run([HIDDEN], feed)[0]
        return hidden

    with ThreadPoolExecutor(min(threads, len(groups))) as pool:
        found = list(pool.map(run, groups))
    states = np.zeros((*attended.shape, found[0].shape[2]), dtype=np.float32)
    for rows, values in zip(groups, found, strict=True):
        states[rows, : values.shape[1]] = values
    return states


@dataclass(frozen=True)
class OnnxEncoder:
    """A model of sentence-transformers whose modules are a transformer, mean or cls pooling, and a normalisation."""

    session: Any
    tokenizer: Any
    mean: bool
    dimensions: int

    @classmethod
    def read(cls, folder: Path, session: Any) -> Self | None:
        """The model in a folder; None for one with other modules, its own prompts, or no fast tokenizer."""
        try:
            modules = _json(folder / "modules.json")
            kinds = [module["type"].rpartition(".")[2] for module in modules]
            part = folder / modules[0]["path"]
            pooling = _json(folder / modules[1]["path"] / "config.json")
            prompts = folder / "config_sentence_transformers.json"
            prompted = prompts.is_file() and _json(prompts).get("default_prompt_name")
            lowered = any(_json(file).get("do_lower_case") for file in part.glob("sentence_*_config.json"))
            pad_id = int(_json(part / "config.json").get("pad_token_id") or 0)
            dimensions = int(pooling.get("embedding_dimension", pooling.get("word_embedding_dimension")))
        except (OSError, ValueError, LookupError, AttributeError, TypeError):
            return None
        reader, mode, file = reader_of(folder), _pooling_mode(pooling), part / "tokenizer.json"
        if kinds not in (list(_KINDS), list(_KINDS[:2])) or mode is None or prompted or lowered:
            return None
        if reader is None or not file.is_file():
            return None
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.enable_truncation(reader.limit)
        tokenizer.enable_padding(pad_id=pad_id)
        return cls(session, tokenizer, mode == "mean", dimensions)

    def encode(self, texts: Sequence[str], batch_size: int, threads: int | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`.

        threads: None for as many as OMP_NUM_THREADS says, or the machine has.
        """
        named = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # 4,2: of nested regions
        threads = threads or (int(named) if named.isdecimal() else 0) or os.cpu_count() or 1
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        at_once = batch_size * SIDE_BY_SIDE  # always the same, so that threads do not decide what is computed together
        for start in range(0, len(order), at_once):
            rows = order[start : start + at_once]
            encoded = self.tokenizer.encode_batch([texts[at].strip() for at in rows])
            features = {
                "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
                "attention_mask": np.array([one.attention_mask for one in encoded], dtype=np.int64),
                "token_type_ids": np.array([one.type_ids for one in encoded], dtype=np.int64),
            }
            states = hidden_states(self.session, features, batch_size, threads)
            vectors[rows] = self._pooled(states, features["attention_mask"])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _pooled(self, states: np.ndarray, mask: np.ndarray) -> np.ndarray:
        if not self.mean:
            return states[:, 0]
        weight = mask.astype(np.float32)
        return np.einsum("itd,it->id", states, weight) / np.maximum(weight.sum(axis=1), 1e-9)[:, None]


def _pooling_mode(pooling: Mapping[str, Any]) -> str | None:
    """mean or cls; None for any other pooling, or several."""
    if "pooling_mode" in pooling:
        mode = pooling["pooling_mode"]
        return mode if mode in ("mean", "cls") else None
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    chosen = [name for name, value in pooling.items() if name.startswith("pooling_mode_") and value]
    return names.get(chosen[0]) if len(chosen) == 1 else None


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
