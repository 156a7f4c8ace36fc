"""Differences between runs, their common settings, and their names; the finding that shows the differences."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.compare._sources import short
from ragauge.contract.finding import Col, ComparisonFinding, Found, Founds, Grid, Section, Shown
from ragauge.contract.groups import GROUPS
from ragauge.contract.jobs import Compared
from ragauge.contract.naming import short_forms
from ragauge.show.tables import clean, fit
from ragauge.track import LoggedRun

_CODE = ("git_commit", "ragauge_version")
_BOOKKEEPING = ("store", "tracking")
_MAX_VALUE = 60  # characters of a parameter, which may be a whole prompt, in a cell
_VERDICTS = ("correct_share", "hallucination_share", *(f"judge_share_{c}" for c in range(1, 6)))


def _settings(run: LoggedRun) -> dict[str, str]:
    """A run's choices by config group, its parameters and its code version."""
    chosen = {group: run.tags[group] for group in GROUPS if group in run.tags}
    return chosen | dict(run.params) | {tag: run.tags[tag] for tag in _CODE if tag in run.tags}


def differing(runs: Sequence[LoggedRun]) -> pd.DataFrame:
    """Settings that differ between runs [run_id x setting], config groups first.

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
    """Sort key of a parameter: components in the order of the groups, bookkeeping and code last."""
    first = column.partition(".")[0]
    if first in GROUPS:
        return GROUPS.index(first), column
    return len(GROUPS) + (first in _BOOKKEEPING) + 2 * (first in _CODE), column


def run_table(runs: Sequence[LoggedRun], params: pd.DataFrame) -> pd.DataFrame:
    """The frame `Compared.runs` without its column `compared`."""
    n_tokens = [int(run.tags["n_tokens"]) for run in runs]
    systems = _system_names(runs, params, n_tokens)
    budgets = len(set(n_tokens)) > 1
    names = [f"{s} · N={n}" if budgets else s for s, n in zip(systems, n_tokens, strict=True)]
    twice = pd.Series(names).duplicated(keep=False)
    metrics = pd.DataFrame([dict(run.metrics) for run in runs], dtype=float)
    share = metrics.get("judge_share_missing", pd.Series(0.0, index=metrics.index))
    of_verdicts = [c for c in map(str, metrics) if c.removesuffix("_lo").removesuffix("_hi") in _VERDICTS]
    metrics.loc[share.eq(1), of_verdicts] = float("nan")
    ids = [run.run_id for run in runs]
    apart = [f"{name} ({i[:8]})" if same else name for name, i, same in zip(names, ids, twice, strict=True)]
    keys = pd.DataFrame({"run_id": ids, "run": apart, "system": systems, "n_tokens": n_tokens})
    return pd.concat([keys, metrics], axis=1)


def _system_names(runs: Sequence[LoggedRun], params: pd.DataFrame, n_tokens: Sequence[int]) -> list[str]:
    """Name of each run without n_tokens: differing components, and as few parameters as needed."""
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
        forms = _forms(str(column), params)
        for own, value, differs in zip(words, params[column], splits, strict=True):
            if differs and isinstance(value, str):
                own.append(forms[value])
    return [
        " · ".join(own) or run.tags.get("retriever", run.name)
        for own, run in zip(words, runs, strict=True)
    ]  # fmt: skip


def _forms(column: str, params: pd.DataFrame) -> dict[str, str]:
    """The short form of each value of a parameter; a long one is cut where the others stay apart."""
    forms = short_forms(column, params[column].dropna().astype(str), map(str, params))
    cut = {value: short(form, 48) for value, form in forms.items()}
    return cut if len(set(cut.values())) == len(cut) else {v: " ".join(form.split()) for v, form in forms.items()}


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


def heading_of(runs: Compared) -> str:
    """The compared runs, in a line."""
    common = dict(runs.common)
    parts = [f"{group} {common[group]}" for group in GROUPS if group in common]
    others = [f"{key}={common[key]}" for key in ("n_tokens", "seed", "bootstrap") if key in common]
    where = f" of experiment {common['experiment']}" if "experiment" in common else ""
    topics = f", {common['topics']} topics" if "topics" in common else ""
    return f"{len(runs.runs)} runs{where}{topics}. In common: {', '.join([*parts, *others]) or 'nothing'}."


class WhatDiffers(ComparisonFinding):
    """The parameters that differ between the systems."""

    name = "differs"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """Differing parameters except n_tokens [run_id x parameter]; None if there are none."""
        params = runs.params.drop(columns="n_tokens", errors="ignore")
        return Found(params) if len(params.columns) or runs.runs["n_tokens"].nunique() > 1 else None

    def show(self, runs: Compared, value: pd.DataFrame, found: Founds) -> Shown:
        """A row per system, with its budgets if there are several."""
        columns = list(map(str, value))
        budgets = runs.runs["n_tokens"].nunique() > 1
        rows = []
        for system, of_system in runs.runs.groupby("system", sort=False):
            settings = value.loc[of_system["run_id"]]
            # Two systems of one name differ in something that is no part of it: a row each.
            for _, same in settings.fillna("").groupby(columns, sort=False) if columns else [("", settings)]:
                at = of_system.loc[of_system["run_id"].isin(same.index), "n_tokens"].tolist()
                first = [settings.loc[same.index[0], column] for column in columns]
                cells = [fit(clean(one), _MAX_VALUE) if isinstance(one, str) else "–" for one in first]
                rows.append([str(system), *cells, *([_budgets(at)] if budgets else [])])
        heads = [Col(title, left=True) for title in ("system", *columns, *(["n_tokens"] if budgets else []))]
        return Shown([Section("What differs", [Grid("What differs between the systems", heads, rows)])])


def _budgets(values: Sequence[int]) -> str:
    found = sorted(set(values))
    return ", ".join(map(str, found)) if len(found) < 5 else f"{found[0]} to {found[-1]}, {len(found)} in all"
