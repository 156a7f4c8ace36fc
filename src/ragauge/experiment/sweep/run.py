"""The MLflow run of a sweep, or of each of its groups: pooled estimates, tables, figures and charts."""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge import report, track
from ragauge.contract.console import coloured
from ragauge.contract.groups import CALLS
from ragauge.contract.redact import redact
from ragauge.contract.visible import csv_text, visible
from ragauge.estimate import fit_thresholds, summary
from ragauge.estimate.outcomes import fit_rows
from ragauge.estimate.prediction import settings_of
from ragauge.estimate.transfer import transfer_metrics
from ragauge.experiment.findings.described import where_text
from ragauge.experiment.outcomes import metrics
from ragauge.experiment.rerun import comparison
from ragauge.experiment.sweep.jobs import Sweep, systems_of
from ragauge.experiment.sweep.pooled import contents, floor_curves, score_curves
from ragauge.experiment.sweep.robustness import metrics_of
from ragauge.track import views

_SUMMED = (
    *("llm_calls", "llm_calls_cached", "llm_usage_unknown"),
    *("prompt_tokens", "completion_tokens", "cost_usd"),
)


@dataclass(frozen=True)
class _Tracked:
    """The run of a sweep, or of one of its groups, and where its report is."""

    run_id: str
    report: Path | str


def is_own(record: Mapping[str, Any], tracking_uri: str | None) -> bool:
    """Whether the URI (None is the job's own) is where the job's run is, if it came so far as to have one."""
    return tracking_uri is None or record.get("tracking_uri") in (None, redact(tracking_uri))


def track_sweep(groups: Sequence[Sweep], folder: Path, tracking_uri: str | None) -> None:
    """Logs the sweep's run, or one for each group where not all of its jobs are comparable.

    A run for each, so that metrics have the same names in every sweep, and comparisons, reruns and predictors
    take the id of a group's run as that of a sweep's. The jobs' own runs are touched only where the sweep's
    run stands beside them.
    """
    first = groups[0]
    own = is_own(first.records[0], tracking_uri)
    start = time.perf_counter()
    found = contents(groups)  # of all groups before anything is replaced
    tracker = track.Tracker(tracking_uri or track.recorded_uri(first.records[0]["tracking_uri"]), first.experiment)
    track.close_orphans(tracker.uri)
    tracker.replace_runs({"role": "sweep", "sweep_id": first.sweep_id})
    if own:
        tracker.group({r["run_id"]: sweep.group for sweep in groups if sweep.group
                       for r in (*sweep.records, *sweep.failed) if "run_id" in r})  # fmt: skip
    if len(groups) > 1:
        print(report.groups_text([sweep.group for sweep in groups]))
    runs = {
        sweep.group: _track_group(sweep, content, tracker, folder, own, start)
        for sweep, content in zip(groups, found, strict=True)
    }
    charts = [
        views.charts_view(sweep.sweep_id, sweep.n_tokens, sweep.group, number) for number, sweep in enumerate(groups, 1)
    ]
    experiment_id = tracker.experiment_id
    ids = {group: run.run_id for group, run in runs.items()}
    tracker.present([views.jobs_view(), *charts], views.description(experiment_id, ids))
    done, failed = sum(len(s.records) for s in groups), sum(len(s.failed) for s in groups)
    print(f"\n{done} job(s) done, {failed} failed; folder {folder}")
    for chart, (group, run) in zip(charts, runs.items(), strict=True):
        print(f"{group}: " if group else "", end="")
        print(f"MLflow run {run.run_id}; report {run.report}")
        print(where_text(redact(tracker.uri), views.page(experiment_id, chart.key, "CHART")))


