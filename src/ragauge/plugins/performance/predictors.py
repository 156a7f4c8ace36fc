"""`answers=[qpp]`: query performance predictors per topic, which need no evidence and no answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT
from ragauge.contract.checks import require_count, require_flag, require_number
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresRanking
from ragauge.measures.questions import content_words
from ragauge.plugins.performance.overlap import rank_biased_overlap
from ragauge.retrieval.passages import standing
from ragauge.texts.words import words

_NONE = "none"  # the status where there is nothing to measure: ranks alone, a score below 0, a question without a word


def _info(name: str, label: str, of_scores: bool) -> AnswerMeasureInfo:
    of: Literal["ranking", "context"] = "ranking" if of_scores else "context"
    return AnswerMeasureInfo(name, label, "higher", "score", "Without evidence", of, False, False)


OF_SCORES = tuple(
    _info(name, label, True)
    for name, label in (
        ("top_score", "first score"),
        ("score_drop", "first score less the last"),
        ("nqc", "NQC"),
        ("wig", "WIG"),
        ("smv", "SMV"),
    )
)
OF_TEXTS = (
    _info("question_coverage", "question's words in the context", False),
    _info("order_agreement", "agreement of orders", False),
)
OF_VECTORS = (
    _info("question_similarity", "similarity of the nearest passage", False),
    _info("mean_similarity", "mean similarity of the passages", False),
)


@dataclass(frozen=True)
class QueryPerformance(MeasuresRanking):
    """Predictors of query performance, of the `depth` first hits and of the passages in the context.

    Of the scores, each standardised over the topics of the job (mean 0, standard deviation 1), so that retrievers with
    scores of any scale are alike; 0 throughout where all topics are equal:
    top_score, score_drop: the first score, and the first less the last.
    nqc, wig, smv: see `nqc`, `wig`, `smv`.
    Of the texts that stand in the context, as they are:
    question_coverage: the share of the question's words, without function words, that the context holds, in [0, 1].
    order_agreement: rank-biased overlap of the passages' order with the order by words, and with that by cosine (the
        mean of the two), in [0, 1].
    question_similarity, mean_similarity: the highest and the mean cosine of question and passage, in [-1, 1].
    vectors: whether the embedder is used. Missing where the topic has no passage or the question no word, and of the
    scores where a system brings ranks alone.
    """

    component = "qpp"
    version = 3

    depth: int = 10
    persistence: float = 0.9
    vectors: bool = True

    def __post_init__(self) -> None:
        require_count("answers.qpp.depth", self.depth, least=2)
        require_number("answers.qpp.persistence", self.persistence, 0.001, 0.999)
        require_flag("answers.qpp.vectors", self.vectors)

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """Labels of the values."""
        return (*OF_SCORES, *OF_TEXTS, *(OF_VECTORS if self.vectors else ()))

    @property
    def uses(self) -> frozenset[str]:
        """The embedder, if vectors count."""
        return frozenset({"embedder"} if self.vectors else ())

    def measure_ranking(
        self, topics: pd.DataFrame, run: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values`, a row per topic and predictor."""
        found = self._of_scores(topics, run) | self._of_texts(topics, standing(passages), tools)
        parts = []
        for info in self.infos:
            values = [found[info.name].get(qid, NO_CONTEXT) for qid in topics["qid"]]
            known = [not isinstance(value, str) for value in values]
            parts.append(
                pd.DataFrame(
                    {
                        "qid": topics["qid"].to_numpy(),
                        "n_tokens": n_tokens,
                        "measure": info.name,
                        "value": [value if ok else np.nan for value, ok in zip(values, known, strict=True)],
                        "status": ["ok" if ok else value for value, ok in zip(values, known, strict=True)],
                    }
                ).astype({"qid": "str", "n_tokens": "int64", "measure": "str", "value": "float64", "status": "str"})
            )
        return pd.concat(parts, ignore_index=True)

    def _of_scores(self, topics: pd.DataFrame, run: pd.DataFrame) -> dict[str, dict[str, float | str]]:
        ranked = run.sort_values(["qid", "rank"], kind="stable")
        ranked = ranked[ranked["qid"].isin(topics["qid"])]
        lists: Mapping[str, np.ndarray] = {
            str(qid): own.to_numpy(dtype=float) for qid, own in ranked.groupby("qid", sort=False)["score"]
        }
        if gives_ranks_alone(list(lists.values())):
            return {info.name: dict.fromkeys(lists, _NONE) for info in OF_SCORES}
        length = {qid: max(len(words(query)), 1) for qid, query in zip(topics["qid"], topics["query"], strict=True)}
        raw: dict[str, dict[str, float]] = {
            "top_score": {qid: float(scores[0]) for qid, scores in lists.items()},
            "score_drop": {qid: float(scores[0] - scores[: self.depth].min()) for qid, scores in lists.items()},
            "nqc": {qid: nqc(scores, self.depth) for qid, scores in lists.items()},
            "wig": {qid: wig(scores, self.depth, length[qid]) for qid, scores in lists.items()},
            "smv": {qid: smv(scores, self.depth) for qid, scores in lists.items()},
        }
        return {name: _standardised(values) for name, values in raw.items()}

    def _of_texts(
        self, topics: pd.DataFrame, passages: pd.DataFrame, tools: Tools
    ) -> dict[str, dict[str, float | str]]:
        questions = dict(zip(topics["qid"], topics["query"], strict=True))
        passages = passages[passages["qid"].isin(questions)].sort_values(["qid", "place"], kind="stable")
        cosines = self._cosines(questions, passages, tools) if self.vectors and len(passages) else {}
        found: dict[str, dict[str, float | str]] = {info.name: {} for info in (*OF_TEXTS, *OF_VECTORS)}
        for qid, seen in _by_topic(passages):
            asked = content_words(questions[qid])
            held = [asked.intersection(words(text)) for text in seen]
            covered = len(set().union(*held)) / len(asked) if asked else _NONE
            found["question_coverage"][qid] = covered
            orders = [np.array([len(own) for own in held], dtype=float)]
            if qid in cosines:
                orders.append(cosines[qid])
                found["question_similarity"][qid] = float(cosines[qid].max())
                found["mean_similarity"][qid] = float(cosines[qid].mean())
            placed = [np.argsort(-by, kind="stable").tolist() for by in orders]
            agreed = [rank_biased_overlap(range(len(seen)), order, self.persistence) for order in placed]
            found["order_agreement"][qid] = float(np.mean(agreed)) if asked else _NONE
        return found

    @staticmethod
    def _cosines(questions: Mapping[str, str], passages: pd.DataFrame, tools: Tools) -> dict[str, np.ndarray]:
        texts = list(dict.fromkeys(passages["seen"]))
        of_text = dict(zip(texts, tools.embedder.embed(texts), strict=True))
        qids = list(dict.fromkeys(passages["qid"]))
        of_question = dict(zip(qids, tools.embedder.embed([questions[qid] for qid in qids], "query"), strict=True))
        return {
            qid: np.stack([of_text[text] for text in seen]).astype(float) @ of_question[qid].astype(float)
            for qid, seen in _by_topic(passages)
        }


