"""Which runs are compared, whether they may be, and how they differ topic by topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.progress import progress
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.records import RECORD_FILE
from ragauge.estimate import compare_pairs
from ragauge.track import LoggedRun, Reader, recorded_uri, tracking_uri

_TABLE = "per_question.json"
_CODE = ("git_commit", "ragauge_version")
_BOOKKEEPING = ("store", "tracking")
_SPEED = "measure.threads"  # changes no score
_VERDICTS = ("correct_share", "hallucination_share", *(f"judge_share_{c}" for c in range(1, 6)))
_RIGHT = 5
_MAX_NAMED = 5  # runs named in a message


@dataclass(frozen=True)
class Comparison:
    """Runs side by side.

    `runs` has a row per run: `run_id`, `run` (a name that no other has), `system` (the name but for the
    budget), `n_tokens`, `compared` (whether it is part of the pairs), and every metric as it was logged, NaN
    where there is none; those of the verdicts are NaN where a run has no verdict. `params` are the parameters
    that differ [run_id x parameter], NaN where a run has none of that name; `common` the parts and settings
    that do not.

    `pairs` has a row per compared run but the baseline, and measure (`ir_score`, `correct`): [run_id,
    measure, difference, lo, hi, p, p_holm, n]; differences are the run less the baseline, on the n topics
    that both have. `n_tests` is how many p values Holm's correction counted. `outcomes` has a row per
    compared run and topic: [run_id, qid, query, answer_reference, ir_score, label, answer,
    ir_score_difference], the difference to the baseline NaN where that lacks the topic.

    `answers` are the answer measures of the runs: a metric each, a measure of the pairs and a column of the
    outcomes.

    `baseline` is a run_id; `baseline_chosen` where it was taken for the best IR score. `n_tokens` is the
    budget of the compared runs, None where it differs between them. `notes` are sentences on what limits the
    comparison.
    """

    runs: pd.DataFrame
    params: pd.DataFrame
    common: Mapping[str, str]
    pairs: pd.DataFrame
    n_tests: int
    outcomes: pd.DataFrame
    baseline: str
    baseline_chosen: bool
    n_tokens: int | None
    n_boot: int
    seed: int
    notes: Sequence[str]
    answers: Sequence[AnswerMeasureInfo] = ()

    @property
    def names(self) -> dict[str, str]:
        """The name of every run: {run_id: run}."""
        return dict(zip(self.runs["run_id"], self.runs["run"], strict=True))


def compare(
    sources: Sequence[str],
    uri: str | None = None,
    *,
    n_tokens: int | None = None,
    baseline: str | None = None,
    n_boot: int | None = None,
    seed: int | None = None,
    across_datasets: bool = False,
) -> Comparison:
    """The comparison of the runs that the sources name.

    A source is the id of an MLflow run of a job or of a sweep, or the beginning of one, or the folder of a
    sweep or a job; a sweep stands for its finished jobs. Runs that are named one by one are all compared,
    with the first of them unless `baseline` (an id, its beginning, or a run's name) says otherwise. Of a
    sweep, or where `n_tokens` is given, the jobs of one budget are: by default the largest that all systems
    have. The baseline of a sweep is the best IR score among these. n_boot and seed default to those of the
    baseline's config.

    Raises ConfigError and DataError for runs that are not there, not finished, or not to be compared: other
    datasets (but for `across_datasets`, which pairs topics that have the same qid, question and truth), other
    measures, topics that occur twice.
    """
    found = _Found.of(sources, uri)
    runs = found.runs
    _check_alike(runs, across_datasets)
    notes = list(found.notes)
    params = _differing(runs)
    table = _run_table(runs, params)
    if found.swept:
        table = table.sort_values("n_tokens", kind="stable", ignore_index=True)
    at, compared = _compared(table, found.swept, n_tokens)
    table["compared"] = table["run_id"].isin(compared)
    base = _baseline(table[table["compared"]], baseline, found.swept)
    by_id = {run.run_id: run for run in runs}
    n_boot = int(by_id[base].params.get("bootstrap", 1000)) if n_boot is None else n_boot
    seed = int(by_id[base].params.get("seed", 0)) if seed is None else seed

    answers = in_order(from_tags(run.tags) for run in runs)
    outcomes = _outcomes([by_id[i] for i in table.loc[table["compared"], "run_id"]], found.readers, answers)
    if across_datasets:
        _check_same_topics(outcomes, base)
    chosen = found.swept and baseline is None
    pairs, n_tests = _pairs(outcomes, base, n_boot, seed, answers, best_of_all=chosen)
    names = dict(zip(table["run_id"], table["run"], strict=True))
    notes += _notes(runs, params, outcomes, base, at, names)
    return Comparison(
        runs=table,
        params=params,
        common=_common(runs, params),
        pairs=pairs,
        n_tests=n_tests,
        outcomes=_with_differences(outcomes, base, answers),
        baseline=base,
        baseline_chosen=chosen,
        n_tokens=at,
        n_boot=n_boot,
        seed=seed,
        notes=notes,
        answers=answers,
    )


@dataclass(frozen=True)
class _Found:
    """The finished jobs that sources stand for, each once, and the store that holds each."""

    runs: list[LoggedRun]
    readers: dict[str, Reader]
    swept: bool
    notes: list[str]

    @classmethod
    def of(cls, sources: Sequence[str], uri: str | None) -> _Found:
        stores: dict[str, Reader] = {}
        jobs: dict[str, tuple[LoggedRun, Reader]] = {}
        notes: list[str] = []
        swept = False
        for source in sources:
            several, members, reader = _members(source, uri, stores)
            swept |= several
            finished = [run for run in members if run.status == "FINISHED"]
            failed = [run for run in members if run.status != "FINISHED"]
            if failed and (not several or not finished):
                raise DataError("; ".join(f"run {r.run_id} ({r.name}) is {r.status}: {_error(r)}"
                                          for r in failed[:_MAX_NAMED]))  # fmt: skip
            if failed:
                named = _some([run.name for run in failed])
                notes.append(f"{len(failed)} job(s) of {source} did not finish and are left out: {named}.")
            jobs |= {run.run_id: (run, reader) for run in finished if run.run_id not in jobs}
        if len(jobs) < 2:
            raise ConfigError(
                f"a comparison takes two runs or more, or a sweep; {', '.join(sources)} gives {len(jobs)}"
            )
        runs = [run for run, _ in jobs.values()]
        return cls(runs, {run.run_id: reader for run, reader in jobs.values()}, swept, notes)


def _members(source: str, uri: str | None, stores: dict[str, Reader]) -> tuple[bool, list[LoggedRun], Reader]:
    """Whether a source is a sweep, its jobs (finished or not), and the store that holds them."""

    def store(at: str) -> Reader:
        if at not in stores:
            stores[at] = Reader(at)
        return stores[at]

    folder = Path(source)
    if folder.is_dir():
        single = folder / RECORD_FILE
        files = [single] if single.is_file() else list(folder.glob(f"*/{RECORD_FILE}"))
        records = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        records = sorted((r for r in records if "run_id" in r), key=lambda record: record["number"])
        if not records:
            raise DataError(
                f"{source} holds no job that has a run in MLflow (no {RECORD_FILE} that names one); give a "
                "sweep's folder, such as multirun/<date>/<time>"
            )
        # A password is not on record: then the environment must say where MLflow is.
        recorded = records[0]["tracking_uri"]
        reader = store(tracking_uri(uri) if uri else recorded_uri(recorded))
        return not single.is_file(), [reader.run(record["run_id"]) for record in records], reader
    if not source or not set(source) <= set("0123456789abcdef"):
        raise ConfigError(f"{source!r} is neither a folder nor an MLflow run id or the beginning of one")
    reader = store(tracking_uri(uri))
    run = reader.run(source)
    role = run.tags.get("role")
    if role == "job":
        return False, [run], reader
    if role != "sweep":
        raise DataError(f"run {run.run_id} has no tag role=job or role=sweep, so it is not one of ragauge's")
    members = reader.jobs(run)
    if not members:
        raise DataError(f"MLflow holds no job of sweep {run.tags.get('sweep_id', '')} (run {run.run_id})")
    return True, members, reader


def _error(run: LoggedRun) -> str:
    return run.tags.get("error", "no error was recorded")


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _check_alike(runs: Sequence[LoggedRun], across_datasets: bool) -> None:
    """DataError where the runs measured other topics, or measured them otherwise."""
    datasets = _by(runs, lambda run: (run.tags.get("dataset", "?"), run.tags.get("dataset_digest", "?")))
    if len(datasets) > 1 and not across_datasets:
        listed = "; ".join(f"{name} {digest[:12]}: {ids}" for (name, digest), ids in datasets.items())
        raise DataError(
            f"the runs are over different datasets ({listed}). --across-datasets compares them on the topics "
            "that have the same qid, question, answer and evidence in all"
        )
    measures = _by(runs, _measure)
    if len(measures) > 1:
        listed = "; ".join(f"{' '.join(measure)}: {ids}" for measure, ids in measures.items())
        raise DataError(f"the runs were scored by different measures ({listed}), so no score compares")


def _measure(run: LoggedRun) -> tuple[str, ...]:
    """The measure with what can change a score."""
    settings = {k: v for k, v in run.params.items() if k.startswith("measure.") and k != _SPEED}
    return run.tags.get("measure", "?"), *(f"{k}={v}" for k, v in sorted(settings.items()))


def _by(runs: Sequence[LoggedRun], key: Callable[[LoggedRun], tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The ids of the runs that share a key, in words."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run.run_id[:8])
    return {group: _some(ids) for group, ids in groups.items()}


# --- what differs, and what the runs are called -------------------------------------------------------------


def _settings(run: LoggedRun) -> dict[str, str]:
    """A run's choices by config group, its parameters, and the code that it ran with."""
    chosen = {group: run.tags[group] for group in GROUPS if group in run.tags}
    return chosen | dict(run.params) | {tag: run.tags[tag] for tag in _CODE if tag in run.tags}


def _differing(runs: Sequence[LoggedRun]) -> pd.DataFrame:
    """The settings that differ between runs: [run_id x setting], those of the config groups first.

    A parameter that only some runs have, all with one value, comes with the part that they chose: it is left
    out where that choice is a column.
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
    """Where a parameter stands: those of parts in the order of the groups, bookkeeping and code last."""
    first = column.partition(".")[0]
    if first in GROUPS:
        return GROUPS.index(first), column
    return len(GROUPS) + (first in _BOOKKEEPING) + 2 * (first in _CODE), column


def _run_table(runs: Sequence[LoggedRun], params: pd.DataFrame) -> pd.DataFrame:
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
    """What tells the runs apart but for n_tokens: the parts that differ, and as few parameters as do it."""
    parts: list[list[str]] = [[] for _ in runs]
    for column in params:
        if column in ("n_tokens", *_CODE):
            continue
        if column in GROUPS:
            for part, value in zip(parts, params[column], strict=True):
                part.append(_short(value))
            continue
        alike = pd.Series([f"{' · '.join(part)} {n}" for part, n in zip(parts, n_tokens, strict=True)])
        splits = params[column].fillna("").reset_index(drop=True).groupby(alike).transform("nunique") > 1
        for part, value, differs in zip(parts, params[column], splits, strict=True):
            if differs and isinstance(value, str):
                part.append(f"{column}={_short(value)}")
    return [
        " · ".join(part) or run.tags.get("retriever", run.name)
        for part, run in zip(parts, runs, strict=True)
    ]  # fmt: skip


def _short(value: object, width: int = 24) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _common(runs: Sequence[LoggedRun], params: pd.DataFrame) -> dict[str, str]:
    """The experiment, dataset and parts that all runs share, with budget, seed and topics."""
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


# --- which runs make pairs ----------------------------------------------------------------------------------


def _compared(table: pd.DataFrame, swept: bool, n_tokens: int | None) -> tuple[int | None, list[str]]:
    """The budget of the pairs (None where the runs have several), and the ids of the runs that make them."""
    budgets = sorted(set(table["n_tokens"].tolist()))
    if n_tokens is None and not swept:
        return (budgets[0] if len(budgets) == 1 else None), table["run_id"].tolist()
    if n_tokens is None:
        of_systems = [set(rows["n_tokens"]) for _, rows in table.groupby("system")]
        n_tokens = int(max(set.intersection(*of_systems) or budgets))
    ids = table.loc[table["n_tokens"] == n_tokens, "run_id"].tolist()
    if len(ids) < 2:
        raise ConfigError(
            f"n_tokens={n_tokens}: {len(ids)} of the runs have this budget, and a pair takes two; there are "
            + ", ".join(
                f"{n} ({count} runs)" for n, count in table["n_tokens"].value_counts().sort_index().items()
            )
        )
    return n_tokens, ids


def _baseline(compared: pd.DataFrame, asked: str | None, swept: bool) -> str:
    if asked is None:
        row = int(np.argmax(compared["ir_score"].to_numpy())) if swept else 0
        return str(compared["run_id"].iloc[row])
    named = compared[(compared["run"] == asked) | (compared["system"] == asked)]
    if named.empty:
        named = compared[compared["run_id"].str.startswith(asked)]
    if len(named) != 1:
        there = ", ".join(f"{row['run']} ({row['run_id'][:8]})" for row in compared.to_dict("records"))
        many = "none" if named.empty else "several"
        raise ConfigError(f"baseline {asked!r} is {many} of the compared runs; these are {there}")
    return str(named["run_id"].iloc[0])


# --- topic by topic -----------------------------------------------------------------------------------------


def _outcomes(
    runs: Sequence[LoggedRun], readers: Mapping[str, Reader], answers: Sequence[AnswerMeasureInfo]
) -> pd.DataFrame:
    """The tables of the runs' questions, one under the other, without their contexts."""
    columns = ["qid", "query", "answer_reference", "evidence", "answer", "label", "ir_score", "judged"]
    columns += [info.name for info in answers]
    tables = []
    with progress(len(runs), "read questions", "run") as bar:
        for run in runs:
            try:
                table = readers[run.run_id].table(run.run_id, _TABLE)
            except DataError as error:
                pooling = (
                    "; judge.mode=batch writes it once the sweep is pooled "
                    "(python -m ragauge.experiment.sweeps)"
                )
                raise DataError(f"{error}{pooling if 'sweep_id' in run.tags else ''}") from error
            absent = sorted({"qid", "query", "ir_score", "label", "answer"} - set(table))
            if absent:
                raise DataError(f"run {run.run_id}: {_TABLE} has no column {', '.join(absent)}")
            tables.append(table[[c for c in columns if c in table]].assign(run_id=run.run_id))
            bar.update()
    outcomes = pd.concat(tables, ignore_index=True)
    for info in answers:
        known = outcomes.get(info.name, pd.Series(float("nan"), index=outcomes.index))
        outcomes[info.name] = pd.to_numeric(known).astype("float64")
    if "judged" in outcomes:
        outcomes["judged"] = outcomes["judged"].fillna(True).astype(bool)
    return outcomes.astype({"qid": "str", "ir_score": "float64", "label": "Int8"})


def _check_same_topics(outcomes: pd.DataFrame, base: str) -> None:
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
                f"{_short(row[column + '_base'], 60)!r} and {_short(row[column], 60)!r}"
            )