def _track_group(
    sweep: Sweep,
    content: report.ReportContent,
    tracker: track.Tracker,
    folder: Path,
    own: bool,
    start: float,
) -> _Tracked:
    """Logs the run of comparable jobs and prints what they came to.

    `start` is when the pooling of all groups began.
    """
    first = sweep.records[0]
    board, estimates = content.board, content.estimates
    fitted, judged = estimates.model is not None, bool(board["correct_share"].notna().any())
    again = [record for record in sweep.records if "rerun" in record and own]
    origin = again[0]["rerun"]["sweep"] if again else None

    tags = {
        "role": "sweep",
        "sweep_id": sweep.sweep_id,
        **({"group": sweep.group} if sweep.group else {}),
        "dataset_digest": first["dataset_digest"],
        **({"rerun_of": origin} if origin else {}),
        **{group: ",".join(dict.fromkeys(r["choices"][group] for r in sweep.records))
           for group in ("dataset", "retriever", "chunker", "llm", "judge", "measure", "tokenizer")},
    }  # fmt: skip
    of_group = f"{sweep.group} · " if sweep.group else ""
    name = f"sweep · {of_group}{len(board)} systems · {len(sweep.records)} jobs"
    note = _note(sweep, content, views.sweep_page(tracker.experiment_id, sweep.sweep_id, sweep.group))
    with tracker.run(name, {"overrides": first["overrides"], "folder": str(folder)}, tags, note) as run:
        for figure, drawn in content.figures.items():
            report.save(drawn, run.folder / "figures" / f"{figure}.png")
        _write_tables(sweep, content, run.folder / "tables")
        report.write_report(content, run.folder / "report.html")
        tracked = _Tracked(run.run_id, run.file_of("report.html") or "report.html among its artifacts")
        if "dataset" in first:
            run.dataset(**first["dataset"])
        run.table(board, "leaderboard.json")
        if content.foresight is not None:
            run.table(content.foresight.table, "measures.json")
        if estimates.model is not None:
            with tempfile.TemporaryDirectory() as scratch:
                saved = Path(scratch) / "model"
                track.save_predictor(saved, estimates.model, estimates.example, _settings(sweep))
                run.predictor(saved)
        values = {
            **estimates.metrics,
            **transfer_metrics(content.transfers),
            **summary.agreement(content.agreement),
            **summary.detectable(content.detectable),
            **(content.best.metrics() if content.best is not None else {}),
            **(content.foresight.metrics() if content.foresight is not None else {}),
            **metrics_of(content.robustness),
            **_summed(sweep.records),
            "jobs": len(sweep.records),
            "jobs_failed": len(sweep.failed),
            "seconds_jobs": sum(r["metrics"]["seconds_total"] for r in sweep.records),
            "seconds_pooled": time.perf_counter() - start,
        }  # fmt: skip
        run.metrics(values, _step_charts(sweep, int(first["seed"])))
        compared = [comparison.log_job_comparisons(tracker, again)] if again else []
        if origin and sweep.group:
            compared.append("pooled: not compared, since one group of the repeated run has become several")
        elif origin:
            pooled_before = comparison.log_comparison(track.Reader(tracker.uri), origin, run)
            compared.append(f"pooled: {comparison.summary(pooled_before)}")
    if own:
        tracker.colour(_colours(sweep))
    if sweep.group:
        print(f"\n== {sweep.group} ==")
    shown = [info for info in content.answers if info.on_terminal]
    print(coloured(report.leaderboard_text(board, sweep.n_tokens, judged, shown)))
    for line in (
        report.detectable_text(content.detectable, shown),
        content.best and report.best_text(content.best),
        report.budgets_text(content.budgets),
        report.foresight_text(content.foresight),
        content.robustness and report.robustness_text(content.robustness),
    ):
        if line:
            print(line)
    why = "verdicts" if not judged else "IR scores" if board["ir_score"].isna().all() else "topics with both"
    print(report.thresholds_text(estimates) if fitted else f"no {why}: no thresholds and no predictor")
    for told in content.notes:
        print(visible(told, one_line=True))
    for line in metrics.judged_lines(summary.agreement(content.agreement)):
        print(line.strip())
    if compared:
        print("\nagainst the runs that were repeated:", *compared, sep="\n")
    return tracked


