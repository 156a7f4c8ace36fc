"""Runs calls of a chat model concurrently, with retries, waits and limits.

The state of a batch lives here; ragauge.llms.chat decides the requests and what they may cost.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ragauge.contract.current_job import job_folder
from ragauge.contract.errors import GateError, MissingError, RagaugeError, ServerGoneError, WaitingError
from ragauge.contract.interruption import parent_gone
from ragauge.contract.progress import Progress, progress
from ragauge.contract.redact import mask_echo, redact
from ragauge.contract.replies import Reader, Reply
from ragauge.contract.usage import Usage
from ragauge.llms.asked import Asked
from ragauge.llms.budgets import Begun, Planned
from ragauge.llms.failures import TOLD, Failed, Skipped, Stop, meaning_of
from ragauge.llms.finished import Call
from ragauge.llms.lanes import Lanes, Row
from ragauge.llms.ledger import Ledger
from ragauge.llms.pace import FIRST, FOUND
from ragauge.llms.patience import Patience
from ragauge.llms.replies import (
    Received,
    as_reply,
    asked_enough,
    can_be_read,
    is_cut,
    known_replies,
    read_message,
    together,
)
from ragauge.llms.settings import _endpoint, _Gate, api_key
from ragauge.llms.structured import refuses_schema, without_schema
from ragauge.llms.tally import Tally
from ragauge.store import canonical_json

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass
class Batch:
    """The state of one `ask`: money spent, consecutive failures, whether to stop."""

    llm: ChatSettings
    ledger: Ledger
    what: str
    readers: Mapping[str, Reader] = field(default_factory=dict)  # by key
    row: Row = field(default_factory=Row)
    failed_in_a_row: int = 0
    stop: RagaugeError | None = None
    replies: dict[str, Reply] = field(default_factory=dict)
    tried: Mapping[str, Sequence[Call]] = field(default_factory=dict)  # unreadable replies of before, by key
    serves_else: Callable[[], str | None] = lambda: None  # what the server is said to serve now, if that has changed

    def __post_init__(self) -> None:
        llm = self.llm
        self.tally = Tally(llm, self.what)
        of_server = llm.place, llm.address, llm.timeout, llm.max_wait, llm.concurrency, llm.api_key_env
        self.patience = Patience(self.what, *of_server)

    async def run(self, jobs: Sequence[Asked]) -> dict[str, Reply]:
        """The reply to every request, by its key."""
        llm = self.llm
        self.ledger.write_rest()  # where it still cannot be written, nothing is paid
        model, gate = _endpoint(canonical_json(llm.chat), api_key(llm), llm.requests_per_minute, os.getpid())
        self.tried = self.ledger.unread([one.key for one in jobs])
        n = min(self.llm.most_in_flight, len(jobs))
        lanes = self.row.lanes(jobs)
        with self.progress(len(jobs)) as bar:
            workers = [asyncio.create_task(self._work(lanes, model, gate, bar)) for _ in range(n)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                self.tally.tell()
                self.ledger.wait()  # for calls whose tasks were cancelled
        if self.stop is not None:
            self.ledger.write_rest()
            raise self.stop
        return self.replies

    def progress(self, n: int) -> Progress:
        """The progress of n requests."""
        return progress(n, self.what, unit="call")

    async def _work(self, lanes: Lanes, model: Any, gate: _Gate, bar: Progress) -> None:
        while self.stop is None:
            if self.llm.concurrency == FOUND:
                await gate.pace.enter()
            lane = None
            try:
                if self.stop is not None or (taken := lanes.take()) is None:
                    return
                lane, asked = taken
                reply = await self._once(asked, model, gate)
                self.replies[asked.key] = reply
                if reply.text is None or not self._can_be_read(asked.key, reply):
                    self.row.end(asked.key)
            except Skipped:
                pass
            except Stop as stop:
                self.stop = self.stop or stop.error
                return
            finally:
                if lane is not None:
                    lanes.end(lane)
                if self.llm.concurrency == FOUND:
                    gate.pace.leave()
            bar.update()
            if self.llm.price is not None:
                bar.set_postfix_str(f"{self.tally.spent:.2f} USD", refresh=False)

    async def _once(self, asked: Asked, model: Any, gate: _Gate) -> Reply:
        """The reply, from another process that is asking now or from this call.

        One that cannot be read is asked for once more, by `Asked.after`.
        """
        key, limit = asked.key, self.llm.most_tokens
        ahead = key in self.row.ahead
        if self.row.is_left(key):
            raise Skipped
        tried = [as_reply(call) for call in self.tried.get(key, ())]
        sent = asked.after(tried[-1], limit) if tried else asked
        planned = self._planned(sent)
        pause = 0.02
        while not (begun := await self._of_ledger(self.ledger.begin(planned))).claimed:
            if ahead:
                raise Skipped
            if begun.batch:  # another process has just submitted it
                raise Stop(WaitingError(f"{self.what}: a request stands in an open batch; run again to collect it"))
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        try:
            if begun.known:
                if known := known_replies(self.ledger, [key], self.readers):
                    return known[key]
                tried += self._set_aside(key)  # of before, and not readable
                sent = asked.after(tried[-1], limit) if tried else asked
                planned = self._planned(sent)
            reply = await self._attempts(sent, planned, None if begun.known else begun, model, gate)
            if tried or asked_enough(1, reply) or (reply.text is not None and self._can_be_read(key, reply)):
                return reply
            if known_replies(self.ledger, [key], self.readers):
                return reply
            self._set_aside(key)
            sent = asked.after(reply, limit)
            return together(reply, await self._attempts(sent, self._planned(sent), None, model, gate))
        finally:
            self.ledger.release(key)

    def _set_aside(self, key: str) -> list[Reply]:
        """Sets the reply of a request aside, which cannot be read, and returns it."""
        calls = self.ledger.find([key]).values()
        for call in calls:
            self.ledger.set_aside(call)
        return [as_reply(call) for call in calls]

    async def _of_ledger(self, future: Future[T]) -> T:
        """The ledger's answer; ends the batch where there is none."""
        try:
            return await asyncio.wrap_future(future)
        except RagaugeError as error:
            raise Stop(error) from None

    def _planned(self, asked: Asked) -> Planned:
        """The call with its highest cost."""
        llm = self.llm
        # 20 calls of .01 sum to a little more than .20.
        limit = None if llm.max_cost_usd is None else llm.max_cost_usd * (1 + 1e-9)
        bound = llm.cost_bound(asked.prompt, asked.options)
        return Planned(asked.key, llm.budget_name, llm.model_name, bound, limit)

    def _can_be_read(self, key: str, reply: Reply) -> bool:
        return can_be_read(reply, self.readers.get(key))

    async def _attempts(self, asked: Asked, planned: Planned, begun: Begun | None, model: Any, gate: _Gate) -> Reply:
        """The reply after all attempts. begun: the first attempt as it was begun, None where none was."""
        llm = self.llm
        paid = Usage()  # of all attempts, the ones that gave no text too
        error, why = "no attempt", "no attempt"
        began = time.monotonic()
        attempt = n_late = n_away = 0
        away_since = 0.0
        while attempt <= llm.retries:
            await gate.enter()
            while parent_gone():  # this process is being ended, too
                await asyncio.sleep(1)
            if self.stop is not None:
                raise Stop(self.stop)
            await self._reserve(planned, begun)
            begun = None
            sent = time.monotonic()
            try:
                call = await self._attempt(asked, planned, model, gate, self.patience.seconds(n_late))
            except Failed as failed:
                failure = failed
                if failure.refused:
                    gate.pace.refused(sent)
                why = str(failure)
                error = f"{attempt + 1} attempt(s) ({llm.place}), the last: {why}"
                paid = paid if failure.call is None else paid + failure.call.usage
            else:
                if n_away:  # it may have come back since the last look
                    await self._refuse_another(call)
                gate.pace.answered()
                self.failed_in_a_row = 0
                reply = as_reply(call)
                usage = dataclasses.replace(paid + call.usage, seconds=call.usage.seconds)
                return dataclasses.replace(reply, usage=usage)
            if failure.wait is None or failure.wait > llm.max_wait:
                break
            if failure.away:
                away_since = away_since or time.monotonic()
                await self._wait_for_server(why, failure.wait, n_away, gate)
                # A request that the server refuses so while it serves others is one that fails.
                if time.monotonic() - away_since <= llm.max_wait:
                    n_away += 1
                    continue
            if failure.wait:
                gate.pause(failure.wait)
            n_late += failure.late
            if failure.late:
                self.patience.tell_late(self.patience.seconds(n_late - 1), attempt == llm.retries)
            if attempt < llm.retries:
                log.debug("%s: %s; asked again", self.what, error)
                longest = min(llm.max_wait, llm.backoff * 2**attempt)
                await asyncio.sleep(failure.wait + random.uniform(0, longest))
            attempt += 1
        if planned.key not in self.row.ahead:
            self._count_failure(error, why)
        return Reply(None, error, dataclasses.replace(paid, seconds=time.monotonic() - began))

    async def _wait_for_server(self, why: str, asked: float, n: int, gate: _Gate) -> None:
        """Pauses all calls before the n-th further look; ends the batch where the server stays away, or is another."""
        pause = self.patience.pause(why, asked, n)
        if pause is None:
            away = f"{self.llm.place} was away for {self.llm.max_wait:g} s"
            raise Stop(ServerGoneError(self._kept(away, why), self.llm.address))
        gate.pause(pause)
        await asyncio.sleep(pause)
        await self._refuse_another()

    async def _refuse_another(self, call: Call | None = None) -> None:
        """Ends the batch if the server came back with another model; its reply, if there is one, is not found again."""
        if told := await asyncio.to_thread(self.serves_else):
            if call is not None:
                self.ledger.set_aside(call)
            raise Stop(MissingError(self._kept(f"{self.llm.place} came back with another model", told)))

    def _kept(self, what: str, why: str) -> str:
        return f"{self.what}: {what}: {why.rstrip('.')}. What was answered is kept; run again when the server answers"

    def _count_failure(self, error: str, why: str) -> None:
        """Counts a request without a reply; ends the batch after too many in a row."""
        self.tally.fail(error, why)
        self.failed_in_a_row += 1
        # Where no server was ever there, one round of calls with all their attempts is enough to know it.
        at_once = FIRST if isinstance(self.llm.concurrency, str) else self.llm.concurrency
        rounds = self.llm.give_up_after if self.patience.reached else at_once
        if self.failed_in_a_row >= min(self.llm.give_up_after, rounds):
            failed = f"{self.failed_in_a_row} request(s) in a row failed at {self.llm.place}, the last"
            told = self._kept(failed, why)
            raise Stop(MissingError(told) if self.patience.reached else ServerGoneError(told, self.llm.address))

    async def _reserve(self, planned: Planned, begun: Begun | None) -> None:
        """Returns when the call's cost is reserved. Ends the batch at the limit.

        Where calls in flight leave no room, of this process or another, it waits for their bills.
        """
        if planned.limit is None:
            return
        pause = 0.02
        while True:
            begun = begun or await self._of_ledger(self.ledger.begin(planned, again=True))
            if begun.reserved:
                return
            if planned.key in self.row.ahead:
                raise Skipped
            if begun.spent + begun.needed > planned.limit:
                raise Stop(
                    GateError(
                        f"max_cost_usd: {begun.spent:.4f} of {self.llm.max_cost_usd} USD are spent and the next "
                        f"call to {self.llm.model_name} can cost {begun.needed:.4f}; every reply that was paid for "
                        "is kept"
                    )
                )
            await asyncio.sleep(pause)
            pause = min(0.2, pause * 1.2)
            if self.stop is not None:
                raise Stop(self.stop)
            begun = None

    async def _attempt(self, asked: Asked, planned: Planned, model: Any, gate: _Gate, seconds: float) -> Call:
        """One call; raises Failed without an answer, Stop if none can come.

        Whatever was charged, or may have been, is in the ledger before the reply is judged.
        """
        if self.stop is not None:  # since the call has waited for its budget
            raise Stop(self.stop)
        began = time.monotonic()
        received, failed = None, None
        try:
            message = await asyncio.wait_for(self.message(asked, model, gate), seconds)
            self.patience.answered()
            received = self._without_echo(read_message(message, self.llm.chat["_target_"]))
        except TimeoutError:
            self.patience.reach()
            failed = Failed(f"no reply within {seconds:g} s", charged=True, refused=True, late=True)
        except Stop:
            raise
        except Exception as error:
            failed = meaning_of(error, self.patience)
        if received is not None and received.refused is not None:
            why = redact(received.refused)[:TOLD]
            if is_cut(received.finish):
                why += f" ({self.llm.limit}; a reply needs more)"
            failed = Failed(why, wait=0.0 if received.again else None, charged=True)
        if failed is not None and not failed.charged:
            self.ledger.unreserve(planned.key)
            raise failed
        call = self._charged(asked, received, failed, time.monotonic() - began)
        try:
            # What can be read is the last of its request.
            ends = planned.key if failed is None and call.unread_at is None else ""
            await asyncio.wrap_future(self.ledger.add_soon(call, planned, ends))
        except RagaugeError as error:
            self.stop = self.stop or error  # the ledger has the reply in memory
        if failed is None:
            return call
        failed.call = call
        raise failed

    async def message(self, asked: Asked, model: Any, gate: _Gate) -> Any:
        """The server's reply; without the request's schema where this server has refused one. Stop ends the batch."""
        prompt, plain = [("human", asked.content())], without_schema(asked.options)
        if not gate.takes_schemas or plain == asked.options:
            return await model.ainvoke(prompt, **plain)
        try:
            return await model.ainvoke(prompt, **asked.options)
        except Exception as error:
            if not refuses_schema(error):
                raise
            message = await model.ainvoke(prompt, **plain)
            if gate.takes_schemas:
                gate.takes_schemas = False
                log.info("%s: %s takes no JSON schema and is asked without one", self.what, self.llm.place)
            return message

    def _without_echo(self, received: Received) -> Received:
        """The reply with repeated keys of this configuration masked; counts such replies."""
        masked = dataclasses.replace(
            received,
            text=mask_echo(received.text),
            finish=mask_echo(received.finish),
            thoughts=mask_echo(received.thoughts),
        )
        self.tally.echoes += masked != received
        return masked

    def _charged(self, asked: Asked, received: Received | None, failed: Failed | None, seconds: float) -> Call:
        """The attempt as a call for the ledger; unknown usage is charged at its bound."""
        llm, key, prompt, options = self.llm, asked.key, asked.prompt, asked.options
        usage = llm.charge(prompt, options, received)
        for_good = received is not None and not received.again  # kept, so that it is not asked for in this run again
        if failed is not None and not for_good:  # it was paid for, but is nothing to find again
            key = f"{key[:48]}-unanswered-{uuid.uuid4().hex}"
        call = Call(
            key=key,
            request=asked.request,
            text=None if failed is not None or received is None else received.text,
            finish=str(failed) if received is None or for_good else received.finish,
            usage=dataclasses.replace(usage, seconds=round(seconds, 4)),
            budget=llm.budget_name,
            unread_at=time.time() if for_good else None,
            job=job_folder(),
            thoughts=None if received is None else received.thoughts or None,
        )
        if not self._can_be_read(key, as_reply(call)):
            call = dataclasses.replace(call, key=self.ledger.unread_key(key), unread_at=time.time())
        self.tally.charge(prompt, options, usage, None if received is None else received.billed)
        return call
