"""`measure=support`: whether a passage of the context states the evidence in any words, judged by an LLM."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import later
from ragauge.contract.measures import MeasuresPieces, Pieces
from ragauge.contract.option import CONF, option
from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import ask_all, json_of, truth_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TRUTH, fields
from ragauge.measures.matching import CORRECTIONS
from ragauge.plugins.llm_measures import PROMPTS

log = logging.getLogger(__name__)

_Pair = tuple[str, str]  # part of the evidence, passage


@option("measure/support")
class Support(MeasuresPieces):
    """1 where a single passage of the context states the evidence part, in whatever words, else 0.

    The evaluator is asked once about each pair of part and passage, whatever the retriever, the rank and the
    budget: a topic's passages one after the other, best first, until one states the part. Where a budget cuts a passage
    that does, the cut text is asked about, too. A part that several passages state together, and none alone, counts as
    not stated. A value is missing where a reply failed or could not be read and no other passage states the part.

    prompt: a text with $statement and $passage, or a .txt file of it; None is the shipped one. It must ask
    for {"stated": true or false}. `correct` is for the stages, as of every measure; with it the evaluator is
    asked about unrelated passages, too.
    """

    component = "support"
    name = "support"
    uses = frozenset({"chat"})
    counts = ("measure_failed",)

    prompt: str | None = CONF
    correct: str = later("none")

    def __post_init__(self) -> None:
        require_choice("measure.correct", self.correct, CORRECTIONS)
        prompt = load_prompt(
            self.prompt, "support.txt", ("statement", "passage"), key="measure.prompt", package=PROMPTS
        )
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    def score_pieces(
        self,
        evidence: Sequence[Sequence[str]],
        layouts: Sequence[Pieces],
        ends: Sequence[np.ndarray],
        tools: Tools,
    ) -> list[np.ndarray]:
        """For every layout float64 [its evidence, its ends]: 1, 0, or NaN if unknown."""
        known: dict[_Pair, bool | None] = {}
        parts = [
            _Part(text, pieces, np.asarray(of_layout))
            for of_topic, pieces, of_layout in zip(evidence, layouts, ends, strict=True)
            for text in of_topic
        ]
        waiting = parts
        while waiting := [part for part in waiting if part.next_pair() is not None]:
            self._ask([pair for part in waiting if (pair := part.next_pair())], known, tools)
            for part in waiting:
                part.take(known)
        self._ask([pair for part in parts for pair in part.cut_pairs()], known, tools)
        values = iter([part.values(known) for part in parts])
        return [np.array([next(values) for _ in of_topic]) for of_topic in evidence]

    def _ask(self, pairs: Iterable[_Pair], known: dict[_Pair, bool | None], tools: Tools) -> None:
        if tools.chat is None:
            raise ConfigError("measure=support asks an LLM: choose an evaluator, or an llm that is a chat model")
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        prompts = [fill(str(self.prompt), statement=part, passage=passage) for part, passage in new]
        found = ask_all(tools.chat, prompts, Structured(_stated, _REPLY), tools.store, "support") if prompts else []
        known |= {pair: one.value for pair, one in zip(new, found, strict=True)}
        errors = [one.raw or one.status for one in found if one.value is None]
        if errors:
            log.warning("measure=support: %d of %d replies failed (%.200s)", len(errors), len(new), errors[0])


class _Part:
    """The state of one evidence part in one layout: which passages were asked about."""

    def __init__(self, text: str, pieces: Pieces, ends: np.ndarray) -> None:
        self._text, self._ends = text, ends
        reach = int(ends.max(initial=0))
        # Passages without a character before the largest end, and empty ones, are no part of any context.
        self._passages = [
            (start, passage)
            for start, passage in zip(pieces.starts, pieces.texts, strict=True)
            if start < reach and passage.strip()
        ]
        self._at = 0
        self._states: tuple[int, str] | None = None
        self._unknown: list[int] = []  # where passages begin whose reply failed

    def next_pair(self) -> _Pair | None:
        """The next whole passage to ask about; None if one states the part, or none is left."""
        if self._states is not None or self._at >= len(self._passages):
            return None
        return self._text, self._passages[self._at][1]

    def take(self, known: dict[_Pair, bool | None]) -> None:
        """Records the reply on this passage and moves to the next."""
        start, passage = self._passages[self._at]
        said = known[self._text, passage]
        self._at += 1
        if said:
            self._states = (start, passage)
        elif said is None:
            self._unknown.append(start)

    def cut_pairs(self) -> list[_Pair]:
        """The beginnings of the passage that states the part, cut at the ends that lie within it."""
        return [] if self._states is None else [(self._text, text) for text in self._cuts().values()]

    def _cuts(self) -> dict[int, str]:
        """The text of the passage that states the part up to every end that lies within it."""
        if self._states is None:
            return {}
        start, passage = self._states
        inside = [end for end in self._ends.tolist() if start < end < start + len(passage)]
        return {end: text for end in inside if (text := passage[: end - start]).strip()}

    def values(self, known: dict[_Pair, bool | None]) -> np.ndarray:
        """float64 [ends]: 1 from the first end at which the part is stated, NaN if unknown, else 0."""
        values = np.zeros(len(self._ends))
        if self._unknown:
            values[self._ends > min(self._unknown)] = np.nan
        for end, text in self._cuts().items():
            said = known[self._text, text]
            if said is not False:
                values[self._ends >= end] = np.nan if said is None else 1.0
        if self._states is not None:
            start, passage = self._states
            values[self._ends >= start + len(passage)] = 1.0
        return values


_REPLY = fields(stated=TRUTH)


def _stated(reply: str) -> bool | None:
    """The verdict of a reply; None if it cannot be read."""
    found = json_of(reply)
    return truth_of(found.get("stated")) if isinstance(found, dict) else None
