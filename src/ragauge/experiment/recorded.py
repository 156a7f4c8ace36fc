"""A job of recorded outcomes: nothing is retrieved, answered or judged; the estimates are made and logged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract.build import build
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.metric_names import OF_JOBS
from ragauge.contract.redact import redact
from ragauge.contract.visible import csv_text
from ragauge.datasets import RecordedOutcomes
from ragauge.estimate import bounded_mean, fit_zones, share_estimates, summary
from ragauge.estimate.unjudged import foresee, foreseen_errors
from ragauge.experiment.findings.described import run_text
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.gate.checking import enforce, gate_of
from ragauge.experiment.gate.rules import bounds, check_bounds
from ragauge.experiment.rerun.comparison import log_comparison
from ragauge.experiment.rerun.comparison import summary as comparison_line
from ragauge.experiment.setup.config import check_values
from ragauge.experiment.stages.file_digests import file_digest
from ragauge.findings.recorded import lines, page
from ragauge.show.drawing import save
from ragauge.show.html import write_report
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Shares of answers that may be missed in a zone, tried beside the configured one.
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5)


def run_recorded(
    cfg: DictConfig, folder: JobFolder, record: dict[str, Any], tags: Mapping[str, Any], write_config: Any
) -> None:
    """Logs the estimates of recorded outcomes as an MLflow run with metrics, tables, figures and a report.

    Estimates are fitted on the rows of systems that have verdicts; of the other systems the class shares are
    foreseen (`ragauge.estimate.unjudged`).
    """
    from omegaconf import OmegaConf

    start = time.perf_counter()
    check_values(cfg)
    if folder.sweep is not None:
        raise ConfigError("recorded outcomes are estimated in a single job: run it without -m")
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    if plain["estimate"]["features"] != ["ir_score"]:
        raise ConfigError("estimate.features: of recorded outcomes ir_score alone is known")
    if plain["slices"]:
        raise ConfigError("slices: recorded outcomes have no attributes to slice by; leave slices out")
    gate = gate_of(cfg)
    check_bounds(bounds(gate.rules, None), OF_JOBS, ())
    if gate.compares:
        raise ConfigError("gate: recorded outcomes have no baseline to be compared with; leave tolerance out")
    source: RecordedOutcomes = build("dataset", plain["dataset"], {})
    digest = file_digest(source.files()["outcomes"])
    if cfg.dry_run:
        record["status"] = "DRY RUN"
        print(f"{record['name']:<32} no LLM calls")
        return
    rows = source.outcomes()
    of_judged = rows.groupby("system")["label"].transform("count") > 0
    judged, others = rows[of_judged], rows[~of_judged]
    if judged.empty:
        raise DataError(f"{source.files()['outcomes']}: no row has a label")
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    with tracker.run(record["name"], track.flatten(plain), tags, cfg.tracking.note, folder.ended_run) as run:
        record |= {"run_id": run.run_id, "experiment_id": run.experiment_id, "dataset_digest": digest}
        refuse_lost()
        run.tag({"dataset_digest": digest})
        estimates = summary.estimate(
            judged, int(cfg.bootstrap), int(cfg.seed), **record["estimate"], zones=record["zones"]
        )
        h, k = estimates.thresholds.h.value, estimates.thresholds.k.value
        foreseen = foresee(judged, others, h, k, source.judged_shares, **record["estimate"], seed=cfg.seed)
        alphas = zones_by_alpha(judged, float(cfg.zones.confidence))
        values = {**_shares(judged), **estimates.metrics, **foreseen_errors(foreseen), "topics": len(judged)}
        shown = page(record["experiment"], cfg.tracking.note or "", judged, estimates, _systems(rows), foreseen, alphas)
        for name in ("figures", "tables", "config"):
            (run.folder / name).mkdir()
        for name, figure in shown.figures.items():
            save(figure, run.folder / "figures" / f"{name}.png")
        for name, table in (("zones_by_alpha", alphas), ("foreseen", foreseen)):
            text = csv_text(table)
            (run.folder / "tables" / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
        write_config(cfg, folder, run.folder / "config")
        write_report([shown], run.folder / "report.html")
        write_report([shown], folder.path / "report.html")
        values |= {"seconds_total": time.perf_counter() - start}
        run.metrics(values)
        again = None
        if folder.origin:
            again = log_comparison(track.Reader(tracker.uri), folder.origin.run_id, run)
        record |= {"metrics": values}
    tracker.present([views.jobs_view()], views.description(record["experiment_id"]), replace=False)
    record["status"] = "FINISHED"
    print(*lines(estimates), sep="\n")
    for line in foreseen.query("share == 'right'").to_dict("records"):
        known = f", judged {line['judged']:.1%}" if line["judged"] == line["judged"] else ""
        print(f"right answers of {line['system']}: predictor {line['predictor']:.1%}, "
              f"above k {line['thresholds']:.1%}{known}")  # fmt: skip
    if again is not None:
        print(comparison_line(again))
    print(f"report: {folder.path / 'report.html'}")
    uri = redact(track.tracking_uri(cfg.tracking.uri))
    print(run_text(record["run_id"], folder.path.resolve(), uri, record["experiment_id"]))
    enforce(cfg, record)


def zones_by_alpha(judged: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """The zones at each of `ALPHAS`: [alpha, zone, threshold, share, missed]; each holds by itself.

    `zone` is right (above) or lack (below); threshold and missed are NaN where no threshold holds.
    """
    rows = []
    for alpha in ALPHAS:
        found = fit_zones(judged, alpha, confidence)
        for name, zone in (("right", found.right), ("lack", found.lack)):
            rows.append((alpha, name, zone.value, zone.share, zone.missed))
    return pd.DataFrame(rows, columns=["alpha", "zone", "threshold", "share", "missed"])


def _shares(judged: pd.DataFrame) -> dict[str, float]:
    """Mean score, right, lack and missing shares; a recording may not tell classes 2 to 4 apart."""
    values = summary.with_interval("ir_score", bounded_mean(judged["ir_score"], judged["qid"]))
    shares = share_estimates(judged)
    for name in ("correct_share", "judge_share_1", "judge_share_missing"):
        values |= summary.with_interval(name, shares[name])
    return values


def _systems(rows: pd.DataFrame) -> pd.DataFrame:
    """[system, n, ir_score, right, lack]: shares NaN where no row of the system has a label."""
    grouped = rows.groupby("system", sort=False)
    table = grouped["ir_score"].agg(n="size", ir_score="mean").reset_index()
    known = grouped["label"].count().to_numpy() > 0
    for name, c in (("right", 5), ("lack", 1)):
        share = rows["label"].eq(c).fillna(False).astype(float).groupby(rows["system"], sort=False).mean()
        table[name] = share.where(known).to_numpy()
    return table
