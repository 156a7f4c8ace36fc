"""Metrics of one job that are no estimates: calls, money, the IR score by budget; and their line."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.groups import CALLS
from ragauge.contract.offers import ChatOffers, offered
from ragauge.contract.topics import is_unanswerable
from ragauge.measures.floor import is_corrected

RECORDED = "recorded"  # kind of an llm or judge that reads what was said elsewhere
CURVES = ("ir_score_at_n", "ir_score_floor_at_n")  # step charts over n_tokens, and entries of a job's record


def costs(replies: pd.DataFrame, prefix: str = "") -> dict[str, float]:
    """Calls, tokens and money of answers, or of verdicts with `prefix="judge_"`.

    A request that the store or the ledger answered, or another job's verdicts paid for, counts as cached: it
    has no tokens and no cost here. llm_usage_unknown is how many calls are charged at the most they can cost.
    """
    told = "calls" in replies  # frames of parts that do not count their calls have tokens alone
    calls = replies["calls"] if told else replies["prompt_tokens"].gt(0).astype(int)
    paid = ~replies["cached"]
    own = calls.gt(0) & paid
    answered = calls.gt(0) & ~paid
    # Verdicts that came in one request name it; its calls stand at the first of them.
    request = replies["request"] if "request" in replies else replies["qid"]
    if told and "request" in replies:
        answered = request.notna() & replies["status"].ne("missing") & ~own
    unknown = replies["usage_unknown"] if "usage_unknown" in replies else calls * 0
    return {
        f"{prefix}llm_calls": int(calls[own].sum() if told else request[own].nunique()),
        f"{prefix}llm_calls_cached": int(request[answered & ~request.isin(request[own])].nunique()),
        f"{prefix}llm_usage_unknown": int(unknown[own].sum()),
        f"{prefix}prompt_tokens": int(replies.loc[paid, "prompt_tokens"].sum()),
        f"{prefix}completion_tokens": int(replies.loc[paid, "completion_tokens"].sum()),
        f"{prefix}cost_usd": float(replies.loc[paid, "cost_usd"].sum()),
    }


def full_cost(replies: pd.DataFrame, chat: Any) -> float:
    """US dollars that the replies cost whoever asked first: cached ones by their tokens and the chat's price.

    `chat` is the model that gave them; cached replies of one that tells no `cost` count nothing. NaN where
    it is a service, which alone knew.
    """
    cached = replies["cached"].astype(bool)
    paid = float(replies.loc[~cached, "cost_usd"].sum())
    return paid + float(offered(chat, ChatOffers).cost_of_kept(replies[cached]))


def taken(answers: pd.DataFrame) -> tuple[float, float]:
    """Seconds and US dollars that recorded answers took when they were given; NaN where nobody told."""
    seconds, cost = (float(answers[name].sum()) for name in ("seconds", "cost_usd"))
    return seconds or math.nan, cost or math.nan


def recorded(answers: pd.DataFrame) -> dict[str, float]:
    """What a file says that its answers took: recorded_<what>; without what it does not tell.

    Sums of prompt and completion tokens and of US dollars, median and 95th percentile of seconds.
    """
    sums = {name: float(answers[name].sum()) for name in ("prompt_tokens", "completion_tokens", "cost_usd")}
    seconds = answers.loc[answers["answer"].notna(), "seconds"]
    if seconds.gt(0).any():
        sums |= {f"seconds_{end}": float(seconds.quantile(q)) for end, q in (("p50", 0.5), ("p95", 0.95))}
    return {f"recorded_{name}": value for name, value in sums.items() if value}


def cut_after_answers(n_tokens: int, run: pd.DataFrame, layouts: pd.DataFrame, prefixes: pd.DataFrame) -> str | None:
    """A sentence where n_tokens cuts contexts that recorded answers were given with; None where it cuts none.

    The frames are those of these names; run is what is laid out.
    """
    here = prefixes[prefixes["n_tokens"] == n_tokens].merge(layouts[["qid", "layout", "text"]])
    left_out = here["n_chunks"] < here["qid"].map(run["qid"].value_counts()).fillna(0)
    texts = zip(here["text"], here["end"], left_out, strict=True)
    cut = sum(bool(out or text[end:].strip()) for text, end, out in texts)
    if not cut:
        return None
    return (
        f"n_tokens={n_tokens} cuts the contexts of {cut:,} of {len(here):,} topics, whose answers were "
        "given with all of them: scores are of less than the LLM saw"
    )


def topic_sums(run: pd.DataFrame, columns: Sequence[str]) -> dict[str, float]:
    """Sums over topics of the run's columns that hold a number per topic, such as `reranker_repaired`."""
    first = run.drop_duplicates("qid")
    return {name: int(first[name].sum()) for name in columns if name in first}


