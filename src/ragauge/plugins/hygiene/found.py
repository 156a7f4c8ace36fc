"""The test set that is checked, and a finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.frames import Batches, batches_of
from ragauge.contract.topics import HISTORY, references
from ragauge.measures.tokens import Tokens

YES_NO = frozenset(["yes", "no", "ja", "nein", "oui", "non", "sí", "si", "sim", "não"])
NO_DOCUMENTS = "there are no documents"


class Item(NamedTuple):
    """One case: the qid or docno that it is about, others that belong to it, and a few words on it."""

    id: str
    others: tuple[str, ...]
    detail: str


@dataclass(frozen=True)
class Found:
    """The cases among `of` texts or topics, None where nothing could be looked at; note says why, or what is usual."""

    items: Sequence[Item] | None
    of: int
    note: str = ""

    @property
    def count(self) -> int | None:
        """The number of cases; None where nothing was looked at."""
        return None if self.items is None else len(self.items)


@dataclass(frozen=True)
class QuestionSet:
    """A dataset, and how its texts are compared.

    tools: passages are counted in the words of its tokenizer. fold: spellings of evidence that count as one
    (`measure.fold`). tokens: those of em and f1 in the job's language. against: places (file and row) and texts of the
    questions that a model was trained on; None without such a file.
    """

    docs: pd.DataFrame | Batches
    topics: pd.DataFrame
    evidence: pd.DataFrame
    tools: Tools
    fold: tuple[str, ...]
    tokens: Tokens
    against: Sequence[tuple[str, str]] | None = None

    def questions(self) -> list[tuple[str, str]]:
        """qid and question of the topics without earlier turns, since "And when?" may stand in many conversations."""
        topics = self.topics
        if HISTORY in topics:
            topics = topics[[not len(turns) for turns in topics[HISTORY]]]
        return list(zip(topics["qid"], topics["query"], strict=True))

    def documents(self) -> Iterator[tuple[str, str]]:
        """docno and text of every document."""
        for batch in batches_of(self.docs):
            yield from zip(batch["docno"], batch["text"], strict=True)

    def references(self) -> dict[str, list[str]]:
        """By qid, the reference answers that have a word and are not yes or no."""
        known = (
            (qid, [one for one in several if self._is_open(one)]) for qid, several in references(self.topics).items()
        )
        return {qid: answers for qid, answers in known if answers}

    def _is_open(self, reference: str) -> bool:
        tokens = self.tokens(reference)
        return bool(tokens) and not (len(tokens) == 1 and tokens[0] in YES_NO)
