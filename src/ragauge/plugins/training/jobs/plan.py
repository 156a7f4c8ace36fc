"""A training: its plan, its result, and its outcome in the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import track
from ragauge.plugins.training.contract import Trained
from ragauge.store import Entry, Key, Store

_TRAINED = "trained.json"


@dataclass(frozen=True)
class Result:
    """The result of a training: the store's entry with the model, and the values logged beside it.

    `values` are metrics, `tables` artifacts, `parts` further parts of the card in Markdown, `told` lines for
    the terminal. `log_model(run, card, facts)` logs the model, registers it where a name was given, and
    returns its URI.
    """

    entry: Entry
    trained: Trained
    model_digest: str
    base: str
    log_model: Callable[[track.Run, str, Mapping[str, Any]], str]
    values: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    parts: Sequence[str] = ()
    told: Sequence[str] = ()


@dataclass(frozen=True)
class TrainingPlan:
    """A training whose data was read and passed every check.

    `key` is what the model depends on; `on` says in a word or two what it learns from; `values` are metrics
    that are known before. `work` trains, unless the store has the outcome.
    """

    key: Key
    store: Store
    on: str
    params: Mapping[str, Any]
    values: Mapping[str, float]
    work: Callable[[track.Run], Result]


def write_trained(trained: Trained, folder: Path) -> None:
    """Writes tables, values and facts into the folder of an entry."""
    for name, frame in trained.tables.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    kept = {"values": dict(trained.values), "facts": dict(trained.facts), "tables": list(trained.tables)}
    (folder / _TRAINED).write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")


def read_trained(folder: Path) -> Trained:
    """Reads the files of `write_trained`."""
    kept = json.loads((folder / _TRAINED).read_text(encoding="utf-8"))
    tables = {name: pd.read_parquet(folder / f"{name}.parquet") for name in kept["tables"]}
    return Trained(tables, kept["values"], kept["facts"])
