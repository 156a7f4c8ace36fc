"""The network of a trained judge: one encoder, and a linear head for each question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import ConfigError
from ragauge.contract.topics import QUESTIONS
from ragauge.plugins.training.ares.interactions import INTERACTIONS, Triple, interactions, sides
from ragauge.retrieval.pretrained import first_line, quiet

FILE, HEADS = "judge.json", "heads.safetensors"
PAIRS, TEXTS = "pairs", "texts"
_BATCH = 64
_BLOCK = 512  # pairs whose tokens' vectors are in memory at a time
_SIMILARITIES = 4  # of the vectors and tokens of two texts


@dataclass
class JudgeNetwork:
    """Probability of a yes to each question that it was trained for.

    reads: `pairs`, the encoder reads both texts of a question together, and the heads see the mean over its tokens. Or
    `texts`, it reads each by itself, and the heads see u * v, |u - v| and how alike the tokens are. In both cases the
    `interactions` of the words stand beside it. weight float64 [questions, features], bias and temperatures float64
    [questions]: P(yes) = sigmoid((weight · features + bias) / temperature).
    max_length: tokens that the encoder reads of a pair or of a text.
    """

    encoder: Any
    tokenizer: Any
    reads: str
    max_length: int
    questions: tuple[str, ...]
    weight: np.ndarray
    bias: np.ndarray
    temperatures: np.ndarray

    def probabilities(self, question: str, triples: Sequence[Triple]) -> np.ndarray:
        """float64 [triples]: P(yes) to one of `questions`."""
        from scipy.special import expit

        row = self.questions.index(question)
        if not triples:
            return np.zeros(0)
        logits = self.features(question, triples) @ self.weight[row] + self.bias[row]
        return np.asarray(expit(logits / self.temperatures[row]))

    def features(self, question: str, triples: Sequence[Triple]) -> np.ndarray:
        """float64 [triples, features]: the inputs of the heads."""
        import torch

        pairs = [sides(question, triple) for triple in triples]
        with torch.inference_mode():
            read = self._read_pairs(pairs) if self.reads == PAIRS else self._read_texts(pairs)
        return np.column_stack([read, interactions(triples)])

    def pooled(self, firsts: Sequence[str], seconds: Sequence[str]) -> Any:
        """torch float32 [pairs, hidden]: the mean over the tokens of each pair, with its gradient."""
        tokens = self._tokens(list(firsts), list(seconds))
        return _means(self.encoder(**tokens).last_hidden_state, tokens["attention_mask"])

    def _tokens(self, *texts: list[str]) -> Any:
        readable = [[text.encode("utf-8", "replace").decode() for text in side] for side in texts]
        # The second text is the longer one where the two are a question and a passage.
        cut = "longest_first" if len(texts) == 2 else True
        found = self.tokenizer(*readable, padding=True, truncation=cut, max_length=self.max_length, return_tensors="pt")
        return found.to(self.encoder.device)

    def _read_pairs(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.encoder.eval()
        order = np.argsort([-len(a) - len(b) for a, b in pairs], kind="stable")
        found = np.empty((len(pairs), self.encoder.config.hidden_size))
        for first in range(0, len(order), _BATCH):
            rows = order[first : first + _BATCH]
            found[rows] = self.pooled(*zip(*(pairs[i] for i in rows), strict=True)).float().cpu().numpy()
        return found

    def _read_texts(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """The head features of pairs whose texts are encoded separately (`_compared`)."""
        self.encoder.eval()
        found = np.empty((len(pairs), 2 * self.encoder.config.hidden_size + _SIMILARITIES))
        # Pairs with one passage side by side: its tokens are in memory once, and not those of all passages.
        order = sorted(range(len(pairs)), key=lambda i: pairs[i][1])
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            known = self._token_vectors(list(dict.fromkeys(text for i in block for text in pairs[i])))
            for i in block:
                found[i] = _compared(known[pairs[i][0]], known[pairs[i][1]])
        return found

    def _token_vectors(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The token vectors of all texts, float32 [tokens, hidden]."""
        order = sorted(texts, key=lambda text: -len(text))
        found: dict[str, np.ndarray] = {}
        for first in range(0, len(order), _BATCH):
            batch = order[first : first + _BATCH]
            tokens = self._tokens(list(batch))
            hidden = self.encoder(**tokens).last_hidden_state.float().cpu().numpy()
            sizes = tokens["attention_mask"].sum(dim=1).tolist()
            left = self.tokenizer.padding_side == "left"
            found |= {
                text: states[-n:] if left else states[:n] for text, states, n in zip(batch, hidden, sizes, strict=True)
            }
        return found

    def save(self, folder: Path) -> None:
        """Writes config, tokenizer and safetensors into a folder; OSError if the disk is full."""
        from safetensors.numpy import save
        from safetensors.torch import save as save_torch

        folder.mkdir(parents=True, exist_ok=True)
        self.encoder.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        state = {name: t.detach().cpu().clone().contiguous() for name, t in self.encoder.state_dict().items()}
        # As bytes, since a full disk is then an OSError.
        (folder / "model.safetensors").write_bytes(save_torch(state, {"format": "pt"}))
        heads = {"weight": self.weight, "bias": self.bias, "temperatures": self.temperatures}
        arrays = {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in heads.items()}
        (folder / HEADS).write_bytes(save(arrays))
        told = {
            "version": 1,
            "reads": self.reads,
            "max_length": self.max_length,
            "questions": list(self.questions),
            "interactions": list(INTERACTIONS),
        }
        (folder / FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def n_features(reads: str, hidden: int) -> int:
    """The number of head inputs for an encoder of this dimension."""
    return (hidden if reads == PAIRS else 2 * hidden + _SIMILARITIES) + len(INTERACTIONS)


def load_encoder(folder: Path, device: str, key: str) -> tuple[Any, Any]:
    """Encoder and tokenizer of a folder with config.json and safetensors; ConfigError, naming the key."""
    from transformers import AutoModel, AutoTokenizer

    try:
        with quiet():
            safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
            encoder = AutoModel.from_pretrained(str(folder), use_safetensors=True, **safe)
            return encoder.to(device).eval(), AutoTokenizer.from_pretrained(str(folder), **safe)
    except Exception as error:
        raise ConfigError(
            f"{key}: {folder} cannot be loaded by transformers with device={device}: {first_line(error)}. "
            "Give an encoder with config.json, a tokenizer and *.safetensors"
        ) from error


@lru_cache(maxsize=2)
def load_judge(folder: Path, device: str, key: str) -> JudgeNetwork:
    """The judge in a folder, cached for the process; ConfigError, naming the key, if there is none."""
    from safetensors.numpy import load

    told = described(folder, key)
    encoder, tokenizer = load_encoder(folder, device, key)
    reads, names = str(told["reads"]), tuple(told["questions"])
    try:
        heads = load((folder / HEADS).read_bytes())
        weight, bias, temperatures = (heads[name] for name in ("weight", "bias", "temperatures"))
    except Exception as error:
        raise ConfigError(f"{key}: {folder / HEADS} cannot be read: {first_line(error)}") from None
    shape = (len(names), n_features(reads, encoder.config.hidden_size))
    if weight.shape != shape or bias.shape != shape[:1] or temperatures.shape != shape[:1]:
        raise ConfigError(f"{key}: {folder / HEADS} holds heads of another shape than its encoder needs")
    if not all(np.isfinite(array).all() for array in heads.values()) or not (temperatures > 0).all():
        raise ConfigError(f"{key}: {folder / HEADS} holds what is no finite number, or a temperature of 0")
    return JudgeNetwork(encoder, tokenizer, reads, int(told["max_length"]), names, weight, bias, temperatures)


def described(folder: Path, key: str) -> Mapping[str, Any]:
    """The content of judge.json, the only file read; ConfigError if the folder holds no such judge."""
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{key}: {folder} holds no {FILE}: it is no judge that trainer=judge made") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: {folder / FILE} cannot be read: {first_line(error)}") from None
    ok = (
        isinstance(told, dict)
        and told.get("reads") in (PAIRS, TEXTS)
        and type(told.get("max_length")) is int
        and 8 <= told["max_length"] <= 100_000
        and isinstance(told.get("questions"), list)
        and bool(told["questions"])
        and set(told["questions"]) <= set(QUESTIONS)
        and told.get("interactions") == list(INTERACTIONS)
    )
    if not ok:
        raise ConfigError(f"{key}: {folder / FILE} is not what this version of trainer=judge writes")
    return told


def _means(hidden: Any, mask: Any) -> Any:
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _compared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[u * v, |u - v|, cosine, mean, minimum, quartile] from the vectors of the tokens of two texts. u and v are their
    means; the last three are of the cosines of the first text's tokens with the nearest of the second's.
    """
    u, v = (_unit(tokens.mean(axis=0, keepdims=True))[0] for tokens in (first, second))
    nearest = (_unit(first) @ _unit(second).T).max(axis=1)
    alike = [float(u @ v), nearest.mean(), nearest.min(), np.quantile(nearest, 0.25)]
    return np.concatenate([u * v, np.abs(u - v), alike])


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))
