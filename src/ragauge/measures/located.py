"""Locates evidence in documents and chunks.

A part that names no document gets the docno of the one that holds it, and a lost part is listed. Chunks that hold a
part, or lie in one, are relevant to its topic.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from ragauge.contract.frames import Batches, batches_of, rows_at, rows_where
from ragauge.measures.evidence_trail import documents_like, pair_values
from ragauge.measures.matching import Substring
from ragauge.measures.tokens import code_points, offsets
from ragauge.texts.folding import fold_space, fold_text
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import words

_LISTED = 10  # lost parts that the nearest sentences are looked for
_BLOCK = 4_000_000  # characters of documents or chunks whose hashes are in memory at a time
_WIDEST = 32  # characters of a window, a power of two
_BASE = 0x9E3779B97F4A7C15
_SLOTS = 20  # bits of a window's place in the table
_SHARE = 0.5  # of the shorter of part and chunk: what the two have in common in one piece
# Characters of a common piece that is no chance, unless it is all of the shorter text: in the document that
# the evidence names, and anywhere.
_NEAR, _ANYWHERE = 16, 32


def locate(
    evidence: pd.DataFrame, docs: pd.DataFrame | Batches, fold: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The evidence with missing docnos filled in, and its lost parts.

    A document holds a part that stands in it whole; white space is folded, and the spellings of `fold`
    (`ragauge.texts.folding.FOLDS`). A part without a docno gets that of the one document that holds it, and
    keeps none where several do. A part is lost where the document that it names does not hold it, or, if it
    names none, no document does. Where no document has a text, nothing is lost: a system that brings its own
    texts names documents that are not at hand.

    Lost parts: [qid, part, docno, text, near_docno, near]. Where another document holds the part, that is
    near_docno, and near the part's own text. For the first ten other parts near is the sentence that shares most of
    their words: in the document that the part names, else in documents that share its rarest words. It is missing where
    no word is shared. Time grows with the characters of documents and parts, not with pairs.
    """
    texts, docnos = evidence["text"].tolist(), evidence["docno"].tolist()
    folded_texts = {row: fold_space(fold_text(text, fold)) for row, text in enumerate(texts) if isinstance(text, str)}
    parts = {row: text for row, text in folded_texts.items() if text}
    named = {docno for docno in docnos if isinstance(docno, str)}
    if not parts or not any(text.strip() for batch in batches_of(docs) for text in batch["text"]):
        return evidence, _lost(evidence, {})
    open_rows = dict.fromkeys(parts)
    rows_of: dict[str, list[int]] = {}
    for row in parts:
        rows_of.setdefault(docnos[row], []).append(row)
    own = rows_where(docs, "docno", named) if named else pd.DataFrame({"docno": [], "text": []})
    for docno, text in zip(own["docno"], own["text"], strict=True):
        folded = fold_space(fold_text(text, fold))
        for row in rows_of.get(docno, ()):
            if parts[row] in folded:
                del open_rows[row]
    holders = documents_with({parts[row] for row in open_rows}, docs, fold)
    lost: dict[int, tuple[str | None, str | None]] = {}
    for row in open_rows:
        found = holders[parts[row]]
        if docnos[row] not in named and found:
            docnos[row] = found[0] if len(found) == 1 else None
        else:
            lost[row] = (found[0], texts[row]) if found else (None, None)
    located = evidence.assign(docno=pd.Series(docnos, index=evidence.index, dtype="str"))
    nowhere = [row for row, (docno, _) in lost.items() if docno is None][:_LISTED]
    return located, _lost(located, lost | _nearest({row: texts[row] for row in nowhere}, docnos, own, docs))


def _lost(evidence: pd.DataFrame, near: Mapping[int, tuple[str | None, str | None]]) -> pd.DataFrame:
    found = evidence.iloc[list(near)][["qid", "part", "docno", "text"]].reset_index(drop=True)
    docnos, texts = zip(*near.values(), strict=True) if near else ((), ())
    return found.assign(near_docno=pd.Series(docnos, dtype="str"), near=pd.Series(texts, dtype="str"))


