"""Carrying out calls of a chat model: what is in flight, tried again, waited for, and given up.

The state of a batch lives here; what is asked, and what it may cost, is said in ragauge.llms.chat.
"""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import functools
import importlib
import json
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ragauge.contract.errors import ConfigError, GateError, MissingError, RagaugeError
from ragauge.contract.progress import progress
from ragauge.contract.protocols import Reply
from ragauge.contract.redact import redact
from ragauge.llms.ledger import Call, Ledger
from ragauge.store import canonical_json

if TYPE_CHECKING:
    from tqdm import tqdm

    from ragauge.llms.chat import ChatLLM

log = logging.getLogger(__name__)

T = TypeVar("T")

CUT = "cut at the token limit"
_CUT_REASONS = frozenset({"length", "max_tokens", "MAX_TOKENS"})
# Their complete replies say why they ended; one that does not was cut by the connection.
_SAY_WHY_THEY_END = ("langchain_openai", "langchain_ollama")

# Every call would fail: wrong key, no right, no such model or path, nothing left to pay with.
_FATAL = frozenset({401, 402, 403, 404, 405, 407})
# Client errors that pass with time; any other 4xx is this request's own fault.
_PASSING = frozenset({408, 409, 425, 429})
_LOCAL_KEY = "EMPTY"  # what servers that check no key are sent; the clients refuse an empty one


def as_reply(call: Call) -> Reply:
    """The reply that a finished call is."""
    return Reply(
        text=call.text,
        error=CUT if call.finish in _CUT_REASONS else None,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        cost_usd=call.cost_usd,
        seconds=call.seconds,
    )


def as_cached(reply: Reply) -> Reply:
    """The reply as it is when nobody had to pay for it: marked, with its tokens, at no cost and time."""
    return dataclasses.replace(reply, cost_usd=0.0, seconds=0.0, cached=True)


class _Stop(Exception):
    """What ends a batch early; holds the error to raise when the calls in flight are done."""

    def __init__(self, error: RagaugeError) -> None:
        super().__init__(str(error))
        self.error = error


