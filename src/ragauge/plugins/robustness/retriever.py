"""`retriever=robustness`: the contexts in which RGB's four abilities of an LLM are measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragauge.contract.changed import changed_from
from ragauge.contract.checks import require, require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Retriever, SeesEvidence
from ragauge.plugins.robustness.noise import SPARE, holds_any, in_random_order, number_of, ranked_by_other
from ragauge.retrieval.retrievers.arms import Arms, built
from ragauge.retrieval.retrievers.evidence import by_topic, evidence_chunks, letters
from ragauge.retrieval.retrievers.ranking import run_frame

CHANGED, CONTRADICTED = "changed", "contradicted"
_MOST = 0.8  # the rate whose number of chunks a context of distractors alone has


@option("retriever/robustness")
class Robustness(Arms, SeesEvidence):
    """All evidence of a topic and nothing else, or with distractors, or with one of its facts changed.

    condition: a noise rate below 1 gives the chunks that hold evidence, with so many distractors that they are this
            share of all. A coin of the topic's own rounds their number up or down. The evidence stays whole, so that
            what changes with the rate is the noise alone; what is there at one rate is there at every higher one.
        1: distractors alone, as many chunks as the context has at the rate 0.8.
        changed: the evidence, with the changed copy (`ragauge.contract.changed`) in place of the true chunk;
            contradicted: the changed copy beside the evidence. A topic without such a copy has its evidence.
    distractors: `hard` ones that from_retriever (one of `options`) ranks highest, random ones where these do
        not suffice; or `random` chunks of documents that the evidence does not name. None holds a part of the
        evidence, is of a document that the evidence names without a text, or of a changed copy.
    seed: for coins, random chunks and the order of the chunks, which is random. Each topic has its own, so that it is
        the same in any selection.

    A topic without evidence has no hits. `score` is 1 / (rank + 1).
    """

    component = "robustness"
    top_k = 1

    condition: float | Literal["changed", "contradicted"] = 0.0
    distractors: Literal["hard", "random"] = CONF
    from_retriever: str | None = CONF
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.condition
        number = isinstance(given, (int, float)) and not isinstance(given, bool)
        ok = 0 <= given <= 1 if number else given in (CHANGED, CONTRADICTED)  # type: ignore[operator]
        require("retriever.condition", given, ok, f"noise rates in [0, 1], {CHANGED} and {CONTRADICTED}")
        object.__setattr__(self, "condition", float(given) if number else given)
        require_choice("retriever.distractors", self.distractors, ("hard", "random"))
        require_count("retriever.seed", self.seed, 0)
        name = str(self.from_retriever) if self.distractors == "hard" and self.noise_rate else None
        arm = {name: built("retriever.from_retriever", name, self.options, None)} if name else {}
        object.__setattr__(self, "from_retriever", name)  # what is not asked is no part of the identity
        object.__setattr__(self, "options", arm)

    @property
    def noise_rate(self) -> float:
        """The share of distractors; 0 if a fact is changed."""
        return self.condition if isinstance(self.condition, float) else 0.0

    @property
    def retrievers(self) -> Mapping[str, Retriever]:
        """The retriever that supplies hard distractors."""
        return self.options

    def rank_with_evidence(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query].

        DataError where no topic has evidence, where there are too few distractors for one, and where facts are to be
        changed and the corpus has no changed copy.
        """
        corpus = _Corpus(chunks)
        if isinstance(self.condition, str) and not corpus.changed:
            raise DataError(
                f"retriever.condition={self.condition}: no document of this dataset has a changed fact; "
                "dataset=fictional dataset.twins=true, RGB's file en_fact.json and documents called "
                "<qid>~changed~<docno> have (docs/robustness.md)"
            )
        # Where texts are known, a part without one is only known to be no distractor.
        texts = evidence[evidence["text"].notna()]
        with_text = evidence["qid"].isin(texts["qid"])
        needed = evidence[evidence["text"].notna() | ~with_text]
        topic, chunk = by_topic(topics, evidence_chunks(needed, chunks))
        ends = np.searchsorted(topic, np.arange(len(topics) + 1))
        own = [chunk[a:b].tolist() for a, b in pairwise(ends)]
        if not any(own):
            raise DataError(
                "retriever=robustness: no topic of this dataset has evidence that a chunk holds: it takes "
                "evidence with texts, or documents that are judged relevant"
            )
        found = own
        if isinstance(self.condition, str):
            found = [
                corpus.with_changed(qid, of_topic, beside=self.condition == CONTRADICTED)
                for qid, of_topic in zip(topics["qid"], own, strict=True)
            ]
        elif self.condition:
            found = self._with_noise(topics, evidence, own, corpus, folder, tools)
        # By a number of its own, a chunk stands before or behind another one in every condition alike.
        docno = chunks["docno"].tolist()
        rows = [
            sorted(of_topic, key=lambda c, qid=qid: number_of(self.seed, qid, docno[c]))  # type: ignore[misc]
            for qid, of_topic in zip(topics["qid"], found, strict=True)
        ]
        topic = np.repeat(np.arange(len(topics)), [len(of_topic) for of_topic in rows])
        return run_frame(topics, chunks, topic, np.array([c for cs in rows for c in cs], dtype=np.int64))

    def _with_noise(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        own: list[list[int]],
        corpus: _Corpus,
        folder: Path,
        tools: Tools,
    ) -> list[list[int]]:
        """The evidence of every topic with its distractors; at rate 1 distractors alone."""
        rate = self.noise_rate
        alone = rate >= 1
        share = (1 / (1 - _MOST)) if alone else rate / (1 - rate)  # distractors for a chunk of evidence
        dice = [np.random.default_rng(number_of(self.seed, qid)) for qid in topics["qid"]]
        coins = [rng.random() for rng in dice]
        # Rounded, since 0.8 / (1 - 0.8) is a little more than 4.
        wanted = [int(np.floor(round(len(o) * share, 9) + c)) for o, c in zip(own, coins, strict=True)]
        depth = max(wanted) + max(map(len, own)) + SPARE
        other = ("retriever.from_retriever", self.from_retriever, self.options)
        hard = ranked_by_other(*other, topics, corpus.chunks, depth, folder, tools)
        named = evidence[evidence["docno"].notna()]
        documents = named.groupby("qid")["docno"].agg(set).to_dict()
        untold = named[named["text"].isna()].groupby("qid")["docno"].agg(set).to_dict()
        texts = evidence[evidence["text"].notna()].groupby("qid")["text"].agg(list).to_dict()
        found = []
        for row, qid in enumerate(topics["qid"]):
            parts = [part for part in map(letters, texts.get(qid, ())) if part]
            refused = set(own[row])
            distractors: list[int] = []

            def candidates(row: int = row, qid: str = qid) -> Iterator[tuple[int, set[str]]]:
                yield from ((c, untold.get(qid, set())) for c in hard[row])
                yield from ((c, documents.get(qid, set())) for c in in_random_order(len(corpus.chunks), dice[row]))

            for candidate, apart in candidates():
                if len(distractors) == wanted[row]:
                    break
                if candidate not in refused and corpus.may_distract(candidate, apart, parts):
                    distractors.append(candidate)
                    refused.add(candidate)
            if len(distractors) < wanted[row]:
                raise DataError(
                    f"retriever.condition={rate:g}: topic {qid!r} needs {wanted[row]} distractors, and only "
                    f"{len(distractors)} of the {len(corpus.chunks)} chunks hold none of its evidence: more "
                    "documents, or a lower rate"
                )
            found.append(distractors if alone else own[row] + distractors)
        return found


