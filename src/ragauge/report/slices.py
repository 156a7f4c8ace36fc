"""The tables of slices in the shape in which the report shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import column_label
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate.board import REJECTION
from ragauge.estimate.slices import SliceTables

_MAX_SYSTEMS, _MAX_SLICES = 10, 30  # that a table shows; all are in tables/slices.csv
_MEASURES = {
    "ir_score": "IR score", "correct_share": "Right", "hallucination_share": "Hallucination",
    REJECTION: "Unanswerable questions that were rejected",
}  # fmt: skip
_DIFFERENCES = {"ir_score": "IR score", "correct": "Right, points", "hallucination": "Hallucination, points"}


def slices(found: SliceTables | None, systems: Sequence[str], answers: Sequence[AnswerMeasureInfo]) -> dict[str, Any]:
    """What the template of the section takes: {"slicings": [...], "slice_counts": {...}}.

    A slicing has its name, its `tables`, one for each measure with a row per slice and a cell per system,
    and its `pair`, the differences between the two best systems. `systems` are in the order of the
    leaderboard, of which the first ten are shown.
    """
    if found is None or found.estimates.empty:
        return {"slicings": [], "slice_counts": {}}
    infos = {info.name: info for info in answers}
    names = _MEASURES | {name: column_label(info) for name, info in infos.items()}
    shown = list(systems)[:_MAX_SYSTEMS]
    slicings = []
    for by, part in found.estimates.groupby("slicing", sort=False):
        averages = found.averages[found.averages["slicing"] == by]
        tables = [
            _table(title, part[part["measure"] == measure], averages[averages["measure"] == measure], shown)
            | {"is_score": measure == "ir_score" or (measure in infos and infos[measure].unit != "share")}
            for measure, title in names.items()
            if (part["measure"] == measure).any()
        ]
        slicings.append({"name": by, "tables": tables, "pair": _pair(found.differences, by, infos)})
    tests = 0 if found.differences is None else int(found.differences["p"].notna().sum())
    counts = {
        "systems": len(systems), "shown": len(shown), "most_slices": _MAX_SLICES, "tests": tests,
        "slices": int(found.estimates.groupby("slicing")["slice"].nunique().sum()),
        "intervals": int(found.estimates["measure"].isin(names).sum()),
        "small": bool(found.estimates["small"].any()),
    }  # fmt: skip
    return {"slicings": slicings, "slice_counts": counts}


def _table(title: str, rows: pd.DataFrame, averages: pd.DataFrame, systems: Sequence[str]) -> dict[str, Any]:
    """One measure: a row for every slice with a cell for each system, and the averages over slices."""
    sizes = rows.groupby("slice", sort=False)["n"].max()
    largest = set(sizes.sort_values(ascending=False, kind="stable").index[:_MAX_SLICES])
    cells = {(row["slice"], row["system"]): row for row in rows.to_dict("records")}
    of_system = {row["system"]: row for row in averages.to_dict("records")}
    return {
        "title": title,
        "systems": systems,
        "rows": [
            {"slice": label, "n": int(n), "small": bool(rows.loc[rows["slice"] == label, "small"].any()),
             "cells": [cells.get((label, system)) for system in systems]}
            for label, n in sizes.items() if label in largest
        ],
        "left_out": max(0, len(sizes) - _MAX_SLICES),
        "averages": [of_system.get(system) for system in systems] if of_system else [],
        "averaged": max((int(row["slices"]) for row in of_system.values()), default=0),
    }  # fmt: skip


def _pair(
    differences: pd.DataFrame | None, by: object, infos: Mapping[str, AnswerMeasureInfo]
) -> dict[str, Any] | None:
    """The two best systems of one slicing: {a, b, measures, rows}; None where no slice was compared."""
    if differences is None or not (differences["slicing"] == by).any():
        return None
    rows = differences[differences["slicing"] == by]
    measures = {m: t for m, t in _DIFFERENCES.items() if (rows["measure"] == m).any()}
    measures |= {
        name: column_label(info) + (", points" if info.unit == "share" else "")
        for name, info in infos.items() if (rows["measure"] == name).any()
    }  # fmt: skip
    found = {(row["slice"], row["measure"]): row for row in rows.to_dict("records")}
    labels = list(dict.fromkeys(rows["slice"]))
    return {
        "a": rows["a"].iloc[0],
        "b": rows["b"].iloc[0],
        "measures": measures,
        "scores": [m for m in measures if m == "ir_score" or (m in infos and infos[m].unit != "share")],
        "rows": [
            {"slice": label, "n": max(row["n"] for (at, _), row in found.items() if at == label),
             "cells": {m: found.get((label, m)) for m in measures}}
            for label in labels[:_MAX_SLICES]
        ],
    }  # fmt: skip
