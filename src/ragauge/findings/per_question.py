"""The table of a job's questions, and human labels of their answers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragauge import track
from ragauge.contract.datasets import Monitored
from ragauge.contract.errors import DataError
from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import IR_SCORE, NO_VERDICT
from ragauge.contract.outcomes import COLUMNS, PREFIX, names
from ragauge.contract.stages import Stages
from ragauge.datasets.labels import WHICH, join_labels, with_human_labels
from ragauge.retrieval.searching import searched_by

_TABLE_TOPICS = 1000  # above this many topics the table holds no contexts and no details, which take most room
_TABLE_CHUNKS = 10
_QUERY_CHARS = 300  # of each text that was searched for
_IN_TABLE = [column for column in COLUMNS if column.of in ("table", "both")]


class PerQuestion(JobFinding):
    """The table of the job's questions."""

    name = "per_question"

    def compute(self, job: Job, found: Founds) -> Found:
        """The table alone."""
        return Found(logged={"per_question": per_question(job.pipeline, job.outcomes)})


def per_question(pipeline: Stages, outcomes: pd.DataFrame) -> pd.DataFrame:
    """One row per topic for MLflow's table viewer: question, truth, retrieval and outcome."""
    evidence = pipeline.frame("evidence").sort_values(["qid", "part"])
    evidence = (
        evidence.dropna(subset="text")
        .groupby("qid", sort=False)["text"]
        .agg(list)  # a part may hold line ends
        .rename("evidence")
        .reset_index()
    )
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
    if pipeline.rewritten:
        searched = searched_by(pipeline.components.retriever, pipeline.frame("queries"))
        rows = rows.assign(queries=rows["qid"].map(_queries(searched)))
    columns = list(names(column for column in _IN_TABLE if column.always))
    if len(rows) > _TABLE_TOPICS:
        columns.remove("context")
    columns += [info.name for info in pipeline.answer_measures]
    if len(rows) <= _TABLE_TOPICS:
        details = _details(pipeline.frame("answer_values"))
        rows = rows.merge(details, on="qid", how="left", validate="one_to_one")
        columns += [str(name) for name in details if name != "qid"]
    some = names(column for column in _IN_TABLE if not column.always)
    slices = [c for c in map(str, rows) if c.startswith(PREFIX)]
    return rows[[*columns, *(c for c in some if c in rows), *slices]]


def _details(values: pd.DataFrame) -> pd.DataFrame:
    """[qid, <measure>_detail ...]: the grounds of answer measures' values, as JSON."""
    kept = values[values["detail"].notna()] if "detail" in values else values.iloc[:0].assign(detail="")
    wide = kept.pivot(index="qid", columns="measure", values="detail").add_suffix("_detail")
    return wide.rename_axis(columns=None).reset_index()


def _queries(queries: pd.DataFrame) -> pd.Series:
    """The searched queries by qid: a line each, long ones shortened, weights after a ^."""
    weights = queries["weight"].map("^{:.3g}".format).where(queries["weight"].ne(1), "")
    texts = queries["query"].str.slice(0, _QUERY_CHARS).str.replace(r"\s+", " ", regex=True) + weights
    return texts.groupby(queries["qid"].to_numpy(), sort=False).agg("\n".join)


def _outcome(outcomes: pd.DataFrame) -> pd.Series:
    """The outcome of a question in one text: judge's class, IR score, answer."""
    judged = outcomes["label"].map(JUDGE_CLASSES).astype("str").where(outcomes["label"].notna(), NO_VERDICT.label)
    scores = outcomes["ir_score"].map(f"{IR_SCORE.label} {{:.2f}}".format)
    scores = scores.where(outcomes["ir_score"].notna(), f"no {IR_SCORE.label}")
    return judged + " · " + scores + ": " + outcomes["answer"].fillna("")


FROM_MLFLOW = "mlflow"  # value of human_labels


