"""The job's chat model for other components, with counted calls or from the ledger alone."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.component import ChatModel, KeepsReplies
from ragauge.contract.identity import identity
from ragauge.contract.replies import Reply
from ragauge.contract.stages import CountedChat
from ragauge.contract.usage import usage_columns
from ragauge.contract.workplace import Workplace

NOT_ASKED = "not asked: a dry run"  # the error of a reply that a TellingChat does not know

# The budget of this process, where no name is configured.
PROCESS = f"process-{uuid.uuid4().hex}"
MOST_UNREAD = 6  # unreadable replies to one request; a model that never replies readably is not paid for ever


class Unasked(Exception):
    """Raised for prompts without a reply in the ledger when no model may be asked; `who` would ask.

    later: stand-ins of the prompts that would follow, which depend on what these are answered.
    chat: the model that would be asked, where it is not the job's chat model.
    """

    def __init__(self, prompts: Sequence[str], who: str, later: Sequence[str] = (), chat: Any = None) -> None:
        super().__init__(f"{len(prompts)} prompts of the {who} were never asked")
        self.prompts = list(prompts)
        self.who = who
        self.later = list(later)
        self.chat = chat


class SharedChat(CountedChat):
    """A chat model that records its replies, and with `from_ledger` makes no calls.

    from_ledger: replies come from the ledger; Unasked where it lacks one, and for a model that does not say
        what it replied before (KeepsReplies).
    asking: the config group of the component that asks just now; of a list `<group>.<name>`.
    """

    def __init__(self, chat: ChatModel) -> None:
        self.chat: Any = chat
        self.from_ledger = False
        self.asking = ""
        self._replies: dict[str, list[Reply]] = {}

    def identity(self) -> dict[str, Any]:
        """The model's identity."""
        return identity(self.chat)

    def served(self, store: Workplace) -> dict[str, Any]:
        """The server's identification of the model; {} for a model that does not ask."""
        return self.chat.served(store)

    def ask(self, prompts: Sequence[str], store: Workplace, what: str, **how: Any) -> list[Reply]:
        """The model's replies, one per prompt."""
        if self.from_ledger:
            if not isinstance(self.chat, KeepsReplies):
                raise Unasked(prompts, self.asking, chat=self.chat)
            known = self.chat.known(prompts, store, **how)
            kept = [reply for reply in known if reply is not None]
            if len(kept) < len(known):
                raise Unasked(prompts, self.asking, chat=self.chat)
            return kept
        replies: list[Reply] = self.chat.ask(prompts, store, what, **how)
        self._replies.setdefault(self.asking, []).extend(replies)
        return replies

    def replies(self, group: str) -> pd.DataFrame:
        within = f"{group}."
        own = [
            reply
            for asking, of_it in self._replies.items()
            if asking == group or asking.startswith(within)
            for reply in of_it
        ]
        columns = usage_columns([reply.usage for reply in own])
        cached = np.array([reply.cached for reply in own], dtype=bool)
        texts = {name: pd.array([getattr(reply, name) for reply in own], dtype="str") for name in ("error", "thoughts")}
        return pd.DataFrame({"qid": range(len(own)), **columns, "cached": cached, **texts})


class TellingChat(ChatModel):
    """A chat model that lists its requests without calls; replies come from the ledger.

    guessed: whether its prompts rest on stand-ins; they do once a reply is not known. Such requests are estimates
        (`exact` is False) unless they are known.
    needs: a frame of `needs_of` for all that was asked so far, in its order.
    """

    def __init__(self, chat: Any, guessed: bool = False) -> None:
        self.chat = chat
        self.guessed = guessed
        self._needs: list[pd.DataFrame] = []

    @property
    def needs(self) -> pd.DataFrame:
        """The prompts so far, a row each; no columns without any."""
        return pd.concat(self._needs, ignore_index=True) if self._needs else pd.DataFrame()

    def ask(self, prompts: Sequence[str], store: Workplace, what: str, **how: Any) -> list[Reply]:
        """The ledger's replies; missing ones have no text and the error NOT_ASKED."""
        if not prompts:
            return []
        needs: pd.DataFrame = self.chat.needs_of(prompts, store, **how)
        if self.guessed:
            needs = needs.assign(exact=needs["known"].astype(bool))
        self._needs.append(needs)
        known: list[Reply | None] = self.chat.known(prompts, store, **how)
        self.guessed |= any(reply is None for reply in known)
        return [Reply(None, error=NOT_ASKED) if reply is None else reply for reply in known]


class RepeatingChat(ChatModel):
    """A chat model with salted requests, for repeating a measurement."""

    def __init__(self, chat: Any, salt: str) -> None:
        self.chat = chat
        self._salt = salt

    def ask(self, prompts: Sequence[str], store: Workplace, what: str, salt: str = "", **how: Any) -> list[Reply]:
        """The model's replies, one per prompt."""
        salt = f"{self._salt}, {salt}" if salt else self._salt
        replies: list[Reply] = self.chat.ask(prompts, store, what, salt=salt, **how)
        return replies
