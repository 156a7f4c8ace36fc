"""Which metrics a comparison shows, what they are called, and which end of each is better."""

from __future__ import annotations

from ragauge.compare._words import chosen_measures
from ragauge.compare.comparison import Comparison
from ragauge.contract.errors import ConfigError
from ragauge.measures.rankings import CLASSIC_NAMES, CLASSICS, metric_of

NAMES = {
    "ir_score": "IR score",
    "correct_share": "right",
    "hallucination_share": "hallucination",
    "judge_share_1": "1 lack",
    "judge_share_2": "2 partly wrong",
    "judge_share_3": "3 incomplete",
    "judge_share_4": "4 wrong",
    "judge_share_5": "5 right",
    "judge_share_missing": "no verdict",
    "judge_repeat_agreement": "judge asked again, equal",
    "judge_reorder_agreement": "judge, other order, equal",
    "judge_position_effect": "judge's position effect",
    "predicted_correct_share": "predicted right",
    "predicted_hallucination_share": "predicted hallucination",
    "cost_usd": "cost, USD",
    "judge_cost_usd": "judge's cost, USD",
    **CLASSIC_NAMES,
}
_DEFAULT = (
    "ir_score", "correct_share", "hallucination_share", "predicted_correct_share",
    "predicted_hallucination_share", *(f"judge_share_{c}" for c in (1, 2, 3, 4, "missing")), "p_at_1",
    "r_at_5", "ndcg_at_10", "rr", "judge_repeat_agreement", "judge_reorder_agreement",
    "judge_position_effect", "cost_usd", "judge_cost_usd",
)  # fmt: skip
HIGHER = {"ir_score", "correct_share", "judge_share_5", "predicted_correct_share", *CLASSICS.values()}
LOWER = {
    "hallucination_share", "judge_share_2", "judge_share_4", "judge_share_missing",
    "predicted_hallucination_share",
}  # fmt: skip


def choose_metrics(comparison: Comparison, asked: str | None = None, everything: bool = False) -> list[str]:
    """The metrics to show: those asked for (names with commas between), all, or a sensible few.

    The few are those that some run has, and costs only where something was paid. ConfigError for a name that
    no run has.
    """
    there = [c for c in map(str, comparison.runs) if c not in ("run_id", "run", "system", "n_tokens", "compared")]
    values = comparison.runs[there]
    known = [c for c in there if values[c].notna().any()]
    default = (*_DEFAULT, *(info.name for info in chosen_measures(comparison.answers)), *comparison.metrics)
    if everything:
        ends = {f"{c}{end}" for c in known for end in ("_lo", "_hi")}
        return [*(c for c in default if c in known), *(c for c in known if c not in {*ends, *default})]
    if asked is None:
        return [c for c in default if c in known and (not c.endswith("cost_usd") or values[c].gt(0).any())]
    chosen = list(
        dict.fromkeys(name.strip() if name.strip() in known else metric_of(name.strip()) for name in asked.split(","))
    )
    unknown = [name for name in chosen if name not in known]
    if unknown:
        names = ", ".join(c for c in known if not c.endswith(("_lo", "_hi")))
        raise ConfigError(f"--metrics: no run has {unknown[0]!r}; there are {names}")
    return chosen
