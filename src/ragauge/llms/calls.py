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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragauge.contract.current_job import job_folder
from ragauge.contract.errors import ConfigError, GateError, MissingError, RagaugeError, WaitingError, causes
from ragauge.contract.interruption import parent_gone
from ragauge.contract.progress import Progress, progress
from ragauge.contract.redact import mask_echo, redact
from ragauge.contract.replies import Reader, Reply
from ragauge.contract.visible import visible
from ragauge.llms.clients import BadResponse, Redirected
from ragauge.llms.databases import Planned, Room
from ragauge.llms.ledger import Call, Ledger
from ragauge.llms.replies import (
    Received,
    as_reply,
    asked_enough,
    can_be_read,
    is_cut,
    known_replies,
    may_have_cost,
    read_message,
    retry_after,
    status_of,
    together,
    told_in,
    was_not_sent,
    with_call,
)
from ragauge.llms.settings import _endpoint, _Gate, api_key
from ragauge.store import canonical_json

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

log = logging.getLogger(__name__)


# Every call would fail: wrong key, no right, no such model or path, nothing left to pay with.
_FATAL = frozenset({401, 402, 403, 404, 405, 407})
# Client errors that pass with time; any other 4xx is this request's own fault.
_PASSING = frozenset({408, 409, 425, 429})
_LONGEST_ERROR = 20_000  # characters of a server's error that are searched for keys
_TOLD = 500  # of them that are told


class _Stop(Exception):
    """Ends a batch early; holds the error to raise after the calls in flight."""

    def __init__(self, error: RagaugeError) -> None:
        super().__init__(str(error))
        self.error = error


class _Failed(Exception):
    """A failed attempt; `wait` is the server's requested delay, None if a retry is useless.

    `charged` is whether it cost something, or may have.
    """

    def __init__(self, why: str, wait: float | None = 0.0, charged: bool = False) -> None:
        super().__init__(why)
        self.wait = wait
        self.charged = charged
        self.call: Call | None = None


