"""Later turns less earlier ones of the same conversation: a world of five conversations, and loops."""

from __future__ import annotations

from math import nan, sqrt

import pandas as pd
import pytest
from scipy.stats import t

from ragauge.contract.finding import Grid, Num
from ragauge.contract.jobs import Jobs
from ragauge.plugins.conversations.finding import Turns
from sweep_records import record, sweep

# Of each system and conversation: turn, IR score (- none), label (- not judged). b's last turn stands first; c has one
# turn, d one with a value; sim lacks e.
WORLD = {
    "bm25": {"a": "1 1.0 5|2 0.5 4|3 0.0 4", "b": "4 0.0 1|3 0.25 5|2 0.75 5|1 1.0 -", "c": "1 1.0 5",
             "d": "1 - -|2 0.5 5", "e": "1 0.5 5|2 0.75 5|3 0.25 1|4 - 5"},
    "sim": {"a": "1 0.5 4|2 0.5 5|3 0.75 5", "b": "4 0.0 1|3 0.25 4|2 0.75 5|1 1.0 5", "c": "1 0.0 1",
            "d": "1 - -|2 0.5 5"},
}  # fmt: skip


def world(columns: dict[str, object] | None = None) -> Jobs:
    """The sweep at 100 tokens; at 50 all scores are 1."""
    rows = []
    for system, talks in WORLD.items():
        for of, turns in talks.items():
            for turn, score, label in (one.split() for one in turns.split("|")):
                known = {"qid": f"{of}-{turn}", "conversation": of, "turn": float(turn), "system": system}
                seen = {
                    "ir_score": nan if score == "-" else float(score),
                    "label": None if label == "-" else int(label),
                }
                rows += [{**known, **seen, "n_tokens": 100}, {**known, "ir_score": 1.0, "label": 5, "n_tokens": 50}]
    outcomes = pd.DataFrame(rows).astype({"label": "Int8"}).assign(**columns or {})
    return Jobs("s", "e", sweep(record("retriever=bm25"), record("retriever=sim")).records, [], outcomes)


def by_loops(system: str, measure: str, part: str) -> tuple[float, float, float, int]:
    """The mean difference, its interval and how many conversations tell one."""
    apart = []
    for turns in WORLD[system].values():
        told = sorted(one.split() for one in turns.split("|"))
        values = [float(label == "5") if measure == "correct" else float(score) for _, score, label in told
                  if (label if measure == "correct" else score) != "-"]  # fmt: skip
        n = len(values)
        early, late = (values[:1], values[1:]) if part == "first" else (values[: n // 2], values[n - n // 2 :])
        if n > 1:
            apart.append(sum(late) / len(late) - sum(early) / len(early))
    # Student's interval after one more conversation, which differs by -1, 1 and twice by nothing, a quarter each.
    n, middle = len(apart), sum(apart) / (len(apart) + 1)
    spread = sum((one - middle) ** 2 for one in apart) + 0.5 + middle**2
    reach = float(t.isf(0.025, n - 1)) * sqrt(spread) / (n + 1)
    return sum(apart) / n, max(middle - reach, -1), min(middle + reach, 1), n


def test_a_conversation_is_compared_with_itself_at_every_system() -> None:
    jobs = world()
    found = Turns().compute(jobs, {})
    assert found is not None
    keys = [(s, m, p) for s in WORLD for m in ("correct", "ir_score") for p in ("first", "half")]
    want = [(*key, *by_loops(*key)) for key in keys]
    table = found.tables["turns"]
    assert list(table) == ["system", "measure", "part", "difference", "lo", "hi", "conversations"]
    for row, expected in zip(table.itertuples(index=False), want, strict=True):
        assert list(row) == [*expected[:3], *map(pytest.approx, expected[3:])], expected[:3]
    # On paper: a -.75, b -2/3 and e 0 of bm25's IR scores; e's turn without one is in no part.
    assert table["difference"][2] == pytest.approx((-0.75 - 2 / 3 + 0) / 3)
    shown = Turns().show(jobs, found.value, {})
    assert shown.lines == [
        f"later turns less the first, right answers: {100 * value:+.0f} points ({100 * lo:+.0f} to {100 * hi:+.0f}) {s}"
        for s, m, p, value, lo, hi, _ in want
        if (m, p) == ("correct", "first")
    ]
    grid = shown.sections[0].blocks[1]
    assert isinstance(grid, Grid)
    said = {"correct": "right answers", "ir_score": "IR score"}
    parts = {"first": "later turns less the first", "half": "second half less the first half"}
    for row, (system, measure, part, value, lo, hi, n) in zip(grid.rows, want, strict=True):
        assert [*row[:2], row[3]] == [system, f"{said[measure]}, {parts[part]}", str(n)]
        assert isinstance(row[2], Num)
        assert (row[2].value, row[2].lo, row[2].hi) == pytest.approx((value, lo, hi))
        assert row[2].kind == ("points" if measure == "correct" else "signed")


def test_topics_without_turns_show_nothing_and_unjudged_ones_their_ir_scores() -> None:
    assert Turns().compute(sweep(record("retriever=bm25")), {}) is None
    assert Turns().compute(world({"conversation": world().outcomes["qid"]}), {}) is None
    assert Turns().compute(world({"turn": "first"}), {}) is None
    found = Turns().compute(world({"label": pd.NA}), {})
    assert found is not None
    assert set(found.tables["turns"]["measure"]) == {"ir_score"}
