"""The card of a trained model: what it is, what it was trained on, and what it gained and lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragauge.contract.training import Trained, Trainer

_HEAD = "| dataset | topics | system | measure | before | after | difference | 95 % interval | n |"


def model_card(
    trainer: Trainer,
    name: str | None,
    trained: Trained,
    facts: Mapping[str, Any],
    values: Mapping[str, float],
    table: pd.DataFrame,
) -> str:
    """Markdown: base, data, settings, and the rows of `comparison.gains`."""
    base = trainer.base()
    lines = [f"# {name or f'A tuned {trainer.kind}'}", "", f"Base: {base.get('model', '?')}.", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    lines += [f"- {key}: {value:,.0f}" for key, value in values.items() if "topics" in key]
    lines += [f"- {heading}: {text}" for heading, text in trained.facts.items()]
    if len(table):
        lines += ["", "## Before and after", "", _HEAD, "|---|---|---|---|---|---|---|---|---|"]
        lines += [
            f"| {r.dataset} | {r.topics} | {r.system} | {r.measure} | {r.before:.3f} | {r.after:.3f} | "
            f"{r.difference:+.3f} | {r.lo:+.3f} to {r.hi:+.3f} | {r.n} |"
            for r in table.itertuples()
        ]
        lines += ["", "apart: the topics that share no relevant document with the training."]
    return "\n".join(lines) + "\n"
