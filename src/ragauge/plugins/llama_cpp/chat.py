"""A GGUF file as a chat model, and the components that ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ragauge.answering import ChatGenerator
from ragauge.answering.judges import ChatJudge
from ragauge.contract.component import Tools
from ragauge.contract.extras import require_extra
from ragauge.contract.identity import runtime
from ragauge.llms.chat import Evaluator
from ragauge.llms.settings import ChatSettings, build_chat_model
from ragauge.plugins.llama_cpp.gguf import digest_of, file_at, header_of
from ragauge.plugins.llama_cpp.serving import Place, is_served, root, serve, wishes
from ragauge.store import canonical_json


class LlamaCpp:
    """Asks the server of a GGUF file, as `ragauge.llms.calls` asks chat models; starts it where none runs.

    weights: SHA-256 of the file.   server: its `key` for errors, `path`, and the settings of `serve`.
    arguments: those of langchain_openai.ChatOpenAI, such as temperature and max_tokens.
    """

    def __init__(self, weights: str, server: Mapping[str, Any], **arguments: Any) -> None:
        self._weights, self._server, self._arguments = weights, server, arguments
        self._connect()

    def _connect(self) -> None:
        key, file = self._server["key"], Path(self._server["path"])
        self._place: Place = serve(key, file, self._weights, self._server["wish"])
        chat = {"_target_": "langchain_openai.ChatOpenAI", "model": file.stem, "base_url": self._place.address}
        self._model = build_chat_model({**chat, **self._arguments}, self._place.key)

    async def ainvoke(self, messages: Sequence[tuple[str, str]], **options: Any) -> Any:
        """The server's reply; one that has gone is started again before the error is raised, for the next attempt."""
        try:
            return await self._model.ainvoke(messages, **options)
        except Exception:
            if not is_served(self._place):
                self._connect()
            raise


@dataclass(frozen=True)
class _OfFile(ChatSettings):
    """Settings of a chat model that is a GGUF file.

    path: the file, or `package:<name>` for the one inside an installed package. Its SHA-256 is part of the model's
    identity, its path is not. threads, context (tokens of a prompt and its reply), slots (requests at a time),
    gpu_layers: settings of its server; null for those that fit the machine.
    """

    group: ClassVar[str]

    path: str | None = runtime(None)
    threads: int | None = runtime(None)
    context: int | None = runtime(None)
    slots: int | None = runtime(None)
    gpu_layers: int | None = runtime(None)

    def __post_init__(self) -> None:
        key = f"{self.group}.path"
        require_extra(f"{self.group}=llama_cpp", "xllamacpp", "langchain_openai")
        wish = wishes(self.group, self)
        file = file_at(key, self.path)
        header_of(key, file)  # a foreign file is refused before any work
        server = {"key": key, "path": str(file), "wish": wish}
        own = {"_target_": f"{__name__}.{LlamaCpp.__name__}", "weights": digest_of(key, file, root() / "digests")}
        object.__setattr__(self, "chat", {**self.chat, **own, "server": server})
        super().__post_init__()

    @property
    def model_name(self) -> str:
        """The file's name."""
        return Path(self.chat["server"]["path"]).stem

    def prompts_kept(self) -> int | None:
        """The slots of its server; None for those that fit the machine."""
        return self.slots

    def describe(self, tools: Tools) -> dict[str, str]:
        """The file's name and SHA-256, as a tag of the run."""
        return {"served": canonical_json({"file": self.model_name, "sha256": self.chat["weights"]})}


@dataclass(frozen=True)
class Answers(_OfFile, ChatGenerator):
    """Answers of a GGUF file."""

    component = "chat"
    group = "llm"


@dataclass(frozen=True)
class Judges(_OfFile, ChatJudge):
    """Verdicts of a GGUF file."""

    component = "chat"
    group = "judge"


@dataclass(frozen=True)
class Evaluates(_OfFile, Evaluator):
    """A GGUF file as the measures' own chat model."""

    component = "evaluator"
    group = "evaluator"
