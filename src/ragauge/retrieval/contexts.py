"""A run to contexts: a topic's chunks joined in rank order, cut at each token budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Tokenizer
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.retrieval import ContextOrder

# Characters per token that a first look allows for. Chunks further behind are tokenised only for the topics
# that this did not fill.
_CHARS_PER_TOKEN = 8


def build_contexts(
    run: pd.DataFrame,
    chunks: pd.DataFrame | None,
    tokenizer: Tokenizer,
    n_grid: Iterable[int],
    qids: Sequence[str],
    order: ContextOrder | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Frames `layouts` and `prefixes`: the context of every topic at every budget of the grid.

    C is the texts of the topic's chunks joined by one space, in the given order (by rank without one). C_N is the
    prefix of C that ends where its N-th token ends. Without chunks the run is a frame `passages`, which holds the texts
    itself. Where C has fewer than N tokens, C_N is all of C and `n_used` says how many it has. A topic of `qids`
    without hits has empty contexts. `n_chunks` counts the chunks that begin before the end.

    One layout (0) serves the grid and holds the chunks that its largest budget needs. With an order that cuts first
    every budget N has its own layout N: the pieces of C_N by rank, the last one cut at its token, put in order.

    The tokens are those of the joined text, found once per distinct chunk where the tokenizer has a rule for
    that (`stitching`). Raises ConfigError on a grid that holds no or negative numbers, DataError on a run
    that names an unknown chunk or topics that repeat.
    """
    grid = _checked_grid(n_grid)
    cut_first = order is not None and not order.by_rank and order.cut == "first"
    hits = _hits(run, chunks, qids, None if cut_first else order)
    ends, n_used = _prefix_ends(hits, tokenizer, grid)
    if order is not None and cut_first:
        layouts, prefixes = _layout_per_budget(hits, grid, ends, order)
    else:
        layouts, prefixes = _one_layout(hits, ends)
    prefixes["n_used"] = n_used.ravel()
    prefixes.insert(0, "qid", np.repeat(np.array(qids, dtype=object), len(grid)))
    prefixes.insert(1, "n_tokens", np.tile(grid, len(qids)))
    prefixes = prefixes.astype({"qid": "str"})
    return layouts, prefixes[["qid", "n_tokens", "layout", "end", "n_used", "n_chunks"]]


def contexts_at(layouts: pd.DataFrame, prefixes: pd.DataFrame, n: int) -> pd.DataFrame:
    """Frame `contexts`: the text and the chunks of every topic at the budget n, in the order of `prefixes`.

    Raises ConfigError where n is not of the grid.
    """
    here = prefixes[prefixes["n_tokens"] == n]
    if here.empty and len(prefixes):
        grid = ", ".join(map(str, sorted(prefixes["n_tokens"].unique())))
        raise ConfigError(f"n_tokens={n} is not a budget of these contexts: {grid}")
    found = here.merge(layouts, on=["qid", "layout"], how="left", validate="one_to_one")
    pairs = zip(found["text"], found["end"], strict=True)
    chunks = zip(found["docnos"], found["n_chunks"], strict=True)
    return pd.DataFrame(
        {
            "qid": found["qid"],
            "n_tokens": found["n_tokens"],
            "text": pd.Series([text[:end] for text, end in pairs], dtype="str"),
            "n_used": found["n_used"],
            "docnos": pd.Series([list(docnos[:count]) for docnos, count in chunks], dtype=object),
        }
    )


