"""One job: a composed config in, an MLflow run and a record in the job's folder out."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract import answer_measures as shown
from ragauge.contract import interruption
from ragauge.contract.build import build
from ragauge.contract.errors import ConfigError, GateError, RagaugeError, full_disk
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.groups import GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.protocols import Describes, judges_together
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE
from ragauge.contract.redact import redact, redact_tree, remember
from ragauge.datasets.human_labels import with_human_labels
from ragauge.estimate.prediction import check_settings, predict, predict_right, settings_of
from ragauge.estimate.predictor import PROBABILITY_COLUMNS
from ragauge.experiment import metrics, rerun
from ragauge.experiment.config import check_values, settle
from ragauge.experiment.needs import added_up, describe_needs, needs
from ragauge.experiment.packages import config_packages
from ragauge.llms.chat_use import Unasked
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.pipeline import Pipeline
    from ragauge.experiment.sample import Sample
    from ragauge.experiment.stage import Components

log = logging.getLogger(__name__)

NEEDS_FILE = "needs.parquet"
_TABLE_TOPICS = 1000  # above this many topics the table holds chunks and lengths instead of contexts
_TABLE_CHUNKS = 10
# Of the per-question table, where a sample was judged or people gave labels.
_IF_THERE = ("human_label", "judged", "stratum", *PROBABILITY_COLUMNS)
_SAMPLE_KEYS = ("sample", "sample_design")
# Where a report finds what a job laid out.
_RECORDED_STAGES = ("dataset", "run", "context", "scores")


@dataclass(frozen=True)
class JobFolder:
    """Where a job writes and how it was asked for: what Hydra knows of it, in plain values."""

    path: Path
    sweep: Path | None
    number: int
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    origin: rerun.Origin | None = None  # where the job is a rerun

    @property
    def sweep_id(self) -> str | None:
        """One id for all jobs of a sweep, from its folder's date, time and place; None for a single job."""
        if self.sweep is None:
            return None
        place = hashlib.sha256(str(self.sweep).encode()).hexdigest()[:6]
        return f"{self.sweep.parent.name}_{self.sweep.name}_{place}"


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Runs the job and returns its exit code; a failure is told, and recorded in MLflow and in `job.json`."""
    from omegaconf.errors import OmegaConfBaseException

    settle(cfg)
    name = run_name(cfg, folder.choices)
    record: dict[str, Any] = {
        "status": "FAILED",
        "name": name,
        "number": folder.number,
        "sweep_id": folder.sweep_id,
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
        "experiment": cfg.tracking.experiment or str(cfg.dataset.name),
        "written_in": str(folder.path.resolve()),
        "directory": str(Path.cwd()),
        "exit_code": 0,
        **({"rerun": {"run_id": origin.run_id, "sweep": origin.sweep}} if (origin := folder.origin) else {}),
    }
    try:
        record |= _used(cfg)
        _run(cfg, folder, record)
    except RagaugeError as error:
        record |= {"error": str(error), "exit_code": error.exit_code}
        log.error("%s: %s", name, error)
    except OmegaConfBaseException as error:
        record |= {"error": str(error), "exit_code": ConfigError.exit_code}
        log.error("%s: %s", name, error)
    except KeyboardInterrupt as error:
        record |= {"error": interruption.reason(error), "exit_code": interruption.exit_code(error)}
        raise
    except Exception as error:
        full = full_disk(error, cfg.store, folder.path, *_database_folder(record))
        record |= {"error": full or f"{type(error).__name__}: {error}", "exit_code": 1}
        if full:
            log.error("%s: %s", name, full)
        else:
            log.exception("%s failed", name)
    finally:
        write_json(folder.path / RECORD_FILE, record)
    return int(record["exit_code"])


def _used(cfg: DictConfig) -> dict[str, Any]:
    """What a job reads and writes, wherever it is started from: pooling finds it again by this."""
    store = Path(cfg.store).absolute()
    named = {part: cfg[part].get("ledger") for part in ("llm", "judge")}
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


def _database_folder(record: Mapping[str, Any]) -> list[Path]:
    """The folder of MLflow's database; [] where MLflow is a server, or the job did not come so far."""
    database = track.local_database(record["tracking_uri"]) if "tracking_uri" in record else None
    return [database.parent] if database else []


