"""The HTML of a job or a sweep in a notebook; every text of the data is escaped."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragauge.contract.metrics import METRICS
from ragauge.contract.visible import visible

_ROWS = 5  # topics of a job that are shown
_CHARS = 160  # of a text
_SHOWN = ("query", "answer_reference", "answer", "label", "ir_score")
_METRICS = (
    "ir_score", "correct_share", "hallucination_share", "judge_share_1", "judge_share_missing", "cost_usd",
)  # fmt: skip
_BOARD = ("ir_score", "correct_share", "judge_share_1", "hallucination_share", "rejection_share")


class Figure:
    """A figure as PNG, which shows itself in a notebook."""

    def __init__(self, png: bytes) -> None:
        self.png = png

    def __repr__(self) -> str:
        return f"<figure, {len(self.png):,} bytes of PNG>"

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, path: str | Path) -> None:
        """Writes the PNG."""
        Path(path).write_bytes(self.png)


def job_html(
    name: str,
    run_id: str,
    folder: Path | None,
    metrics: Mapping[str, float],
    outcomes: pd.DataFrame | None,
    asked: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """HTML of a job: name, MLflow run, folder, the measures `asked` for ({name: label}), main metrics, first topics.

    A metric that is not known has no column.
    """
    words = {**asked, **{metric: METRICS[metric].words for metric in _METRICS}}
    shown = [
        (words[metric], _interval(metrics, metric) if metric != "cost_usd" else f"{metrics[metric]:.4f}")
        for metric in words
        if not math.isnan(metrics.get(metric, math.nan))
    ]
    where = f"run {run_id}" + ("" if folder is None else f" · {folder}")
    parts = [_heading(name, where), _table([label for label, _ in shown], [[value for _, value in shown]])]
    if outcomes is not None:
        columns = [column for column in _SHOWN if column in outcomes and outcomes[column].notna().any()]
        columns += [measure for measure in asked if measure in outcomes]
        rows = outcomes[columns].head(_ROWS).astype(object).to_numpy().tolist()
        parts.append(_table(columns, rows))
        if len(outcomes) > _ROWS:
            parts.append(f"<p>{_ROWS} of {len(outcomes):,} topics: .outcomes has all</p>")
    return _framed(parts)


def short_board(board: pd.DataFrame, asked: Sequence[str]) -> pd.DataFrame:
    """The columns of a leaderboard that are known: system, and measures with their intervals, those `asked` for first.

    A measure is left out if no system has a value.
    """
    measures = [name for name in dict.fromkeys((*asked, *_BOARD)) if name in board and board[name].notna().any()]
    return board[["system", *(f"{name}{end}" for name in measures for end in ("", "_lo", "_hi"))]]


def sweep_html(
    groups: Sequence[tuple[str, str, pd.DataFrame, Mapping[str, Figure]]],
) -> str:
    """HTML of a sweep: the short leaderboard and first figure of each group (name, run id, leaderboard, figures)."""
    parts = []
    for name, run_id, board, figures in groups:
        columns = [str(name) for name in board if f"{name}_lo" in board or name == "system"]
        rows = [
            [row["system"] if c == "system" else _interval(row, c) for c in columns] for row in board.to_dict("records")
        ]
        parts += [_heading(name, f"run {run_id}"), _table(columns, rows)]
        if figures:
            first = figures.get("ir_score_by_n") or next(iter(figures.values()))
            encoded = base64.b64encode(first.png).decode()
            parts.append(f'<img style="max-width:100%;width:40em" src="data:image/png;base64,{encoded}">')
    return _framed(parts or ["<p>nothing is pooled</p>"])


def _framed(parts: Sequence[str]) -> str:
    """The parts in one block in which MathJax ignores dollar signs."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _heading(name: str, where: str) -> str:
    return f"<p><b>{_text(name)}</b><br><small>{_text(where)}</small></p>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _interval(values: Mapping[Any, float], name: str) -> str:
    """A value with its 95 % interval where there is one, to three decimals."""
    value, lo, hi = (values.get(key, float("nan")) for key in (name, f"{name}_lo", f"{name}_hi"))
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if math.isnan(lo + hi) else f"{value:.3f} ({lo:.3f} to {hi:.3f})"


def _text(value: Any) -> str:
    """A cell as text, shortened and escaped; control characters are shown."""
    missing = bool(pd.isna(value))
    if missing or isinstance(value, float):
        return "–" if missing else f"{value:.3f}"
    text = visible(value, one_line=True)
    return escape(text if len(text) <= _CHARS else f"{text[:_CHARS]}…", quote=True)
