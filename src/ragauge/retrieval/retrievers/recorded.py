"""`retriever=recorded`: another system's retrieval, from a TREC run or a file with its contexts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import BringsTexts, TopicsFailed
from ragauge.datasets import BadRow, recordings
from ragauge.datasets.files import DIVIDED, PARQUET, first_character, text_of
from ragauge.datasets.packing import every_line, kind
from ragauge.datasets.recordings import Recorded
from ragauge.retrieval.passages import name_of
from ragauge.retrieval.retrievers.ranking import as_transformer, rows_by_docno, run_frame, say_cut

EMPTY = "empty"
_OR_EMPTY = f", retriever.on_missing={EMPTY} as ones without hits"
NO_TEXTS = pd.DataFrame({"docno": pd.Series(dtype="str"), "text": pd.Series(dtype="str")})


@option("retriever/recorded")
class RecordedRetrieval(BringsTexts):
    """The retrieval of another system from a file, in its order.

    The file is a TREC run, or has a row per topic. A row has `contexts`, the texts that stood in the prompt, or
    `docnos`, or both (then a text's docno names it). JSON Lines, a JSON list, CSV or Parquet; names of RAGAS and
    DeepEval are known (`ragauge.datasets.recordings`). Texts need not be in the corpus. A docno alone is that of a
    chunk, or of a document, which then stands for its chunks in their order.

    A TREC run is read as trec_eval does: by falling score, whatever the rank says. Where scores are equal (as 32-bit
    numbers), the docno that comes later in the alphabet is first.
    Without contexts a system is an LLM alone where other systems of the file have some.
    system: the system whose rows are read, in a file of several. top_k: at most so many are kept.
    on_missing: `raise`; `missing`: topics that are not in the file have no IR score and no measure of the ranking;
        `empty`: they have no hits, so that both are 0.
    """

    component = "recorded"
    version = 3
    ranks_corpus = True

    path: str | Path | None = runtime(None)
    system: str | None = None
    on_missing: str = "raise"
    top_k: int = CONF

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        recordings.check_picking("retriever", self.system, self.on_missing, (*recordings.ON_MISSING, EMPTY))

    def files(self) -> Mapping[str, Path]:
        """The file; ConfigError if it is not there."""
        return {"run": recordings.recorded_file("retriever.path", self.path)}

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """The file's ranking of the corpus, for fusion with other retrievers.

        DataError where it holds texts that are in no corpus.
        """

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            run, texts, _ = self._brought(topics, chunks)
            if len(texts):
                file = self.files()["run"]
                raise DataError(f"{file}: {len(texts):,} contexts are in no corpus; only docnos can be fused")
            return run

        return as_transformer("RecordedRetrieval", rank)

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The run, and the texts outside the chunks.

        DataError names file and line of what cannot be read, and of a docno that is not there. Raises TopicsFailed with
        both where topics are not in the file (`on_missing=missing`).
        """
        run, texts, missing = self._brought(topics, chunks)
        if missing:
            raise TopicsFailed(run, texts, missing, again=False)
        return run, texts

    def _brought(self, topics: pd.DataFrame, chunks: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """The run, the texts outside the chunks, and the missing topics."""
        file, qids = self.files()["run"], topics["qid"].tolist()
        if _is_trec(file):
            run, known = self._ranked(topics, chunks, file)
            texts = NO_TEXTS
        else:
            kept = self._contexts(file, qids)
            say_cut(file.name, [len(of.hits) for of in kept.values()], self.top_k)
            (run, texts), known = self._laid_out(topics, chunks, kept), set(kept)
        missing = [] if self.on_missing == EMPTY else [qid for qid in qids if qid not in known]
        return run, texts, missing

    def _contexts(self, file: Path, qids: Sequence[str]) -> dict[str, _Contexts]:
        """The contexts of every topic with a single record in the file."""
        rows = self.rows(file)
        found = [(row, _retrieved(row)) for row in rows]
        if all(retrieved is None for _, retrieved in found):
            if not _others_retrieve(file, self.system):
                if self.on_missing == "missing":
                    return {}
                keys = ", ".join([*rows[0].values, *rows[0].extra]) if rows else "none"
                have = f"its keys are {keys} (an LLM alone has contexts: [])"
                alone = "retriever.on_missing=missing measures the answers alone"
                raise DataError(f"{file}: no row has contexts or docnos; {have}; {alone}")
            found = [(row, _Contexts("", [])) for row in rows]  # an LLM alone
        told = [(row.qid, retrieved) for row, retrieved in found if retrieved is not None]
        return recordings.by_topic(file, told, qids, "contexts", self.on_missing, _OR_EMPTY)

    def rows(self, file: Path) -> list[Recorded]:
        """The system's rows of the file; a subclass may read another format."""
        return recordings.read_rows(file, self.system, "retriever.system")

    def _ranked(self, topics: pd.DataFrame, chunks: pd.DataFrame, file: Path) -> tuple[pd.DataFrame, set[str]]:
        """The run of a TREC run file, and its qids."""
        lines = read_trec_run(file)
        there = [(qid, qid) for qid in lines["qid"].unique()]
        recordings.by_topic(file, there, topics["qid"].tolist(), "hits", self.on_missing, _OR_EMPTY)
        rows_of = rows_by_docno(chunks)
        topic = pd.Index(topics["qid"]).get_indexer(pd.Index(lines["qid"]))
        here = lines[topic >= 0].assign(topic=topic[topic >= 0])
        unknown = ~here["docno"].isin(rows_of.keys())
        if unknown.any():
            row = here[unknown].iloc[0]
            more = f" ({int(unknown.sum())} such lines)"
            raise DataError(f"{file.name}, line {row['line']}: {_unknown(row['docno'])}{more}")
        hits = _hits(here, rows_of)
        say_cut(file.name, hits["topic"].value_counts().tolist(), self.top_k)
        hits = hits[hits.groupby("topic", sort=False).cumcount() < self.top_k]
        score = {"score": hits["score"].to_numpy()} if hits["whole"].all() else {}
        run = run_frame(topics, chunks, hits["topic"].to_numpy(), hits["chunk"].to_numpy(), **score)
        return run, set(lines["qid"])

    def _laid_out(
        self, topics: pd.DataFrame, chunks: pd.DataFrame, kept: Mapping[str, _Contexts]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The run of the unchanged contexts, with repeated ones, and those outside the chunks."""
        names, rows_of = _Names(chunks), rows_by_docno(chunks)
        texts = chunks["text"].tolist()
        docnos = chunks["docno"].tolist()

        def pairs(contexts: _Contexts) -> Iterator[tuple[str, str | None]]:
            for text, docno in contexts.hits:
                if text is not None:
                    yield text, docno
                elif docno not in rows_of:
                    raise DataError(f"{contexts.where}: {_unknown(docno)}")
                else:
                    yield from ((texts[row], docnos[row]) for row in rows_of[docno])

        hits = []
        for topic, qid in enumerate(topics["qid"]):
            used: set[str] = set()
            for text, docno in list(pairs(kept.get(qid, _Contexts("", []))))[: self.top_k]:
                hits.append((topic, names.of(text, docno, used)))
        brought = pd.DataFrame(names.new.items(), columns=["docno", "text"], dtype="str")
        every = pd.concat([chunks[["docno"]], brought[["docno"]]], ignore_index=True)
        at = pd.Index(every["docno"]).get_indexer(pd.Index([docno for _, docno in hits], dtype="str"))
        topic_rows = np.array([topic for topic, _ in hits], dtype=np.int64)
        return run_frame(topics, every, topic_rows, at.astype(np.int64)), brought


@dataclass(frozen=True)
class _Contexts:
    """The hits (text or None, docno or None) of a row; equality ignores the row's place."""

    where: str = field(compare=False)
    hits: list[tuple[str | None, str | None]]


class _Names:
    """Assigns every text a docno: the equal chunk's, its own, or one made from its characters."""

    def __init__(self, chunks: pd.DataFrame) -> None:
        self._chunks = dict(zip(chunks["docno"], chunks["text"], strict=True))
        self.new: dict[str, str] = {}  # docno to text, of what is no chunk

    def of(self, text: str, docno: str | None, used: set[str]) -> str:
        """The docno of a text, unused in its topic so far."""
        name = docno if docno is not None else name_of(text)
        if self._other(name, text):  # one document in two wordings, such as compressed for two questions
            name = f"{_passage(name)}~{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        stem, number = _passage(name), 1
        while name in used or self._other(name, text):
            number += 1
            name = f"{stem}~{number}"
        used.add(name)
        if name not in self._chunks:
            self.new[name] = text
        return name

    def _other(self, name: str, text: str) -> bool:
        return self._chunks.get(name, self.new.get(name, text)) != text


def _passage(docno: str) -> str:
    """The docno of a document's passage, from which further passages can be numbered."""
    return docno if "%p" in docno else f"{docno}%p"


def _unknown(docno: object) -> str:
    return f"docno {docno!r} is neither a document nor a chunk of this dataset"


def _retrieved(row: Recorded) -> _Contexts | None:
    """The retrieval in a row, or None; DataError for values that are no lists, or lists of unequal length."""
    try:
        texts, docnos = row.texts("contexts"), row.texts("docnos")
        if texts is not None and docnos is not None and len(texts) != len(docnos):
            name = row.named["contexts"]
            raise BadRow(f"{len(texts)} {name} and {len(docnos)} docnos; they go together one by one")
        bad = [docno for docno in docnos or () if docno.split() != [docno]]
        if bad:
            raise BadRow(f"docno {bad[0]!r} is empty or holds white space")
    except BadRow as error:
        raise DataError(f"{row.place}: {error}") from None
    if texts is None and docnos is None:
        return None
    none: list[str | None] = [None] * len(texts if texts is not None else docnos or ())
    hits = zip(none if texts is None else texts, none if docnos is None else docnos, strict=True)
    return _Contexts(row.place, list(hits))


def _others_retrieve(file: Path, system: str | None) -> bool:
    """Whether the file holds contexts of any other system."""
    if system is None:
        return False
    for entry in recordings.entries(file):
        row = entry.read()
        for own in (row, *(value for value in row.values() if isinstance(value, Mapping))):
            if recordings.recorded_row(own, entry.where, "").values.keys() & {"contexts", "docnos"}:
                return True
    return False


def _is_trec(file: Path) -> bool:
    """Whether a file's first line is of a TREC run and not JSON."""
    if kind(file) in (*PARQUET, *DIVIDED):
        return False
    return first_character(file) not in ("{", "[")


def _hits(lines: pd.DataFrame, rows_of: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """topic, chunk, score, and whether the line names a single chunk; distinct chunks in rank order."""
    with np.errstate(over="ignore"):
        score = lines["score"].to_numpy(dtype=np.float32)  # trec_eval's: further digits part no ties
    later_docno = -pd.factorize(lines["docno"], sort=True)[0]
    ranked = lines.iloc[np.lexsort((later_docno, -score, lines["topic"]))]
    chunks = [rows_of[docno] for docno in ranked["docno"]]
    sizes = np.array([len(rows) for rows in chunks], dtype=np.int64)
    hits = pd.DataFrame(
        {
            "topic": np.repeat(ranked["topic"].to_numpy(), sizes),
            "chunk": np.concatenate([*map(np.array, chunks), np.empty(0)]).astype(np.int64),
            "score": np.repeat(ranked["score"].to_numpy(dtype=float), sizes),
            "whole": np.repeat(sizes == 1, sizes),
        }
    )
    return hits.drop_duplicates(["topic", "chunk"], ignore_index=True)


def read_trec_run(path: Path) -> pd.DataFrame:
    """[qid, docno, score, line] of a run file; DataError names a malformed line or repeated pair.

    Fields are divided by white space. Lines are counted from 1. Empty lines and comments are skipped, such as those of
    ir_metadata: lines that begin with `#`. A line with the fields of a hit is none, since a qid may begin so, too. The
    file may be packed by gzip or bzip2.
    """
    rows: list[tuple[str, str, float, int]] = []
    for number, line in enumerate(every_line(path), 1):
        where = f"{path.name}, line {number}"
        try:
            text = text_of(line)
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
        fields = text.split()
        if not fields or _is_comment(text, fields):
            continue
        if len(fields) != 6:
            raise DataError(f"{where}: {len(fields)} fields; a line is: qid Q0 docno rank score tag")
        try:
            score = float(fields[4])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise DataError(f"{where}: score {fields[4]!r} is no finite number")
        rows.append((fields[0], fields[2], score, number))
    found = pd.DataFrame(rows, columns=["qid", "docno", "score", "line"])
    twice = found.duplicated(["qid", "docno"])
    if twice.any():
        row = found[twice].iloc[0]
        raise DataError(f"{path.name}, line {row['line']}: docno {row['docno']!r} stands twice for qid {row['qid']!r}")
    return found


def _is_comment(line: str, fields: Sequence[str]) -> bool:
    """Whether a line that begins with `#` is no hit, whose rank would be a number."""
    is_hit = len(fields) == 6 and fields[0] != "#" and fields[3].lstrip("-").isdecimal()
    return line.startswith("#") and not is_hit
