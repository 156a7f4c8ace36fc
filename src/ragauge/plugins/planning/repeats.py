"""The best use of the next dollar: topics, answers to a topic, or verdicts on an answer, by variance components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ragauge.contract.jobs import Jobs

_PARTS = ("topic", "answer", "judge")
_BUYS = {"topic": "topics", "answer": "answers to each topic", "judge": "verdicts on each answer"}


@dataclass(frozen=True)
class Prices:
    """US dollars of a further topic, of a further answer to it, and of a further verdict on an answer."""

    topic: float
    answer: float
    verdict: float


def variance_of_mean(parts: Sequence[float], n: float, r: float, k: float) -> float:
    """Squared standard error of a mean over n topics, r answers to each, k verdicts on each.

    parts: the variance between topics, between answers to a topic, and between verdicts on an answer.
    """
    topic, answer, judge = (max(part, 0.0) for part in parts)
    return (topic + answer / r + judge / (r * k)) / n


def best_design(parts: Sequence[float], prices: Prices) -> tuple[float, float]:
    """(r, k): answers to a topic, and verdicts on an answer, with the least variance for the money, each at least 1.

    k = sqrt(judge / answer * price of an answer / price of a verdict). An answer with its k verdicts has a price, and
    r = sqrt((answer + judge / k) / topic * price of a topic / that price) (Cochran 1977, sections 10.6 and
    10.8). A part below 0 counts as 0. inf where more is always better: no variance of the stage above.
    """
    topic, answer, judge = (max(part, 0.0) for part in parts)
    k = max(1.0, _root(judge * prices.answer, answer * prices.verdict))
    if math.isinf(k):
        return 1.0, k
    r = max(1.0, _root((answer + judge / k) * prices.topic, topic * (prices.answer + k * prices.verdict)))
    return r, k


def _root(above: float, below: float) -> float:
    if above <= 0:
        return 0.0
    return math.sqrt(above / below) if below > 0 else math.inf


def gains(parts: Sequence[float], prices: Prices, n: float, r: float, k: float) -> dict[str, float]:
    """The decrease of the squared standard error per US dollar, by purchase: topic, answer, judge.

    These are derivatives of `variance_of_mean` by n, r and k, each over the price of one more: a topic with all its
    answers, an answer to all topics, or a verdict on all answers. inf where it costs nothing and helps.
    """
    topic, answer, judge = (max(part, 0.0) for part in parts)
    each = prices.answer + k * prices.verdict
    falls = (topic + answer / r + judge / (r * k)) / n**2, (answer + judge / k) / (r**2 * n), judge / (r * k**2 * n)
    costs = prices.topic + r * each, n * each, n * r * prices.verdict
    return {
        name: fall / cost if cost > 0 else math.inf if fall > 0 else 0.0
        for name, fall, cost in zip(_PARTS, falls, costs, strict=True)
    }


def plan_repeats(sweep: Jobs, topic_price: float) -> pd.DataFrame:
    """A row per system whose job at the sweep's budget has repeats: [system, n, r, k, topic, answer, judge, error,
    best_r, best_k, price_answer, price_verdict, buys].

    Variances are of right answers; error is the standard error of their share; prices are in US dollars. best_r,
    best_k: the answers and verdicts of the design with the least variance for the money. buys: the purchase that lowers
    the variance most for the next dollar, "" where neither a price nor `topic_price` is above 0.
    """
    rows = []
    for record, system in zip(sweep.records, sweep.systems, strict=True):
        found = record.metrics
        if record.n_tokens != sweep.n_tokens or "repeat_variance_topic" not in found:
            continue
        parts = [float(found.get(f"repeat_variance_{name}", 0.0)) for name in _PARTS]
        n, r, k = (float(found[f"repeat_{name}"]) for name in ("topics", "answers", "verdicts"))
        paid = float(found.get("repeat_price_answer", 0.0)), float(found.get("repeat_price_verdict", 0.0))
        prices = Prices(topic_price, *paid)
        best = best_design(parts, prices)
        by = gains(parts, prices, n, r, k)
        buys = max(by, key=lambda name: by[name]) if topic_price + sum(paid) > 0 else ""
        error = math.sqrt(variance_of_mean(parts, n, r, k))
        rows.append((system, n, r, k, *parts, error, *best, *paid, _BUYS.get(buys, "")))
    columns = ["system", "n", "r", "k", *_PARTS, "error", "best_r", "best_k", "price_answer", "price_verdict", "buys"]
    return pd.DataFrame(rows, columns=columns)


def lines_of_repeats(planned: pd.DataFrame, topic_price: float) -> list[str]:
    """A line per system on the best use of the next dollar; none without repeats."""
    if planned.empty:
        return []
    lines = [f"\nThe next dollar (a topic costs {topic_price:g} USD beside its answers; --topic-price)"]
    for row in planned.to_dict("records"):
        best = " and ".join(
            f"{name} without end" if math.isinf(number) else f"{number:.1f} {name}"
            for number, name in ((row["best_r"], "answers"), (row["best_k"], "verdicts"))
        )
        judge = f", verdicts {row['judge']:.3f}" if row["k"] > 1 else ""
        buys = f"buys {row['buys']}" if row["buys"] else "is not needed: answers and verdicts cost nothing"
        lines.append(
            f"{row['system']}: {buys}. Variance of right answers: topics {row['topic']:.3f}, answers "
            f"{row['answer']:.3f}{judge}; standard error {row['error']:.3f} with {row['n']:,.0f} topics, "
            f"{row['r']:.0f} answers, {row['k']:.0f} verdicts; best for the money: {best}"
        )
    return lines
