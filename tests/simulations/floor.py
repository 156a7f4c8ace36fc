"""Scores whose truth is known: of text that has nothing to do with the question, and of another spelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd

from ragauge.datasets import SampleDataset
from ragauge.measures import Substring, corrected_parts, floors
from ragauge.texts.tokenizers import WordTokenizer

GRID = (100, 1000)


@cache
def _sample() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The evidence of the sample dataset, and its documents as chunks."""
    data = SampleDataset().load()
    docs = data.docs[data.docs["text"] != ""]
    chunks = pd.DataFrame({"docno": docs["docno"] + "%p0", "text": docs["text"], "parent": docs["docno"]})
    return data.evidence, chunks


def unrelated(trials: int, seed: int) -> tuple[dict[int, float], dict[int, float]]:
    """Mean raw and corrected score over topics by budget, of random chunks that the floor has not seen.

    `trials` contexts a topic, drawn with another seed than the floor's. The truth is 0.
    """
    evidence, chunks = _sample()
    of_parts = floors(Substring(), evidence, chunks, WordTokenizer(), GRID)
    drawn = [
        floors(Substring(), evidence, chunks, WordTokenizer(), GRID, draws=1, seed=1000 * seed + trial)
        for trial in range(1, trials + 1)
    ]
    corrected = [corrected_parts(one, of_parts) for one in drawn]
    return _by_budget(drawn), _by_budget(corrected)


def _by_budget(frames: list[pd.DataFrame]) -> dict[int, float]:
    every = pd.concat(frames, keys=range(len(frames)), names=["trial"]).reset_index("trial")
    means = every.groupby(["n_tokens", "trial", "qid"])["value"].mean().groupby("n_tokens").mean()
    return {int(n): float(value) for n, value in means.items()}


# What a corpus may write otherwise than the evidence does: the fold for it, what has to stand in the
# evidence, and the other spelling.
SPELLINGS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "curly quotes": ("quotes", r"['\"]", lambda text: text.replace("'", "\u2019").replace('"', "\u201d")),
    "dashes": ("dashes", "-", lambda text: text.replace("-", "\u2013")),
    "soft hyphens, one in every word of eight letters or more": (
        "soft_hyphens",
        r"\w{8}",
        lambda text: re.sub(r"\b(\w{4})(\w{4,})", "\\1\u00ad\\2", text),
    ),
    "accents apart from their letters": ("nfkc", r"[\u00c0-\u024f]", lambda text: _apart(text)),
    "lower case": ("case", r"[A-Z]", str.lower),
}


def _apart(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFD", text)


def loss(spelling: str, folded: bool) -> tuple[float, int]:
    """Mean score that evidence loses where its own document writes it otherwise, and how many parts can.

    The document holds each part whole, so the score would be 1 but for its spelling.
    """
    fold, needed, written = SPELLINGS[spelling]
    evidence, chunks = _sample()
    parts = evidence[evidence["text"].str.contains(needed)]
    documents = chunks.set_index("parent")["text"]
    measure = Substring(fold=(fold,) if folded else ())
    lost = []
    for docno, text in zip(parts["docno"], parts["text"], strict=True):
        plain, context = documents[docno], written(documents[docno])
        whole = measure.score([text], plain, np.array([len(plain)]))[0, 0]
        lost.append(whole - measure.score([text], context, np.array([len(context)]))[0, 0])
    return float(np.mean(lost)), len(lost)
