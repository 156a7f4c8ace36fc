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

from ragauge.contract.checks import require_count
from ragauge.contract.component import KeepsReplies, Tools
from ragauge.contract.errors import ConfigError, RagaugeError, ServerGoneError
from ragauge.contract.identity import named
from ragauge.contract.redact import redact
from ragauge.contract.replies import CUT, ECHO, Reader, Reply, schema_of
from ragauge.contract.workplace import FreshWorkplace, Workplace
from ragauge.llms.addresses import is_own, refuses
from ragauge.llms.asked import Asked
from ragauge.llms.beginnings import beginnings
from ragauge.llms.calls import Batch
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.clients import run_batch
from ragauge.llms.cold import cold
from ragauge.llms.lanes import Row
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.llms.prompts import echo_in, in_language
from ragauge.llms.replies import as_repeated, can_be_read, form_in, known_replies, shown
from ragauge.llms.served import served_identity, serves_else, slots_of
from ragauge.llms.settings import BATCH, CONNECTION_KEYS, NOW, ChatSettings, api_key, key_to_send, submitter
from ragauge.llms.structured import NONE, options_for
from ragauge.store import canonical_json, default_ledger

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CONNECTION_KEYS", "ChatLLM"]

log = logging.getLogger(__name__)

_CHARACTERS_PER_TOKEN = 4  # of English text, for estimates before a call
_MARKS = "langchain_anthropic."  # clients of servers that keep what a request marks


