"""The documents of a dataset whose questions are not there yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.identity import identity
from ragauge.contract.protocols import Dataset, Source


@runtime_checkable
class HoldsDocuments(Protocol):
    """A dataset whose questions are a file of their own, `topics`: without it there are documents still."""

    name: str
    topics: Any

    def document_files(self) -> Mapping[str, Path]:
        """The files that are read for the documents, by role; ConfigError if one is not there."""

    def documents(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Frame `docs`, and which rows were dropped."""


def documents_of(source: Source) -> Source:
    """The dataset itself, or of one whose file of questions is not set its documents alone."""
    if isinstance(source, HoldsDocuments) and source.topics is None:
        return DocumentsAlone(source, source.name)
    return source


@dataclass
class DocumentsAlone:
    """A dataset without questions; its one topic is a placeholder, since stages need one."""

    component: ClassVar[str] = "documents_alone"
    version: ClassVar[int] = 1

    source: HoldsDocuments
    name: str

    def identity(self) -> dict[str, Any]:
        """That of the dataset, in a name of its own."""
        return {"component": self.component, "version": self.version, "of": identity(self.source)}

    def files(self) -> Mapping[str, Path]:
        """The files of the documents."""
        return self.source.document_files()

    def load(self) -> Dataset:
        """The documents and the placeholder."""
        docs, skipped = self.source.documents()
        topics = pd.DataFrame({"qid": ["none"], "query": ["none"], "answer": [None]}, dtype="str")
        return Dataset(docs, topics, frames.empty("evidence"), skipped)