class _Failed(Exception):
    """One attempt that gave no reply; `wait` is what the server asked for, None where a retry is no use."""

    def __init__(self, why: str, wait: float | None = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass
class _Gate:
    """When the next call to an endpoint may start: the rate limit and the server's own requests to wait."""

    spacing: float  # seconds between calls
    next_slot: float = 0.0
    not_before: float = 0.0

    async def enter(self) -> None:
        now = time.monotonic()
        slot = max(now, self.next_slot)
        self.next_slot = slot + self.spacing
        await asyncio.sleep(slot - now)
        while (wait := self.not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    def pause(self, seconds: float) -> None:
        self.not_before = max(self.not_before, time.monotonic() + seconds)


@dataclass
class Batch:
    """The state of one `ask`: what is reserved of the budget, what failed in a row, whether to stop."""

    llm: ChatLLM
    ledger: Ledger
    options: Mapping[str, Any]
    what: str
    reserved: float = 0.0
    spent: float = 0.0
    failed_in_a_row: int = 0
    stop: RagaugeError | None = None
    replies: dict[str, Reply] = field(default_factory=dict)

    async def run(self, jobs: Sequence[tuple[str, str, str]]) -> dict[str, Reply]:
        """The reply of every (key, request, prompt)."""
        llm = self.llm
        model, gate = _endpoint(canonical_json(llm.chat), _api_key(llm), llm.requests_per_minute, os.getpid())
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
        if self.stop is not None:
            raise self.stop
        return self.replies

    async def _work(self, queue: Iterator[tuple[str, str, str]], model: Any, gate: _Gate, bar: tqdm) -> None:
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
        """The reply, from whoever has it first: another process that is asking now, or this call."""
        pause = 0.02
        while not self.ledger.claim(key):
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        try:
            found = self.ledger.find([key])
            if found:
                return as_cached(as_reply(found[key]))
            return await self._attempts(key, request, prompt, model, gate)
        finally:
            self.ledger.release(key)

    async def _attempts(self, key: str, request: str, prompt: str, model: Any, gate: _Gate) -> Reply:
        llm = self.llm
        paid = Reply(None)  # tokens and cost of all attempts, the ones that gave no text too
        error = "no attempt"
        began = time.monotonic()
        for attempt in range(llm.retries + 1):
            await gate.enter()
            if self.stop is not None:
                break
            bound = await self._reserve(prompt)
            try:
                call = await self._attempt(key, request, prompt, model)
            except _Failed as failure:
                error = f"{attempt + 1} attempt(s), the last: {failure}"
                if failure.wait is None or failure.wait > llm.max_wait:
                    break
                if failure.wait:
                    gate.pause(failure.wait)
                if attempt < llm.retries:
                    log.debug("%s: %s; asked again", self.what, error)
                    longest = min(llm.max_wait, llm.backoff * 2**attempt)
                    await asyncio.sleep(failure.wait + random.uniform(0, longest))
                continue
            finally:
                self.reserved -= bound
            self.spent += call.cost_usd
            paid = dataclasses.replace(
                paid,
                prompt_tokens=paid.prompt_tokens + call.prompt_tokens,
                completion_tokens=paid.completion_tokens + call.completion_tokens,
                cost_usd=paid.cost_usd + call.cost_usd,
            )
            if call.text is not None:
                self.failed_in_a_row = 0
                return dataclasses.replace(
                    paid, text=call.text, error=as_reply(call).error, seconds=call.seconds
                )
            error = f"{attempt + 1} attempt(s), the last: an empty reply"
        self._count_failure(error)
        return dataclasses.replace(paid, error=error, seconds=time.monotonic() - began)

    def _count_failure(self, error: str) -> None:
        log.warning("%s: no reply after %s", self.what, error)
        self.failed_in_a_row += 1
        if self.failed_in_a_row >= self.llm.give_up_after:
            raise _Stop(
                MissingError(
                    f"{self.what}: {self.failed_in_a_row} requests in a row failed at {self._where()}; "
                    f"{error}. What was answered is kept; run again when the server answers"
                )
            )

    async def _reserve(self, prompt: str) -> float:
        """The most the next call can cost, reserved; ends the batch where the budget does not hold it.

        Where it would hold it but for what calls in flight can cost, theirs is waited for.
        """
        limit = self.llm.max_cost_usd
        if limit is None:
            return 0.0
        bound = self.llm.cost_bound(prompt)
        while (spent := self.ledger.spent(self.llm.budget_name)) + bound <= limit:
            if spent + self.reserved + bound <= limit:
                self.reserved += bound
                return bound
            await asyncio.sleep(0.02)
        raise _Stop(
            GateError(
                f"max_cost_usd: {spent:.4f} of {limit} USD are spent and the next call to "
                f"{self.llm.model_name} can cost {bound:.4f}; every reply that was paid for is kept"
            )
        )

    async def _attempt(self, key: str, request: str, prompt: str, model: Any) -> Call:
        """One call, in the ledger when this returns; _Failed without a reply, _Stop where none can come."""
        began = time.monotonic()
        try:
            message = await asyncio.wait_for(
                model.ainvoke([("human", prompt)], **self.options), self.llm.timeout
            )
            text, finish, prompt_tokens, completion_tokens = _read_message(message, self.llm.chat["_target_"])
        except _Failed:
            raise
        except TimeoutError:
            raise _Failed(f"no reply within {self.llm.timeout:g} s") from None
        except Exception as error:
            self._classify(error)
        call = Call(
            # An empty reply was paid for but is nothing to find again.
            key=key if text.strip() else f"{key[:48]}-empty-{uuid.uuid4().hex}",
            request=request,
            text=text if text.strip() else None,
            finish=finish,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost_usd=self.llm.cost(prompt_tokens, completion_tokens),
            seconds=time.monotonic() - began,
            budget=self.llm.budget_name,
        )
        self.ledger.add(call)
        return call

    def _classify(self, error: Exception) -> NoReturn:
        why = redact(f"{type(error).__name__}: {error}")[:500]
        status = _status(error)
        if status in _FATAL or (status == 429 and "insufficient_quota" in str(error)):
            raise _Stop(ConfigError(f"{self.what}: {self._where()} refuses with {status}: {why}")) from None
        if isinstance(error, UnicodeError) or (
            status is not None and 400 <= status < 500 and status not in _PASSING
        ):
            raise _Failed(why, wait=None) from None
        raise _Failed(why, wait=_retry_after(error)) from None

    def _where(self) -> str:
        address = self.llm.chat.get("base_url")
        return f"model {self.llm.model_name}" + (f" at {redact(str(address))}" if address else "")


def _read_message(message: Any, target: str) -> tuple[str, str, int, int]:
    """Text, reason of ending, prompt and completion tokens of a message; _Failed if the connection cut it."""
    about = message.response_metadata or {}
    finish = next((about[k] for k in ("finish_reason", "done_reason", "stop_reason") if about.get(k)), None)
    if finish is None and target.startswith(_SAY_WHY_THEY_END):
        raise _Failed("the connection ended before the reply did")
    usage = message.usage_metadata or {}
    return (
        str(message.text),
        str(finish or ""),
        int(usage.get("input_tokens") or 0),
        int(usage.get("output_tokens") or 0),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, the suppressed contexts included."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _status(error: Exception) -> int | None:
    for link in _chain(error):
        for holder in (link, getattr(link, "response", None)):
            status = getattr(holder, "status_code", None)
            if isinstance(status, int) and status >= 400:
                return status
    return None


def _retry_after(error: Exception) -> float:
    """Seconds that the server asks to wait, 0 where it does not say."""
    for link in _chain(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if value is None:
            continue
        try:
            return max(0.0, float(value))
        except ValueError:
            try:
                until = email.utils.parsedate_to_datetime(value)
            except ValueError:
                return 0.0
            until = until if until.tzinfo else until.replace(tzinfo=UTC)
            return max(0.0, (until - datetime.now(UTC)).total_seconds())
    return 0.0


def _api_key(llm: ChatLLM) -> str | None:
    """The key to send; None leaves it to the client."""
    if llm.api_key_env is None:
        return None
    key = os.environ.get(llm.api_key_env)
    # A server of one's own may check no key; left to the client it would be sent another service's.
    if not key and not llm.chat.get("base_url"):
        raise ConfigError(f"api_key_env: the environment variable {llm.api_key_env} is not set")
    return key or _LOCAL_KEY


@functools.lru_cache(maxsize=16)
def _endpoint(
    chat: str, api_key: str | None, requests_per_minute: float | None, pid: int
) -> tuple[Any, _Gate]:
    """The LangChain model and its gate, one per process and config."""
    return build_chat_model(json.loads(chat), api_key), _Gate(60 / (requests_per_minute or float("inf")))


def build_chat_model(chat: Mapping[str, Any], api_key: str | None = None) -> Any:
    """The LangChain chat model that `_target_` and its arguments name; ConfigError if there is none such."""
    target = chat["_target_"]
    arguments = {key: value for key, value in chat.items() if key != "_target_"}
    module_name, _, class_name = target.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"chat._target_: {target} cannot be imported ({error})") from None
    if not hasattr(cls, "ainvoke"):
        raise ConfigError(f"chat._target_: {target} is not a LangChain chat model")
    known = {
        name
        for key, info in getattr(cls, "model_fields", {}).items()
        for name in (key, info.alias)
        if name is not None
    }
    unknown = sorted(set(arguments) - known)
    if unknown and known:
        raise ConfigError(
            f"chat.{unknown[0]}: {class_name} has no such argument; allowed: {', '.join(sorted(known))}"
        )
    if "max_retries" in known:
        arguments.setdefault("max_retries", 0)  # retries are counted, paced and limited here
    if api_key is not None:
        arguments["api_key"] = api_key
    try:
        return cls(**arguments)
    except Exception as error:
        raise ConfigError(f"chat: {class_name} cannot be made: {redact(str(error))}") from None


class _LoopThread:
    """An event loop in a thread of its own: clients keep their connections between batches."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="ragauge-llm", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the coroutine; an interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_loop_thread: _LoopThread | None = None


def run_batch(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, run on the process's one loop thread (a fork starts its own)."""
    global _loop_thread
    if _loop_thread is None or _loop_thread.pid != os.getpid():
        _loop_thread = _LoopThread()
    return _loop_thread.run(work)