def used_passages(layouts: pd.DataFrame, prefixes: pd.DataFrame, passages: pd.DataFrame, n: int) -> pd.DataFrame:
    """Frame `used_passages`: the passages in every topic's context at the budget n, in order.

    `passages` are those that were laid out: [qid, docno, rank, text], each docno once a topic.
    """
    here = prefixes[prefixes["n_tokens"] == n].merge(layouts, on=["qid", "layout"], how="left", validate="one_to_one")
    rows = []
    for qid, text, end, count, docnos, starts in zip(
        *(here[name] for name in ("qid", "text", "end", "n_chunks", "docnos", "starts")), strict=True
    ):
        # A piece ends at the space before the next one.
        ends = [*(int(start) - 1 for start in starts[1:]), len(text)][:count]
        rows += [
            (qid, n, position, docno, min(stop, int(end)) - int(start))
            for position, (docno, start, stop) in enumerate(zip(docnos[:count], starts, ends, strict=False))
        ]
    found = pd.DataFrame(rows, columns=["qid", "n_tokens", "position", "docno", "chars"])
    found = found.astype({"qid": "str", "docno": "str", "n_tokens": int, "position": int, "chars": int})
    found = found.merge(
        passages[["qid", "docno", "rank", "text"]], on=["qid", "docno"], how="left", validate="one_to_one"
    )
    return frames.check("used_passages", found[list(frames.SCHEMAS["used_passages"].columns)])


def longest_passages(layouts: pd.DataFrame, prefixes: pd.DataFrame, passages: pd.DataFrame, n: int) -> pd.DataFrame:
    """Frame `used_passages` of the largest budget, with its `chars` there as `longest`.

    `chars` are those of the budget n, 0 of a passage that does not stand in its context. Whatever the order,
    a context holds beginnings of the passages of the longest one.
    """
    longest = used_passages(layouts, prefixes, passages, int(prefixes["n_tokens"].max()))
    here = used_passages(layouts, prefixes, passages, n)[["qid", "docno", "chars"]]
    found = longest.rename(columns={"chars": "longest"}).merge(
        here, on=["qid", "docno"], how="left", validate="one_to_one"
    )
    return found.assign(n_tokens=n, chars=found["chars"].fillna(0).astype(int))


def numbered_contexts(contexts: pd.DataFrame, used: pd.DataFrame) -> pd.DataFrame:
    """Frame `contexts` with passages numbered from [1] in the order of the context.

    used: frame `used_passages` of the same budget. A passage is shown as far as it stands in the context; the
    numbers and the empty lines between passages are not counted in the budget.
    """
    texts: dict[str, list[str]] = {}
    columns = (used.sort_values(["qid", "position"])[name] for name in ("qid", "text", "chars"))
    for qid, text, chars in zip(*columns, strict=True):
        own = texts.setdefault(qid, [])
        own.append(f"[{len(own) + 1}] {text[:chars]}")
    shown = ["\n\n".join(texts.get(qid, [])) for qid in contexts["qid"]]
    return contexts.assign(text=pd.Series(shown, contexts.index, dtype="str"))


@dataclass(frozen=True)
class _Hits:
    """The hits of all topics, by topic in rank order; arrays have a row per hit unless noted.

    `first` [topics + 1] are the rows where the topics begin. `start` is the character of C where the chunk
    begins. `total` [topics] is the length of C.
    """

    qids: Sequence[str]
    first: np.ndarray
    docno: np.ndarray
    text: np.ndarray
    start: np.ndarray
    total: np.ndarray

    def chunks_before(self, ends: np.ndarray) -> np.ndarray:
        """Number of the topic's chunks that begin before each of `ends` [topics, n], int64."""
        # A number per hit that rises over all topics, so that one search serves them all.
        base = np.concatenate([[0], np.cumsum(self.total + 1)])
        topic = np.repeat(np.arange(len(self.total)), np.diff(self.first))
        before = np.searchsorted(base[topic] + self.start, base[:-1, None] + ends, side="left")
        return before - self.first[:-1, None]


def _checked_grid(n_grid: Iterable[int]) -> np.ndarray:
    values = list(n_grid)
    whole = [isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in values]
    if not values or not all(whole):
        raise ConfigError(f"n_tokens grid {values!r}: at least one whole number, none below 0, is needed")
    return np.unique(np.array(values, dtype=np.int64))


