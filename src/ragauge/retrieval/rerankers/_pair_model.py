"""A cross-encoder of sentence-transformers, its pairs batched by length, run by torch or ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval import onnx as onnx_backend
from ragauge.retrieval.pretrained import first_line, model_digest, quiet
from ragauge.retrieval.rerankers._model_folder import GIVE_A_FOLDER, require_one_score
from ragauge.store import Store

Pair = tuple[str, str]

_BLOCK = 512  # pairs that are cut into tokens together
# Tokens of a batch, padding counted: benchmarks/bench_reranking.py.
BATCH_TOKENS = {"torch": 2048, "onnx": 512}
_GPU_BATCH_TOKENS = 65_536
_PROBES = (
    ("", ""),
    ("Where?", "A river."),
    ("Which river rises in Switzerland?", "Rain falls on the Alps, \u00e0 Gen\u00e8ve, \u65e5\u672c. " * 4),
    ("Who?", "word " * 300),
)


@dataclass(frozen=True)
class PairModel:
    """A loaded cross-encoder of sentence-transformers; `backend` says what its network is run by."""

    model: Any
    backend: str

    def scores(self, pairs: Sequence[Pair], batch_size: int | None = None, threads: int | None = None) -> np.ndarray:
        """float32 [len(pairs)]: the logit of each pair through the model's activation.

        Pairs of about one length are computed together, `batch_size` of them or as many as fit
        `BATCH_TOKENS`. Which ones are moves a score by float noise only. DataError for a score that is no
        finite number.
        """
        import torch

        if threads is not None:
            torch.set_num_threads(threads)
        scores = np.empty(len(pairs), dtype=np.float32)
        # By characters first, so that what is cut into tokens together is of about one length.
        order = np.argsort([-len(query) - len(text) for query, text in pairs], kind="stable")
        with ThreadPoolExecutor(torch.get_num_threads() if self.backend == "onnx" else 1) as pool:
            for first in range(0, len(pairs), _BLOCK):
                block = order[first : first + _BLOCK]
                features, lengths, left = self._features([pairs[i] for i in block])
                batches = list(self._batches(lengths, batch_size))
                cut = [_sliced(features, rows, int(lengths[rows[0]]), left) for rows in batches]
                for rows, found in zip(batches, pool.map(self._run, cut), strict=True):
                    scores[block[rows]] = found
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            raise DataError(f"reranker: the model gives the pair {pairs[wrong[0]]!r} the score {scores[wrong[0]]}")
        return scores

    def _features(self, pairs: Sequence[Pair]) -> tuple[dict[str, Any], np.ndarray, bool]:
        """The network's inputs, padded to the longest pair; tokens of each; whether padding stands left."""
        # A lone surrogate has no UTF-8, which the model's tokenizer needs.
        readable = [[text.encode("utf-8", "replace").decode() for text in pair] for pair in pairs]
        features = self.model.preprocess(readable, prompt=self.model.prompts.get(self.model.default_prompt_name))
        attended = features["attention_mask"].numpy() != 0
        left = self.model[0].tokenizer.padding_side == "left"
        width = attended.shape[1]
        return features, width - np.argmax(attended if left else attended[:, ::-1], axis=1), left

    def _batches(self, lengths: np.ndarray, batch_size: int | None) -> Iterator[np.ndarray]:
        """Rows by falling length, in groups."""
        on_gpu = self.backend == "torch" and self.model.device.type != "cpu"
        budget = _GPU_BATCH_TOKENS if on_gpu else BATCH_TOKENS[self.backend]
        order = np.argsort(-lengths, kind="stable")
        first = 0
        while first < len(order):
            n = batch_size or max(1, budget // int(lengths[order[first]]))
            yield order[first : first + n]
            first += n

    def _run(self, features: dict[str, Any]) -> np.ndarray:
        import torch

        device = self.model.device
        with torch.inference_mode():
            inputs = {k: v.to(device) if torch.is_tensor(v) else v for k, v in features.items()}
            found = self.model.activation_fn(self.model(inputs)["scores"].float())
        scores: np.ndarray = found.reshape(len(features["attention_mask"]), -1)[:, 0].cpu().numpy()
        return scores


def _sliced(features: dict[str, Any], rows: np.ndarray, width: int, left: bool) -> dict[str, Any]:
    """The features of some rows, without the columns that are padding in all of them."""
    shape = features["attention_mask"].shape
    columns = slice(shape[1] - width, None) if left else slice(width)

    def cut(value: Any) -> Any:
        if getattr(value, "shape", ())[:2] == shape:
            return value[rows, columns]
        return value[rows] if getattr(value, "shape", ())[:1] == shape[:1] else value

    return {name: cut(value) for name, value in features.items()}


# --- loading ------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def load_pair_model(folder: Path, backend: str, device: str, max_length: int | None, root: Path | None) -> PairModel:
    """The model in a checked folder, kept for the process; the store at `root` keeps its exported network.

    ConfigError where it cannot be loaded, or does not give a single score for a pair.
    """
    # ONNX Runtime runs what is exported of torch's fused attention slower than the plain one.
    attention = {"attn_implementation": "eager"} if backend == "onnx" else {}
    with quiet():
        from sentence_transformers import CrossEncoder

        try:
            model = CrossEncoder(
                str(folder),
                device=device,
                max_length=max_length,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, **attention},
            )
        except Exception as error:
            raise ConfigError(
                f"reranker.model: {folder} cannot be loaded by sentence-transformers with device={device}: "
                f"{first_line(error)}. {GIVE_A_FOLDER}"
            ) from error
    require_one_score(folder, model.num_labels)
    _check_length(model, folder, max_length)
    model.eval()
    _leave_out_unread_tokens(model)
    if backend == "onnx":
        if len(model) != 1:
            raise ConfigError(
                f"reranker.backend=onnx cannot run {folder}: it is not one network alone. "
                "reranker.backend=torch runs every sentence-transformers model"
            )
        store = None if root is None else Store(root)
        onnx_backend.run_by_onnx(model, str(folder), model_digest(folder), store, _SCORES)
    return PairModel(model, backend)


