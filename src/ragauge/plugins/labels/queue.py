"""MLflow's review queue: shows drawn answers as traces to reviewers, and returns their labels to the sheet."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.datasets.labels import WHICH
from ragauge.track import absolute_uri, answer_digest, labels_of_people
from ragauge.track.connection import at, pages, quiet, reachable
from ragauge.track.feedback import ANSWER_TAG, DRAWN_TAG, OWN_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient

QUESTION = "label"  # the name of the feedback, which human_labels=mlflow reads, too
_BATCH = 100


def in_queue(table: pd.DataFrame, name: str, uri: str, experiment: str) -> pd.DataFrame:
    """The table with people's labels from MLflow; its answers are in the review queue `name`.

    The queue is made where it is not there; it asks for one of the judge's classes. ConfigError where MLflow has no
    queues or refuses, DataError for an answer without a trace.
    """
    from mlflow.exceptions import MlflowException

    uri = absolute_uri(uri)
    with quiet(), at(uri) as client, reachable(uri):
        found = client.get_experiment_by_name(experiment)
        traces: dict[tuple[str, str], str] = {}
        if found is not None:
            tagged = partial(
                client.search_traces,
                locations=[found.experiment_id],
                filter_string=f"tags.`{OWN_TAG}` LIKE '%'",
                include_spans=False,
            )
            for trace in pages(tagged):
                traces[trace.info.tags[OWN_TAG], trace.info.tags.get(ANSWER_TAG, "")] = trace.info.trace_id
        keys = list(zip(table["qid"], table["answer"].map(answer_digest), strict=True))
        absent = [qid for qid, answer in keys if (qid, answer) not in traces]
        if absent or found is None:
            raise DataError(
                f"--queue: {len(absent)} of {len(keys)} answers have no trace in {experiment!r} (the first: qid "
                f"{absent[0]!r}): run the jobs with tracking.evaluation=true"
            )
        try:
            _fill(name, found.experiment_id, [traces[key] for key in keys])
            _tag(client, name, table, [traces[key] for key in keys])
        except (MlflowException, NotImplementedError, ImportError) as error:
            said = str(error).splitlines()[0]
            raise ConfigError(f"--queue={name}: MLflow has no review queue to fill there: {said}") from error
    people = labels_of_people(uri, experiment).dropna(subset=["qid"]).sort_values("labelled_ms", kind="stable")
    given = dict(zip(zip(people["qid"], people["answer"], strict=True), people["label"], strict=True))
    said_there = pd.Series([given.get(key) for key in keys], index=table.index, dtype="Int8")
    return table.assign(label=said_there.fillna(table["label"].astype("Int8")))


def _tag(client: MlflowClient, name: str, table: pd.DataFrame, traces: Sequence[str]) -> None:
    """Tags each trace with its answer's draws: the queue, the probability, and its number in a sheet."""
    columns = [column for column in (*WHICH, "probability") if column in table]
    drawn_ms = round(time.time() * 1000)
    for trace_id, row in zip(traces, table[columns].to_dict("records"), strict=True):
        which = answer_digest(json.dumps([name, *(row.get(column) for column in WHICH)]))
        client.set_trace_tag(trace_id, f"{DRAWN_TAG}.{which}", json.dumps({"queue": name, "drawn_ms": drawn_ms, **row}))
        client.set_trace_tag(trace_id, DRAWN_TAG, "true")


def _fill(name: str, experiment_id: str, traces: list[str]) -> None:
    from mlflow.genai import label_schemas, review_queues

    queues = partial(review_queues.list_review_queues, experiment_id=experiment_id)
    queue = next((one for one in pages(queues) if one.name == name), None)
    if queue is None:
        schemas = pages(partial(label_schemas.list_label_schemas, experiment_id=experiment_id))
        schema = next((one for one in schemas if one.name == QUESTION), None) or label_schemas.create_label_schema(
            QUESTION,
            type="feedback",
            input=label_schemas.InputCategorical(options=list(JUDGE_CLASSES.values())),
            instruction="What is the answer, beside the reference answer?",
            experiment_id=experiment_id,
        )
        queue = review_queues.create_review_queue(
            name, queue_type="custom", schema_ids=[str(schema.schema_id)], experiment_id=experiment_id
        )
    for first in range(0, len(traces), _BATCH):
        review_queues.add_items_to_review_queue(queue.queue_id, item_ids=traces[first : first + _BATCH])
