"""One job: a composed config in, an MLflow run and a record in the job's folder out."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ragauge import track
from ragauge.contract import answer_measures as shown
from ragauge.contract.batches import count_rows
from ragauge.contract.build import locate
from ragauge.contract.current_job import working_on
from ragauge.contract.errors import ConfigError, UnreadableJudgeError
from ragauge.contract.groups import AROUND_RETRIEVER, GROUPS
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.protocols import ASKED, judges_together
from ragauge.contract.redact import redact, redact_tree, remember
from ragauge.diagnose.rules import check_rules
from ragauge.estimate.prediction import predict
from ragauge.experiment.findings import of_parts
from ragauge.experiment.findings.described import dataset_of, job_note, run_text
from ragauge.experiment.findings.failures import funnel_of_job
from ragauge.experiment.findings.measure_repeats import repeats
from ragauge.experiment.findings.monitoring import pin_window, told_of_window, window_metrics
from ragauge.experiment.findings.verdicts import (
    fitting_predictor,
    log_verdicts,
    measured_by,
    sample_topics,
    score_settings,
)
from ragauge.experiment.folder import JobFolder, UnreadableJudge
from ragauge.experiment.guard import OUTPUT, STORE, guarded
from ragauge.experiment.outcomes import metrics
from ragauge.experiment.outcomes.slicing import WEIGHTS_TAG
from ragauge.experiment.rerun.environment import PACKAGES_FILE, packages_text
from ragauge.experiment.setup.config import settle
from ragauge.experiment.setup.packages import config_packages
from ragauge.experiment.stages.components import make_pipeline
from ragauge.experiment.stages.measure_checks import check_measures
from ragauge.findings.lacking import lacking_text, lost_text
from ragauge.llms.chat_use import Unasked
from ragauge.measures.rankings import cut_short, full_name, metric_of, ranking_means, unjudged
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)

# Where a report finds what a job laid out.
_RECORDED = ("docs", "run", "layouts", "part_scores")  # frames


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Runs the job and returns its exit code; a failure is told, and recorded in MLflow and in `job.json`."""
    settle(cfg)
    name = run_name(cfg, folder.choices)
    record: dict[str, Any] = {
        "status": "FAILED",
        "name": name,
        "number": folder.number,
        "sweep_id": folder.sweep_id,
        "attempt": folder.attempt,
        "choices": dict(folder.choices),
        "overrides": list(folder.overrides),
        "n_tokens": int(cfg.n_tokens),
        "seed": int(cfg.seed),
        "bootstrap": int(cfg.bootstrap),
        "estimate": {
            "features": list(cfg.estimate.features),
            "spline": bool(cfg.estimate.spline),
            "calibrate": bool(cfg.estimate.calibrate),
        },
        "zones": {"alpha": float(cfg.zones.alpha), "confidence": float(cfg.zones.confidence)},
        "foresight": {"target": cfg.foresight.target},
        "experiment": cfg.tracking.experiment or str(cfg.dataset.name),
        "written_in": str(folder.path.resolve()),
        "directory": str(Path.cwd()),
        "exit_code": 0,
        **({"rerun": {"run_id": origin.run_id, "sweep": origin.sweep}} if (origin := folder.origin) else {}),
    }

    def work() -> None:
        record.update(_used(cfg))
        try:
            with working_on(folder.path):
                _run(cfg, folder, record)
        except UnreadableJudgeError as error:
            _unreadable_judge(cfg, folder).leave(error)
            raise

    places: dict[str, str | Path] = {STORE: str(cfg.store), OUTPUT: folder.path}
    return guarded(folder, record, work, places, lambda: _database(record))


