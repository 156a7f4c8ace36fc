"""Counts the tokens of a text that a model reads and leaves unread, and cuts longer texts into windows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import ConfigError

_NO_LIMIT = 1_000_000  # tokenizers without a limit name a number beyond it
_BLOCK = 2_000  # texts whose tokens are in memory at once
_LOOK_BACK = 32  # tokens that a window may end earlier, so that no word is cut
_LEAST = 48  # tokens that a window may have

Window = tuple[str, int]  # a part of a text, and the number of its tokens


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
        return reading_of(self.lengths(texts) + beside, self.limit)

    def windows(self, texts: Sequence[str], prefix: str = "", key: str = "embedder.long") -> list[list[Window]]:
        """Each text cut into `windows_of` that the model reads whole behind the prefix.

        ConfigError, naming the key, for a model without a fast tokenizer, and for a prefix that leaves no room.
        """
        return self._windows(texts, repeat(self.limit - len(self._offsets(key).encode(prefix))), key)

    def windows_of_pairs(self, pairs: Sequence[tuple[str, str]], key: str) -> list[list[tuple[str, str]]]:
        """The windows of each pair's second text beside the whole first one: lists of (first, window).

        A first text longer than half of what the model reads leaves half of it to a window: the model truncates the
        longer one. ConfigError as of `windows`.
        """
        tokenizer = self._offsets(key)
        marks = len(tokenizer.encode("", ""))
        beside = {first: len(tokenizer.encode(_readable(first), "")) - marks for first, _ in pairs}
        both = self.limit - marks
        _require_room(both // 2, key)  # whatever the questions are
        rooms = [max(both - beside[first], both // 2) for first, _ in pairs]
        found = self._windows([text for _, text in pairs], rooms, key)
        return [[(first, window) for window, _ in of] for (first, _), of in zip(pairs, found, strict=True)]

    def _offsets(self, key: str) -> Any:
        """The tokenizer, which knows each token's place in its text."""
        tokenizer = _tokenizer(self.folder)
        if isinstance(tokenizer, _OfTransformers):
            raise ConfigError(f"{key}: the tokenizer in {self.folder} does not tell its tokens' places in a text")
        return tokenizer

    def _windows(self, texts: Sequence[str], rooms: Iterable[int], key: str) -> list[list[Window]]:
        tokenizer, room = self._offsets(key), iter(rooms)
        found = []
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            encoded = tokenizer.encode_batch([_readable(text) for text in block], add_special_tokens=False)
            found += [windows_of(text, one.offsets, next(room), key) for text, one in zip(block, encoded, strict=True)]
        return found


def reading_of(lengths: np.ndarray, limit: int) -> Reading:
    """The `Reading` of texts of so many tokens."""
    behind = np.maximum(lengths - limit, 0)
    total = int(lengths.sum())
    return Reading(int((behind > 0).sum()), len(lengths), float(behind.sum() / total) if total else 0.0)


def reader_of(folder: Path, limit: int | None = None) -> Reader | None:
    """The reader of the model in a folder; None without a limit. `limit`: tokens, besides the model's own."""
    known = [one for one in (limit, _limit(folder)) if one is not None]
    return Reader(folder / _first_module(folder), min(known)) if known else None


def windows_of(text: str, offsets: Sequence[Sequence[int]], room: int, key: str) -> list[Window]:
    """Windows of about equal length and at most `room` tokens; a text that has no more is its only one.

    `offsets`: first and past-the-last character of each token. Windows end between words if a word ends nearby.
    ConfigError, naming the key, for a room below `_LEAST`.
    """
    _require_room(room, key)
    return [(text, len(offsets))] if len(offsets) <= room else list(_cut(text, offsets, room))


def _require_room(room: int, key: str) -> None:
    if room < _LEAST:
        raise ConfigError(f"{key}: a window has {room} tokens, too few to cut texts for (at least {_LEAST})")


def _cut(text: str, offsets: Sequence[Sequence[int]], room: int) -> Iterator[Window]:
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
    """A tokenizer written in Python."""

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
        else:
            from transformers import AutoTokenizer

            loaded: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            if not loaded.is_fast:
                return _OfTransformers(loaded)
            found = loaded.backend_tokenizer
        found.no_truncation()
        found.no_padding()
        return found
    except Exception as error:  # whatever the libraries stumble on
        raise ConfigError(f"{folder}: its tokenizer cannot be loaded: {error}") from error
