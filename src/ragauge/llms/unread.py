"""Replies that cannot be read: how often they are asked for again, and what is said of them.

A caller hands over what reads a reply. A reply that it cannot read is kept in the ledger, and asked for
again: once in the same run, and again in later runs, up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ragauge.contract.current_job import of_this_run
from ragauge.contract.protocols import Reader, Reply
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.json_replies import json_of
from ragauge.llms.ledger import Ledger
from ragauge.llms.replies import as_cached, as_reply

ASKS_A_RUN = 2  # one reply may be a slip of the model; two of them are not
_SHOWN = 200  # characters of a reply that are shown
_EXAMPLES = re.compile(r"xamples? of the form[^:]*:\s")  # what stands behind it is the prompt's last part
_OBJECT = re.compile(r"^\{.+$", re.MULTILINE)


def can_be_read(reply: Reply, read: Reader | None) -> bool:
    """False for a reply with a text that its reader cannot read."""
    return reply.text is None or read is None or read(reply) is not None


def known_replies(ledger: Ledger, keys: Sequence[str], readers: Mapping[str, Reader]) -> dict[str, Reply]:
    """The ledger's replies by key, as cached: those that are not to be asked for now.

    These are the replies that can be read. One that cannot is among them where this run has asked for it
    ASKS_A_RUN times, or all runs together MOST_UNREAD times.
    """
    found = {key: as_cached(as_reply(call)) for key, call in ledger.find(keys).items()}
    known = {key: reply for key, reply in found.items() if can_be_read(reply, readers.get(key))}
    for key, calls in ledger.unread([key for key in keys if key in readers and key not in known]).items():
        of_run = sum(of_this_run(call.unread_at or 0.0) for call in calls)
        if len(calls) >= MOST_UNREAD or of_run >= ASKS_A_RUN:
            known[key] = as_cached(as_reply(calls[-1]))
    return known


def shown(raw: str, form: str) -> str:
    """`{"class": 5}; expected {"label": 1 to 5}`: a reply on one line beside its form, and a wrong key.

    The key is named and not taken for the one that is read.
    """
    text = visible(redact(raw), one_line=True)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    said, wanted = json_of(redact(raw)), set(re.findall(r'"(\w+)":', form))
    others = sorted(set(said) - wanted) if isinstance(said, dict) and wanted else []
    lacking = sorted(wanted - set(said)) if others else []
    differs = f"; the reply has {others[0]!r}, and {lacking[0]!r} is read" if lacking else ""
    return f"{text}; expected {form}{differs}" if form else text


def form_in(prompt: str) -> str:
    """The form that a prompt asks for, on one line: its last JSON object, else its examples of the form.

    The documents and answers in a prompt stand before its examples. "" where the prompt shows no form.
    """
    *before, last = _EXAMPLES.split(prompt)
    objects: list[str] = _OBJECT.findall(last)
    form = objects[-1] if objects else last if before else ""
    return visible(form, one_line=True)[:_SHOWN]