def _used(cfg: DictConfig) -> dict[str, Any]:
    """What a job reads and writes, wherever it is started from: pooling finds it again by this."""
    store = Path(cfg.store).absolute()
    named = {part: cfg[part].get("ledger") for part in ("llm", "evaluator", "judge")}
    default = os.environ.get("RAGAUGE_LEDGER") or str(store / "ledger.db")
    ledgers = {part: str(ledger or default) for part, ledger in named.items()}
    return {
        "store": str(store),
        "ledgers": {
            part: redact(ledger if "://" in ledger else str(Path(ledger).absolute()))
            for part, ledger in ledgers.items()
        },
        "tracking_uri": redact(track.absolute_uri(track.tracking_uri(cfg.tracking.uri))),
        "tracking_configured": cfg.tracking.uri is not None,
    }


def _database(record: Mapping[str, Any]) -> Path | None:
    """MLflow's database; None where MLflow is a server, or the job did not come so far."""
    return track.local_database(record["tracking_uri"]) if "tracking_uri" in record else None


def run_name(cfg: DictConfig, choices: Mapping[str, str]) -> str:
    """What a run is called in lists: retriever and the parts chosen around it, budget and model."""
    model = _model(cfg, choices)
    around = [choices.get(group) for group in AROUND_RETRIEVER]
    system = [choices.get("retriever", "?"), *(part for part in around if part not in (None, "none", "rank"))]
    return f"{' + '.join(map(str, system))} · N={cfg.n_tokens} · {model}"


def _model(cfg: DictConfig, choices: Mapping[str, str]) -> str:
    """What answers: the chat model, the recorded system, or the option of the llm."""
    from omegaconf import OmegaConf

    model = OmegaConf.select(cfg, "llm.chat.model") or OmegaConf.select(cfg, "llm.system")
    return str(model or choices.get("llm", "?"))


