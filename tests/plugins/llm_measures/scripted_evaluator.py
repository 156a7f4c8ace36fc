"""What a language model might say to the requests of the answer measures, by rules and from the prompt alone.

Claims are sentences. A claim is supported by the passages that hold all of its words; one with a "not" is
contradicted by those that hold all of its other words. It says a statement if it holds all of its words, and
each sentence that does is a way to support the statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ragauge.contract.component import ChatModel
from ragauge.contract.replies import Reply
from scripted_chat import unframed

_ENTRY = re.compile(r"^(?:\[(\d+)\]|(\d+)\.) (.*)$", re.M)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _entries(block: str) -> list[str]:
    return [found[2] for found in _ENTRY.findall(block)]


def kind_of(prompt: str) -> str:
    """What a prompt asks for: claims, verdicts, ways, match, questions, or other."""
    starts = {
        "Break the answer": "claims", "Below are numbered sentences": "ways", "Below are": "verdicts",
        "Compare the claims": "match", "Write ": "questions",
    }  # fmt: skip
    return next((kind for start, kind in starts.items() if prompt.startswith(start)), "other")


def reply(prompt: str) -> str:
    """The reply to a request of a measure; "?" to any other."""
    found = {
        "claims": _claims, "verdicts": _verdicts, "ways": _ways, "match": _match, "questions": _questions,
    }  # fmt: skip
    return found.get(kind_of(prompt), lambda _: "?")(unframed(prompt))


def _claims(prompt: str) -> str:
    text = prompt.split("\nAnswer: ", 1)[1].split("\n", 1)[0]
    claims = [] if "cannot answer" in text else re.split(r"(?<=[.!?]) ", text)
    return json.dumps({"claims": list(dict.fromkeys(claims))})


def _verdicts(prompt: str) -> str:
    shown, rest = re.split(
        r"\n\nThe \d+ claims:\n", re.split(r"\nThe \d+ passages:\n", prompt, maxsplit=1)[1], maxsplit=1
    )
    passages, claims = _entries(shown), _entries(rest.split("\n\n", 1)[0])
    found: dict[str, Any] = {}
    for number, claim in enumerate(claims, 1):
        words = _words(claim)
        held = [_words(text) for text in passages]
        by = [i for i, there in enumerate(held, 1) if words <= there]
        against = [i for i, there in enumerate(held, 1) if "not" in words and words - {"not"} <= there]
        stance = "supported" if by else "contradicted" if against else "absent"
        found[str(number)] = {"verdict": stance, "passages": by or against}
    return json.dumps(found)


def _ways(prompt: str) -> str:
    shown, rest = prompt.split("\n\nStatements:\n", 1)
    sentences = {n: json.loads(text) for n, text in re.findall(r'^(\d+): (".*")$', shown, re.M)}
    statements = _entries(rest.split("\n\n", 1)[0])
    ways = [
        [[int(n)] for n, text in sentences.items() if _words(statement) <= _words(text)] for statement in statements
    ]
    return json.dumps({str(i): of_statement for i, of_statement in enumerate(ways, 1)})


def _match(prompt: str) -> str:
    first, second = prompt.split("\nClaims of the answer:\n", 1)
    statements = _entries(first.split("\nStatements of the reference answer:\n", 1)[1])
    claims = _entries(second.split("\n\n", 1)[0])
    said = [[_words(statement) <= _words(claim) for statement in statements] for claim in claims]
    in_reference = {str(i): any(row) for i, row in enumerate(said, 1)}
    in_answer = {str(i): any(column) for i, column in enumerate(zip(*said, strict=True), 1)}
    return json.dumps({"claims": in_reference, "statements": in_answer})


def _questions(prompt: str) -> str:
    n = int(prompt.split()[1])
    text = prompt.split("\nText: ", 1)[1].split("\n", 1)[0]
    questions = [f"Question {i}: {text[:40]}?" for i in range(1, n + 1)]
    return json.dumps({"questions": questions, "noncommittal": "cannot answer" in text})


def answer_from_documents(prompt: str) -> str:
    """An llm's answer: the sentence of the documents that has most words of the question, if it has two."""
    documents, _, question = unframed(prompt).rpartition("\nQuestion: ")
    sentences = re.split(r"(?<=[.!?])\s+", documents.rpartition("\nDocuments:\n")[2])
    asked = _words(question) - {"the", "of", "a", "in", "is", "was", "to", "and", "answer"}
    best = max(sentences, key=lambda one: len(asked & _words(one)))
    return best if len(asked & _words(best)) > 1 else "I cannot answer that."


class ScriptedChat(ChatModel):
    """A chat model that replies by a function of the prompt, as `tools.chat`; what was asked is kept."""

    def __init__(self, replies: Callable[[str], str | None] = reply) -> None:
        self.replies = replies
        self.asked: list[tuple[str, str]] = []

    def ask(self, prompts: Sequence[str], store: object, what: str, salt: str = "", readers: Any = ()) -> list[Reply]:
        """The replies; None of the function is a request that failed. Unreadable ones are asked for twice."""
        self.asked += [(prompt, salt) for prompt in prompts]
        texts = [self.replies(prompt) for prompt in prompts]
        found = [Reply(text) if text is not None else Reply(None, error="HTTP 500") for text in texts]
        for i, read in enumerate(readers):
            if found[i].text is not None and read(found[i]) is None:
                self.asked.append((prompts[i], "once more"))
                found[i] = Reply(self.replies(prompts[i]))
        return found

    def kinds(self) -> list[str]:
        """What was asked for, request by request."""
        return [kind_of(prompt) for prompt, _ in self.asked]


def tools_with(chat: ScriptedChat, embedder: Any = None) -> Any:
    """Tools that hold this chat model, an embedder, and no store."""
    return SimpleNamespace(chat=chat, store=None, embedder=embedder)
