"""One window: the stages before an answer, P(class) of every answer, shares and drift, in one MLflow run."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.outcomes import PROBABILITY_COLUMNS
from ragauge.contract.output_files import replacing
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import remember
from ragauge.contract.settings import Settings
from ragauge.contract.visible import csv_text
from ragauge.estimate.outcomes import CLASSES, of_these_topics, with_classes
from ragauge.estimate.prediction import check_settings
from ragauge.estimate.predictor import Predictor
from ragauge.experiment.guard import OUTPUT, STORE, guarded
from ragauge.experiment.job import pin_window, prepared
from ragauge.experiment.measured import dataset_of, measured_by
from ragauge.experiment.request import JobFolder, Request, write_config
from ragauge.experiment.setup.config import settle
from ragauge.experiment.stages.components import make_pipeline
from ragauge.findings.thresholds import score_settings
from ragauge.plugins.foresee.drift import ALPHA, MARGIN, drift, refusals
from ragauge.plugins.foresee.reference import READ_BY, Reference, read
from ragauge.plugins.foresee.shares import Shares, foreseen_shares
from ragauge.track.models import load_predictor, read_file

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)

TABLE = "topics_at_risk"
_NAMED = 5  # answers and features that a line names
_FEW = 30  # training topics that look like the window; fewer correct little


@dataclass(frozen=True)
class Foreseen:
    """A window with the predictor's results.

    topics: [qid, query, p1..p5, risk, refused, the features, day and answer where they are known], the highest risk
    first, what was refused last. shares: None where all was refused. drift: None without training rows.
    """

    topics: pd.DataFrame
    shares: Shares | None
    drift: pd.DataFrame | None

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the window's MLflow run."""
        found: dict[str, float] = {
            "topics": len(self.topics),
            "foreseen_refused_share": float((self.topics["refused"] != "").mean()),
        }
        for name, of in self.shares.estimates.items() if self.shares else ():
            found |= {f"foreseen_{name}": of.value, f"foreseen_{name}_lo": of.lo, f"foreseen_{name}_hi": of.hi}
        if self.shares and np.isfinite(self.shares.effective_topics):
            found["foreseen_effective_topics"] = self.shares.effective_topics
        if self.drift is not None:
            found["drift_features"] = int((self.drift["p_holm"] < ALPHA).sum())
            found |= {f"drift/{row.feature}": float(row.distance) for row in self.drift.itertuples()}  # type: ignore
        return found


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Foresees the window of a config, and logs it; returns the exit code, as `experiment.job.execute`."""
    settle(cfg)
    request = Request(cfg, folder)
    record = replace(request.record(), role="foresee")
    places: dict[str, str | Path] = {STORE: str(cfg.store), OUTPUT: folder.path}
    uri = track.absolute_uri(track.tracking_uri(cfg.tracking.uri))
    return guarded(record, lambda: _run(request, record), places, lambda: track.local_database(uri))


def _run(request: Request, record: JobRecord) -> None:
    from omegaconf import OmegaConf

    start = time.perf_counter()
    folder = request.folder
    remember(OmegaConf.to_container(request.cfg, resolve=True))
    if request.cfg.predictor is None:
        raise ConfigError("predictor=null: give the predictor, such as predictor=models:/risk/1 or its predictor.json")
    record.snapshot = pin_window(request.cfg, folder)
    settings = request.settings
    pipeline = make_pipeline(request)
    model, trained = _predictor(settings, str(settings.predictor))
    features = [str(name) for name in getattr(model, "feature_names_in_", ["ir_score"])]
    for difference in check_settings(trained, score_settings(pipeline), settings.predictor_mismatch == "allow"):
        log.warning("predictor used on other ground: %s", difference)
    _refuse_other_features(trained, measured_by(pipeline), settings.predictor_mismatch == "allow")
    reference = read(trained, features)
    if settings.dry_run:
        _dry_run(request, record)
        return
    tracker = track.Tracker(track.tracking_uri(settings.tracking.uri), record.experiment)
    tags = {**request.tags(), "role": "foresee", "predictor": str(settings.predictor)}
    with tracker.run(f"foresee · {record.name}", request.params(), tags, settings.tracking.note, None) as run:
        record.run_id, record.experiment_id = run.run_id, run.experiment_id
        refuse_lost()
        write_config(request.cfg, run.folder / "config", folder.overrides)
        target = pd.DataFrame({"sample_target": [settings.sample_target]})
        found = foreseen(_rows(pipeline, features), model, features, reference, of_these_topics(target), settings.seed)
        run.dataset(**dataset_of(pipeline))
        run.tag({"dataset_digest": pipeline.entry("dataset").digest, **track_entries(pipeline)})
        run.metrics({**found.metrics, "seconds_total": time.perf_counter() - start})
        run.days(by_day(found.topics))
        run.table(found.topics, f"{TABLE}.json")
        if found.drift is not None:
            run.table(found.drift, "drift.json")
        folder.path.mkdir(parents=True, exist_ok=True)
        with replacing(folder.path / f"{TABLE}.parquet") as draft:
            found.topics.to_parquet(draft, index=False)
        with replacing(folder.path / f"{TABLE}.csv") as draft:
            draft.write_text(csv_text(found.topics), encoding="utf-8", newline="")
        record.metrics, record.dataset_digest = found.metrics, pipeline.entry("dataset").digest
    record.status = "FINISHED"
    for line in lines(found, reference):
        log.info("%s", line)
    log.info("  the topics at risk: %s", folder.path / f"{TABLE}.csv")
    log.info("%s", request.where(record))


def track_entries(pipeline: Pipeline) -> dict[str, str]:
    """The tag that keeps stored outputs as long as the window's run."""
    return track.entries_tag(sorted(pipeline.store.used))


