"""The share of every evidence part in the output of each step of a pipeline.

It applies the measure of contexts to whole documents, single chunks, and the joined hits of a ranking.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ragauge.contract.frames import Batches, batches_of, count_rows, rows_at, rows_where
from ragauge.contract.measures import Measure
from ragauge.measures.matching import Subsequence, Substring

_WHOLE = 1.0
_SEARCHED_DOCS = 5  # documents that a part is looked for in where its own document does not hold it
_RARE_WORDS = 8  # of a part, by which these documents are found
_WORD = re.compile(r"\w+")


def in_corpus(
    measure: Measure, evidence: pd.DataFrame, docs: pd.DataFrame | Batches, chunks: pd.DataFrame | Batches | None
) -> pd.DataFrame:
    """Every evidence part in the documents and in their chunks: qid, part, text, corpus, best_chunk, holders.

    corpus: the measure's highest value in one whole document, in [0, 1]; missing without documents.
    best_chunk: its highest value in one chunk; missing without `chunks`. holders: docnos of the chunks that
    have all of the part, with spaces between.

    It looks in the document that the evidence names. Where that lacks some of the part, or none is named, it looks in
    the five documents that share most of its eight rarest words. It looks in the chunks of these, too. A part that
    stands in others alone, in other words, is not found.
    """
    found = evidence[["qid", "part", "text"]].reset_index(drop=True)
    parts = evidence["text"].tolist()
    n_docs = count_rows(docs)
    there = rows_where(docs, "docno", evidence["docno"].dropna().unique())
    row = pd.Index(there["docno"]).get_indexer(pd.Index(evidence["docno"]))
    own = np.append(there.index.to_numpy(dtype=np.int64), -1)[row]
    has_own = np.flatnonzero(own >= 0)
    part_of, doc_of = has_own, own[has_own]
    texts = dict(zip(there.index, there["text"], strict=True))
    values = pair_values(measure, parts, texts, part_of, doc_of)
    corpus = _highest(part_of, values, len(parts))
    lacking = np.flatnonzero(~(corpus >= _WHOLE))
    if len(lacking) and n_docs:
        more_parts, more_docs = documents_like([parts[i] for i in lacking], docs)
        more_parts = lacking[more_parts]
        known = own[more_parts] == more_docs
        more_parts, more_docs = more_parts[~known], more_docs[~known]
        more = rows_at(docs, np.setdiff1d(more_docs, there.index))
        there = pd.concat([there, more])
        texts |= dict(zip(more.index, more["text"], strict=True))
        found_there = pair_values(measure, parts, texts, more_parts, more_docs)
        part_of, doc_of = np.append(part_of, more_parts), np.append(doc_of, more_docs)
        corpus = _highest(part_of, np.append(values, found_there), len(parts))
    if n_docs:
        corpus = np.nan_to_num(corpus)
    found["corpus"] = corpus
    names = pd.Index(there["docno"])
    number = pd.Index(there.index).get_indexer(pd.Index(doc_of))
    best, holders = _in_chunks(measure, parts, names, chunks, part_of, number)
    return found.assign(best_chunk=best, holders=pd.Series([" ".join(one) for one in holders], dtype="str"))


def joined(
    measure: Measure,
    evidence: pd.DataFrame,
    hits: pd.DataFrame,
    chunks: pd.DataFrame | Batches | None = None,
    holders: pd.Series | None = None,
) -> np.ndarray:
    """The measure of every part in all texts of its topic, joined in rank order, float64 [evidence rows].

    `hits` [qid, docno, rank] are a run of `chunks` [docno, text]; without chunks they are passages, which
    have the text themselves. `holders` are those of `in_corpus`, row by row as the evidence. A part that a hit of its
    topic holds whole has the value 1 without a look at the others. 0 without hits.
    """
    values = np.zeros(len(evidence))
    texts = evidence["text"].to_numpy(dtype=object)
    found_topic, topics = pd.factorize(hits["qid"])
    topic = pd.Index(topics).get_indexer(pd.Index(evidence["qid"]))  # of every part; -1: none has hits
    found_doc, docnos = pd.factorize(hits["docno"])
    if holders is not None:
        values[_held(topic, holders, found_topic, found_doc, docnos)] = _WHOLE
    rows_of: dict[int, list[int]] = {}
    for row in np.flatnonzero((values < _WHOLE) & (topic >= 0)).tolist():
        rows_of.setdefault(int(topic[row]), []).append(row)
    is_open = np.zeros(len(topics), dtype=bool)
    is_open[list(rows_of)] = True
    near = np.flatnonzero(is_open[found_topic])
    near = near[np.lexsort((hits["rank"].to_numpy()[near], found_topic[near]))]
    if chunks is None:
        of_hits = hits["text"].iloc[near].to_numpy(dtype=object)
    else:
        of_hits = _texts_of(found_doc[near], docnos, chunks)
    contexts, of_context = [], []
    for number, text in _joined_texts(found_topic[near], of_hits):
        rows = [row for row in rows_of[number] if not _stands(measure, texts[row], text, values, row)]
        if rows:
            contexts.append(text)
            of_context.append(rows)
    found = measure.score_all(
        [[texts[row] for row in rows] for rows in of_context],
        contexts,
        [np.array([len(text)]) for text in contexts],
    )
    for rows, of_rows in zip(of_context, found, strict=True):
        values[rows] = of_rows[:, 0]
    return values


def _texts_of(found_doc: np.ndarray, docnos: pd.Index, chunks: pd.DataFrame | Batches) -> np.ndarray:
    """The text of every hit; found_doc, int64 [hits], is its chunk's index in `docnos`."""
    needed, which = np.unique(found_doc, return_inverse=True)
    there = rows_where(chunks, "docno", docnos[needed].tolist())
    at = pd.Index(there["docno"]).get_indexer(pd.Index(docnos[needed]))
    texts: np.ndarray = there["text"].to_numpy(dtype=object)[at][which]
    return texts


