"""A judge's reply to classes: read exactly or not at all."""

from __future__ import annotations

import json
import re

_SCORES = re.compile(r"[1-5](?:[ \t]*,[ \t]*[1-5])*")
# Some models wrap JSON in a code fence whatever they are told; the whole reply must be that fence.
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.S)


def parse_scores(reply: str, n: int) -> list[int] | None:
    """The n classes of a reply like `5, 1, 3`; None if it is anything else.

    One line of exactly n digits 1 to 5 with commas between them, white space around them allowed.
    """
    reply = reply.strip()
    if not _SCORES.fullmatch(reply):
        return None
    scores = [int(score) for score in reply.split(",")]
    return scores if len(scores) == n else None


def parse_verdict(reply: str) -> tuple[int, str] | None:
    """Class and reason of a reply like `{"label": 5, "reason": "..."}`; None if it is anything else.

    One JSON object with these two keys, each once: an integer from 1 to 5 and a string. A code fence
    around the whole is allowed, prose is not.
    """
    reply = reply.strip()
    fenced = _FENCE.fullmatch(reply)
    try:
        pairs = json.loads(fenced.group(1) if fenced else reply, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, _Pairs) or sorted(key for key, _ in pairs) != ["label", "reason"]:
        return None
    verdict = dict(pairs)
    label, reason = verdict["label"], verdict["reason"]
    if type(label) is not int or not 1 <= label <= 5 or not isinstance(reason, str):
        return None
    return label, " ".join(reason.split())


class _Pairs(list[tuple[str, object]]):
    """The pairs of a JSON object, in which a repeated key is still seen."""


def parse_accuracy(reply: str) -> bool | None:
    """What a reply like `{"accuracy": true}` says; None if it is anything else.

    One JSON object with this one key, once: true or false, also as a text in any case, as CRAG's judge writes
    it. A code fence around the whole is allowed, prose is not.
    """
    reply = reply.strip()
    fenced = _FENCE.fullmatch(reply)
    try:
        pairs = json.loads(fenced.group(1) if fenced else reply, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, _Pairs) or [key for key, _ in pairs] != ["accuracy"]:
        return None
    value = pairs[0][1]
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
