"""The jobs of one sweep pooled into one more MLflow run; stands on the sweep's folder alone.

`ragauge pool <sweep folder>` does it again, for example after an interrupted sweep. It reads what the jobs'
records name, and writes only where this directory's MLflow, or `--tracking-uri`, is.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import report, track
from ragauge.contract.answer_measures import in_order
from ragauge.contract.errors import ConfigError, DataError, RagaugeError, full_disk
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE
from ragauge.contract.redact import redact
from ragauge.contract.visible import csv_text, visible
from ragauge.estimate import (
    Agreement,
    asked,
    compare_pairs,
    fit_thresholds,
    leaderboard,
    ppi_shares,
    share_by_zone,
    summary,
)
from ragauge.estimate.human import human_agreement, human_shares
from ragauge.estimate.prediction import settings_of
from ragauge.estimate.transfer import Transfer, leave_one_out
from ragauge.experiment import rerun
from ragauge.experiment.job import NEEDS_FILE
from ragauge.experiment.judging import judge_deferred, needs_together
from ragauge.experiment.needs import added_up, describe_needs, gathered
from ragauge.report import study
from ragauge.track import views

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from omegaconf import DictConfig

log = logging.getLogger(__name__)

TRANSFER_GROUPS = ("retriever", "dataset", "chunker", "llm")
_SHARE_COLUMNS = [*(f"judge_share_{c}" for c in JUDGE_CLASSES), "judge_share_missing"]
_SUMMED = (
    *("llm_calls", "llm_calls_cached", "llm_usage_unknown"),
    *("prompt_tokens", "completion_tokens", "cost_usd"),
)


@dataclass(frozen=True)
class Sweep:
    """The finished jobs of a sweep in one experiment: their records, and their outcomes in one frame.

    `outcomes` has a column `system`: what the sweep varied but for n_tokens, so one line in a chart.
    """

    sweep_id: str
    experiment: str
    records: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    outcomes: pd.DataFrame

    @property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The answer measures of the jobs, each once."""
        return in_order(record.get("answer_measures", ()) for record in self.records)

    @property
    def n_tokens(self) -> int:
        """The largest budget that every system was judged at (the largest of all if there is none)."""
        budgets = [set(rows["n_tokens"]) for _, rows in self.outcomes.groupby("system")]
        return int(max(set.intersection(*budgets) or set.union(*budgets)))


def finish(config: DictConfig) -> int:
    """Pools the sweep that has just ended; its exit code."""
    folder = Path(config.hydra.sweep.dir).absolute()
    try:
        return pool(folder)
    except RagaugeError as error:
        print(
            f"error: the sweep could not be pooled: {visible(error)}\nagain: ragauge pool {folder}",
            file=sys.stderr,
        )
        return error.exit_code
    except Exception as error:
        if (full := full_disk(error, folder)) is not None:
            print(f"error: the sweep could not be pooled: {full}", file=sys.stderr)
            return 1
        # Not logged: which loggers speak after a sweep is up to Hydra's launcher.
        print(redact(traceback.format_exc()), file=sys.stderr)
        print(
            f"the sweep could not be pooled; its jobs are kept: ragauge pool {folder}",
            file=sys.stderr,
        )
        return 1


def pool_again(folder: Path, tracking_uri: str | None = None) -> int:
    """Pools a sweep's folder on request, says where it reads and writes, and returns the exit code.

    tracking_uri: the MLflow that the sweep's run is written into; None for the jobs' own. ConfigError where
    that would write into another place than the one in use here.
    """
    if tracking_uri is None:
        _refuse_unasked(folder)
    first = _tracked(_records(folder))
    uri = track.absolute_uri(tracking_uri) if tracking_uri else None
    print(
        f"reads {folder} and the store {first.get('store', 'of its jobs')}; writes into MLflow at "
        f"{redact(uri or first.get('tracking_uri', 'no place'))}",
        file=sys.stderr,
    )
    return pool(folder, uri)


