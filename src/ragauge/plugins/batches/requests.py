"""The requests of a stage sent in batches: attempts, costs and replies."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragauge.contract.replies import Reader, Reply
from ragauge.contract.usage import Usage
from ragauge.llms.replies import as_reply, asked_enough, can_be_read, known_replies

if TYPE_CHECKING:
    from ragauge.llms.asked import Asked
    from ragauge.llms.finished import Call
    from ragauge.llms.ledger import Ledger
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)


@dataclass
class _Attempts:
    """paid: tokens and cost of the replies collected here.   hopeless: the provider will not take the request."""

    failed: int = 0
    unread: int = 0
    paid: Reply | None = None
    error: str = ""
    hopeless: bool = False


@dataclass
class Requests:
    """The requests of a stage by key, and the replies received.

    jobs: the next request by key. After an unreadable reply it says so.
    """

    llm: ChatSettings
    ledger: Ledger
    what: str
    readers: Mapping[str, Reader]
    jobs: dict[str, Asked]
    done: dict[str, Reply] = field(default_factory=dict)
    _attempts: defaultdict[str, _Attempts] = field(default_factory=lambda: defaultdict(_Attempts))
    _given_up: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._first = dict(self.jobs)
        for key, calls in self.ledger.unread(list(self.jobs)).items():
            self._ask_after(key, as_reply(calls[-1]))

    def _ask_after(self, key: str, reply: Reply) -> None:
        self.jobs[key] = self._first[key].after(reply, self.llm.most_tokens)

    def take_known(self) -> list[str]:
        """Takes the ledger's replies, and errors without further attempts; returns the keys that lack a reply."""
        lacking = [key for key in self.jobs if key not in self.done]
        known = self.known(lacking)
        for key in lacking:
            one = self._attempts[key]
            if (reply := known.get(key)) is not None:
                paid = one.paid
                self.done[key] = reply if paid is None else dataclasses.replace(
                    paid, text=reply.text, error=reply.error, thoughts=reply.thoughts
                )  # fmt: skip
            elif one.hopeless or one.failed > self.llm.retries:
                told = f"{max(1, one.failed)} attempt(s) by batch ({self.llm.place}), the last: {one.error}"
                self.done[key] = dataclasses.replace(one.paid or Reply(None), text=None, error=told)
                self._given_up[one.error] += 1
        return [key for key in lacking if key not in self.done]

    def known(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The ledger's replies by key that need no new request now."""
        return known_replies(self.ledger, keys, self.readers)

    def refuse(self, key: str, error: str) -> None:
        """Records that no attempt at the request can succeed."""
        self._attempts[key].error, self._attempts[key].hopeless = error, True

    def hopeless(self, keys: Sequence[str]) -> bool:
        """Whether an attempt at one of the requests cannot succeed."""
        return any(self._attempts[key].hopeless for key in keys)

    def has_failed(self, key: str, error: str, again: bool = True) -> None:
        """Records an attempt without a reply."""
        one = self._attempts[key]
        one.failed, one.error, one.hopeless = one.failed + 1, error, one.hopeless or not again

    def was_paid(self, key: str, call: Call) -> None:
        """Adds a call to the key's usage; sets an unreadable reply aside, to ask once more."""
        if key not in self.jobs:
            return
        one, reply = self._attempts[key], as_reply(call)
        before = Usage() if one.paid is None else one.paid.usage
        one.paid = dataclasses.replace(reply, usage=before + call.usage)
        if call.text is not None and not can_be_read(reply, self.readers.get(key)):
            one.unread += 1
            self.ledger.set_aside(dataclasses.replace(call, unread_at=time.time()))
            self._ask_after(key, reply)
            if asked_enough(one.unread, reply):
                self.done[key] = one.paid

    def tell(self) -> None:
        """Warns of requests without a reply, once for each reason."""
        for why, n in self._given_up.items():
            log.warning("%s: no reply to %d request(s) of a batch, the last: %s", self.what, n, why)
