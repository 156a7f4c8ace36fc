"""The kinds of components that answer and judge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd

from ragauge.contract.component import Component, Tools
from ragauge.contract.default import Default
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.workplace import Workplace

NOT_RECORDED = "no answer in"  # begins the error of an answer that a file of answers lacks
ASKED = ("chat", "service")  # kinds of `llm` that are asked for every answer, which may cost and fail
Order = Literal["same", "other"]  # of the candidates, in a request that repeats another


class _Repeatable(Component):
    def repeated(self, number: int) -> Any:
        """The component for repeat `number`, from 1, whose requests are its own; None if its replies never differ.

        ConfigError for settings under which none can differ.
        """
        return None


class Generator(_Repeatable):
    """Config group `llm`: answers from contexts.

    kind: "chat", "service", "embedded", "recorded" (nobody is asked) or "none".
    takes_context: whether it is given the job's contexts; a service may retrieve by itself. cite: whether it is to
    cite the passages of its context by number. expected_tokens: tokens of an answer, for estimates.
    ahead: whether `contexts` may hold rows of other budgets of the sweep, which are True in a column `ahead` and may go
    unanswered.
    """

    takes_context = Default(True)
    cite = Default(False)
    expected_tokens = Default(60)
    ahead = Default(False)

    @abstractmethod
    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`, a row for every row of `contexts`; a failed one is a missing answer.

        Columns that the data model does not name are attributes of the answers, and come with the outcomes.
        """


class AsksForAnswers(Generator):
    """A generator whose requests are known before they are sent, for the costs of `dry_run`."""

    @abstractmethod
    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The prompt of every row of `contexts`."""

    @abstractmethod
    def needs_of(self, prompts: Sequence[str], store: Workplace) -> pd.DataFrame:
        """A row per prompt: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]."""

    @abstractmethod
    def known_answers(self, topics: pd.DataFrame, contexts: pd.DataFrame, store: Workplace) -> pd.DataFrame:
        """Frame `answers` of the answers known already, missing elsewhere; asks no LLM."""


class Judge(_Repeatable):
    """Config group `judge`: answers to judge classes.

    kind: "chat", "embedded", "recorded" (nobody is asked) or "none".
    needs_reference: whether it needs reference answers; a topic without one is then not judged.
    mode: "batch" where it wants the answers of all jobs of a sweep at once (`BatchJudge`).
    ahead: whether `answers` may hold rows of other budgets of the sweep, which are True in a column `ahead` and may go
    unjudged.
    classes: those that it can give.
    """

    needs_reference = Default(True)
    mode = Default("single")
    ahead = Default(False)
    classes = Default(frozenset(JUDGE_CLASSES))

    @abstractmethod
    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts`, a row for every row of `answers`; what cannot be read is a missing verdict."""

    def needs(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
        *,
        repeat: bool = False,
    ) -> pd.DataFrame | None:
        """Its requests, for `dry_run`: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]; None: unknown.

        With `repeat` those that judge again, too, with a column `again` that is true for them.
        """
        return None


class BatchJudge(Judge):
    """A judge that can judge the answers of several jobs at once, with mode "batch".

    It can be asked again, in both modes.
    """

    @abstractmethod
    def judge_candidates(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Verdicts on [qid, candidate, answer], keyed by qid and candidate."""

    @abstractmethod
    def judge_again(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Further verdicts on some of the candidates, keyed by qid, candidate and `order`.

        `same` is the first request once more, `other` the candidates in another order (mode batch). No rows
        where nothing is to be repeated.
        """
