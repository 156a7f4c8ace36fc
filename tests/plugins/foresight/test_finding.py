"""What the report says of the measure that foresees best: from a table written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Num, Tagged, columns_of
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.settings import Foreseen, Settings
from ragauge.plugins.foresight.finding import best_of, best_sentence, foresight_figure, foresight_grid
from ragauge.plugins.foresight.measures import Foresight
from ragauge.plugins.foresight.target import Target
from ragauge.show.drawing import LINE_COLOURS


def auc(measure: str, value: float, of: str = "context", **changes: Any) -> dict[str, Any]:
    row = {"measure": measure, "label": measure.upper(), "of": of, "statistic": "auc_right", "value": value,
           "lo": value - 0.1, "hi": value + 0.05, "n": 40, "less_ir": value - 0.7, "less_ir_lo": value - 0.8,
           "less_ir_hi": value - 0.6, "adds": 0.1, "adds_lo": 0.05, "adds_hi": 0.15, "p": 0.01, "p_chance": 0.01,
           "p_best": 0.01, "p_holm": 0.2}  # fmt: skip
    return row | changes


def foresight(*rows: dict[str, Any], n_systems: int = 2) -> Foresight:
    return Foresight(pd.DataFrame(list(rows)), "judge", 40, n_systems)


FOUND = foresight(
    auc("ir_score", 0.7, "ranking"), auc("length", 0.6), auc("recall", 0.8, "ranking"), auc("em", 0.95, "answer"),
    auc("none", np.nan),
)  # fmt: skip


def test_the_best_is_one_that_is_known_before_the_llm_answers() -> None:
    best = best_of(FOUND)
    assert best is not None
    assert (best["measure"], best["label"], best["shown"], best["beside"]) == ("recall", "RECALL", True, "")
    assert best_sentence(FOUND) == (
        "Among the measures known before the LLM answers, RECALL foresees best: AUC 0.800 (0.700 to 0.850)."
    )
    assert best_of(foresight(auc("em", 0.9, "answer"))) is None


def test_measures_that_tie_are_all_named_and_those_that_may_be_as_good_are_counted() -> None:
    rows = [
        auc("a", 0.8, p_best=1.0),
        auc("b", 0.8, p_best=1.0),
        auc("c", 0.75, p_best=0.05),
        auc("d", 0.7, p_best=0.3),
    ]
    for n, beside in ((2, ""), (3, "; 1 other may be as good"), (4, "; 2 others may be as good")):
        best = best_of(foresight(*rows[:n]))
        assert best is not None
        assert (best["label"], best["beside"]) == ("A = B", beside)


def test_a_measure_that_is_not_told_from_chance_is_not_said_to_foresee() -> None:
    for p, shown in ((0.049, True), (0.05, False)):
        found = foresight(auc("a", 0.6, p_chance=p))
        best = best_of(found)
        assert best is not None
        assert best["shown"] is shown
        assert best_sentence(found).startswith("Among the measures" if shown else "No measure")


def test_the_table_has_the_best_first_and_marks_what_differs_from_the_ir_score() -> None:
    table = pd.DataFrame(
        [auc(name, value, "ranking", statistic=statistic, p_holm=p)
         for name, value, p in
         (("ir_score", 0.7, np.nan), ("low", np.nan, 0.2), ("recall", 0.8, 0.049), ("mrr", 0.75, 0.05))
         for statistic in ("auc_right", "auc_lack", "spearman", "kendall")]
    )  # fmt: skip
    for n_systems in (2, 3):
        grid = foresight_grid("before", table, Foresight(table, "judge", 40, n_systems))
        titles = [column.title for column in columns_of(grid.columns)]
        several = ["Kendall"] if n_systems == 3 else []
        assert titles == [
            "Measure", "Topics", "AUC, right", "less IR score", "AUC, lack", "less IR score", "adds to IR score",
            "Spearman", *several,
        ]  # fmt: skip
        assert [row[0] for row in grid.rows] == [
            Tagged(n.upper(), below=n) for n in ("recall", "mrr", "ir_score", "low")
        ]
        assert grid.rows[0][1:4] == [
            Num(40, "whole"), Num(0.8, "score", 0.8 - 0.1, 0.8 + 0.05),
            Num(0.8 - 0.7, "signed", 0.8 - 0.8, 0.8 - 0.6, "†"),
        ]  # fmt: skip
        assert [row[6] for row in grid.rows] == [Num(0.1, "signed", 0.05, 0.15)] * 4
        assert [row[3].tag for row in grid.rows[1:3]] == ["", ""]  # type: ignore[union-attr]
        assert all(len(row) == len(titles) for row in grid.rows)
    other = foresight_grid("before", table, Foresight(table, "em", 40, 2))
    assert "AUC, lack" not in [column.title for column in columns_of(other.columns)]


def test_the_figure_has_the_best_at_the_top_and_a_line_at_chance_and_at_the_ir_score() -> None:
    figure = foresight_figure(FOUND)
    assert figure is not None
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["EM", "RECALL", "IR_SCORE", "LENGTH"]
    assert axes.get_yticks().tolist() == [3, 2, 1, 0]
    assert axes.get_ylim() == pytest.approx((-0.6, 3.6))
    before, after = (container.lines[0] for container in axes.containers)  # type: ignore[attr-defined]
    assert before.get_xdata().tolist() == [0.8, 0.7, 0.6]
    assert before.get_ydata().tolist() == [2, 1, 0]
    assert (after.get_xdata().tolist(), after.get_ydata().tolist()) == ([0.95], [3])
    (reach,) = axes.containers[0].lines[2]  # type: ignore[attr-defined]
    assert np.allclose([segment[:, 0] for segment in reach.get_segments()], [[0.7, 0.85], [0.6, 0.75], [0.5, 0.65]])
    at = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]
    assert at == [0.5, 0.7]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "Known before the LLM answers", "Known once it has answered",
    ]  # fmt: skip
    assert [to_hex(line.get_color()) for line in (before, after)] == [to_hex(c) for c in LINE_COLOURS[:2]]
    many = foresight(*(auc(f"m{i}", 0.5 + i / 100) for i in range(30)))
    shown = foresight_figure(many)
    assert shown is not None
    assert [label.get_text() for label in shown.axes[0].get_yticklabels()] == [f"M{i}" for i in range(29, 4, -1)]
    assert shown.get_figheight() - figure.get_figheight() == pytest.approx(0.26 * (25 - 4) - 0.2)


def test_a_target_that_is_no_measure_of_the_job_is_refused_before_any_work() -> None:
    em, length = AnswerMeasureInfo("em", "EM", unit="share"), AnswerMeasureInfo("length", "Length", of="context")
    settings = Settings(foresight=Foreseen(target="em"))
    Target().check(settings, [em])
    with pytest.raises(ConfigError, match=r"foresight.target='em': allowed are judge$"):
        Target().check(settings, [length])
