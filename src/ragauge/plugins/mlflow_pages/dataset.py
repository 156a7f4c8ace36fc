"""`dataset=mlflow`: reads topics from an evaluation dataset of MLflow, and writes topics into one."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.checks import require
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import Batches
from ragauge.contract.identity import runtime
from ragauge.contract.redact import redact
from ragauge.datasets import FileSource, Gatherer
from ragauge.datasets.jsonl import add_topic
from ragauge.plugins.mlflow_pages.records import key_of, place_of, topic_of
from ragauge.plugins.traces.window import kept_by_content
from ragauge.track import absolute_uri, tracking_uri
from ragauge.track.connection import at, client_of, missing_database, pages, quiet, reachable, reason
from ragauge.track.feedback import OWN_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import EvaluationDataset

DIGEST_TAG = "ragauge.sha256"  # on a dataset: of the records that ragauge wrote last
_BATCH = 500  # records of one request


@dataclass(frozen=True)
class MlflowDataset(FileSource):
    """The topics of an evaluation dataset of MLflow, over the documents of another dataset.

    name: that of the evaluation dataset. documents: the dataset that has the documents; its topics are not read. uri:
    where MLflow is. folder: where the records are kept as they were read; their content is in the key.
    """

    component = "mlflow_dataset"
    version = 1

    documents: Any = None
    uri: str | None = runtime(None)
    folder: str | Path = runtime(".ragauge/mlflow_datasets")

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and bool(self.name.strip())
        require("dataset.name", self.name, named, "names of MLflow's evaluation datasets")
        super().__post_init__()
        if not hasattr(self.documents, "load"):
            raise ConfigError(
                "dataset.documents: an evaluation dataset has no documents: name a dataset that has them, such as "
                "dataset@dataset.documents=jsonl dataset.documents.docs=corpus.jsonl"
            )

    def files(self) -> Mapping[str, Path]:
        """The files of the documents, and the records as read."""
        of_documents = self.documents.document_files if self._documents_alone else self.documents.files
        return {**{f"documents {role}": path for role, path in of_documents().items()}, "records": self._records}

    @property
    def _documents_alone(self) -> bool:
        return getattr(self.documents, "topics", "") is None and hasattr(self.documents, "document_files")

    @cached_property
    def _records(self) -> Path:
        """A file of the records, named by its content; ConfigError if MLflow has no such dataset."""
        return kept_by_content(read_records(absolute_uri(tracking_uri(self.uri)), self.name), Path(self.folder))

    def load(self) -> Dataset:
        """The collection; DataError names the record and the error."""
        if self._documents_alone:
            docs, skipped = self.documents.documents()
        else:
            whole = self.documents.load()
            docs, skipped = whole.docs, whole.skipped
        gather, place = Gatherer(self), f"MLflow's dataset {self.name!r}"
        for some in docs if isinstance(docs, Batches) else [docs]:
            for document in zip(some["docno"], some["title"], some["text"], strict=True):
                gather.add_document(*document, keep=False)
        records = [json.loads(line) for line in self._records.read_text(encoding="ascii").splitlines()]
        latest = {record["tags"].get(OWN_TAG): record["record"] for record in records}
        for record in records:
            if gather.full:
                break
            where, qid = f"{place}, record {record['record']}", record["tags"].get(OWN_TAG)
            if qid is not None and latest[qid] != record["record"]:
                gather.note(f"{where}, qid {qid!r}: a later record has another question for it")
                continue
            with gather.row(where) as row_read:
                row_read.qid = qid
                add_topic(gather, topic_of(record))
        found = gather.dataset(str(self.documents.name), place)
        return replace(found, docs=docs, skipped=(*skipped, *found.skipped))


def read_records(uri: str, name: str) -> list[dict[str, Any]]:
    """The records of the evaluation dataset, in ragauge's topic order, then by creation.

    An edited question is a record of its own for MLflow, which keeps the other one: both are here, with one qid.
    """
    with evaluation_datasets(uri, name) as client:
        records = client.get_dataset(dataset_named(client, name).dataset_id).records
    tags = {one.dataset_record_id: _own_tags(one.tags) for one in records}
    records = sorted(
        records, key=lambda one: (place_of(tags[one.dataset_record_id]), one.created_time, one.dataset_record_id)
    )
    return [
        {
            "record": one.dataset_record_id,
            "inputs": one.inputs,
            "expectations": one.expectations,
            "tags": tags[one.dataset_record_id],
        }
        for one in records
    ]


def _own_tags(tags: Any) -> dict[str, str]:
    """ragauge's tags of a record, which people may have edited."""
    own = tags.items() if isinstance(tags, Mapping) else ()
    return {key: str(value) for key, value in own if str(key).startswith("ragauge.")}


def dataset_named(client: MlflowClient, name: str) -> EvaluationDataset:
    """The evaluation dataset of this name; ConfigError, with the nearest names, if there is none."""
    return _only(list(pages(client.search_datasets)), client, name)


def _only(listed: Sequence[EvaluationDataset], client: MlflowClient, name: str) -> EvaluationDataset:
    found = [one for one in listed if one.name == name]
    if len(found) != 1:
        near = difflib.get_close_matches(name, [one.name for one in listed], n=3, cutoff=0) if not found else []
        there = f"{len(found) or 'no'} evaluation dataset{'s' if found else ''} of this name"
        nearest = f"; the nearest are {', '.join(map(repr, near))}" if near else ""
        raise ConfigError(f"dataset.name={name!r}: MLflow at {redact(client.tracking_uri)} has {there}{nearest}")
    return found[0]


@contextmanager
def evaluation_datasets(uri: str, name: str) -> Iterator[MlflowClient]:
    """A client of MLflow; turns its errors, such as a file store without evaluation datasets, into a ConfigError."""
    from mlflow.exceptions import MlflowException

    if database := missing_database(uri):
        raise ConfigError(f"dataset.name={name!r}: no MLflow database at {database}")
    try:
        with quiet(), at(uri) as client, reachable(uri):
            yield client
    except MlflowException as error:
        raise ConfigError(f"dataset.name={name!r}: MLflow at {redact(uri)} says: {reason(error)}") from error


def write_records(uri: str, name: str, experiment: str, records: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Adds missing records to the evaluation dataset of this name, which it creates if there is none.

    Returns how many it lacked, and the id of the experiment on whose page it stands. Records that are there stay as
    they are, with what people changed. A tag has the digest of all `records`.
    """
    text = "\n".join(json.dumps(one, sort_keys=True) for one in records)
    tags = {DIGEST_TAG: hashlib.sha256(text.encode()).hexdigest()}
    _, experiment_id = client_of(uri, experiment)
    with evaluation_datasets(uri, name) as client:
        listed = list(pages(client.search_datasets))
        if any(one.name == name for one in listed):
            dataset = client.get_dataset(_only(listed, client, name).dataset_id)
            client.set_dataset_tags(dataset.dataset_id, tags)
            experiment_id = next(iter(dataset.experiment_ids), experiment_id)
        else:
            dataset = client.create_dataset(name, experiment_id, tags)
        there = {key_of(one.inputs) for one in dataset.records}
        lacking = [dict(one) for one in records if key_of(one["inputs"]) not in there]
        for first in range(0, len(lacking), _BATCH):
            dataset.merge_records(lacking[first : first + _BATCH])
    return len(lacking), experiment_id
