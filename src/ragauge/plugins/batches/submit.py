"""Submits what the ledger lacks as batches of the provider, and brings their replies into the ledger.

Nothing is sent twice, and nothing is lost, wherever a process is killed:

1. The requests are entered into the ledger under a name of ours (`table.enter`); from here on no other job submits
   them, and the cap on money counts them.
2. Their file is uploaded, which starts nothing.
3. The ledger notes that the creation is about to be sent.
4. The batch is created with our name in its metadata, and its id goes into the ledger.
5. When it has ended, each reply is written and its request taken out in one transaction.

While a process does 1 to 4 it holds a claim on the name, which ends with the process. The next process that finds the
name without an id looks for it in the provider's list of batches. The batch is given up, and its requests may be
submitted again, only where its creation was never sent, or was sent more than `timeout` seconds ago and is not listed.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragauge.contract.current_job import job_folder
from ragauge.contract.errors import ConfigError, GateError, MissingError, WaitingError
from ragauge.contract.progress import Progress, progress
from ragauge.contract.protocols import Reader, Reply
from ragauge.contract.redact import mask_echo, redact
from ragauge.llms.ledger import Call, Ledger
from ragauge.llms.replies import ASKS_A_RUN, as_reply, can_be_read, known_replies, with_call
from ragauge.llms.settings import BATCH, NOW
from ragauge.plugins.batches import table
from ragauge.plugins.batches.openai_api import OPEN, Api, Line, State, Unsure
from ragauge.plugins.batches.table import OpenBatch, Request

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000  # of one batch; OpenAI takes 200 MB


def check(llm: ChatSettings) -> None:
    """ConfigError for a model whose provider has no batches that are known here."""
    target = llm.chat["_target_"]
    if not (target.startswith("langchain_openai.") and target.endswith(".ChatOpenAI")):
        raise ConfigError(
            f"submit='batch': {target.rpartition('.')[2]} has no batch API that is known here; allowed are now, and "
            "batch with langchain_openai.ChatOpenAI"
        )


def fill(
    llm: ChatSettings,
    jobs: Sequence[tuple[str, str, str]],
    ledger: Ledger,
    options: Mapping[str, Any],
    what: str,
    readers: Mapping[str, Reader],
) -> dict[str, Reply]:
    """The replies by key to (key, request, prompt), as `ChatLLM.ask` gives them.

    With submit=now these are those alone that stand in an open batch. Raises WaitingError where a batch has not ended
    and `submit_wait` is false, GateError where nothing more fits `max_cost_usd`, MissingError where a batch failed or
    was cancelled, ConfigError where the provider takes no batches.
    """
    check(llm)
    submits = llm.submit != NOW
    charged = llm if submits else dataclasses.replace(llm, submit=BATCH)
    filling = _Filling(charged, jobs, ledger, options, what, readers, submits)
    with progress(len(jobs), f"{what}, by batch", unit="call") as bar:
        try:
            return filling.run(bar)
        finally:
            filling.tell()


class _Filling:
    """The state of one `fill`."""

    def __init__(
        self,
        llm: ChatSettings,
        jobs: Sequence[tuple[str, str, str]],
        ledger: Ledger,
        options: Mapping[str, Any],
        what: str,
        readers: Mapping[str, Reader],
        submits: bool,
    ) -> None:
        self.llm, self.ledger, self.options, self.what, self.readers = llm, ledger, options, what, readers
        self.submits = submits
        self.api = Api(llm, what)
        self.jobs = {key: (request, prompt) for key, request, prompt in jobs}
        self.done: dict[str, Reply] = {}
        self.paid: dict[str, Reply] = {}  # what the replies that were collected here used, by key
        self.errors: dict[str, str] = {}  # the last error of requests that got no reply
        self.hopeless: set[str] = set()  # requests that the provider will not take
        self.failed: Counter[str] = Counter()  # attempts without a reply, by key
        self.unsure = 0  # creations that got no answer
        self.unread: Counter[str] = Counter()
        self.states: dict[str, State] = {}  # of open batches, by our name
        self.failures: Counter[str] = Counter()
        self.strange = self.guessed = self.echoes = 0
        self.shown = 0

    def run(self, bar: Progress) -> dict[str, Reply]:
        while True:
            self._take_known()
            lacking = [key for key in self.jobs if key not in self.done]
            within = self.ledger.submitted(lacking)
            batches = table.open_batches(self.ledger, sorted(set(within.values())))
            for name in set(within.values()) - {batch.name for batch in batches}:
                table.close(self.ledger, name)  # its row was lost with a damaged page of the ledger
            ended = [self._has_ended(batch) for batch in batches]
            if any(ended):
                continue
            outside = [key for key in lacking if key not in within]
            if self.submits and outside and self._submit(outside, wait_for_room=bool(batches)):
                continue
            if not lacking or (outside and not self.submits and not batches):
                return self.done
            self._show(bar)
            if batches and not self.llm.submit_wait:
                raise WaitingError(self._waiting(len(within), batches))
            time.sleep(self.llm.submit_poll if batches else min(1.0, self.llm.submit_poll))

    def _take_known(self) -> None:
        """Replies of the ledger, and errors where no further attempt is made, become those of this call."""
        lacking = [key for key in self.jobs if key not in self.done]
        known = known_replies(self.ledger, lacking, self.readers)
        for key, reply in known.items():
            paid = self.paid.get(key)
            self.done[key] = reply if paid is None else dataclasses.replace(paid, text=reply.text, error=reply.error)
        for key in lacking:
            if key not in known and (key in self.hopeless or self.failed[key] > self.llm.retries):
                self._give_up(key, self.errors[key])

    def _give_up(self, key: str, why: str) -> None:
        told = f"{max(1, self.failed[key])} attempt(s) by batch ({self.llm.place}), the last: {why}"
        self.done[key] = dataclasses.replace(self.paid.get(key, Reply(None)), text=None, error=told)
        self.failures[why] += 1

    # --- submitting -----------------------------------------------------------------------------------------

    def _submit(self, keys: Sequence[str], wait_for_room: bool) -> bool:
        """Submits what fits of the requests as one batch; False where none was and none was found to be hopeless."""
        batch = OpenBatch(uuid.uuid4().hex, self.api.place, "", 0.0)
        assert self.ledger.claim(batch.name)
        try:
            lines, refused = self._enter(batch, keys)
            if lines:
                self._send(batch, lines)
            elif refused is not None and not wait_for_room:
                raise refused
            return bool(lines) or not self.hopeless.isdisjoint(keys)
        finally:
            self.ledger.release(batch.name)

    def _enter(self, batch: OpenBatch, keys: Sequence[str]) -> tuple[list[bytes], GateError | None]:
        """The lines of the requests that are now in the batch, and the error of the first that the money forbids."""
        lines: dict[str, bytes] = {}
        size = 0
        for start in range(0, len(keys), table.AT_ONCE):
            some: dict[str, bytes] = {}
            for key in keys[start : start + table.AT_ONCE]:
                line = self._line(key)
                if line is not None and len(lines) + len(some) < MOST_REQUESTS and size + len(line) <= MOST_BYTES:
                    some[key], size = line, size + len(line)
            held = [key for key in some if self.ledger.claim(key)]  # nobody is asking for them now
            try:
                known = known_replies(self.ledger, held, self.readers)
                for call in self.ledger.find([key for key in held if key not in known]).values():
                    self.ledger.set_aside(call)  # of before, and not readable
                requests = [self._request(key) for key in held if key not in known]
                if not requests:
                    continue
                entered, room = table.enter(self.ledger, batch, requests, self.llm.max_cost_usd)
            finally:
                for key in held:
                    self.ledger.release(key)
            lines |= {key: line for key, line in some.items() if key in entered}
            first = next((one for one in requests if one.key not in entered and one.usd > room), None)
            if first is not None:
                return list(lines.values()), self._no_money(first, room)
        return list(lines.values()), None

    def _line(self, key: str) -> bytes | None:
        try:
            return self.api.line(key, self.jobs[key][1], self.options)
        except UnicodeEncodeError as error:  # as such a call fails now
            self.errors[key] = f"{type(error).__name__}: {error}"
            self.hopeless.add(key)
            return None

    def _request(self, key: str) -> Request:
        request, prompt = self.jobs[key]
        return Request(key, request, self.llm.budget_name, self.llm.cost_bound(prompt, self.options))

    def _no_money(self, first: Request, room: float) -> GateError:
        limit = self.llm.max_cost_usd or 0.0
        return GateError(
            f"max_cost_usd: {limit - room:.4f} of {limit} USD are spent or submitted and the next call to "
            f"{self.llm.model_name} can cost {first.usd:.4f}; every reply that was paid for is kept"
        )

    def _send(self, batch: OpenBatch, lines: Sequence[bytes]) -> None:
        """Uploads the file, creates the batch and notes its id. A batch that was surely not made is forgotten."""
        sent = False
        try:
            file = self.api.upload(batch.name, b"".join(lines))
            table.mark(self.ledger, batch.name, sent_at=time.time())
            sent = True
            remote = self.api.create(file, batch.name)
        except Unsure as error:
            self.unsure += 1
            if self.unsure > self.llm.retries:
                raise MissingError(
                    f"{self.what}: {self.unsure} creations of a batch got no answer at {self.llm.place}, the last: "
                    f"{error}; the same command looks for it, and goes on"
                ) from None
            log.warning("%s: the creation of a batch got no answer (%s); it is looked for", self.what, error)
            return
        except (ConfigError, MissingError):  # refused
            table.close(self.ledger, batch.name)
            raise
        except KeyboardInterrupt:
            if not sent:
                table.close(self.ledger, batch.name)
            raise
        table.mark(self.ledger, batch.name, remote=remote)
        log.info("%s: %d request(s) are submitted as batch %s (%s)", self.what, len(lines), remote, self.llm.place)

    # --- collecting -----------------------------------------------------------------------------------------

    def _has_ended(self, batch: OpenBatch) -> bool:
        """Looks at a batch; True where its requests have now their replies, or stand in no batch any more."""
        if batch.place != self.api.place:
            raise ConfigError(
                f"{self.what}: batch {batch.remote or batch.name} is open at {batch.place}, and chat.base_url is "
                f"{self.api.place}; only the address that it was submitted to can be asked for its replies"
            )
        if not batch.remote:
            return self._adopted(batch)
        state = self.states[batch.name] = self.api.look(batch.remote)
        if state.status in OPEN:
            return False
        self._collect(batch, state)
        self.states.pop(batch.name, None)
        return True

    def _adopted(self, batch: OpenBatch) -> bool:
        """Finds the id of a batch whose process has ended, or forgets a batch that was not made; False to wait."""
        if not self.ledger.claim(batch.name):
            return False  # its process is at work on it
        try:
            now = next(iter(table.open_batches(self.ledger, [batch.name])), None)
            if now is None or now.remote:
                return True
            if now.sent_at and (remote := self.api.find(batch.name, now.sent_at)) is not None:
                table.mark(self.ledger, batch.name, remote=remote)
                log.info("%s: batch %s was created by a process that ended; it is taken over", self.what, remote)
                return True
            if now.sent_at and time.time() < now.sent_at + self.llm.timeout:
                return False
            table.close(self.ledger, batch.name)
            return True
        finally:
            self.ledger.release(batch.name)

    def _collect(self, batch: OpenBatch, state: State) -> None:
        """Writes every reply of a batch that has ended, and what became of its other requests."""
        requests = table.requests_of(self.ledger, batch.name)
        for file in state.files:
            self.api.downloaded(file, lambda lines: self._settle(batch, lines, requests), table.AT_ONCE)
        rest = table.requests_of(self.ledger, batch.name)
        if rest and state.status == "completed":  # it may have been paid for
            lost = [Line(key, error=f"batch {state.remote} has no line of it", charged=True) for key in rest]
            self._settle(batch, lost, rest)
        for key in rest.keys() & self.jobs.keys() if state.status != "completed" else ():
            self._has_failed(key, Line(key, error=f"batch {state.remote} is {state.status}"))
        table.close(self.ledger, batch.name)
        if state.status == "failed":
            raise MissingError(
                f"{self.what}: batch {state.remote} at {self.llm.place} failed: {state.errors or 'without a reason'}; "
                "nothing was charged, and the same command submits it again"
            )
        if state.status == "cancelled":
            raise MissingError(
                f"{self.what}: batch {state.remote} at {self.llm.place} was cancelled; {len(requests) - len(rest)} "
                "replies are kept, and the same command submits the rest"
            )

    def _settle(self, batch: OpenBatch, lines: Sequence[Line], requests: Mapping[str, Request]) -> None:
        calls: dict[str, Call | None] = {}
        by_key: dict[str, Line] = {}
        for line in lines:
            if line.key not in requests:
                self.strange += 1
            elif line.key not in by_key or line.received is not None:
                by_key[line.key] = line
        for key, line in by_key.items():
            calls[key] = self._call(requests[key], line)
        for key in table.settle(self.ledger, batch.name, calls):
            if (call := calls[key]) is not None and key in self.jobs:
                self._was_paid(key, call)
            if call is None or call.text is None:
                self._has_failed(key, by_key[key], "" if call is None else call.finish)

    def _has_failed(self, key: str, line: Line, why: str = "") -> None:
        self.failed[key] += 1
        self.errors[key] = line.error or why
        if not line.again:
            self.hopeless.add(key)

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
        self.guessed += unknown
        self.echoes += text is not None and received is not None and text != received.text
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
        )

    def _was_paid(self, key: str, call: Call) -> None:
        """Adds a call to what this key has used; a reply that cannot be read is set aside, and asked for once more."""
        paid = with_call(self.paid.get(key, Reply(None)), call)
        reply = as_reply(call)
        self.paid[key] = dataclasses.replace(paid, text=call.text, error=reply.error)
        if call.text is not None and not can_be_read(reply, self.readers.get(key)):
            self.unread[key] += 1
            self.ledger.set_aside(dataclasses.replace(call, unread_at=time.time()))
            if self.unread[key] >= ASKS_A_RUN:
                self.done[key] = self.paid[key]

    # --- telling --------------------------------------------------------------------------------------------

    def _show(self, bar: Progress) -> None:
        done = min(len(self.jobs), len(self.done) + sum(state.completed for state in self.states.values()))
        bar.update(max(0, done - self.shown))
        self.shown = max(done, self.shown)

    def _waiting(self, n: int, batches: Sequence[OpenBatch]) -> str:
        told = [
            f"{batch.remote or 'one that is being created'}"
            + (f" ({state.status}, {state.completed} of {state.total})" if state else "")
            for batch in batches
            for state in [self.states.get(batch.name)]
        ]
        return (
            f"{self.what}: {n} request(s) wait in {len(batches)} batch(es) at {self.llm.place}: {', '.join(told)}; the "
            "same command collects them"
        )

    def tell(self) -> None:
        """Warns of failed requests, once for each reason, and of lines and usage that are not as they should be."""
        for why, n in self.failures.items():
            log.warning("%s: no reply to %d request(s) of a batch, the last: %s", self.what, n, why)
        for n, said in (
            (self.strange, "line(s) of a batch name no request of it; they are ignored"),
            (self.guessed, "reply(s) of a batch told no usage; each counts at the most it can cost"),
            (self.echoes, "reply(s) repeat a key of the configuration; *** stands in its place"),
        ):
            if n:
                log.warning("%s: %d %s", self.what, n, said)
