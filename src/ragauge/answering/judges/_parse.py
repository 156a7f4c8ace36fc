"""A judge's reply to classes: read exactly or not at all."""

from __future__ import annotations

import re

from ragauge.llms.json_replies import json_of

_SCORES = re.compile(r"[1-5](?:[ \t]*,[ \t]*[1-5])*")


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
    verdict = json_of(reply)
    if not isinstance(verdict, dict) or set(verdict) != {"label", "reason"}:
        return None
    label, reason = verdict["label"], verdict["reason"]
    if type(label) is not int or not 1 <= label <= 5 or not isinstance(reason, str):
        return None
    return label, " ".join(reason.split())
