"""Requests for vectors, sent as calls of chat models are: with their retries, pace, prices, caps and redaction.

A request stands in the ledger with its tokens and cost alone. Its vectors are handed on when they come.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from ragauge.contract.component import Embedded
from ragauge.contract.progress import Progress, Teller
from ragauge.llms.asked import Asked
from ragauge.llms.calls import Batch
from ragauge.llms.clients import start
from ragauge.llms.ledger import Ledger
from ragauge.llms.replies import Received
from ragauge.llms.settings import ChatSettings
from ragauge.store import canonical_json


@dataclass
class Sending(Batch):
    """The state of the requests for some texts. rows: the texts of a request, by position; take: gets the vectors."""

    texts: Sequence[str] = ()
    rows: dict[str, range] = field(default_factory=dict)
    take: Callable[[Embedded], None] = lambda piece: None

    def progress(self, n: int) -> Progress:
        """Shows nothing: texts are counted by the cache of vectors."""
        return Teller(tell=lambda line: None).open(n, self.what, "call")

    async def message(self, asked: Asked, model: Any, gate: Any) -> Received:
        """The tokens of a request, whose vectors are handed on."""
        rows = self.rows[asked.key]
        vectors, usage = await model.ainvoke(self.texts[rows.start : rows.stop])
        charged = self.llm.charge(asked.prompt, None, Received("", "", usage, None))
        self.take(Embedded(rows, vectors, charged))
        return Received(f"{len(rows)} vectors", "stop", usage, None)


def vectors_of(
    llm: ChatSettings,
    ledger: Ledger,
    texts: Sequence[str],
    batch_size: int,
    serves_else: Callable[[], str | None],
) -> Iterator[Embedded]:
    """The vectors of the texts, `batch_size` of them a request, as they come.

    The first error ends all requests: one of `ragauge.llms.chat.ChatLLM.ask`, or of the client.
    """
    come: SimpleQueue[Embedded | None] = SimpleQueue()
    rows = {uuid.uuid4().hex: range(i, min(i + batch_size, len(texts))) for i in range(0, len(texts), batch_size)}
    asked = [
        Asked(
            key,
            canonical_json({"chat": {"model": llm.model_name}, "embeds": len(of)}),
            "\n".join(texts[of.start : of.stop]),
            {},
        )
        for key, of in rows.items()
    ]
    batch = Sending(llm, ledger, "embedding", serves_else=serves_else, texts=texts, rows=rows, take=come.put)
    running: Future[Any] = start(batch.run(asked))
    running.add_done_callback(lambda _: come.put(None))
    try:
        while (piece := come.get()) is not None:
            yield piece
        running.result()
    finally:
        running.cancel()
