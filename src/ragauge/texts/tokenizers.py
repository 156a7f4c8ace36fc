"""Tokens for counting budgets: offsets of tokens in a text, never decoded tokens."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ragauge.contract.checks import require_text
from ragauge.contract.component import Tokenizer
from ragauge.contract.errors import ConfigError
from ragauge.contract.progress import progress
from ragauge.texts.model_files import tokenizer_file
from ragauge.texts.surrogates import without_surrogates
from ragauge.texts.words import WORD

if TYPE_CHECKING:
    import tokenizers

Stitching = Literal["free", "space", "joined"]
"""How the tokens of texts joined by one space follow from the tokens of each text.

`free`: they are the tokens of every text by itself, since white space separates and is in no token.
`space`: they are the tokens of the first text and of `" " + text` for the others. This holds wherever the joining space
does not touch white space on both sides (and the text before it is not empty).
`joined`: no such rule is known; the joined text has to be tokenised.
"""

_BATCH = 4096
_WORD = re.compile(rf"{WORD}|[^\w\s]")


@dataclass(frozen=True)
class WordTokenizer(Tokenizer):
    """Words and single punctuation marks as tokens; needs no model.

    Of scripts without spaces (Chinese, Japanese, Thai) each character is one, with the marks on it.
    """

    component = "words"
    version = 2
    name = "words"
    stitching = "free"

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """For each text int64 [tokens, 2]: first and past-the-last character of every token, in order."""
        return [
            np.array([match.span() for match in _WORD.finditer(text)], dtype=np.int64).reshape(-1, 2) for text in texts
        ]


@dataclass(frozen=True)
class HuggingFaceTokenizer(Tokenizer):
    """The tokens of a model's own fast tokenizer (its `tokenizer.json`).

    `model` is a hub name, a folder that holds `tokenizer.json`, or that file itself; the name of a model that
    an installed package carries (all-MiniLM-L6-v2) needs no hub. No special tokens are added, nothing is cut
    or padded, and a token's offsets are its whole extent, a leading or trailing space included. Raises
    ConfigError where the tokenizer cannot be loaded.
    """

    component = "huggingface"
    model: str

    def __post_init__(self) -> None:
        allowed = "a model's name, its folder and the path of a tokenizer.json"
        require_text("tokenizer.model", self.model, allowed)

    @property
    def name(self) -> str:
        """The model's name, or the last folder of a path."""
        path = Path(self.model)
        if path.name == "tokenizer.json":
            path = path.parent
        return path.name if path.is_dir() else self.model

    @property
    def stitching(self) -> Stitching:
        """The rule by which tokens of joined texts follow from those of the texts."""
        return _load(self.model).stitching

    def identity(self) -> dict[str, Any]:
        """The class and content of the tokenizer, independent of the files' location."""
        return {"component": "huggingface", "version": self.version, "sha256": _load(self.model).sha256}

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """For each text int64 [tokens, 2]: first and past-the-last character of every token, in order.

        Characters are code points. A character that several tokens share (a byte-level BPE) is in the
        offsets of each.
        """
        tokenizer = _load(self.model).tokenizer
        found: list[np.ndarray] = []
        with progress(len(texts), "tokenising", "text") as bar:
            for first in range(0, len(texts), _BATCH):
                batch = [without_surrogates(text) for text in texts[first : first + _BATCH]]
                encodings = tokenizer.encode_batch(batch, add_special_tokens=False)
                found += [np.array(e.offsets, dtype=np.int64).reshape(-1, 2) for e in encodings]
                bar.update(len(batch))
        return found


@dataclass(frozen=True)
class _Loaded:
    tokenizer: tokenizers.Tokenizer
    sha256: str
    stitching: Stitching


