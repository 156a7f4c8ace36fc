"""A comparison as CSV: numbers in full precision, a row per run or per run and topic."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.compare.comparison import Comparison
from ragauge.contract.visible import csv_text


def runs_csv(comparison: Comparison, metrics: Sequence[str]) -> str:
    """A row per run: what differs, the metrics with their ends, and the differences from the baseline.

    Numbers in full precision; nothing where there is none. The differences are `difference_<measure>` with
    `_lo`, `_hi`, `_p`, `_p_holm` and `_topics`.
    """
    c = comparison
    ends = [name + end for name in metrics for end in ("", "_lo", "_hi") if name + end in c.runs]
    frame = c.runs[["run_id", "run", "n_tokens"]].assign(is_baseline=c.runs["run_id"] == c.baseline)
    params = c.params.drop(columns="n_tokens", errors="ignore").reset_index(names="run_id")
    frame = frame.merge(params, on="run_id", validate="one_to_one")
    frame = frame.merge(c.runs[["run_id", *ends]], on="run_id", validate="one_to_one")
    for measure in dict.fromkeys(c.pairs["measure"]):
        pairs = c.pairs[c.pairs["measure"] == measure].drop(columns="measure")
        names = {"difference": "", "lo": "_lo", "hi": "_hi", "p": "_p", "p_holm": "_p_holm", "n": "_topics"}
        pairs = pairs.rename(columns={k: f"difference_{measure}{v}" for k, v in names.items()})
        pairs = pairs.astype({f"difference_{measure}_topics": "Int64"})
        frame = frame.merge(pairs, on="run_id", how="left", validate="one_to_one")
    return csv_text(frame)


def topics_csv(comparison: Comparison) -> str:
    """A row per compared run and topic: scores, classes and answers, and the difference from the baseline."""
    outcomes = comparison.outcomes.assign(run=comparison.outcomes["run_id"].map(comparison.names))
    first = ["run_id", "run", "qid"]
    return csv_text(outcomes[[*first, *(c for c in outcomes if c not in first)]])
