"""The tables of what each part brings as the report shows them, and the figure of score against cost."""

from __future__ import annotations

import pandas as pd

from ragauge.findings.pareto import frontiers
from ragauge.findings.parts import wide


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