def _hits(run: pd.DataFrame, chunks: pd.DataFrame | None, qids: Sequence[str], in_order: ContextOrder | None) -> _Hits:
    topics = pd.Index(qids)
    if not topics.is_unique:
        raise DataError(f"topics: qid={topics[topics.duplicated()][0]!r} stands there twice")
    topic = topics.get_indexer(pd.Index(run["qid"]))
    order = np.lexsort((run["rank"].to_numpy(), topic))
    order = order[topic[order] >= 0]
    first = np.searchsorted(topic[order], np.arange(len(qids) + 1))
    if in_order is not None and not in_order.by_rank:
        placed = [start + in_order.arrange(stop - start) for start, stop in pairwise(first.tolist())]
        order = order[np.concatenate([*placed, np.empty(0, dtype=np.int64)])]
    topic, docno = topic[order], run["docno"].to_numpy(dtype=object)[order]
    if chunks is None:
        text = run["text"].to_numpy(dtype=object)[order]
    else:
        at = pd.Index(chunks["docno"]).get_indexer(pd.Index(docno))
        if (at < 0).any():
            row = int(np.flatnonzero(at < 0)[0])
            raise DataError(f"run of qid={qids[topic[row]]!r}: chunk docno={docno[row]!r} is not among the chunks")
        distinct, which = np.unique(at, return_inverse=True)
        text = chunks["text"].iloc[distinct].to_numpy(dtype=object)[which]
    lengths = np.array([len(one) for one in text], dtype=np.int64)

    laid = np.concatenate([[0], np.cumsum(lengths + 1)])  # all topics in a row, a space after every chunk
    start = laid[:-1] - laid[first[topic]]
    total = np.maximum(laid[first[1:]] - laid[first[:-1]] - 1, 0)
    return _Hits(qids, first, docno, text, start, total)


