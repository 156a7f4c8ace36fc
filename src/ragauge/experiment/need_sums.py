"""Needs of a dry run: frames of requests to LLMs, their sums, and the sums in words."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pandas as pd

from ragauge.llms.beginnings import tokens_in_common

_COLUMNS = ["who", "key", "known", "exact", "prompt_tokens", "completion_tokens", "cost_usd", "begins"]


def gathered(found: list[pd.DataFrame]) -> pd.DataFrame:
    """The concatenated needs in their usual columns."""
    return pd.concat(found, ignore_index=True).reindex(columns=_COLUMNS) if found else pd.DataFrame(columns=_COLUMNS)


def untold(who: str, n: int) -> pd.DataFrame:
    """n requests of a component without estimates: tokens and cost are missing."""
    keys = [uuid.uuid4().hex for _ in range(n)]
    missing = {"prompt_tokens": float("nan"), "completion_tokens": float("nan"), "cost_usd": float("nan")}
    return pd.DataFrame({"key": keys, "known": False, "exact": False, **missing, "who": who})


def added_up(requests: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Requests by who asks: {calls, calls_cached, calls_shared, calls_guessed, prompt_tokens, ...}.

    calls: distinct requests without an answer; calls_guessed: the stand-ins among them; calls_cached: distinct requests
    with an answer; calls_shared: rows whose request is counted further up, mostly of another job. prompt_tokens,
    completion_tokens, cost_usd: their sums over calls. {} of who cannot say what asking would need.
    """
    sums: dict[str, dict[str, float]] = {}
    requests = requests.reset_index(drop=True)
    first = requests.assign(known=requests["known"].astype(bool)).drop_duplicates(["key", "known"])
    for who, rows in requests.groupby("who", sort=False):
        if rows["prompt_tokens"].isna().any():
            sums[str(who)] = {}
            continue
        own = first.loc[first.index.intersection(rows.index)]
        todo = own[~own["known"]]
        sums[str(who)] = {
            "calls": len(todo),
            "calls_cached": len(own) - len(todo),
            "calls_shared": len(rows) - len(own),
            "calls_guessed": int((~todo["exact"].astype(bool)).sum()),
            "prompt_tokens": int(todo["prompt_tokens"].sum()),
            "completion_tokens": int(todo["completion_tokens"].sum()),
            "cost_usd": float(todo["cost_usd"].sum()),
        }
    return sums


def common_in_words(requests: pd.DataFrame) -> str:
    """One line: the share of the prompt tokens to send with which a prompt begins as one before it; "" for none."""
    todo = requests[~requests["known"].astype(bool)].drop_duplicates("key").dropna(subset="begins")
    tokens = todo["prompt_tokens"].sum()
    if not tokens:
        return ""
    share = min(1.0, tokens_in_common(todo["begins"]) / tokens)
    return f"{share:.0%} of the prompt tokens are a beginning in common, which a server may keep"


def describe_needs(sums: Mapping[str, Mapping[str, float]]) -> str:
    """One line: calls, tokens and money."""
    if not sums:
        return "no LLM calls"
    return "; ".join(
        f"{who}: cannot tell before it is asked"
        if not n
        else f"{who}: {n['calls']:,.0f} calls ({n['calls_cached']:,.0f} paid before{_shared(n)}), "
        f"about {n['prompt_tokens']:,.0f} + {n['completion_tokens']:,.0f} tokens, {_money(n)}"
        for who, n in sums.items()
    )


def _money(n: Mapping[str, float]) -> str:
    return f"{n['cost_usd']:,.2f} USD" if n["cost_usd"] or not n["calls"] else "no price given"


def _shared(n: Mapping[str, float]) -> str:
    shared = f", {n['calls_shared']:,.0f} shared with others" if n["calls_shared"] else ""
    return shared + (f"; {n['calls_guessed']:,.0f} are estimates" if n["calls_guessed"] else "")
