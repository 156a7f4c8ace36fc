"""Shared parts of findings' sections: names, numbers with intervals, tables by row and by system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.finding import Cell, Col, Grid, Heads, Kind, Num
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.jobs import Jobs

SHORT = {1: "lack", 2: "partly wrong", 3: "incomplete", 4: "wrong", 5: "right"}

Cells = Callable[[Mapping[Any, Any]], Sequence[Cell]]


def class_name(label: int | None) -> str:
    """A judge class in words: `4, wrong`; `no verdict` for a missing one."""
    return f"{label}, {JUDGE_CLASSES[label]}" if label else "no verdict"


def number(of: Mapping[Any, Any], name: str, kind: Kind = "score", tag: str = "") -> Num:
    """The value `name` of a row or of metrics, with its interval from <name>_lo and _hi, else lo and hi, if any."""
    lo, hi = (of.get(f"{name}_{end}", of.get(end)) for end in ("lo", "hi"))
    return Num(of.get(name), kind, lo, hi, tag)


def between(lo: float, hi: float, written: Callable[[float], str]) -> str:
    """An interval after its value, such as ` (0.512 to 0.634)`; empty without one."""
    return f" ({written(lo)} to {written(hi)})" if lo == lo else ""


def table(label: str, columns: Heads, rows: pd.DataFrame, cells: Cells, systems: Sequence[str] = ()) -> Grid:
    """A table with a row for each of a frame.

    With `systems` the rows of each stand one after the other in that order, behind its name, which stands once.
    """
    if not systems:
        return Grid(label, columns, [cells(row) for row in rows.to_dict("records")])
    of = dict(tuple(rows.groupby("system", sort=False))) if len(rows) else {}
    listed: list[list[Cell]] = []
    for system in (name for name in systems if name in of):
        for at, row in enumerate(of[system].to_dict("records")):
            listed.append([system if at == 0 else "", *cells(row)])
    return Grid(label, columns, listed)


def by_budget(jobs: Jobs, label: str, cell: Callable[[Any], Num | None], title: str = "System") -> Grid:
    """A row per system, a column per budget: `cell` of the job's metrics, a dash for None."""
    grid = sorted({record.n_tokens for record in jobs.records})
    rows: list[list[Cell]] = [
        [system, *((cell(by_n[n]) or "–") if n in by_n else "–" for n in grid)]
        for system, by_n in jobs.metrics_by_system().items()
    ]
    return Grid(label, [Col(title), *(Col(str(n)) for n in grid)], rows)


def of_each(jobs: Jobs, made: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """The concatenated frames made from each system's outcomes at the sweep's budget."""
    found = [(made(rows), system) for system, rows in jobs.at_n.groupby("system", sort=False)]
    return together([table.assign(system=system) for table, system in found if len(table)])


def together(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """The concatenated tables with the column system first; an empty table for none."""
    if not tables:
        return pd.DataFrame({"system": pd.Series(dtype="str"), "cause": [], "topics": []})
    every = pd.concat(tables, ignore_index=True)
    return every[["system", *every.columns.drop("system")]]
