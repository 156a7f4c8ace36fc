"""Jobs that no other beats at the same or a lower cost, and how they are drawn and listed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from ragauge.contract.finding import Fold, Grid, Num, Text, columns_of
from ragauge.plugins.pareto.finding import ScoreAgainstCost, frontiers, score_against_cost
from ragauge.show.drawing import LINE_COLOURS, MARKERS
from sweep_records import record, sweep


def points(**columns: list[float]) -> pd.DataFrame:
    n = len(columns["score"])
    usual = {"system": [f"s{i}" for i in range(n)], "n_tokens": 100, "measure": "correct", "latency": False}
    table = pd.DataFrame({"tokens": [100.0] * n, "seconds": [1.0] * n, "cost": [0.0] * n, **columns})
    flags = {f"on_{name}": [i == 0 for i in range(n)] for name in ("tokens", "seconds", "cost")}
    return table.assign(**usual, **flags)


def test_a_cost_that_all_jobs_share_has_no_panel() -> None:
    drawn = frontiers(points(score=[0.5, 0.4], tokens=[100.0, 200.0]))
    assert drawn is not None
    assert [axes.get_xlabel() for axes in drawn.axes] == ["tokens of context, mean over topics"]
    assert frontiers(points(score=[0.5, 0.4])) is None


def test_the_axis_says_whether_seconds_are_of_one_question_or_of_a_batch() -> None:
    table = points(score=[0.5, 0.4], seconds=[1.0, 2.0])
    for latency, label in (
        (False, "seconds per topic, of a batch"),
        (True, "seconds of one question, median"),
    ):
        drawn = frontiers(table.assign(latency=latency))
        assert drawn is not None
        assert drawn.axes[0].get_xlabel() == label


def test_a_name_with_a_dollar_sign_is_no_formula() -> None:
    drawn = frontiers(points(score=[0.5, 0.4], cost=[0.1, 0.2]).assign(system=["$a$", "_b"]))
    assert drawn is not None
    assert {text.get_text() for text in drawn.legends[0].get_texts()} == {r"\$a\$", " _b", "frontier"}


def test_points_have_the_colour_of_their_system_and_rings_where_no_other_is_better() -> None:
    table = points(score=[0.2, 0.5, 0.4, 0.6], tokens=[100.0, 200.0, 300.0, 400.0], seconds=[1.0, 2.0, np.nan, 3.0])
    table = table.assign(system=["a", "b", "a", "b"], on_tokens=[True, True, False, True])
    drawn = frontiers(table)
    assert drawn is not None
    assert drawn.get_figheight() == pytest.approx(2 * 2.5 + 0.2 * 2)
    tokens, seconds = drawn.axes
    of_a, of_b, rings = tokens.collections
    assert of_a.get_offsets().tolist() == [[100, 0.2], [300, 0.4]]
    assert of_b.get_offsets().tolist() == [[200, 0.5], [400, 0.6]]
    assert rings.get_offsets().tolist() == [[100, 0.2], [200, 0.5], [400, 0.6]]
    assert [to_hex(one.get_facecolor()[0]) for one in (of_a, of_b)] == [to_hex(c) for c in LINE_COLOURS[:2]]
    steps = next(line for line in tokens.lines if line.get_drawstyle() == "steps-post")
    assert (steps.get_xdata().tolist(), steps.get_ydata().tolist()) == ([100, 200, 400], [0.2, 0.5, 0.6])
    assert seconds.collections[0].get_offsets().tolist() == [[1, 0.2]]
    assert tokens.get_xlim() == pytest.approx((0, 400 * 1.08))
    assert tokens.get_ylim() == pytest.approx((0, 0.66))
    assert [axes.get_ylabel() for axes in drawn.axes] == ["right answers"] * 2
    assert tokens.yaxis.get_major_formatter()(0.5) == "50%"
    legend = drawn.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "frontier"]
    assert [handle.get_marker() for handle in legend.legend_handles] == [*MARKERS[:2], "o"]
    scores = frontiers(table.assign(measure="ir_score"))
    assert scores is not None
    assert scores.axes[0].get_ylabel() == "IR score"
    assert scores.axes[0].yaxis.get_major_formatter()(0.5) != "50%"


def test_without_a_score_nothing_is_drawn_of_what_it_costs() -> None:
    unknown = points(score=[np.nan, np.nan], tokens=[100.0, 200.0])
    assert frontiers(unknown) is None
    assert not ScoreAgainstCost().show(None, unknown, {}).sections  # type: ignore[arg-type]
    assert frontiers(points(score=[np.nan, 0.5], tokens=[100.0, 200.0])) is not None


def frontier_grid(table: pd.DataFrame) -> tuple[str, Grid]:
    (section,) = ScoreAgainstCost().show(None, table, {}).sections  # type: ignore[arg-type]
    fold = section.blocks[-1]
    assert isinstance(fold, Fold)
    about, grid = fold.blocks
    assert isinstance(about, Text)
    assert isinstance(grid, Grid)
    return about.text, grid


def test_the_jobs_on_a_frontier_are_listed_the_best_first_with_what_they_are_best_for() -> None:
    table = points(score=[0.2, 0.5, 0.4], tokens=[100.0, 200.0, 300.0], cost=[0.5, 1.0, 2.0])
    table = table.assign(on_tokens=[True, True, False], on_seconds=[False, True, False], on_cost=[True, False, False])
    about, grid = frontier_grid(table)
    assert [column.title for column in columns_of(grid.columns)] == [
        "System", "N", "Right", "Tokens", "Seconds", "US dollars", "Best for its",
    ]  # fmt: skip
    assert [list(row) for row in grid.rows] == [
        ["s1", "100", Num(0.5, "share"), Num(200.0, "whole"), Num(1.0, "milliseconds"), Num(1.0, "usd"),
         "tokens, seconds"],
        ["s0", "100", Num(0.2, "share"), Num(100.0, "whole"), Num(1.0, "milliseconds"), Num(0.5, "usd"),
         "tokens, money"],
    ]  # fmt: skip
    assert "of a batch" in about
    assert "US dollars" in about
    about, grid = frontier_grid(table.assign(cost=0.0, latency=True, measure="ir_score"))
    assert [column.title for column in columns_of(grid.columns)] == [
        "System", "N", "IR score", "Tokens", "Seconds", "Best for its",
    ]  # fmt: skip
    assert [row[-1] for row in grid.rows] == ["tokens, seconds", "tokens"]
    assert about == "Seconds: the median of questions sent one by one."


def test_the_score_against_cost_is_of_right_answers_where_all_were_judged() -> None:
    costs = {"context_tokens": 90.0, "seconds_per_topic": 0.5, "cost_usd_per_topic": 0.01}
    dear = {name: 2 * value for name, value in costs.items()}
    jobs = [record("retriever=bm25", **costs), record("retriever=sim", **dear, correct_share=0.2)]
    found = score_against_cost(sweep(*jobs))
    assert found["measure"].unique().tolist() == ["correct"]
    assert found[["on_tokens", "on_seconds", "on_cost"]].to_numpy().tolist() == [[True] * 3, [False] * 3]
    jobs[1]["metrics"]["judge_share_missing"] = 1.0
    assert score_against_cost(sweep(*jobs))["score"].tolist() == [0.5, 0.5]


def test_seconds_are_those_of_one_question_where_every_job_measured_them() -> None:
    jobs = [
        record(f"retriever={r}", seconds_per_topic=9.0, latency_total_p50=0.25, context_tokens=1.0)
        for r in ("bm25", "sim")
    ]
    assert score_against_cost(sweep(*jobs))["seconds"].tolist() == [0.25, 0.25]
    del jobs[0]["metrics"]["latency_total_p50"]
    found = score_against_cost(sweep(*jobs))
    assert found["seconds"].tolist() == [9.0, 9.0]
    assert not found["latency"].any()
