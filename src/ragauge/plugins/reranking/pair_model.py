"""A cross-encoder of sentence-transformers, with pairs batched by length, run by torch or ONNX Runtime."""

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
from ragauge.retrieval.pretrained import (
    ACTIVATION,
    first_line,
    hub_folder,
    model_digest,
    quiet,
    read_json,
    require_models,
    safe_parts,
)

GIVE_A_FOLDER = "Give the path of a cross-encoder's folder (with config.json and *.safetensors)"
MODEL_FILES = ("*.json", "*.txt", "*.model", "*.jinja", "*.safetensors")
_HEADS = ("ForSequenceClassification", "ForCausalLM")  # architectures that score a pair


def pair_model_folder(model: str, folder: str | None = None) -> Path:
    """The folder of the model's files; downloads a hub model if missing.

    ConfigError where there is none, where it is no cross-encoder or one of several scores, and where loading
    it might execute something: weights other than safetensors, and what `safe_parts` refuses.
    """
    require_models("reranker.model")
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
    """The content of config.json and config_sentence_transformers.json of a model's folder.

    ConfigError, which names the key, where there is no model, and where loading it might execute something: weights
    other than safetensors, an activation that is none of torch.nn, or a folder that `safe_parts` refuses.
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
    """Whether the folder, read by `checked_config`, holds a network that scores pairs."""
    alone = not (path / "modules.json").is_file() and any(name.endswith(_HEADS) for name in _architectures(config))
    return own.get("model_type") == "CrossEncoder" or alone


def require_no_template(model: str, path: Path, key: str) -> None:
    """ConfigError, naming the key, for a model that puts text around a pair: the room for a window is unknown."""
    own, config = (_json(path / f"config{end}.json", key, model) for end in ("_sentence_transformers", ""))
    if own.get("default_prompt_name") or any(name.endswith(_HEADS[1]) for name in _architectures(config)):
        raise ConfigError(f"{key}: {model} puts a prompt around question and chunk; cut, or smaller chunks")


def _architectures(config: dict[str, Any]) -> list[str]:
    return [str(name) for name in config.get("architectures") or []]


def require_one_score(model: object, n: int, key: str = "reranker.model") -> None:
    """ConfigError for a model with several scores per pair."""
    if n != 1:
        raise ConfigError(
            f"{key}={model}: gives a pair {n} scores; allowed are models with a single one (num_labels=1)"
        )


def _json(file: Path, key: str, model: str) -> dict[str, Any]:
    """A configuration file; {} if missing."""
    if not file.is_file():
        return {}
    found = read_json(key, model, file)
    if not isinstance(found, dict):
        raise ConfigError(f"{key}={model}: {file.name} holds no mapping")
    return found


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
    """A loaded cross-encoder of sentence-transformers; `backend` runs its network."""

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
        """The network's inputs, padded to the longest pair; the tokens of each; whether padding is on the left."""
        # A lone surrogate has no UTF-8, which the model's tokenizer needs.
        readable = [[text.encode("utf-8", "replace").decode() for text in pair] for pair in pairs]
        features = self.model.preprocess(readable, prompt=self.model.prompts.get(self.model.default_prompt_name))
        attended = features["attention_mask"].numpy() != 0
        left = self.model[0].tokenizer.padding_side == "left"
        width = attended.shape[1]
        return features, width - np.argmax(attended if left else attended[:, ::-1], axis=1), left

    def _batches(self, lengths: np.ndarray, batch_size: int | None) -> Iterator[np.ndarray]:
        """Groups of rows by falling length."""
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
    """The features of some rows, without columns of padding only."""
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
    """The model in a checked folder, cached for the process; the store at `root` keeps its exported network.

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
        place = onnx_backend.place_of_exports(root)
        onnx_backend.run_by_onnx(model, str(folder), model_digest(folder), place, _SCORES)
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
    """Makes the last layer compute only the first token, after its attention, if the head reads no other.

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
    """Replaces a cross-encoder's network: one thread per batch, several batches in parallel."""

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
