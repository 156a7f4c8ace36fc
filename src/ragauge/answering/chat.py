"""Answers of a chat model, with the documents or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from ragauge.answering._frame import answer_frame, queries_of
from ragauge.contract.checks import require_flag
from ragauge.contract.protocols import Reply, Tools
from ragauge.llms.chat import ChatLLM
from ragauge.llms.prompts import fill, load_prompt

if TYPE_CHECKING:
    from ragauge.store import Store


@dataclass(frozen=True)
class ChatGenerator(ChatLLM):
    """Answers of a chat model, from the context where there is one, else from what the model knows.

    A context without any text (no retrieval, no hits, n_tokens=0) gets the prompt without documents.
    An answer that was cut at the token limit is kept with status `cut`; where no reply came after all
    retries, the answer is null with status `missing` and its error.
    prompt_with_documents ($documents, $question), prompt_without_documents ($question): a text, or the name
        of a .txt file; null for the shipped one.
    tell_errors: the shipped prompt with documents asks to say so where they are wrong or contradict one
        another, and then for the true answer (docs/robustness.md).
    """

    component: ClassVar[str] = "chat"
    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    prompt_with_documents: str | None = None
    prompt_without_documents: str | None = None
    tell_errors: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag("llm.tell_errors", self.tell_errors)
        with_documents = "answer_and_tell_errors.txt" if self.tell_errors else "answer_with_documents.txt"
        # Into the fields, so that the texts are part of the identity.
        shipped = {"prompt_with_documents": with_documents,
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
        }

    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The prompt of every row of `contexts`."""
        return [
            fill(str(self.prompt_with_documents), documents=text, question=query)
            if text.strip()
            else fill(str(self.prompt_without_documents), question=query)
            for query, text in zip(queries_of(topics, contexts), contexts["text"], strict=True)
        ]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; status ok, cut or missing."""
        replies = self.ask(self.prompts(topics, contexts), tools.store, "answers")
        return answer_frame(contexts, replies)

    def known_answers(self, topics: pd.DataFrame, contexts: pd.DataFrame, store: Store) -> pd.DataFrame:
        """Frame `answers` as far as the ledger holds it; the others are missing, and nobody is asked."""
        replies = self.known(self.prompts(topics, contexts), store)
        return answer_frame(contexts, [reply or Reply(None) for reply in replies])