def with_labels_of_people(outcomes: pd.DataFrame, job: Job) -> pd.DataFrame:
    """The outcomes with human labels from the source in `human_labels`: a file, or MLflow's traces."""
    labels = job.settings.human_labels
    if labels is None:
        return outcomes
    return _with_labels_of_traces(outcomes, job) if labels == FROM_MLFLOW else with_human_labels(outcomes, Path(labels))


def _with_labels_of_traces(outcomes: pd.DataFrame, job: Job) -> pd.DataFrame:
    """The outcomes with a column `human_label` (Int8): people's labels of these answers on MLflow's traces.

    A label holds for the answer that it was given to: the answer of a trace that was measured, or one that ragauge
    wrote, in any job, for the same topic and the same answer. Where several such traces have a label, the latest
    counts. Labels of a review queue that the job's answers were drawn for come with the probabilities of the draw, as
    `with_human_labels` gives them, and no others beside them. DataError where there is no label on any of them.
    """
    source = traced(job.pipeline)
    places = [own_place(job), *([place_of(source)] if source is not None else [])]
    labels = pd.concat([track.labels_of_people(*place) for place in dict.fromkeys(places)])
    own = labels.dropna(subset=["qid"]).sort_values("labelled_ms", kind="stable")  # the latest of an answer counts
    by_answer = dict(zip(zip(own["qid"], own["answer"], strict=True), own["label"], strict=True))
    digests = [track.answer_digest(answer if isinstance(answer, str) else None) for answer in outcomes["answer"]]
    drawn = track.drawn_answers(*own_place(job))
    if len(drawn):
        keys = list(zip(drawn["qid"], drawn["answer"], strict=True))
        drawn["label"] = pd.array([by_answer.get(key) for key in keys], dtype="Int64")
        by_answer = {key: label for key, label in by_answer.items() if key not in set(keys)}
        if len(sheet := _of_the_queue(drawn, outcomes)):
            own_texts = dict(zip(zip(outcomes["qid"], digests, strict=True), outcomes["answer"], strict=True))
            texts = [own_texts.get(key, key[1]) for key in zip(sheet["qid"], sheet["answer"], strict=True)]
            return join_labels(outcomes, sheet.assign(answer=texts), "human_labels=mlflow")
    found = [by_answer.get(key) for key in zip(outcomes["qid"], digests, strict=True)]
    given = pd.Series(found, index=outcomes["qid"], dtype="Int8")
    if source is not None:
        by_trace = labels.set_index("trace_id")["label"]
        ids = pd.Series(source.trace_ids(job.frame("topics")))
        given = ids.map(by_trace).reindex(given.index).astype("Int8").fillna(given)
    if given.isna().all():
        raise DataError(
            f"human_labels=mlflow: no trace of one of these answers in {job.record.experiment!r} has feedback "
            f"by people named {' or '.join(track.LABELS)}"
        )
    return outcomes.assign(human_label=given.to_numpy())


def _of_the_queue(drawn: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """The rows of the latest queue with labels of the job's kind of answers; none without such a queue."""
    for column in (column for column in WHICH if column in drawn):
        drawn = drawn[drawn[column].isna() | (drawn[column] == outcomes[column].iloc[0])]
    labelled = drawn[drawn["label"].notna()].sort_values("drawn_ms")
    return drawn[drawn["queue"].isin(labelled["queue"].tail(1))].dropna(axis=1, how="all")


def traced(pipeline: Stages) -> Monitored | None:
    """The dataset of traces if the job's answers come from it; else None."""
    source = pipeline.components.dataset
    return source if isinstance(source, Monitored) and source.has_answers_of(pipeline.components.llm) else None


def place_of(source: Monitored) -> tuple[str, str]:
    """MLflow's URI and the experiment of the dataset's traces."""
    uri, experiment = source.place()
    return track.absolute_uri(track.tracking_uri(uri)), experiment


def own_place(job: Job) -> tuple[str, str]:
    """MLflow's URI and the experiment of the job."""
    return track.absolute_uri(track.tracking_uri(job.settings.tracking.uri)), job.record.experiment
