"""An LLM's reaction to a document with a changed fact: detected, corrected, or fooled.

Source: the counterfactual robustness of Chen et al., Benchmarking Large Language Models in
Retrieval-Augmented Generation (RGB), AAAI 2024. RGB takes an answer for a detection where it holds the phrase that its
prompt asks for ("factual errors"), or where a chat model says so. It takes it for a correction where it also holds the
true answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_REFERENCE
from ragauge.contract.checks import require_choice
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.replies import Structured
from ragauge.contract.topics import references, wrong_answers
from ragauge.llms.json_replies import ask_all, json_of, truth_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TRUTH, fields
from ragauge.measures.tokens import normalised

_PROMPTS = f"{__package__}.prompts"
_SECTION = "Counterfactual"
_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_DOCUMENTS = re.compile(r"\b(?:documents?|texts?|contexts?|passages?|sources?|articles?|information|evidence)\b", re.I)
_WRONG = re.compile(
    r"\b(?:wrong(?:ly)?|incorrect(?:ly)?|inaccura\w+|mistaken(?:ly)?|false(?:ly)?|erroneous(?:ly)?|untrue"
    r"|inconsisten\w+|contradict\w*|conflicts?|conflicting|disagrees?|discrepan\w+|errors?|mistakes?"
    r"|not (?:\w+ )?(?:correct|accurate|right|true|consistent|agree))\b",
    re.I,
)
_PHRASE = re.compile(r"\bfactual(?:ly)? (?:errors?|mistakes?|incorrect|wrong|inaccura\w+)\b|事实性错误", re.I)
_DENIED = re.compile(r"\b(?:no|not|never|without|any)(?: \w+){0,2} $|n['’]t(?: \w+){0,2} $", re.I)
_REFUSAL = re.compile(
    r"\b(?:insufficient|not (?:\w+ )?enough|no|lacks?|lacking) (?:of )?(?:the )?information\b|信息不足"
    r"|\b(?:documents?|texts?|context|passages?|sources?|evidence|information)\b[^.!?]{0,40}?\b(?:do|does|did)"
    r"(?: not|n['’]t) (?:hold|contain|say|state|mention|provide|give|tell|specify|include)\b"
    r"|\b(?:can ?not|can['’]t|could not|couldn['’]t|unable to|impossible to) (?:be )?"
    r"(?:answer|determine|say|tell)(?:ed|d)?\b|\bi (?:do not|don['’]t) know\b",
    re.I,
)


@dataclass(frozen=True)
class Counterfactual(AnswerMeasure):
    """Whether an answer says that the documents err, gives the true answer, or the changed one (1 or 0 each).

    A topic's `wrong_answers` are what the changed document leads to. An answer names an answer if its tokens stand in
    it next to each other. Where commas join several parts, those of each part must; a yes or no is named if the answer
    begins with it. One that says that information is lacking is a refusal: neither corrected nor fooled.

    detected: the answer says that the documents are wrong or contradict one another. detection: `rules`, by phrases: a
        word for error or contradiction that is not denied, in a sentence that speaks of the documents; or "factual
        errors". They are English, except RGB's Chinese phrase. `chat`: the evaluator is asked.
    corrected: it names the true answer and not the changed one. Or it names both, says that the documents err, and the
        true answer stands nowhere in the context (so it is no mere report of two documents).
    fooled: it names the changed answer and not the true one, and says nothing of an error.

    Values are missing for a topic without wrong answers.
    """

    component = "counterfactual"
    needs = frozenset({"references", "changed", "answers"})
    infos = (
        AnswerMeasureInfo("detected", "says that documents err", unit="share", section=_SECTION),
        AnswerMeasureInfo("corrected", "gives the true answer", unit="share", section=_SECTION),
        AnswerMeasureInfo("fooled", "gives the changed answer", direction="lower", unit="share", section=_SECTION),
    )

    detection: Literal["rules", "chat"] = "rules"
    prompt: str | None = None

    def __post_init__(self) -> None:
        require_choice("answers.counterfactual.detection", self.detection, ("rules", "chat"))
        if self.detection == "chat":
            where = "answers.counterfactual.prompt"
            text = load_prompt(self.prompt, "detect_errors.txt", ("question", "answer"), key=where, package=_PROMPTS)
            object.__setattr__(self, "prompt", text)  # into the field, so that it is part of the identity

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, if it is asked."""
        return frozenset({"chat"} if self.detection == "chat" else ())

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`, three rows an answer."""
        true, wrong = references(topics), wrong_answers(topics)
        known = {qid: _Fact(true[qid], changed) for qid, changed in wrong.items() if true.get(qid)}
        queries = dict(zip(topics["qid"], topics["query"], strict=True))
        given = answers.merge(contexts[["qid", "n_tokens", "text"]], on=["qid", "n_tokens"], how="left")
        columns = (given[name].tolist() for name in ("qid", "n_tokens", "answer", "text"))
        rows: list[tuple[str, int, Any, Any]] = list(zip(*columns, strict=True))
        asked = [(qid, answer) for qid, _, answer, _ in rows if qid in known and isinstance(answer, str)]
        to_tell = list(dict.fromkeys(asked))
        found = self._detected([(queries[qid], answer) for qid, answer in to_tell], tools)
        told = dict(zip(to_tell, found, strict=True))
        values = []
        for qid, n_tokens, answer, text in rows:
            of_row: tuple[float | None, ...] = (None, None, None)
            if qid not in known:
                status = NO_REFERENCE
            elif not isinstance(answer, str):
                status = NO_ANSWER
            else:
                detected, status = told[qid, answer]
                context = text if isinstance(text, str) else ""
                if detected is not None:
                    of_row = (float(detected), *known[qid].given(answer, detected, context))
            values += [
                (qid, n_tokens, info.name, value, status) for info, value in zip(self.infos, of_row, strict=True)
            ]
        frame = pd.DataFrame(values, columns=["qid", "n_tokens", "measure", "value", "status"])
        return frame.astype({"qid": "str", "measure": "str", "value": "float64", "status": "str"})

    def _detected(self, asked: Sequence[tuple[str, str]], tools: Tools) -> list[tuple[bool | None, str]]:
        """Whether the answer says that the documents err, for every (question, answer), with the status."""
        if self.detection == "rules":
            return [(says_documents_err(answer), "ok") for _, answer in asked]
        prompts = [fill(str(self.prompt), question=query, answer=answer) for query, answer in asked]
        replies = ask_all(tools.chat, prompts, Structured(_read, _REPLY), tools.store, "detection")
        return [(reply.value, reply.status) for reply in replies]


def says_documents_err(answer: str) -> bool:
    """Whether a phrase of the answer says that documents are wrong or contradict one another."""
    for phrase in _PHRASE.finditer(answer):
        if not _DENIED.search(answer[: phrase.start()]):
            return True
    for sentence in _SENTENCE.findall(answer):
        if _DOCUMENTS.search(sentence) and any(
            not _DENIED.search(sentence[: word.start()]) for word in _WRONG.finditer(sentence)
        ):
            return True
    return False


_REPLY = fields(detected=TRUTH)


def _read(reply: str) -> bool | None:
    value = json_of(reply)
    return truth_of(value.get("detected")) if isinstance(value, dict) else None


class _Fact:
    """A topic's true and changed answers, as tokens."""

    def __init__(self, true: Sequence[str], changed: Sequence[str]) -> None:
        self.true, self.changed = ([_Named(one) for one in several] for several in (true, changed))

    def given(self, answer: str, detected: bool, context: str) -> tuple[float, float]:
        """Whether the answer corrects the fact, and whether it is fooled."""
        tokens = normalised(answer)
        if _REFUSAL.search(answer):
            return 0.0, 0.0
        true, changed = _named(tokens, self.true, self.changed), _named(tokens, self.changed, self.true)
        if true and changed:
            stands = _named(normalised(context), self.true, self.changed)
            return float(detected and not stands), 0.0
        return float(true), float(changed and not detected)


class _Named:
    """An answer that a text may name: its tokens, and those of its parts."""

    def __init__(self, text: str) -> None:
        self.tokens = normalised(text)
        self._parts = [part for part in map(normalised, text.split(", ")) if part]

    def stands_in(self, tokens: list[str]) -> bool:
        """Whether a text with these tokens names it."""
        if self.tokens in (["yes"], ["no"]):
            return tokens[:1] == self.tokens
        return bool(self._parts) and all(_place(part, tokens) >= 0 for part in self._parts)


def _named(tokens: list[str], own: Sequence[_Named], others: Sequence[_Named]) -> bool:
    """Whether the text names one of `own`, other than inside a longer one of the others."""
    for one in own:
        left = tokens
        for other in others:
            if len(other.tokens) > len(one.tokens) and _place(one.tokens, other.tokens) >= 0:
                left = _without(other.tokens, left)
        if one.stands_in(left):
            return True
    return False


def _place(few: list[str], many: list[str]) -> int:
    """The position of the contiguous tokens `few` in `many`; -1 if absent."""
    size = len(few)
    places = range(len(many) - size + 1) if size else ()
    return next((i for i in places if many[i : i + size] == few), -1)


def _without(gone: list[str], tokens: list[str]) -> list[str]:
    """The tokens with a gap at each occurrence of `gone`."""
    left = list(tokens)
    while (at := _place(gone, left)) >= 0:
        left[at : at + len(gone)] = [""]
    return left
