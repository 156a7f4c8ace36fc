"""Finished calls as rows of a ledger's table `calls`."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragauge.contract.usage import Usage
from ragauge.llms.budgets import Planned, spend
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.databases import ROW, Database, holds, row_digest

UNREAD = "-unreadable-"  # in the keys of replies that their callers could not read
_ADD = f"""INSERT INTO calls ({ROW}, added) VALUES (?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (key) DO UPDATE SET request = excluded.request, reply = excluded.reply,
           cost_usd = excluded.cost_usd, budget = excluded.budget, digest = excluded.digest, added = excluded.added"""


@dataclass(frozen=True)
class Call:
    """One finished call: its request (JSON, without keys) and its reply.

    `text` is None for a call that was paid for, or may have been, and gave no answer: it only counts as spent. `finish`
    is the server's reason for ending, and why there is no text where there is none. `budget`: the name under which
    its cost is summed. `unread_at`: when its caller could not read it, or it was no answer, in seconds since 1970;
    one that could not be read has a key of its own. `job`: the folder of the job, or the sweep, that made it.
    `thoughts`: the model's text before its answer.
    """

    key: str
    request: str
    text: str | None
    finish: str
    usage: Usage
    budget: str
    unread_at: float | None = None
    job: str | None = None
    thoughts: str | None = None


def put(db: Database, calls: Sequence[tuple[Call, Planned | None]]) -> None:
    """Writes calls and their costs; an existing undamaged call stays."""
    rows = {call.key: row_of(call) for call, _ in reversed(calls)}  # of equal keys the first
    there = {row[0] for row in db.among(f"SELECT {ROW} FROM calls WHERE key IN", list(rows)) if holds(row)}
    now = time.time()
    db.executemany(_ADD, [(*row, now) for key, row in rows.items() if key not in there])
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for call, planned in calls:
        of = sums[call.budget, "" if planned is None else planned.model]
        if call.key not in there:
            there.add(call.key)
            of[0] += call.usage.cost_usd
        if planned is not None and call.usage.cost_usd > planned.bound:
            of[1] = max(of[1], call.usage.cost_usd)
    spend(db, sums)


def call_of(row: Sequence[Any]) -> Call:
    """The call of a row of `calls` (the columns of ROW first)."""
    key, request, reply, _, budget = row[:5]
    return of_json({"key": key, "request": request, "budget": budget, **json.loads(reply)})


def of_json(told: dict[str, Any]) -> Call:
    """The call of its fields as JSON values."""
    usage = Usage(**told.pop("usage"))
    return Call(usage=usage, **told)


def row_of(call: Call) -> tuple[Any, ...]:
    """The call as a row of `calls` (the columns of ROW)."""
    # JSON, because a reply may hold characters that a database's text type cannot (NUL, lone surrogates).
    reply = json.dumps(
        {
            "text": call.text,
            "finish": call.finish,
            "usage": call.usage.told(),
            **({} if call.unread_at is None else {"unread_at": call.unread_at}),
            **({} if call.job is None else {"job": call.job}),
            **({"thoughts": call.thoughts} if call.thoughts else {}),
        }
    )
    request = call.request.encode("utf-8", "replace").decode()
    row = (call.key, request, reply, float(call.usage.cost_usd), call.budget)
    return (*row, row_digest(*row))


def unread_keys(key: str) -> list[str]:
    """The possible keys of unreadable replies to a request."""
    return [f"{key[:48]}{UNREAD}{n}" for n in range(1, MOST_UNREAD + 1)]
