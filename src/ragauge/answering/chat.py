"""Answers of a chat model, with or without documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from ragauge.answering.frame import BLANK, answer_frame, queries_of
from ragauge.contract.answering import AsksForAnswers
from ragauge.contract.checks import require_flag
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.replies import Reply
from ragauge.contract.topics import with_history
from ragauge.contract.visible import is_blank
from ragauge.contract.workplace import Workplace
from ragauge.llms.chat import ChatLLM
from ragauge.llms.prompts import fill, load_prompt
from ragauge.texts.citation_marks import without_marks

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class ChatGenerator(ChatLLM, AsksForAnswers):
    """Answers of a chat model, from the context if there is one, else from the model's own knowledge.

    A context without any text (no retrieval, no hits, n_tokens=0) gets the prompt without documents.
    Thoughts before an answer are no part of it; they are the column `thoughts`. An answer that was cut at the token
    limit is kept with status `cut`. Where no reply came after all retries, the
    answer is null with status `missing` and its error. prompt_with_documents ($documents, $question),
    prompt_without_documents ($question): a text, or the name
        of a .txt file; null for the shipped one.
    cite: the passages of a context come numbered, and the shipped prompt asks for the numbers of those that
        an answer rests on. `answer` is then the text without these marks, by which it is measured and judged,
        and the column `cited_answer` the text with them.
    ahead: whether a job of a sweep over n_tokens asks all budgets of a question in a row, for servers that keep the
        beginnings of prompts. The other jobs find their answers in the ledger.
    tell_errors: the shipped prompt with documents asks to say so where they are wrong or contradict one
        another, and then for the true answer (docs/robustness.md).
    """

    component = "chat"
    version = 5
    kind = "chat"
    uses = frozenset()

    prompt_with_documents: str | None = None
    prompt_without_documents: str | None = None
    cite: bool = False
    tell_errors: bool = False
    ahead: bool = runtime(True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag("llm.tell_errors", self.tell_errors)
        require_flag("llm.ahead", self.ahead)
        require_flag("llm.cite", self.cite)
        if self.cite and self.tell_errors and self.prompt_with_documents is None:
            raise ConfigError(
                "llm.cite and llm.tell_errors: no shipped prompt does both; choose one, or write "
                "llm.prompt_with_documents"
            )
        asks = "with_citations" if self.cite else "and_tell_errors" if self.tell_errors else "with_documents"
        # Into the fields, so that the texts are part of the identity.
        shipped = {"prompt_with_documents": f"answer_{asks}.txt",
                   "prompt_without_documents": "answer_without_documents.txt"}  # fmt: skip
        for name, placeholders in (
            ("prompt_with_documents", ("documents", "question")),
            ("prompt_without_documents", ("question",)),
        ):
            text = load_prompt(getattr(self, name), shipped[name], placeholders, key=f"llm.{name}")
            object.__setattr__(self, name, text)

    def identity(self) -> dict[str, Any]:
        """The model and both prompts."""
        return {
            **super().identity(),
            "prompt_with_documents": self.prompt_with_documents,
            "prompt_without_documents": self.prompt_without_documents,
            **({"cite": True} if self.cite else {}),
        }

    def repeated(self, number: int) -> Self:
        """The model for another answer; ConfigError at a temperature of 0, where all answers are equal."""
        if self.chat.get("temperature") == 0 or self.chat.get("top_k") == 1:
            key = "temperature=0" if self.chat.get("temperature") == 0 else "top_k=1"
            raise ConfigError(
                f"llm.repeat: with llm.chat.{key} a model gives the same answer each time; sample its answers, such as "
                "by llm.chat.temperature=0.7"
            )
        return super().repeated(number)

    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The prompt of every row of `contexts`."""
        return [
            fill(str(self.prompt_with_documents), documents=text, question=query)
            if text.strip()
            else fill(str(self.prompt_without_documents), question=query)
            for query, text in zip(queries_of(with_history(topics), contexts), contexts["text"], strict=True)
        ]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; status ok, cut or missing."""
        rows: dict[str, Any] = {}
        if "ahead" in contexts:
            rows = {"topics": contexts["qid"].tolist(), "ahead": contexts["ahead"].tolist()}
        replies = self.ask(self.prompts(topics, contexts), tools.store, "answers", **rows)
        return self._answers(contexts, replies)

    def known_answers(self, topics: pd.DataFrame, contexts: pd.DataFrame, store: Workplace) -> pd.DataFrame:
        """Frame `answers` from the replies in the ledger, others missing; asks no LLM."""
        replies = self.known(self.prompts(topics, contexts), store)
        return self._answers(contexts, [reply or Reply(None) for reply in replies])

    def _answers(self, contexts: pd.DataFrame, replies: Sequence[Reply]) -> pd.DataFrame:
        found = answer_frame(contexts, replies)
        if not self.cite:
            return found
        plain = [without_marks(text) if isinstance(text, str) else None for text in found["answer"]]
        # A reply of marks alone, such as [2], says nothing.
        blank = pd.Series([text is not None and is_blank(text) for text in plain], index=found.index)
        return found.assign(
            answer=pd.array(plain, dtype="str"),
            cited_answer=found["answer"],
            status=found["status"].mask(blank, "missing"),
            error=found["error"].mask(blank, BLANK),
        ).assign(answer=lambda rows: rows["answer"].mask(blank))