def _pairs(
    outcomes: pd.DataFrame,
    base: str,
    n_boot: int,
    seed: int,
    answers: Sequence[AnswerMeasureInfo],
    best_of_all: bool,
) -> tuple[pd.DataFrame, int]:
    """The frame `Comparison.pairs`, and how many p values Holm's correction counted.

    These are all that are in the frame; a baseline that was chosen for its score has every pair counted,
    since each might have come out as the one to be shown.
    """
    from statsmodels.stats.multitest import multipletests

    every = compare_pairs(outcomes, "run_id", n_boot, seed, answers=answers)
    judged = outcomes.loc[outcomes["label"].notna(), "run_id"].unique()
    every = every[every["measure"].ne("correct") | (every["a"].isin(judged) & every["b"].isin(judged))]
    with_base = every["a"].eq(base) | every["b"].eq(base)
    counted = (every if best_of_all else every[with_base]).dropna(subset=["p"])
    corrected = multipletests(counted["p"], method="holm")[1] if len(counted) else []
    shown = every[with_base].assign(p_holm=pd.Series(corrected, index=counted.index, dtype=float))
    turned = shown["a"].eq(base)
    shown["run_id"] = shown["b"].where(turned, shown["a"])
    # 0 less x, and not -x: no difference is not minus nothing.
    shown.loc[turned, ["lo", "hi"]] = 0.0 - shown.loc[turned, ["hi", "lo"]].to_numpy()
    shown.loc[turned, "difference"] = 0.0 - shown.loc[turned, "difference"]
    order = {run_id: i for i, run_id in enumerate(outcomes["run_id"].unique())}
    shown = shown.sort_values("run_id", key=lambda ids: ids.map(order), kind="stable", ignore_index=True)
    columns = ["run_id", "measure", "difference", "lo", "hi", "p", "p_holm", "n"]
    return shown[columns], len(counted)


