"""Nugget recall as in TREC RAG: which facts of a good answer an answer states.

Source: Pradeep et al., Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer
Framework (2024), and The Great Nugget Recall (2025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_NUGGETS, NO_REFERENCE
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.replies import Structured
from ragauge.contract.topics import is_unanswerable, references
from ragauge.llms.json_replies import OK, Found, ask_each, json_of, quoted
from ragauge.llms.prompts import fill
from ragauge.llms.structured import TEXT, fields, list_of, numbered_fields, one_of
from ragauge.plugins.llm_measures import read_prompt
from ragauge.plugins.llm_measures.claims import questions_of
from ragauge.plugins.llm_measures.nugget_file import (
    IMPORTANCES,
    Nugget,
    check_nuggets,
    folded,
    is_text,
    nugget_path,
    read_assignments,
    read_nuggets,
)
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame

SUPPORT: Mapping[str, float] = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
NAMES = ("strict_vital", "strict_all", "vital", "all", "weighted")
_LABELS = ("vital nuggets, strict", "all nuggets, strict", "vital nuggets", "all nuggets", "weighted nuggets")
# For a dry run: what a topic's nuggets may be.
_STAND_IN = tuple(Nugget(f"a fact of about ten words, as most nuggets are, {i}", "vital") for i in range(5))

Nuggets = tuple[Nugget, ...]


@dataclass(frozen=True)
class NuggetRecall(AnswerMeasure):
    """How many of a topic's nuggets an answer states: five shares of one request per distinct answer.

    With s_i = 1 for support, 0.5 for partial support, 0 for none, V the vital nuggets and O the okay ones:
    nuggets_strict_vital is the share of V with s_i = 1, nuggets_strict_all that of all nuggets. nuggets_vital and
    nuggets_all are the means of s_i over V and over all. nuggets_weighted is (sum over V of s_i + 0.5 * sum over O of
    s_i) / (|V| + 0.5 * |O|).

    A topic's nuggets are made once, of its reference answers and evidence, unless a file gives them. Topics
    without nuggets have no value, and those without a vital one none of the first and third.

    path: JSON Lines {qid, nuggets: [{text, importance}]}, such as TREC's; null: a model makes them.
    assignments: AutoNuggetizer's file of this system, JSON Lines {qid, nuggets: [{text, importance, assignment}]}; no
        model is asked then. An answer other than the row's `answer_text` is an error.
    max_nuggets: the most that a model may make for a topic; further ones are cut off, vital ones last.
    repeat: the number of topics that are measured once more, to show the measure's own noise. prompt_create ($question,
    $references, $evidence, $max_nuggets), prompt_assign ($question, $answer,
        $nuggets, $count): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "nuggets"
    version = 2
    infos = tuple(
        AnswerMeasureInfo(f"nuggets_{name}", label, unit="share", section="Nuggets")
        for name, label in zip(NAMES, _LABELS, strict=True)
    )

    path: str | Path | None = runtime(None)
    assignments: str | Path | None = runtime(None)
    max_nuggets: int = 20
    prompt_create: str | None = None
    prompt_assign: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_count("answers.nuggets.max_nuggets", self.max_nuggets)
        require_count("answers.nuggets.repeat", self.repeat, 0)
        read_prompt(self, "prompt_create", "nuggets.txt", ("question", "references", "evidence", "max_nuggets"))
        read_prompt(self, "prompt_assign", "nuggets_in_answer.txt", ("question", "answer", "nuggets", "count"))

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, unless the assignments are given."""
        return frozenset() if self.assignments else frozenset({"chat"})

    @property
    def needs(self) -> frozenset[str]:
        """References, if the nuggets are made from them."""
        return frozenset({"answers"} if self.path or self.assignments else {"answers", "references"})

    def files(self) -> Mapping[str, Path]:
        """The given files of nuggets and assignments; ConfigError if one does not exist."""
        given = {"nuggets": ("path", self.path), "assignments": ("assignments", self.assignments)}
        return {role: nugget_path(path, key) for role, (key, path) in given.items() if path}

    def check_topics(self, topics: pd.DataFrame) -> None:
        """DataError if the file of nuggets cannot be read, or has none of the topics."""
        for file in self.files().values():
            check_nuggets(file, topics["qid"].tolist())

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing if the topic's nuggets, or their assignments, are unknown."""
        if self.assignments:
            return self._assigned(answers)
        queries = questions_of(topics)
        asked = answers.loc[answers["answer"].notna(), "qid"]
        known = self._nuggets(topics[topics["qid"].isin(asked)], evidence, tools)
        rows = list(zip(answers["qid"], answers["answer"], strict=True))
        prompts = {
            (qid, answer): self._assignment(queries[qid], answer, nuggets)
            for qid, answer in rows
            if isinstance(answer, str) and answer.strip() and (nuggets := known[qid].value)
        }
        due = {prompt: known[qid].value or () for (qid, _), prompt in prompts.items()}
        found = ask_each(
            tools.chat,
            {prompt: _support_of(len(nuggets)) for prompt, nuggets in due.items()},
            tools.store,
            "nuggets in answers",
            guesses={prompt: ("not_support",) * len(nuggets) for prompt, nuggets in due.items()},
        )

        def measured(qid: str, answer: object) -> Measured:
            if not isinstance(answer, str):
                return Measured(None, NO_ANSWER)
            nuggets = known[qid]
            if nuggets.status == NO_REFERENCE:
                return Measured(None, NO_REFERENCE)
            said = found[prompts[qid, answer]] if (qid, answer) in prompts else None
            if (missing := lost(nuggets, said)) is not None:
                return missing
            if not nuggets.value:
                return Measured(None, NO_NUGGETS)
            support = ("not_support",) * len(nuggets.value) if said is None else said.value or ()
            return _scored(nuggets.value, support)

        return value_frame(answers, self.infos, [measured(*row) for row in rows])

    def _assigned(self, answers: pd.DataFrame) -> pd.DataFrame:
        """The values from the file of assignments."""
        file = self.files()["assignments"]
        given = read_assignments(file)

        def measured(qid: str, answer: object) -> Measured:
            if not isinstance(answer, str):
                return Measured(None, NO_ANSWER)
            if qid not in given or not given[qid].nuggets:
                return Measured(None, NO_NUGGETS)
            nuggets, support, text = given[qid]
            if text is not None and folded(text) != folded(answer):
                raise DataError(f"{file}: the assignments of qid {qid!r} are of another answer: {text!r:.80}")
            return _scored(nuggets, support)

        rows = zip(answers["qid"], answers["answer"], strict=True)
        return value_frame(answers, self.infos, [measured(*row) for row in rows])

    def _nuggets(self, topics: pd.DataFrame, evidence: pd.DataFrame, tools: Tools) -> dict[str, Found[Nuggets]]:
        """The nuggets of every topic, from the file or the model; () if there are none."""
        if self.path:
            given = read_nuggets(nugget_path(self.path))
            return {qid: Found(given.get(qid, ()), OK) for qid in topics["qid"]}
        marked = set(topics["qid"][is_unanswerable(topics)])
        known = {qid: () if qid in marked else texts for qid, texts in references(topics).items()}
        parts = evidence.dropna(subset="text").sort_values(["qid", "part"], kind="stable")
        of_topic = parts.groupby("qid")["text"].agg(list).to_dict()
        prompts = {
            qid: fill(
                str(self.prompt_create),
                question=query,
                references="\n".join(map(quoted, known[qid])),
                evidence="\n".join(map(quoted, of_topic.get(qid, []))) or "none",
                max_nuggets=str(self.max_nuggets),
            )
            for qid, query in questions_of(topics).items()
            if known[qid]
        }
        readers = dict.fromkeys(prompts.values(), Structured(self._made, _MADE))
        guesses = dict.fromkeys(readers, _STAND_IN)
        made = ask_each(tools.chat, readers, tools.store, "nuggets", guesses=guesses)
        lacking: dict[str, Found[Nuggets]] = {qid: Found(None, NO_REFERENCE) for qid in topics["qid"]}
        return {**lacking, **{qid: made[prompt] for qid, prompt in prompts.items()}}

    def _made(self, reply: str) -> Nuggets | None:
        """The distinct nuggets of a reply, vital ones first; None if it cannot be read."""
        said = json_of(reply)
        listed = said.get("nuggets") if isinstance(said, dict) else None
        if not isinstance(listed, list):
            return None
        found: dict[str, Nugget] = {}
        for one in listed:
            if not isinstance(one, dict) or not is_text(one.get("text")):
                return None
            if one.get("importance") not in IMPORTANCES:
                return None
            found.setdefault(folded(one["text"]), Nugget(one["text"].strip(), one["importance"]))
        ordered = sorted(found.values(), key=lambda nugget: IMPORTANCES.index(nugget.importance))
        return tuple(ordered[: self.max_nuggets])

    def _assignment(self, query: str, answer: str, nuggets: Nuggets) -> str:
        listed = "\n".join(f"{number}: {quoted(one.text)}" for number, one in enumerate(nuggets, start=1))
        return fill(
            str(self.prompt_assign),
            question=query,
            answer=quoted(answer),
            nuggets=listed,
            count=str(len(nuggets)),
        )


