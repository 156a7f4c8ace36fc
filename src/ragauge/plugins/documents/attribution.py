"""Finds the passages behind an answer by rules on words and vectors, at no cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.component import Embedder
from ragauge.texts.words import FUNCTION_WORDS, words


def own_words(query: str, answer: str) -> frozenset[str]:
    """The answer's content words without the question's.

    Where it has none (yes, no, one of two that the question names) it is those of both: what the question
    asks about.
    """
    of_answer = frozenset(words(answer)) - FUNCTION_WORDS
    of_query = frozenset(words(query)) - FUNCTION_WORDS
    return of_answer - of_query or of_answer | of_query


def credits(
    passages: pd.DataFrame, asked: dict[str, tuple[str, str]], embedder: Embedder | None = None
) -> pd.DataFrame:
    """Per row of `passages` [qid, text, seen]: `held`, the share of the answer's words in it, and `credit`.

    asked: question and answer by qid.
    The credit of a word, 1 / number of words, is divided among the passages of the topic that hold it. Without an
    embedder the shares are equal. With one they are in proportion to the passages' cosine with question and answer (at
    least 0; equal shares where all are 0). Equal shares are the Shapley values of the passages in a game: its worth is
    the share of the answer's words that some passage holds. So the credits of a topic sum to that share.
    """
    seen = passages["seen"].tolist()
    qids = passages["qid"].tolist()
    inside = {text: frozenset(words(text)) for text in dict.fromkeys(seen)}
    wanted = {qid: own_words(*asked[qid]) for qid in dict.fromkeys(qids)}
    rows, numbers = [], []
    word_ids: dict[tuple[str, str], int] = {}
    for place, (qid, text) in enumerate(zip(qids, seen, strict=True)):
        for word in wanted[qid] & inside[text]:
            rows.append(place)
            numbers.append(word_ids.setdefault((qid, word), len(word_ids)))
    row, number = np.array(rows, dtype=np.int64), np.array(numbers, dtype=np.int64)
    sizes = np.array([max(len(wanted[qid]), 1) for qid in qids], dtype=float)
    held = np.bincount(row, minlength=len(qids)) / sizes
    weight = np.ones(len(qids)) if embedder is None else _cosines(passages, asked, embedder)
    together = np.bincount(number, weight[row], minlength=len(word_ids))
    many = np.bincount(number, minlength=len(word_ids))
    shares = np.where(together[number] > 0, weight[row] / np.where(together > 0, together, 1)[number],
                      1 / many[number])  # fmt: skip
    credit = np.bincount(row, shares, minlength=len(qids)) / sizes
    return pd.DataFrame({"held": held, "credit": credit}, index=passages.index)


def rests_on(passages: pd.DataFrame, found: pd.DataFrame, held: float, share: float) -> np.ndarray:
    """bool by row: the passage holds at least `held` of the answer's words, and at least `share` of the highest
    credit among such passages of its topic.
    """
    enough = (found["held"] >= held) & (found["credit"] > 0)
    best = found["credit"].where(enough).groupby(passages["qid"], sort=False).transform("max")
    return (enough & (found["credit"] >= share * best)).to_numpy(dtype=bool)


def _cosines(passages: pd.DataFrame, asked: dict[str, tuple[str, str]], embedder: Embedder) -> np.ndarray:
    """float64 by row: the cosine of the passage with question and answer, negatives set to 0."""
    # Whole passages, whose vectors are mostly kept already, where the context holds the beginning of one.
    texts = list(dict.fromkeys(passages["text"]))
    both = {qid: " ".join(asked[qid]) for qid in dict.fromkeys(passages["qid"])}
    questions = list(dict.fromkeys(both.values()))
    if not texts:
        return np.zeros(0)
    of_text, of_question = embedder.embed(texts), embedder.embed(questions, "query")
    at_text = {text: i for i, text in enumerate(texts)}
    at_question = {text: i for i, text in enumerate(questions)}
    left = np.array([at_text[text] for text in passages["text"]])
    right = np.array([at_question[both[qid]] for qid in passages["qid"]])
    cosines = np.concatenate(
        [
            np.einsum("ij,ij->i", of_text[left[i : i + 65536]], of_question[right[i : i + 65536]])
            for i in range(0, len(left), 65536)
        ]
    )
    return np.maximum(cosines.astype(float), 0.0)