def lacking(
    topics: pd.DataFrame,
    scored_evidence: pd.DataFrame,
    lost_evidence: pd.DataFrame,
    unjudged: Collection[str],
) -> dict[str, list[str]]:
    """The qids of the topics that lack something, by what follows `topics_` in its metric.

    That is evidence, evidence where it should be, something to judge by, or an answer. An unanswerable topic
    counts as that alone.
    """
    marked = is_unanswerable(topics)
    found = {
        "without_evidence": ~topics["qid"].isin(scored_evidence["qid"]) & ~marked,
        "lost_evidence": topics["qid"].isin(lost_evidence["qid"]) & ~marked,
        "without_reference": topics["qid"].isin(unjudged),
        "unanswerable": marked,
    }
    return {name: topics.loc[rows, "qid"].tolist() for name, rows in found.items()}


def curve(scores: pd.DataFrame) -> dict[int, float]:
    """The mean IR score over topics at every budget of the grid: {n_tokens: score}."""
    means = scores.groupby("n_tokens")["value"].mean()
    return dict(zip(means.index.tolist(), means.tolist(), strict=True))


def floor(measure: Any, means: pd.DataFrame) -> dict[int, float]:
    """What the measure gives for unrelated text, the mean over topics of `floor_means`: {n_tokens: score}.

    Of a corrected measure it is what is left of that after the correction.
    """
    values = means["corrected" if is_corrected(measure) else "value"]
    return dict(zip(means["n_tokens"].tolist(), values.tolist(), strict=True))


def rewriting(checks: pd.DataFrame) -> dict[str, float]:
    """What `query_checks` says over topics; a mean is left out where no topic has a value."""
    means = checks[["similarity", "new_hits"]].mean().dropna()
    return {
        "rewriter_failed": int(checks["failed"].sum()),
        **{f"rewriter_{name}": float(value) for name, value in means.items()},
    }


def compression(sizes: pd.DataFrame) -> dict[str, float]:
    """`compressor_ratio`: characters of the passages after compression over those before, of all topics.

    sizes: one row [characters_in, characters_out]; 1 where there was no text.
    """
    row = sizes.iloc[0]
    return {"compressor_ratio": row["characters_out"] / row["characters_in"] if row["characters_in"] else 1.0}


def line(name: str, values: Mapping[str, float]) -> str:
    """One line for the terminal."""
    parts = [f"IR score {values['ir_score']:.3f}"] if "ir_score" in values else ["no IR score"]
    if values.get("judge_share_missing", 1) < 1:
        parts += [
            f"right {values['correct_share']:.0%}",
            f"lack {values['judge_share_1']:.0%}",
            f"hallucination {values['hallucination_share']:.0%}",
        ]
    if "predicted_correct_share" in values:
        parts.append(
            f"predicted right {values['predicted_correct_share']:.0%}, "
            f"hallucination {values['predicted_hallucination_share']:.0%}"
        )
    cost = sum(values.get(f"{prefix}cost_usd", 0.0) for prefix in CALLS)
    if cost > 0:
        parts.append(f"{cost:.4f} USD")
    parts.append(f"{values['seconds_total']:.1f} s")
    return f"{name:<32} " + "  ".join(parts)
