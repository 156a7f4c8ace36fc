"""Writes requests into the ledger's table of open batches, and creates the batch at the provider."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragauge.contract.errors import ConfigError, GateError, MissingError
from ragauge.plugins.batches import table
from ragauge.plugins.batches.api import BatchApi, Unsure
from ragauge.plugins.batches.requests import Requests
from ragauge.plugins.batches.table import OpenBatch, Request

if TYPE_CHECKING:
    from ragauge.llms.ledger import Ledger
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)


@dataclass
class Sender:
    """Submits requests as batches. `unsure` counts the unanswered creations."""

    llm: ChatSettings
    api: BatchApi
    ledger: Ledger
    requests: Requests
    unsure: int = 0

    def submit(self, keys: Sequence[str], wait_for_room: bool) -> bool:
        """Submits as many requests as fit in one batch; False if none was and none was found to be hopeless.

        Raises GateError where the money allows none, unless other batches may leave room (`wait_for_room`).
        """
        batch = OpenBatch(uuid.uuid4().hex, self.api.place, "", 0.0)
        assert self.ledger.claim(batch.name)
        try:
            lines, refused = self._enter(batch, keys)
            if lines:
                self._send(batch, lines)
            elif refused is not None and not wait_for_room:
                raise refused
            return bool(lines) or self.requests.hopeless(keys)
        finally:
            self.ledger.release(batch.name)

    def _enter(self, batch: OpenBatch, keys: Sequence[str]) -> tuple[list[bytes], GateError | None]:
        """The lines of the requests now in the batch, and the error of the first that exceeds the money."""
        lines: dict[str, bytes] = {}
        size = 0
        for start in range(0, len(keys), table.AT_ONCE):
            some: dict[str, bytes] = {}
            for key in keys[start : start + table.AT_ONCE]:
                line, n = self._line(batch, key), len(lines) + len(some)
                if line is not None and n < self.api.most_requests and size + len(line) <= self.api.most_bytes:
                    some[key], size = line, size + len(line)
            held = [key for key in some if self.ledger.claim(key)]  # nobody is asking for them now
            try:
                known = self.requests.known(held)
                for call in self.ledger.find([key for key in held if key not in known]).values():
                    self.ledger.set_aside(call)  # of before, and not readable
                entering = [self._request(key) for key in held if key not in known]
                if not entering:
                    continue
                entered, room = table.enter(self.ledger, batch, entering, self.llm.max_cost_usd)
            finally:
                for key in held:
                    self.ledger.release(key)
            lines |= {key: line for key, line in some.items() if key in entered}
            first = next((one for one in entering if one.key not in entered and one.usd > room), None)
            if first is not None:
                return list(lines.values()), self._no_money(first, room)
        return list(lines.values()), None

    def _line(self, batch: OpenBatch, key: str) -> bytes | None:
        asked = self.requests.jobs[key]
        try:
            return self.api.line(self.api.custom_id(batch.name, key), asked.prompt, asked.options)
        except UnicodeEncodeError as error:  # as such a call fails now
            self.requests.refuse(key, f"{type(error).__name__}: {error}")
            return None

    def _request(self, key: str) -> Request:
        asked = self.requests.jobs[key]
        return Request(key, asked.request, self.llm.budget_name, self.llm.cost_bound(asked.prompt, asked.options))

    def _no_money(self, first: Request, room: float) -> GateError:
        limit = self.llm.max_cost_usd or 0.0
        return GateError(
            f"max_cost_usd: {limit - room:.4f} of {limit} USD are spent or submitted and the next call to "
            f"{self.llm.model_name} can cost {first.usd:.4f}; every reply that was paid for is kept"
        )

    def _send(self, batch: OpenBatch, lines: Sequence[bytes]) -> None:
        """Uploads the requests, creates the batch and records its id. Forgets a batch that surely does not exist."""
        sent, what = False, self.requests.what
        try:
            uploaded = self.api.upload(batch.name, lines)
            table.mark(self.ledger, batch.name, sent_at=time.time())
            sent = True
            remote = self.api.create(uploaded, batch.name)
        except Unsure as error:
            self.unsure += 1
            if self.unsure > self.llm.retries:
                raise MissingError(
                    f"{what}: {self.unsure} creations of a batch got no answer at {self.llm.place}, the last: "
                    f"{error}; the same command looks for it, and goes on"
                ) from None
            log.warning("%s: the creation of a batch got no answer (%s); it is looked for", what, error)
            return
        except (ConfigError, MissingError):  # refused
            table.close(self.ledger, batch.name)
            raise
        except KeyboardInterrupt:
            if not sent:
                table.close(self.ledger, batch.name)
            raise
        table.mark(self.ledger, batch.name, remote=remote)
        log.info("%s: %d request(s) are submitted as batch %s (%s)", what, len(lines), remote, self.llm.place)