def _by_topic(passages: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Each topic with its context's passages."""
    for qid, seen in passages.groupby("qid", sort=False)["seen"]:
        yield str(qid), seen.tolist()


def nqc(scores: np.ndarray, depth: int) -> float:
    """Normalized query commitment: the standard deviation of the first `depth` scores over the mean size of all.

    scores: float64 [hits], best first. 0 and more. Source: Shtok, Kurland et al., TOIS 30(2), 2012, where the score of
    the corpus as one document normalises; no retriever gives it here, so the mean of |score| over the list stands
    for it.
    """
    size = float(np.abs(scores).mean())
    return float(scores[:depth].std()) / size if size > 0 else 0.0


def wig(scores: np.ndarray, depth: int, n_words: int) -> float:
    """Weighted information gain: the mean of the first `depth` scores less the list's, over sqrt(words).

    Source: Zhou & Croft, SIGIR 2007; the mean of the list stands for the score of the corpus.
    """
    return float(scores[:depth].mean() - scores.mean()) / float(np.sqrt(n_words))


def smv(scores: np.ndarray, depth: int) -> float:
    """Score magnitude and variance: the mean of s |ln(s / m)| of the first `depth` scores, m their mean, over the mean
    of the list.

    NaN where a score is not above 0. Source: Tao & Wu, CIKM 2014; the mean of the list stands for the score of the
    corpus.
    """
    first = scores[:depth]
    if (scores <= 0).any():
        return float("nan")
    return float((first * np.abs(np.log(first / first.mean()))).mean() / scores.mean())


def gives_ranks_alone(lists: Sequence[np.ndarray]) -> bool:
    """Whether the scores of all lists follow from ranks alone: lists of equal length are equal."""
    by_length: dict[int, np.ndarray] = {}
    return len(lists) > 1 and all(np.array_equal(by_length.setdefault(len(own), own), own) for own in lists)


def _standardised(values: Mapping[str, float]) -> dict[str, float | str]:
    known = np.array([value for value in values.values() if not np.isnan(value)])
    mean, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
    # A spread that only rounding makes is none.
    scale = spread if spread > 1e-9 * max(abs(mean), 1e-300) else np.inf
    return {qid: _NONE if np.isnan(v) else (v - mean) / scale for qid, v in values.items()}
