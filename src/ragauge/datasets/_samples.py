"""Samples in the form of RAGAS and DeepEval, and recorded systems: one file with a row per question."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ragauge.contract.datasets import Dataset
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.outcomes import RESERVED
from ragauge.datasets import recordings
from ragauge.datasets._near_names import warn_of_near_names
from ragauge.datasets.fields import BadRow, string, title_of
from ragauge.datasets.files import existing_file
from ragauge.datasets.gather import FileSource, Gatherer, Part
from ragauge.datasets.recordings import Recorded

log = logging.getLogger(__name__)


@option("dataset/samples")
class SamplesDataset(FileSource):
    """The questions of a file of samples, with any reference answers, evidence and attributes.

    The file is JSON Lines, a JSON list, CSV or Parquet, under the names of RAGAS, DeepEval or this project
    (`ragauge.datasets.recordings`). Rows of one qid, such as those of several systems, are one topic. A key
    that is not known is an attribute of the topic where all rows of each question agree on it. `docs` are
    documents, {docno, text} and optionally title a line; contexts that a system brings need not be in them.
    """

    component = "samples"
    version = 3

    name: str = runtime(CONF)
    path: str | Path | None = runtime(None)
    docs: str | Path | None = runtime(None)

    def files(self) -> Mapping[str, Path]:
        """The file `samples`, and `docs` where it is given; ConfigError if one is not there."""
        found = {"samples": recordings.recorded_file("dataset.path", self.path)}
        return found if self.docs is None else {**found, "docs": existing_file("docs", self.docs)}

    def load(self) -> Dataset:
        """The collection; DataError names file, line or row, qid and what is wrong."""
        files = self.files()
        gather = Gatherer(self)
        if "docs" in files:
            for entry in recordings.entries(files["docs"]):
                with gather.row(entry.where):
                    row = entry.read()
                    gather.add_document(string(row, "docno"), title_of(row), string(row, "text"))
        topics: dict[str, _Sample] = {}
        number = recordings.Numbers()
        for entry in recordings.entries(files["samples"]):
            with gather.row(entry.where) as at:
                row = entry.read()
                recorded = recordings.recorded_row(row, entry.where, number.of(row))
                at.qid = recorded.qid
                if recorded.qid in topics:
                    topics[recorded.qid].add(_Sample.of(recorded))
                elif self.limit is None or len(topics) < self.limit:
                    topics[recorded.qid] = _Sample.of(recorded)
        attributes = _attributes(list(topics.values()))
        unread = dict.fromkeys(name for sample in topics.values() for name in sample.extra)
        found = {
            "reference": any(s.references for s in topics.values()),
            "evidence": any(s.evidence for s in topics.values()),
        }
        lacking = [what for what, there in found.items() if not there]
        warn_of_near_names(files["samples"], unread, recordings.NAMES, lacking)
        for qid, sample in topics.items():
            with gather.row(sample.where, sample.columns) as at:
                at.qid = qid
                own = {name: sample.extra[name] for name in attributes if name in sample.extra}
                gather.add_topic(
                    qid, sample.question, sample.references, sample.evidence, own,
                    unanswerable=sample.unanswerable, history=sample.history, numbered=sample.columns["qid"] is None,
                )  # fmt: skip
        return gather.dataset(files.get("docs"), files["samples"])


@dataclass
class _Sample:
    """A sample, merged from the rows of one question."""

    where: str
    question: str
    references: tuple[str, ...]
    evidence: tuple[Part, ...]
    unanswerable: bool
    extra: Mapping[str, Any]
    columns: Mapping[str, str | None]  # as in `Gatherer.row`
    history: tuple[str, ...] = ()
    differ: set[str] = field(default_factory=set)  # keys of `extra` on which rows disagree

    @classmethod
    def of(cls, row: Recorded) -> _Sample:
        if isinstance(row.values.get("question"), list):
            raise BadRow(f"{row.named['question']!r} is a list that holds no messages of a conversation")
        question = row.text("question")
        if question is None:
            names = ", ".join(recordings.NAMES["question"])
            raise BadRow(f"no question; its key is one of {names}")
        references = row.references()
        evidence: tuple[Part, ...] = tuple((None, text) for text in row.texts("evidence") or () if text.strip())
        marked = row.values.get("unanswerable", False)
        if str(marked).lower() not in ("true", "false"):
            raise BadRow(f"'unanswerable' is neither true nor false: {marked!r}")
        named = row.named.get
        columns = {
            "qid": named("qid"),
            "query": named("question"),
            "answer": named("reference") or named("references"),
            "evidence": named("evidence"),
        }
        unanswerable = str(marked).lower() == "true"
        return cls(row.where, question, references, evidence, unanswerable, row.extra, columns, row.history)

    def add(self, other: _Sample) -> None:
        """Merges another row of the question; BadRow if it contradicts."""
        for name, of in (("question", "query"), ("references", "answer"), ("evidence", "evidence")):
            own, its = getattr(self, name), getattr(other, name)
            if own and its and own != its:
                raise BadRow(f"{other.columns[of]!r}: another one than in {self.where}")
            setattr(self, name, own or its)
        self.unanswerable = self.unanswerable or other.unanswerable
        # Systems with conversations of their own have the questions in common.
        both = zip_longest(self.history, other.history, fillvalue="")
        self.history = tuple(one if one == its else "" for one, its in both)
        self.differ |= {name for name in {*self.extra, *other.extra} if self.extra.get(name) != other.extra.get(name)}


def _attributes(samples: Sequence[_Sample]) -> list[str]:
    """The keys of attributes of the topics, on which all rows of each question agree."""
    names = dict.fromkeys(name for sample in samples for name in sample.extra)
    differ = {name for sample in samples for name in sample.differ}
    taken = sorted(RESERVED.intersection(names))
    if taken:
        log.info("no attributes of topics, since the names are taken: %s", ", ".join(taken))
    return [name for name in names if name not in differ and name not in RESERVED]
