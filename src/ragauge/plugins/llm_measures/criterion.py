"""`criterion`: whether, or how well, an answer meets a criterion that the user states in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from string import Template
from typing import Any, NamedTuple

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT
from ragauge.contract.checks import require, require_count, require_text
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.replies import Structured
from ragauge.contract.topics import references
from ragauge.llms.json_replies import OK, Found, ask_each, json_of, truth_of, whole_number
from ragauge.llms.prompts import Shipped, fill, load_prompt
from ragauge.llms.structured import TEXT, Schema, fields, number_in, one_of
from ragauge.measures.answers import status_of
from ragauge.plugins.llm_measures import PROMPTS
from ragauge.plugins.llm_measures.claims import one_line, questions_of
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame

QUESTION, CONTEXT, REFERENCE, ANSWER = SIGHTS = ("question", "context", "reference", "answer")  # in the prompt's order
_KEY = "answers.criterion"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MOST_GRADES = 100
_CUT_IN_REASON = re.compile(
    r'\s*(?:```(?:json)?\s*)?(?P<said>\{\s*"(?:verdict|grade)"\s*:[^,{}]+),'
    r'\s*"reason"\s*:\s*"(?P<reason>(?:[^"\\]|\\.)*)\\?',
    re.DOTALL,
)


class Graded(NamedTuple):
    """A value in [0, 1], what the model said for it (yes, no, or a grade), and its reason."""

    value: float
    said: str | int
    reason: str | None


class _Row(NamedTuple):
    """The texts shown to the model for one answer, by the names of `SIGHTS`; status: `OK`, or why it is not asked."""

    status: str
    shown: Mapping[str, str]


@dataclass(frozen=True)
class Criterion(AnswerMeasure):
    """The evaluator's verdict on each answer by a criterion in words: yes is 1, no is 0.

    text: the criterion, such as "names the source and its year"; its metric is `criterion`.
    texts: several criteria by name, in place of `text`; the metric of each is `criterion_<name>`.
    scale: the model gives a grade from 1 (not at all) to this number, and the value is (grade - 1) / (scale - 1), in
        [0, 1]. None for yes or no.
    sees: the texts in the prompt beside the criterion: answer, and any of question, reference, context.
    prompt ($criterion, and what `sees` names; may hold $n, the scale): a text, or the name of a .txt file; None for the
        shipped one.
    repeat: the number of topics that are measured once more, to show the measure's own noise.

    One request for each criterion and distinct material. Missing, with a status: topics without an answer; topics
    without a reference or context where the model is to see it; replies that failed or cannot be read.
    ConfigError in one line for a blank criterion, a wrong name, an unknown sight or a scale below 2.
    """

    component = "criterion"
    uses = frozenset({"chat"})

    text: str | None = None
    texts: Mapping[str, str] | None = None
    scale: int | None = None
    sees: Sequence[str] = (QUESTION, ANSWER)
    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        _check_texts(self.text, self.texts)
        require_count(f"{_KEY}.scale", self.scale, 2, most=_MOST_GRADES, null="yes or no")
        sees: Any = self.sees
        ok = isinstance(sees, (list, tuple)) and all(one in SIGHTS for one in sees) and ANSWER in sees
        require(f"{_KEY}.sees", sees, ok, f"lists of {', '.join(SIGHTS)} that have answer")
        require_count(f"{_KEY}.repeat", self.repeat, 0)
        object.__setattr__(self, "sees", tuple(name for name in SIGHTS if name in sees))
        object.__setattr__(self, "prompt", _prompt(self.prompt, self.sees, self.scale))

    @property
    def criteria(self) -> dict[str, str]:
        """The criterion of every metric, by the metric's name."""
        if self.text is not None:
            return {"criterion": self.text}
        return {f"criterion_{name}": text for name, text in (self.texts or {}).items()}

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """One info for each criterion: a share of yes, or the mean of rescaled grades."""
        unit = "share" if self.scale is None else "ratio"
        return tuple(
            AnswerMeasureInfo(name, name.replace("criterion_", "criterion: ", 1), unit=unit, section="Criteria")
            for name in self.criteria
        )

    @property
    def needs(self) -> frozenset[str]:
        """Answers, and what else the model is to see."""
        beside = {REFERENCE: "references", CONTEXT: "contexts"}
        return frozenset({"answers", *(beside[name] for name in self.sees if name in beside)})

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the detail has the verdict or grade, and the reason."""
        rows = self._rows(topics, contexts, answers)
        asked = {name: [self._request(text, row) for row in rows] for name, text in self.criteria.items()}
        reader = Structured(partial(read_grade, scale=self.scale), _form(self.scale))
        requests = [request for of_name in asked.values() for request in of_name if request is not None]
        read_cut = partial(read_cut_grade, scale=self.scale)
        found = ask_each(tools.chat, dict.fromkeys(requests, reader), tools.store, "criteria", read_cut=read_cut)
        frames = []
        for info in self.infos:
            pairs = zip(asked[info.name], rows, strict=True)
            values = [
                Measured(None, row.status) if request is None else self._measured(found[request])
                for request, row in pairs
            ]
            frames.append(value_frame(answers, (info,), values))
        return pd.concat(frames, ignore_index=True)

    def _rows(self, topics: pd.DataFrame, contexts: pd.DataFrame, answers: pd.DataFrame) -> list[_Row]:
        """The texts to show for every row of `answers`."""
        question, accepted = questions_of(topics), references(topics)
        context = dict(zip(contexts["qid"], contexts["text"], strict=True))
        found = []
        for qid, answer in zip(answers["qid"], answers["answer"], strict=True):
            status = status_of(qid, answer, REFERENCE not in self.sees or bool(accepted[qid]))
            if status == OK and CONTEXT in self.sees and not context.get(qid, "").strip():
                status = NO_CONTEXT
            whole = {
                QUESTION: question[qid],
                CONTEXT: context.get(qid, ""),
                REFERENCE: "; or: ".join(map(one_line, accepted[qid])),
                ANSWER: answer,
            }
            found.append(_Row(status, {name: whole[name] for name in self.sees}))
        return found

    def _request(self, criterion: str, row: _Row) -> str | None:
        """The prompt on one answer; None where a part of the material is missing."""
        if row.status != OK:
            return None
        scale = {} if self.scale is None else {"n": str(self.scale)}
        return fill(str(self.prompt), criterion=criterion, **row.shown, **scale)

    def _measured(self, found: Found[Graded]) -> Measured:
        graded = found.value
        if graded is None:
            return lost(found) or Measured(None, found.status)
        said = "verdict" if self.scale is None else "grade"
        return Measured((graded.value,), OK, {said: graded.said, "reason": graded.reason})


def _check_texts(text: Any, texts: Any) -> None:
    """ConfigError unless there is one criterion, or several by name."""
    if texts is None:
        such = 'a criterion in words, such as "names the source and its year"'
        require_text(f"{_KEY}.text", text, f"{such}; {_KEY}.texts has several by name")
        return
    if text is not None:
        raise ConfigError(f"{_KEY}: text and texts are both given; allowed is one of them")
    such = 'criteria by name, such as {sourced: "names the source and its year"}'
    require(f"{_KEY}.texts", texts, isinstance(texts, Mapping) and bool(texts), such)
    for name, one in texts.items():
        ok = isinstance(name, str) and _NAME.fullmatch(name) is not None
        require(f"{_KEY}.texts, the name", name, ok, "letters, digits and _, a letter first")
        require_text(f"{_KEY}.texts.{name}", one, "criteria in words")


def _prompt(prompt: str | None, sees: Sequence[str], scale: int | None) -> str:
    """The prompt's text: the user's, or the shipped one without the paragraphs of what the model does not see."""
    number = () if scale is None else ("n",)
    if prompt is not None:
        return load_prompt(prompt, "", ("criterion", *sees), number, f"{_KEY}.prompt")
    file = "criterion.txt" if scale is None else "criterion_grade.txt"
    whole = load_prompt(None, file, ("criterion", *SIGHTS), number, package=PROMPTS)
    unseen = set(SIGHTS) - set(sees)
    return Shipped(
        "\n\n".join(part for part in whole.split("\n\n") if unseen.isdisjoint(Template(part).get_identifiers()))
    )


def _form(scale: int | None) -> Schema:
    """The schema of a reply: the verdict first, so that a reply that is cut in its reason still has one."""
    if scale is None:
        return fields(verdict=one_of(("yes", "no")), reason=TEXT)
    return fields(grade=number_in(range(1, scale + 1)), reason=TEXT)


def read_grade(reply: str, scale: int | None) -> Graded | None:
    """Parses {"verdict": "yes" or "no", "reason": ...}, or with a scale {"grade": 1 to scale, "reason": ...}.

    None for anything else.
    """
    found = json_of(reply)
    if not isinstance(found, dict):
        return None
    reason = one_line(found["reason"]) if isinstance(found.get("reason"), str) else None
    if scale is None:
        verdict = truth_of(found.get("verdict"))
        return None if verdict is None else Graded(float(verdict), "yes" if verdict else "no", reason)
    grade = whole_number(found.get("grade"))
    if grade is None or not 1 <= grade <= scale:
        return None
    return Graded((grade - 1) / (scale - 1), grade, reason)


def read_cut_grade(reply: str, scale: int | None) -> Graded | None:
    """`read_grade` of a reply such as `{"verdict": "yes", "reason": "It names` that ends within its reason.

    A small model may go on in its reason without end. None for a reply that ends anywhere else.
    """
    found = _CUT_IN_REASON.fullmatch(reply)
    graded = None if found is None else read_grade(found["said"] + "}", scale)
    return None if found is None or graded is None else graded._replace(reason=one_line(found["reason"]))
