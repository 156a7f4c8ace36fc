"""The MLflow run of a sweep, or of each of its groups: pooled estimates, tables, figures and charts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from ragauge import track
from ragauge.contract.answer_measures import as_tag
from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact
from ragauge.contract.visible import coloured, csv_text, visible
from ragauge.estimate.prediction import settings_of
from ragauge.experiment.arguments import SweepOrigin, origin_of_sweep
from ragauge.findings.of_sweeps import findings
from ragauge.findings.order import declared
from ragauge.findings.pooling import PooledFindings, pooled
from ragauge.show.drawing import LINE_COLOURS, save
from ragauge.show.html import write_report
from ragauge.track import views


@dataclass(frozen=True)
class _Tracked:
    """The run of a sweep, or of one of its groups, and its report's path."""

    run_id: str
    report: Path | str


def is_own(record: JobRecord, tracking_uri: str | None) -> bool:
    """Whether the job's run, if any, is at the URI (None: the job's own)."""
    return tracking_uri is None or record.tracking_uri in ("", redact(tracking_uri))


def track_sweep(groups: Sequence[Jobs], folder: Path, tracking_uri: str | None) -> None:
    """Logs the sweep's run, or one per group of comparable jobs.

    Each group has its run, so that metrics have the same names in every sweep. Comparisons, reruns and predictors take
    the id of a group's run as that of a sweep's. The jobs' own runs are touched only where the sweep's run stands
    beside them.
    """
    first = groups[0]
    own = is_own(first.records[0], tracking_uri)
    start = time.perf_counter()
    found = [pooled(replace(jobs, tracked=own)) for jobs in groups]  # of all groups before anything is replaced
    tracker = track.Tracker(tracking_uri or track.recorded_uri(first.records[0].tracking_uri), first.experiment)
    track.close_orphans(tracker.uri)
    tracker.replace_runs({"role": "sweep", "sweep_id": first.sweep_id})
    if own:
        current = {r.run_id for one in groups for r in (*one.records, *one.failed) if r.run_id}
        tracker.supersede({"role": "job", "sweep_id": first.sweep_id}, current)
        tracker.group({r.run_id: sweep.group for sweep in groups if sweep.group
                       for r in (*sweep.records, *sweep.failed) if r.run_id})  # fmt: skip
    if len(groups) > 1:
        print(groups_text([sweep.group for sweep in groups]))
    runs = {one.jobs.group: _track_group(one, tracker, folder, own, start) for one in found}
    charts = [
        views.charts_view(sweep.sweep_id, sweep.n_tokens, sweep.group, number, _with_values(sweep))
        for number, sweep in enumerate(groups, 1)
    ]
    experiment_id = tracker.experiment_id
    ids = {group: run.run_id for group, run in runs.items()}
    tracker.present([views.jobs_view(), *charts], views.description(experiment_id, ids))
    done, failed = sum(len(s.records) for s in groups), sum(len(s.failed) for s in groups)
    here = Path.cwd()
    place = folder.relative_to(here) if folder.is_relative_to(here) else folder
    print(f"\n{done} job(s) done, {failed} failed; folder {place}")
    for group, run in runs.items():
        print(f"{group}: " if group else "", end="")
        print(f"report: {run.report}")
    print(views.where_text(redact(tracker.uri), views.page(experiment_id, views.CHARTS, "CHART")))


def _with_values(jobs: Jobs) -> list[str]:
    """The metrics of the bar charts that some job has, and that are not 0 throughout."""
    return [name for name in views.BARS if any(record.metrics.get(name) for record in jobs.records)]


