"""Chat models of any LangChain class, with replies paid once and known cost.

Every finished call is in the ledger before its reply is used; what fails after its retries is a reply
without text and with the error.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ragauge.contract.component import KeepsReplies, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import named
from ragauge.contract.replies import CUT, ECHO, Reader, Reply
from ragauge.contract.workplace import FreshWorkplace, Workplace
from ragauge.llms.calls import Batch
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.clients import run_batch
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.llms.prompts import echo_in, in_language
from ragauge.llms.replies import as_repeated, can_be_read, form_in, known_replies, shown
from ragauge.llms.served import served_identity
from ragauge.llms.settings import BATCH, CONNECTION_KEYS, NOW, ChatSettings, key_to_send, submitter
from ragauge.store import canonical_json, default_ledger

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CONNECTION_KEYS", "ChatLLM"]

log = logging.getLogger(__name__)

_CHARACTERS_PER_TOKEN = 4  # of English text, for estimates before a call


@dataclass(frozen=True)
class ChatLLM(ChatSettings, KeepsReplies):
    """A chat model that can be asked, with the settings of `ChatSettings`."""

    component = "chat"
    _repeat: ClassVar[str] = ""  # salt of a further reply, set by `repeated` on the copy

    def identity(self) -> dict[str, Any]:
        """Everything that can change the output: the model alone."""
        found = {**named(self), "chat": self.chat_identity(), **({"repeat": self._repeat} if self._repeat else {})}
        return found if self.language == "english" else {**found, "language": self.language}

    def repeated(self, number: int) -> Self:
        """The model for another reply to the same requests: by the seed `chat.seed` + number, or else a salt."""
        seed = self.chat.get("seed")
        if seed is not None:
            return replace(self, chat={**self.chat, "seed": seed + number})
        found = replace(self)
        object.__setattr__(found, "_repeat", "again" if number == 1 else f"again {number}")
        return found

    def served(self, store: Workplace) -> dict[str, Any]:
        """The server's identification of the weights behind the model's name; {} where it has none.

        It is part of what replies are found by, in the store and in the ledger (see ragauge.llms.served).
        """
        key = key_to_send(self)
        return served_identity(self.chat, self.model_name, key, self.budget_name, self._ledger(store))

    def describe(self, tools: Tools) -> dict[str, str]:
        """The identity of the served model, as a tag of the run."""
        served = self.served(tools.store)
        return {"served": canonical_json(served)} if served else {}

    def ask(
        self,
        prompts: Sequence[str],
        store: Workplace,
        what: str,
        *,
        salt: str = "",
        options: Mapping[str, Any] | None = None,
        readers: Sequence[Reader] = (),
    ) -> list[Reply]:
        """One reply per prompt, in order; finished calls are kept and never paid twice.

        A reply that its reader cannot read is asked for once more, and then given as it is. `readers` has one per
        prompt, or is empty where every text is a reply. The ledger keeps it, and a later run asks again, until the
        request has MOST_UNREAD of them. A run asks once for a reply that was cut, or is no answer for good.
        No reader reads a reply that repeats the prompt (`ragauge.llms.prompts.echo_in`): it has no text, and an error
        that begins with ECHO.
        `options` go with the request (a JSON schema, say), `salt` tells a deliberate
        repetition from the same request; both are part of what the ledger knows a call by. A reply cut at the token
        limit has its text and the error CUT. A call that fails on every attempt gives text None and the error. The
        first of equal prompts is paid, and the others are marked as cached; a cached reply has the tokens of its call
        and costs 0. Raises ConfigError where every call would fail (key, model, address), GateError before
        `max_cost_usd` is exceeded, MissingError after `give_up_after` failures in a row.
        """
        prompts = [in_language(prompt, self.language) for prompt in prompts]
        served = self.served(store) if prompts else {}
        if isinstance(store, FreshWorkplace):
            salt += store.salt
        requests = [self._request(prompt, salt, options, served) for prompt in prompts]
        keys = [_digest(request) for request in requests]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        ledger = self._ledger(store)
        reader_of = _readers_by_key(keys, prompts, readers)
        known = known_replies(ledger, list(first), reader_of)
        # The empty reply of an earlier run is no answer: its key is not found, it is asked again.
        todo = [(key, i) for key, i in first.items() if key not in known]
        todo.sort(key=lambda pair: pair[1])
        fresh: dict[str, Reply] = {}
        if todo:
            jobs = [(key, requests[i], prompts[i]) for key, i in todo]
            if self.submit != NOW and isinstance(store, FreshWorkplace):
                raise ConfigError(f"submit={self.submit!r}: the seconds of an answer are measured with submit=now")
            if self.submit != NOW or ledger.submitted([key for key, _ in todo]):
                way = submitter(BATCH if self.submit == NOW else self.submit)
                fresh = way.fill(self, jobs, ledger, options or {}, what, reader_of)
                jobs = [job for job in jobs if job[0] not in fresh]
            if jobs:
                fresh |= run_batch(Batch(self, ledger, options or {}, what, reader_of).run(jobs))
        found = known | fresh
        if cut := sum(reply.error == CUT for reply in found.values()):
            log.warning("%s: %d of %d replies were cut at the token limit (%s)", what, cut, len(found), self.limit)
        self._tell_unread({key: prompts[i] for key, i in first.items()}, found, reader_of, ledger, what)
        return [
            _without_echo(
                known[key] if key in known else fresh[key] if first[key] == i else as_repeated(fresh[key]), prompts[i]
            )
            for i, key in enumerate(keys)
        ]

    def _tell_unread(
        self,
        prompts: Mapping[str, str],
        replies: Mapping[str, Reply],
        readers: Mapping[str, Reader],
        ledger: Ledger,
        what: str,
    ) -> None:
        """Warns of the replies that cannot be read, and shows the first beside the form of its prompt."""
        unread = [key for key, reply in replies.items() if not can_be_read(reply, readers.get(key))]
        if not unread:
            return
        first = shown(str(replies[unread[0]].text), form_in(prompts[unread[0]]))
        echoes = sum(bool(echo_in(str(replies[key].text), prompts[key])) for key in unread)
        told = f" ({echoes} repeat the prompt)" if echoes else ""
        log.warning(
            "%s: %d of %d replies could not be read%s; the first: %s", what, len(unread), len(replies), told, first
        )
        if spent := sum(len(calls) >= MOST_UNREAD for calls in ledger.unread(unread).values()):
            log.warning(
                "%s: %d request(s) had %d unreadable replies each and are not asked again before "
                "`ragauge ledger forget --unreadable`", what, spent, MOST_UNREAD,
            )  # fmt: skip

    def known(
        self,
        prompts: Sequence[str],
        store: Workplace,
        *,
        salt: str = "",
        options: Mapping[str, Any] | None = None,
        readers: Sequence[Reader] = (),
    ) -> list[Reply | None]:
        """The ledger's replies to the prompts; None where `ask` would call the model."""
        prompts = [in_language(prompt, self.language) for prompt in prompts]
        served = self.served(store) if prompts else {}
        keys = [_digest(self._request(prompt, salt, options, served)) for prompt in prompts]
        reader_of = _readers_by_key(keys, prompts, readers)
        found = known_replies(self._ledger(store), list(dict.fromkeys(keys)), reader_of)
        return [
            _without_echo(found[key], prompt) if key in found else None
            for key, prompt in zip(keys, prompts, strict=True)
        ]

    def needs_of(
        self,
        prompts: Sequence[str],
        store: Workplace,
        *,
        salt: str = "",
        options: Mapping[str, Any] | None = None,
        readers: Sequence[Reader] = (),
        expected_tokens: int | None = None,
    ) -> pd.DataFrame:
        """The requests of `ask`, a row per prompt: [key, known, exact, prompt_tokens, completion_tokens, cost_usd].

        `key` names the request, equal for equal ones; `known` requests are not asked again. Tokens and cost
        are those of asking, estimates, of 4 characters a token; `exact` is True, the prompts being what they
        are.
        """
        import pandas as pd

        prompts = [in_language(prompt, self.language) for prompt in prompts]
        served = self.served(store) if prompts else {}
        keys = [_digest(self._request(prompt, salt, options, served)) for prompt in prompts]
        reader_of = _readers_by_key(keys, prompts, readers)
        known = known_replies(self._ledger(store), list(dict.fromkeys(keys)), reader_of)
        tokens = [-(-len(prompt) // _CHARACTERS_PER_TOKEN) for prompt in prompts]
        expected = self.expected_tokens if expected_tokens is None else expected_tokens
        return pd.DataFrame(
            {
                "key": pd.array(keys, dtype="str"),
                "known": pd.array([key in known for key in keys], dtype=bool),
                "exact": pd.array([True] * len(keys), dtype=bool),
                "prompt_tokens": pd.array(tokens, dtype="int64"),
                "completion_tokens": pd.array([expected] * len(keys), dtype="int64"),
                "cost_usd": pd.array([self.expected_cost(n, expected) for n in tokens], dtype=float),
            }
        )

    def spent(self, store: Workplace) -> float:
        """US dollars spent so far under the budget's name."""
        return self._ledger(store).spent(self.budget_name)

    def _request(self, prompt: str, salt: str, options: Mapping[str, Any] | None, served: Mapping[str, Any]) -> str:
        request: dict[str, Any] = {"chat": self.chat_identity(), "messages": [["human", prompt]]}
        if served:
            request["served"] = served
        if options:
            request["options"] = options
        if salt := ", ".join(filter(None, (self._repeat, salt))):
            request["salt"] = salt
        return canonical_json(request)

    def _ledger(self, store: Workplace) -> Ledger:
        root = store.ledger_root if isinstance(store, FreshWorkplace) else store.root
        return open_ledger(self.ledger or default_ledger(root))


def _readers_by_key(keys: Sequence[str], prompts: Sequence[str], readers: Sequence[Reader]) -> dict[str, Reader]:
    """The readers of replies, by key; none of them reads an echo of its prompt."""
    given = readers or [_text] * len(keys)
    return {key: partial(_unless_echo, prompt, read) for key, prompt, read in zip(keys, prompts, given, strict=True)}


def _text(reply: Reply) -> str | None:
    return reply.text


def _unless_echo(prompt: str, read: Reader, reply: Reply) -> object:
    return None if echo_in(reply.text or "", prompt) else read(reply)


def _without_echo(reply: Reply, prompt: str) -> Reply:
    """The reply, or an error in place of a text that repeats its prompt."""
    echo = echo_in(reply.text or "", prompt)
    return replace(reply, text=None, error=f"{ECHO}: {shown(echo, '')}") if echo else reply


def _digest(request: str) -> str:
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Evaluator(ChatLLM):
    """A chat model of its own for the measures, with the settings of `ChatSettings`."""

    component = "evaluator"
