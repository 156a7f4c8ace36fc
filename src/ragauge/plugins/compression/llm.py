"""`compressor=llm`: the parts that the job's chat model copies from the passages."""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.replies import CUT, Reply
from ragauge.contract.retrieval import Compressor
from ragauge.llms.prompts import fill, load_prompt
from ragauge.retrieval.passages import with_texts

_PROMPTS = f"{__package__}.prompts"
log = logging.getLogger(__name__)

_NOTHING = re.compile(r"\W*(?:none|no[ _]output)\W*", re.IGNORECASE)
_NUMBER = re.compile(r"^[ \t]*\[(\d{1,4})\][ \t]*:?", re.MULTILINE)


@option("compressor/llm")
class LLMCompressor(Compressor):
    """The parts that the job's chat model copies from a topic's passages; needs an llm that is a chat model.

    per: `passage` asks once for every passage, `topic` once for all passages of a topic, numbered.
    depth: passages of a topic that are shown, best first; all others are left out. None is all.
    prompt: a text with $question and $passage (per=topic: $passages), or a .txt file of it; None is the
    shipped one. It must ask for the word NONE where nothing helps, and with per=topic for `[number]` before
    what comes from a passage.
    A passage without a useful part is dropped. Where a reply failed, was cut, or with per=topic names no passage and is
    not NONE, its passages stay whole. They are counted (`compressor_failed`), marked in the column `failed`, and asked
    for again in a rerun. A topic's text is whatever the model wrote: it is not checked against the passage.
    """

    component = "llm"
    version = 3
    kind = "llm"
    uses = frozenset({"chat"})
    needs_chat = True
    counts = ("compressor_failed",)

    per: Literal["passage", "topic"] = CONF
    depth: int | None = CONF
    prompt: str | None = CONF
    max_tokens: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_choice("compressor.per", self.per, ("passage", "topic"))
        require_count("compressor.depth", self.depth, null="all passages")
        shown = "passages" if self.per == "topic" else "passage"
        file = f"compress_{self.per}.txt"
        prompt = load_prompt(self.prompt, file, ("question", shown), key="compressor.prompt", package=_PROMPTS)
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` of the copied parts, with the column `failed`.

        MissingError where every reply failed, ConfigError where there is no chat model.
        """
        if tools.chat is None:
            raise ConfigError("compressor=llm needs an llm that is a chat model (ollama, openai)")
        passages = passages.reset_index(drop=True)
        every = np.arange(len(passages))
        opens = every[1:]
        if self.per == "topic":
            topic = pd.factorize(passages["qid"])[0]
            opens = opens[topic[1:] != topic[:-1]]
        rows = np.split(every, opens) if len(every) else []
        texts = passages["text"].tolist()
        question = topics.set_index("qid")["query"]
        prompts = [
            self._request(str(question[passages["qid"].iloc[own[0]]]), [texts[row] for row in own]) for own in rows
        ]
        readers = [partial(self._read, n=len(own)) for own in rows]
        replies = tools.chat.ask(prompts, tools.store, "compress", readers=readers) if prompts else []
        failed = np.zeros(len(passages), dtype=bool)
        errors = []
        for own, reply in zip(rows, replies, strict=True):
            copied = self._read(reply, len(own))
            if copied is None:
                failed[own] = True
                errors.append(reply.error or "no passage is named in it")
                continue
            for row, text in zip(own, copied, strict=True):
                texts[row] = text
        if errors:
            counts = f"{len(errors)} of {len(replies)}"
            if len(errors) == len(replies):
                raise MissingError(f"compressor=llm: {counts} replies failed ({errors[0]})")
            log.warning("compressor=llm: %s replies failed, their passages stay whole (%s)", counts, errors[0])
        tools.count("compressor_failed", int(failed.sum()))
        return with_texts(passages.assign(failed=failed), texts)

    def _request(self, question: str, texts: list[str]) -> str:
        if self.per == "passage":
            return fill(str(self.prompt), question=question, passage=texts[0])
        # A line each, so that no passage can pass for the next one.
        numbered = "\n\n".join(f"[{number}] {' '.join(text.split())}" for number, text in enumerate(texts, 1))
        return fill(str(self.prompt), question=question, passages=numbered)

    def _read(self, reply: Reply, n: int) -> list[str] | None:
        """The copied part of each of the n passages, "" for none; None for a failed reply."""
        if reply.text is None or reply.error == CUT:
            return None
        if _NOTHING.fullmatch(reply.text):
            return [""] * n
        return [reply.text.strip()] if self.per == "passage" else copied_by_number(reply.text, n)


def copied_by_number(reply: str, n: int) -> list[str] | None:
    """The text after each number `[1]` to `[n]` at the beginning of a line, "" for none.

    A number that comes twice has both texts, one after the other; what stands before the first number or
    behind one that there is not is passed over. None where no number is one of a passage.
    """
    parts = _NUMBER.split(reply)
    found: dict[int, list[str]] = {}
    for number, text in zip(parts[1::2], parts[2::2], strict=True):
        if 1 <= int(number) <= n:
            found.setdefault(int(number), []).append("" if _NOTHING.fullmatch(text) else text.strip())
    if not found:
        return None
    return [" ".join(filter(None, found.get(number, []))) for number in range(1, n + 1)]