def _check_length(model: Any, folder: Path, max_length: int | None) -> None:
    network = model[0].model
    positions = getattr(network.config, "max_position_embeddings", None)
    if positions is None:
        return
    for module in network.modules():
        table: Any = getattr(module, "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        if table is not None and padding is not None:  # RoBERTa and its kin count positions from behind the padding's
            positions = table.num_embeddings - padding - 1
    if max_length is not None and max_length > positions:
        raise ConfigError(
            f"reranker.max_length={max_length}: allowed are 8 to {positions}, the tokens that {folder} takes"
        )
    # Some tokenizers know no limit, and the network would stumble.
    model.max_seq_length = min(model.max_seq_length or positions, positions)


def _leave_out_unread_tokens(model: Any) -> None:
    """Has the last layer compute the first token alone, behind its attention, where the head reads no other.

    So it is in BERT, RoBERTa and their kin: about an eighth of the work of six layers, and the same scores.
    Where they are not the same, or the network is built otherwise, it stays as it is.
    """
    network = model[0].model
    base = getattr(network, getattr(network, "base_model_prefix", ""), None)
    layers = getattr(getattr(base, "encoder", None), "layer", None)
    behind = getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None
    if behind is None:
        return
    expected = _probe(model)
    hook = behind.register_forward_pre_hook(lambda _, given: tuple(tokens[:, :1] for tokens in given))
    try:
        same = np.allclose(_probe(model), expected, rtol=1e-5, atol=1e-5)
    except Exception:  # whatever a network that is built otherwise stumbles on
        same = False
    if not same:
        hook.remove()


@dataclass
class OnnxClassifier:
    """Stands where a cross-encoder's network is: one batch by one thread, several batches side by side."""

    config: Any
    session: Any

    def forward(self, **features: Any) -> dict[str, Any]:
        """`logits`, float32 [pairs, 1]."""
        import torch

        feed = {node.name: features[node.name].numpy() for node in self.session.get_inputs()}
        return {"logits": torch.from_numpy(self.session.run(["logits"], feed)[0])}


def _probe(model: Any) -> np.ndarray:
    """Logits of pairs of every length, together and one by one."""
    import torch

    def logits(pairs: list[Pair]) -> np.ndarray:
        found: np.ndarray = model.predict(
            [list(pair) for pair in pairs], activation_fn=torch.nn.Identity(), show_progress_bar=False
        )
        return found

    return np.concatenate([logits(list(_PROBES)), *(logits([pair]) for pair in _PROBES)])


_SCORES = onnx_backend.Kind("reranker", "scores", "logits", _probe, OnnxClassifier)
