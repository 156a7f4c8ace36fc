"""The tables of what each part brings as the report shows them, and the figure of score against cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from ragauge.contract.finding import Fold, Grid, Num, Text, columns_of
from ragauge.contract.jobs import Jobs
from ragauge.findings.pareto import ScoreAgainstCost, frontiers
from ragauge.findings.parts import Brought, Parts, wide
from ragauge.show.drawing import LINE_COLOURS, MARKERS
from ragauge.show.html import blocks


def points(**columns: list[float]) -> pd.DataFrame:
    n = len(columns["score"])
    usual = {"system": [f"s{i}" for i in range(n)], "n_tokens": 100, "measure": "correct", "latency": False}
    table = pd.DataFrame({"tokens": [100.0] * n, "seconds": [1.0] * n, "cost": [0.0] * n, **columns})
    flags = {f"on_{name}": [i == 0 for i in range(n)] for name in ("tokens", "seconds", "cost")}
    return table.assign(**usual, **flags)


def test_rows_of_one_option_stand_in_one_row_by_measure() -> None:
    frame = pd.DataFrame(
        [("sim", "ir_score", 0.1), ("sim", "correct", 0.2), ("mmr", "ir_score", 0.3)],
        columns=["option", "measure", "difference"],
    )
    rows = wide(frame, ["option"])
    assert list(rows) == [("sim",), ("mmr",)]
    assert {name: e["difference"] for name, e in rows["sim",].items()} == {"ir_score": 0.1, "correct": 0.2}


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


ABLATION = pd.DataFrame(
    [("retriever", "sim", "bm25", 2, "ir_score", 0.1), ("retriever", "sim", "bm25", 2, "correct", -0.25),
     ("llm", "b", "a", 3, "ir_score", 0.2)],
    columns=["factor", "option", "base", "settings", "measure", "difference"],
).assign(lo=-0.5, hi=0.5)  # fmt: skip
GAINS = pd.DataFrame([("sim", "none", "correct", 0.5, 0.25, 0.75)],
                     columns=["system", "base", "measure", "difference", "lo", "hi"])  # fmt: skip
SIZES = pd.DataFrame(
    [("size=64", "", 100, 0.4, 9, 3.5), ("size=64", "", 300, 0.5, 9, 3.5), ("size=128", "sim", 300, 0.6, 5, None)],
    columns=["chunks", "system", "n_tokens", "ir_score", "n_chunks", "seconds"],
)


def test_parts_are_shown_as_far_as_the_sweep_tells_of_them() -> None:
    rows = pd.DataFrame({"system": ["bm25", "sim"], "n_tokens": 300})
    jobs = Jobs("s", "e", [{"answer_measures": []}], [], rows)

    def grids(value: Brought) -> dict[str, Grid]:
        (section,) = Parts().show(jobs, value, {}).sections
        assert blocks(section.blocks, {})  # a page can be made of them
        return {block.label: block for block in section.blocks if isinstance(block, Grid)}

    every = grids(Brought(ABLATION, GAINS, SIZES))
    assert list(every) == ["What each part brings", "Gain over the LLM alone", "Chunk sizes"]
    assert list(grids(Brought(ABLATION, GAINS.head(0), None))) == ["What each part brings"]
    assert list(grids(Brought(ABLATION.head(0), None, SIZES))) == ["Chunk sizes"]
    assert list(grids(Brought(ABLATION.head(0), GAINS, None))) == ["Gain over the LLM alone"]
    brought = every["What each part brings"]
    assert [column.title for column in columns_of(brought.columns)] == [
        "Part", "Option", "Against", "IR score", "Right, points", "Settings",
    ]  # fmt: skip
    assert [list(row) for row in brought.rows] == [
        ["retriever", "sim", "bm25", Num(0.1, "signed", -0.5, 0.5), Num(-0.25, "points", -0.5, 0.5), "2"],
        ["llm", "b", "a", Num(0.2, "signed", -0.5, 0.5), Num(None, "points"), "3"],
    ]  # fmt: skip
    gain = every["Gain over the LLM alone"]
    assert [column.title for column in columns_of(gain.columns)] == ["System", "Right"]
    assert [list(row) for row in gain.rows] == [["sim", Num(0.5, "points", 0.25, 0.75)]]
    sizes = every["Chunk sizes"]
    assert [column.title for column in columns_of(sizes.columns)][2:] == ["Number", "Index", "N = 100", "N = 300"]
    assert [list(row)[:2] for row in sizes.rows] == [["size=64", "all"], ["size=128", "sim"]]
    assert [row[4:] for row in sizes.rows] == [[Num(0.4), Num(0.5)], [Num(None), Num(0.6)]]
