"""A chat model of the real Protocol whose replies are a function of the prompt, with a count of requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ragauge.contract.component import ChatModel, Tools
from ragauge.contract.replies import Reader, Reply, schema_of
from ragauge.contract.usage import Usage
from ragauge.contract.workplace import Workplace
from ragauge.llms.replies import form_in


@dataclass
class ScriptedChat(ChatModel):
    """Replies by prompt and how often it was asked; None is a failure. No reply is asked for twice.

    A shipped prompt that asks for a JSON object must come with the object's schema.
    """

    reply: Callable[[str, int], str | None]
    asked: Counter[str] = field(default_factory=Counter)
    _kept: dict[tuple[str, str], Reply] = field(default_factory=dict)

    def identity(self) -> dict[str, Any]:
        return {"component": "scripted"}

    def ask(
        self,
        prompts: Sequence[str],
        store: Workplace,
        what: str,
        salt: str = "",
        readers: Sequence[Reader] = (),
    ) -> list[Reply]:
        found = [self._reply(prompt, salt) for prompt in prompts]
        for i, read in enumerate(readers):
            _check_schema(prompts[i], read)
            if found[i].text is not None and read(found[i]) is None:
                found[i] = self._reply(prompts[i], f"{salt}, once more")
        return found

    def _reply(self, prompt: str, salt: str) -> Reply:
        if (prompt, salt) not in self._kept:
            text = self.reply(prompt, self.asked[prompt])
            self.asked[prompt] += 1
            if text is None:
                return Reply(None, "HTTP 500")
            self._kept[prompt, salt] = Reply(text, usage=Usage(calls=1))
        return self._kept[prompt, salt]

    def tools(self, others: Tools) -> Tools:
        """Tools with this model."""
        return replace(others, chat=self)


def _check_schema(prompt: str, read: Reader) -> None:
    if "one JSON object and nothing around it" not in prompt:
        return
    schema = schema_of(read)
    assert schema is not None, prompt
    keys, named = list(schema["properties"]), re.findall(r'"(\w+)":', form_in(prompt))
    assert keys == [key for key in named if key in keys] or all(key.isdigit() for key in keys), prompt
    assert schema["required"] == keys


def unframed(prompt: str) -> str:
    """The prompt without the marks that frame what is filled in."""
    return re.sub(r"<quoted-material[-\w]*>\n?|\n?</quoted-material[-\w]*>", "", prompt)


def always(text: str | None) -> ScriptedChat:
    """One reply to everything."""
    return ScriptedChat(lambda prompt, n: text)


def topics(*rows: tuple[Any, ...], **columns: Any) -> pd.DataFrame:
    """Frame `topics` of (qid, query, answer)."""
    frame = pd.DataFrame(rows, columns=["qid", "query", "answer"])
    return frame.astype({"qid": "str", "query": "str", "answer": "str"}).assign(**columns)


def answers(*rows: tuple[str, Any], n_tokens: int = 100) -> pd.DataFrame:
    """Frame `answers` of (qid, answer), as far as measures are given it."""
    frame = pd.DataFrame(rows, columns=["qid", "answer"]).astype({"qid": "str", "answer": "str"})
    status = frame["answer"].notna().map({True: "ok", False: "missing"})
    return frame.assign(n_tokens=n_tokens, status=status)[["qid", "n_tokens", "answer", "status"]]


def used(*rows: tuple[str, str, int | None], n_tokens: int = 100) -> pd.DataFrame:
    """Frame `longest_passages` of (qid, text, chars), in the order of the context and of the ranking.

    Whole passages stand in the longest context; `used_passages` has the same columns but `longest`.
    """
    frame = pd.DataFrame(rows, columns=["qid", "text", "chars"])
    position = frame.groupby("qid").cumcount()
    chars = [len(text) if c is None or pd.isna(c) else int(c) for _, text, c in rows]
    docno = [f"d{i}" for i in range(len(rows))]
    frame = frame.assign(n_tokens=n_tokens, position=position, rank=position, docno=docno, chars=chars)
    frame["longest"] = [len(text) for _, text, _ in rows]
    return frame[["qid", "n_tokens", "position", "rank", "docno", "text", "chars", "longest"]].astype(
        {"qid": "str", "text": "str", "docno": "str"}
    )


def evidence(*rows: tuple[str, str | None]) -> pd.DataFrame:
    """Frame `evidence` of (qid, text)."""
    frame = pd.DataFrame(rows, columns=["qid", "text"]).astype({"qid": "str", "text": "str"})
    return frame.assign(part=frame.groupby("qid").cumcount(), docno=pd.Series(None, frame.index, dtype="str"))


def values(frame: pd.DataFrame) -> dict[tuple[str, str], tuple[float | None, str]]:
    """What a frame `answer_values` says of every topic and measure."""
    rows = zip(frame["qid"], frame["measure"], frame["value"], frame["status"], strict=True)
    return {(qid, name): (None if pd.isna(value) else value, status) for qid, name, value, status in rows}
