"""What differs between runs, what they share, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.compare._words import short
from ragauge.contract.groups import GROUPS
from ragauge.track import LoggedRun

_CODE = ("git_commit", "ragauge_version")
_BOOKKEEPING = ("store", "tracking")
_VERDICTS = ("correct_share", "hallucination_share", *(f"judge_share_{c}" for c in range(1, 6)))


def _settings(run: LoggedRun) -> dict[str, str]:
    """A run's choices by config group, its parameters, and the code that it ran with."""
    chosen = {group: run.tags[group] for group in GROUPS if group in run.tags}
    return chosen | dict(run.params) | {tag: run.tags[tag] for tag in _CODE if tag in run.tags}


def differing(runs: Sequence[LoggedRun]) -> pd.DataFrame:
    """The settings that differ between runs: [run_id x setting], those of the config groups first.

    A parameter that only some runs have, all with one value, belongs to the component that they chose:
    it is left out where that choice is a column.
    """
    table = pd.DataFrame([_settings(run) for run in runs], index=[run.run_id for run in runs], dtype=object)
    groups = [group for group in GROUPS if group in table and table[group].nunique(dropna=False) > 1]

    def shown(column: str) -> bool:
        group, _, key = column.partition(".")
        if group in groups and key:
            return key != "_target_" and table[column].nunique() > 1
        return table[column].nunique(dropna=False) > 1

    others = [c for c in map(str, table) if c not in GROUPS and shown(c)]
    return table[[*groups, *sorted(others, key=_place)]]


def _place(column: str) -> tuple[int, str]:
    """Where a parameter stands: those of components in the order of the groups, bookkeeping and code last."""
    first = column.partition(".")[0]
    if first in GROUPS:
        return GROUPS.index(first), column
    return len(GROUPS) + (first in _BOOKKEEPING) + 2 * (first in _CODE), column


def run_table(runs: Sequence[LoggedRun], params: pd.DataFrame) -> pd.DataFrame:
    """The frame `Comparison.runs`, but for its column `compared`."""
    n_tokens = [int(run.tags["n_tokens"]) for run in runs]
    systems = _system_names(runs, params, n_tokens)
    budgets = len(set(n_tokens)) > 1
    names = [f"{s} · N={n}" if budgets else s for s, n in zip(systems, n_tokens, strict=True)]
    twice = pd.Series(names).duplicated(keep=False)
    metrics = pd.DataFrame([dict(run.metrics) for run in runs], dtype=float)
    share = metrics.get("judge_share_missing", pd.Series(0.0, index=metrics.index))
    of_verdicts = [c for c in map(str, metrics) if c.removesuffix("_lo").removesuffix("_hi") in _VERDICTS]
    metrics.loc[share.eq(1), of_verdicts] = float("nan")
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "run_id": [run.run_id for run in runs],
                    "run": [f"{name} ({run.run_id[:8]})" if same else name
                            for name, run, same in zip(names, runs, twice, strict=True)],
                    "system": systems,
                    "n_tokens": n_tokens,
                }
            ),
            metrics,
        ],
        axis=1,
    )  # fmt: skip


def _system_names(runs: Sequence[LoggedRun], params: pd.DataFrame, n_tokens: Sequence[int]) -> list[str]:
    """Name of each run without n_tokens: components that differ, and as few parameters as needed."""
    words: list[list[str]] = [[] for _ in runs]
    for column in params:
        if column in ("n_tokens", *_CODE):
            continue
        if column in GROUPS:
            for own, value in zip(words, params[column], strict=True):
                own.append(short(value))
            continue
        alike = pd.Series([f"{' · '.join(own)} {n}" for own, n in zip(words, n_tokens, strict=True)])
        splits = params[column].fillna("").reset_index(drop=True).groupby(alike).transform("nunique") > 1
        for own, value, differs in zip(words, params[column], splits, strict=True):
            if differs and isinstance(value, str):
                own.append(f"{column}={short(value)}")
    return [
        " · ".join(own) or run.tags.get("retriever", run.name)
        for own, run in zip(words, runs, strict=True)
    ]  # fmt: skip


def common_settings(runs: Sequence[LoggedRun], params: pd.DataFrame) -> dict[str, str]:
    """The experiment, dataset and components that all runs share, with budget, seed and topics."""
    first = runs[0]
    common = {"experiment": first.experiment} if len({run.experiment for run in runs}) == 1 else {}
    digests = {run.tags.get("dataset_digest", "?") for run in runs}
    shared = _settings(first)
    for key in (*GROUPS, "n_tokens", "seed", "bootstrap"):
        if key in shared and key not in params:
            common[key] = shared[key]
    if "dataset" in common and len(digests) == 1:
        common["dataset"] += f" ({digests.pop()[:12]})"
    topics = {run.metrics.get("topics") for run in runs} - {None}
    if len(topics) == 1:
        common["topics"] = f"{topics.pop():.0f}"
    return common
