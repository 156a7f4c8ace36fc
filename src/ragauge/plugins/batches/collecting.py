"""Checks open batches, and writes the replies of ended ones into the ledger."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ragauge.contract.current_job import job_folder
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.redact import mask_echo, redact
from ragauge.llms.clients import LONGEST
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
from ragauge.plugins.batches import table
from ragauge.plugins.batches.api import BatchApi, Line, State, Undecided
from ragauge.plugins.batches.requests import Requests
from ragauge.plugins.batches.table import OpenBatch, Request

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)

WINDOW = 24 * 3600.0  # seconds that providers give a batch
_GRACE = 3600.0  # seconds beyond it in which a batch that has expired may still say so
_NOTED = {
    "strange": "line(s) of a batch name no request of it; they are ignored",
    "twice": "line(s) of a batch are on a request that has one before; the first reply counts",
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
    _words: set[str] = field(default_factory=set)  # for states that are not documented, and were reported
    _without_files: dict[str, float] = field(default_factory=dict)  # since when, by our name of a batch

    def has_ended(self, batch: OpenBatch) -> bool:
        """Checks a batch; True if its requests now have replies, or are in no batch any more."""
        if batch.place != self.api.place:
            raise ConfigError(
                f"{self.requests.what}: batch {batch.remote or batch.name} is open at {batch.place}, and chat.base_url "
                f"is {self.api.place}; only the address that it was submitted to can be asked for its replies"
            )
        if not batch.remote:
            return self._adopted(batch)
        state = self.states[batch.name] = self.api.look(batch.remote)
        if not state.known and state.status not in self._words:
            self._words.add(state.status)
            log.warning(
                "%s: batch %s is '%s', a word that is not known; it counts as not ended",
                self.requests.what, batch.remote, state.status,
            )  # fmt: skip
        if state.open or self._lacks_files(batch, state):
            return False
        self._collect(batch, state)
        self.states.pop(batch.name, None)
        return True

    def is_overdue(self, batch: OpenBatch) -> bool:
        """Whether a batch has been open for longer than providers take."""
        return bool(batch.sent_at) and time.time() > batch.sent_at + WINDOW + _GRACE

    def _lacks_files(self, batch: OpenBatch, state: State) -> bool:
        """Whether a completed batch names no file of replies yet; MissingError if that persists."""
        if state.status != "completed" or state.files:
            return False
        since = self._without_files.setdefault(batch.name, time.monotonic())
        if time.monotonic() - since > self.llm.timeout:
            raise self._without_replies(state, "names no file of replies")
        return True

    def _without_replies(self, state: State, why: str) -> MissingError:
        return MissingError(
            f"{self.requests.what}: batch {state.remote} at {self.llm.place} is completed and {why}; nothing is "
            "submitted again, the same command looks once more, and `ragauge batches forget` forgets it"
        )

    def completed(self) -> int:
        """The number of requests in open batches with replies at the provider."""
        return sum(state.completed for state in self.states.values())

    def tell(self) -> None:
        """Warns of malformed lines and usage."""
        for name, n in self._noted.items():
            if n:
                log.warning("%s: %d %s", self.requests.what, n, _NOTED[name])

    def _adopted(self, batch: OpenBatch) -> bool:
        """Finds the id of a dead process's batch, or forgets a batch that was never created; False to wait."""
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
        """Writes every reply of an ended batch, and the outcome of its other requests."""
        entered, asked = table.requests_of(self.ledger, batch.name), self.requests
        names = {self.api.custom_id(batch.name, key): key for key in entered}
        reading = _Reading(names)
        n_requests = max(len(entered), state.total) if state.total else 0
        for file in state.files:
            self.api.downloaded(file, n_requests, names, partial(self._read, reading, batch, entered))
            self._noted += reading.finish()
        if state.status == "completed" and not reading.n_named:
            raise self._without_replies(state, "its replies name no request")
        failed = {key: line for key, line in reading.failed.items() if key not in reading.replied}
        self._settle(batch, failed, entered)
        rest = {key: name for name, key in names.items() if key in table.requests_of(self.ledger, batch.name)}
        if rest and state.status == "completed":  # it may have been paid for
            why = f"batch {state.remote} has no line of it"
            self._settle(batch, {key: Line(name, error=why, charged=True) for key, name in rest.items()}, entered)
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

    def _read(self, reading: _Reading, batch: OpenBatch, entered: Mapping[str, Request], lines: Iterator[Line]) -> None:
        """Writes the replies among the lines of a file, some at a time; keeps those before a break."""
        reading.begin()
        some: dict[str, Line] = {}
        size = 0
        try:
            for line in lines:
                if (key := reading.reply_to(line)) is None or line.received is None:
                    continue
                some[key], size = line, size + len(line.received.text)
                if len(some) == table.AT_ONCE or size > LONGEST:
                    self._settle(batch, some, entered)
                    some, size = {}, 0
        finally:
            self._settle(batch, some, entered)

    def _settle(self, batch: OpenBatch, lines: Mapping[str, Line], entered: Mapping[str, Request]) -> None:
        """Writes the calls of these lines into the ledger, and removes their requests from the batch."""
        calls = {key: self._call(entered[key], line) for key, line in lines.items()}
        for key in table.settle(self.ledger, batch.name, calls):
            call, line = calls[key], lines[key]
            if call is not None:
                self.requests.was_paid(key, call)
            if call is None or call.text is None:
                again = line.again and (line.received is None or line.received.again)
                self.requests.has_failed(key, line.error or ("" if call is None else call.finish), again)

    def _call(self, request: Request, line: Line) -> Call | None:
        """The line as a call in the ledger; None if it was not charged."""
        received = line.received
        if received is None and not line.charged:
            return None
        asked = json.loads(request.request)
        prompt, options = asked["messages"][-1][1], asked.get("options") or {}
        usage = self.llm.charge(prompt, options, received)
        refused = line.error if received is None else received.refused
        text = None if received is None or refused is not None else mask_echo(received.text)
        self._noted["guessed"] += usage.usage_unknown
        self._noted["echoes"] += text is not None and received is not None and text != received.text
        return Call(
            key=request.key if text is not None else f"{request.key[:48]}-unanswered-{uuid.uuid4().hex}",
            request=request.request,
            text=text,
            finish=mask_echo(received.finish) if received is not None and text is not None else redact(str(refused)),
            usage=usage,
            budget=request.budget,
            job=job_folder(),
            thoughts=mask_echo(received.thoughts) or None if received is not None else None,
        )


class _Reading:
    """Sorts the lines of a batch's files into replies and failures. A file may restart.

    The first reply to a request counts, wherever it stands; without one the first line that says why there is none.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names  # keys by custom_id
        self.replied: set[str] = set()
        self.failed: dict[str, Line] = {}
        self.n_named = 0  # lines that name a request, of this batch or of any other
        self._of_files: set[str] = set()  # keys that the files before have lines of
        self.begin()

    def begin(self) -> None:
        """Starts a file, for the first time or again."""
        self._of_file: set[str] = set()
        self._noted: Counter[str] = Counter()

    def reply_to(self, line: Line) -> str | None:
        """The key of the request to which the line is the first reply; None for any other line."""
        key = self._names.get(line.custom_id)
        self.n_named += bool(line.custom_id)
        if key is None:
            self._noted["strange"] += 1
            return None
        self._noted["twice"] += key in self._of_file or key in self._of_files
        self._of_file.add(key)
        if line.received is None:
            self.failed.setdefault(key, line)
        elif key not in self.replied:
            self.replied.add(key)
            return key
        return None

    def finish(self) -> Counter[str]:
        """Ends the file; returns the numbers of unknown lines and of repeated ones."""
        self._of_files |= self._of_file
        return self._noted