def documents_with(parts: set[str], docs: pd.DataFrame | Batches, fold: tuple[str, ...]) -> Mapping[str, list[str]]:
    """The docnos of the first two documents with each part, in one pass over the documents.

    White space of the parts is folded already, and the spellings of `fold`.

    Every window of 1, 2, 4, ... 32 characters of the documents has a hash. A part is compared where a window
    has the hash of its own middle, the widest that fits into it.
    """
    found: dict[str, list[str]] = {part: [] for part in parts}
    wanted: dict[int, dict[int, list[str]]] = {}  # by width and hash
    for part in parts:
        width = min(1 << (len(part).bit_length() - 1), _WIDEST)
        middle = part[_middle(part, width) :][:width]
        *_, (_, hashes) = _windows(code_points(middle))
        wanted.setdefault(width, {}).setdefault(int(hashes[0]), []).append(part)
    for docnos, text, starts in _blocks(docs, fold) if parts else ():
        for width, hashes in _windows(code_points(text)):
            here = wanted.get(width, {})
            table = np.zeros(1 << _SLOTS if here else 0, dtype=bool)
            table[_slots(np.array(list(here), dtype=np.uint64))] = True
            for at in np.flatnonzero(table[_slots(hashes)]).tolist() if here else ():
                for part in tuple(here.get(int(hashes[at]), ())):
                    begin = at - _middle(part, width)
                    if begin < 0 or not text.startswith(part, begin):
                        continue
                    docno = docnos[bisect_right(starts, begin) - 1]
                    if docno not in found[part]:
                        found[part].append(docno)
                    if len(found[part]) == 2:
                        here[int(hashes[at])].remove(part)
    return found


def _middle(part: str, width: int) -> int:
    # Parts that begin alike, as those of one form do, differ in the middle.
    return (len(part) - width) // 2


def _blocks(docs: pd.DataFrame | Batches, fold: tuple[str, ...]) -> Iterator[tuple[list[str], str, list[int]]]:
    """Blocks of about four million characters of documents: docnos, joined folded texts, start offsets."""
    docnos: list[str] = []
    texts: list[str] = []
    size = 0
    for batch in batches_of(docs):
        for docno, text in zip(batch["docno"], batch["text"], strict=True):
            docnos.append(docno)
            texts.append(fold_space(fold_text(text, fold)) + "\n")  # which stands in no folded part
            size += len(texts[-1])
            if size >= _BLOCK:
                yield docnos, "".join(texts), offsets(map(len, texts))[:-1].tolist()
                docnos, texts, size = [], [], 0
    if docnos:
        yield docnos, "".join(texts), offsets(map(len, texts))[:-1].tolist()