def _with_differences(
    outcomes: pd.DataFrame, base: str, answers: Sequence[AnswerMeasureInfo]
) -> pd.DataFrame:
    reference = outcomes[outcomes["run_id"] == base].set_index("qid")["ir_score"]
    difference = outcomes["ir_score"] - outcomes["qid"].map(reference)
    columns = ["run_id", "qid", "query", "answer_reference", "ir_score", "label", "answer"]
    columns += [info.name for info in answers]
    kept = outcomes[[c for c in columns if c in outcomes]]
    return kept.assign(ir_score_difference=difference.where(outcomes["run_id"] != base))


def most_different(comparison: Comparison, by: str, n: int) -> tuple[pd.DataFrame, int]:
    """The n topics that the baseline and another run disagree on most, and on how many they do at all.

    A topic comes once, with the run that is furthest off: [qid, query, run_id, ir_score, label, answer], and
    the baseline's ir_score_base, label_base, answer_base. `by` is `ir_score` (the largest difference first)
    or `class`: right against a hallucination, right against lack of information or an incomplete answer, a
    hallucination against these, then the others that differ, each by the difference in IR score; a topic
    without both verdicts is left out.
    """
    of_base = comparison.outcomes["run_id"] == comparison.baseline
    columns = ["qid", "query", "run_id", "ir_score", "label", "answer"]
    base = comparison.outcomes.loc[of_base, ["qid", "ir_score", "label", "answer"]]
    rows = comparison.outcomes.loc[~of_base, columns].merge(base, on="qid", suffixes=("", "_base"))
    rows["_off"] = (rows["ir_score"] - rows["ir_score_base"]).abs()
    if by == "class":
        both = rows["label"].notna() & rows["label_base"].notna()
        rows = rows[both & rows["label"].ne(rows["label_base"]).fillna(False)].copy()
        rows["_kind"] = (rows["label"].map(_kind) - rows["label_base"].map(_kind)).abs().astype(int)
    else:
        rows = rows[rows["_off"] > 0].assign(_kind=0)
    rows = rows.sort_values(["_kind", "_off"], ascending=False, kind="stable").drop_duplicates("qid")
    rows = rows.sort_values(["_kind", "_off", "qid"], ascending=[False, False, True], kind="stable")
    return rows.drop(columns=["_kind", "_off"]).head(n).reset_index(drop=True), len(rows)


