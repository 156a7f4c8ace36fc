"""A job's answers on MLflow's page *Evaluation runs*, and the labels that people give to them there."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract.answer_measures import besides_rankings
from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.protocols import Monitored
from ragauge.experiment.findings.tables import traces

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

_SHARES = ("correct_share", "hallucination_share", "judge_share_1", "judge_share_missing")
FROM_MLFLOW = "mlflow"  # value of human_labels


def evaluated(
    pipeline: Pipeline, cfg: DictConfig, outcomes: pd.DataFrame, experiment: str
) -> Iterator[track.TopicTrace]:
    """The topics with their feedback: judge's class, whether the answer is right, IR score, answer measures.

    A topic names the trace that was measured where that lies in the experiment that the job is logged into.
    """
    source = _traced(pipeline)
    here = source is not None and _place(source) == _own_place(cfg, experiment)
    ids = source.trace_ids(pipeline.frame("topics")) if source is not None and here else {}
    told = {row["qid"]: _feedback(row, pipeline) for row in outcomes.to_dict("records")}
    for topic in traces(pipeline, outcomes):
        yield replace(topic, feedback=told[topic.qid], trace_id=ids.get(topic.qid))


def evaluation_metrics(found: Mapping[str, float], outcomes: pd.DataFrame, pipeline: Pipeline) -> dict[str, float]:
    """The metrics of an evaluation run: mean IR score, class shares and answer measures of the job."""
    names = [*_SHARES, *(info.name for info in pipeline.answer_measures)]
    shown = {name: found[name] for name in names if name in found}
    return {"ir_score": float(outcomes["ir_score"].mean()), **shown, "topics": len(outcomes)}


def _feedback(row: Mapping[Hashable, Any], pipeline: Pipeline) -> dict[str, track.Feedback]:
    found: dict[str, track.Feedback] = {}
    if pd.notna(row["label"]):
        label = int(row["label"])
        said = next((row[key] for key in ("reason", "judge_raw") if isinstance(row.get(key), str)), "")
        why = ": ".join(filter(None, (JUDGE_CLASSES[label], said)))
        found |= {track.CLASS: track.Feedback(label, why), "correct": track.Feedback(label == 5, why)}
    of_answers = besides_rankings(pipeline.answer_measures)  # each value is a write
    for name in ("ir_score", *(info.name for info in of_answers)):
        if pd.notna(row[name]):
            found[name] = track.Feedback(float(row[name]))
    return found


def with_labels_of_people(outcomes: pd.DataFrame, pipeline: Pipeline, cfg: DictConfig, experiment: str) -> pd.DataFrame:
    """The outcomes with a column `human_label` (Int8): what people said of these answers on MLflow's traces.

    A label holds for the answer that it was given to: that of a trace which was measured, or of one that
    ragauge wrote for the same topic and the same answer, whichever job it was of. DataError where there is no
    label on any of them.
    """
    source = _traced(pipeline)
    places = [_own_place(cfg, experiment), *([_place(source)] if source is not None else [])]
    labels = pd.concat([track.labels_of_people(*place) for place in dict.fromkeys(places)])
    own = labels.dropna(subset=["qid"])
    by_answer = dict(zip(zip(own["qid"], own["answer"], strict=True), own["label"], strict=True))
    found = [
        by_answer.get((qid, track.answer_digest(answer if isinstance(answer, str) else None)))
        for qid, answer in zip(outcomes["qid"], outcomes["answer"], strict=True)
    ]
    given = pd.Series(found, index=outcomes["qid"], dtype="Int8")
    if source is not None:
        by_trace = labels.set_index("trace_id")["label"]
        ids = pd.Series(source.trace_ids(pipeline.frame("topics")))
        given = ids.map(by_trace).reindex(given.index).astype("Int8").fillna(given)
    if given.isna().all():
        raise DataError(
            f"human_labels=mlflow: no trace of one of these answers in {experiment!r} has feedback "
            f"by people named {' or '.join(track.LABELS)}"
        )
    return outcomes.assign(human_label=given.to_numpy())


def _traced(pipeline: Pipeline) -> Monitored | None:
    """The dataset of traces where the job's answers are theirs; else None."""
    source = pipeline.components.dataset
    return source if isinstance(source, Monitored) and source.has_answers_of(pipeline.components.llm) else None


def _place(source: Monitored) -> tuple[str, str]:
    uri, experiment = source.place()
    return track.absolute_uri(track.tracking_uri(uri)), experiment


def _own_place(cfg: DictConfig, experiment: str) -> tuple[str, str]:
    return track.absolute_uri(track.tracking_uri(cfg.tracking.uri)), experiment
