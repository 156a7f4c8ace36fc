"""Training examples for judges: triples (question, passage, answer), right and wrong.

Source: ARES, section 3.1 (Saad-Falcon et al. 2023, arXiv:2311.09476). Weak negatives are drawn at random. Strong ones
are other passages of the same document, the best hits without evidence, and answers with a changed fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ragauge.contract.topics import (
    ANSWER_FAITHFULNESS,
    ANSWER_RELEVANCE,
    CONTEXT_RELEVANCE,
    is_unanswerable,
    references,
    scorable,
    wrong_answers,
)
from ragauge.measures.located import chunk_qrels
from ragauge.plugins.training.ares.interactions import Triple
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.facts import Facts, kind_of
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import words

POSITIVE = "positive"
RANDOM_PASSAGE, RANDOM_ANSWER = "random passage", "random answer"  # weak
SAME_DOCUMENT, HIT, CHANGED, SAME_ANSWERS = (
    "passage of the same document", "hit without evidence", "changed fact", "answer on the same document",
)  # fmt: skip
STRONG = (SAME_DOCUMENT, HIT, CHANGED, SAME_ANSWERS)
_HITS = 10
_DRAWS = 20  # draws of something that must differ, before it is given up


class Example(NamedTuple):
    """A triple, the judged question, whether the answer is yes, and the source."""

    judged: str
    qid: str
    label: int
    kind: str
    docno: str
    triple: Triple


class _Topic(NamedTuple):
    """A topic with its evidence and answers; passages are chunks by docno."""

    qid: str
    query: str
    references: tuple[str, ...]
    evidence: tuple[str, ...]
    relevant: tuple[str, ...]
    near: tuple[str, ...]  # other passages of the documents of its evidence
    hits: tuple[str, ...]  # the best hits without evidence
    wrong: tuple[str, ...]  # answers that are known to be wrong


def examples(
    data: TrainingData, judged: Sequence[str], seed: int, per_topic: int = 2, strong: float = 0.5
) -> list[Example]:
    """For every question of `judged` as many positives as negatives, at most `per_topic` positives a topic.

    A share `strong` of the negatives is strong where the topic has any, the rest weak. Answers are the
    references and, where a sentence of the evidence holds one, that sentence. A passage that holds no
    evidence but a reference answer is no negative: it may be right. The same data and seed give the same
    examples.
    """
    maker = _Maker(data, np.random.default_rng(seed), per_topic, strong)
    makes = {
        CONTEXT_RELEVANCE: maker.of_contexts,
        ANSWER_FAITHFULNESS: maker.of_faithfulness,
        ANSWER_RELEVANCE: maker.of_answers,
    }
    return [example for name in judged for topic in maker.topics for example in makes[name](topic)]


def table_of(found: Sequence[Example]) -> pd.DataFrame:
    """The examples as a frame: [judged, qid, label, kind, docno, answer]."""
    rows = [(e.judged, e.qid, e.label, e.kind, e.docno, e.triple.answer) for e in found]
    return pd.DataFrame(rows, columns=["judged", "qid", "label", "kind", "docno", "answer"])


class _Maker:
    """Draws the examples of one topic after another, from the texts of all topics."""

    def __init__(self, data: TrainingData, rng: np.random.Generator, per_topic: int, strong: float) -> None:
        self._rng, self._per_topic, self._strong = rng, per_topic, strong
        self._texts = dict(zip(data.chunks["docno"].tolist(), data.chunks["text"].tolist(), strict=True))
        self._docnos = list(self._texts)
        self._running: dict[str, str] = {}
        self.topics = _topics(data)
        self._facts = Facts([answer for topic in self.topics for answer in topic.references])
        self._answers = [(topic.qid, a) for topic in self.topics for a in self._answers_of(topic)]
        self._of_documents: dict[str, list[str]] = {}
        parents = dict(zip(data.chunks["docno"].tolist(), data.chunks["parent"].tolist(), strict=True))
        for topic in self.topics:
            for parent in {parents[docno] for docno in topic.relevant}:
                self._of_documents.setdefault(parent, []).extend(topic.references[:1])
        self._parents = parents

    def of_contexts(self, topic: _Topic) -> list[Example]:
        """Question and passage: the passages that hold evidence, and others."""
        found = []
        for docno in self._some(topic.relevant):
            wrong = self._passage_without(topic, topic.references)
            if wrong is not None:
                found.append(self._example(CONTEXT_RELEVANCE, topic, 1, POSITIVE, docno))
                found.append(self._example(CONTEXT_RELEVANCE, topic, 0, *wrong))
        return found

    def of_faithfulness(self, topic: _Topic) -> list[Example]:
        """Passage and answer: answers stated there, and answers of other passages or with a changed fact."""
        right = [
            (docno, answer)
            for docno in topic.relevant
            for answer in self._answers_of(topic)
            if self._holds(docno, answer)
        ]
        found = []
        for docno, answer in self._spread(right):
            wrong = self._unfaithful(topic, docno, answer)
            if wrong is not None:
                found.append(self._example(ANSWER_FAITHFULNESS, topic, 1, POSITIVE, docno, answer))
                found.append(self._example(ANSWER_FAITHFULNESS, topic, 0, *wrong))
        return found

    def of_answers(self, topic: _Topic) -> list[Example]:
        """Question and answer: the topic's own, and answers of another kind than asked for."""
        found = []
        for answer in self._spread([("", answer) for answer in self._answers_of(topic)]):
            wrong = self._beside_the_point(topic)
            if wrong is not None:
                found.append(self._example(ANSWER_RELEVANCE, topic, 1, POSITIVE, "", answer[1]))
                found.append(self._example(ANSWER_RELEVANCE, topic, 0, wrong[0], "", wrong[1]))
        return found

    def _answers_of(self, topic: _Topic) -> list[str]:
        """The first reference, and every sentence of the evidence that holds a reference."""
        wanted = [_run_of(answer) for answer in topic.references if _run_of(answer).strip()]
        sentences = [text[start:end].strip() for text in topic.evidence for start, end in sentence_spans(text)]
        held = [one for one in sentences if any(answer in _run_of(one) for answer in wanted)]
        return list(dict.fromkeys([*topic.references[:1], *held]))

    def _passage_without(self, topic: _Topic, answers: Sequence[str]) -> tuple[str, str] | None:
        """Kind and docno of an irrelevant passage that holds none of the answers."""
        if self._rng.random() < self._strong:
            kinds = [(HIT, topic.hits), (SAME_DOCUMENT, topic.near)]
            for at in self._rng.permutation(len(kinds)):
                kind, docnos = kinds[at]
                fit = [docno for docno in docnos if not any(self._holds(docno, a) for a in answers)]
                if fit:
                    return kind, self._one(fit)
        for _ in range(_DRAWS):
            docno = self._one(self._docnos)
            if docno not in topic.relevant and not any(self._holds(docno, a) for a in answers):
                return RANDOM_PASSAGE, docno
        return None

    def _unfaithful(self, topic: _Topic, docno: str, answer: str) -> tuple[str, str, str] | None:
        """Kind, docno and answer of a triple whose passage does not support the answer."""
        strong = self._rng.random() < self._strong
        if strong and self._rng.random() < 0.5:
            changed = self._facts.changed(answer, topic.references, topic.wrong, self._texts[docno], self._rng)
            if changed is not None:
                return CHANGED, docno, changed
        if strong or self._rng.random() < 0.5:
            wrong = self._passage_without(topic, [answer, *topic.references])
            return None if wrong is None else (*wrong, answer)
        for _ in range(_DRAWS):
            qid, other = self._answers[int(self._rng.integers(len(self._answers)))]
            if qid != topic.qid and not self._holds(docno, other):
                return RANDOM_ANSWER, docno, other
        return None

    def _beside_the_point(self, topic: _Topic) -> tuple[str, str] | None:
        """Kind and text of an answer to another question, of another kind (number, name) than asked for.

        An answer of the same kind answers the question, rightly or wrongly.
        """
        asked_for = {kind_of(answer) for answer in topic.references}
        if self._rng.random() < self._strong:
            parents = {self._parents[docno] for docno in topic.relevant}
            near = [
                answer
                for parent in sorted(parents)
                for answer in self._of_documents.get(parent, ())
                if kind_of(answer) not in asked_for
            ]
            near += self._other_sentences(topic)
            if near:
                return SAME_ANSWERS, self._one(near)
        for _ in range(_DRAWS):
            qid, other = self._answers[int(self._rng.integers(len(self._answers)))]
            if qid != topic.qid and kind_of(other) not in asked_for:
                return RANDOM_ANSWER, other
        return None

    def _other_sentences(self, topic: _Topic) -> list[str]:
        """Sentences of the relevant passages without evidence or a reference."""
        evidence = " ".join(_run_of(text) for text in topic.evidence)
        wanted = [_run_of(answer) for answer in topic.references]
        found = []
        for docno in topic.relevant[: self._per_topic]:
            text = self._texts[docno]
            for start, end in sentence_spans(text):
                run = _run_of(text[start:end])
                if run.strip() and run not in evidence and not any(answer in run for answer in wanted):
                    found.append(text[start:end].strip())
        return found

    def _example(self, judged: str, topic: _Topic, label: int, kind: str, docno: str, answer: str = "") -> Example:
        passage = self._texts.get(docno, "")
        return Example(judged, topic.qid, label, kind, docno, Triple(topic.query, passage, answer))

    def _holds(self, docno: str, answer: str) -> bool:
        """Whether the passage holds the answer's words contiguously; False for yes and no."""
        if docno not in self._running:
            self._running[docno] = _run_of(self._texts[docno])
        run = _run_of(answer)
        return bool(run.strip()) and kind_of(answer) != "yes or no" and run in self._running[docno]

    def _some(self, items: Sequence[str]) -> list[str]:
        order = self._rng.permutation(len(items))[: self._per_topic]
        return [items[i] for i in sorted(order)]

    def _spread(self, right: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """A sample of the pairs (passage, answer), over distinct answers in random order."""
        by_answer: dict[str, list[tuple[str, str]]] = {}
        for pair in right:
            by_answer.setdefault(pair[1], []).append(pair)
        groups = list(by_answer.values())
        chosen = groups[:1] + [groups[1:][i] for i in self._rng.permutation(len(groups) - 1)] if groups else []
        return [group[int(self._rng.integers(len(group)))] for group in chosen[: self._per_topic]]

    def _one(self, items: Sequence[str]) -> str:
        return items[int(self._rng.integers(len(items)))]


def _topics(data: TrainingData) -> list[_Topic]:
    """The answerable topics, in their order."""
    topics = data.topics[~is_unanswerable(data.topics)]
    evidence = scorable(data.evidence, data.topics)
    truth = chunk_qrels(evidence, data.chunks)
    relevant = truth.groupby("qid", sort=False)["docno"].agg(list).to_dict()
    texts = evidence.groupby("qid", sort=False)["text"].agg(list).to_dict()
    parents = data.chunks.set_index("docno")["parent"]
    siblings = data.chunks.groupby("parent", sort=False)["docno"].agg(list).to_dict()
    run = data.run.sort_values(["qid", "rank"])
    best = run.groupby("qid", sort=False).head(_HITS).groupby("qid", sort=False)["docno"].agg(list).to_dict()
    known, wrong = references(data.topics), wrong_answers(data.topics)
    found = []
    for qid, query in zip(topics["qid"].tolist(), topics["query"].tolist(), strict=True):
        own = tuple(relevant.get(qid, ()))
        near = [docno for parent in dict.fromkeys(parents[list(own)]) for docno in siblings[parent]]
        found.append(
            _Topic(
                qid,
                query,
                known.get(qid, ()),
                tuple(texts.get(qid, ())),
                own,
                tuple(docno for docno in near if docno not in own),
                tuple(docno for docno in best.get(qid, ()) if docno not in own),
                wrong.get(qid, ()),
            )
        )
    return found


def _run_of(text: str) -> str:
    """The words of a text, with spaces around, so that one word sequence can be found in another."""
    return f" {' '.join(words(text))} "
