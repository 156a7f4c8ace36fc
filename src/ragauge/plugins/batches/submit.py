"""Submits requests missing from the ledger as provider batches, and writes their replies into it.

Nothing is sent twice, and nothing is lost, wherever a process is killed:

1. The requests are entered into the ledger under a name of ours (`table.enter`); from here on no other job submits
   them, and the cap on money counts them.
2. Their file is uploaded, which starts nothing.
3. The ledger notes that the creation is about to be sent.
4. The batch is created with our name in it (see `BatchApi.find`), and its id goes into the ledger.
5. When it has ended, each reply is written and its request taken out in one transaction.

While a process does 1 to 4 it holds a claim on the name, which ends with the process. The next process that finds the
name without an id looks for it in the provider's list of batches. The batch is given up, and its requests may be
submitted again, only where its creation was never sent, or was sent more than `timeout` seconds ago and is not listed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ragauge.contract.errors import ConfigError, WaitingError
from ragauge.contract.progress import Progress, progress
from ragauge.contract.replies import Reader, Reply
from ragauge.llms.settings import BATCH, NOW
from ragauge.plugins.batches import table
from ragauge.plugins.batches.anthropic_api import AnthropicBatches
from ragauge.plugins.batches.api import BatchApi
from ragauge.plugins.batches.collecting import Collector
from ragauge.plugins.batches.openai_api import OpenAIBatches
from ragauge.plugins.batches.requests import Requests
from ragauge.plugins.batches.sending import Sender
from ragauge.plugins.batches.table import OpenBatch

if TYPE_CHECKING:
    from ragauge.llms.asked import Asked
    from ragauge.llms.ledger import Ledger
    from ragauge.llms.settings import ChatSettings

# By package and class of the chat model.
_APIS: dict[tuple[str, str], Callable[[ChatSettings, str], BatchApi]] = {
    ("langchain_openai", "ChatOpenAI"): OpenAIBatches,
    ("langchain_anthropic", "ChatAnthropic"): AnthropicBatches,
}


def check(llm: ChatSettings) -> None:
    """ConfigError for a model whose provider has no supported batches."""
    package, *_, name = _named(llm)
    if (package, name) not in _APIS:
        known = " or ".join(".".join(one) for one in _APIS)
        raise ConfigError(
            f"submit='batch': {name} has no batch API that is known here; allowed are now, and batch with {known}"
        )


def _named(llm: ChatSettings) -> list[str]:
    return str(llm.chat["_target_"]).split(".")


def fill(
    llm: ChatSettings,
    jobs: Sequence[Asked],
    ledger: Ledger,
    what: str,
    readers: Mapping[str, Reader],
) -> dict[str, Reply]:
    """The replies to the requests by key, as `ChatLLM.ask` gives them.

    With submit=now these are those alone that stand in an open batch. Raises WaitingError where a batch has not ended
    and `submit_wait` is false, GateError where nothing more fits `max_cost_usd`, MissingError where a batch failed or
    was cancelled, ConfigError where the provider takes no batches.
    """
    check(llm)
    charged = llm if llm.submit != NOW else dataclasses.replace(llm, submit=BATCH)
    package, *_, name = _named(llm)
    api = _APIS[package, name](charged, what)
    asked = Requests(charged, ledger, what, readers, {one.key: one for one in jobs})
    sender = Sender(charged, api, ledger, asked) if llm.submit != NOW else None
    collector = Collector(charged, api, ledger, asked)
    with progress(len(jobs), f"{what}, by batch", unit="call") as bar:
        try:
            return _filled(asked, sender, collector, bar)
        finally:
            asked.tell()
            collector.tell()


def _filled(asked: Requests, sender: Sender | None, collector: Collector, bar: Progress) -> dict[str, Reply]:
    """Submits and collects until every request is done; without a sender, until no open batch holds one."""
    llm, ledger, shown = asked.llm, asked.ledger, 0
    while True:
        lacking = asked.take_known()
        within = ledger.submitted(lacking)
        batches = table.open_batches(ledger, sorted(set(within.values())))
        for name in set(within.values()) - {batch.name for batch in batches}:
            table.close(ledger, name)  # its row was lost with a damaged page of the ledger
        ended = [collector.has_ended(batch) for batch in batches]
        if any(ended):
            continue
        outside = [key for key in lacking if key not in within]
        if sender is not None and outside and sender.submit(outside, wait_for_room=bool(batches)):
            continue
        if not lacking or (outside and sender is None and not batches):
            return asked.done
        done = min(len(asked.jobs), len(asked.done) + collector.completed())
        bar.update(max(0, done - shown))
        shown = max(done, shown)
        overdue = bool(batches) and all(map(collector.is_overdue, batches))
        if overdue or (batches and not llm.submit_wait):
            raise WaitingError(_waiting(collector, len(within), batches, overdue))
        time.sleep(llm.submit_poll if batches else min(1.0, llm.submit_poll))


def _waiting(collector: Collector, n: int, batches: Sequence[OpenBatch], overdue: bool) -> str:
    told = [
        f"{batch.remote or 'one whose creation is looked for'}"
        + (f" ({state.status}, {state.completed} of {state.total})" if state else "")
        for batch in batches
        for state in [collector.states.get(batch.name)]
    ]
    asked = collector.requests
    return (
        f"{asked.what}: {n} request(s) wait in {len(batches)} batch(es) at {asked.llm.place}: {', '.join(told)}"
        + (", for longer than the 24 hours that a provider has for it" if overdue else "")
        + "; the same command collects them"
        + (", and `ragauge batches forget` forgets one" if overdue else "")
    )
