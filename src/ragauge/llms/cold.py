"""Requests for which a server has nothing computed: with a salt for its cache, or a first line of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragauge.contract.workplace import FreshWorkplace
from ragauge.llms.asked import Asked
from ragauge.llms.prompts import after
from ragauge.llms.served import takes_cache_salt

SALTED, OWN_LINE = "by cache_salt", "by a line of its own"


def cold(chat: Mapping[str, Any], api_key: str | None, asked: Sequence[Asked], store: FreshWorkplace) -> list[Asked]:
    """The requests of a fresh workplace, each kept from what the server had computed for others.

    chat, api_key: the model's client. `store.cold` gets the way, SALTED where the server takes a cache_salt.
    """
    salted = takes_cache_salt(chat, api_key)
    store.cold.add(SALTED if salted else OWN_LINE)
    if not salted:
        return [one.sent_as(after(f"Request {one.key[:32]}\n\n", one.prompt), one.options) for one in asked]
    given = chat.get("extra_body") or {}
    return [
        one.sent_as(one.prompt, {**one.options, "extra_body": {**given, "cache_salt": one.key[:32]}}) for one in asked
    ]