def _predictor(settings: Settings, predictor: str) -> tuple[Any, dict[str, Any]]:
    """The predictor and the settings that it was trained on, from its file or from MLflow."""
    file = Path(predictor)
    if not file.is_file():
        return load_predictor(track.tracking_uri(settings.tracking.uri), predictor, settings.trust)
    try:
        model = read_file(file)
    except DataError as error:
        raise ConfigError(f"predictor: {file}: {error}") from error
    return model, dict(model.settings)


def _refuse_other_features(settings: Mapping[str, Any], here: Mapping[str, str], allow: bool) -> None:
    """ConfigError if the features' settings differ from the training's."""
    other = [name for name, digest in settings.get(READ_BY, {}).items() if here.get(name, digest) != digest]
    if other and not allow:
        raise ConfigError(
            f"predictor: the settings of {', '.join(other)} are others than where it was fitted, so its features are "
            "other numbers. To use it nevertheless: predictor_mismatch=allow"
        )
    if other:
        log.warning("predictor used on other ground: other settings of %s", ", ".join(other))


def _dry_run(request: Request, record: JobRecord) -> None:
    from omegaconf import OmegaConf

    from ragauge.experiment.dry_run import dry_run

    OmegaConf.update(request.cfg, "predictor", None)
    dry_run(prepared(Request(request.cfg, request.folder), record))


def _rows(pipeline: Pipeline, features: Sequence[str]) -> pd.DataFrame:
    """A row per topic: the features, and the answer if it is free; ConfigError if a feature is missing."""
    rows = pipeline.foreseeing
    absent = [name for name in features if name not in rows]
    if absent:
        raise ConfigError(
            f"predictor: it reads {', '.join(absent)}, which nothing here computes; answers=[...] chooses the measures "
            "(answers=[qpp] is the default)"
        )
    if pipeline.components.llm.kind == "recorded" or pipeline.asked_before:
        rows = rows.merge(pipeline.answers[["qid", "answer"]], on="qid", how="left", validate="one_to_one")
    kept = with_classes(rows)
    if len(kept) < len(rows):
        log.warning(
            "%d of %d questions are unanswerable and left out: the predictor does not foresee rejections",
            len(rows) - len(kept),
            len(rows),
        )
    if kept.empty:
        raise DataError("all questions are unanswerable: the predictor does not foresee whether they are rejected")
    return kept.reset_index(drop=True)


