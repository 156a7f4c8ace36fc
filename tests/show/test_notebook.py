"""A job and a sweep as a notebook shows them: which numbers stand there, and that texts of others are only text."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.show.notebook import Figure, job_html, short_board, sweep_html

METRICS = {
    "ir_score": 0.5, "ir_score_lo": 0.25, "ir_score_hi": 0.75,
    "correct_share": 0.4, "correct_share_lo": 0.1,  # an end alone is no interval
    "judge_share_1": float("nan"), "cost_usd": 0.01234, "judge_share_5": 0.4,
}  # fmt: skip
ENDS = ("em_lo", "em_hi", "correct_share_lo", "correct_share_hi", "judge_share_1_lo", "judge_share_1_hi")
OUTCOMES = pd.DataFrame(
    [
        ("q1", "<b>Who?", "Ann\x1b", 5, 1.0),
        ("q2", "x" * 161, "y" * 160, 1, 0.12345),
        ("q3", "Where?", None, None, np.nan),
        ("q4", "d", "d", 2, 0.0),
        ("q5", "e", "e", 2, 0.0),
        ("q6", "f", "f", 2, 0.0),
    ],
    columns=["qid", "query", "answer", "label", "ir_score"],
).astype({"label": "Int8"})


def rows(page: str) -> list[list[str]]:
    """The cells of all rows of tables."""
    return [
        [cell.split("</t")[0] for cell in row.replace("<th>", "<td>").split("<td>")[1:]] for row in page.split("<tr>")
    ][1:]


def test_a_job_shows_its_first_metrics_and_its_first_five_topics() -> None:
    asked = {"em": "exact match", "f1": "token F1"}
    page = job_html("a$b", "0a1b", Path("out"), METRICS | {"em": 0.25}, OUTCOMES, asked)
    assert page.startswith(
        '<div class="tex2jax_ignore mathjax_ignore"><p><b>a$b</b><br><small>run 0a1b · out</small></p><table><thead>'
    )
    assert rows(page) == [
        ["exact match", "IR score", "right answers", "cost, USD"],
        ["0.250", "0.500 (0.250 to 0.750)", "0.400", "0.0123"],
        ["query", "answer", "label", "ir_score"],
        ["&lt;b&gt;Who?", "Ann␛", "5", "1.000"],
        ["x" * 160 + "…", "y" * 160, "1", "0.123"],
        ["Where?", "–", "–", "–"],
        ["d", "d", "2", "0.000"],
        ["e", "e", "2", "0.000"],
    ]
    assert page.endswith("</table><p>5 of 6 topics: .outcomes has all</p></div>")
    assert "topics" not in job_html("a", "r", None, {}, OUTCOMES.head(5))
    assert rows(job_html("a", "r", None, METRICS | {"em": 0.25}, None, asked)) == rows(page)[:2]
    assert "<small>run r</small>" in job_html("a", "r", None, {}, None)


def test_a_sweep_shows_the_leaderboard_of_each_group_and_one_figure(tmp_path: Path) -> None:
    board = pd.DataFrame(
        {
            "system": ["bm25", "sim"],
            "correct_share": [0.25, np.nan],
            "ir_score": [0.5, 0.125],
            "ir_score_lo": [0.25, np.nan],
            "ir_score_hi": [0.75, 0.5],
            "judge_share_1": [np.nan, np.nan],
            "n_topics": [4, 4],
            "em": [0.75, 0.5],
        }
    )
    board = short_board(board.assign(**dict.fromkeys(ENDS, np.nan)), ["em", "f1"])
    assert list(board)[:4] == ["system", "em", "em_lo", "em_hi"]
    figures = {"other": Figure(b"other"), "ir_score_by_n": Figure(b"curve")}
    page = sweep_html([("N=100", "r1", board, figures), ("N=200", "r2", board[["system"]], {"a": Figure(b"a")}),
                       ("N=300", "r3", board[["system"]], {})])  # fmt: skip
    assert rows(page) == [
        ["system", "em", "ir_score", "correct_share"],
        ["bm25", "0.750", "0.500 (0.250 to 0.750)", "0.250"],
        ["sim", "0.500", "0.125", "–"],
        *[["system"], ["bm25"], ["sim"]] * 2,
    ]
    shown = [base64.b64decode(one.split('"')[0]) for one in page.split("data:image/png;base64,")[1:]]
    assert shown == [b"curve", b"a"]
    assert page.index("run r1") < page.index("data:image") < page.index("run r2")
    assert sweep_html([]) == '<div class="tex2jax_ignore mathjax_ignore"><p>nothing is pooled</p></div>'
    figures["other"].save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == figures["other"]._repr_png_() == b"other"
    assert repr(Figure(b"x" * 1234)) == "<figure, 1,234 bytes of PNG>"
