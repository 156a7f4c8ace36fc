"""Which chunks are relevant to a topic: those that hold a part of its evidence, or lie in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ragauge.contract.protocols import Measure
from ragauge.measures.substring import Substring
from ragauge.texts.folding import fold_space

_SHARE = 0.5  # of the shorter of part and chunk: what the two have in common in one piece
# Characters of a common piece that is no chance, unless it is all of the shorter text: in the document that
# the evidence names, and anywhere.
_NEAR, _ANYWHERE = 16, 32
_BLOCK = 4_000_000  # characters of chunks whose hashes are in memory at a time
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2 to the 64th


def chunk_qrels(evidence: pd.DataFrame, chunks: pd.DataFrame) -> pd.DataFrame:
    """The relevant chunks of every topic, once each: qid, docno, relevance.

    A chunk is relevant where it and a part of the evidence have a piece of text in common that is at least
    half of the shorter of the two (a space more or less at a cut counts as held), white space folded: so one
    of two chunks that a part was cut into is, and every chunk that lies within a long part. Of a part that
    names its document that document's chunks are looked at, and the piece has 16 characters or is all of the
    shorter text; of one that names none all chunks, and the piece has 32 characters. relevance is the highest
    of the parts that a chunk holds, 1 where the evidence has no such column.
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
        """Row numbers and texts of all chunks, some at a time; those that no window fits in are left out."""
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
    """bool by row: whether part and chunk have enough in common."""
    if pairs.empty:
        return np.zeros(0, dtype=bool)
    of_part = [parts[row] for row in pairs["part_row"]]
    of_chunk = [chunks[row] for row in pairs["chunk_row"]]
    size = np.array([len(text) for text in of_part])
    shorter = np.minimum(size, [len(text) for text in of_chunk])
    some = shorter > 0
    matched = np.zeros(len(pairs))
    at = np.flatnonzero(some).tolist()
    measure: Measure = Substring()
    found = measure.score_all(  # type: ignore[attr-defined]
        [[of_part[i]] for i in at], [of_chunk[i] for i in at], [np.array([len(of_chunk[i])]) for i in at]
    )
    matched[some] = [values[0, 0] for values in found]
    matched = np.round(matched * size)
    least = np.minimum(pairs["least"].to_numpy(), shorter)
    enough: np.ndarray = some & (matched >= least) & (matched + 1 >= _SHARE * shorter)
    return enough


def _sharing(rows: np.ndarray, parts: Sequence[str], chunks: _Folded) -> pd.DataFrame:
    """[part_row, chunk_row]: the chunks that have 32 characters in a row in common with one of these parts.

    By the hashes of all windows of 32 characters; a few pairs more may come out, since hashes may collide.
    """
    long = [row for row in rows.tolist() if len(parts[row]) >= _ANYWHERE]
    found = [pd.DataFrame({"part_row": [], "chunk_row": []}, dtype="int64")]
    if long:
        wanted = _windows([parts[row] for row in long]).rename(columns={"text": "part_row"})
        wanted["part_row"] = np.array(long)[wanted["part_row"]]
        hashes = np.unique(wanted["hash"].to_numpy())
        for chunk_rows, texts in chunks.blocks():
            there = _windows(texts)
            there = there[np.isin(there["hash"].to_numpy(), hashes)]
            there = there.assign(chunk_row=np.array(chunk_rows)[there["text"]])
            found.append(wanted.merge(there, on="hash")[["part_row", "chunk_row"]].drop_duplicates())
    return pd.concat(found, ignore_index=True)


def _windows(texts: Sequence[str]) -> pd.DataFrame:
    """[hash, text]: a polynomial hash of every window of 32 characters, and the number of its text."""
    sizes = np.array([len(text) for text in texts])
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(len(codes), _BASE, dtype=np.uint64))
        inverse = np.cumprod(np.full(len(codes), pow(_BASE, -1, 1 << 64), dtype=np.uint64))
        sums = np.concatenate([[np.uint64(0)], np.cumsum((codes.astype(np.uint64) + 1) * powers)])
        hashes = (sums[_ANYWHERE:] - sums[:-_ANYWHERE]) * inverse[: len(codes) - _ANYWHERE + 1]
    ends = np.cumsum(sizes)
    start = np.arange(len(hashes))
    text = np.searchsorted(ends, start, side="right")
    inside = start + _ANYWHERE <= ends[text]
    return pd.DataFrame({"hash": hashes[inside], "text": text[inside]})
