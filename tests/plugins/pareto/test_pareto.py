"""Jobs that no other beats at the same or a lower cost, and how they are drawn and listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from ragauge.contract.finding import Fold, Grid, Num, Text, columns_of
from ragauge.contract.jobs import Jobs
from ragauge.plugins.pareto.finding import ScoreAgainstCost, frontiers
from ragauge.show.drawing import LINE_COLOURS, MARKERS
from sweep_records import record, sweep


def points(**columns: list[float]) -> pd.DataFrame:
    n = len(columns["score"])
    usual = {"system": [f"s{i}" for i in range(n)], "n_tokens": 100, "measure": "correct", "latency": False}
    table = pd.DataFrame({"tokens": [100.0] * n, "seconds": [1.0] * n, "cost": [0.0] * n, **columns})
    flags = {f"on_{name}": [i == 0 for i in range(n)] for name in ("tokens", "seconds", "cost")}
    return table.assign(**usual, **flags)


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
    assert [to_hex(handle.get_color()) for handle in legend.legend_handles] == [
        *(to_hex(colour) for colour in LINE_COLOURS[:2]), "#444444",
    ]  # fmt: skip
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
    table = points(score=[0.2, 0.5, 0.4], tokens=[100.0, 200.0, 300.0], cost=[0.05, 0.1, 0.2])
    table = table.assign(on_tokens=[True, True, False], on_seconds=[False, True, False], on_cost=[True, False, False])
    about, grid = frontier_grid(table)
    assert [column.title for column in columns_of(grid.columns)] == [
        "System", "N", "Right", "Tokens", "Seconds", "US dollars", "Best for its",
    ]  # fmt: skip
    assert [list(row) for row in grid.rows] == [
        ["s1", "100", Num(0.5, "share"), Num(200.0, "whole"), Num(1.0, "milliseconds"), Num(0.1, "usd"),
         "tokens, seconds"],
        ["s0", "100", Num(0.2, "share"), Num(100.0, "whole"), Num(1.0, "milliseconds"), Num(0.05, "usd"),
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


# Seconds are of one question and of a batch; the last two columns say on which frontier the job is by right answers,
# and by the IR score and the seconds of one question.
WORLD = """
job     n    right ir_score missing tokens p50  batch cost  on_right             on_ir_score
bm25    100  0.5   0.30     0.0     90     0.20 1.0   0.01  tokens,seconds,money tokens,money
bm25    300  0.7   0.40     0.5     250    0.20 2.0   0.02  tokens,seconds,money tokens,seconds,money
sim     100  0.6   0.40     0.0     250    0.30 2.0   0.02  -                    tokens,money
sim     300  0.7   0.35     0.0     300    0.50 3.0   0.02  money                -
none    100  0.7   0.90     0.0     -      0.90 -     -     -                    seconds
twin    100  0.5   0.20     0.0     90     0.20 1.0   0.01  tokens,seconds,money -
"""
COSTS = {"tokens": "context_tokens", "p50": "latency_total_p50", "batch": "seconds_per_topic",
         "cost": "cost_usd_per_topic"}  # fmt: skip
MEASURES = {"right": "correct_share", "ir_score": "ir_score", "missing": "judge_share_missing"} | COSTS


def jobs_of_world(**changed: dict[str, Any]) -> tuple[Jobs, list[dict[str, str]]]:
    head, *lines = (line.split() for line in WORLD.strip().splitlines())
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    records = []
    for row in rows:
        known = {MEASURES[name]: float(row[name]) for name in MEASURES if row[name] != "-"}
        records.append(record(f"retriever={row['job']}", n=int(row["n"]), **known))
        records[-1].metrics |= changed.get(row["job"], {})
    return sweep(*records), rows


@pytest.mark.parametrize("judged", [True, False])
def test_the_frontiers_of_a_sweep_by_hand(judged: bool) -> None:
    """Half of bm25's verdicts are missing, which is enough; more than half is not."""
    jobs, rows = jobs_of_world(**({} if judged else {"bm25": {"judge_share_missing": 0.51}}))
    if judged:
        del jobs.records[2].metrics["latency_total_p50"]  # then all seconds are those of a batch
    value = ScoreAgainstCost().compute(jobs, {}).value
    score, seconds, on = ("right", "batch", "on_right") if judged else ("ir_score", "p50", "on_ir_score")
    words = {"tokens": "tokens", "seconds": "seconds", "cost": "money"}
    for row, found in zip(rows, value.to_dict("records"), strict=True):
        expected = [float(row[name].replace("-", "nan")) for name in (score, "tokens", seconds, "cost")]
        assert [found[name] for name in ("score", *words)] == pytest.approx(expected, nan_ok=True)
        best = ",".join(word for name, word in words.items() if found[f"on_{name}"]) or "-"
        assert (found["system"], found["n_tokens"], best) == (row["job"], int(row["n"]), row[on])
    assert (set(value["measure"]), set(value["latency"])) == ({"correct" if judged else "ir_score"}, {not judged})
    figure = ScoreAgainstCost().show(jobs, value, {}).figures["pareto"]
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "tokens of context, mean over topics",
        "seconds per topic, of a batch" if judged else "seconds of one question, median", "US dollars per topic",
    ]  # fmt: skip


def test_a_cost_that_all_jobs_share_or_nobody_knows_has_no_panel() -> None:
    same = [record(f"retriever={r}", context_tokens=9.0, seconds_per_topic=s) for r, s in (("bm25", 1.0), ("sim", 2.0))]
    for metrics, panels in ((same[1].metrics, 1), (same[0].metrics, 0)):
        same[1].metrics = metrics
        drawn = frontiers(ScoreAgainstCost().compute(sweep(*same), {}).value)
        assert (0 if drawn is None else len(drawn.axes)) == panels