def _run(cfg: DictConfig, folder: JobFolder, record: dict[str, Any]) -> None:
    from omegaconf import OmegaConf

    start = time.perf_counter()
    remember(OmegaConf.to_container(cfg, resolve=True))
    record |= pin_window(cfg, folder)
    plain: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    if _is_recorded(cfg):
        from ragauge.experiment.recorded import run_recorded

        run_recorded(cfg, folder, record, _tags(cfg, folder), write_config)
        return
    if cfg.dry_run:
        _dry_run(cfg, folder, record)
        return
    _unreadable_judge(cfg, folder).refuse()
    # The config error of a single job leaves no run behind; in a sweep every job has its run.
    ready = _prepared(cfg, folder) if folder.sweep is None else None
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    tags = _tags(cfg, folder)
    params = track.flatten(_without_copies(plain, OmegaConf.to_container(cfg)))
    about = (str(cfg.dataset.name), int(cfg.n_tokens), _model(cfg, folder.choices), cfg.tracking.note)
    note = job_note(folder.choices, *about)
    with tracker.run(record["name"], params, tags, note, folder.ended_run) as run:
        record |= {"run_id": run.run_id, "experiment_id": run.experiment_id}
        refuse_lost()
        pipeline, predictor = ready or _prepared(cfg, folder)
        known = {"dataset_digest": pipeline.entry("dataset").digest, **of_parts.descriptions(pipeline)}
        record["dataset"] = dataset_of(pipeline)
        run.dataset(**record["dataset"])
        run.tag({**known, **shown.as_tag(pipeline.answer_measures)})
        record["answer_measures"] = shown.as_record(pipeline.answer_measures)
        if (condition := getattr(pipeline.components.retriever, "condition", None)) is not None:
            record["condition"] = condition
        if pipeline.slice_weights:
            record["slice_weights"] = pipeline.slice_weights
            run.tag({WEIGHTS_TAG: json.dumps(pipeline.slice_weights, ensure_ascii=False)})
        if folder.origin:
            same = ["the dataset is the same"] if folder.number == 0 else []
            for line in folder.origin.changed(known) or same:
                log.info("  %s", line)
        for reason in pipeline.frame("skipped")["skipped"]:
            log.warning("skipped: %s", reason)
        record["lacking"] = _tell_lacking(pipeline, folder)
        for line in told_of_window(window_metrics(pipeline)):
            log.warning("%s", line)
        record["deferred"] = _judged_later(pipeline, folder)
        retrieval = _log_retrieval(pipeline, cfg, folder, run, record)
        curves = {name: record[name] for name in metrics.CURVES}
        run.metrics(retrieval, {**curves, views.TOKENS: {n: n for n in record[metrics.CURVES[0]]}})
        if pipeline.components.llm.kind in ASKED or pipeline.components.judge.kind == "chat":
            run.flush()  # an LLM may take hours
        values = metrics.costs(pipeline.answers)
        measured = pipeline.frame("answer_values")  # made here, and not where the verdicts are waited for
        values |= repeats(pipeline, int(cfg.bootstrap), int(cfg.seed)) | of_parts.without_claims(pipeline)
        for told in of_parts.warnings_of(measured, pipeline.components.answers):
            log.warning("%s", told)
        values |= of_parts.costs_of_parts(pipeline) | of_parts.per_topic(pipeline)
        values |= of_parts.of_all_answers(pipeline)
        if pipeline.components.llm.kind == metrics.RECORDED:
            values |= metrics.recorded(pipeline.answers)
            laid_out = (pipeline.frame(name) for name in ("run", "layouts", "prefixes"))
            if cut := metrics.cut_after_answers(pipeline.n_tokens, *laid_out):
                log.warning("%s", cut)
        if record["deferred"]:
            record["entries_used"] = sorted(pipeline.store.used)
            run.tag(track.entries_tag(record["entries_used"]))
        else:
            sample_topics([pipeline], predictor)
            values |= log_verdicts(pipeline, cfg, folder, run, record)
        if predictor is not None:
            values |= _log_prediction(predictor, pipeline, cfg, run)
        if cfg.measure_latency:
            values |= of_parts.latencies(pipeline, cfg)  # last: the judge comes first where money is short
            run.tag(track.entries_tag(pipeline.store.used))
            if record["deferred"]:
                record["entries_used"] = sorted(pipeline.store.used)
        values |= {f"seconds_{stage}": seconds for stage, seconds in pipeline.seconds.items()}
        values |= {"stages_made": len(pipeline.made), "seconds_total": time.perf_counter() - start}
        run.metrics({name: value for name, value in values.items() if name not in retrieval})
        values |= retrieval
        comparison = None
        if folder.origin and folder.sweep is None:
            from ragauge.experiment.rerun.comparison import log_comparison, summary

            comparison = log_comparison(track.Reader(tracker.uri), folder.origin.run_id, run)
        record |= {"settings": score_settings(pipeline), "metrics": values, "stages_made": pipeline.made}
        if not record["deferred"]:
            record["measured_by"] = measured_by(pipeline)
    if folder.sweep is None:
        tracker.present([views.jobs_view()], views.description(record["experiment_id"]), replace=False)
    record["status"] = "FINISHED"
    log.info("%s", metrics.line(record["name"], values))
    if values.keys() & {"judged_topics", "human_labels"}:
        from ragauge.findings.people import judged_lines

        for line in judged_lines(values):
            log.info("%s", line)
    if folder.sweep is None:
        uri = redact(track.tracking_uri(cfg.tracking.uri))
        log.info("%s", run_text(run.run_id, folder.path.resolve(), uri, record["experiment_id"]))
    else:
        log.info("  MLflow run %s; folder %s", run.run_id, folder.path)
    if comparison is not None:
        print(summary(comparison))
    if not record["deferred"] and cfg.gate:
        from ragauge.experiment.gate.checking import enforce

        enforce(cfg, record, lambda: pipeline.sliced)


def _unreadable_judge(cfg: DictConfig, folder: JobFolder) -> UnreadableJudge:
    from omegaconf import OmegaConf

    judge: Any = OmegaConf.to_container(cfg.judge, resolve=True)
    return UnreadableJudge(folder, judge)


def _tell_lacking(pipeline: Pipeline, folder: JobFolder) -> dict[str, list[str]]:
    """Logs what topics lack and which parts of the evidence are lost; returns qids by what they lack."""
    found, job = of_parts.lacking(pipeline), folder.sweep_id or uuid4().hex
    for line in lacking_text([found]):
        _tell_once(job, line)
    for line in lost_text(pipeline.frame("lost_evidence")):
        _tell_once(job, line, logging.WARNING)
    named: dict[str, list[str]] = found["lacking"]
    return named


