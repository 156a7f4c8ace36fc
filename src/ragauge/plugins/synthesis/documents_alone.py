"""The documents of a dataset that has no questions yet, and questions from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.datasets.fields import BadRow
from ragauge.datasets.files import SUFFIXES, is_table, parsed, table_rows

_NAMES = ("query", "question")


@runtime_checkable
class HoldsDocuments(Protocol):
    """A dataset whose questions are a separate file, `topics`; it has documents without it."""

    name: str
    topics: Any

    def document_files(self) -> Mapping[str, Path]:
        """The document files by role; ConfigError if one does not exist."""

    def documents(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Frame `docs`, and the dropped rows."""


def documents_of(source: Source) -> Source:
    """The dataset itself, or only its documents if its file of questions is not set."""
    if isinstance(source, HoldsDocuments) and source.topics is None:
        return DocumentsAlone(source, source.name)
    return source


@dataclass
class DocumentsAlone(Source):
    """A dataset without questions; its one topic is a placeholder, since stages need one."""

    component = "documents_alone"

    source: HoldsDocuments
    name: str

    def identity(self) -> dict[str, Any]:
        """The dataset's identity, under a name of its own."""
        return {"component": self.component, "version": self.version, "of": identity(self.source)}

    def files(self) -> Mapping[str, Path]:
        """The files of the documents."""
        return self.source.document_files()

    def load(self) -> Dataset:
        """The documents and the placeholder."""
        docs, skipped = self.source.documents()
        topics = pd.DataFrame({"qid": ["none"], "query": ["none"], "answer": [None]}, dtype="str")
        return Dataset(docs, topics, frames.empty("evidence"), skipped)


def questions_of(key: str, path: str | Path) -> list[str]:
    """The texts under `query` or `question` in every row of a JSON Lines, JSON, CSV or Parquet file.

    ConfigError, which names the config key, for a file that is not there; DataError names the row.
    """
    file = Path(path).expanduser()
    if not file.is_file() or not is_table(file):
        raise ConfigError(f"{key}: {path} is no file of {', '.join(SUFFIXES)}")
    found = []
    for where, row in table_rows(file):
        try:
            cells = parsed(row)
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
        texts = [cells[name] for name in _NAMES if isinstance(cells.get(name), str)]
        if not texts:
            raise DataError(f"{where}: neither 'query' nor 'question' holds a text; it has {', '.join(cells)}")
        found.append(texts[0])
    return found
