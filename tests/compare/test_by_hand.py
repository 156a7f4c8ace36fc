"""Columns, settings, slices and sources of a comparison, from runs written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ragauge.compare._metrics import BEST, _column
from ragauge.compare._settings import differing
from ragauge.compare._slices import SliceTables, _grid
from ragauge.compare._sources import members, read_outcomes
from ragauge.contract.errors import DataError
from ragauge.contract.finding import Num
from ragauge.contract.jobs import Compared
from ragauge.track import LoggedRun


def compared(**metrics: list[float]) -> Compared:
    """Two runs of one budget with these metrics."""
    table = pd.DataFrame({"run_id": ["r1", "r2"], "run": ["one", "two"], "system": ["one", "two"], "n_tokens": 100,
                          "compared": True, **metrics})  # fmt: skip
    return Compared(pd.DataFrame(), {"r1": "one", "r2": "two"}, "r1", [], 100, 10, 0, runs=table)


def logged(run_id: str, params: dict[str, str], **tags: str) -> LoggedRun:
    return LoggedRun(run_id, run_id, "FINISHED", "1", "e", 0.0, params, tags, {})


@pytest.mark.parametrize(
    ("name", "values", "kind", "best"),
    [
        ("ir_score", [0.5, 0.75], "score", [False, True]),
        ("hallucination_share", [0.5, 0.75], "score", [True, False]),
        ("hallucination_share", [0.5, 0.5], "score", [False, False]),
        ("ir_score", [0.0, 1.0], "score", [False, True]),  # shares, though whole
        ("topics_read", [3.0, 4.0], "whole", [False, False]),
        ("length", [3.5, 4.0], "score", [False, False]),
        ("cost_usd", [1.5, 0.5], "usd", [False, False]),
        ("length", [float("nan")] * 2, "score", [False, False]),
    ],
)
def test_a_column_has_its_kind_and_marks_the_best(name: str, values: list[float], kind: str, best: list[bool]) -> None:
    cells = _column(compared(**{name: values}), name, {}, {})
    assert [cell.kind for cell in cells] == [kind] * 2
    assert [BEST in cell.tag for cell in cells] == best


def test_a_parameter_of_the_component_that_one_run_chose_is_left_out_beside_the_choice() -> None:
    runs = [
        logged("r1", {"retriever._target_": "BM25", "retriever.k1": "0.9", "retriever.top_k": "30"}, retriever="bm25"),
        logged("r2", {"retriever._target_": "Sim", "retriever.top_k": "20", "seed": "1"}, retriever="sim"),
    ]
    assert list(differing(runs)) == ["retriever", "retriever.top_k", "seed"]


def test_a_slice_has_the_values_of_each_run_and_a_dash_for_a_measure_that_it_lacks() -> None:
    rows = [("kind", "a", "r1", "ir_score", 0.5, 7), ("kind", "a", "r1", "correct_share", 0.25, 5),
            ("kind", "a", "r2", "ir_score", 0.75, 7)]  # fmt: skip
    estimates = pd.DataFrame(rows, columns=["slicing", "slice", "run_id", "measure", "value", "n"])
    grid = _grid(SliceTables(estimates, pd.DataFrame(), None), compared())
    first, second = grid.rows
    assert (first[:3], first[3]) == (["kind", "a", "one"], Num(7, "whole"))
    values = [[cell.value for cell in row[4:] if isinstance(cell, Num)] for row in (first, second)]
    assert (0.25 in values[0], 0.5 in values[0], 0.75 in values[1]) == (True, True, True)
    assert 0.25 not in values[1]


def test_a_source_is_a_sweep_s_folder_a_sweep_or_a_job_and_no_training(tmp_path: Path) -> None:
    runs = {"a1": logged("a1", {}, role="job"), "b2": logged("b2", {}, role="sweep", sweep_id="s")}
    reader: Any = SimpleNamespace(run=runs.__getitem__, jobs=lambda run: [runs["a1"]])
    stores = {"sqlite:///x.db": reader}
    assert members("a1", "sqlite:///x.db", stores) == (False, [runs["a1"]], reader)
    assert members("b2", "sqlite:///x.db", stores) == (True, [runs["a1"]], reader)
    record = {"run_id": "a1", "tracking_uri": "sqlite:///x.db", "exit_code": 0, "number": 0, "attempt": "0"}
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "job.json").write_text(json.dumps(record), encoding="utf-8")
    assert members(str(tmp_path), None, stores) == (True, [runs["a1"]], reader)
    (tmp_path / "0" / "job.json").write_text(json.dumps({**record, "role": "training"}), encoding="utf-8")
    with pytest.raises(DataError, match="holds trainings, which have no outcomes"):
        members(str(tmp_path), None, stores)


def test_the_questions_of_all_runs_stand_one_below_the_other(tmp_path: Path) -> None:
    table = pd.DataFrame({"qid": ["a", "b"], "query": "?", "ir_score": [0.5, 1.0], "label": [5, 1], "answer": "x",
                          "evidence": [["one", "two"], []]})  # fmt: skip
    reader: Any = SimpleNamespace(table=lambda run_id, name: table)
    found = read_outcomes([logged("r1", {}), logged("r2", {})], {"r1": reader, "r2": reader}, [])
    assert found.index.tolist() == [0, 1, 2, 3]
    assert found["run_id"].tolist() == ["r1", "r1", "r2", "r2"]
    assert found["evidence"].iloc[0] == "one\ntwo"