def _prefix_ends(hits: _Hits, tokenizer: Tokenizer, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """End of C_N in C, and its number of tokens: two int64 [topics, len(grid)]."""
    stitching = tokenizer.stitching
    rows = np.flatnonzero(_opens_unit(hits, stitching))
    after = np.append(rows[1:], len(hits.text))
    # The joining space belongs to the unit behind it where tokens may hold a space.
    lead = np.where(stitching == "space", ~np.isin(rows, hits.first), 0)
    base = hits.start[rows] - lead
    unit_at = np.searchsorted(rows, hits.first)  # [topics + 1]
    topic = np.repeat(np.arange(len(hits.qids)), np.diff(unit_at))

    budget = grid[-1]
    sizes = np.zeros(len(rows), dtype=np.int64)  # tokens of a unit; 0 where no budget reaches it
    ends_at = np.zeros(len(rows), dtype=np.int64)  # where a unit's token ends begin in token_ends
    token_ends = np.zeros(0, dtype=np.int64)
    near = hits.start[rows] < _CHARS_PER_TOKEN * budget
    for reach in (near, ~near):
        todo = np.flatnonzero(reach & (_tokens_by_topic(sizes, unit_at) < budget)[topic])
        distinct: dict[str, int] = {}
        which = np.array(
            [distinct.setdefault(" " * lead[u] + " ".join(hits.text[rows[u] : after[u]]), len(distinct)) for u in todo],
            dtype=np.int64,
        )
        # A normaliser may reorder marks: a prefix holds all of its tokens, so its end never falls back.
        found = [np.maximum.accumulate(at[:, 1]) for at in tokenizer.offsets(list(distinct))]
        found_sizes = np.array([len(ends) for ends in found], dtype=np.int64)
        sizes[todo] = found_sizes[which]
        ends_at[todo] = len(token_ends) + (np.cumsum(found_sizes) - found_sizes)[which]
        token_ends = np.concatenate([token_ends, *found])

    tokens = np.concatenate([[0], np.cumsum(sizes)])
    of_topic = _tokens_by_topic(sizes, unit_at)[:, None]
    n_used = np.minimum(grid, of_topic)
    last = tokens[unit_at[:-1], None] + n_used  # number of the last token, counted over all topics
    unit = np.searchsorted(tokens, last, side="left") - 1
    ends = np.where(grid > of_topic, hits.total[:, None], 0)
    inside = (n_used > 0) & (grid <= of_topic)
    u = unit[inside]
    ends[inside] = base[u] + token_ends[ends_at[u] + last[inside] - tokens[u] - 1]
    return ends, n_used


def _tokens_by_topic(sizes: np.ndarray, unit_at: np.ndarray) -> np.ndarray:
    return np.diff(np.concatenate([[0], np.cumsum(sizes)])[unit_at])


def _opens_unit(hits: _Hits, stitching: str) -> np.ndarray:
    """Whether a unit of tokenisation begins with each hit, bool (`ragauge.texts.tokenizers.Stitching`)."""
    if stitching == "free":
        return np.ones(len(hits.text), dtype=bool)
    opens = np.zeros(len(hits.text) + 1, dtype=bool)
    opens[hits.first] = True
    opens = opens[:-1]
    if stitching == "space":
        starts_black = np.array([text[:1].strip() != "" for text in hits.text], dtype=bool)
        ends_black = np.array([text[-1:].strip() != "" for text in hits.text], dtype=bool)
        empty = np.array([text == "" for text in hits.text], dtype=bool)
        opens[1:] |= ~empty[:-1] & (ends_black[:-1] | starts_black[1:])
    return opens


def _one_layout(hits: _Hits, ends: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The common layout of all budgets, and its cut per budget; by topic."""
    # With the chunk that begins right at the end, since the end may lie behind the joining space.
    longest = ends[:, -1:] + (ends[:, -1:] > 0)
    stop = hits.first[:-1] + hits.chunks_before(longest)[:, 0]
    spans = [slice(*span) for span in zip(hits.first[:-1].tolist(), stop.tolist(), strict=True)]
    layouts = _layout_frame(
        np.array(hits.qids, dtype=object),
        np.zeros(len(hits.qids), dtype=np.int64),
        [" ".join(hits.text[span]) for span in spans],
        [hits.docno[span].tolist() for span in spans],
        [hits.start[span].tolist() for span in spans],
    )
    cuts = {"layout": 0, "end": ends.ravel(), "n_chunks": hits.chunks_before(ends).ravel()}
    return layouts, pd.DataFrame(cuts)


def _layout_per_budget(
    hits: _Hits, grid: np.ndarray, ends: np.ndarray, in_order: ContextOrder
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A layout per budget, its pieces in the given order; by topic."""
    counts = hits.chunks_before(ends)
    texts, docnos, starts = [], [], []
    for topic, first in enumerate(hits.first[:-1].tolist()):
        for count, end in zip(counts[topic].tolist(), ends[topic].tolist(), strict=True):
            pieces = hits.text[first : first + count].tolist()
            if pieces:
                pieces[-1] = pieces[-1][: end - hits.start[first + count - 1]]
            order = in_order.arrange(count)
            pieces = [pieces[i] for i in order]
            lengths = np.array([len(piece) + 1 for piece in pieces], dtype=np.int64)
            texts.append(" ".join(pieces))
            docnos.append(hits.docno[first + order].tolist())
            starts.append((np.cumsum(lengths) - lengths).tolist())
    layout = np.tile(grid, len(hits.qids))
    qids = np.repeat(np.array(hits.qids, dtype=object), len(grid))
    cuts = {"layout": layout, "end": [len(text) for text in texts], "n_chunks": counts.ravel()}
    return _layout_frame(qids, layout, texts, docnos, starts), pd.DataFrame(cuts)


def _layout_frame(
    qids: np.ndarray, layout: np.ndarray, texts: list[str], docnos: list[list[str]], starts: list[list[int]]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": pd.Series(qids, dtype="str"),
            "layout": layout,
            "text": pd.Series(texts, dtype="str"),
            "docnos": pd.Series(docnos, dtype=object),
            "starts": pd.Series(starts, dtype=object),
        }
    )
