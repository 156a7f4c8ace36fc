"""Finds the chunks with a topic's evidence, and `retriever=oracle`, which returns them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import SeesEvidence
from ragauge.retrieval.ranking import ranks_within
from ragauge.retrieval.retrievers.ranking import check_chunks, run_frame

_BLACK = re.compile(r"\S+")
_BETWEEN = "\n"  # of documents; white space stands in no letters


def letters(text: str) -> str:
    """The text without white space, in which evidence and documents may differ."""
    return "".join(text.split())


def evidence_chunks(evidence: pd.DataFrame, chunks: pd.DataFrame) -> pd.DataFrame:
    """The distinct chunks with evidence: [qid, chunk (a row)], best first within a topic.

    evidence: [qid, part, docno, text]; chunks: [docno, text, parent, start, end]. A part stands wherever its
    document holds its text, white space aside, and every chunk that shares a letter with such a place holds
    evidence. A part without a docno is looked for in all documents. For a part without a text, and for one whose text
    its document does not hold, every chunk of the document holds evidence.

    First come, part by part in reading order, the chunks that a part needs: the shortest one that holds all of it, or
    those that hold it together. Then come the others.
    """
    places = _Places(chunks)
    found = [
        (qid, needed, part, chunk)
        for qid, part, docno, text in evidence[["qid", "part", "docno", "text"]].itertuples(index=False)
        for chunk, needed in places.of(docno if isinstance(docno, str) else None, text)
    ]
    frame = pd.DataFrame(found, columns=["qid", "needed", "part", "chunk"])
    topic = pd.factorize(frame["qid"])[0]
    reading = places.reading[frame["chunk"].to_numpy(dtype=np.int64)]
    by = np.lexsort((reading, frame["part"].to_numpy(), ~frame["needed"].to_numpy(dtype=bool), topic))
    frame = frame.iloc[by].drop_duplicates(["qid", "chunk"])
    return frame[["qid", "chunk"]].astype({"qid": "str", "chunk": "int64"}).reset_index(drop=True)


class _Places:
    """Locates texts in documents, and the chunks there."""

    def __init__(self, chunks: pd.DataFrame) -> None:
        parent = pd.factorize(chunks["parent"])
        self._numbers = {docno: number for number, docno in enumerate(parent[1])}
        self._text = chunks["text"].to_numpy(dtype=object)
        self._start, self._end = (chunks[c].to_numpy(dtype=np.int64) for c in ("start", "end"))
        by = np.lexsort((self._end, self._start, parent[0]))
        self.reading = np.empty(len(chunks), dtype=np.int64)  # a chunk's place in all documents, as read
        self.reading[by] = np.arange(len(chunks))
        bounds = np.searchsorted(parent[0][by], np.arange(len(self._numbers) + 1))
        self._chunks = [by[a:b] for a, b in pairwise(bounds)]
        self._letters: dict[int, tuple[str, np.ndarray]] = {}
        self._known: dict[tuple[str | None, str | None], list[tuple[int, bool]]] = {}
        self._corpus: tuple[str, np.ndarray] | None = None

    def of(self, docno: str | None, text: object) -> list[tuple[int, bool]]:
        """The chunks of a part, each with whether the part needs it."""
        wanted = letters(text) if isinstance(text, str) else ""
        key = docno, wanted
        if key not in self._known:
            self._known[key] = list(self._find(docno, wanted))
        return self._known[key]

    def _find(self, docno: str | None, wanted: str) -> Iterator[tuple[int, bool]]:
        if docno is None:
            spans = [(doc, span) for doc in self._documents_with(wanted) for span in self._spans(doc, wanted)]
        elif docno in self._numbers:
            doc = self._numbers[docno]
            spans = [(doc, span) for span in self._spans(doc, wanted)]
            if not spans:
                yield from ((int(chunk), True) for chunk in self._chunks[doc])
        else:
            return
        touching = [(doc, span, self._touching(doc, span)) for doc, span in spans]
        whole = [
            (self._end[chunk] - self._start[chunk], place, chunk)
            for place, (_, (start, end), rows) in enumerate(touching)
            for chunk in rows.tolist()
            if self._start[chunk] <= start and self._end[chunk] >= end
        ]
        needed = {min(whole)[2]} if whole else set(touching[0][2].tolist() if touching else ())
        every = dict.fromkeys(chunk for *_, rows in touching for chunk in rows.tolist())
        yield from ((chunk, chunk in needed) for chunk in every)

    def _touching(self, doc: int, span: tuple[int, int]) -> np.ndarray:
        rows = self._chunks[doc]
        return rows[(self._start[rows] < span[1]) & (self._end[rows] > span[0])]

    def _spans(self, doc: int, wanted: str) -> Iterator[tuple[int, int]]:
        """Every place of the letters in the document: first and past-the-last character."""
        text, at = self._letters_of(doc)
        begin = text.find(wanted) if wanted else -1
        while begin >= 0:
            yield int(at[begin]), int(at[begin + len(wanted) - 1]) + 1
            begin = text.find(wanted, begin + len(wanted))

    def _letters_of(self, doc: int) -> tuple[str, np.ndarray]:
        """A document's letters and their offsets, as far as chunks hold them."""
        if doc not in self._letters:
            pieces, until = [], 0
            for chunk in self._chunks[doc].tolist():
                start, end = int(self._start[chunk]), int(self._end[chunk])
                if end > until:
                    text = str(self._text[chunk])[max(until - start, 0) : end - start]
                    pieces.append(" " * max(start - until, 0) + text)
                    until = end
            text = "".join(pieces)
            spans = [match.span() for match in _BLACK.finditer(text)]
            at = np.concatenate([np.arange(*span) for span in spans]) if spans else np.empty(0, np.int64)
            self._letters[doc] = "".join(text[start:end] for start, end in spans), at
        return self._letters[doc]

    def _documents_with(self, wanted: str) -> list[int]:
        """The documents with the letters."""
        if self._corpus is None:
            texts = [self._letters_of(doc)[0] for doc in range(len(self._chunks))]
            starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])]) if texts else np.empty(0, int)
            self._corpus = _BETWEEN.join(texts), starts
        text, starts = self._corpus
        found, begin = [], text.find(wanted) if wanted else -1
        while begin >= 0:
            doc = int(np.searchsorted(starts, begin, side="right")) - 1
            found.append(doc)
            begin = text.find(wanted, int(starts[doc + 1])) if doc + 1 < len(starts) else -1
        return found


@option("retriever/oracle")
class Oracle(SeesEvidence):
    """The chunks with the evidence, in the order of `ragauge.retrieval.retrievers.evidence.evidence_chunks`.

    Its score lacks only what chunking and budget lost; wrong answers from its contexts are due to the LLM. A topic
    without evidence has no hits. `score` is 1 / (rank + 1).
    """

    component = "oracle"

    top_k: int = CONF

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes nothing."""
        check_chunks(chunks)

    def rank_with_evidence(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query]."""
        topic, chunk = by_topic(topics, evidence_chunks(evidence, chunks))
        kept = ranks_within(topic) < self.top_k
        return run_frame(topics, chunks, topic[kept], chunk[kept])


def by_topic(topics: pd.DataFrame, found: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Topic row and chunk row of every hit, in the order of the topics."""
    topic = pd.Index(topics["qid"]).get_indexer(pd.Index(found["qid"]))
    by = np.argsort(topic, kind="stable")
    by = by[topic[by] >= 0]
    return topic[by], found["chunk"].to_numpy(dtype=np.int64)[by]
