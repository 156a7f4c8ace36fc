"""Metrics of one job that are no estimates: calls and money, the IR score by budget, the terminal's line."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd


def costs(replies: pd.DataFrame, prefix: str = "") -> dict[str, float]:
    """Calls, tokens and money of answers, or of verdicts with `prefix="judge_"`.

    A call that the store or the ledger answered counts as cached: it has no tokens and no cost here.
    """
    called = replies["prompt_tokens"].gt(0)
    paid = called & ~replies["cached"]
    # Verdicts that came in one request name it.
    call = replies["request"] if "request" in replies else replies["qid"]
    return {
        f"{prefix}llm_calls": int(call[paid].nunique()),
        f"{prefix}llm_calls_cached": int(call[called & replies["cached"]].nunique()),
        f"{prefix}prompt_tokens": int(replies.loc[paid, "prompt_tokens"].sum()),
        f"{prefix}completion_tokens": int(replies.loc[paid, "completion_tokens"].sum()),
        f"{prefix}cost_usd": float(replies.loc[paid, "cost_usd"].sum()),
    }


def curve(scores: pd.DataFrame) -> dict[int, float]:
    """The mean IR score over topics at every budget of the grid: {n_tokens: score}."""
    means = scores.groupby("n_tokens")["value"].mean()
    return dict(zip(means.index.tolist(), means.tolist(), strict=True))


def line(name: str, values: Mapping[str, float]) -> str:
    """One line for the terminal."""
    parts = [f"IR score {values['ir_score']:.3f}"]
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
    cost = values["cost_usd"] + values.get("judge_cost_usd", 0.0)
    if cost > 0:
        parts.append(f"{cost:.4f} USD")
    parts.append(f"{values['seconds_total']:.1f} s")
    return f"{name:<32} " + "  ".join(parts)
