"""Human labels of answers on MLflow's traces."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.track.connection import at, pages, quiet, reachable

if TYPE_CHECKING:
    from mlflow import MlflowClient

OWN_TAG = "ragauge.qid"  # on the traces that ragauge itself writes: the topic that was measured
ANSWER_TAG = "ragauge.answer"  # and a digest of the answer
DRAWN_TAG = "ragauge.drawn"  # on traces that people should label; beneath it JSON on each draw (`ragauge labels`)
CLASS = "judge_class"  # the name of the feedback that holds the judge's class, 1 to 5
LABELS = (CLASS, "label")  # names of feedback by people that is a judge class


def answer_digest(answer: str | None) -> str:
    """A digest that is equal for equal answers."""
    return hashlib.sha256((answer or "").encode("utf-8", "surrogatepass")).hexdigest()[:32]


def labels_of_people(uri: str, experiment: str) -> pd.DataFrame:
    """Human judge classes of an experiment's traces, a row per labelled trace.

    Columns: trace_id, request_id (the client's), qid and answer (the tags of ragauge's own traces; missing on
    others), label, labelled_ms (since 1970). Where a trace has several labels, the latest counts. DataError for a label
    that is no class.
    """
    rows: dict[str, dict[str, Any]] = {}
    with quiet(), at(uri) as client, reachable(uri):
        found = client.get_experiment_by_name(experiment)
        for info in _labelled(client, found.experiment_id) if found is not None else ():
            given = [
                told
                for told in info.assessments
                if told.feedback is not None
                and told.name in LABELS
                and told.source.source_type == "HUMAN"
                and told.valid is not False
                and told.feedback.value is not None
            ]
            if given:
                latest = max(given, key=lambda told: told.last_update_time_ms or 0)
                rows[info.trace_id] = {
                    "trace_id": info.trace_id,
                    "request_id": info.client_request_id,
                    "qid": info.tags.get(OWN_TAG),
                    "answer": info.tags.get(ANSWER_TAG),
                    "label": _class(latest.feedback.value, latest.name, info.trace_id),
                    "labelled_ms": latest.last_update_time_ms or 0,
                }
    columns = ["trace_id", "request_id", "qid", "answer", "label", "labelled_ms"]
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"label": "int64", "labelled_ms": "int64"})


def drawn_answers(uri: str, experiment: str) -> pd.DataFrame:
    """The answers that review queues ask people to label, a row per draw.

    Columns: qid, answer (a digest), queue, drawn_ms (since 1970), probability, and the columns that identify answers
    in a sheet.
    """
    with quiet(), at(uri) as client, reachable(uri):
        found = client.get_experiment_by_name(experiment)
        given = {"filter_string": f"tags.`{DRAWN_TAG}` = 'true'", "include_spans": False}
        places = [] if found is None else [found.experiment_id]
        infos = [one.info for place in places for one in pages(partial(client.search_traces, [place], **given))]
    rows = [
        {"qid": info.tags[OWN_TAG], "answer": info.tags[ANSWER_TAG], **json.loads(value)}
        for info in infos
        for key, value in info.tags.items()
        if key.startswith(f"{DRAWN_TAG}.")
    ]
    return pd.DataFrame(rows)


def _labelled(client: MlflowClient, experiment_id: str) -> Iterator[Any]:
    for name in LABELS:
        search = partial(
            client.search_traces,
            locations=[experiment_id],
            filter_string=f"feedback.{name} IS NOT NULL",
            include_spans=False,
        )
        for trace in pages(search):
            yield trace.info


def _class(value: Any, name: str, trace_id: str) -> int:
    """The judge class that people typed as 5, 5.0, "5" or "right"."""
    text = str(value).strip().casefold()
    names = {meaning: number for number, meaning in JUDGE_CLASSES.items()}
    known = {**{str(n): n for n in JUDGE_CLASSES}, **{f"{n}.0": n for n in JUDGE_CLASSES}, **names}
    if text not in known:
        raise DataError(
            f"human_labels=mlflow, trace {trace_id}: {name} is {value!r}, not a judge class 1..5 "
            f"({', '.join(JUDGE_CLASSES.values())})"
        )
    return known[text]