def _track_group(found: PooledFindings, tracker: track.Tracker, folder: Path, own: bool, start: float) -> _Tracked:
    """Logs the run of comparable jobs and prints their results.

    `start` is when the pooling of all groups began.
    """
    jobs = found.jobs
    origin = origin_of_sweep(jobs) if own else None
    params = {"overrides": jobs.records[0].overrides, "folder": str(folder)}
    systems = len(dict.fromkeys(jobs.systems))
    name = f"sweep · {f'{jobs.group} · ' if jobs.group else ''}{systems} systems · {len(jobs.records)} jobs"
    note = _note(found, views.sweep_page(tracker.experiment_id, jobs.sweep_id, jobs.group))
    with tracker.run(name, params, _tags(jobs, origin), note) as run:
        page = found.page
        for figure, drawn in page.figures.items():
            save(drawn, run.folder / "figures" / f"{figure}.png")
        write_report([page], run.folder / "report.html")
        _write_outcomes(jobs, run.folder / "tables")
        elsewhere = f"report.html among the artifacts of MLflow run {run.run_id}"
        tracked = _Tracked(run.run_id, run.file_of("report.html") or elsewhere)
        if jobs.records[0].dataset:
            run.dataset(**jobs.records[0].dataset)
        known = declared(findings())
        for one in found.found.values():
            track.log_found(run, one, known, {} if one.model is None else _settings(jobs))
        own_values = {
            "jobs": len(jobs.records),
            "jobs_failed": len(jobs.failed),
            "seconds_jobs": sum(r.metrics["seconds_total"] for r in jobs.records),
            "seconds_pooled": time.perf_counter() - start,
        }
        run.metrics(own_values)
        compared = [] if origin is None else origin.compared(tracker, run)
    if own:
        tracker.colour(_colours(jobs))
    if jobs.group:
        print(f"\n== {jobs.group} ==")
    for line in found.lines:
        print(coloured(visible(line)) if "\n" in line else visible(line))
    for line in compared:
        print(line)
    return tracked


def _tags(jobs: Jobs, origin: SweepOrigin | None) -> dict[str, Any]:
    return {
        "role": "sweep",
        "sweep_id": jobs.sweep_id,
        **({"group": jobs.group} if jobs.group else {}),
        "dataset_digest": jobs.records[0].dataset_digest,
        **as_tag(jobs.answer_measures),
        **({} if origin is None else origin.tags),
        **{group: ",".join(dict.fromkeys(r.choices[group] for r in jobs.records))
           for group in ("dataset", "retriever", "chunker", "llm", "judge", "measure", "tokenizer")},
    }  # fmt: skip


def _write_outcomes(jobs: Jobs, out: Path) -> None:
    """Writes every outcome as CSV."""
    out.mkdir(parents=True)
    keys = ["system", "retriever", "n_tokens", "qid", "ir_score", "label"]
    keys += [info.name for info in jobs.answer_measures]
    (out / "outcomes.csv").write_text(csv_text(jobs.outcomes[keys]), encoding="utf-8", newline="")


def _settings(jobs: Jobs) -> dict[str, Any]:
    """The meaning of the pooled predictor's scores."""
    of_jobs = [record.settings for record in jobs.records]
    first = of_jobs[0]
    return settings_of(first["measure"], first["tokenizer"], [n for s in of_jobs for n in s["n_tokens"]])


def _colours(jobs: Jobs) -> dict[str, str]:
    """The colour of every job's run, equal to its system's in the figures."""
    of_system = dict(zip(dict.fromkeys(jobs.systems), itertools.cycle(LINE_COLOURS), strict=False))
    return {r.run_id: of_system[system] for r, system in zip(jobs.records, jobs.systems, strict=True)}


def _note(found: PooledFindings, page: str) -> str:
    jobs = found.jobs
    others = "; ".join(other.group for other in jobs.siblings)
    group = f"The jobs of {jobs.group} alone; not comparable with them: {others}."
    systems = ", ".join(dict.fromkeys(jobs.systems))
    sentences = [
        *(escape(sentence, quote=False) for sentence in found.lead),
        *([group] if jobs.group else []),
        *jobs.notes,
        f"{len(jobs.records)} [jobs]({page}) over {systems}.",
        "Look first at report.html, figures/ and leaderboard.json under Artifacts.",
    ]
    return " ".join(sentences)


def groups_text(names: Sequence[str]) -> str:
    """The line before the groups of a sweep with several."""
    listed = "".join(f"\n  {number}. {visible(name, one_line=True)}" for number, name in enumerate(names, 1))
    return (
        f"\nThis sweep has {len(names)} groups of jobs that are not comparable with each other: they "
        f"measured other topics, or by other means. Each is pooled by itself:{listed}"
    )
