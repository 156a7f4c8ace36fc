"""Checks the duties of every retriever over an engine, and compares it with an exact search.

For the tests of retrievers that others write: docs/extending.md shows one.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.retrieval import Retriever

_DEPTH = 10  # of the overlap
_TIED, _TWIN = 6, "Seven grey geese crossed the frozen lake at dawn."
_TEXTS = {
    "alps": "The highest mountain of the Alps is Mont Blanc.",
    "bridge": "The bridge in Linz was built of stone in 1872.",
    "arabic": "تقع مدينة دمشق في جنوب غرب سوريا",
    "chinese": "东京是日本的首都",
    "german": "Übergröße: Äpfel, Öl und Straße.",
    "hindi": "गंगा भारत की सबसे लंबी नदी है",
    "greek": "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας",
    "emoji": "Rockets 🚀 fly to the moon 🌕 and back",
    "combining": "Cafe\u0301 with a combining accent",
    "quotes": "It said \"no\": 100% of {them} \\ all; and 'none'\nof us.",
}
_CORPUS = pd.DataFrame(
    {
        # Tied chunks stand in another order than that of their docnos.
        "docno": [*_TEXTS, *(f"twin{i}" for i in reversed(range(_TIED)))],
        "text": [*_TEXTS.values(), *[_TWIN] * _TIED],
    },
    dtype="str",
)
_TOPICS = pd.DataFrame(
    {
        "qid": [f"of-{docno}" for docno in _TEXTS] + ["tied", "none", "empty", "signs", "missing"],
        "query": [*_TEXTS.values(), _TWIN, "xylographer quetzal", "", "?! …", None],
    }
)


class Failed(AssertionError):
    """A retriever violates a duty of every retriever."""


def check_retriever(
    retriever: Retriever,
    folder: Path,
    tools: Tools,
    lexical: bool = False,
    scored: bool = True,
    another_process: bool = True,
) -> None:
    """Raises Failed, an AssertionError that names all violations, unless the retriever conforms.

    It is checked on a corpus of 16 chunks of many scripts and on one of a single chunk. The checks: a run's columns,
    ranks and order; a question without letters or digits, and one without hits; ties; more hits wanted than there are
    chunks. A topic must find the same alone, again, and where another process opens the index.

    retriever: a dataclass with the field top_k, which finds 20 hits where it is asked for so many. folder:
        an empty one. lexical: whether a question finds nothing where no word of it is in the corpus.
    scored: whether its scores are the engine's; False where the order alone speaks, whose ties are the
        engine's own. another_process: whether that is tried, too; retriever and tools are pickled then.
    """
    who = type(retriever).__name__
    deep, shallow = (dataclasses.replace(retriever, top_k=n) for n in (20, 3))  # type: ignore[type-var]
    many, one = folder / "many", folder / "one"
    run = _made(deep, _CORPUS, many, tools)(_TOPICS)
    found = list(_wrong_form(run, _CORPUS))
    _raise(who, found)  # what follows reads the run
    hits = {str(qid): rows for qid, rows in run.groupby("qid", sort=False)}
    for docno in _TEXTS:
        first = hits.get(f"of-{docno}")
        if first is None or first["docno"].iloc[0] != docno:
            found.append(f"the text of chunk {docno!r} does not find it first")
    for qid in ("empty", "signs", "missing"):
        if qid in hits:
            found.append(f"a question without letters or digits ({qid}) has hits")
    if lexical and "none" in hits:
        found.append("a question of words that no chunk has has hits")
    tied = hits.get("tied", run.iloc[:0])
    first = tied[tied["docno"].str.startswith("twin")]
    if len(first) != _TIED or set(first["rank"]) != set(range(_TIED)):
        found.append("chunks of equal text are not all found before others")
    few = shallow.transformer(_CORPUS, many, tools)(_TOPICS)
    if scored:
        if first["score"].nunique() > 1 or first["docno"].tolist() != sorted(first["docno"]):
            found.append("chunks of equal text are not equal in score and ordered by docno")
        if few[few["qid"].eq("tied")]["docno"].tolist() != sorted(first["docno"])[:3]:
            found.append("of tied chunks at the cut-off not the first by docno are kept")
    if (few.groupby("qid").size() > 3).any():
        found.append("more hits come back than top_k")
    found += _same("asked again", run, deep.transformer(_CORPUS, many, tools)(_TOPICS))
    for row in (0, len(_TEXTS)):
        qid = _TOPICS["qid"].iloc[row]
        alone = deep.transformer(_CORPUS, many, tools)(_TOPICS.iloc[[row]])
        found += _same(f"topic {qid} alone", run[run["qid"] == qid], alone)
    single = _made(deep, _CORPUS.iloc[:1], one, tools)(_TOPICS.iloc[:2])
    wrong = [f"corpus of one chunk: {what}" for what in _wrong_form(single, _CORPUS.iloc[:1])]
    _raise(who, found + wrong)
    if single[single["qid"] == "of-alps"]["docno"].tolist() != ["alps"]:
        found.append("corpus of one chunk: its text does not find it")
    if another_process:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as processes:
            elsewhere = processes.submit(_run_of, deep, _CORPUS, many, tools, _TOPICS).result()
        found += _same("opened by another process", run, elsewhere)
    _raise(who, found)


def compare_to_exact(
    retriever: Retriever,
    exact: Retriever,
    chunks: pd.DataFrame,
    topics: pd.DataFrame,
    folder: Path,
    tools: Tools,
) -> dict[str, float]:
    """Compares a retriever with an exact one over the same chunks.

    Returns overlap_at_10, the mean share of the exact ten best hits that are among the retriever's own ten. score_error
    is the largest difference between the two scores of a pair of topic and chunk; NaN where no pair is in both, and
    without meaning where the two score by other formulas. The times are index_seconds; first_query_seconds, one topic
    with everything opened for it; and queries_per_second of all topics together afterwards. topics is their number.
    folder: an empty one. Both have a top_k of ten or more.
    """
    start = time.perf_counter()
    transformer = _made(retriever, chunks, folder / "own", tools)
    built = time.perf_counter() - start
    best = _made(exact, chunks, folder / "exact", tools)(topics)
    start = time.perf_counter()
    transformer(topics.iloc[:1])
    opened = time.perf_counter() - start
    start = time.perf_counter()
    run = transformer(topics)
    seconds = time.perf_counter() - start
    keys = ["qid", "docno"]
    both = best[best["rank"] < _DEPTH].merge(run[run["rank"] < _DEPTH], on=keys, suffixes=("", "_own"))
    wanted = best[best["rank"] < _DEPTH].groupby("qid").size()
    shares = both.groupby("qid").size().reindex(wanted.index, fill_value=0) / wanted
    apart = best.merge(run, on=keys, suffixes=("", "_own"))
    return {
        "overlap_at_10": float(shares.mean()),
        "score_error": float((apart["score"] - apart["score_own"]).abs().max()),
        "index_seconds": built,
        "first_query_seconds": opened,
        "queries_per_second": len(topics) / seconds,
        "topics": float(len(topics)),
    }


def _raise(who: str, found: list[str]) -> None:
    if found:
        raise Failed(f"{who}: " + "; ".join(found))


def _made(
    retriever: Retriever, chunks: pd.DataFrame, folder: Path, tools: Tools
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The retriever's transformer, over the index that it builds in the folder."""
    folder.mkdir(parents=True)
    retriever.build_index(chunks, folder, tools)
    return retriever.transformer(chunks, folder, tools)


