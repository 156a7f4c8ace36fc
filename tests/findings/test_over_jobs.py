"""What the report says of all jobs together, where they differ: the most topics, the largest slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.finding import Grid, Text, columns_of
from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord
from ragauge.diagnose.failures import EVERY_CAUSE
from ragauge.estimate.best import BestSystems
from ragauge.findings.failures import causes_figure
from ragauge.findings.lacking import lacking_text
from ragauge.findings.leaderboard import Board, _cards
from ragauge.findings.predicted import PredictedShares
from ragauge.findings.slices import _table
from ragauge.show.formats import share
from sweep_records import record_of

TOPICS = pytest.mark.parametrize("topics", [(12, 40, 25), (40, 12, 25), (25, 12, 40)])


def record(number: int, **metrics: float) -> JobRecord:
    return record_of(name=f"s{number}", number=number, metrics=metrics, choices={"retriever": f"s{number}"},
                     overrides=[f"retriever=s{number}"], dataset_digest="d" * 64, bootstrap=0)  # fmt: skip


def jobs(*metrics: dict[str, float]) -> Jobs:
    outcomes = pd.DataFrame({"system": [f"s{i}" for i in range(len(metrics))], "n_tokens": 100})
    return Jobs("s", "e", [record(number, **of_job) for number, of_job in enumerate(metrics)], [], outcomes)


@TOPICS
def test_a_topic_that_lacks_something_in_one_job_is_told(topics: tuple[int, ...]) -> None:
    lacking = [record(i, topics=n, topics_without_reference=n - 12) for i, n in enumerate(topics)]
    lacking[topics.index(25)].lacking = {"without_reference": ["q1"]}
    lacking[topics.index(40)].lacking = {"without_reference": ["q1", "q2"]}
    assert lacking_text(lacking) == ["28 of 40 topics have no reference answer: they are not judged (q1, q2, …)"]


@TOPICS
def test_the_share_outside_is_that_of_the_job_with_the_most(topics: tuple[int, ...]) -> None:
    shares = {
        f"predicted_{name}": 0.5 for name in ("correct_share", "hallucination_share", *(f"share_{c}" for c in "1234"))
    }
    of_jobs = jobs(*({**shares, "predicted_outside_share": n / 100} for n in topics))
    value = list(zip(of_jobs.systems, of_jobs.records, strict=True))
    shown = PredictedShares().show(of_jobs, value, {})  # type: ignore[arg-type]
    assert f"In a job up to {share(0.4)} of the topics" in str(shown)


def test_cards_name_the_most_right_answers_and_the_fewest_hallucinations() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "judge_share_missing": 0.0})
    for number, name in enumerate(("ir_score", "correct_share", "hallucination_share")):
        frame[name] = np.roll([0.2, 0.5, 0.7], number)
        frame[f"{name}_lo"], frame[f"{name}_hi"] = frame[name] - 0.1, frame[name] + 0.1
    board = Board(frame, pd.DataFrame(), BestSystems(pd.DataFrame(), {}, "system"), pd.DataFrame())
    cards = {card.title: card.below.partition(",")[0] for card in _cards(jobs({}), board)}
    assert cards == {
        "Best IR score at N = 100": "c",
        "Most right answers at N = 100": "a",
        "Fewest hallucinations at N = 100": "c",
    }
    # c lacks most of its verdicts, so that its share is no share; a's .5 may be .6.
    lacking = replace(board, frame=frame.assign(judge_share_missing=[0.1, 0.0, 0.8]))
    below = {card.title: card.below for card in _cards(jobs({}), lacking)}
    assert below["Fewest hallucinations at N = 100"] == "a, 40.0 % to 60.0 %, 10% without a verdict"


def test_of_many_slices_the_largest_are_shown_in_their_order() -> None:
    sizes = {f"s{i:02}": 10 + i * 7 % 40 for i in range(40)}  # each another
    rows = pd.DataFrame(
        {"slice": slice_, "system": system, "n": n if system == "a" else 1, "value": 0.5, "lo": 0.4, "hi": 0.6,
         "shrunk": 0.6, "shrunk_lo": 0.55, "shrunk_hi": 0.65, "small": False}
        for slice_, n in sizes.items() for system in ("b", "a", "c")
    )  # fmt: skip
    averages = pd.DataFrame({"system": ["a", "b"], "slices": [40, 31], "value": 0.5, "lo": 0.4, "hi": 0.6})
    grid, note = _table("kind", "IR score", rows, averages, ["a", "b"], True)
    assert isinstance(grid, Grid)
    assert isinstance(note, Text)
    *shown, last = grid.rows
    largest = sorted(sizes, key=lambda name: -sizes[name])[:30]
    assert [row[0].text for row in shown] == [name for name in sizes if name in largest]  # type: ignore[union-attr]
    assert [row[1].value for row in shown] == [sizes[name] for name in sizes if name in largest]  # type: ignore[union-attr]
    assert last[0] == "average over 40 slices"
    heads = columns_of(grid.columns)
    assert [(head.title, head.note) for head in heads[2:]] == [
        ("a", "alone"), ("a", "shrunk"), ("b", "alone"), ("b", "shrunk"),
    ]  # fmt: skip
    assert [cell.value for cell in shown[0][2:]] == [0.5, 0.6, 0.5, 0.6]  # type: ignore[union-attr]
    assert (shown[0][3].lo, shown[0][3].hi) == (0.55, 0.65)  # type: ignore[union-attr]
    assert [cell if cell == "" else cell.value for cell in last[2:]] == [0.5, "", 0.5, ""]  # type: ignore[union-attr]
    assert "10 slices with fewer topics" in note.text


def test_bars_of_the_causes_stand_beside_each_other_in_the_order_of_the_systems() -> None:
    first, second, third, none = list(EVERY_CAUSE)[:4]
    rows = [
        ("a", third, 2, 0.1),
        ("a", first, 4, 0.2),
        ("b", first, 1, 0.05),
        ("b", second, 10, 0.5),
        ("b", none, 0, 0.0),
    ]
    causes = pd.DataFrame(rows, columns=["system", "cause", "topics", "share"])
    drawn = causes_figure(causes, ["b", "none of them", "a"])
    assert drawn is not None
    axes = drawn.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "a"]
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [first, second, third]
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    starts = [[bar.get_x() for bar in bars] for bars in axes.containers]
    assert np.allclose(widths, [[0.05, 0.2], [0.5, 0.0], [0.0, 0.1]])
    assert np.allclose(starts, [[0, 0], [0.05, 0.2], [0.55, 0.2]])
    assert len({bars[0].get_facecolor() for bars in axes.containers}) == 3
    assert axes.get_xlim() == pytest.approx((0, 1.05 * 0.55))
    assert axes.yaxis_inverted()
    assert drawn.get_figheight() == pytest.approx(0.8 + 0.4 * 2 + 0.2 * 2)
    full = causes_figure(causes.assign(share=[0.5, 0.5, 0.5, 0.5, 0.0]), ["a"])
    assert full is not None
    assert full.axes[0].get_xlim() == (0, 1)
    assert causes_figure(causes, ["c"]) is None
    assert causes_figure(causes.assign(topics=0), ["a", "b"]) is None
