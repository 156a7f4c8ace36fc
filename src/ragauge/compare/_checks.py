"""Whether runs may be compared, and what limits a comparison that may be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from ragauge.compare._words import short, some
from ragauge.contract import comparable
from ragauge.contract.answer_measures import besides_rankings
from ragauge.contract.errors import DataError
from ragauge.contract.groups import ANSWERS
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.track import LoggedRun


def check_alike(runs: Sequence[LoggedRun], across_datasets: bool) -> None:
    """DataError where the runs measured other topics, or measured them otherwise."""
    datasets = _by(runs, lambda run: (run.tags.get("dataset", "?"), run.tags.get("dataset_digest", "?")))
    if len(datasets) > 1 and not across_datasets:
        listed = "; ".join(f"{name} {digest[:12]}: {ids}" for (name, digest), ids in datasets.items())
        raise DataError(
            f"the runs are over different datasets ({listed}). --across-datasets compares them on the topics "
            "that have the same qid, question, answer and evidence in all"
        )
    digest = {run.run_id: found["measure"] for run, found in zip(runs, measured_by(runs), strict=True)}
    measures = _by(runs, lambda run: (comparable.in_words("measure", run.tags, run.params), digest[run.run_id]))
    if len(measures) > 1:
        listed = "; ".join(f"{words}: {ids}" for (words, _), ids in measures.items())
        raise DataError(f"the runs were scored by different measures ({listed}), so no score compares")


def measured_by(runs: Sequence[LoggedRun]) -> list[dict[str, str]]:
    """What each run was measured by, as of `ragauge.contract.comparable`."""
    return comparable.measured_by(
        [comparable.from_tags(run.tags) for run in runs],
        [run.tags for run in runs],
        [run.params for run in runs],
    )


def _by(runs: Sequence[LoggedRun], key: Callable[[LoggedRun], tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The ids of the runs that share a key, in words."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run.run_id[:8])
    return {group: some(ids) for group, ids in groups.items()}


def check_same_topics(outcomes: pd.DataFrame, base: str) -> None:
    """DataError where a qid means another topic in another run."""
    what = [c for c in ("query", "answer_reference", "evidence") if c in outcomes]
    first = outcomes.loc[outcomes["run_id"] == base, ["qid", *what]]
    both = outcomes.merge(first, on="qid", suffixes=("", "_base"))
    for column in what:
        other = both[both[column].fillna("") != both[f"{column}_base"].fillna("")]
        if len(other):
            row = other.iloc[0]
            raise DataError(
                f"qid {row['qid']!r} is not the same topic in runs {base} and {row['run_id']}: {column} is "
                f"{short(row[column + '_base'], 60)!r} and {short(row[column], 60)!r}"
            )


def notes_on(
    runs: Sequence[LoggedRun],
    params: pd.DataFrame,
    outcomes: pd.DataFrame,
    base: str,
    n_tokens: int | None,
    names: Mapping[str, str],
) -> list[str]:
    """Sentences on what a reader of the numbers must know."""
    notes = []
    verdicts = outcomes["label"].notna().groupby(outcomes["run_id"], sort=False).any()
    silent = [names[str(run_id)] for run_id, judged in verdicts.items() if not judged]
    if silent and len(silent) < len(verdicts):
        notes.append(f"Without verdicts, so not compared by these: {some(silent)}.")
    elif silent:
        notes.append("No compared run has verdicts, so none are compared.")
    found = measured_by(runs)
    if len({job["judge"] for job in found}) > 1:
        notes.append("The runs' judges differ, so a difference of verdicts may be one of the judges.")
    if _group_differs(params, ANSWERS):
        notes.append("The runs' answer measures differ: a difference may be one of how answers are measured.")
    if len({job["tokenizer"] for job in found}) > 1:
        notes.append("The runs' tokenizers differ, so the same N is not the same budget.")
    if len({run.tags.get("dataset_digest") for run in runs}) > 1:
        notes.append("The datasets differ: metrics are over the own topics of each run, pairs over shared ones.")
    if n_tokens is None:
        notes.append("The compared runs have different budgets (n_tokens).")
    topics = outcomes.groupby("run_id", sort=False)["qid"].agg(set)
    for run_id, own in topics.items():
        more, fewer = len(own - topics[base]), len(topics[base] - own)
        if more or fewer:
            notes.append(
                f"{more} topic(s) are only in {names[str(run_id)]}, {fewer} only in {names[base]}; "
                f"the pair is compared on the {len(own & topics[base])} of both."
            )
    cached = sum(r.metrics.get(k, 0) for r in runs for k in ("llm_calls_cached", "judge_llm_calls_cached"))
    if cached:
        notes.append(f"{cached:.0f} call(s) were answered by the ledger: a run's cost is what it paid itself.")
    return notes


def notes_on_values(
    outcomes: pd.DataFrame, answers: Sequence[AnswerMeasureInfo], names: Mapping[str, str]
) -> list[str]:
    """A sentence for each measure of answers that some topic has no value of: how many topics a run's mean has."""
    notes = []
    topics = outcomes.groupby("run_id", sort=False)["qid"].size()
    for info in besides_rankings(answers):
        n = outcomes[info.name].notna().groupby(outcomes["run_id"], sort=False).sum()
        if (n < topics).any():
            counts = some([f"{n[run_id]} of {topics[run_id]} in {names[str(run_id)]}" for run_id in n.index])
            notes.append(
                f"Topics with a value of {info.label}: {counts}; a mean is over these, a pair over those of both."
            )
    return notes


def _group_differs(params: pd.DataFrame, group: str) -> bool:
    return any(column == group or column.startswith(f"{group}.") for column in map(str, params))
