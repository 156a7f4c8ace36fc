"""Nuggets: which of the facts that a good answer states an answer states, as TREC RAG counts them.

Source: Pradeep et al., Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer
Framework (2024), and The Great Nugget Recall (2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_NUGGETS, NO_REFERENCE
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.contract.topics import is_unanswerable, references
from ragauge.datasets.nugget_file import (
    IMPORTANCES,
    Nugget,
    check_nuggets,
    folded,
    is_text,
    nugget_path,
    read_nuggets,
)
from ragauge.llms.chat_use import Unasked
from ragauge.llms.prompts import fill, load_prompt
from ragauge.measures.asked.asking import Found, ask_all, ask_each, json_of, quoted
from ragauge.measures.asked.values import Measured, value_frame

SUPPORT: Mapping[str, float] = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
_SECTION = "Nuggets"
_STAND_IN = tuple(Nugget("a fact of about ten words, as most nuggets are", "vital") for _ in range(5))

Nuggets = tuple[Nugget, ...]


@dataclass(frozen=True)
class NuggetRecall:
    """How many of a topic's nuggets an answer states: five shares of one request per distinct answer.

    With s_i = 1 for support, 0.5 for partial support, 0 for none, and V the vital nuggets, O the okay ones:
    nuggets_strict_vital is the share of V with s_i = 1, nuggets_strict_all that of all nuggets;
    nuggets_vital and nuggets_all are the means of s_i over V and over all; nuggets_weighted is
    (sum over V of s_i + 0.5 * sum over O of s_i) / (|V| + 0.5 * |O|).

    A topic's nuggets are made once, of its reference answers and evidence, unless a file gives them. Topics
    without nuggets have no value, and those without a vital one none of the first and third.

    path: JSON Lines {qid, nuggets: [{text, importance}]}, such as TREC's; null: a model makes them.
    max_nuggets: the most that a model may make for a topic; further ones are cut off, vital ones last.
    prompt_create ($question, $references, $evidence, $max_nuggets), prompt_assign ($question, $answer,
        $nuggets, $count): a text, or the name of a .txt file; null for the shipped one.
    """

    component: ClassVar[str] = "nuggets"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})
    infos: ClassVar[tuple[AnswerMeasureInfo, ...]] = tuple(
        AnswerMeasureInfo(f"nuggets_{name}", label, unit="share", section=_SECTION)
        for name, label in (
            ("strict_vital", "vital nuggets, strict"),
            ("strict_all", "all nuggets, strict"),
            ("vital", "vital nuggets"),
            ("all", "all nuggets"),
            ("weighted", "weighted nuggets"),
        )
    )

    path: str | Path | None = runtime(None)
    max_nuggets: int = 20
    prompt_create: str | None = None
    prompt_assign: str | None = None

    def __post_init__(self) -> None:
        if type(self.max_nuggets) is not int or self.max_nuggets < 1:
            raise ConfigError(
                f"answers.nuggets.max_nuggets={self.max_nuggets!r}: must be a whole number of at least 1"
            )
        for name, shipped, placeholders in (
            ("prompt_create", "nuggets.txt", ("question", "references", "evidence", "max_nuggets")),
            ("prompt_assign", "nuggets_in_answer.txt", ("question", "answer", "nuggets", "count")),
        ):
            text = load_prompt(getattr(self, name), shipped, placeholders, key=f"answers.nuggets.{name}")
            object.__setattr__(self, name, text)

    @property
    def info(self) -> AnswerMeasureInfo:
        """How the first value is shown."""
        return self.infos[0]

    @property
    def needs(self) -> frozenset[str]:
        """References where the nuggets have to be made of them."""
        return frozenset({"answers"} if self.path else {"answers", "references"})

    def files(self) -> Mapping[str, Path]:
        """The file of nuggets, if there is one; ConfigError if it is not where the config says."""
        return {"nuggets": nugget_path(self.path)} if self.path else {}

    def check_topics(self, topics: pd.DataFrame) -> None:
        """DataError where the file of nuggets cannot be read, or has none of the topics."""
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
        """Frame `answer_values`; missing where the topic's nuggets, or those in the answer, are not known."""
        queries = dict(zip(topics["qid"], topics["query"], strict=True))
        asked = answers.loc[answers["answer"].notna(), "qid"]
        try:
            known = self._nuggets(topics[topics["qid"].isin(asked)], evidence, tools)
        except Unasked as unasked:
            later = [
                self._assignment(queries[qid], answer, _STAND_IN)
                for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
                if isinstance(answer, str)
            ]
            raise Unasked(unasked.prompts, unasked.who, later, unasked.chat) from None
        requests = {
            (qid, answer): (self._assignment(queries[qid], answer, nuggets.value), _reader(nuggets.value))
            for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
            if isinstance(answer, str) and answer.strip() and (nuggets := known[qid]).value
        }
        replies = ask_each(tools.chat, list(requests.values()), tools.store, "nuggets in answers")
        found = dict(zip(requests, replies, strict=True))

        def measured(qid: str, answer: Any) -> Measured:
            if not isinstance(answer, str):
                return Measured({}, NO_ANSWER)
            nuggets = known[qid]
            if not nuggets.value:
                return Measured({}, nuggets.status if nuggets.value is None else NO_NUGGETS)
            said = found.get((qid, answer), Found(("not_support",) * len(nuggets.value), "ok"))
            if said.value is None:
                return Measured({}, said.status, detail=_shown(nuggets.value, [None] * len(nuggets.value)))
            values = nugget_scores([n.importance for n in nuggets.value], said.value)
            named = {f"nuggets_{name}": value for name, value in values.items()}
            return Measured(named, NO_NUGGETS, detail=_shown(nuggets.value, said.value))

        rows = [measured(*row) for row in zip(answers["qid"], answers["answer"], strict=True)]
        return value_frame(answers, [info.name for info in self.infos], rows)

    def _nuggets(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, tools: Tools
    ) -> dict[str, Found[Nuggets]]:
        """The nuggets of every topic: of the file, or made by the model; () where there are none."""
        if self.path:
            given = read_nuggets(nugget_path(self.path))
            return {qid: Found(given.get(qid, ()), "ok") for qid in topics["qid"]}
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
            for qid, query in zip(topics["qid"], topics["query"], strict=True)
            if known[qid]
        }
        made = ask_all(tools.chat, list(prompts.values()), self._made, tools.store, "nuggets")
        lacking: dict[str, Found[Nuggets]] = {qid: Found(None, NO_REFERENCE) for qid in topics["qid"]}
        return {**lacking, **dict(zip(prompts, made, strict=True))}

    def _made(self, reply: str) -> Nuggets | None:
        """The nuggets of a reply, each once, vital ones first; None where it cannot be read."""
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


def _reader(nuggets: Nuggets) -> Callable[[str], tuple[str, ...] | None]:
    numbers = [str(number) for number in range(1, len(nuggets) + 1)]

    def read(reply: str) -> tuple[str, ...] | None:
        said = json_of(reply)
        if not isinstance(said, dict) or set(said) != set(numbers):
            return None
        found = tuple(said[number] for number in numbers)
        return found if all(isinstance(one, str) and one in SUPPORT for one in found) else None

    return read


def _shown(nuggets: Nuggets, support: Sequence[str | None]) -> list[dict[str, Any]]:
    pairs = zip(nuggets, support, strict=True)
    return [{"text": one.text, "importance": one.importance, "support": said} for one, said in pairs]


def nugget_scores(importance: Sequence[str], support: Sequence[str]) -> dict[str, float]:
    """strict_vital, strict_all, vital, all and weighted of one answer, by nugget; see `NuggetRecall`.

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
        found["weighted"] = (sum(vital) + 0.5 * sum(okay)) / (len(vital) + 0.5 * len(okay))
    return found
