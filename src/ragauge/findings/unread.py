"""Texts beyond the token limits of the job's models, whose rest is neither searched nor compared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.frames import Batches, count_rows, in_pieces
from ragauge.contract.jobs import Job
from ragauge.contract.measures import Measure
from ragauge.contract.metrics import Metric
from ragauge.contract.retrieval import Chunker, Reranker
from ragauge.contract.stages import Stages
from ragauge.contract.visible import visible
from ragauge.findings.lacking import new_lines
from ragauge.retrieval.reading import Reader, Reading, reading_of

log = logging.getLogger(__name__)

_MOST = 20_000  # texts whose tokens are counted; of more, as many that are spread evenly
_SAID = 0.001  # share of unread tokens from which on a job says so
_GROUPS = ("embedder", "retriever", "reranker", "chunker", "measure")


@dataclass(frozen=True)
class Unread:
    """The unread tokens of some texts (named by `what`) for a config group's model (`by`: the key that limits them)."""

    group: str
    by: str
    what: str
    limit: int
    reading: Reading
    counted: int  # texts whose tokens were counted

    @property
    def sentence(self) -> str:
        """A sentence: the number of longer texts, the share of lost tokens, and a remedy."""
        of = self.reading
        sampled = "" if self.counted == of.texts else f" (counted on {self.counted:,})"
        return (
            f"{self.group}.{self.by} reads {self.limit} tokens of a text: {of.longer:,} of "
            f"{of.texts:,} {self.what} are longer{sampled}, and {of.unread:.1%} of the tokens are not read; "
            f"{self._remedy}"
        )

    @property
    def _remedy(self) -> str:
        if self.group == "embedder":
            return "embedder.long=mean or max reads them in windows, smaller chunks (chunker=tokens) as they are"
        if self.group in ("retriever", "reranker"):
            return f"{self.group}.long=max reads them in windows, smaller chunks (chunker=tokens) as they are"
        return "choose an embedder that reads more, or embedder.long=mean"


class UnreadTexts(JobFinding):
    """The share of the texts beyond the limits of their models."""

    name = "unread"
    after = "scores"
    metrics = (Metric(f"unread_{{{','.join(_GROUPS)}}}_{{texts,share}}", group="size"),)

    def compute(self, job: Job, found: Founds) -> Found:
        """An `Unread` per model that truncates a text."""
        value = unread(job.pipeline)
        metrics: dict[str, float] = {}
        for one in value:
            metrics |= {
                f"unread_{one.group}_texts": one.reading.longer,
                f"unread_{one.group}_share": one.reading.unread,
            }
        return Found(value, metrics=metrics)

    def show(self, job: Job, value: list[Unread], found: Founds) -> Shown:
        """A warning per model with a noticeable unread share, once per sweep."""
        lines = [one.sentence for one in value if one.reading.unread >= _SAID]
        return Shown(notes=new_lines(lines, job.record.sweep_id))


def unread(pipeline: Stages) -> list[Unread]:
    """An `Unread` per model that truncates texts.

    The embedder and the models of retriever and reranker read chunks. The embedder also reads the texts that chunker
    and measure compare.
    """
    components = pipeline.components
    retriever = components.retriever
    arms = [retriever, *retriever.retrievers.values()]
    searched: list[tuple[str, Any]] = [("retriever", arm) for arm in arms]
    if any("embedder" in arm.index_uses for arm in arms):
        searched.append(("embedder", components.embedder))
    looks: list[Callable[[], Unread | None]] = [partial(_of_chunks, group, part, pipeline) for group, part in searched]
    looks.append(partial(_of_chunks, "reranker", components.reranker, pipeline, with_question=True))
    looks.append(partial(_of_passages, components.reranker, pipeline))
    for group in ("chunker", "measure"):
        part = getattr(components, group)
        if "embedder" in part.uses:
            looks.append(partial(_of_own_texts, group, part, pipeline))
    found = []
    for look in looks:
        try:
            found.append(look())
        except ConfigError as error:  # the model may run all the same
            log.warning("how many tokens are read is not known: %s", error)
    return [one for one in found if one is not None and one.reading.longer]


def _of_chunks(group: str, part: Any, pipeline: Stages, with_question: bool = False) -> Unread | None:
    """The `Unread` of the chunks; `with_question` adds a question of median length to each."""
    reader = part.reader()
    if reader is None:
        return None
    beside = 0
    if with_question:
        beside = int(np.median(reader.lengths(pipeline.frame("topics")["query"].tolist())))
    rows = pipeline.rows("chunks")
    reading = _counted(reader, _Texts(pipeline.entry_of("chunks").digest, rows), beside)
    what = "chunks with their question" if with_question else "chunks"
    return Unread(group, _model(part), what, reader.limit, _of_all(reading, count_rows(rows)), reading.texts)


def _of_passages(part: Reranker, pipeline: Stages) -> Unread | None:
    limit = part.passage_tokens
    if limit is None or part.long != "cut":
        return None
    rows = pipeline.rows("chunks")
    lines = [" ".join(text.split()) for text in _spread(rows, "text", _MOST)]
    lengths = np.array([len(at) for at in pipeline.components.tokenizer.offsets(lines)], dtype=np.int64)
    reading = reading_of(lengths, limit)
    whole = _of_all(reading, count_rows(rows))
    return Unread("reranker", f"passage_tokens={limit}", "chunks", limit, whole, reading.texts)


def _of_all(reading: Reading, total: int) -> Reading:
    """The reading of `total` texts from that of some."""
    return Reading(round(reading.longer * total / max(reading.texts, 1)), total, reading.unread)


def _model(part: Any) -> str:
    return f"model={visible(str(part.model))}"


def _of_own_texts(group: str, part: Chunker | Measure, pipeline: Stages) -> Unread | None:
    embedder = pipeline.components.embedder
    reader = embedder.reader()
    if reader is None:
        return None
    docs = _spread(pipeline.rows("docs"), "text", 1_000)
    texts = _evenly(part.embedded(docs, pipeline.frame("evidence")["text"].dropna().tolist()))
    reading = reader.reading(texts)
    return Unread(group, _model(embedder), f"texts that the {group} compares", reader.limit, reading, reading.texts)


@dataclass(frozen=True)
class _Texts:
    """The texts of rows; equal if their sources are."""

    digest: str
    rows: pd.DataFrame | Batches

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Texts) and self.digest == other.digest


@lru_cache(maxsize=16)
def _counted(reader: Reader, texts: _Texts, beside: int) -> Reading:
    """`Reader.reading`, cached in the process, since a sweep's jobs share chunks and models."""
    return reader.reading(_spread(texts.rows, "text", _MOST), beside)


def _spread(rows: pd.DataFrame | Batches, column: str, most: int) -> list[str]:
    """The texts of the rows, or of `most` evenly spread ones."""
    total = count_rows(rows)
    wanted = np.linspace(0, total - 1, min(total, most)).astype(np.int64)
    found: list[str] = []
    start = 0
    for some in in_pieces(rows, 50_000):
        here = wanted[(wanted >= start) & (wanted < start + len(some))] - start
        found += some[column].iloc[here].fillna("").astype(str).tolist()
        start += len(some)
    return found


def _evenly(texts: Sequence[str]) -> list[str]:
    at = np.linspace(0, len(texts) - 1, min(len(texts), _MOST)).astype(np.int64)
    return [texts[i] for i in at]