def _run_of(
    retriever: Retriever, chunks: pd.DataFrame, folder: Path, tools: Tools, topics: pd.DataFrame
) -> pd.DataFrame:
    return retriever.transformer(chunks, folder, tools)(topics)


def _wrong_form(run: Any, chunks: pd.DataFrame) -> Iterator[str]:
    """The form errors of a run."""
    try:
        frames.check("run", run, "the run")
    except DataError as error:
        yield str(error)
        return
    if not run["docno"].isin(chunks["docno"]).all():
        yield "a hit is no chunk"
    for qid, rows in run.groupby("qid", sort=False):
        if rows["rank"].tolist() != list(range(len(rows))):
            yield f"topic {qid}: ranks are not 0, 1, 2, … in the order of the rows"
        if (rows["score"].diff() > 0).any():
            yield f"topic {qid}: a lower rank has a higher score"
    known = {qid: row for row, qid in enumerate(_TOPICS["qid"])}
    if not run["qid"].map(known).is_monotonic_increasing:
        yield "topics do not stand in the order in which they were given"


def _same(where: str, run: pd.DataFrame, other: pd.DataFrame) -> Iterator[str]:
    """Whether two runs hold the same hits, with scores equal to float32 precision."""
    ours, theirs = (r.reset_index(drop=True)[["qid", "docno", "rank", "score"]] for r in (run, other))
    if not ours[["qid", "docno", "rank"]].equals(theirs[["qid", "docno", "rank"]]):
        yield f"{where}: another run"
    elif not np.allclose(ours["score"], theirs["score"], rtol=1e-6, atol=1e-6):
        yield f"{where}: other scores"
