"""`retriever=trec`: a ranking that another system made, read from a TREC run file."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Tools
from ragauge.retrieval.retrievers._ranking import Hits, as_transformer, docno_order, run_frame, sort_hits

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrecRun:
    """The ranking of a TREC run file: lines of qid, Q0, docno, rank, score and tag.

    As trec_eval reads it: by falling score, whatever the rank says; ties are broken by docno. A docno is that
    of a chunk, or of a document, which then stands for its chunks in their order. Topics of other datasets in
    the file are passed over; a topic that the file lacks has no hits, and is told. top_k: chunks kept.
    """

    component: ClassVar[str] = "trec"
    uses: ClassVar[frozenset[str]] = frozenset()
    reorder_after_cut: ClassVar[bool] = False
    takes_queries: ClassVar[bool] = False

    path: str | None = runtime(None)
    top_k: int = 30

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)

    def files(self) -> Mapping[str, Path]:
        """The run file; ConfigError if it is not there."""
        if self.path is None:
            raise ConfigError("retriever.path=None: give the path of a TREC run file")
        path = Path(self.path).expanduser()
        if not path.is_file():
            raise ConfigError(f"retriever.path={self.path}: no such file")
        return {"run": path}

    def index_identity(self) -> Mapping[str, Any]:
        """The same for all: there is no index."""
        return {"index": "none", "version": 1}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes nothing."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """The run's hits; DataError names the line that cannot be read, or whose document is not there."""
        path = self.files()["run"]
        lines = read_trec_run(path)
        rows_of = rows_by_docno(chunks)
        order = docno_order(chunks)

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            topic = pd.Index(topics["qid"]).get_indexer(pd.Index(lines["qid"]))
            here = lines[topic >= 0].assign(topic=topic[topic >= 0])
            unknown = ~here["docno"].isin(rows_of.keys())
            if unknown.any():
                row = here[unknown].iloc[0]
                raise DataError(
                    f"{path.name}, line {row['line']}: docno {row['docno']!r} is neither a document nor a "
                    f"chunk of this dataset ({int(unknown.sum())} such lines)"
                )
            lacking = len(topics) - here["topic"].nunique()
            if lacking:
                log.warning("%s holds nothing for %d of %d topics", path.name, lacking, len(topics))
            hits = _hits(here, rows_of, order)
            place = hits.groupby("topic", sort=False).cumcount()
            hits = hits[place < self.top_k]
            return run_frame(
                topics,
                chunks,
                hits["topic"].to_numpy(),
                hits["chunk"].to_numpy(),
                **({"score": hits["score"].to_numpy()} if hits["whole"].all() else {}),
            )

        return as_transformer("TrecRun", rank)


def read_trec_run(path: Path) -> pd.DataFrame:
    """[qid, docno, score, line] of a run file; DataError names the line that is none, or a pair that repeats.

    Fields are divided by white space; empty lines are passed over. Lines are counted from 1.
    """
    rows: list[tuple[str, str, float, int]] = []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: not UTF-8 at byte {error.start}") from None
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 6:
            raise DataError(
                f"{path.name}, line {number}: {len(fields)} fields; a line is: qid Q0 docno rank score tag"
            )
        try:
            score = float(fields[4])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise DataError(f"{path.name}, line {number}: score {fields[4]!r} is no finite number")
        rows.append((fields[0], fields[2], score, number))
    found = pd.DataFrame(rows, columns=["qid", "docno", "score", "line"])
    twice = found.duplicated(["qid", "docno"])
    if twice.any():
        row = found[twice].iloc[0]
        raise DataError(
            f"{path.name}, line {row['line']}: docno {row['docno']!r} stands twice for qid {row['qid']!r}"
        )
    return found


def rows_by_docno(chunks: pd.DataFrame) -> dict[str, list[int]]:
    """The rows of the chunks that a docno names: a chunk's own, or those of a document, in order."""
    found: dict[str, list[int]] = {}
    for row, parent in enumerate(chunks["parent"]):
        found.setdefault(parent, []).append(row)
    return {**found, **{docno: [row] for row, docno in enumerate(chunks["docno"])}}


def _hits(lines: pd.DataFrame, rows_of: Mapping[str, list[int]], order: np.ndarray) -> pd.DataFrame:
    """topic, chunk, score, and whether the line names this chunk alone; in rank order, each chunk once."""
    first = np.array([rows_of[docno][0] for docno in lines["docno"]], dtype=np.int64)
    by_line = Hits(lines["topic"].to_numpy(), np.arange(len(lines)), lines["score"].to_numpy(dtype=float))
    # Ties go by the docno of the first chunk, as everywhere.
    ranked = sort_hits(by_line, order[first] if len(lines) else order)[0]
    chunks = [rows_of[docno] for docno in lines["docno"].iloc[ranked.chunk]]
    sizes = np.array([len(rows) for rows in chunks], dtype=np.int64)
    hits = pd.DataFrame(
        {
            "topic": np.repeat(ranked.topic, sizes),
            "chunk": np.concatenate([*map(np.array, chunks), np.empty(0)]).astype(np.int64),
            "score": np.repeat(ranked.score, sizes),
            "whole": np.repeat(sizes == 1, sizes),
        }
    )
    return hits.drop_duplicates(["topic", "chunk"], ignore_index=True)
