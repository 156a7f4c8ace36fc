"""Answers of a running RAG system."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.answering.frame import answer_frame, queries_of
from ragauge.contract.answering import AsksForAnswers
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import named, runtime
from ragauge.contract.replies import Reply
from ragauge.contract.workplace import Workplace
from ragauge.llms.replies import answer_alone
from ragauge.plugins.service.service import Service

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class ServiceAnswers(AsksForAnswers):
    """Answers of a service, one request per topic; it gets our context if its request holds {context}.

    A request that a retriever of the same service has made already is not made again. A service that gave no
    answer, or something that is none, is a missing answer with its error.
    service: the config's `service` (ragauge.plugins.service.service).   budget, ledger: those of the service.
    """

    component = "service"
    version = 3
    kind = "service"

    service: Mapping[str, Any] | None = None
    budget: str | None = runtime(None)
    ledger: str | None = runtime(None)
    own_chat: Service = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        asked = Service.of(self.service, self.budget, self.ledger)
        if asked.chat["response"]["answer"] is None:
            raise ConfigError("service.response.answer=None: llm=service needs the path of the answer")
        object.__setattr__(self, "own_chat", asked)

    @property
    def takes_context(self) -> bool:
        """Whether the request holds our retriever's context."""
        return self.own_chat.asks_with("context")

    def identity(self) -> dict[str, Any]:
        """The service's identity, without its address."""
        return {**named(self), "service": self.own_chat.identity()}

    def served(self, store: Workplace) -> dict[str, Any]:
        """The identity of the service: its name or its address."""
        return self.own_chat.served(store)

    def describe(self, tools: Tools) -> dict[str, str]:
        """The service, as a run tag."""
        return self.own_chat.describe(tools)

    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The request of every row of `contexts`."""
        qids, n_tokens, texts = (contexts[name].tolist() for name in ("qid", "n_tokens", "text"))
        return self.own_chat.prompts(qids, queries_of(topics, contexts), n_tokens, texts, topics)

    def needs_of(self, prompts: Sequence[str], store: Workplace) -> pd.DataFrame:
        """A row per request: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]."""
        return self.own_chat.needs_of(prompts, store)

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; status ok or missing."""
        replies = self.own_chat.ask(self.prompts(topics, contexts), tools.store, "answers")
        return answer_frame(contexts, [self._read(reply) for reply in replies])

    def known_answers(self, topics: pd.DataFrame, contexts: pd.DataFrame, store: Workplace) -> pd.DataFrame:
        """Frame `answers` from the ledger, missing elsewhere; asks no service."""
        replies = self.own_chat.known(self.prompts(topics, contexts), store)
        return answer_frame(contexts, [self._read(reply or Reply(None)) for reply in replies])

    def cost_of_kept(self, replies: pd.DataFrame) -> float:
        """The original cost of the ledger's replies in US dollars; NaN if unknown."""
        return self.own_chat.cost_of_kept(replies)

    def _read(self, reply: Reply) -> Reply:
        """The reply with the answer in place of the response."""
        found = self.own_chat.response(reply)
        return reply if found is None else answer_alone(dataclasses.replace(reply, text=found.answer))
