"""The card of a trained model: its base, its data, and its gains and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

_HEAD = "| dataset | topics | system | measure | before | after | difference | 95 % interval | n |"
_COUNTED = ("topics", "rows", "jobs", "sweeps")  # what numbers of the card are of


def model_card(
    title: str,
    base: str,
    facts: Mapping[str, Any],
    values: Mapping[str, float],
    told: Mapping[str, str],
    parts: Sequence[str],
) -> str:
    """Markdown: base, facts, size of the training data, the trainer's facts, and further parts."""
    lines = [f"# {title}", "", f"Base: {base}.", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    counts = {key: value for key, value in values.items() if set(key.split("_")) & set(_COUNTED)}
    lines += [f"- {key}: {value:,.0f}" for key, value in counts.items()]
    lines += [f"- {heading}: {text}" for heading, text in told.items()]
    return "\n".join([*lines, *(f"\n{part}" for part in parts)]) + "\n"


def before_and_after(table: pd.DataFrame) -> list[str]:
    """The card's section on `comparison.gains`; [] without rows."""
    if table.empty:
        return []
    lines = ["## Before and after", "", _HEAD, "|---|---|---|---|---|---|---|---|---|"]
    lines += [
        f"| {r.dataset} | {r.topics} | {r.system} | {r.measure} | {r.before:.3f} | {r.after:.3f} | "
        f"{r.difference:+.3f} | {r.lo:+.3f} to {r.hi:+.3f} | {r.n} |"
        for r in table.itertuples()
    ]
    lines += ["", "apart: the topics that share no relevant document with the training."]
    return ["\n".join(lines)]