def _joined_texts(topic: np.ndarray, texts: np.ndarray) -> Iterator[tuple[int, str]]:
    """Every topic with its adjacent texts joined in order by spaces."""
    changes = np.flatnonzero(topic[1:] != topic[:-1]) + 1
    for start, stop in pairwise([0, *changes.tolist(), len(topic)]) if len(topic) else ():
        yield int(topic[start]), " ".join(texts[start:stop])


def _stands(measure: Measure, part: str, text: str, values: np.ndarray, row: int) -> bool:
    """Whether the text contains the part verbatim, which is recorded as the value 1."""
    if _is_contiguous(measure) and part.strip() in text:
        values[row] = _WHOLE
        return True
    return False


def _held(
    topic: np.ndarray, holders: pd.Series, found_topic: np.ndarray, found_doc: np.ndarray, docnos: pd.Index
) -> np.ndarray:
    """Whether a hit of the topic is among the part's holders, bool by evidence row.

    topic: int64 [evidence rows], found_topic: int64 [hits], of one numbering of topics; found_doc: int64
    [hits], the place of the hit among `docnos`.
    """
    of_parts = pc.split_pattern(pa.array(holders, type=pa.large_string()), " ")  # no docno holds white space
    rows = np.repeat(np.arange(len(topic)), pc.list_value_length(of_parts).to_numpy())
    doc = docnos.get_indexer(pc.list_flatten(of_parts).to_pylist())
    there = (doc >= 0) & (topic[rows] >= 0)
    rows, doc = rows[there], doc[there]
    wanted = pd.Series(topic[rows] * len(docnos) + doc)
    held = np.zeros(len(topic), dtype=bool)
    held[rows[wanted.isin(found_topic * len(docnos) + found_doc)]] = True
    return held


