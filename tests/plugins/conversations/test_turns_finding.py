"""Later turns less earlier ones of the same conversation, and where a sweep shows them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.finding import Grid
from ragauge.contract.jobs import Jobs
from ragauge.estimate.intervals import paired_mean
from ragauge.plugins.conversations.finding import Turns, later_less_earlier
from sweep_records import record, sweep

OF = pd.Series(list("aaabbbbcd"))
TURN = pd.Series([1, 2, 3, 4, 3, 2, 1, 1, 1])  # b's last turn comes first
VALUE = pd.Series([1.0, 0.5, 0.0, 0.0, 0.2, 0.8, 1.0, 1.0, np.nan])


def test_a_conversation_is_compared_with_itself() -> None:
    first = later_less_earlier(VALUE, TURN, OF, "first")
    assert first == paired_mean(np.array([0.25 - 1, 1 / 3 - 1]))  # c has one turn, and d none with a value
    # a's middle turn is in neither half.
    assert later_less_earlier(VALUE, TURN, OF, "half").value == pytest.approx((-1.0 + (0.1 - 0.9)) / 2)
    assert later_less_earlier(VALUE[:3], TURN[:3], OF[:3], "first").n == 1
    assert np.isnan(later_less_earlier(VALUE[7:], TURN[7:], OF[7:], "half").value)


def of_turns(**columns: object) -> Jobs:
    jobs = sweep(record("retriever=bm25"), record("retriever=sim"))
    rows = [{"qid": f"{of}-{turn}", "conversation": of, "turn": float(turn), "system": system, "n_tokens": 100,
             "ir_score": 1 / turn if system == "bm25" else 0.5}
            for system in jobs.systems for of in "abc" for turn in (1, 2)]  # fmt: skip
    outcomes = pd.DataFrame(rows).assign(**{"label": pd.array([None] * len(rows), dtype="Int8"), **columns})
    return Jobs("s", "e", jobs.records, [], outcomes)


def test_a_sweep_shows_a_line_a_system_and_a_table() -> None:
    jobs = of_turns()
    found = Turns().compute(jobs, {})
    assert found is not None
    table = found.tables["turns"]
    assert table["system"].tolist() == ["bm25"] * 2 + ["sim"] * 2
    assert table["difference"].tolist() == [-0.5, -0.5, 0, 0]
    assert table["conversations"].tolist() == [3] * 4
    shown = Turns().show(jobs, found.value, {})
    assert [line.split(" points")[0] for line in shown.lines] == [
        "later turns less the first, IR score: -50",
        "later turns less the first, IR score: +0",
    ]
    grid = shown.sections[0].blocks[1]
    assert isinstance(grid, Grid)
    assert len(grid.rows) == 4
    judged = Turns().compute(of_turns(label=pd.array([5, 4] * 6, dtype="Int8")), {})
    assert judged is not None
    right = judged.value[judged.value["measure"] == "correct"]
    assert right["difference"].tolist() == [-1.0] * 4


def test_topics_without_turns_show_nothing() -> None:
    jobs = sweep(record("retriever=bm25"))
    assert Turns().compute(jobs, {}) is None
    assert Turns().compute(of_turns(turn=1.0, conversation=[f"c{i}" for i in range(12)]), {}) is None
    assert Turns().compute(of_turns(turn="first"), {}) is None