@dataclass(frozen=True)
class ChatLLM(ChatSettings, KeepsReplies):
    """A chat model that can be asked, with the settings of `ChatSettings`."""

    component = "chat"
    _reads_prompts: ClassVar[bool] = True  # whether a further line of a prompt is text to the model
    _repeat: ClassVar[str] = ""  # salt of a further reply, set by `repeated` on the copy

    def identity(self) -> dict[str, Any]:
        """Everything that can change the output: the model alone."""
        found = {**named(self), "chat": self.chat_identity(), **({"repeat": self._repeat} if self._repeat else {})}
        found |= {} if self.language == "english" else {"language": self.language}
        return found if self.schema == NONE else {**found, "schema": self.schema}

    def repeated(self, number: int) -> Self:
        """The model for another reply to the same requests: by the seed `chat.seed` + number, or else a salt."""
        seed = self.chat.get("seed")
        if seed is not None:
            return replace(self, chat={**self.chat, "seed": seed + number})
        found = replace(self)
        object.__setattr__(found, "_repeat", "again" if number == 1 else f"again {number}")
        return found

    def beside_answers(self, max_tokens: int | None, key: str) -> Self:
        """The model without stop texts, and with another limit of completion tokens, which `key` sets."""
        require_count(key, max_tokens, null="the llm's own limit")
        chat = {name: value for name, value in self.chat.items() if name != "stop"}
        own = self.most_tokens
        if limits := own is not None and max_tokens not in (None, own[1]):
            chat |= {own[0]: max_tokens}
        if chat == self.chat:
            return self
        found = replace(self, chat=chat)
        object.__setattr__(found, "limit_key", key if limits else self.limit_key)
        return found

    def served(self, store: Workplace) -> dict[str, Any]:
        """The server's identification of the weights behind the model's name; {} where it has none.

        It is part of what replies are found by, in the store and in the ledger (see ragauge.llms.served).
        """
        key = key_to_send(self)
        ledger = self._ledger(store)
        return served_identity(self.chat, self.model_name, key, self.budget_name, ledger, self.max_wait)

    def prompts_kept(self) -> int | None:
        """The number of prompts whose computed beginnings the server keeps; None if it does not say."""
        return slots_of(self.chat, key_to_send(self))

    def describe(self, tools: Tools) -> dict[str, str]:
        """The identity of the served model, and prices that a table gave, as tags of the run."""
        served = self.served(tools.store)
        price = {"price": str(self.prices)} if self.prices is not None and self.prices.table else {}
        return {**({"served": canonical_json(served)} if served else {}), **price}

    def ask(
        self,
        prompts: Sequence[str],
        store: Workplace,
        what: str,
        *,
        salt: str = "",
        options: Mapping[str, Any] | None = None,
        readers: Sequence[Reader] = (),
        topics: Sequence[str] = (),
        ahead: Sequence[bool] = (),
    ) -> list[Reply]:
        """One reply per prompt, in order; finished calls are kept and never paid twice.

        A reply that its reader cannot read is asked for once more (`Asked.after`), and then given as it is. `readers`
        has one per prompt, or is empty where every text is a reply. The schema of a `Structured` reader goes with the
        request as `schema` says. The ledger keeps an unreadable reply, and a later run asks again, until the
        request has MOST_UNREAD of them.
        No reader reads a reply that repeats the prompt (`ragauge.llms.prompts.echo_in`): it has no text, and an error
        that begins with ECHO.
        `options` go with the request (a JSON schema, say), `salt` tells a deliberate
        repetition from the same request; both are part of what the ledger knows a call by. A reply cut at the token
        limit has its text and the error CUT. A call that fails on every attempt gives text None and the error. The
        first of equal prompts is paid, and the others are marked as cached; a cached reply has the tokens of its call
        and costs 0. Raises ConfigError where every call would fail (key, model, address), GateError before
        `max_cost_usd` is exceeded, MissingError after `give_up_after` failures in a row.
        `topics` has the topic of every prompt: calls of one topic are made in a row. `ahead` is True for prompts that
        another job will ask. They are asked along with a prompt of the same topic, if the expected cost of all fits
        `max_cost_usd`. The reply has no text if the prompt was not asked.
        """
        if isinstance(store, FreshWorkplace):
            salt += store.salt
        asked = self._asked(prompts, store, salt, options, readers)
        if isinstance(store, FreshWorkplace) and self._reads_prompts:
            asked = cold(self.chat, key_to_send(self), asked, store)
        keys = [one.key for one in asked]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        ledger = self._ledger(store)
        reader_of = _readers_by_key(asked, readers)
        known = known_replies(ledger, list(first), reader_of)
        # The empty reply of an earlier run is no answer: its key is not found, it is asked again.
        todo = [asked[i] for i in sorted(i for key, i in first.items() if key not in known)]
        row = Row(
            {key: topics[i] for key, i in first.items()} if topics else {},
            frozenset(keys) - {key for key, later in zip(keys, ahead or [False] * len(keys), strict=True) if not later},
            in_slices=self.chat["_target_"].startswith(_MARKS),
        )
        if row.ahead:
            todo = self._along(todo, row, ledger)
        fresh: dict[str, Reply] = {}
        self._tell_long(todo, what)
        if todo:
            if self.submit != NOW and isinstance(store, FreshWorkplace):
                raise ConfigError(f"submit={self.submit!r}: the seconds of an answer are measured with submit=now")
            if self.submit != NOW or ledger.submitted([one.key for one in todo]):
                way = submitter(BATCH if self.submit == NOW else self.submit)
                fresh = way.fill(self, todo, ledger, what, reader_of)
                todo = [one for one in todo if one.key not in fresh]
            if todo:
                if any(one.key in row.ahead for one in todo):
                    row = replace(row, slots=self.prompts_kept())
                other = partial(serves_else, self.chat, self.model_name, key_to_send(self), self.served(store))
                fresh |= run_batch(Batch(self, ledger, what, reader_of, row, serves_else=other).run(todo))
        found = known | fresh
        found |= {key: Reply(None, "left to the job that needs it") for key in row.ahead if key not in found}
        if cut := sum(reply.error == CUT for reply in found.values()):
            log.warning("%s: %d of %d replies were cut at the token limit (%s)", what, cut, len(found), self.limit)
        of_job = {one.key: one.prompt for one in asked if one.key not in row.ahead}
        self._tell_unread(of_job, {key: found[key] for key in of_job}, reader_of, ledger, what)
        return [
            _without_echo(found[key] if key in known or first[key] == i else as_repeated(found[key]), asked[i].prompt)
            for i, key in enumerate(keys)
        ]

    def _along(self, todo: Sequence[Asked], row: Row, ledger: Ledger) -> list[Asked]:
        """The requests of this job, and those of others that go along with them."""
        own = [one for one in todo if one.key not in row.ahead]
        topics = {row.topics[one.key] for one in own}
        along = [one for one in todo if one.key not in row.ahead or row.topics[one.key] in topics]
        if self.submit != NOW or len(along) == len(own) or ledger.submitted([one.key for one in own]):
            return own
        if self.max_cost_usd is not None:
            tokens = [-(-len(one.prompt) // _CHARACTERS_PER_TOKEN) for one in along]
            expected = sum(self.expected_cost(n, self.expected_tokens) for n in tokens)
            if ledger.spent(self.budget_name) + expected > self.max_cost_usd:
                return own
        return along

    def _tell_long(self, todo: Sequence[Asked], what: str) -> None:
        """Warns of prompts that Ollama would cut to `num_ctx`, by an estimate of their tokens."""
        room, reply = self.chat.get("num_ctx"), self.most_tokens
        if not isinstance(room, int):
            return
        most = max((-(-len(one.prompt) // _CHARACTERS_PER_TOKEN) for one in todo), default=0)
        if most + (reply[1] if reply else 0) > room:
            log.warning(
                "%s: prompts of up to about %d tokens and their replies need more than chat.num_ctx=%d: Ollama cuts "
                "them without a word; raise it, or lower n_tokens", what, most, room,
            )  # fmt: skip

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
        asked = self._asked(prompts, store, salt, options, readers)
        found = self._known(asked, store, readers)
        return [_without_echo(found[one.key], one.prompt) if one.key in found else None for one in asked]

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
        """The requests of `ask`, a row per prompt.

        Columns: key, known, exact, prompt_tokens, completion_tokens, cost_usd, begins.
        `key` names the request, equal for equal ones; `known` requests are not asked again. Tokens and cost
        are those of asking, estimates, of 4 characters a token; `exact` is True, the prompts being what they
        are; `begins` names the beginnings of the prompt (`ragauge.llms.beginnings`).
        """
        import pandas as pd

        asked = self._asked(prompts, store, salt, options, readers)
        keys, known = [one.key for one in asked], self._known(asked, store, readers)
        tokens = [-(-len(one.prompt) // _CHARACTERS_PER_TOKEN) for one in asked]
        expected = self.expected_tokens if expected_tokens is None else expected_tokens
        return pd.DataFrame(
            {
                "key": pd.array(keys, dtype="str"),
                "known": pd.array([key in known for key in keys], dtype=bool),
                "exact": pd.array([True] * len(keys), dtype=bool),
                "prompt_tokens": pd.array(tokens, dtype="int64"),
                "completion_tokens": pd.array([expected] * len(keys), dtype="int64"),
                "cost_usd": pd.array([self.expected_cost(n, expected) for n in tokens], dtype=float),
                "begins": pd.Series([beginnings(one.prompt) for one in asked], dtype=object),
            }
        )

    def spent(self, store: Workplace) -> float:
        """US dollars spent so far under the budget's name."""
        return self._ledger(store).spent(self.budget_name)

    def check_ready(self, store: Workplace) -> None:
        """ConfigError without its key, or for a model that one's own server lacks; ServerGoneError without a server.

        None of them is raised unless the ledger is empty: a job whose replies are known needs no server.
        """
        try:
            if self.api_key_env is not None:
                api_key(self)
            if refuses(self.address):
                told = f"nothing listens at {redact(self.address)}, where model {self.model_name} is asked"
                raise ServerGoneError(told, self.address)
            if is_own(self.address):
                self.served(store)
        except RagaugeError:
            if not len(self._ledger(store)):
                raise

    def _asked(
        self,
        prompts: Sequence[str],
        store: Workplace,
        salt: str,
        options: Mapping[str, Any] | None,
        readers: Sequence[Reader],
    ) -> list[Asked]:
        """The request of every prompt."""
        served = self.served(store) if prompts else {}
        salt = ", ".join(filter(None, (self._repeat, salt)))
        found = []
        for prompt, read in zip(prompts, readers or [_text] * len(prompts), strict=True):
            named = in_language(prompt, self.language)
            sent = {**(options or {}), **options_for(schema_of(read), self.schema)}
            request: dict[str, Any] = {"chat": self.chat_identity(), "messages": [["human", named]]}
            beside = {"served": served, "options": sent, "salt": salt}
            text = canonical_json(request | {name: value for name, value in beside.items() if value})
            found.append(Asked(_digest(text), text, named, sent))
        return found

    def _known(self, asked: Sequence[Asked], store: Workplace, readers: Sequence[Reader]) -> dict[str, Reply]:
        keys = list(dict.fromkeys(one.key for one in asked))
        return known_replies(self._ledger(store), keys, _readers_by_key(asked, readers))

    def _ledger(self, store: Workplace) -> Ledger:
        root = store.ledger_root if isinstance(store, FreshWorkplace) else store.root
        return open_ledger(self.ledger or default_ledger(root))


def _readers_by_key(asked: Sequence[Asked], readers: Sequence[Reader]) -> dict[str, Reader]:
    """The readers of replies, by key; none of them reads an echo of its prompt."""
    given = readers or [_text] * len(asked)
    return {one.key: partial(_unless_echo, one.prompt, read) for one, read in zip(asked, given, strict=True)}


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
