"""Labels that people gave: read from a file, laid beside the judge's, and what they say of all topics."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.estimate import Agreement, asked, judge_agreement, ppi_shares


def human_agreement(
    outcomes: pd.DataFrame, n_boot: int, seed: int, keys: Sequence[str] = ("qid",)
) -> Agreement:
    """How far `label` agrees with `human_label` where an answer has both; `keys` tell the rows apart.

    An answer that was left out of a sample to judge has no verdict to compare.
    """
    rows = asked(outcomes)
    people = rows.loc[rows["human_label"].notna(), [*keys, "human_label"]]
    return judge_agreement(rows, people.rename(columns={"human_label": "label"}), keys, n_boot, seed)


def human_shares(outcomes: pd.DataFrame) -> pd.DataFrame | None:
    """Class shares of all topics as people would judge them (see `ppi_shares`), from the labels of a few.

    The judge's verdict on every topic is the prediction. The labelled topics are taken for a random draw.
    None with fewer than two of them, and where the judge saw a sample only.
    """
    labelled = outcomes["human_label"].notna()
    if len(asked(outcomes)) < len(outcomes) or outcomes.loc[labelled, "qid"].nunique() < 2:
        return None
    verdicts = {f"p{c}": outcomes["label"].eq(c).fillna(False).astype(float) for c in JUDGE_CLASSES}
    frame = outcomes[["qid"]].assign(label=outcomes["human_label"], judged=labelled, **verdicts)
    return ppi_shares(frame)
