"""Looks at open batches, and brings the replies of those that have ended into the ledger."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragauge.contract.current_job import job_folder
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.redact import mask_echo, redact
from ragauge.llms.ledger import Call, Ledger
from ragauge.plugins.batches import table
from ragauge.plugins.batches.api import BatchApi, Line, State, Undecided
from ragauge.plugins.batches.requests import Requests
from ragauge.plugins.batches.table import OpenBatch, Request

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)

_NOTED = {
    "strange": "line(s) of a batch name no request of it; they are ignored",
    "guessed": "reply(s) of a batch told no usage; each counts at the most it can cost",
    "echoes": "reply(s) repeat a key of the configuration; *** stands in its place",
}


@dataclass
class Collector:
    """Collects batches. `states` has the last known state of each open one, by our name."""

    llm: ChatSettings
    api: BatchApi
    ledger: Ledger
    requests: Requests
    states: dict[str, State] = field(default_factory=dict)
    _noted: Counter[str] = field(default_factory=Counter)

    def has_ended(self, batch: OpenBatch) -> bool:
        """Looks at a batch; True where its requests have now their replies, or stand in no batch any more."""
        if batch.place != self.api.place:
            raise ConfigError(
                f"{self.requests.what}: batch {batch.remote or batch.name} is open at {batch.place}, and chat.base_url "
                f"is {self.api.place}; only the address that it was submitted to can be asked for its replies"
            )
        if not batch.remote:
            return self._adopted(batch)
        state = self.states[batch.name] = self.api.look(batch.remote)
        if state.open:
            return False
        self._collect(batch, state)
        self.states.pop(batch.name, None)
        return True

    def completed(self) -> int:
        """The requests of open batches that have their replies at the provider."""
        return sum(state.completed for state in self.states.values())

    def tell(self) -> None:
        """Warns of lines and usage that are not as they should be."""
        for name, n in self._noted.items():
            if n:
                log.warning("%s: %d %s", self.requests.what, n, _NOTED[name])

    def _adopted(self, batch: OpenBatch) -> bool:
        """Finds the id of a batch whose process has ended, or forgets a batch that was not made; False to wait."""
        if not self.ledger.claim(batch.name):
            return False  # its process is at work on it
        try:
            batches = table.open_batches(self.ledger)
            now = next((one for one in batches if one.name == batch.name), None)
            if now is None or now.remote:
                return True
            known = {one.remote for one in batches if one.remote}
            n_requests = len(table.requests_of(self.ledger, batch.name))
            try:
                remote = self.api.find(batch.name, now.sent_at, n_requests, known) if now.sent_at else None
            except Undecided as maybe:
                log.debug("%s: a batch whose id is not known may be %s", self.requests.what, maybe)
                return False
            if remote is not None:
                table.mark(self.ledger, batch.name, remote=remote)
                log.info("%s: batch %s was created by a process that ended; it is taken over",
                         self.requests.what, remote)  # fmt: skip
                return True
            if now.sent_at and time.time() < now.sent_at + self.llm.timeout:
                return False
            table.close(self.ledger, batch.name)
            return True
        finally:
            self.ledger.release(batch.name)

    def _collect(self, batch: OpenBatch, state: State) -> None:
        """Writes every reply of a batch that has ended, and what became of its other requests."""
        entered, asked = table.requests_of(self.ledger, batch.name), self.requests
        names = {self.api.custom_id(batch.name, key): key for key in entered}
        for file in state.files:
            self.api.downloaded(file, lambda lines: self._settle(batch, lines, names, entered), table.AT_ONCE)
        rest = {key: name for name, key in names.items() if key in table.requests_of(self.ledger, batch.name)}
        if rest and state.status == "completed":  # it may have been paid for
            lost = [Line(name, error=f"batch {state.remote} has no line of it", charged=True) for name in rest.values()]
            self._settle(batch, lost, names, entered)
        for key in rest.keys() & asked.jobs.keys() if state.status != "completed" else ():
            asked.has_failed(key, f"batch {state.remote} is {state.status}")
        table.close(self.ledger, batch.name)
        if state.status == "failed":
            raise MissingError(
                f"{asked.what}: batch {state.remote} at {self.llm.place} failed: {state.errors or 'without a reason'}; "
                "nothing was charged, and the same command submits it again"
            )
        if state.status == "cancelled":
            raise MissingError(
                f"{asked.what}: batch {state.remote} at {self.llm.place} was cancelled; {len(entered) - len(rest)} "
                "replies are kept, and the same command submits the rest"
            )

    def _settle(
        self, batch: OpenBatch, lines: Sequence[Line], names: Mapping[str, str], entered: Mapping[str, Request]
    ) -> None:
        by_key: dict[str, Line] = {}
        for line in lines:
            key = names.get(line.custom_id)
            if key is None:
                self._noted["strange"] += 1
            elif key not in by_key or line.received is not None:
                by_key[key] = line
        calls = {key: self._call(entered[key], line) for key, line in by_key.items()}
        for key in table.settle(self.ledger, batch.name, calls):
            call, line = calls[key], by_key[key]
            if call is not None:
                self.requests.was_paid(key, call)
            if call is None or call.text is None:
                again = line.again and (line.received is None or line.received.again)
                self.requests.has_failed(key, line.error or ("" if call is None else call.finish), again)

    def _call(self, request: Request, line: Line) -> Call | None:
        """The line as a call in the ledger; None for one that was not charged."""
        received = line.received
        if received is None and not line.charged:
            return None
        asked = json.loads(request.request)
        prompt, options = asked["messages"][-1][1], asked.get("options") or {}
        cost, unknown = self.llm.charge(prompt, options, received)
        refused = line.error if received is None else received.refused
        text = None if received is None or refused is not None else mask_echo(received.text)
        self._noted["guessed"] += unknown
        self._noted["echoes"] += text is not None and received is not None and text != received.text
        return Call(
            key=request.key if text is not None else f"{request.key[:48]}-unanswered-{uuid.uuid4().hex}",
            request=request.request,
            text=text,
            finish=mask_echo(received.finish) if received is not None and text is not None else redact(str(refused)),
            prompt_tokens=(received.prompt_tokens if received else None) or 0,
            completion_tokens=(received.completion_tokens if received else None) or 0,
            cost_usd=cost,
            seconds=0.0,
            budget=request.budget,
            usage_unknown=unknown,
            job=job_folder(),
            thoughts=mask_echo(received.thoughts) or None if received is not None else None,
        )