def _in_chunks(
    measure: Measure,
    parts: Sequence[str],
    docnos: pd.Index,
    chunks: pd.DataFrame | Batches | None,
    part_of: np.ndarray,
    doc_of: np.ndarray,
) -> tuple[np.ndarray, list[list[str]]]:
    """The highest value of every part in a chunk of its documents, and the chunks with value 1."""
    holders: list[list[str]] = [[] for _ in parts]
    if chunks is None:
        return np.full(len(parts), np.nan), holders
    chunks = rows_where(chunks, "parent", docnos)
    parent = docnos.get_indexer(pd.Index(chunks["parent"]))
    order = np.argsort(parent, kind="stable")
    start = np.searchsorted(parent[order], doc_of, side="left")
    counts = np.searchsorted(parent[order], doc_of, side="right") - start
    pair_part = np.repeat(part_of, counts)
    within = np.arange(len(pair_part)) - np.repeat(np.cumsum(counts) - counts, counts)
    pair_chunk = order[np.repeat(start, counts) + within]
    texts = chunks["text"].to_numpy(dtype=object)
    values = pair_values(measure, parts, texts, pair_part, pair_chunk)
    names = chunks["docno"].to_numpy(dtype=object)
    for pair in np.flatnonzero(values >= _WHOLE).tolist():
        holders[pair_part[pair]].append(names[pair_chunk[pair]])
    return np.nan_to_num(_highest(pair_part, values, len(parts))), holders


def pair_values(
    measure: Measure,
    parts: Sequence[str],
    texts: np.ndarray | Mapping[int, str],
    part_of: np.ndarray,
    text_of: np.ndarray,
) -> np.ndarray:
    """The measure of part part_of[i] in text text_of[i], float64 [pairs]."""
    values = np.zeros(len(part_of))
    pairs = list(zip(part_of.tolist(), text_of.tolist(), strict=True))
    if _is_contiguous(measure):
        stripped = [part.strip() for part in parts]
        values[[stripped[p] in texts[t] for p, t in pairs]] = _WHOLE
    todo = [i for i in np.flatnonzero(values < _WHOLE).tolist() if texts[pairs[i][1]]]
    found = measure.score_all(
        [[parts[pairs[i][0]]] for i in todo],
        [texts[pairs[i][1]] for i in todo],
        [np.array([len(texts[pairs[i][1]])]) for i in todo],
    )
    values[todo] = [float(value[0, 0]) for value in found]
    return values


def _is_contiguous(measure: Measure) -> bool:
    """Whether a part that a text contains verbatim has the value 1."""
    return isinstance(measure, (Substring, Subsequence))


def _highest(of: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """The highest value of each, float64 [n]; NaN without any."""
    found = np.full(n, -np.inf)
    np.maximum.at(found, of, values)
    return np.where(np.isneginf(found), np.nan, found)


def documents_like(parts: Sequence[str], docs: pd.DataFrame | Batches) -> tuple[np.ndarray, np.ndarray]:
    """The documents that share most of each part's rarest words: part numbers, document numbers."""
    words_of = [set(_WORD.findall(part.casefold())) for part in parts]
    vocabulary = set().union(*words_of) if words_of else set()
    holding = {word: array("q") for word in vocabulary}
    texts = (text for some in batches_of(docs) for text in some["text"])
    for number, text in enumerate(texts):
        for word in vocabulary.intersection(_WORD.findall(text.casefold())):
            holding[word].append(number)
    of_parts: list[int] = []
    documents: list[int] = []
    for number, words in enumerate(words_of):
        rare = sorted((word for word in words if holding[word]), key=lambda w: (len(holding[w]), w))
        shared: Counter[int] = Counter()
        for word in rare[:_RARE_WORDS]:
            shared.update(holding[word])
        best = sorted(shared, key=lambda doc: (-shared[doc], doc))[:_SEARCHED_DOCS]
        of_parts += [number] * len(best)
        documents += best
    return np.array(of_parts, dtype=np.int64), np.array(documents, dtype=np.int64)
