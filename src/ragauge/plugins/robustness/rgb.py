"""RGB's JSON Lines: web snippets for and against, answers in slots, snippets with a wrong answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ragauge.contract.changed import changed_docno
from ragauge.contract.checks import require_choice, require_flag
from ragauge.contract.datasets import Dataset
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import Attribute, BadRow, listed, string, strings, valid_string
from ragauge.datasets.files import parsed, rows
from ragauge.datasets.gather import Gatherer, OneFile, Paragraphs, Part


@option("dataset/rgb")
class RGB(OneFile):
    """RGB (Chen et al., 2024), any of its files en, en_int, en_fact, en_refine and zh…, from `path`.

    The documents are the distinct snippets of all questions; those with a wrong answer (`positive_wrong`)
    only where `wrong` is true, each as the changed copy of its true one (`ragauge.contract.changed`).
    evidence: `first`, the first snippet for each part of the answer. `all`, all of them. `known`, the first ones with
        their texts and the others by their docnos alone, which are then known to be no distractors.
    """

    component = "rgb"
    version = 2

    name: str = runtime(CONF)
    evidence: str = CONF
    wrong: bool = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("dataset.evidence", self.evidence, ("first", "all", "known"))
        require_flag("dataset.wrong", self.wrong)

    def load(self) -> Dataset:
        """The collection; DataError names file, line, qid and error."""
        file = self.files()["path"]
        gather = Gatherer(self)
        snippets = Paragraphs(gather)
        questions = []
        for where, line in rows(file):
            with gather.row(where) as at:
                row = parsed(line)
                at.qid = qid = _qid(row)
                groups = _groups(row)
                others = {"wrong": _texts(row, "positive_wrong"), "negative": _texts(row, "negative")}
                if not self.wrong:
                    del others["wrong"]
                parts: list[Part] = []
                positives: list[str] = []
                for group in groups:
                    first = len(positives)
                    for text in group:
                        positives.append(snippets.add("", text, f"{qid}-positive-{len(positives)}"))
                    found = list(zip(positives[first:], group, strict=True))
                    parts += found if self.evidence == "all" else found[:1]
                    if self.evidence == "known":
                        parts += [(docno, None) for docno, _ in found[1:]]
                for number, text in enumerate(others.get("wrong", ())):
                    original = positives[number] if number < len(positives) else f"wrong-{number}"
                    snippets.add("", text, changed_docno(qid, original))
                for number, text in enumerate(others["negative"]):
                    snippets.add("", text, f"{qid}-negative-{number}")
                questions.append((where, qid, row, parts))
        for where, qid, row, parts in questions:
            if gather.full:
                break
            with gather.row(where) as at:
                at.qid = qid
                slots = _slots(row)
                listed_slots = json.dumps(slots, ensure_ascii=False)
                attributes: dict[str, Attribute] = {"slots": len(slots), "answer_slots": listed_slots}
                wrong = [string(row, "fakeanswer").strip()] if row.get("fakeanswer") is not None else []
                gather.add_topic(qid, string(row, "query"), _references(slots), parts, attributes, wrong_answers=wrong)
        return gather.dataset(file, file)


def _qid(row: Any) -> str:
    if isinstance(row, Mapping) and type(row.get("id")) is int:
        return str(row["id"])
    return string(row, "id")


def _texts(row: Mapping[str, Any], key: str) -> list[str]:
    found = strings(row, key)
    if "" in map(str.strip, found):
        raise BadRow(f"an entry of {key!r} is empty")
    return found


def _groups(row: Mapping[str, Any]) -> list[list[str]]:
    """The snippets for each part of the answer: `positive` lists them or, in en_int, lists of them."""
    entries = listed(row, "positive")
    if not any(isinstance(entry, list) for entry in entries):
        return [_texts(row, "positive")]
    groups = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, list):
            raise BadRow(f"entry {number} of 'positive' is not a list, as others are")
        groups.append(_texts({"positive": entry}, "positive"))
    return groups


def _slots(row: Mapping[str, Any]) -> list[list[str]]:
    """The parts of a right answer, each as its alternatives."""
    answer = row.get("answer")
    if answer is None:
        raise BadRow("key 'answer' is missing")
    slots = []
    for number, slot in enumerate(answer if isinstance(answer, list) else [answer]):
        alternatives = [
            valid_string(one, f"an alternative of slot {number} of 'answer'").strip()
            for one in (slot if isinstance(slot, list) else [slot])
        ]
        if not alternatives or "" in alternatives:
            raise BadRow(f"slot {number} of 'answer' is empty")
        slots.append(alternatives)
    if not slots:
        raise BadRow("'answer' has no slot")
    return slots


def _references(slots: list[list[str]]) -> list[str]:
    """Answers that together use every alternative: the first of all slots, the second of all, and so on.

    Alternatives are spellings (Jan 2, 2 January), listed in the same order in each slot. A slot that has
    fewer than another repeats its last.
    """
    return [", ".join(slot[min(number, len(slot) - 1)] for slot in slots) for number in range(max(map(len, slots)))]