class _Corpus:
    """Chunks, and those from a document copy with a changed fact."""

    def __init__(self, chunks: pd.DataFrame) -> None:
        self.chunks = chunks
        self._text = chunks["text"].tolist()
        self._parent = chunks["parent"].tolist()
        self._copies: set[str] = set()
        self.changed: dict[str, list[tuple[str, str]]] = {}  # copy and original by qid
        for parent in dict.fromkeys(self._parent):
            if (of := changed_from(parent)) is not None:
                self._copies.add(parent)
                self.changed.setdefault(of[0], []).append((parent, of[1]))
        wanted = self._copies.union(*({original for _, original in of} for of in self.changed.values()))
        self._rows: dict[str, list[int]] = {parent: [] for parent in wanted}
        for row, parent in enumerate(self._parent):
            if parent in wanted:
                self._rows[parent].append(row)

    def may_distract(self, chunk: int, documents: set[str], parts: list[str]) -> bool:
        """Whether a chunk is outside these documents and changed copies, and holds no part of the evidence."""
        parent = self._parent[chunk]
        if parent in documents or parent in self._copies:
            return False
        return not holds_any(self._text[chunk], parts)

    def with_changed(self, qid: str, own: list[int], beside: bool) -> list[int]:
        """The evidence of a topic, with the chunks that changed copies of its documents alter.

        They stand beside it, or in place of the chunks that are otherwise in the copy.
        """
        found = list(own)
        for copy, original in self.changed.get(qid, ()):
            evidence = [chunk for chunk in own if self._parent[chunk] == original]
            before = {letters(self._text[chunk]) for chunk in self._rows[original]}
            after = {letters(self._text[chunk]) for chunk in self._rows[copy]}
            if not evidence or before == after:
                continue
            if not beside:
                gone = {chunk for chunk in evidence if letters(self._text[chunk]) not in after}
                found = [chunk for chunk in found if chunk not in gone]
            found += [chunk for chunk in self._rows[copy] if letters(self._text[chunk]) not in before]
        return found
