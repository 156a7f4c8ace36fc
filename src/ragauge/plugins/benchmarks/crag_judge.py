"""`judge=crag`: right, missing or wrong, as in CRAG's evaluation.

Source: Yang et al., CRAG: Comprehensive RAG Benchmark, NeurIPS 2024, section 3.3, and its script
local_evaluation.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ragauge.answering.judges.frame import Truth, Verdict, divided, spread, truths, verdict_frame
from ragauge.contract.answering import Judge
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.option import CONF, option
from ragauge.contract.replies import CUT, Reply, Structured
from ragauge.llms.chat import ChatLLM
from ragauge.llms.json_replies import json_of, truth_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TRUTH, fields

LACK, WRONG, RIGHT = 1, 4, 5
_PROMPTS = f"{__package__}.prompts"
_INVALID = "invalid"  # stands in CRAG's answer to a question with a false premise: "invalid question"
_EXPECTED_ANSWER = "x" * 120  # stands for an answer that is not there yet, in estimates
_FORM = '{"accuracy": true or false}'  # as the error of another reply shows it
_Keys = list[tuple[str, str]]  # (qid, answer)


@option("judge/crag")
class CragJudge(ChatLLM, Judge):
    """Class 5, 1 or 4: by rules where they decide, else a chat model says whether the answer is right.

    An answer that holds one of `lack_phrases` lacks information. One that is equal to a reference, upper and lower case
    aside, is right. So is one that says "invalid" where a reference does; where only one of the two does, it is wrong
    by that reference. The chat model is asked about the other references, one after the other until it says that one is
    met. To an unanswerable question "invalid" and the lack_phrases are class 1, which is right there; any other answer
    is wrong.

    prompt: a text, or the name of a .txt file; null for the shipped one. A reply that cannot be read
    is asked for once more; then the verdict is missing, unless another reference is met, and a later run
    asks again.
    """

    component = "crag"
    kind = "chat"
    classes = frozenset({LACK, WRONG, RIGHT})
    uses = frozenset()

    lack_phrases: Sequence[str] = CONF
    prompt: str | None = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        phrases = self.lack_phrases
        if not isinstance(phrases, (list, tuple)) or not all(isinstance(p, str) and p.strip() for p in phrases):
            raise ConfigError(f"judge.lack_phrases={phrases!r}: allowed are lists of texts")
        object.__setattr__(self, "lack_phrases", tuple(_plain(phrase) for phrase in phrases))
        placeholders = ("question", "reference", "answer")
        prompt = load_prompt(self.prompt, "judge_crag.txt", placeholders, key="judge.prompt", package=_PROMPTS)
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    def identity(self) -> dict[str, Any]:
        """The model, the prompt and the phrases."""
        return {**super().identity(), "prompt": self.prompt, "lack_phrases": list(self.lack_phrases)}

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts` with `reason`, which names the rule if no chat model was asked."""
        known = truths(topics, evidence, answers["qid"])
        pairs = self._distinct(answers)
        found = {pair: self._by_rule(known[pair[0]], pair[1]) for pair in pairs}
        verdict_of = {pair: verdict for pair, verdict in found.items() if verdict is not None}
        open_ = {pair: self._to_ask(known[pair[0]], pair[1]) for pair in pairs if pair not in verdict_of}
        asked: dict[tuple[str, str], Verdict] = {}
        place = 0
        while waiting := [pair for pair, left in open_.items() if place < len(left)]:
            prompts = [self._prompt(known[qid], open_[qid, text][place], text) for qid, text in waiting]
            for pair, verdict in zip(waiting, self._verdicts(prompts, tools), strict=True):
                asked[pair] = _joined(asked.get(pair), verdict)
                if verdict.label == RIGHT:
                    open_[pair] = []
            place += 1
        keys = answers[["qid", "n_tokens"]]
        rows = answers[["qid", "answer"]]
        return verdict_frame(keys, spread(rows, {**verdict_of, **asked}))

    def needs(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
        *,
        repeat: bool = False,
    ) -> pd.DataFrame:
        """The first request about every answer that no rule decides, like ChatLLM.needs_of.

        Further references are asked about only where the first is not met, so they are not counted. An answer that is
        not known yet is some 30 tokens long, and `exact` is False for it.
        """
        unknown = candidates["answer"].isna()
        filled = candidates.assign(answer=candidates["answer"].mask(unknown, _EXPECTED_ANSWER))
        known = truths(topics, evidence, filled["qid"])
        asked = {
            pair: left[0]
            for pair in self._distinct(filled)
            if self._by_rule(known[pair[0]], pair[1]) is None and (left := self._to_ask(known[pair[0]], pair[1]))
        }
        prompts = [self._prompt(known[qid], reference, text) for (qid, text), reference in asked.items()]
        exact = [text != _EXPECTED_ANSWER for _, text in asked]
        needs = self.needs_of(prompts, tools.store, readers=[Structured(_read, _REPLY)] * len(prompts))
        return needs.assign(exact=exact, again=False)

    @staticmethod
    def _distinct(answers: pd.DataFrame) -> _Keys:
        there = answers[answers["answer"].notna()].drop_duplicates(["qid", "answer"])
        return list(zip(there["qid"], there["answer"], strict=True))

    def _by_rule(self, truth: Truth, answer: str) -> Verdict | None:
        """The verdict by rule; None if a chat model is needed."""
        text = _plain(answer)
        if not text:
            return Verdict(LACK, reason="says nothing")
        for phrase in self.lack_phrases:
            if phrase in text:
                return Verdict(LACK, reason=f"says {phrase!r}")
        if not truth.references:
            if _INVALID in text:
                return Verdict(LACK, reason=f"says {_INVALID!r} to a question without an answer")
            return Verdict(WRONG, reason="answers a question without an answer")
        references = [_plain(one) for one in truth.references]
        if text in references:
            return Verdict(RIGHT, reason="equal to a reference answer")
        if _INVALID in text and any(_INVALID in one for one in references):
            return Verdict(RIGHT, reason=f"says {_INVALID!r} as a reference answer does")
        if not self._to_ask(truth, answer):
            return Verdict(WRONG, reason=f"says {_INVALID!r}, or a reference answer does, and not both")
        return None

    @staticmethod
    def _to_ask(truth: Truth, answer: str) -> list[str]:
        """The references that no rule decides."""
        said = _INVALID in _plain(answer)
        return [one for one in truth.references if (_INVALID in _plain(one)) == said]

    def _prompt(self, truth: Truth, reference: str, answer: str) -> str:
        values = {"question": truth.query, "reference": reference, "answer": answer}
        return fill(str(self.prompt), **{name: " ".join(text.split()) for name, text in values.items()})

    def _verdicts(self, prompts: Sequence[str], tools: Tools) -> list[Verdict]:
        """The chat model's verdict on every prompt."""
        replies = self.ask(prompts, tools.store, "verdicts", readers=[Structured(_read, _REPLY)] * len(prompts))
        read = [_read(reply) for reply in replies]
        names = [hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16] for prompt in prompts]
        return [
            replace(divided(reply, None if label is None else [(label, None)], 1, _FORM)[0], request=name)
            for reply, label, name in zip(replies, read, names, strict=True)
        ]


def _plain(text: str) -> str:
    """The text on one line, in lower case, with straight apostrophes."""
    return " ".join(text.lower().replace("’", "'").split())


def parse_accuracy(reply: str) -> bool | None:
    """The verdict of a reply such as `{"accuracy": true}`; None for any other reply.

    true or false may be a text in any case, as CRAG's judge writes it.
    """
    found = json_of(reply)
    return truth_of(found.get("accuracy")) if isinstance(found, dict) else None


_REPLY = fields(accuracy=TRUTH)


def _read(reply: Reply) -> int | None:
    right = None if reply.text is None or reply.error == CUT else parse_accuracy(reply.text)
    return None if right is None else RIGHT if right else WRONG


def _joined(before: Verdict | None, now: Verdict) -> Verdict:
    """The verdict over several references: right if one is met, missing if one could not be read."""
    if before is None:
        return now
    speaks = now if now.label == RIGHT or before.label is not None else before
    request = f"{before.request}+{now.request}"
    return replace(speaks, usage=before.usage + now.usage, cached=before.cached and now.cached, request=request)
