"""RGB's accuracy: whether the answer contains every expected part.

Source: Chen et al., Benchmarking Large Language Models in Retrieval-Augmented Generation, AAAI 2024, and its
evaluation script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.topics import references
from ragauge.measures.answers import measured
from ragauge.texts.words import WITHOUT_SPACES

SLOTS = "answer_slots"  # the attribute of topics: JSON, a list of slots, each a list of alternatives
_REFUSALS = ("insufficient information", "信息不足")  # what RGB's prompts ask for, in either language
_UNSPACED = re.compile(f"[{WITHOUT_SPACES}]")


@dataclass(frozen=True)
class Slots(AnswerMeasure):
    """1 if the answer contains, letter for letter, an alternative of every expected slot, else 0.

    Upper and lower case are one, and white space does not count in an answer of a script that is written
    without. An
    answer that says "insufficient information", as RGB's prompts ask for, is 0. Topics have their slots in an attribute
    `answer_slots` (dataset=rgb). Those without have one slot, whose alternatives are the references.
    """

    component = "slots"
    needs = frozenset({"references", "answers"})
    info = AnswerMeasureInfo("slots", "all slots in the answer", unit="share")

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`."""
        known = {qid: [list(texts)] for qid, texts in references(topics).items()}
        if SLOTS in topics:
            rows = zip(topics["qid"], topics[SLOTS], strict=True)
            known |= {qid: _slots(qid, text) for qid, text in rows if not pd.isna(text)}

        def all_there(qid: str, answer: str) -> float:
            fold = _without_spaces if _UNSPACED.search(answer) else str.lower
            text = fold(answer)
            if any(fold(refusal) in text for refusal in _REFUSALS):
                return 0.0
            return float(all(any(fold(one) in text for one in slot) for slot in known[qid]))

        return measured(answers, self.info.name, all_there, {qid for qid, slots in known.items() if not slots[0]})


def _slots(qid: str, text: object) -> Sequence[Sequence[str]]:
    try:
        found = json.loads(str(text))
    except ValueError:
        found = None
    if isinstance(found, list) and found and all(_is_slot(slot) for slot in found):
        return found
    raise DataError(f"topics frame: column {SLOTS} (qid={qid!r}): {text!r:.80} is no JSON list of lists of texts")


def _is_slot(slot: object) -> bool:
    return isinstance(slot, list) and bool(slot) and all(isinstance(one, str) and one.strip() for one in slot)


def _without_spaces(text: str) -> str:
    return "".join(text.lower().split())