def run_name(cfg: DictConfig, choices: Mapping[str, str]) -> str:
    """What a run is called in lists: retriever, budget and model."""
    from omegaconf import OmegaConf

    model = OmegaConf.select(cfg, "llm.chat.model") or choices.get("llm", "?")
    return f"{choices.get('retriever', '?')} · N={cfg.n_tokens} · {model}"


def instantiate_components(cfg: DictConfig, budget: str | None = None) -> Components:
    """The component of every config group; ConfigError naming the group where one refuses its values.

    `budget` names what chat models spend together (a sweep's id), unless their config names it.
    """
    from omegaconf import OmegaConf

    from ragauge.experiment.stage import Components

    found = {}
    for group in GROUPS:
        spec: Any = OmegaConf.to_container(cfg[group], resolve=True, throw_on_missing=True)
        if group == "judge":
            # Which topics are judged is no part of the judge: what it said of a topic serves any sample.
            spec = {key: value for key, value in spec.items() if key not in _SAMPLE_KEYS}
        found[group] = _built(group, spec, budget)
    listed: Any = OmegaConf.to_container(cfg.answers, resolve=True, throw_on_missing=True)
    answers = {name: _built(f"answers.{name}", spec, budget) for name, spec in listed.items()}
    return Components(**found, answers=answers)


def _built(key: str, spec: Mapping[str, Any], budget: str | None) -> Any:
    """What the spec's `_target_` makes; chat models without a `budget` of their own get the one given."""
    shared = {"budget": budget} if budget and spec.get("budget", "") is None else {}
    try:
        return build(key, {**spec, **shared}, {})
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"{key}: {type(error).__name__}: {error}") from error


def _run(cfg: DictConfig, folder: JobFolder, record: dict[str, Any]) -> None:
    from omegaconf import OmegaConf

    start = time.perf_counter()
    plain: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    remember(plain)
    if cfg.dry_run:
        _dry_run(cfg, folder, record)
        return
    # The config error of a single job leaves no run behind; in a sweep every job has its run.
    ready = _prepared(cfg, folder) if folder.sweep is None else None
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    packages = ", ".join(dict.fromkeys(package.distribution for package in config_packages()))
    tags = {
        "role": "job",
        **{group: folder.choices.get(group, "?") for group in GROUPS},
        "n_tokens": cfg.n_tokens,
        **({"sweep_id": folder.sweep_id, "job": folder.number} if folder.sweep_id else {}),
        **({"config_packages": packages} if packages else {}),
        **({"rerun_of": folder.origin.run_id} if folder.origin else {}),
    }
    with tracker.run(record["name"], track.flatten(plain), tags, note=cfg.tracking.note) as run:
        record |= {"run_id": run.run_id, "experiment_id": run.experiment_id}
        pipeline, predictor = ready or _prepared(cfg, folder)
        known = {"dataset_digest": pipeline.entry("dataset").digest, **_descriptions(pipeline)}
        run.tag({**known, **shown.as_tag(pipeline.answer_measures)})
        record["answer_measures"] = shown.as_record(pipeline.answer_measures)
        if folder.origin:
            same = ["the dataset is the same"] if folder.number == 0 else []
            for line in folder.origin.changed(known) or same:
                log.info("  %s", line)
        for reason in pipeline.frame("skipped")["skipped"]:
            log.warning("skipped: %s", reason)
        record["deferred"] = _judged_later(pipeline, folder)
        retrieval = _log_retrieval(pipeline, cfg, folder, run, record)
        run.metrics(retrieval, {"ir_score_at_n": record["ir_score_at_n"]})
        if "chat" in (pipeline.components.llm.kind, pipeline.components.judge.kind):
            run.flush()  # an LLM may take hours
        values = metrics.costs(pipeline.answers)
        if pipeline.shared_chat is not None and "chat" in pipeline.components.retriever.uses:
            values |= metrics.costs(pipeline.shared_chat.replies(), "retriever_")
        pipeline.frame("answer_values")  # made here, and not where the verdicts are waited for
        if record["deferred"]:
            record["entries_used"] = sorted(pipeline.store.used)
            run.tag(track.entries_tag(record["entries_used"]))
        else:
            sample_topics([pipeline], predictor)
            values |= log_verdicts(pipeline, cfg, folder, run, record)
        if predictor is not None:
            values |= _log_prediction(predictor, pipeline, cfg, run)
        values |= {f"seconds_{stage}": seconds for stage, seconds in pipeline.seconds.items()}
        values |= {"stages_made": len(pipeline.made), "seconds_total": time.perf_counter() - start}
        run.metrics({name: value for name, value in values.items() if name not in retrieval})
        values |= retrieval
        comparison = None
        if folder.origin and folder.sweep is None:
            comparison = rerun.log_comparison(track.Reader(tracker.uri), folder.origin.run_id, run)
        record |= {"settings": _settings(pipeline), "metrics": values, "stages_made": pipeline.made}
    if folder.sweep is None:
        tracker.present([views.jobs_view()], views.description(record["experiment_id"]), replace=False)
    record["status"] = "FINISHED"
    log.info("%s", metrics.line(record["name"], values))
    if comparison is not None:
        print(rerun.summary(comparison))
    if not record["deferred"]:
        check_gates(dict(cfg.gate), values)