def _summed(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Calls, tokens and money of all jobs, under the names of the jobs' metrics."""
    names = [f"{prefix}{name}" for name in _SUMMED for prefix in CALLS]
    told = {name for record in records for name in record["metrics"]}
    return {name: sum(record["metrics"].get(name, 0) for record in records) for name in names if name in told}


def _step_charts(sweep: Sweep, seed: int) -> dict[str, dict[int, float]]:
    """MLflow step charts over n_tokens: IR score and correct share by system, pooled thresholds by budget."""
    charts = {f"ir_score_at_n/{_slug(s)}": curve for s, curve in score_curves(sweep).items()}
    charts |= {f"ir_score_floor_at_n/{_slug(name)}": curve for name, curve in floor_curves(sweep).items()}
    for record, system in zip(sweep.records, systems_of(sweep.records), strict=True):
        if record["metrics"].get("judge_share_missing", 1) < 1:
            chart = charts.setdefault(f"correct_share_at_n/{_slug(system)}", {})
            chart[int(record["n_tokens"])] = record["metrics"]["correct_share"]
    judged = fit_rows(sweep.outcomes)
    judged = judged[judged["label"].notna()]
    for n in sorted(judged["n_tokens"].unique().tolist()):
        rows = judged[judged["n_tokens"] == n]
        fitted = fit_thresholds(rows, n_boot=0, seed=seed, n_splits=0)
        charts.setdefault("threshold_h_at_n", {})[n] = fitted.h.value
        charts.setdefault("threshold_k_at_n", {})[n] = fitted.k.value
    return charts


def _slug(system: str) -> str:
    """A system's name in the characters that MLflow allows in a metric."""
    return re.sub(r"[^\w.\- /]+", "_", system)


def _write_tables(sweep: Sweep, content: report.ReportContent, out: Path) -> None:
    """CSV tables of the sweep: the leaderboard, its paired tests, zones, transfer, and every outcome."""
    out.mkdir(parents=True)
    tables = {"leaderboard": content.board}
    if len(content.pairs):
        tables["paired_tests"] = content.pairs
    if content.estimates.model is not None:
        tables["zones"] = content.zones
    tables |= {f"transfer_{by}": moved.table for by, moved in content.transfers.items()}
    if content.best is not None:
        tables["best_sets"] = content.best.table
    if content.budgets is not None:
        tables["budget_bands"] = content.budgets.bands
        tables["smallest_budgets"] = content.budgets.smallest
        tables["budget_tests"] = content.budgets.tests
    if content.robustness is not None:
        tables["robustness"] = content.robustness.estimates
        tables["robustness_changes"] = content.robustness.changes
    for name, frame in (
        ("sampled_shares", content.sampled),
        ("human_shares", content.human_shares),
        ("human_pairs", content.human_pairs),
        ("ablation", content.ablation),
        ("gain_over_llm_only", content.gains),
        ("chunk_sizes", content.chunk_sizes),
        ("score_against_cost", content.pareto),
        ("measures", None if content.foresight is None else content.foresight.table),
    ):
        if frame is not None and len(frame):
            tables[name] = frame
    if content.slices is not None:
        tables |= {"slices": content.slices.estimates, "slice_averages": content.slices.averages}
        if content.slices.differences is not None:
            tables["slice_differences"] = content.slices.differences
    if content.losses is not None:
        tables |= content.losses.tables
    keys = ["system", "retriever", "n_tokens", "qid", "ir_score", "label"]
    keys += [info.name for info in sweep.answer_measures]
    tables["outcomes"] = sweep.outcomes[keys]
    texts = {name: csv_text(frame) for name, frame in tables.items()}
    if content.agreement is not None:
        texts["judge_agreement"] = csv_text(content.agreement.confusion, index=True)
    for name, text in texts.items():
        (out / f"{name}.csv").write_text(text, encoding="utf-8", newline="")


def _settings(sweep: Sweep) -> dict[str, Any]:
    """What the pooled predictor's scores mean."""
    of_jobs = [record["settings"] for record in sweep.records]
    first = of_jobs[0]
    return settings_of(first["measure"], first["tokenizer"], [n for s in of_jobs for n in s["n_tokens"]])


def _colours(sweep: Sweep) -> dict[str, str]:
    """The colour of every job's run: that of its system in the figures."""
    systems = systems_of(sweep.records)
    of_system = dict(zip(dict.fromkeys(systems), itertools.cycle(report.LINE_COLOURS), strict=False))
    return {r["run_id"]: of_system[system] for r, system in zip(sweep.records, systems, strict=True)}


def _note(sweep: Sweep, content: report.ReportContent, page: str) -> str:
    group = f"The jobs of {sweep.group} alone; not comparable with them: {'; '.join(content.others)}."
    systems = ", ".join(dict.fromkeys(systems_of(sweep.records)))
    told = [
        *([group] if sweep.group else []),
        *content.notes,
        f"{len(sweep.records)} [jobs]({page}) over {systems}.",
        "Look first at report.html, figures/ and leaderboard.json under Artifacts.",
    ]
    return " ".join(told)
