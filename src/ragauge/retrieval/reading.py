"""Counts the tokens of a text that a model reads and leaves unread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import ConfigError

_NO_LIMIT = 1_000_000  # tokenizers without a limit name a number beyond it
_BLOCK = 2_000  # texts whose tokens are in memory at once
_LOOK_BACK = 32  # tokens that a window may end earlier, so that no word is cut


@dataclass(frozen=True)
class Reading:
    """longer: number of `texts` that a model truncates; unread: the share of tokens beyond its limit."""

    longer: int
    texts: int
    unread: float


@dataclass(frozen=True)
class Reader:
    """A model's tokenizer, and its limit of tokens per text, special tokens included."""

    folder: Path
    limit: int

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Number of tokens of each text, special tokens included, int64 [texts]."""
        found = np.zeros(len(texts), dtype=np.int64)
        tokenizer = _tokenizer(self.folder)
        for start in range(0, len(texts), _BLOCK):
            some = list(map(_readable, texts[start : start + _BLOCK]))
            if isinstance(tokenizer, _OfTransformers):
                found[start : start + len(some)] = tokenizer.lengths(some)
            else:
                found[start : start + len(some)] = [len(one) for one in tokenizer.encode_batch_fast(some)]
        return found

    def reading(self, texts: Sequence[str], beside: int = 0) -> Reading:
        """The `Reading` of the texts, each read with `beside` further tokens, such as a question's."""
        lengths = self.lengths(texts) + beside
        behind = np.maximum(lengths - self.limit, 0)
        total = int(lengths.sum())
        return Reading(int((behind > 0).sum()), len(texts), float(behind.sum() / total) if total else 0.0)

    def windows(self, texts: Sequence[str], prefix: str = "") -> list[list[tuple[str, int]]]:
        """Each text cut into windows of about equal length that the model reads whole behind the prefix, each with the
        number of its tokens. A text that is read whole is its only window.

        Windows end between words where there is an end of a word nearby. ConfigError for a model without a fast
        tokenizer, and for a prefix that leaves no room.
        """
        tokenizer = _tokenizer(self.folder)
        if isinstance(tokenizer, _OfTransformers):
            raise ConfigError(f"embedder.long: {self.folder} has no tokenizer.json, whose offsets cut a text")
        room = self.limit - len(tokenizer.encode(prefix))
        if room < 2 * _LOOK_BACK:
            raise ConfigError(f"embedder.long: the model reads {self.limit} tokens, too few to cut texts for")
        found = []
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            encoded = tokenizer.encode_batch([_readable(text) for text in block], add_special_tokens=False)
            for text, one in zip(block, encoded, strict=True):
                found.append([(text, len(one))] if len(one) <= room else list(_cut(text, one.offsets, room)))
        return found


def reader_of(folder: Path, limit: int | None = None) -> Reader | None:
    """The reader of the model in a folder; None without a limit. `limit`: tokens, besides the model's own."""
    known = [one for one in (limit, _limit(folder)) if one is not None]
    return Reader(folder / _first_module(folder), min(known)) if known else None


def _cut(text: str, offsets: Sequence[tuple[int, int]], room: int) -> Iterator[tuple[str, int]]:
    """Windows of at most `room` tokens: (text, tokens)."""
    n_windows = -(-len(offsets) // (room - _LOOK_BACK))
    size = -(-len(offsets) // n_windows)
    ends = [0]
    while ends[-1] < len(offsets):
        end = min(ends[-1] + size, len(offsets))
        while end < len(offsets) and offsets[end][0] == offsets[end - 1][1] and end < ends[-1] + size + _LOOK_BACK // 2:
            end += 1
        ends.append(end)
    for first, last in pairwise(ends):
        start = 0 if first == 0 else offsets[first][0]
        stop = len(text) if last == len(offsets) else offsets[last][0]
        yield text[start:stop], last - first


def _readable(text: str) -> str:
    """The text without lone surrogates, which the tokenizer's UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _first_module(folder: Path) -> str:
    """The folder of a model's first module, relative to the model's."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        return str(modules[0].get("path", ""))
    except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return ""


def _limit(folder: Path) -> int | None:
    """The token limit of sentence-transformers: its own setting, else that of tokenizer and network."""
    part = folder / _first_module(folder)
    own = [_json(file) for file in sorted(part.glob("sentence_*_config.json"))]
    whole = _json(folder / "config_sentence_transformers.json")
    of_documents = [one.get("document_length") for one in (*own, whole)]
    chosen = [one.get("max_seq_length") for one in own]
    taken = [_json(part / "tokenizer_config.json").get("model_max_length")]
    taken.append(_json(part / "config.json").get("max_position_embeddings"))
    several = [*of_documents, *(chosen if any(map(_is_limit, chosen)) else taken)]
    limits = [int(one) for one in several if _is_limit(one)]  # type: ignore[arg-type]
    return min(limits) if limits else None


def _is_limit(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _NO_LIMIT


@dataclass(frozen=True)
class _OfTransformers:
    """A tokenizer that transformers alone can load."""

    tokenizer: Any

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text."""
        return [len(ids) for ids in self.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]]


@lru_cache(maxsize=4)
def _tokenizer(folder: Path) -> Any:
    """The tokenizer in the folder, without its limit; ConfigError if there is none."""
    file = folder / "tokenizer.json"
    try:
        if file.is_file():
            from tokenizers import Tokenizer

            found = Tokenizer.from_file(str(file))
            found.no_truncation()
            found.no_padding()
            return found
        from transformers import AutoTokenizer

        return _OfTransformers(AutoTokenizer.from_pretrained(str(folder), local_files_only=True))
    except Exception as error:  # whatever the libraries stumble on
        raise ConfigError(f"{folder}: its tokenizer cannot be loaded: {error}") from error
