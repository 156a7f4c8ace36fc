"""The tables of what each part brings, in the shape in which the report shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import column_label
from ragauge.contract.protocols import AnswerMeasureInfo

_MEASURES = {
    "ir_score": "IR score", "correct": "Right, points", "hallucination": "Hallucination, points",
    "judge_share_1": "1 lack, points", "judge_share_2": "2 partly wrong, points",
    "judge_share_3": "3 incomplete, points", "judge_share_4": "4 wrong, points",
}  # fmt: skip

Rows = list[dict[str, Any]]


def contrasts(
    ablation: pd.DataFrame | None,
    gains: pd.DataFrame | None,
    chunk_sizes: pd.DataFrame | None,
    pareto: pd.DataFrame | None,
    answers: Sequence[AnswerMeasureInfo],
) -> dict[str, Any]:
    """What the templates of the sections on parts and on score against cost take."""
    return {
        "ablation": wide(ablation, ["factor", "option", "base", "settings"]),
        "ablation_measures": _measures(ablation, answers),
        "gains": wide(gains, ["system", "base"]),
        "gain_measures": _measures(gains, answers),
        "chunkings": _chunkings(chunk_sizes),
        "chunk_grid": [] if chunk_sizes is None else sorted(set(chunk_sizes["n_tokens"])),
        "frontier": _frontier(pareto),
        "pareto_money": pareto is not None and bool(pareto["cost"].gt(0).any()),
        "pareto_latency": pareto is not None and bool(pareto["latency"].all()),
    }


def wide(frame: pd.DataFrame | None, keys: Sequence[str]) -> Rows:
    """A row per combination of `keys`: {key: value, "of": {measure: {difference, lo, hi, n}}}."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in [] if frame is None else frame.to_dict("records"):
        at = tuple(row[key] for key in keys)
        kept = found.setdefault(at, {**dict(zip(keys, at, strict=True)), "of": {}})
        kept["of"][row["measure"]] = row
    return list(found.values())


def _measures(frame: pd.DataFrame | None, answers: Sequence[AnswerMeasureInfo]) -> dict[str, dict[str, Any]]:
    """{measure: its heading, and whether it is shown in points}, in the order of the frame."""
    infos: Mapping[str, AnswerMeasureInfo] = {info.name: info for info in answers}
    found = {}
    for name in [] if frame is None else dict.fromkeys(frame["measure"]):
        info = infos.get(name)
        share = name != "ir_score" if info is None else info.unit == "share"
        title = _MEASURES.get(name, name) if info is None else column_label(info)
        found[name] = {"title": title + (", points" if info is not None and share else ""), "points": share}
    return found


def _chunkings(table: pd.DataFrame | None) -> Rows:
    """A row per chunks and rest of the system: {chunks, …, scores: {n_tokens: score}}."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    clean = None if table is None else table.astype(object).where(table.notna(), None)
    for row in [] if clean is None else clean.to_dict("records"):
        names = ("chunks", "system", "n_chunks", "seconds")
        kept = found.setdefault((row["chunks"], row["system"]), {**{name: row[name] for name in names}, "scores": {}})
        kept["scores"][row["n_tokens"]] = row["ir_score"]
    return list(found.values())


def _frontier(table: pd.DataFrame | None) -> Rows:
    """The jobs on any of the frontiers, the best score first."""
    if table is None:
        return []
    costs = ["tokens", "seconds", *(["cost"] if table["cost"].gt(0).any() else [])]
    on = table[table[[f"on_{name}" for name in costs]].any(axis=1)]
    ordered = on.sort_values("score", ascending=False, kind="stable")
    return [{str(name): value for name, value in row.items()} for row in ordered.to_dict("records")]