def foreseen(
    rows: pd.DataFrame, model: Any, features: Sequence[str], reference: Reference | None, of_topics: bool, seed: int
) -> Foreseen:
    """The window's rows [qid, query, the features] for a predictor of judge classes.

    A row that lacks a feature, or lies beyond the training (`drift.refusals`), has no probabilities and counts in no
    share. Drift is of all rows that have every feature.
    """
    why = refusals(rows, features, getattr(model, "feature_range_", None))
    taken = (why == "").to_numpy()
    accepted = rows[taken]
    p = np.full((len(rows), len(CLASSES)), np.nan)
    p[taken] = Predictor(model, tuple(features), 0, 0, 0).predict_proba(accepted)
    topics = rows[["qid", "query"]].assign(**dict(zip(PROBABILITY_COLUMNS, p.T, strict=True)))
    topics["risk"] = p[:, [c - 1 for c in HALLUCINATIONS]].sum(axis=1)
    kept = [*dict.fromkeys(features), *(name for name in ("day", "answer") if name in rows)]
    topics = topics.assign(refused=why, **{name: rows[name] for name in kept})
    topics = topics.sort_values(["risk", "qid"], ascending=[False, True], ignore_index=True)
    whole = rows.dropna(subset=list(features))
    moved = None if reference is None or whole.empty else drift(whole, reference, features, seed)
    shares = foreseen_shares(p[taken], accepted, reference, features, of_topics, seed) if len(accepted) else None
    return Foreseen(topics, shares, moved)


def by_day(topics: pd.DataFrame) -> dict[str, dict[int, float]]:
    """Charts {metric: {YYYYMMDD: value}} of topics with a column `day` of dates; {} without."""
    days = topics["day"] if "day" in topics else pd.Series(dtype="str")
    if days.empty or not days.map(lambda day: re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(day)) is not None).all():
        return {}
    number = days.str.replace("-", "").astype(int)
    columns = {
        "foreseen_correct_share_at_day": topics["p5"],
        "foreseen_hallucination_share_at_day": topics["risk"],
        "foreseen_refused_share_at_day": (topics["refused"] != "").astype(float),
    }
    means = {name: values.groupby(number).mean().dropna() for name, values in columns.items()}
    return {name: {int(day): float(v) for day, v in of.items()} for name, of in means.items()}  # type: ignore


def lines(found: Foreseen, reference: Reference | None) -> list[str]:
    """The window as lines of text."""
    n, refused = len(found.topics), found.topics[found.topics["refused"] != ""]
    told = [f"{n:,} answers, {len(refused):,} of them refused"]
    if len(refused):
        features = refused["refused"].str.split(", ").explode().str.removeprefix("no ").str.split(" ").str[0]
        counts = ", ".join(f"{name} of {count:,}" for name, count in features.value_counts().items())
        some = ", ".join(refused["qid"].head(_NAMED)) + (", …" if len(refused) > _NAMED else "")
        told.append(
            f"  refused, for they lack a feature or lie more than {MARGIN:.0%} of its range beyond the training: "
            f"{counts} ({some})"
        )
    if found.shares is None:
        return [*told, "  no answer lies within the training: nothing is foreseen"]
    shares = [
        f"{words} {of.value:.1%} ({of.lo:.1%} to {of.hi:.1%})"
        for words, of in (
            (label, found.shares.estimates[name])
            for label, name in (
                ("right", "correct_share"),
                ("hallucination", "hallucination_share"),
                ("lack", "share_1"),
            )
        )
    ]
    told.append(f"  foreseen {', '.join(shares)}")
    if reference is None or found.drift is None:
        told.append(
            "  the intervals are of other questions alone: the predictor's file has no training rows, so its own error "
            "and drift are unknown. ragauge train trainer=predictor makes one that has them"
        )
        return told
    effective = found.shares.effective_topics
    told.append(
        f"  the intervals count other questions and the predictor's errors on {reference.n_topics:,} training topics, "
        f"which are worth {effective:,.0f} that look like this window"
    )
    if effective < _FEW:
        told.append(f"  fewer than {_FEW} training topics look like this window: label some of its answers")
    moved = found.drift[found.drift["p_holm"] < ALPHA].sort_values("p_holm")
    what = ", ".join(f"{r.feature} (distance {r.distance:.2f}, p {r.p_holm:.2g})" for r in moved.itertuples())
    told.append(f"  drift against the training: {what or f'none of {len(found.drift)} features'}")
    if reference.transfer:
        off = ", ".join(f"another {by} by {error:.1%}" for by, error in reference.transfer.items())
        told.append(f"  in the training, shares of what was left out were missed: {off}; no interval counts that")
    return told