@dataclass
class Batch:
    """The state of one `ask`: money spent, consecutive failures, whether to stop."""

    llm: ChatSettings
    ledger: Ledger
    options: Mapping[str, Any]
    what: str
    readers: Mapping[str, Reader] = field(default_factory=dict)  # by key
    spent: float = 0.0
    failed_in_a_row: int = 0
    reached: bool = False  # whether a connection to the server was ever made
    stop: RagaugeError | None = None
    replies: dict[str, Reply] = field(default_factory=dict)
    guessed: list[float] = field(default_factory=list)  # costs of calls whose usage is not known
    exceeding: list[str] = field(default_factory=list)  # calls that used more than they could, in words
    echoes: int = 0  # replies in which a key of the configuration was masked
    failures: Counter[str] = field(default_factory=Counter)  # requests without a reply, by the last reason

    async def run(self, jobs: Sequence[tuple[str, str, str]]) -> dict[str, Reply]:
        """The reply of every (key, request, prompt)."""
        llm = self.llm
        self.ledger.write_rest()  # where it still cannot be written, nothing is paid
        model, gate = _endpoint(canonical_json(llm.chat), api_key(llm), llm.requests_per_minute, os.getpid())
        queue = iter(jobs)
        with progress(len(jobs), self.what, unit="call") as bar:
            workers = [
                asyncio.create_task(self._work(queue, model, gate, bar))
                for _ in range(min(self.llm.concurrency, len(jobs)))
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                self._tell_failures()
                self._tell_usage()
        if self.stop is not None:
            self.ledger.write_rest()
            raise self.stop
        return self.replies

    async def _work(self, queue: Iterator[tuple[str, str, str]], model: Any, gate: _Gate, bar: Progress) -> None:
        for key, request, prompt in queue:
            if self.stop is not None:
                return
            try:
                self.replies[key] = await self._once(key, request, prompt, model, gate)
            except _Stop as stop:
                self.stop = self.stop or stop.error
                return
            bar.update()
            if self.llm.price is not None:
                bar.set_postfix_str(f"{self.spent:.2f} USD", refresh=False)

    async def _once(self, key: str, request: str, prompt: str, model: Any, gate: _Gate) -> Reply:
        """The reply, from another process that is asking now or from this call.

        One that cannot be read is asked for once more.
        """
        pause = 0.02
        while not self.ledger.claim(key):
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        try:
            if known := known_replies(self.ledger, [key], self.readers):
                return known[key]
            if self.ledger.submitted([key]):  # another process has just submitted it
                raise _Stop(WaitingError(f"{self.what}: a request stands in an open batch; run again to collect it"))
            for call in self.ledger.find([key]).values():  # of before, and not readable
                self.ledger.set_aside(call)
            reply = await self._attempts(key, request, prompt, model, gate)
            if asked_enough(1, reply) or self._can_be_read(key, reply):
                return reply
            if known_replies(self.ledger, [key], self.readers):
                return reply
            return together(reply, await self._attempts(key, request, prompt, model, gate))
        finally:
            self.ledger.release(key)

    def _can_be_read(self, key: str, reply: Reply) -> bool:
        return can_be_read(reply, self.readers.get(key))

    async def _attempts(self, key: str, request: str, prompt: str, model: Any, gate: _Gate) -> Reply:
        llm = self.llm
        paid = Reply(None)  # tokens and cost of all attempts, the ones that gave no text too
        error, why = "no attempt", "no attempt"
        began = time.monotonic()
        for attempt in range(llm.retries + 1):
            await gate.enter()
            while parent_gone():  # this process is being ended, too
                await asyncio.sleep(1)
            if self.stop is not None:
                raise _Stop(self.stop)
            planned = await self._reserve(key, prompt)
            charged: Call | None = None
            try:
                call = charged = await self._attempt(key, request, prompt, model)
            except _Failed as failure:
                charged = failure.call
                why = str(failure)
                error = f"{attempt + 1} attempt(s) ({llm.place}), the last: {why}"
                paid = paid if failure.call is None else with_call(paid, failure.call)
                wait = failure.wait
            else:
                self.failed_in_a_row = 0
                reply = as_reply(call)
                return dataclasses.replace(
                    with_call(paid, call),
                    text=reply.text,
                    error=reply.error,
                    thoughts=reply.thoughts,
                    seconds=call.seconds,
                )
            finally:
                self._settle(planned, charged)
            if wait is None or wait > llm.max_wait:
                break
            if wait:
                gate.pause(wait)
            if attempt < llm.retries:
                log.debug("%s: %s; asked again", self.what, error)
                longest = min(llm.max_wait, llm.backoff * 2**attempt)
                await asyncio.sleep(wait + random.uniform(0, longest))
        self._count_failure(error, why)
        return dataclasses.replace(paid, error=error, seconds=time.monotonic() - began)

    def _count_failure(self, error: str, why: str) -> None:
        """Logs the first failure for a reason at once, and the number of equal ones at the end."""
        self.failures[why] += 1
        log.log(
            logging.WARNING if self.failures[why] == 1 else logging.DEBUG,
            "%s: no reply after %s", self.what, error,
        )  # fmt: skip
        self.failed_in_a_row += 1
        # Where no server was ever there, one round of calls with all their attempts is enough to know it.
        rounds = self.llm.give_up_after if self.reached else self.llm.concurrency
        if self.failed_in_a_row >= min(self.llm.give_up_after, rounds):
            raise _Stop(
                MissingError(
                    f"{self.what}: {self.failed_in_a_row} request(s) in a row failed at {self.llm.place}, "
                    f"the last: {why.rstrip('.')}. What was answered is kept; run again when the server "
                    "answers"
                )
            )

    async def _reserve(self, key: str, prompt: str) -> Planned | None:
        """The next call with its highest cost reserved; None without a limit. Ends the batch at the limit.

        Where calls in flight leave no room, of this process or another, it waits for their bills.
        """
        llm = self.llm
        if llm.max_cost_usd is None:
            return None
        bound = llm.cost_bound(prompt, self.options)
        limit = llm.max_cost_usd * (1 + 1e-9)  # 20 calls of .01 sum to a little more than .20
        planned = Planned(key, llm.budget_name, llm.model_name, bound, limit)
        pause = 0.02
        while not (room := self._room(planned)).reserved:
            if room.spent + room.needed > planned.limit:
                raise _Stop(
                    GateError(
                        f"max_cost_usd: {room.spent:.4f} of {llm.max_cost_usd} USD are spent and the next "
                        f"call to {llm.model_name} can cost {room.needed:.4f}; every reply that was paid for "
                        "is kept"
                    )
                )
            await asyncio.sleep(pause)
            pause = min(0.2, pause * 1.2)
            if self.stop is not None:
                raise _Stop(self.stop)
        return planned

    def _room(self, planned: Planned) -> Room:
        try:
            return self.ledger.reserve(planned)
        except RagaugeError as error:
            raise _Stop(error) from None

    def _settle(self, planned: Planned | None, call: Call | None) -> None:
        if planned is None:
            return
        try:
            self.ledger.settle(planned, None if call is None else call.cost_usd)
        except RagaugeError as error:
            self.stop = self.stop or error

    async def _attempt(self, key: str, request: str, prompt: str, model: Any) -> Call:
        """One call; raises _Failed without an answer, _Stop if none can come.

        Whatever was charged, or may have been, is in the ledger before the reply is judged.
        """
        if self.stop is not None:  # since the call has waited for its budget
            raise _Stop(self.stop)
        began = time.monotonic()
        received, failed = None, None
        try:
            message = await asyncio.wait_for(model.ainvoke([("human", prompt)], **self.options), self.llm.timeout)
            self.reached = True
            received = self._without_echo(read_message(message, self.llm.chat["_target_"]))
        except TimeoutError:
            self.reached = True
            failed = _Failed(f"no reply within {self.llm.timeout:g} s", charged=True)
        except Exception as error:
            failed = self._failed(error)
        if received is not None and received.refused is not None:
            why = redact(received.refused)[:_TOLD]
            if is_cut(received.finish):
                why += f" ({self.llm.limit}; a reply needs more)"
            failed = _Failed(why, wait=0.0 if received.again else None, charged=True)
        if failed is None or failed.charged:
            call = self._charged(key, request, prompt, received, failed, time.monotonic() - began)
            if failed is None:
                return call
            failed.call = call
        raise failed

    def _without_echo(self, received: Received) -> Received:
        """The reply with repeated keys of this configuration masked; counts such replies."""
        masked = dataclasses.replace(
            received,
            text=mask_echo(received.text),
            finish=mask_echo(received.finish),
            thoughts=mask_echo(received.thoughts),
        )
        self.echoes += masked != received
        return masked

    def _charged(
        self, key: str, request: str, prompt: str, received: Received | None, failed: _Failed | None, seconds: float
    ) -> Call:
        """The attempt as a call in the ledger; unknown usage is charged at its bound."""
        llm = self.llm
        told = (None, None) if received is None else (received.prompt_tokens, received.completion_tokens)
        bounds = llm.token_bounds(prompt, self.options)
        cost_usd, guessed = llm.charge(prompt, self.options, received)
        for_good = received is not None and not received.again  # kept, so that it is not asked for in this run again
        if failed is not None and not for_good:  # it was paid for, but is nothing to find again
            key = f"{key[:48]}-unanswered-{uuid.uuid4().hex}"
        call = Call(
            key=key,
            request=request,
            text=None if failed is not None or received is None else received.text,
            finish=str(failed) if received is None or for_good else received.finish,
            prompt_tokens=told[0] or 0,
            completion_tokens=told[1] or 0,
            cost_usd=cost_usd,
            seconds=seconds,
            budget=llm.budget_name,
            usage_unknown=guessed,
            unread_at=time.time() if for_good else None,
            job=job_folder(),
            thoughts=None if received is None else received.thoughts or None,
        )
        if not self._can_be_read(key, as_reply(call)):
            call = dataclasses.replace(call, key=self.ledger.unread_key(key), unread_at=time.time())
        self.spent += call.cost_usd
        if call.usage_unknown:
            self.guessed.append(call.cost_usd)
        for n, bound, what in zip(told, bounds, ("prompt", "completion"), strict=True):
            if n is not None and n > bound:
                self.exceeding.append(f"{n} {what} tokens where {bound} were the most")
        told_cost = None if received is None else received.cost_usd
        if told_cost is not None and llm.max_cost_usd is not None:
            most = llm.cost_bound(prompt, self.options)
            if told_cost > most:
                self.exceeding.append(f"{told_cost:g} USD where {most:g} were the most")
        try:
            self.ledger.add(call)
        except RagaugeError as error:
            self.stop = self.stop or error  # the ledger has the reply in memory
        return call

    def _tell_failures(self) -> None:
        """Warns of the number of further failures for a reported reason."""
        for why, n in self.failures.items():
            if n > 1:
                log.warning("%s: no reply to %d more request(s), the last: %s", self.what, n - 1, why)

    def _tell_usage(self) -> None:
        """Warns once of replies that repeat a key, of unknown usage, and of usage above its bound."""
        if self.echoes:
            log.warning(
                "%s: %d reply(s) repeat a key of the configuration; *** stands in its place",
                self.what, self.echoes,
            )  # fmt: skip
        if self.guessed:
            log.warning(
                "%s: %d call(s) came without a usable token count; each counts at the most it can cost, "
                "%.4f USD together",
                self.what, len(self.guessed), sum(self.guessed),
            )  # fmt: skip
        if self.exceeding and (self.llm.price is not None or self.llm.max_cost_usd is not None):
            log.warning(
                "%s: %d count(s) are above the bound that max_cost_usd reckons with, such as %s; they are "
                "charged as told",
                self.what, len(self.exceeding), self.exceeding[0],
            )  # fmt: skip

    def _failed(self, error: Exception) -> _Failed:
        """The failed attempt for an error; raises _Stop if every call would fail."""
        # Some clients put an error of their own, which says nothing, around what a response of theirs met.
        error = next((link for link in causes(error) if isinstance(link, BadResponse)), error)
        if isinstance(error, Redirected):
            why = f"{self.what}: {self.llm.place} {redact(str(error))}; give the address itself"
            raise _Stop(ConfigError(why)) from None
        self.reached = self.reached or not was_not_sent(error)
        why, detail = f"{type(error).__name__}: {error}", told_in(error).strip()
        if detail and detail not in why:
            why += f": {detail}"
        why = visible(redact(why[:_LONGEST_ERROR]), one_line=True)[:_TOLD]
        status = status_of(error)
        if status in _FATAL or (status == 429 and "insufficient_quota" in str(error)):
            raise _Stop(ConfigError(f"{self.what}: {self.llm.place} refuses with {status}: {why}")) from None
        if isinstance(error, UnicodeEncodeError) or (
            status is not None and 400 <= status < 500 and status not in _PASSING
        ):
            return _Failed(why, wait=None)
        return _Failed(why, wait=retry_after(error), charged=may_have_cost(error))
