"""An LLM of tests that quotes whole sentences of the context."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.answering import answer_frame
from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.contract.answering import Generator
from ragauge.contract.checks import require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.replies import Reply
from ragauge.texts.sentences import sentence_spans

_ROWS_AT_ONCE = 1 << 16  # pairs of vectors that are multiplied at a time: 100 MB of 384 floats each

_WHOLE = re.compile(r"""[.!?…。！？]["'”’»」』）)\]]*\Z""")  # how a sentence that was not cut ends


@dataclass(frozen=True)
class Quoting(Generator):
    """Answers with the sentences of the context that are most like the question.

    n_sentences: at most so many, in the order of the context.
    threshold: cosine similarity to the question in [-1, 1] that a sentence must reach; where none does, the
        answer is LACK_OF_INFORMATION, and so it is for a context without text.
    """

    component: ClassVar[str] = "quoting"
    version: ClassVar[int] = 1
    kind: ClassVar[str] = "embedded"
    uses: ClassVar[frozenset[str]] = frozenset({"embedder"})

    n_sentences: int = 3
    threshold: float = 0.5

    def __post_init__(self) -> None:
        require_count("llm.n_sentences", self.n_sentences)
        require_number("llm.threshold", self.threshold, -1, 1)

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; every status is ok, no tokens and no cost."""
        queries = contexts["qid"].map(topics.set_index("qid")["query"]).tolist()
        sentences = {text: _sentences(text) for text in contexts["text"].unique()}
        of_rows = [sentences[text] for text in contexts["text"]]
        asked = list(dict.fromkeys(queries))
        texts = list(dict.fromkeys(s for found in sentences.values() for s in found))
        number = {text: i for i, text in enumerate(texts)}
        number_asked = {text: i for i, text in enumerate(asked, len(texts))}
        vectors = np.concatenate([tools.embedder.embed(texts), tools.embedder.embed(asked, "query")])
        row = np.repeat(np.arange(len(of_rows)), [len(found) for found in of_rows])
        sentence = np.array([number[s] for found in of_rows for s in found], dtype=np.int64)
        query = np.array([number_asked[q] for q in queries], dtype=np.int64)[row]
        best = _best(row, _cosines(vectors, sentence, query), self.n_sentences, self.threshold)
        chosen: list[list[str]] = [[] for _ in of_rows]
        for i in best:
            chosen[row[i]].append(texts[sentence[i]])
        return answer_frame(contexts, [Reply(" ".join(found) or LACK_OF_INFORMATION) for found in chosen])


def _sentences(text: str) -> list[str]:
    """The distinct whole sentences of a text, in order, white space folded; chunks that overlap repeat some.

    The budget mostly cuts the last sentence; what is left of it is not quoted where there are others.
    """
    found = [" ".join(text[a:b].split()) for a, b in sentence_spans(text)]
    if len(found) > 1 and not _WHOLE.search(found[-1]):
        found.pop()
    return list(dict.fromkeys(found))


def _cosines(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """float64 [pairs]: inner products of the vectors numbered left[i] and right[i]."""
    cosines = np.empty(len(left))
    for start in range(0, len(left), _ROWS_AT_ONCE):
        at = slice(start, start + _ROWS_AT_ONCE)
        cosines[at] = np.einsum("ij,ij->i", vectors[left[at]], vectors[right[at]])
    return cosines


def _best(row: np.ndarray, cosine: np.ndarray, n: int, threshold: float) -> np.ndarray:
    """Positions of the n largest cosines of each row at or above the threshold; ties in order of position."""
    order = np.lexsort((-cosine, row))
    first = np.searchsorted(row, row)  # rows are ascending: where each begins
    rank = np.arange(len(row)) - first[order]
    return np.sort(order[(rank < n) & (cosine[order] >= threshold)])
