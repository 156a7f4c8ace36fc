"""Any collection of the library ir_datasets with documents, queries and judgements, by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from importlib import metadata
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require_text
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow, valid_string
from ragauge.datasets.gather import Document, Rows
from ragauge.plugins.benchmarks.judged import JudgedSource, Judgement, Query, judged_dataset

_KINDS = ("docs", "queries", "qrels")


@option("dataset/ir_datasets")
class IrDatasets(JudgedSource):
    """The collection `id` of ir_datasets (MacAvaney et al., 2021), which downloads it where it is not there.

    It is known by its id and the library's version: the library checks what it downloads. doc_field and
    query_field name the field that is searched, and asked; None takes the library's default text. A pair
    that is judged more than once, as for subtopics, has its highest grade.
    """

    component = "ir_datasets"
    version = 1

    name: str = runtime(CONF)
    id: str | None = CONF
    doc_field: str | None = CONF
    query_field: str | None = CONF
    library: str = field(init=False, default_factory=lambda: metadata.version("ir_datasets"))

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("doc_field", "query_field"):
            if getattr(self, key) is not None:
                require_text(f"dataset.{key}", getattr(self, key), "names of fields, and null (the default text)")

    def files(self) -> Mapping[str, Path]:
        """None: the library keeps its downloads where it likes."""
        return {}

    def load(self) -> Dataset:
        """The collection, its documents in batches; DataError names record, qid and error."""
        collection = self._collection()
        return judged_dataset(
            self,
            Rows(f"{self.id} docs", lambda: self._records(collection, "docs"), self._document),
            Rows(f"{self.id} queries", lambda: self._records(collection, "queries"), self._query),
            Rows(f"{self.id} qrels", lambda: self._records(collection, "qrels"), _judgement),
            highest=True,
        )

    def _collection(self) -> Any:
        import ir_datasets

        if self.id is None:
            raise ConfigError("dataset.id is not set: give an id of ir_datasets, such as beir/scifact/test")
        try:
            collection = ir_datasets.load(self.id)
        except KeyError:
            raise ConfigError(
                f"dataset.id={self.id}: ir_datasets {self.library} has no collection of this id; "
                "`ir_datasets list` prints them"
            ) from None
        missing = [kind for kind in _KINDS if not collection.has(kind)]
        if missing:
            raise ConfigError(
                f"dataset.id={self.id}: the collection has no {' and no '.join(missing)}; an id that has all "
                f"may begin with {self.id}/"
            )
        return collection

    def _records(self, collection: Any, kind: str) -> Iterator[tuple[str, Any]]:
        """The records of a kind with their positions, counted from 1."""
        try:
            for number, record in enumerate(getattr(collection, f"{kind}_iter")(), start=1):
                yield f"{self.id} {kind}, record {number}", record
        except Exception as error:  # whatever a download, an archive or a parser of the library may raise
            what = f"{type(error).__name__}: {error}"
            raise DataError(f"{self.id}: ir_datasets could not read the {kind}: {what}") from error

    def _document(self, record: Any) -> Document:
        title = getattr(record, "title", "")
        text = _text(record, self.doc_field, "doc_field")
        return _identifier(record, "doc_id"), title if isinstance(title, str) else "", text

    def _query(self, record: Any) -> Query:
        return _identifier(record, "query_id"), _text(record, self.query_field, "query_field")


def _judgement(record: Any) -> Judgement:
    grade = getattr(record, "relevance", None)
    if type(grade) is not int:
        raise BadRow(f"the relevance {grade!r} is no whole number")
    return _identifier(record, "query_id"), _identifier(record, "doc_id"), grade


def _identifier(record: Any, name: str) -> str:
    return valid_string(getattr(record, name, None), name)


def _text(record: Any, name: str | None, key: str) -> str:
    if name is None:
        if not hasattr(record, "default_text"):
            raise BadRow(f"the record has no default text (dataset.{key}); its fields are {_fields(record)}")
        return valid_string(record.default_text(), "the default text")
    if name not in getattr(record, "_fields", ()):
        raise BadRow(f"the record has no field {name!r} (dataset.{key}); its fields are {_fields(record)}")
    return valid_string(getattr(record, name), f"field {name!r}")


def _fields(record: Any) -> str:
    return ", ".join(getattr(record, "_fields", ()))
