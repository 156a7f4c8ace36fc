"""What the replies to a judge's requests come to: a verdict for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from ragauge.answering.judges._frame import NO_ANSWER, Verdict
from ragauge.contract.protocols import Reply
from ragauge.llms.replies import shown


def divided(reply: Reply, read: list[tuple[int, str | None]] | None, n: int, form: str) -> list[Verdict]:
    """One verdict per answer of a request, with its part of tokens, cost and time, and all of the calls.

    form: what a reply must be like, for the error of one that cannot be read.
    """
    status = "ok" if read is not None else "missing" if reply.text is None else "unreadable"
    error = None
    if read is None:
        error = reply.error if reply.text is None else shown(reply.text, form)
        if reply.text is not None and reply.error:
            error = f"{reply.error}: {error}"
    labels: Sequence[tuple[int | None, str | None]] = read if read is not None else [(None, None)] * n
    return [
        Verdict(
            label=label,
            status=status,
            raw=reply.text,
            reason=error if status == "unreadable" else reason,
            error=error,
            prompt_tokens=(reply.prompt_tokens + i) // n,  # adds up to all of them
            completion_tokens=(reply.completion_tokens + i) // n,
            cost_usd=reply.cost_usd / n,
            seconds=reply.seconds / n,
            cached=reply.cached,
            calls=reply.calls,
            usage_unknown=reply.usage_unknown,
        )
        for i, (label, reason) in enumerate(labels)
    ]


def spread(candidates: pd.DataFrame, verdict_of: Mapping[tuple[str, str], Verdict]) -> list[Verdict]:
    """A verdict for every row.

    Of equal answers to a topic the first has the cost, the others are cached. The calls of a request that
    several answers share stand at the first of them alone, so that each is counted in one job.
    """
    paid: set[tuple[str, str]] = set()
    counted: set[str | None] = set()
    verdicts = []
    for qid, answer in zip(candidates["qid"], candidates["answer"], strict=True):
        if pd.isna(answer):
            verdicts.append(Verdict(None, NO_ANSWER))
            continue
        verdict = verdict_of[qid, answer]
        if (qid, answer) in paid:
            verdict = replace(verdict, cost_usd=0.0, seconds=0.0, cached=True)
        if verdict.request in counted:
            verdict = replace(verdict, calls=0, usage_unknown=0)
        paid.add((qid, answer))
        counted.add(verdict.request)
        verdicts.append(verdict)
    return verdicts
