"""A GGUF file as an embedder: a server of its own, which computes vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.component import Tools
from ragauge.contract.extras import require_extra
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.usage import Usage
from ragauge.llms.clients import guard
from ragauge.plugins.embedding_api.client import Embeddings
from ragauge.plugins.embedding_api.embedder import OpenAICompatible
from ragauge.plugins.llama_cpp.gguf import digest_of, file_at, header_of
from ragauge.plugins.llama_cpp.process import FROM_FILE
from ragauge.plugins.llama_cpp.serving import Place, is_served, root, serve, wishes
from ragauge.store import canonical_json

_POOLINGS = ("mean", "cls", "last")
_CONTEXT = 2048  # tokens of a text: all are computed at once, in buffers that grow with their square


class FileEmbeddings:
    """Asks the server of a GGUF file for vectors; starts it where none runs.

    weights: SHA-256 of the file.   pooling, server: `key`, `path`, `wish` and `pooling` of `serve`.
    """

    def __init__(self, weights: str, pooling: str, server: Mapping[str, Any]) -> None:
        self._weights, self._pooling, self._server = weights, pooling, server
        self._connect()

    def _connect(self) -> None:
        key, file, wish = self._server["key"], Path(self._server["path"]), self._server["wish"]
        self._place: Place = serve(key, file, self._weights, wish, self._pooling)
        self._client: Embeddings = guard(Embeddings(file.stem, self._place.address, api_key=self._place.key))

    async def ainvoke(self, texts: Sequence[str], **options: Any) -> tuple[np.ndarray, Usage]:
        """The texts' vectors; a server that has gone is started again before the error is raised, for the next try."""
        try:
            return await self._client.ainvoke(texts)
        except Exception:
            if not is_served(self._place):
                self._connect()
            raise


@option("embedder/llama_cpp")
class FileEmbedder(OpenAICompatible):
    """Vectors of a GGUF file, served on this machine.

    path: the file, or `package:<name>` for the one inside an installed package. Its SHA-256 is part of the identity,
    its path is not. pooling: mean, cls or last, of its vectors of tokens; None is what the file says, else mean.
    threads, context (tokens of a text), slots, gpu_layers: settings of its server; None for those that fit the machine,
    and for one slot.
    """

    component = "llama_cpp_embedder"

    path: str | None = runtime(CONF)
    pooling: str | None = CONF
    threads: int | None = runtime(CONF)
    context: int | None = runtime(CONF)
    slots: int | None = runtime(CONF)
    gpu_layers: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_extra("embedder=llama_cpp", "xllamacpp")
        if self.pooling is not None:
            require_choice("embedder.pooling", self.pooling, _POOLINGS)
        object.__setattr__(self, "model", file_at("embedder.path", self.path).stem)
        super().__post_init__()

    def _client(self) -> dict[str, Any]:
        key = "embedder.path"
        file, wish = file_at(key, self.path), wishes("embedder", self)
        header = header_of(key, file)
        wish["context"] = wish["context"] or min(header.trained, _CONTEXT)
        wish["slots"] = wish["slots"] or 1
        return {
            "_target_": f"{FileEmbeddings.__module__}.{FileEmbeddings.__name__}",
            "weights": digest_of(key, file, root() / "digests"),
            "pooling": self.pooling or (FROM_FILE if header.pools else "mean"),
            "server": {"key": key, "path": str(file), "wish": wish},
        }

    @property
    def model_name(self) -> str:
        """The file's name."""
        return str(self.model)

    def _weights(self) -> dict[str, Any]:
        return {"sha256": self.chat["weights"], "pooling": self.chat["pooling"]}

    def describe(self, tools: Tools) -> dict[str, str]:
        """The file's name and SHA-256, as a tag of the run."""
        return {"served": canonical_json({"file": self.model_name, "sha256": self.chat["weights"]})}