def _dry_run(cfg: DictConfig, folder: JobFolder, record: dict[str, Any]) -> None:
    """Prints and records what the job would need; a sweep's end adds what judging together would."""
    pipeline, predictor = _prepared(cfg, folder)
    later = _judged_later(pipeline, folder)
    if not later:
        with suppress(Unasked):  # without its contexts a job's topics are a uniform sample
            sample_topics([pipeline], predictor)
    asked = needs(pipeline, judging=not later)
    folder.path.mkdir(parents=True, exist_ok=True)
    asked.to_parquet(folder.path / NEEDS_FILE, index=False)
    record |= {"status": "DRY RUN", "needs": added_up(asked), "judged_later": later}
    print(f"{record['name']:<32} {describe_needs(record['needs'])}{', then the judge' if later else ''}")


def _judged_later(pipeline: Pipeline, folder: JobFolder) -> bool:
    """Whether judging needs what other jobs of the sweep retrieved or answered."""
    together = judges_together(pipeline.components.judge) or pipeline.sampled_by_prediction
    return folder.sweep is not None and together


def _prepared(cfg: DictConfig, folder: JobFolder) -> tuple[Pipeline, Any]:
    """The stages and the predictor (None where none is asked for) of a job that nothing speaks against."""
    pipeline = make_pipeline(cfg, folder)
    return pipeline, fitting_predictor(pipeline, cfg)


def make_pipeline(cfg: DictConfig, folder: JobFolder) -> Pipeline:
    """The stages of a config, once everything that can be told before any work has been checked."""
    from ragauge.experiment.pipeline import Pipeline
    from ragauge.store import Store

    check_values(cfg)
    components = instantiate_components(cfg, folder.sweep_id)
    shown.checked({key: measure.info for key, measure in components.answers.items()})
    components.dataset.files()
    store, grid = Store(Path(cfg.store)), tuple(cfg.n_grid)
    return Pipeline(components, store, cfg.n_tokens, grid, cfg.max_missing_share, _sample(cfg))


def _sample(cfg: DictConfig) -> Sample | None:
    """The judge's `sample` and `sample_design`; None where all topics are judged."""
    from ragauge.experiment.sample import Sample

    n, design = (cfg.judge.get(key) for key in _SAMPLE_KEYS)
    if n is None:
        return None
    sample = Sample(n, design or "uniform", int(cfg.seed))
    if sample.design == "neyman" and cfg.predictor is None:
        raise ConfigError(
            "judge.sample_design=neyman chooses topics by a predicted P(right): give predictor=<model URI>"
        )
    return sample


def sample_topics(pipelines: Sequence[Pipeline], predictor: Any) -> None:
    """Chooses the topics that are judged by their predicted P(5), the same ones for all of the pipelines.

    Nothing is left to do where all topics are judged, or a uniform sample of them.
    """
    from ragauge.estimate import choose_topics

    sample = pipelines[0].sample
    if sample is None or not pipelines[0].sampled_by_prediction:
        return
    p5 = pd.concat([predict_right(predictor, pipeline.retrieved) for pipeline in pipelines])
    chosen = choose_topics(p5, sample.n, seed=sample.seed, design="neyman")
    for pipeline in pipelines:
        pipeline.set_sampled(chosen)


def _descriptions(pipeline: Pipeline) -> dict[str, str]:
    """What components say of how they do it (for example that queries were made without an LLM), as tags."""
    told: dict[str, str] = {}
    for group in GROUPS:
        component = getattr(pipeline.components, group)
        if isinstance(component, Describes):
            told |= {f"{group}.{k}": str(v) for k, v in component.describe(pipeline.tools).items()}
    return told


