"""The gate of ended runs: the jobs that a source names, their metrics, and their rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from ragauge import compare
from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.metrics import measure_metrics
from ragauge.contract.outcomes import PREFIX
from ragauge.contract.visible import visible
from ragauge.experiment.setup.config import logged_yaml
from ragauge.findings.of_sweeps import metrics_of_sweeps
from ragauge.findings.order import metrics_of_jobs
from ragauge.findings.slices import metrics_of_slices
from ragauge.plugins.gate.bounds import bounds, check_bounds, check_settings
from ragauge.plugins.gate.checking import Gated, evaluate
from ragauge.plugins.gate.rules import Gate, read_gate
from ragauge.plugins.gate.taken import OwnLooks
from ragauge.plugins.gate.verdicts import Check, GateResult
from ragauge.track import LoggedRun, Reader


@dataclass(frozen=True)
class Asked:
    """The runs to check: an MLflow run id or a folder; of a sweep one system or budget.

    pooled: the metrics of the sweep's own run, in place of its jobs'. gate: None takes that of each job's
    config.
    """

    source: str
    gate: Gate | None = None
    system: str | None = None
    n_tokens: int | None = None
    pooled: bool = False


def gate_runs(asked: Asked, uri: str | None = None) -> GateResult:
    """Every check of the requested runs; a job that did not finish counts as undecided.

    Raises ConfigError and DataError for runs that are not there, names of metrics and slices that no run can
    have, and where there are no rules.
    """
    several, runs, reader = compare.members(asked.source, uri, {})
    if asked.pooled:
        return _pooled(asked, several, runs, reader)
    if not several and (asked.system is not None or asked.n_tokens is not None):
        raise ConfigError("--system and --n-tokens: they choose jobs of a sweep, and this is one job")
    chosen = _chosen(runs, asked) if several else runs
    finished = [run for run in chosen if run.status == "FINISHED"]
    unfinished = [_unfinished(run) for run in chosen if run.status != "FINISHED"]
    results: list[GateResult] = []
    if asked.gate is not None:
        _check_gate(asked.gate)
        _check_looks(asked.gate, finished)
        jobs = [_gated(run, reader, asked.gate) for run in finished]
        for run, job in zip(finished, jobs, strict=True):
            _check_names(asked.gate, run, job)
        results.append(evaluate(asked.gate, jobs, uri))
    else:
        for run in finished:
            gate = _gate_of_run(run, reader)
            job = _gated(run, reader, gate)
            _check_names(gate, run, job)
            results.append(evaluate(gate, [job], uri))
    return GateResult(
        [*unfinished, *(check for result in results for check in result.checks)],
        any(result.strict for result in results),
        [note for result in results for note in result.notes],
    )


def _check_gate(gate: Gate) -> None:
    if not gate.rules:
        raise ConfigError("no rules: give --rules <file>, --preset guideline, or rules such as ir_score=0.6")
    check_settings(gate, "--")


def _check_looks(gate: Gate, runs: Sequence[LoggedRun]) -> None:
    """ConfigError if two jobs share a name, so that their looks would be mixed up."""
    names = [run.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if gate.look is not None and twice is not None:
        name = visible(twice, one_line=True)
        raise ConfigError(f"look: {names.count(twice)} jobs have the name {name}, so give the run id of one")


def _gate_of_run(run: LoggedRun, reader: Reader) -> Gate:
    """The gate in the run's logged config."""
    config = logged_yaml(reader.text(run.run_id, "config/config.yaml"), f"run {run.run_id[:8]}: its config")
    gate = read_gate((config or {}).get("gate") or {}, f"run {run.run_id[:8]}: gate.")
    if not gate.rules:
        raise ConfigError(
            f"run {run.run_id[:8]} was made without a gate: give --rules <file>, --preset guideline, or "
            "rules such as ir_score=0.6"
        )
    return gate


def _chosen(runs: Sequence[LoggedRun], asked: Asked) -> list[LoggedRun]:
    """The requested jobs of a sweep; ConfigError if there are none."""
    table = compare.run_table(runs, compare.differing(runs))
    kept = pd.Series(True, index=table.index)
    for column, wanted in (("system", asked.system), ("n_tokens", asked.n_tokens)):
        if wanted is None:
            continue
        kept &= table[column] == wanted
        if not kept.any():
            there = ", ".join(visible(x, one_line=True) for x in table[column].drop_duplicates())
            key = f"--{column.replace('_', '-')}"
            raise ConfigError(f"{key} {wanted}: no such job in this sweep; there are {there}")
    return [run for run, keep in zip(runs, kept, strict=True) if keep]


def _unfinished(run: LoggedRun) -> Check:
    error = visible(run.tags.get("error", "no error was recorded"), one_line=True)
    return Check(run.name, run.run_id, "", "job", "invalid", reason=f"the job is {run.status}: {error}")


def _gated(run: LoggedRun, reader: Reader, gate: Gate) -> Gated:
    @cache
    def slices() -> pd.DataFrame | None:
        if not any(name.startswith("slice/") for name in run.metrics):
            return None
        table = reader.table(run.run_id, "per_question.json")
        columns = [c for c in map(str, table) if c.startswith(PREFIX)]
        return table[["qid", *columns]] if columns else None

    return Gated(run.name, run.run_id, run.metrics, slices, run, reader, OwnLooks.of_run(gate, run))


def _check_names(gate: Gate, run: LoggedRun, job: Gated) -> None:
    infos = in_order([from_tags(run.tags)])
    names = [info.name for info in infos]
    slices = job.slices()
    known = [*run.metrics, *metrics_of_jobs(), *measure_metrics(names), *metrics_of_slices(slices, names)]
    check_bounds(bounds(gate.rules, slices), known, infos)


def _pooled(asked: Asked, several: bool, runs: Sequence[LoggedRun], reader: Reader) -> GateResult:
    """The gate on the metrics of the sweep's own run."""
    if not several:
        raise ConfigError("--pooled: this is one job; the metrics of a sweep's own run are asked for")
    if asked.system is not None or asked.n_tokens is not None:
        raise ConfigError("--pooled: a sweep's own run has no system and no n_tokens")
    if asked.gate is None:
        raise ConfigError("--pooled: give --rules <file>, or rules such as 'predictor_ece={max: 0.1}'")
    _check_gate(asked.gate)
    if asked.gate.look is not None:
        raise ConfigError("--pooled: a sweep's own metrics have no number of topics, so leave look out")
    if asked.gate.compares:
        raise ConfigError("--pooled: a sweep's own metrics have no value per topic, so leave tolerance out")
    first = runs[0]
    found = reader.search({"sweep_id": first.tags["sweep_id"], "role": "sweep"}, first.experiment_id)
    groups = {run.tags.get("group") for run in runs}
    own = [run for run in found if run.run_id == asked.source or run.tags.get("group") in groups]
    if not own:
        raise DataError(f"sweep {first.tags['sweep_id']} is not pooled: ragauge pool <its folder>")
    jobs = [Gated(run.name, run.run_id, run.metrics) for run in own]
    for run in own:
        check_bounds(bounds(asked.gate.rules, None), [*run.metrics, *metrics_of_sweeps()], ())
    return evaluate(asked.gate, jobs)