def _kind(label: int) -> int:
    """A place on a line on which a right answer and a hallucination are furthest apart."""
    return 3 if label == _RIGHT else 0 if label in HALLUCINATIONS else 1


# --- what limits the comparison -----------------------------------------------------------------------------


def _notes(
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
        notes.append(f"Without verdicts, so compared by their IR score alone: {_some(silent)}.")
    elif silent:
        notes.append("No compared run has verdicts: the IR scores alone are compared.")
    if _group_differs(params, "judge"):
        notes.append("The runs' judges differ, so a difference of verdicts may be one of the judges.")
    if _group_differs(params, ANSWERS):
        notes.append("The runs' answer measures differ: a difference may be one of how answers are measured.")
    if _group_differs(params, "tokenizer"):
        notes.append("The runs' tokenizers differ, so the same N is not the same budget.")
    if len({run.tags.get("dataset_digest") for run in runs}) > 1:
        notes.append(
            "The datasets differ: metrics are over the own topics of each run, pairs over shared ones."
        )
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
        notes.append(
            f"{cached:.0f} call(s) were answered by the ledger: a run's cost is what it paid itself."
        )
    return notes


def _group_differs(params: pd.DataFrame, group: str) -> bool:
    return any(column == group or column.startswith(f"{group}.") for column in map(str, params))