@lru_cache(maxsize=8)
def _load(model: str) -> _Loaded:
    from tokenizers import Tokenizer

    file = _tokenizer_file(model)
    content = file.read_bytes()
    try:
        spec = json.loads(content)
        # The post-processor adds special tokens and trims offsets; the other two cut and fill texts.
        spec.update(post_processor=None, truncation=None, padding=None)
        tokenizer = Tokenizer.from_str(json.dumps(spec))
    except Exception as error:  # the library raises bare Exceptions
        raise ConfigError(f"tokenizer.model={model}: {file} is no tokenizer.json: {error}") from error
    return _Loaded(tokenizer, hashlib.sha256(content).hexdigest(), _stitching(spec))


def _tokenizer_file(model: str) -> Path:
    if (carried := tokenizer_file(model)) is not None:
        return carried
    path = Path(model)
    file = path / "tokenizer.json" if path.is_dir() else path
    if file.is_file():
        return file
    if path.exists() or path.is_absolute():
        raise ConfigError(f"tokenizer.model={model}: there is no file {file}")
    from huggingface_hub import hf_hub_download

    try:
        # What was fetched before is taken as it is; offline, asking the hub costs many seconds of retries.
        return Path(hf_hub_download(model, "tokenizer.json", local_files_only=True))
    except Exception:  # not there; the errors of the library's releases differ
        pass
    try:
        return Path(hf_hub_download(model, "tokenizer.json"))
    except Exception as error:
        raise ConfigError(
            f"tokenizer.model={model}: no such path, and the hub gave no tokenizer.json of that name "
            f"({type(error).__name__}). Give a folder that holds tokenizer.json, or the file: "
            "tokenizer.model=/path/to/tokenizer.json"
        ) from error


# What is known to cut before a space, whatever stands on both sides of it.
_DROP_SPACE = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_CUT_WITHIN_WORDS = _DROP_SPACE | {"Punctuation", "Digits"}
# Normalisers that treat the texts on the two sides of a space separately: they work on single characters, or
# on a letter and its marks. The second set also makes no white space of other characters.
_LOCAL = {"BertNormalizer", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD"}
_LOCAL_KEEPING_SPACE = {"Lowercase", "NFC", "NFD"}
# Patterns in front of a byte-level BPE which, like that of GPT-2, start a match at a space that follows
# something else, and of a run of spaces before a word leave the last one to the word.
_SPACE_FIRST_PATTERNS = {
    # GPT-2
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    # Llama 3
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    # Qwen 2
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def _stitching(spec: dict[str, Any]) -> Stitching:
    """The known rule for a tokenizer.json, else `joined`."""
    for token in spec.get("added_tokens") or ():
        spaced = any(char.isspace() for char in unicodedata.normalize("NFKC", token["content"]))
        if spaced or token.get("lstrip") or token.get("rstrip"):
            return "joined"
    normalizers = {part["type"] for part in _flat(spec.get("normalizer"), "normalizers")}
    steps = _flat(spec.get("pre_tokenizer"), "pretokenizers")
    types = [step["type"] for step in steps]
    if types and types[0] in _DROP_SPACE and set(types) <= _CUT_WITHIN_WORDS and normalizers <= _LOCAL:
        return "free"
    if _cuts_before_space(steps) and normalizers <= _LOCAL_KEEPING_SPACE:
        return "space"
    return "joined"


def _cuts_before_space(steps: list[dict[str, Any]]) -> bool:
    match steps:
        case [{"type": "ByteLevel"} as step]:
            return bool(step.get("use_regex", True))
        case [{"type": "Metaspace"} as step]:
            return bool(step.get("split", True))
        case [{"type": "Split", "pattern": {"Regex": pattern}} as step, {"type": "ByteLevel"} as last]:
            isolated = step.get("behavior") == "Isolated" and not step.get("invert", False)
            plain = not last.get("use_regex", True) and not last.get("add_prefix_space", True)
            return isolated and plain and pattern in _SPACE_FIRST_PATTERNS
    return False


def _flat(part: dict[str, Any] | None, members: str) -> list[dict[str, Any]]:
    """The steps of a component that may be absent, single, or a sequence of sequences."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for member in part[members] for step in _flat(member, members)]
    return [part]
