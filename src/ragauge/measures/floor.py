"""The floor of a measure: its value for a topic's evidence in unrelated text of the same budget.

Unrelated text is random chunks of the corpus, laid out as a retriever's are, without those of the topic's own
evidence. A corrected value is a score's position between the floor and 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.component import Tokenizer, Tools
from ragauge.contract.errors import DataError
from ragauge.contract.frames import Batches, batches_of, rows_at
from ragauge.contract.measures import Measure
from ragauge.measures.scores import part_scores
from ragauge.retrieval.contexts import build_contexts

DRAWS = 4  # random contexts a topic: a fifth makes its floor 3 % more certain, and costs as much as the others
_SEED = 0
_CHARS_PER_TOKEN = 8  # of a window of chunks; one that holds too few tokens is made longer
_POOL_WINDOWS, _POOL_CHUNKS = 20, 500  # the chunks that contexts are made of: so many windows, and chunks
_OWN_CHARS = 32  # of a text that stands in another whole by more than chance
_BATCH_CHARS = 50_000_000


def raw(measure: Any) -> Any:
    """The measure without correction, for computing scores and floors."""
    return replace(measure, correct="none") if is_corrected(measure) else measure


def is_corrected(measure: Any) -> bool:
    """Whether a measure's config says `correct: floor`."""
    return is_dataclass(measure) and measure.correct == "floor"


def floors(
    measure: Measure,
    evidence: pd.DataFrame,
    chunks: pd.DataFrame | Batches,
    tokenizer: Tokenizer,
    n_grid: Sequence[int],
    draws: int = DRAWS,
    seed: int = _SEED,
    tools: Tools | None = None,
) -> pd.DataFrame:
    """The floor of every evidence part at every budget: qid, n_tokens, part, value, corrected, n_used.

    `value` is the mean of the measure over `draws` contexts of random chunks. `corrected` is the mean of what
    `corrected_values` makes of each of them by the floor of the others: what the corrected measure gives for
    unrelated text; missing with one draw. `n_used` is how many tokens the shortest of the contexts has: fewer
    than n_tokens where the corpus holds no more unrelated text. A topic without any has no rows.

    Left out are the chunks of the documents that the topic's evidence names. For a part that names none, they are those
    that hold it whole, or lie in it whole (32 characters at least, white space folded). `tools` are for measures that
    take shared models. Raises DataError where one of these did not get an answer.
    """
    grid = np.unique(np.asarray(n_grid, dtype=np.int64))
    rng = np.random.default_rng(seed)
    unrelated = _Unrelated(evidence, chunks, _Remembering(tokenizer), grid, rng)
    found = [_drawn(measure, evidence, unrelated, rng, tools) for _ in range(draws)]
    keys = ["qid", "n_tokens", "part"]
    first = found[0]
    if any(not frame[keys].equals(first[keys]) for frame in found):
        raise AssertionError("the draws differ in their rows")
    values = np.array([frame["value"] for frame in found])
    if np.isnan(values).any():
        raise DataError(
            f"measure.correct=floor: {int(np.isnan(values).sum())} replies on unrelated text failed, and the "
            "correction needs every part's floor; a rerun asks for these alone"
        )
    after = np.full(len(first), np.nan)
    if draws > 1:
        others = (values.sum(axis=0) - values) / (draws - 1)
        after = corrected_values(values, np.clip(others, 0, 1)).mean(axis=0)
    return first[keys].assign(
        value=values.mean(axis=0),
        corrected=after,
        n_used=np.min([frame["n_used"] for frame in found], axis=0) if len(first) else 0,
    )


