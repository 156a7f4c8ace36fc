"""An embedder whose vectors a server computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.checks import require_count, require_number, require_text
from ragauge.contract.component import Embedded, Embedder, Role, Tools
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.identity import named, runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.redact import redact
from ragauge.contract.workplace import FreshWorkplace, Workplace
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.llms.served import models_at, served_identity, serves_else
from ragauge.llms.settings import ChatSettings, key_to_send
from ragauge.plugins.embedding_api.client import Embeddings
from ragauge.plugins.embedding_api.sending import vectors_of
from ragauge.store import Store, canonical_json, default_folder, default_ledger

_CLIENT = f"{Embeddings.__module__}.{Embeddings.__name__}"


@option("embedder/openai_compatible")
class OpenAICompatible(ChatSettings, Embedder):
    """Vectors of `POST {base_url}/embeddings`, at unit length.

    model: its name on the server.   base_url: None is OpenAI's.   dimensions: numbers of a vector for models that can
    shorten theirs; None is the model's own.   query_prefix, passage_prefix: stand before texts that are searched with
    and that are to be found.   revision: any text; another one is another model, for a server that has changed its
    weights under one name.   batch_size: texts of a request.   price: US dollars per million tokens, None where they
    cost nothing. The other settings are those of chat models (`ragauge.llms.settings`). ConfigError without a model.
    """

    component = "openai_compatible"
    by_server = True
    counts = ("embedder_texts", "embedder_cost_usd")

    chat: Mapping[str, Any] = field(default_factory=dict, metadata={"runtime": True})
    model: str | None = CONF
    base_url: str | None = runtime(None)
    dimensions: int | None = CONF
    query_prefix: str = CONF
    passage_prefix: str = CONF
    revision: str | int | None = CONF
    batch_size: int = runtime(CONF)
    give_up_after: int = runtime(1)  # the vectors of all texts are needed

    def __post_init__(self) -> None:
        for name, most in (("batch_size", 10_000), ("dimensions", 1_000_000)):
            require_count(f"embedder.{name}", getattr(self, name), most=most, null="" if name == "dimensions" else None)
        price = self.price
        if price is not None and not isinstance(price, Mapping):
            require_number("embedder.price", price, 0, null="where they cost nothing")
            object.__setattr__(self, "price", {"prompt": price, "completion": 0.0})
        object.__setattr__(self, "chat", self._client())
        if not self.model:
            names = models_at(self.chat, key_to_send(self))
            listed = f"; {redact(self.address)} lists: {names}" if names else ""
            raise ConfigError(f"embedder.model is not given: set it to the model's name on the server{listed}")
        require_text("embedder.model", self.model, "a model's name on the server")
        try:
            super().__post_init__()
        except RagaugeError as error:
            raise type(error)(f"embedder.{error}") from None

    def _client(self) -> dict[str, Any]:
        """Class and arguments of the client."""
        given = {"model": self.model, "base_url": self.base_url, "dimensions": self.dimensions}
        return {"_target_": _CLIENT, **{name: value for name, value in given.items() if value is not None}}

    def _weights(self) -> dict[str, Any]:
        """What identifies the model."""
        return {"model": self.model_name}

    @property
    def symmetric(self) -> bool:
        """Whether a text has the same vector as a query and as a passage."""
        return self.query_prefix == self.passage_prefix

    def identity(self) -> dict[str, Any]:
        """The model's name, dimensions, prefixes and revision; not where it is reached."""
        optional = {"dimensions": self.dimensions, "revision": self.revision}
        return {
            **named(self),
            **self._weights(),
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def served(self, store: Workplace) -> dict[str, Any]:
        """The server's identification of the weights behind the name; {} where it has none."""
        where = self.model_name, key_to_send(self), self.budget_name, self._ledger(store), self.max_wait
        try:
            return served_identity(self.chat, *where)
        except ConfigError as error:
            raise ConfigError(str(error).replace("chat.", "embedder.", 1)) from None

    def describe(self, tools: Tools) -> dict[str, str]:
        """The server's identification of the weights, as a tag of the run."""
        served = self.served(tools.store)
        return {"served": canonical_json(served)} if served else {}

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`; [0, 0] without a text.

        `scratch`: the store whose ledger gets tokens and cost.
        """
        pieces = list(self.pieces(texts, role, scratch))
        if not pieces:
            return np.empty((0, self.dimensions or 0), dtype=np.float32)
        vectors = np.empty((len(texts), pieces[0].vectors.shape[1]), dtype=np.float32)
        for piece in pieces:
            vectors[piece.rows] = piece.vectors
        return vectors

    def pieces(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> Iterator[Embedded]:
        """The vectors of each request when they come."""
        if not len(texts):
            return
        store = Store(scratch or default_folder())
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        other = partial(serves_else, self.chat, self.model_name, key_to_send(self), self.served(store))
        sent = [prefix + text for text in texts]
        yield from vectors_of(self, self._ledger(store), sent, self.batch_size, other)

    def _ledger(self, store: Workplace) -> Ledger:
        root = store.ledger_root if isinstance(store, FreshWorkplace) else store.root
        return open_ledger(self.ledger or default_ledger(root))
