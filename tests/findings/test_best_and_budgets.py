"""What terminal and figures say of systems and budgets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.estimate import leaderboard
from ragauge.findings.terminal import leaderboard_text
from ragauge.show.figures import ir_score_by_n


def sweep(n_topics: int) -> pd.DataFrame:
    """Two systems at two budgets; both find everything that they ever find within 100 tokens."""
    score = np.linspace(0.2, 0.9, n_topics)
    parts = [
        pd.DataFrame(
            {"qid": np.arange(n_topics).astype(str), "system": system, "n_tokens": n,
             "ir_score": score - 0.1 * (system == "sim"), "label": pd.array([None] * n_topics, dtype="Int8")}
        )
        for system in ("bm25", "sim")
        for n in (100, 200)
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def test_bands_are_shaded_beside_their_lines() -> None:
    curves = {"bm25": {100: 0.5, 200: 0.6}, "sim": {100: 0.4, 200: 0.5}}
    plain = ir_score_by_n(curves)
    shaded = ir_score_by_n(curves, bands={"sim": {100: (0.35, 0.45), 200: (0.45, 0.55)}})
    assert not plain.axes[0].collections
    (area,) = shaded.axes[0].collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.35, 0.55)


def test_a_system_without_verdicts_has_dashes_beside_judged_ones() -> None:
    rows = sweep(40).query("n_tokens == 100")
    known = rows["system"] == "bm25"
    rows = rows.assign(label=pd.array(np.where(known, 5, 0), dtype="Int8"))
    rows["label"] = rows["label"].mask(~known)
    text = leaderboard_text(leaderboard(rows, "system", n_boot=0), 100, judged=True)
    judged, unjudged = text.splitlines()[3:5]
    assert "100%" in judged
    assert "nan" not in text
    assert unjudged.split()[0] == "sim"
    assert unjudged.split()[3:] == ["–", "–", "–", "100%"]
