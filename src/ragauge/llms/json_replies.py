"""A chat model's reply as JSON: read exactly or not at all."""

from __future__ import annotations

import json
import re
from typing import Any

# Some models wrap JSON in a code fence whatever they are told; the whole reply must be that fence.
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.S)


def json_of(reply: str) -> Any:
    """The JSON value that the whole reply is, a code fence around it allowed; None if it is anything else.

    An object that repeats a key is not one.
    """
    reply = reply.strip()
    fenced = _FENCE.fullmatch(reply)
    try:
        return json.loads(fenced.group(1) if fenced else reply, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
