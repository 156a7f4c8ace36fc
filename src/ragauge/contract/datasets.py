"""Datasets, and the components that load them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.component import Component
from ragauge.contract.default import Default
from ragauge.contract.frames import Batches


@dataclass(frozen=True)
class Dataset:
    """Documents, topics and evidence of one collection (frames `docs`, `topics`, `evidence`).

    The values that a topic may lack, and its optional columns, are in `ragauge.contract.topics`. `skipped` lists the
    rows that were dropped, with reasons, where the source drops bad rows. Documents that may be too many for memory
    come in batches.
    """

    docs: pd.DataFrame | Batches
    topics: pd.DataFrame
    evidence: pd.DataFrame
    skipped: tuple[str, ...] = ()


class Source(Component):
    """Config group `dataset`: reads files into a Dataset. Path fields are runtime; contents are hashed.

    run_job: the dotted path of the function that runs a job of it in the place of the stages. It is called with the
        job's config, folder and record, which it fills, and holds the job to its gates (`ragauge.experiment.gates`).
        "": the stages run.
    own_document: "drop" leaves a document out of the ranking of the topic that it is: same id, same text.
    """

    run_job: ClassVar[str] = ""
    name = Default[str]()
    own_document = Default("keep")

    @abstractmethod
    def files(self) -> Mapping[str, Path]:
        """The files read, by role; ConfigError if one is missing."""

    @abstractmethod
    def load(self) -> Dataset:
        """The collection; DataError names file, row, qid and what is wrong."""


class Monitored(Source):
    """A dataset that reads a window of the traces of a system in use."""

    @classmethod
    @abstractmethod
    def pinned(cls, spec: Mapping[str, Any], now: float) -> dict[str, Any]:
        """The config fields that fix the end of the window at `now` (seconds since 1970)."""

    @abstractmethod
    def window_metrics(self, topics: pd.DataFrame) -> dict[str, float]:
        """The metrics of the window."""

    @abstractmethod
    def window_warnings(self, metrics: Mapping[str, float]) -> list[str]:
        """Warnings for a reader of these metrics, a sentence each."""

    @abstractmethod
    def has_answers_of(self, llm: Any) -> bool:
        """Whether this llm's answers are those of the traces."""

    @abstractmethod
    def place(self) -> tuple[str | None, str]:
        """The MLflow URI (None: the default) and the experiment of the traces."""

    @abstractmethod
    def trace_ids(self, topics: pd.DataFrame) -> dict[str, str]:
        """The id of the trace of every topic [qid, query], by qid."""