def pool(folder: Path, tracking_uri: str | None = None) -> int:
    """Pools the jobs in a sweep's folder, logs the sweep's run and prints the leaderboard; the exit code.

    The run goes into MLflow at `tracking_uri`, by default where the jobs' runs are. 0 if all jobs finished,
    the jobs' code if all failures share one, else 1. Raises ConfigError where jobs wait for their verdicts,
    and folder or MLflow are not those of the jobs: verdicts belong into their runs, store and ledger.
    """
    records = _records(folder)
    elsewhere = _copied(records) or not all(_is_own(record, tracking_uri) for record in records)
    waiting = [record for record in records if record.get("deferred")]
    if waiting and elsewhere:
        raise ConfigError(
            f"{len(waiting)} job(s) wait for their verdicts, which belong where the jobs ran: "
            f"ragauge pool {_written_in(waiting[0]).parent} --tracking-uri "
            f"{waiting[0]['tracking_uri']}"
        )
    dry = [record for record in records if record["status"] == "DRY RUN"]
    if dry:
        asked = [pd.read_parquet(Path(record["folder"]) / NEEDS_FILE) for record in dry]
        sums = added_up(gathered([frame for frame in (*asked, needs_together(dry)) if len(frame)]))
        print(f"{len(dry)} job(s) would need {describe_needs(sums)}")
    records = judge_deferred(records)
    for sweep in _sweeps(records):
        _track(sweep, folder, tracking_uri)
    for record in records:
        if record["status"] == "FAILED":
            print(
                visible(f"FAILED  {record['name']}: {record.get('error', 'no error was recorded')}"),
                file=sys.stderr,
            )
    codes = {int(r["exit_code"]) for r in records} - {0}
    return 0 if not codes else codes.pop() if len(codes) == 1 else 1


def _written_in(record: Mapping[str, Any]) -> Path:
    """The folder that a job wrote its record in; that of an older record is not known."""
    return Path(record.get("written_in", "an unknown folder/0"))