@cache
def _tell_once(sweep: str, line: str, level: int = logging.INFO) -> None:
    """Logs what is so of every job of a sweep, once in a process."""
    log.log(level, "%s", line)


def _without_copies(plain: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """The config with the interpolation where it repeats a whole mapping, which stands elsewhere in it."""
    return {
        key: value
        if not isinstance(value, Mapping)
        else written[key]
        if isinstance(written[key], str)
        else _without_copies(value, written[key])
        for key, value in plain.items()
    }


def _tags(cfg: DictConfig, folder: JobFolder) -> dict[str, Any]:
    """The tags of a job's MLflow run that are known before any work."""
    packages = ", ".join(dict.fromkeys(p.distribution for p in config_packages() if not p.own))
    return {
        "role": "job",
        **{group: folder.choices.get(group, "?") for group in GROUPS},
        "n_tokens": cfg.n_tokens,
        **folder.tags,
        **({"config_packages": packages} if packages else {}),
        **({"rerun_of": folder.origin.run_id} if folder.origin else {}),
    }


def _is_recorded(cfg: DictConfig) -> bool:
    """Whether the dataset is one of recorded outcomes."""
    from ragauge.datasets import RecordedOutcomes

    try:
        target = locate("dataset", cfg.dataset.get("_target_"))
    except ConfigError:
        return False  # told where the components are made
    return isinstance(target, type) and issubclass(target, RecordedOutcomes)


def _dry_run(cfg: DictConfig, folder: JobFolder, record: dict[str, Any]) -> None:
    """Prints and records what the job would need; a sweep's end adds what judging together would."""
    from ragauge.experiment.needs import NEEDS_FILE, added_up, describe_needs, needs

    pipeline, predictor = _prepared(cfg, folder)
    plan = pipeline.plan_in_words()
    _tell_lacking(pipeline, folder)
    later = _judged_later(pipeline, folder)
    if not later:
        with suppress(Unasked):  # without its contexts a job's topics are a uniform sample
            sample_topics([pipeline], predictor)
    latency_topics = int(cfg.latency_topics) if cfg.measure_latency else 0
    asked = needs(pipeline, judging=not later, latency_topics=latency_topics, seed=int(cfg.seed))
    folder.path.mkdir(parents=True, exist_ok=True)
    asked.to_parquet(folder.path / NEEDS_FILE, index=False)
    record |= {"status": "DRY RUN", "needs": added_up(asked), "judged_later": later}
    print(f"{record['name']:<32} {describe_needs(record['needs'])}{', then the judge' if later else ''}")
    print(f"  {plan}")


def _judged_later(pipeline: Pipeline, folder: JobFolder) -> bool:
    """Whether judging needs what other jobs of the sweep retrieved or answered."""
    together = judges_together(pipeline.components.judge) or pipeline.sampled_by_prediction
    return folder.sweep is not None and together


def _prepared(cfg: DictConfig, folder: JobFolder) -> tuple[Pipeline, Any]:
    """The stages and the predictor (None where none is asked for) of a job that nothing speaks against."""
    pipeline = make_pipeline(cfg, folder)
    experiment = cfg.tracking.experiment or str(cfg.dataset.name)
    _ = pipeline.sliced  # checks the slices before any work
    if cfg.gate:
        from ragauge.experiment.gate.checking import check_gate

        check_gate(cfg, pipeline, run_name(cfg, folder.choices), experiment, folder.sweep_id)
    check_measures(pipeline, cfg.foresight.target, alone=folder.sweep is None)
    if cfg.failures == "rules":
        check_rules([info.name for info in pipeline.answer_measures])
    return pipeline, fitting_predictor(pipeline, cfg)


def _log_retrieval(
    pipeline: Pipeline, cfg: DictConfig, folder: JobFolder, run: track.Run, record: dict[str, Any]
) -> dict[str, float]:
    """Runs the stages up to the scores, logs what needs no LLM, and returns those metrics."""
    from ragauge.measures import qrels_of, write_qrels, write_trec_run
    from ragauge.measures.floor import short_of_text

    curve = metrics.curve(pipeline.frame("scores"))
    means = pipeline.frame("floor_means")
    floor = metrics.floor(pipeline.components.measure, means)
    told = short_of_text(means, pipeline.n_tokens, pipeline.frame("scored_evidence")["qid"].nunique())
    if told is not None:
        log.info("%s", told)
    approximate = [pipeline.frame("ann") for stage in pipeline.stages if "ann" in stage.makes]
    values = pipeline.frame("ranking_values")
    reranker = pipeline.components.reranker
    kept = getattr(reranker, "top_k", None) or getattr(reranker, "depth", None)
    if told := cut_short(
        pipeline.measures,
        pipeline.frame("run"),
        (getattr(pipeline.components.retriever, "top_k", None), kept),
    ):
        log.info("%s", told)
    if told := unjudged(pipeline.measures, qrels_of(pipeline.frame("evidence"))):
        log.info("%s", told)
    compressed = pipeline.components.compressor.kind != "none"
    out = run.folder
    (out / "config").mkdir()
    write_config(cfg, folder, out / "config")
    write_trec_run(pipeline.frame("run"), out / "run.trec", folder.choices.get("retriever", "ragauge"))
    write_qrels(pipeline.frame("evidence"), out / "qrels.trec")
    if len(lost := pipeline.frame("lost_evidence")):
        run.table(lost, "lost_evidence.json")
    record |= {
        **{
            name: {n: value for n, value in steps.items() if n <= pipeline.n_tokens}
            for name, steps in zip(metrics.CURVES, (curve, floor), strict=True)
        },
        "rankings": {metric_of(name): name for name in map(full_name, pipeline.measures)},
        "dataset_digest": pipeline.entry("dataset").digest,
        "entries": {made.key.stage: made.digest for made in map(pipeline.entry_of, _RECORDED)},
    }
    return {
        **({"ir_score": curve[pipeline.n_tokens]} if pipeline.n_tokens in curve else {}),
        **({"ir_score_floor": floor[pipeline.n_tokens]} if pipeline.n_tokens in floor else {}),
        **ranking_means(values),
        **{name: value for ann in approximate for name, value in zip(ann["metric"], ann["value"], strict=True)},
        **(metrics.rewriting(pipeline.frame("query_checks")) if pipeline.rewritten else {}),
        **(metrics.compression(pipeline.frame("compression")) if compressed else {}),
        **of_parts.lacking(pipeline)["metrics"],
        **funnel_of_job(pipeline),
        **window_metrics(pipeline),
        "topics_skipped": len(pipeline.frame("skipped")),
        "n_chunks": count_rows(pipeline.rows("chunks")),
        # Whoever made them: a stage that came from the store took no time here.
        **{f"seconds_made_{s}": pipeline.making[s].seconds for s in ("chunks", "index") if s in pipeline.making},
    }


def _log_prediction(model: Any, pipeline: Pipeline, cfg: DictConfig, run: track.Run) -> dict[str, float]:
    """Predicts the classes, logs the topics by risk, and returns the predicted shares."""
    # Not the outcomes: no judge is asked for a prediction.
    prediction = predict(model, pipeline.retrieved)
    run.table(prediction.topics, "topics_at_risk.json")
    return prediction.metrics


def write_config(cfg: DictConfig, folder: JobFolder, out: Path) -> None:
    from omegaconf import OmegaConf

    # Unresolved, so that what stands in an environment variable stays there.
    config = OmegaConf.to_container(cfg, resolve=False)
    for name, content in (("config", config), ("overrides", list(folder.overrides))):
        text = OmegaConf.to_yaml(OmegaConf.create(redact_tree(content)))
        (out / f"{name}.yaml").write_text(text, encoding="utf-8")
    (out / PACKAGES_FILE).write_text(packages_text(), encoding="utf-8")