def _log_retrieval(
    pipeline: Pipeline, cfg: DictConfig, folder: JobFolder, run: track.Run, record: dict[str, Any]
) -> dict[str, float]:
    """Runs the stages up to the scores, logs what needs no LLM, and returns those metrics."""
    from ragauge.measures import write_qrels, write_trec_run

    curve = metrics.curve(pipeline.frame("scores"))
    classics = pipeline.frame("classics")
    out = run.folder
    (out / "config").mkdir()
    _write_config(cfg, folder, out / "config")
    write_trec_run(pipeline.frame("run"), out / "run.trec", folder.choices.get("retriever", "ragauge"))
    write_qrels(pipeline.frame("evidence"), out / "qrels.trec")
    record |= {
        "ir_score_at_n": {n: value for n, value in curve.items() if n <= pipeline.n_tokens},
        "dataset_digest": pipeline.entry("dataset").digest,
        "entries": {stage: pipeline.entry(stage).digest for stage in _RECORDED_STAGES},
    }
    return {
        "ir_score": curve[pipeline.n_tokens],
        **dict(zip(classics["metric"], classics["value"], strict=True)),
        "topics": len(pipeline.frame("topics")),
        "topics_skipped": len(pipeline.frame("skipped")),
    }


def log_verdicts(
    pipeline: Pipeline, cfg: DictConfig, folder: JobFolder, run: track.Run, record: Mapping[str, Any]
) -> dict[str, float]:
    """Finds what the verdicts say, logs their table, figure and predictor, and returns their metrics."""
    from ragauge.estimate import cross_fit
    from ragauge.experiment.findings import findings

    outcomes = pipeline.outcomes.assign(**{g: folder.choices.get(g, "?") for g in GROUPS})
    if cfg.human_labels is not None:
        outcomes = with_human_labels(outcomes, Path(cfg.human_labels))
    if pipeline.sampled is not None and outcomes["label"].notna().any():
        outcomes = cross_fit(outcomes, **record["estimate"], seed=cfg.seed)
    else:
        outcomes = outcomes.drop(columns=["stratum", "judged"], errors="ignore")
    found = findings(
        pipeline.store,
        outcomes,
        record["name"],
        cfg.bootstrap,
        cfg.seed,
        record["estimate"],
        _settings(pipeline),
        pipeline.answer_measures,
    )
    outcomes.to_parquet(folder.path / OUTCOMES_FILE, index=False)
    if cfg.trace:
        run.traces(_traces(pipeline, outcomes))
    if found.figure is not None:
        (run.folder / "figures").mkdir()
        shutil.copy(found.figure, run.folder / "figures")
    if found.sampled_shares is not None:
        run.table(found.sampled_shares, "sampled_shares.json")
    run.table(_per_question(pipeline, outcomes), "per_question.json")
    # Nothing is read from the store after this. A job that waited for its verdicts read more before.
    run.tag(track.entries_tag([*pipeline.store.used, *record.get("entries_used", ())]))
    if found.predictor is not None:
        run.predictor(found.predictor, registered_name=cfg.register_predictor)
    return {**found.metrics, **metrics.costs(pipeline.verdicts, "judge_")}


def _settings(pipeline: Pipeline) -> dict[str, Any]:
    """What the scores of this job mean to a predictor."""
    of = pipeline.components
    return settings_of(identity(of.measure), identity(of.tokenizer), [pipeline.n_tokens])


def fitting_predictor(pipeline: Pipeline, cfg: DictConfig) -> Any:
    """The configured predictor, None if there is none; ConfigError where it does not fit this job."""
    if cfg.predictor is None:
        return None
    model, trained = track.load_predictor(
        track.tracking_uri(cfg.tracking.uri), cfg.predictor, bool(cfg.trust)
    )
    for difference in check_settings(trained, _settings(pipeline), cfg.predictor_mismatch == "allow"):
        log.warning("predictor used on other ground: %s", difference)
    return model


def _log_prediction(model: Any, pipeline: Pipeline, cfg: DictConfig, run: track.Run) -> dict[str, float]:
    """Predicts the classes, logs the topics by risk, and returns the predicted shares."""
    # Not the outcomes: no judge is asked for a prediction.
    prediction = predict(model, pipeline.retrieved)
    run.table(prediction.topics, "topics_at_risk.json")
    return prediction.metrics