def _copied(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the folder is not where its jobs wrote it: it was copied or moved."""
    return any(_written_in(record) != Path(record["folder"]).resolve() for record in records)


def _is_own(record: Mapping[str, Any], tracking_uri: str | None) -> bool:
    """Whether the URI (None is the job's own) is where the job's run is, if it came so far as to have one."""
    return tracking_uri is None or record.get("tracking_uri") in (None, redact(tracking_uri))


def _tracked(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first job that came so far as to know its MLflow; the first of all if none did."""
    return next((record for record in records if "tracking_uri" in record), records[0])


def _refuse_unasked(folder: Path) -> None:
    """ConfigError where the sweep's run would go into an MLflow that this directory does not point to.

    Nothing is said where the folder lies where it was written, and its jobs' MLflow is the one that their
    config named, or that is in use here.
    """
    records = _records(folder)
    here = track.absolute_uri(track.tracking_uri())
    used = [r for r in records if not (r.get("tracking_configured") or _is_own(r, here))]
    copied = _copied(records)
    if copied or used:
        of = used[0] if used else _tracked(records)
        was = f"{folder} was written as {_written_in(of).parent}, and " if copied else ""
        raise ConfigError(
            f"{was}its jobs are in MLflow at {of.get('tracking_uri', 'no place')}, and in use here "
            f"is {redact(here)}: say where the sweep's run is to be written by --tracking-uri <one of them>"
        )


def load(folder: Path) -> list[Sweep]:
    """What a sweep's folder holds, by experiment; an experiment without a finished job is left out."""
    return _sweeps(_records(folder))


def _sweeps(records: Sequence[dict[str, Any]]) -> list[Sweep]:
    found = []
    for experiment in dict.fromkeys(r["experiment"] for r in records):
        of_experiment = [r for r in records if r["experiment"] == experiment]
        finished = [r for r in of_experiment if r["status"] == "FINISHED"]
        failed = [r for r in of_experiment if r["status"] == "FAILED"]
        if finished:
            sweep_id = str(finished[0]["sweep_id"])
            found.append(Sweep(sweep_id, experiment, finished, failed, _outcomes(finished)))
    return found


def _records(folder: Path) -> list[dict[str, Any]]:
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give a sweep's folder, such as multirun/<date>/<time>")
    files = sorted(folder.glob(f"*/{RECORD_FILE}"))
    if not files:
        raise DataError(f"{folder} holds no finished job (no */{RECORD_FILE})")
    records = [{**json.loads(f.read_text(encoding="utf-8")), "folder": str(f.parent)} for f in files]
    return sorted(records, key=lambda record: record["number"])


def _outcomes(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    outcomes = pd.concat(
        [
            pd.read_parquet(Path(record["folder"]) / OUTCOMES_FILE).assign(system=system)
            for record, system in zip(records, _systems(records), strict=True)
        ],
        ignore_index=True,
    )
    if "judged" in outcomes:  # there may be jobs that judged all topics beside those that judged a sample
        outcomes["judged"] = outcomes["judged"].ne(False)
        outcomes["stratum"] = outcomes["stratum"].fillna(0)
    return outcomes


def system_names(overrides: Sequence[Sequence[str]]) -> list[str]:
    """What tells jobs apart but for n_tokens: the values of the overrides that differ between them."""
    chosen = [dict(o.split("=", 1) for o in job if "=" in o) for job in overrides]
    keys = list(dict.fromkeys(k for job in chosen for k in job if k != "n_tokens"))
    varied = [k for k in keys if len({job.get(k) for job in chosen}) > 1]
    if not varied:
        varied = [k for k in keys if k == "retriever"]
    return [
        " · ".join(
            str(job.get(k, "default")) if "." not in k else f"{k.lstrip('+')}={job.get(k, 'default')}"
            for k in varied
        )
        or "all"
        for job in chosen
    ]


def _track(sweep: Sweep, folder: Path, tracking_uri: str | None) -> None:
    """Logs the sweep's run: pooled estimates, transfer, leaderboard and figures.

    The jobs' own runs are touched only where the sweep's run stands beside them.
    """
    first = sweep.records[0]
    own = _is_own(first, tracking_uri)
    start = time.perf_counter()
    content = pooled(sweep)
    board, estimates = content.board, content.estimates
    judged = estimates.model is not None
    again = [record for record in sweep.records if "rerun" in record and own]
    origin = again[0]["rerun"]["sweep"] if again else None

    tags = {
        "role": "sweep",
        "sweep_id": sweep.sweep_id,
        "dataset_digest": first["dataset_digest"],
        **({"rerun_of": origin} if origin else {}),
        **{group: ",".join(dict.fromkeys(r["choices"][group] for r in sweep.records))
           for group in ("dataset", "retriever", "chunker", "llm", "judge", "measure", "tokenizer")},
    }  # fmt: skip
    tracker = track.Tracker(tracking_uri or track.recorded_uri(first["tracking_uri"]), sweep.experiment)
    track.close_orphans(tracker.uri)
    tracker.replace_runs({"role": "sweep", "sweep_id": sweep.sweep_id})
    name = f"sweep · {len(board)} systems · {len(sweep.records)} jobs"
    note = _note(sweep, views.sweep_page(tracker.experiment_id, sweep.sweep_id))
    with tracker.run(name, {"overrides": first["overrides"], "folder": str(folder)}, tags, note) as run:
        for figure, drawn in content.figures.items():
            report.save(drawn, run.folder / "figures" / f"{figure}.png")
        _write_tables(sweep, content, run.folder / "tables")
        report.write_report(content, run.folder / "report.html")
        run.table(board, "leaderboard.json")
        if estimates.model is not None:
            with tempfile.TemporaryDirectory() as scratch:
                saved = Path(scratch) / "model"
                track.save_predictor(saved, estimates.model, estimates.example, _settings(sweep))
                run.predictor(saved)
        values = {
            **estimates.metrics,
            **_transfer_metrics(content.transfers),
            **summary.agreement(content.agreement),
            **_summed(sweep.records),
            "jobs": len(sweep.records),
            "jobs_failed": len(sweep.failed),
            "seconds_jobs": sum(r["metrics"]["seconds_total"] for r in sweep.records),
            "seconds_pooled": time.perf_counter() - start,
        }  # fmt: skip
        run.metrics(values, _step_charts(sweep, int(first["seed"])))
        compared = [rerun.log_job_comparisons(tracker, again)] if again else []
        if origin:
            compared.append(
                f"pooled: {rerun.summary(rerun.log_comparison(track.Reader(tracker.uri), origin, run))}"
            )
    if own:
        tracker.colour(_colours(sweep))
    shown = [views.jobs_view(), views.charts_view(sweep.sweep_id, sweep.n_tokens)]
    tracker.present(shown, views.description(run.experiment_id, run.run_id))
    print(report.leaderboard_text(board, sweep.n_tokens, judged, content.answers))
    print(report.thresholds_text(estimates) if judged else "no verdicts: no thresholds and no predictor")
    if compared:
        print("\nagainst the runs that were repeated:", *compared, sep="\n")
    print(f"\n{len(sweep.records)} job(s) done, {len(sweep.failed)} failed; folder {folder}")
    print(_where(redact(tracker.uri), views.page(run.experiment_id, views.CHARTS, "CHART")))


def _summed(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Calls, tokens and money of all jobs, under the names of the jobs' metrics."""
    names = [f"{prefix}{name}" for name in _SUMMED for prefix in ("", "judge_", "retriever_")]
    told = {name for record in records for name in record["metrics"]}
    return {name: sum(record["metrics"].get(name, 0) for record in records) for name in names if name in told}


def pooled(sweep: Sweep) -> report.ReportContent:
    """Everything that is computed over the jobs of a sweep: what its run logs and its report shows."""
    n_boot, seed = int(sweep.records[0]["bootstrap"]), int(sweep.records[0]["seed"])
    at_n = sweep.outcomes[sweep.outcomes["n_tokens"] == sweep.n_tokens]
    judged = asked(sweep.outcomes)
    estimates = summary.estimate(judged, n_boot, seed, **sweep.records[0]["estimate"])
    pairs = compare_pairs(at_n, "system", n_boot, seed, answers=sweep.answer_measures)
    board = leaderboard(at_n, "system", n_boot, seed, pairs=pairs, answers=sweep.answer_measures)
    moved = _transfers(sweep, n_boot, seed) if estimates.model is not None else {}
    systems = _systems(sweep.records)
    of_job = {(s, int(r["n_tokens"])): r for s, r in zip(systems, sweep.records, strict=True)}
    return report.ReportContent(
        sweep_id=sweep.sweep_id,
        experiment=sweep.experiment,
        records=sweep.records,
        systems=systems,
        failed=sweep.failed,
        n_tokens=sweep.n_tokens,
        board=board,
        answers=sweep.answer_measures,
        pairs=pairs,
        curves=_score_curves(sweep),
        estimates=estimates,
        zones=share_by_zone(judged, estimates.thresholds.h.value, estimates.thresholds.k.value, n_boot, seed),
        transfers=moved,
        sampled=_by_system(at_n, _sampled),
        agreement=_agreement(sweep, n_boot, seed),
        human_shares=_by_system(at_n, human_shares) if "human_label" in at_n else None,
        topics=report.read_topics(report.worth_reading(sweep.outcomes), of_job),
        figures=_figures(sweep, estimates, board, moved),
    )


def _transfers(sweep: Sweep, n_boot: int, seed: int) -> dict[str, Transfer]:
    """Leave one retriever, dataset, chunker or LLM out, where the sweep has several."""
    rows = asked(sweep.outcomes)
    if rows["dataset"].nunique() > 1:  # topics of two collections are different ones, whatever their qids
        rows = rows.assign(qid=rows["dataset"] + "/" + rows["qid"])
    return {
        by: leave_one_out(rows, by, **sweep.records[0]["estimate"], n_boot=n_boot, seed=seed)
        for by in TRANSFER_GROUPS
        if rows.loc[rows["label"].notna(), by].nunique() > 1
    }


def _transfer_metrics(transfers: Mapping[str, Transfer]) -> dict[str, float]:
    """How far predicted class shares of what was left out are from the judged ones."""
    values: dict[str, float] = {}
    for by, moved in transfers.items():
        name = "transfer" if by == "retriever" else f"transfer_{by}"
        values |= {
            f"{name}_mae": moved.mean_absolute_error.value,
            f"{name}_mae_lo": moved.mean_absolute_error.lo,
            f"{name}_mae_hi": moved.mean_absolute_error.hi,
            f"{name}_mae_base": moved.mean_absolute_error_base.value,
            f"{name}_kendall_tau": moved.kendall_tau.value,
        }
    return values


def _by_system(
    rows: pd.DataFrame, shares: Callable[[pd.DataFrame], pd.DataFrame | None]
) -> pd.DataFrame | None:
    """The shares of every system one below the other, with a column system; None where none has any."""
    found = {system: shares(part) for system, part in rows.groupby("system", sort=False)}
    known = [frame.assign(system=system) for system, frame in found.items() if frame is not None]
    return pd.concat(known, ignore_index=True) if known else None


def _sampled(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Shares of all topics from the few that were judged; None where all were."""
    return ppi_shares(rows) if len(asked(rows)) < len(rows) else None


def _agreement(sweep: Sweep, n_boot: int, seed: int) -> Agreement | None:
    """The judge beside people, over all jobs; None where nobody labelled an answer."""
    if "human_label" not in sweep.outcomes or sweep.outcomes["human_label"].isna().all():
        return None
    return human_agreement(sweep.outcomes, n_boot, seed, ("qid", "system", "n_tokens"))


def _score_curves(sweep: Sweep) -> dict[str, dict[int, float]]:
    """IR score against the budget by system, as far as the largest budget of its jobs."""
    curves: dict[str, dict[int, float]] = {}
    for record, system in zip(sweep.records, _systems(sweep.records), strict=True):
        curve = {int(n): float(value) for n, value in record["ir_score_at_n"].items()}
        curves[system] = curves.get(system, {}) | curve
    return curves


def _step_charts(sweep: Sweep, seed: int) -> dict[str, dict[int, float]]:
    """MLflow step charts over n_tokens: IR score and correct share by system, pooled thresholds by budget."""
    charts = {f"ir_score_at_n/{_slug(s)}": curve for s, curve in _score_curves(sweep).items()}
    for record, system in zip(sweep.records, _systems(sweep.records), strict=True):
        if record["metrics"]["judge_share_missing"] < 1:
            chart = charts.setdefault(f"correct_share_at_n/{_slug(system)}", {})
            chart[int(record["n_tokens"])] = record["metrics"]["correct_share"]
    judged = sweep.outcomes[sweep.outcomes["label"].notna()]
    for n in sorted(judged["n_tokens"].unique().tolist()):
        rows = judged[judged["n_tokens"] == n]
        fitted = fit_thresholds(rows, n_boot=0, seed=seed, n_splits=0)
        charts.setdefault("threshold_h_at_n", {})[n] = fitted.h.value
        charts.setdefault("threshold_k_at_n", {})[n] = fitted.k.value
    return charts


def _slug(system: str) -> str:
    """A system's name in the characters that MLflow allows in a metric."""
    return re.sub(r"[^\w.\- /]+", "_", system)


def _figures(
    sweep: Sweep,
    estimates: summary.Estimates,
    board: pd.DataFrame,
    transfers: Mapping[str, Transfer],
) -> dict[str, Figure]:
    """The sweep's figures by name; those of the judge classes only where there are verdicts."""
    hotpot = sweep.records[0]["choices"]["dataset"] == "hotpotqa"
    published_scores = study.IR_SCORE if hotpot else None
    figures = {"ir_score_by_n": report.ir_score_by_n(_score_curves(sweep), published_scores)}
    if estimates.model is None:
        return figures
    shares = board.set_index("system")[_SHARE_COLUMNS]
    if hotpot and sweep.n_tokens == study.JUDGE_SHARES_N_TOKENS:
        published = pd.DataFrame(
            {f"{s}, study": [*study.JUDGE_SHARES[s], 0.0] for s in shares.index if s in study.JUDGE_SHARES},
            index=_SHARE_COLUMNS,
        ).T
        shares = pd.concat([shares, published])
    figures["judge_shares"] = report.judge_shares(shares, f"Judge classes at N = {sweep.n_tokens} tokens")
    title = "All systems and budgets of the sweep, and its thresholds"
    figures["sorted_scores"] = report.sorted_scores(asked(sweep.outcomes), estimates.thresholds, title)
    curve = estimates.validation.reliability
    figures["reliability"] = report.reliability(
        {"P(5, right)": curve[curve["n"] > 0]}, "Out-of-fold reliability of the predictor"
    )
    for by, moved in transfers.items():
        figures[f"transfer_{by}"] = report.transfer(moved.table)
    return figures


def _systems(records: Sequence[Mapping[str, Any]]) -> list[str]:
    return system_names([record["overrides"] for record in records])


def _write_tables(sweep: Sweep, content: report.ReportContent, out: Path) -> None:
    """CSV tables of the sweep: the leaderboard, its paired tests, zones, transfer, and every outcome."""
    out.mkdir(parents=True)
    tables = {"leaderboard": content.board}
    if len(content.pairs):
        tables["paired_tests"] = content.pairs
    if content.estimates.model is not None:
        tables["zones"] = content.zones
    tables |= {f"transfer_{by}": moved.table for by, moved in content.transfers.items()}
    for name, frame in (("sampled_shares", content.sampled), ("human_shares", content.human_shares)):
        if frame is not None:
            tables[name] = frame
    keys = ["system", "retriever", "n_tokens", "qid", "ir_score", "label"]
    keys += [info.name for info in sweep.answer_measures]
    tables["outcomes"] = sweep.outcomes[keys]
    texts = {name: csv_text(frame) for name, frame in tables.items()}
    if content.agreement is not None:
        texts["judge_agreement"] = csv_text(content.agreement.confusion, index=True)
    for name, text in texts.items():
        (out / f"{name}.csv").write_text(text, encoding="utf-8", newline="")


def _settings(sweep: Sweep) -> dict[str, Any]:
    """What the pooled predictor's scores mean; {} where the jobs differ in measure or tokenizer."""
    of_jobs = [record["settings"] for record in sweep.records]
    first = of_jobs[0]
    if any((s["measure"], s["tokenizer"]) != (first["measure"], first["tokenizer"]) for s in of_jobs):
        return {}
    return settings_of(first["measure"], first["tokenizer"], [n for s in of_jobs for n in s["n_tokens"]])


def _colours(sweep: Sweep) -> dict[str, str]:
    """The colour of every job's run: that of its system in the figures."""
    systems = _systems(sweep.records)
    of_system = dict(zip(dict.fromkeys(systems), itertools.cycle(report.LINE_COLOURS), strict=False))
    return {r["run_id"]: of_system[system] for r, system in zip(sweep.records, systems, strict=True)}


def _where(uri: str, page: str) -> str:
    if uri.startswith("sqlite:"):
        start = f"make ui, or mlflow ui --backend-store-uri {uri}"
        return f"MLflow UI: {start}; then http://127.0.0.1:5000/{page}"
    return f"MLflow UI: {uri.rstrip('/')}/{page}"


def _note(sweep: Sweep, page: str) -> str:
    return (
        f"{len(sweep.records)} [jobs]({page}) over {', '.join(dict.fromkeys(_systems(sweep.records)))}. "
        "Look first at report.html, figures/ and leaderboard.json under Artifacts."
    )