def _windows(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Polynomial hashes of all windows of 1, 2, 4, ... 32 characters: (width, uint64 [windows])."""
    width, base = 1, _BASE
    hashes = codes.astype(np.uint64) + np.uint64(1)
    while len(hashes):
        yield width, hashes
        if width == _WIDEST:
            return
        hashes = hashes[:-width] * np.uint64(base) + hashes[width:]
        width, base = 2 * width, base * base % (1 << 64)


def _slots(hashes: np.ndarray) -> np.ndarray:
    slots: np.ndarray = (hashes * np.uint64(_BASE)) >> np.uint64(64 - _SLOTS)
    return slots


def _nearest(
    parts: Mapping[int, str], docnos: Sequence[object], own: pd.DataFrame, docs: pd.DataFrame | Batches
) -> dict[int, tuple[str | None, str | None]]:
    """By row, the docno and sentence (or as many as the part has) with the largest share of common words."""
    text_of = dict(zip(own["docno"], own["text"], strict=True))
    looked_in = {row: [str(docnos[row])] for row in parts if docnos[row] in text_of}
    free = [row for row in parts if row not in looked_in]
    if free:
        part_of, doc_of = documents_like([parts[row] for row in free], docs)
        there = rows_at(docs, np.unique(doc_of))
        text_of |= dict(zip(there["docno"], there["text"], strict=True))
        for part, doc in zip(part_of.tolist(), doc_of.tolist(), strict=True):
            looked_in.setdefault(free[part], []).append(there["docno"].loc[doc])
    found: dict[int, tuple[str | None, str | None]] = {}
    for row, part in parts.items():
        own_words, best = set(words(part)), 0.0
        size = len(sentence_spans(part))
        found[row] = None, None
        for docno in looked_in.get(row, ()):
            text, spans = text_of[docno], sentence_spans(text_of[docno])
            for first in range(max(1, len(spans) - size + 1)) if spans else ():
                near = text[spans[first][0] : spans[min(first + size, len(spans)) - 1][1]]
                of_near = set(words(near))
                alike = 2 * len(own_words & of_near) / max(1, len(own_words) + len(of_near))
                if alike > best:
                    best, found[row] = alike, (docno, near)
    return found


def chunk_qrels(evidence: pd.DataFrame, chunks: pd.DataFrame) -> pd.DataFrame:
    """The distinct relevant chunks of every topic: qid, docno, relevance.

    A chunk is relevant where it and a part of the evidence have a piece of text in common that is at least half of the
    shorter of the two, white space folded (a space more or less at a cut counts as held). So one of two chunks that a
    part was cut into is relevant, and every chunk that lies within a long part. For a part that names its document,
    that document's chunks are looked at, and the piece has 16 characters or is all of the shorter text. For a part that
    names none all chunks are, and the piece has 32 characters. relevance is the highest of the parts that a chunk
    holds, 1 where the evidence has no such column.
    """
    parts = evidence[evidence["text"].notna()].reset_index(drop=True)
    texts = [fold_space(text) for text in parts["text"]]
    of_chunks = _Folded(chunks)
    named = parts["docno"].notna().to_numpy()
    near = parts.assign(part_row=np.arange(len(parts)))[named][["part_row", "docno"]].merge(
        pd.DataFrame({"docno": chunks["parent"], "chunk_row": np.arange(len(chunks))}), on="docno"
    )[["part_row", "chunk_row"]]
    far = _sharing(np.flatnonzero(~named), texts, of_chunks)
    pairs = pd.concat([near.assign(least=_NEAR), far.assign(least=_ANYWHERE)], ignore_index=True)
    pairs = pairs[_relevant(pairs, texts, of_chunks)]
    relevance = parts["relevance"].to_numpy() if "relevance" in parts else np.ones(len(parts), dtype=np.int64)
    found = pd.DataFrame(
        {
            "qid": parts["qid"].to_numpy(dtype=object)[pairs["part_row"]],
            "docno": chunks["docno"].to_numpy(dtype=object)[pairs["chunk_row"]],
            "relevance": relevance[pairs["part_row"]],
        }
    ).astype({"qid": "str", "docno": "str"})
    return found.groupby(["qid", "docno"], sort=False)["relevance"].max().reset_index()


class _Folded:
    """The chunks' texts with white space folded, each on first use."""

    def __init__(self, chunks: pd.DataFrame) -> None:
        self._texts = chunks["text"].to_numpy(dtype=object)
        self._known: dict[int, str] = {}

    def __getitem__(self, row: int) -> str:
        if row not in self._known:
            self._known[row] = fold_space(self._texts[row])
        return self._known[row]

    def blocks(self) -> Iterator[tuple[list[int], list[str]]]:
        """Row numbers and texts of chunks in blocks, without those shorter than a window."""
        rows: list[int] = []
        texts: list[str] = []
        size = 0
        for row, text in enumerate(map(fold_space, self._texts)):
            if len(text) < _ANYWHERE:
                continue
            rows.append(row)
            texts.append(text)
            size += len(text)
            if size > _BLOCK:
                yield rows, texts
                rows, texts, size = [], [], 0
        if rows:
            yield rows, texts


def _relevant(pairs: pd.DataFrame, parts: Sequence[str], chunks: _Folded) -> np.ndarray:
    """Whether part and chunk have enough in common, bool by row."""
    part_of, chunk_of = pairs["part_row"].to_numpy(), pairs["chunk_row"].to_numpy()
    size = np.array([len(parts[row]) for row in part_of], dtype=np.int64)
    shorter = np.minimum(size, np.array([len(chunks[row]) for row in chunk_of], dtype=np.int64))
    texts = {row: chunks[row] for row in chunk_of.tolist()}
    shares = pair_values(Substring(), parts, texts, part_of, chunk_of)  # pyrefly: ignore[bad-argument-type]
    matched = np.round(shares * size)
    least = np.minimum(pairs["least"].to_numpy(), shorter)
    enough: np.ndarray = (shorter > 0) & (matched >= least) & (matched + 1 >= _SHARE * shorter)
    return enough


def _sharing(rows: np.ndarray, parts: Sequence[str], chunks: _Folded) -> pd.DataFrame:
    """[part_row, chunk_row]: the chunks with 32 contiguous characters in common with one of these parts.

    By the hashes of all windows of 32 characters; a few pairs more may come out, since hashes may collide.
    """
    long = [row for row in rows.tolist() if len(parts[row]) >= _ANYWHERE]
    found = [pd.DataFrame({"part_row": [], "chunk_row": []}, dtype="int64")]
    if long:
        wanted = _hashed(long, [parts[row] for row in long]).rename(columns={"row": "part_row"})
        hashes = np.unique(wanted["hash"].to_numpy())
        for block in chunks.blocks():
            there = _hashed(*block).rename(columns={"row": "chunk_row"})
            there = there[np.isin(there["hash"].to_numpy(), hashes)]
            found.append(wanted.merge(there, on="hash")[["part_row", "chunk_row"]].drop_duplicates())
    return pd.concat(found, ignore_index=True)


def _hashed(rows: Sequence[int], texts: Sequence[str]) -> pd.DataFrame:
    """[hash, row]: a hash of every 32-character window of texts at least that long, and the text's row."""
    ends = offsets(map(len, texts))[1:]
    *_, (width, hashes) = _windows(code_points("".join(texts)))
    start = np.arange(len(hashes))
    text = np.searchsorted(ends, start, side="right")
    inside = start + width <= ends[text]
    return pd.DataFrame({"hash": hashes[inside], "row": np.array(rows)[text[inside]]})