def _per_question(pipeline: Pipeline, outcomes: pd.DataFrame) -> pd.DataFrame:
    """One row per topic for MLflow's table viewer: question, truth, what was retrieved, what came of it."""
    evidence = pipeline.frame("evidence").sort_values(["qid", "part"])
    evidence = evidence.groupby("qid", sort=False)["text"].agg("\n".join).rename("evidence").reset_index()
    contexts = pipeline.contexts
    contexts = contexts.assign(
        chunks=[" ".join(docnos[:_TABLE_CHUNKS]) for docnos in contexts["docnos"]],
        context_chars=contexts["text"].str.len(),
    ).rename(columns={"text": "context"})
    rows = outcomes.assign(outcome=_outcome(outcomes))
    rows = rows.merge(evidence, on="qid", how="left", validate="one_to_one").merge(
        contexts[["qid", "context", "context_chars", "chunks"]],
        on="qid",
        validate="one_to_one",
    )
    columns = [
        # MLflow groups by the first and sets the second side by side, unless it is told otherwise.
        "query", "outcome", "answer", "label", "ir_score", "answer_reference", "evidence", "context", "qid",
        "n_used", "evidence_best", "evidence_worst", "answer_in_context", "score_gap", "context_chars",
        "chunks", "judge_raw", "judge_status", "answer_status", "answer_error",
    ]  # fmt: skip
    if len(rows) > _TABLE_TOPICS:
        columns.remove("context")
    columns += [info.name for info in pipeline.answer_measures]
    return rows[[*columns, *(c for c in _IF_THERE if c in rows)]]


def _outcome(outcomes: pd.DataFrame) -> pd.Series:
    """What came of a question in one text, for comparison at a glance: judge's class, IR score, answer."""
    judged = outcomes["label"].map(JUDGE_CLASSES).astype("str").where(outcomes["label"].notna(), "no verdict")
    scores = outcomes["ir_score"].map("{:.2f}".format)
    return judged + " · IR score " + scores + ": " + outcomes["answer"].fillna("")


def _traces(pipeline: Pipeline, outcomes: pd.DataFrame) -> Iterator[track.TopicTrace]:
    chunks = pipeline.frame("chunks").set_index("docno")["text"]
    rows = outcomes.merge(pipeline.contexts[["qid", "text", "docnos"]], on="qid", validate="one_to_one")
    for row in rows.to_dict("records"):
        label = None if pd.isna(row["label"]) else int(row["label"])
        yield track.TopicTrace(
            qid=row["qid"],
            query=row["query"],
            chunks=[(docno, chunks[docno]) for docno in row["docnos"]],
            context=row["text"],
            answer=None if pd.isna(row["answer"]) else row["answer"],
            verdict={"label": label, "class": JUDGE_CLASSES.get(label or 0), "status": row["judge_status"]},
            scores={"ir_score": float(row["ir_score"])},
        )


def _write_config(cfg: DictConfig, folder: JobFolder, out: Path) -> None:
    from omegaconf import OmegaConf

    # Unresolved, so that what stands in an environment variable stays there.
    config = OmegaConf.to_container(cfg, resolve=False)
    for name, content in (("config", config), ("overrides", list(folder.overrides))):
        text = OmegaConf.to_yaml(OmegaConf.create(redact_tree(content)))
        (out / f"{name}.yaml").write_text(text, encoding="utf-8")
    (out / rerun.PACKAGES_FILE).write_text(rerun.packages_text(), encoding="utf-8")


def check_gates(gates: Mapping[str, float], values: Mapping[str, float]) -> None:
    """GateError for a metric below its minimum, ConfigError for one that the job does not have."""
    unknown = sorted(set(gates) - set(values))
    if unknown:
        raise ConfigError(f"gate.{unknown[0]}: no such metric; this job has {', '.join(sorted(values))}")
    missed = [f"{k}={values[k]:.4f} is below {v:g}" for k, v in gates.items() if not values[k] >= v]
    if missed:
        raise GateError("quality gate not met: " + "; ".join(missed))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file without secrets, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(
        json.dumps(redact_tree(value), indent=1, ensure_ascii=False, default=float), encoding="utf-8"
    )
    os.replace(draft, path)
