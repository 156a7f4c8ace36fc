"""Chooses documents to write questions from, in equal shares of their strata."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.synthesis.settings import STRATIFY
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import words

MIN_WORDS = 5  # of the longest sentence of a document that a question can be written from
_QUARTERS = ("shortest", "short", "long", "longest")


@dataclass(frozen=True)
class Document:
    """A document and its stratum, a group of the corpus."""

    docno: str
    title: str
    text: str
    stratum: str


@dataclass(frozen=True)
class Documents:
    """The documents to write questions from, by docno, in drawing order.

    too_short: how many have no sentence of MIN_WORDS words, the empty ones among them.
    by: the criterion of the strata: folder, length, none or a column.
    """

    in_order: Mapping[str, Document]
    too_short: int
    by: str


def drawn(docs: pd.DataFrame, stratify: str, seed: int) -> Documents:
    """The documents of frame `docs`, ordered so that every prefix has each stratum at about its share.

    Systematic sampling: within a stratum the order is random; its documents are then spread evenly over the
    whole order. DataError where no document is long enough.
    """
    by, strata = _strata(docs, stratify)
    rows = list(zip(docs["docno"], docs["title"], docs["text"], strata, strict=True))
    usable = [Document(*row) for row in rows if _longest_sentence(row[2]) >= MIN_WORDS]
    if not usable:
        raise DataError(
            f"none of the {len(rows)} documents has a sentence of {MIN_WORDS} words to write a question from"
        )
    of_stratum: dict[str, list[Document]] = {}
    for document in sorted(usable, key=lambda document: document.docno):
        of_stratum.setdefault(document.stratum, []).append(document)
    placed = []
    for stratum, members in sorted(of_stratum.items()):
        dice = random.Random(f"{seed}/order/{stratum}")
        dice.shuffle(members)
        start = dice.random()
        placed += [((i + start) / len(members), one.docno, one) for i, one in enumerate(members)]
    in_order = {document.docno: document for _, _, document in sorted(placed, key=lambda at: at[:2])}
    return Documents(in_order, len(rows) - len(usable), by)


def window(document: Document, max_chars: int, seed: int, use: int) -> str:
    """The document's text; from a longer one consecutive sentences of at most max_chars, others at every use."""
    text = document.text
    if len(text) <= max_chars:
        return text
    spans = sentence_spans(text)
    first = random.Random(f"{seed}/window/{document.docno}/{use}").randrange(len(spans))
    while first > 0 and spans[-1][1] - spans[first - 1][0] <= max_chars:
        first -= 1  # the last sentences fill the window, too
    start, end = spans[first]
    for _, further in spans[first + 1 :]:
        if further - start > max_chars:
            break
        end = further
    return text[start : min(end, start + max_chars)]


def _longest_sentence(text: str) -> int:
    """The number of words of its longest sentence, counted up to MIN_WORDS."""
    longest = 0
    for start, end in sentence_spans(text):
        longest = max(longest, len(words(text[start:end])))
        if longest >= MIN_WORDS:
            break
    return longest


def _strata(docs: pd.DataFrame, stratify: str) -> tuple[str, list[str]]:
    """The attribute that divides the documents, and the stratum of each."""
    if stratify in ("auto", "folder"):
        folders = [docno.partition("#")[0].rpartition("/")[0] for docno in docs["docno"]]
        if stratify == "folder" or len(set(folders)) > 1:
            return "folder", folders
        stratify = "length"
    if stratify == "length":
        lengths = docs["text"].str.len().to_numpy()
        edges = np.quantile(lengths, [0.25, 0.5, 0.75])
        return "length", [_QUARTERS[i] for i in np.searchsorted(edges, lengths, side="left")]
    if stratify == "none":
        return "none", [""] * len(docs)
    own = [str(name) for name in docs.columns if name not in ("docno", "title", "text")]
    if stratify not in own:
        raise ConfigError(
            f"stratify={stratify!r}: allowed are {', '.join(STRATIFY)}"
            + (f", and columns of the documents: {', '.join(own)}" if own else "")
        )
    return stratify, [str(value) for value in docs[stratify]]
