"""How a sweep shows the race that its folder holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.jobs import Jobs
from ragauge.plugins.race.finding import RaceFound, bounds_figure
from sweep_records import record, sweep

RACE: dict[str, Any] = {
    "measure": "right",
    "n_topics": 500,
    "margin": 0.03,
    "alpha": 0.05,
    "why": "one system is left",
    "answers": 280,
    "best": 1,
    "running": [1],
    "failed": [2],
    "dropped": {"0": {"n": 80, "upper": -0.01, "rival": 1, "why": "beaten"}},
    "looks": [{"n": 60, "upper": {"0": 0.05, "1": 1.0, "2": 0.2}}, {"n": 80, "upper": {"0": -0.01, "1": 0.4}}],
    "results": [
        {"system": s, "topics": n, "mean": m, "low": m - 0.1, "high": m + 0.1, "difference": m - 0.7,
         "difference_low": m - 0.9, "difference_high": m - 0.6}
        for s, n, m in ((0, 80, 0.2), (1, 100, 0.7), (2, 60, 0.3))
    ],
    "note": "",
    "attempt": "a1",
}  # fmt: skip


def jobs(folder: Path, attempt: str = "a1") -> Jobs:
    names = ("sim", "bm25", "mmr")
    records = [
        replace(record(f"retriever={name}"), folder=folder / str(n), number=n, attempt=attempt, name=name)
        for n, name in enumerate(names)
    ]
    return sweep(*records)


def test_the_table_says_who_left_when_and_why(tmp_path: Path) -> None:
    (tmp_path / "race.json").write_text(json.dumps(RACE), encoding="utf-8")
    found = RaceFound().compute(jobs(tmp_path), {})
    assert found is not None
    assert found.metrics == {"race_topics": 100.0, "race_share_of_answers": pytest.approx(280 / 1500)}
    assert found.tables["race"].index.tolist() == [0, 1, 2]
    table = found.tables["race"].set_index("system")
    assert list(table.index) == ["bm25", "mmr", "sim"]
    assert table["out"].to_dict() == {"bm25": "", "mmr": "failed", "sim": "after 80, beaten"}
    shown = RaceFound().show(jobs(tmp_path), found.value, {})
    assert "19% of the answers" in shown.lines[0]
    assert "-0.500 [-0.700, -0.400]" in shown.lines[0]
    (axes,) = shown.figures["race"].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("topics answered", "upper bound of the lead")
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert lines["margin 0.03"] == [0.03, 0.03]
    assert lines["sim"] == [0.05, -0.01]
    assert lines["bm25"] == [0.4]  # no bound at the first look
    assert "fixed beforehand" in shown.notes[0]


def test_a_race_of_an_earlier_attempt_and_one_without_a_topic_have_no_table(tmp_path: Path) -> None:
    assert RaceFound().compute(jobs(tmp_path), {}) is None
    (tmp_path / "race.json").write_text(json.dumps(RACE), encoding="utf-8")
    assert RaceFound().compute(jobs(tmp_path, "a2"), {}) is None
    # The money ran out before the first look.
    (tmp_path / "race.json").write_text(json.dumps({**RACE, "results": [], "best": None}), encoding="utf-8")
    assert RaceFound().compute(jobs(tmp_path), {}) is None


def test_systems_beyond_the_seventh_are_drawn_as_others() -> None:
    looks = [{"n": n, "upper": {str(s): 0.5 for s in range(9 - i)}} for i, n in enumerate((20, 30, 40))]
    (axes,) = bounds_figure({**RACE, "looks": looks}, {s: f"s{s}" for s in range(8)}).axes
    labels = [line.get_label() for line in axes.lines]
    assert labels[1:9] == ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "others"]
    assert [len(line.get_xdata()) for line in axes.lines[1:]] == [3] * 7 + [2, 1]
    colours = [line.get_color() for line in axes.lines[1:]]
    assert (len(set(colours)), colours[7]) == (8, colours[8])