def corrected_values(values: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """(value - floor) / (1 - floor) within [0, 1]; 1 wherever the value is 1, whatever its floor."""
    room = 1 - floor
    gain = np.divide(values - floor, room, out=np.zeros_like(values, dtype=float), where=room > 0)
    return np.where(values >= 1, 1.0, np.clip(gain, 0, 1))


def corrected_parts(parts: pd.DataFrame, of_parts: pd.DataFrame) -> pd.DataFrame:
    """The rows of `part_scores`, each value corrected by the floor of its part at its budget.

    Raises DataError for a topic whose floor is not known.
    """
    keys = ["qid", "n_tokens", "part"]
    both = parts.merge(of_parts[[*keys, "value"]].rename(columns={"value": "floor"}), on=keys, how="left")
    unknown = both[both["floor"].isna()]
    if len(unknown):
        raise DataError(
            f"measure.correct=floor: {unknown['qid'].nunique()} topic(s) have no floor, such as "
            f"qid={unknown['qid'].iloc[0]!r}: every chunk of the corpus is of their own evidence; allowed "
            "there is measure.correct=none"
        )
    values = corrected_values(both["value"].to_numpy(float), both["floor"].to_numpy(float))
    return parts.assign(value=values)


def floor_means(of_parts: pd.DataFrame) -> pd.DataFrame:
    """The floor over topics: n_tokens, value, corrected, topics, short, n_used; a row per budget.

    A topic's floor is the mean over its parts. `topics` counts those that have one, `short` those whose
    contexts have fewer than n_tokens tokens; `n_used` is the fewest.
    """
    by_topic = of_parts.groupby(["n_tokens", "qid"])
    of_topic = by_topic.agg({"value": "mean", "corrected": "mean", "n_used": "min"}).reset_index()
    of_topic["short"] = of_topic["n_used"] < of_topic["n_tokens"]
    found = of_topic.groupby("n_tokens", as_index=False).agg(
        value=("value", "mean"),
        corrected=("corrected", "mean"),
        topics=("qid", "size"),
        short=("short", "sum"),
        n_used=("n_used", "min"),
    )
    return found.astype({"n_tokens": "int64"})


def short_of_text(means: pd.DataFrame, n_tokens: int, n_topics: int) -> str | None:
    """A sentence if the corpus holds too little unrelated text for the floor at n_tokens; else None."""
    here = means[means["n_tokens"] == n_tokens]
    found, short = int(here["topics"].sum()), int(here["short"].sum())
    if found < n_topics:
        return (
            f"{n_topics - found} of {n_topics} topics have no floor of the score: the corpus holds nothing "
            "but their evidence's documents"
        )
    if short:
        return (
            f"the score's floor at N={n_tokens} is that of less text for {short} of {n_topics} topics: the "
            f"corpus holds {here['n_used'].iloc[0]} tokens outside of their evidence's documents"
        )
    return None


class _Remembering(Tokenizer):
    """A tokenizer that caches the tokens of each chunk over contexts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        vars(self).update(name=tokenizer.name, stitching=tokenizer.stitching)
        self._tokenizer = tokenizer
        self._known: dict[str, np.ndarray] = {}

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        if self.stitching == "joined":  # these are whole contexts
            return self._tokenizer.offsets(texts)
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known |= dict(zip(new, self._tokenizer.offsets(new), strict=True)) if new else {}
        return [self._known[text] for text in texts]


class _Own:
    """The chunks with a topic's own evidence; topics are numbered as in `qids`."""

    def __init__(self, evidence: pd.DataFrame, qids: np.ndarray) -> None:
        topic = pd.Index(qids).get_indexer(pd.Index(evidence["qid"]))
        named = evidence["docno"].notna().to_numpy()
        self._docs = pd.Index(evidence.loc[named, "docno"].unique())
        self._pairs = topic[named] * len(self._docs) + self._docs.get_indexer(pd.Index(evidence.loc[named, "docno"]))
        self._texts: dict[int, list[str]] = {}
        for number, text in zip(topic[~named].tolist(), evidence.loc[~named, "text"], strict=True):
            self._texts.setdefault(number, []).append(_fold(text))

    def __call__(self, topic: np.ndarray, chunks: pd.DataFrame) -> np.ndarray:
        """Whether each row's chunk is of the topic's evidence, bool."""
        doc = self._docs.get_indexer(pd.Index(chunks["parent"]))
        own = (doc >= 0) & np.isin(topic * len(self._docs) + doc, self._pairs)
        for row in np.flatnonzero(np.isin(topic, list(self._texts))).tolist():
            chunk = _fold(chunks["text"].iloc[row])
            own[row] |= any(_holds(chunk, part) or _holds(part, chunk) for part in self._texts[int(topic[row])])
        return own


def _lengths(texts: pd.Series) -> np.ndarray:
    """Numbers of characters of the texts, int64."""
    return texts.astype("str").str.len().to_numpy(dtype=np.int64)


def _fold(text: str) -> str:
    return " ".join(text.split())


def _holds(text: str, other: str) -> bool:
    return len(other) >= _OWN_CHARS and other in text


class _Unrelated:
    """Contexts of random chunks: a topic's are taken from the pool cyclically, from some chunk on.

    The pool is the chunks of a small corpus in random order, of a large one as many as many topics need.
    """

    def __init__(
        self,
        evidence: pd.DataFrame,
        chunks: pd.DataFrame | Batches,
        tokenizer: Tokenizer,
        grid: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.qids = evidence["qid"].drop_duplicates().to_numpy(dtype=object)
        self.window = _CHARS_PER_TOKEN * int(grid[-1])  # characters that hold the largest budget as a rule
        self._own, self._tokenizer, self._grid = _Own(evidence, self.qids), tokenizer, grid
        sizes = np.concatenate([_lengths(some["text"]) for some in batches_of(chunks)])
        order = rng.permutation(len(sizes))
        chars = np.cumsum(sizes[order])
        enough = int(np.searchsorted(chars, _POOL_WINDOWS * self.window)) + 1
        self.pool = rows_at(chunks, order[: max(enough, _POOL_CHUNKS)]).reset_index(drop=True)
        lengths = _lengths(self.pool["text"])
        self._chars = np.concatenate([[0], np.cumsum(np.concatenate([lengths, lengths]))])

    def contexts(self, topics: np.ndarray, offsets: np.ndarray) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """Frames layouts and prefixes of topics in blocks, each from its offset in the pool on.

        A window that holds fewer tokens than the largest budget is made longer, to all of the pool in the
        end. A topic that has no unrelated text is in none of them.
        """
        window, pool = self.window, self.pool
        while len(topics) and len(pool):
            stop = np.searchsorted(self._chars, self._chars[offsets] + window) + 1
            counts = np.minimum(stop - offsets, len(pool))
            topic = np.repeat(topics, counts)
            rank = np.arange(len(topic)) - np.repeat(np.cumsum(counts) - counts, counts)
            chunk = (np.repeat(offsets, counts) + rank) % len(pool)
            kept = ~self._own(topic, pool.iloc[chunk])
            docnos = pool["docno"].to_numpy(dtype=object)[chunk[kept]]
            run = pd.DataFrame({"qid": self.qids[topic[kept]], "docno": docnos, "rank": rank[kept]})
            qids = self.qids[topics]
            layouts, prefixes = build_contexts(run, pool, self._tokenizer, self._grid, qids.tolist())
            used = prefixes["n_used"].to_numpy().reshape(len(topics), len(self._grid))[:, -1]
            done = (used >= self._grid[-1]) | (counts == len(pool))
            ready = qids[done & np.isin(topics, topic[kept])]
            if len(ready):
                yield layouts[layouts["qid"].isin(ready)], prefixes[prefixes["qid"].isin(ready)]
            topics, offsets, window = topics[~done], offsets[~done], 4 * window


def _drawn(
    measure: Measure,
    evidence: pd.DataFrame,
    unrelated: _Unrelated,
    rng: np.random.Generator,
    tools: Tools | None,
) -> pd.DataFrame:
    """One draw: the rows of `part_scores` with n_used."""
    n_topics = len(unrelated.qids)
    offsets = rng.integers(max(len(unrelated.pool), 1), size=n_topics)
    size = max(1, _BATCH_CHARS // max(unrelated.window, 1))
    found = [
        part_scores(measure, evidence, layouts, prefixes, tools).merge(
            prefixes[["qid", "n_tokens", "n_used"]], on=["qid", "n_tokens"], validate="many_to_one"
        )
        for first in range(0, n_topics, size)
        for layouts, prefixes in unrelated.contexts(
            np.arange(n_topics)[first : first + size], offsets[first : first + size]
        )
    ]
    if not found:
        dtypes = {"qid": "str", "n_tokens": "int64", "part": "int64", "value": "float64", "n_used": "int64"}
        return pd.DataFrame({column: pd.Series(dtype=dtype) for column, dtype in dtypes.items()})
    return pd.concat(found).sort_values(["qid", "n_tokens", "part"], kind="stable", ignore_index=True)
