"""The chat models of a synthesis; counts their calls by purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.workplace import Workplace
from ragauge.llms.chat_use import SharedChat, TellingChat
from ragauge.llms.json_replies import Found, ask_each

T = TypeVar("T")

WRITES = "questions"
CHECKS = ("follows", "answerable", "same answer")  # asked of the evaluator
CLOSED_BOOK = "closed book"  # asked of the llm, which is to be measured
PROMPTS = f"{__package__}.prompts"  # the folder with the texts


class Asker(Protocol):
    """Asks for a purpose: {prompt: parsed reply}; guesses replace replies in a dry run."""

    def __call__(
        self, purpose: str, readers: Mapping[str, Callable[[str], T | None]], guesses: Mapping[str, T]
    ) -> dict[str, Found[T]]: ...


class Asking:
    """The llm, which answers without documents, the writer, and the evaluator, which checks; None for none.

    dry: no LLM is asked; `needs` then has a frame of requests, as in `ragauge.experiment.dry_run`.
    """

    def __init__(self, llm: Any, writer: Any, evaluator: Any, store: Workplace, dry: bool = False) -> None:
        chats = {WRITES: writer, CLOSED_BOOK: llm, **dict.fromkeys(CHECKS, evaluator)}
        self._store = store
        self._dry = dry
        self._chats: dict[str, Any] = {
            purpose: TellingChat(chat) if dry else SharedChat(chat)
            for purpose, chat in chats.items()
            if chat is not None
        }

    @property
    def asks(self) -> bool:
        """Whether there is any model to ask."""
        return bool(self._chats)

    def can(self, purpose: str) -> bool:
        """Whether there is a model to ask for the purpose."""
        return purpose in self._chats

    def __call__(
        self, purpose: str, readers: Mapping[str, Callable[[str], T | None]], guesses: Mapping[str, T]
    ) -> dict[str, Found[T]]:
        if not readers:
            return {}
        if not self.can(purpose):
            raise ConfigError(f"{purpose}: there is no chat model to ask; choose an llm that is one")
        chat = self._chats[purpose]
        if self._dry and purpose != WRITES and WRITES in self._chats:
            chat.guessed |= self._chats[WRITES].guessed
        elif not self._dry:
            chat.asking = purpose
        return ask_each(chat, readers, self._store, purpose, guesses=guesses)

    def replies(self) -> pd.DataFrame:
        """The replies so far, a row per prompt, for all purposes."""
        found = [chat.replies(purpose) for purpose, chat in self._chats.items()]
        frame = pd.concat([frame for frame in found if len(frame)] or found[:1], ignore_index=True)
        return frame.assign(qid=range(len(frame)))

    def needs(self) -> pd.DataFrame:
        """The requests of a dry run, a row each; `who` is the purpose."""
        found = [chat.needs.assign(who=purpose) for purpose, chat in self._chats.items() if len(chat.needs)]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
