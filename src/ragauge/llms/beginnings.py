"""The beginnings of prompts, by which a server that keeps them computes each once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

TOKENS_PER_BLOCK = 16  # what vLLM keeps whole
_CHARACTERS = 64  # of a block


def beginnings(prompt: str) -> list[int]:
    """A number for every whole block of a prompt, that names all of it up to the block's end.

    Prompts that begin alike begin with equal numbers (63 bits of BLAKE2b over 64 characters, 128, and so on).
    """
    digest, found = hashlib.blake2b(digest_size=8), list[int]()
    for end in range(_CHARACTERS, len(prompt) + 1, _CHARACTERS):
        digest.update(prompt[end - _CHARACTERS : end].encode("utf-8", "surrogatepass"))
        found.append(int.from_bytes(digest.digest(), "big") >> 1)
    return found


def tokens_in_common(prompts: Iterable[Sequence[int]]) -> int:
    """The tokens, in whole blocks, with which a prompt begins as one before it does; prompts as their `beginnings`."""
    seen = set[int]()
    n = 0
    for blocks in prompts:
        n += len(blocks)
        seen.update(blocks)
    return TOKENS_PER_BLOCK * (n - len(seen))