_MADE = fields(nuggets=list_of(fields(text=TEXT, importance=one_of(IMPORTANCES))))


def _support_of(n: int) -> Structured[str, tuple[str, ...] | None]:
    return Structured(partial(_read_support, n=n), numbered_fields(n, one_of(SUPPORT)))


def _read_support(reply: str, n: int) -> tuple[str, ...] | None:
    """The support of n nuggets by a reply, in order; None unless its keys are exactly these numbers."""
    said = json_of(reply)
    numbers = [str(number) for number in range(1, n + 1)]
    if not isinstance(said, dict) or set(said) != set(numbers):
        return None
    found = tuple(said[number] for number in numbers)
    return found if all(isinstance(one, str) and one in SUPPORT for one in found) else None


def _scored(nuggets: Nuggets, support: Sequence[str]) -> Measured:
    """The scores of one answer in the order of the infos, and each nugget's support."""
    scores = nugget_scores([one.importance for one in nuggets], support)
    pairs = zip(nuggets, support, strict=True)
    shown = [{"nugget": one.text, "importance": one.importance, "support": said} for one, said in pairs]
    return Measured(
        tuple(scores.get(name) for name in NAMES),
        detail={"nuggets": shown},
        statuses=tuple(OK if name in scores else NO_NUGGETS for name in NAMES),
    )


def nugget_scores(importance: Sequence[str], support: Sequence[str]) -> dict[str, float]:
    """strict_vital, strict_all, vital, all and weighted of one answer, from its nuggets; see `NuggetRecall`.

    Those that have no nugget to count are left out.
    """
    s = [SUPPORT[one] for one in support]
    vital = [value for value, kind in zip(s, importance, strict=True) if kind == "vital"]
    okay = [value for value, kind in zip(s, importance, strict=True) if kind == "okay"]
    found: dict[str, float] = {}
    if vital:
        found["strict_vital"] = vital.count(1.0) / len(vital)
        found["vital"] = sum(vital) / len(vital)
    if s:
        found["strict_all"] = s.count(1.0) / len(s)
        found["all"] = sum(s) / len(s)
    if vital or okay:
        found["weighted"] = (sum(vital) + 0.5 * sum(okay)) / (len(vital) + 0.5 * len(okay))
    return found
