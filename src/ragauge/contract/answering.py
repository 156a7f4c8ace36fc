"""The kinds of components that answer and judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.workplace import Workplace

ASKED = ("chat", "service")  # kinds of `llm` that are asked for every answer, which may cost and fail


class Generator(Protocol):
    """Config group `llm`: answers from contexts."""

    kind: ClassVar[str]  # "chat", "service", "embedded", "recorded" (nobody is asked) or "none"
    uses: ClassVar[frozenset[str]]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`, a row for every row of `contexts`; a failed one is a missing answer.

        Columns that the data model does not name are attributes of the answers, and come with the outcomes.
        """


@runtime_checkable
class Repeatable(Protocol):
    """An llm or judge that can reply differently to the same request (`llm.repeat`, `judge.per_answer`)."""

    def repeated(self, number: int) -> Any:
        """The component for repeat `number`, from 1, whose requests are its own; ConfigError if none can differ."""


class Judge(Protocol):
    """Config group `judge`: answers to judge classes."""

    kind: ClassVar[str]  # "chat", "embedded", "recorded" (nobody is asked) or "none"
    uses: ClassVar[frozenset[str]]

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts`, a row for every row of `answers`; what cannot be read is a missing verdict."""


Order = Literal["same", "other"]  # of the candidates, in a request that repeats another


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge that can judge the answers of several jobs at once, with mode "batch".

    It can be asked again, in both modes.
    """

    mode: Literal["single", "batch"]

    def judge_candidates(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Verdicts on [qid, candidate, answer], keyed by qid and candidate."""

    def judge_again(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Further verdicts on some of the candidates, keyed by qid, candidate and `order`.

        `same` is the first request once more, `other` the candidates in another order (mode batch). No rows
        where nothing is to be repeated.
        """


@runtime_checkable
class TellsJudging(Protocol):
    """A judge that can estimate its requests before it is asked: `dry_run`."""

    def needs(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
        *,
        repeat: bool = False,
    ) -> pd.DataFrame:
        """A row per request: [key, known, exact, prompt_tokens, completion_tokens, cost_usd].

        With `repeat` those that judge again, too, with a column `again` that is true for them.
        """


def judges_together(judge: Judge) -> bool:
    """Whether the judge wants the answers of all jobs of a sweep at once."""
    return isinstance(judge, BatchJudge) and judge.mode == "batch"


@runtime_checkable
class AsksForAnswers(Protocol):
    """A generator whose requests are known before they are sent, for the costs of `dry_run`."""

    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The prompt of every row of `contexts`."""

    def needs_of(self, prompts: Sequence[str], store: Workplace) -> pd.DataFrame:
        """A row per prompt: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]."""

    def known_answers(self, topics: pd.DataFrame, contexts: pd.DataFrame, store: Workplace) -> pd.DataFrame:
        """Frame `answers` of the answers known already, missing elsewhere; asks no LLM."""
