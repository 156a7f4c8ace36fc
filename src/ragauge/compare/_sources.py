"""Finds the runs that the sources of a comparison name, checks that they are comparable, and lists limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ragauge.contract import comparable
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import ANSWERS
from ragauge.contract.job_files import read_records
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import (
    CAUSE,
    COLUMNS,
    PREFIX,
    names,
)
from ragauge.contract.progress import progress
from ragauge.contract.record import RECORD_FILE
from ragauge.estimate.clusters import same_clusters
from ragauge.track import LoggedRun, Reader, recorded_uri, tracking_uri

_MAX_NAMED = 5  # runs named in a message
_TABLE = "per_question.json"
_OUTCOMES = names(column for column in COLUMNS if column.compared)


def some(names: Sequence[str]) -> str:
    """The first five names, and the number of further ones."""
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def short(value: object, width: int = 24) -> str:
    """A value on one line, cut to `width` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass(frozen=True)
class SourceRuns:
    """The distinct finished jobs that sources name.

    `readers` has the MLflow store of each by run_id; `swept` is True if a source is a sweep; `notes` name the
    jobs that did not finish.
    """

    runs: list[LoggedRun]
    readers: dict[str, Reader]
    swept: bool
    notes: list[str]

    @classmethod
    def of(cls, sources: Sequence[str], uri: str | None) -> SourceRuns:
        """Looks the sources up in MLflow; DataError if one has no finished job."""
        stores: dict[str, Reader] = {}
        jobs: dict[str, tuple[LoggedRun, Reader]] = {}
        notes: list[str] = []
        swept = False
        for source in sources:
            several, listed, reader = members(source, uri, stores)
            swept |= several
            finished = [run for run in listed if run.status == "FINISHED"]
            failed = [run for run in listed if run.status != "FINISHED"]
            if failed and (not several or not finished):
                raise DataError("; ".join(f"run {r.run_id} ({r.name}) is {r.status}: {_error(r)}"
                                          for r in failed[:_MAX_NAMED]))  # fmt: skip
            if failed:
                named = some([run.name for run in failed])
                notes.append(f"{len(failed)} job(s) of {source} did not finish and are left out: {named}.")
            jobs |= {run.run_id: (run, reader) for run in finished if run.run_id not in jobs}
        runs = [run for run, _ in jobs.values()]
        return cls(runs, {run.run_id: reader for run, reader in jobs.values()}, swept, notes)


def members(source: str, uri: str | None, stores: dict[str, Reader]) -> tuple[bool, list[LoggedRun], Reader]:
    """Whether a source is a sweep, its jobs (finished or not), and the MLflow store that holds them."""

    def store(at: str) -> Reader:
        if at not in stores:
            stores[at] = Reader(at)
        return stores[at]

    folder = Path(source)
    if folder.is_dir():
        records = [record for record in read_records(folder) if record.run_id]
        if not records:
            raise DataError(
                f"{source} holds no job that has a run in MLflow (no {RECORD_FILE} that names one); give a "
                "sweep's folder, such as multirun/<date>/<time>"
            )
        records[0].require("tracking_uri")
        reader = store(tracking_uri(uri) if uri else recorded_uri(records[0].tracking_uri))
        return not (folder / RECORD_FILE).is_file(), [reader.run(record.run_id) for record in records], reader
    if not source or not set(source) <= set("0123456789abcdef"):
        raise ConfigError(f"{source!r} is neither a folder nor an MLflow run id or the beginning of one")
    reader = store(tracking_uri(uri))
    run = reader.run(source)
    role = run.tags.get("role")
    if role == "job":
        return False, [run], reader
    if role == "training":
        raise DataError(f"run {run.run_id} ({run.name}) is a training: give jobs and sweeps")
    if role != "sweep":
        raise DataError(f"run {run.run_id} has no tag role=job or role=sweep, so it is not one of ragauge's")
    members = reader.jobs(run)
    if not members:
        raise DataError(f"MLflow holds no job of sweep {run.tags.get('sweep_id', '')} (run {run.run_id})")
    return True, members, reader


def _error(run: LoggedRun) -> str:
    return run.tags.get("error", "no error was recorded")


def check_alike(runs: Sequence[LoggedRun], across_datasets: bool) -> None:
    """DataError if the runs differ in topics or measurement settings."""
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
    """The measurement settings of each run, as in `ragauge.contract.comparable`."""
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


def read_outcomes(
    runs: Sequence[LoggedRun], readers: Mapping[str, Reader], answers: Sequence[AnswerMeasureInfo]
) -> pd.DataFrame:
    """The concatenated tables of the runs' questions, without contexts."""
    columns = [*_OUTCOMES, *(info.name for info in answers)]
    tables = []
    with progress(len(runs), "reading questions", "run") as bar:
        for run in runs:
            try:
                table = readers[run.run_id].table(run.run_id, _TABLE)
            except DataError as error:
                pooling = "; judge.mode=batch writes it once the sweep is pooled (ragauge pool)"
                raise DataError(f"{error}{pooling if 'sweep_id' in run.tags else ''}") from error
            absent = sorted({"qid", "query", "ir_score", "label", "answer"} - set(table))
            if absent:
                raise DataError(f"run {run.run_id}: {_TABLE} has no column {', '.join(absent)}")
            kept = [*(c for c in columns if c in table), *(c for c in map(str, table) if c.startswith(PREFIX))]
            kept_rows = table[kept].assign(run_id=run.run_id)
            if "evidence" in kept_rows:  # a list of parts
                kept_rows["evidence"] = kept_rows["evidence"].map(_one_text)
            tables.append(kept_rows)
            bar.update()
    if any(CAUSE not in table for table in tables):  # a job without a funnel has none
        tables = [table.drop(columns=CAUSE, errors="ignore") for table in tables]
    outcomes = pd.concat(tables, ignore_index=True)
    for info in answers:
        known = outcomes.get(info.name, pd.Series(float("nan"), index=outcomes.index))
        outcomes[info.name] = pd.to_numeric(known).astype("float64")
    if "judged" in outcomes:
        outcomes["judged"] = outcomes["judged"].ne(False)
    return same_clusters(outcomes).astype({"qid": "str", "ir_score": "float64", "label": "Int8"})


def _one_text(parts: object) -> object:
    return "\n".join(map(str, parts)) if isinstance(parts, list) else parts


def check_same_topics(outcomes: pd.DataFrame, base: str) -> None:
    """DataError if a qid names different topics in two runs."""
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


def limits_of(
    runs: Sequence[LoggedRun],
    params: pd.DataFrame,
    outcomes: pd.DataFrame,
    base: str,
    n_tokens: int | None,
    names: Mapping[str, str],
) -> list[str]:
    """Sentences on the limits of the comparison."""
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
    if any(column == ANSWERS or column.startswith(f"{ANSWERS}.") for column in map(str, params)):
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
