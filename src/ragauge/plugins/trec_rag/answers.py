"""Files of TREC RAG's answers: a JSON object per line, with references, and sentences that cite them by number.

2024: {run_id, topic_id, topic, references, response_length, answer}; 2025: {metadata: {team_id, run_id, type,
narrative_id, narrative}, references, answer}. An answer is a list of {text, citations}; a citation is a place in
`references`, from 0, or, in 2025, a segment's id.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.errors import DataError
from ragauge.datasets import BadRow
from ragauge.datasets.fields import listed, short, string, valid_string
from ragauge.datasets.files import json_rows, parse_json
from ragauge.texts.citation_marks import given_sentences, statements_of

MOST_REFERENCES = {2024: 20, 2025: 100}  # of an answer, by the tracks' guidelines


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer, and its citations as positions in the answer's references, from 0."""

    text: str
    citations: tuple[int, ...] = ()


@dataclass(frozen=True)
class RagAnswer:
    """One line of a file: a topic's answer.

    topic_id: a text or, as ragnarok writes those of 2024, a number. metadata: the object of this name in the format of
    2025; None is the format of 2024.
    """

    topic_id: str | int
    topic: str
    run_id: str
    references: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    metadata: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The sentences, joined by a space: the text to which nuggetizer assigns nuggets."""
        return " ".join(one.text for one in self.sentences)

    @property
    def length(self) -> int:
        """The number of words by the track's rule: split at white space, after NFKC."""
        return sum(len(unicodedata.normalize("NFKC", one.text.strip()).split()) for one in self.sentences)

    def line(self) -> str:
        """The line of the file, in ragnarok's form: in ASCII in 2024, in UTF-8 in 2025."""
        answer = [{"text": one.text, "citations": list(one.citations)} for one in self.sentences]
        if self.metadata is None:
            row: dict[str, Any] = {
                "run_id": self.run_id,
                "topic_id": self.topic_id,
                "topic": self.topic,
                "references": list(self.references),
                "response_length": self.length,
                "answer": answer,
            }
            return json.dumps(row) + "\n"
        row = {"metadata": dict(self.metadata), "references": list(self.references), "answer": answer}
        return json.dumps(row, ensure_ascii=False) + "\n"


def read_answers(file: Path) -> Iterator[tuple[str, RagAnswer]]:
    """The place of each answer, and the answer; DataError names file and line of an unreadable one."""
    for where, row in json_rows(file):
        try:
            yield where, _answer(parse_json(row))
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None


def _answer(row: Any) -> RagAnswer:
    if not isinstance(row, Mapping):
        raise BadRow(f"expected a JSON object, found {short(row)}")
    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise BadRow(f"'metadata' is no object: {short(metadata)}")
    of, names = (row, ("topic_id", "topic")) if metadata is None else (metadata, ("narrative_id", "narrative"))
    topic_id = of.get(names[0])
    if isinstance(topic_id, bool) or not isinstance(topic_id, (str, int)):
        raise BadRow(f"{names[0]!r} is neither a text nor a whole number: {short(topic_id)}")
    references = tuple(
        valid_string(one, f"entry {i} of 'references'") for i, one in enumerate(listed(row, "references"))
    )
    for one in references:
        if one.split() != [one]:
            raise BadRow(f"reference {one!r} is empty or holds white space")
        if references.count(one) > 1:
            raise BadRow(f"reference {one!r} stands twice")
    sentences = tuple(_sentence(one, i, references) for i, one in enumerate(listed(row, "answer")))
    topic = string(of, names[1]) if of.get(names[1]) is not None else ""
    return RagAnswer(topic_id, topic, string(of, "run_id"), references, sentences, metadata)


def _sentence(given: Any, number: int, references: Sequence[str]) -> Sentence:
    text = string(given, "text")
    if "\u2028" in text:
        raise BadRow(f"sentence {number} holds the line separator U+2028")
    cited = []
    for one in listed(given, "citations"):
        place = references.index(one) if isinstance(one, str) and one in references else one
        if type(place) is not int or not 0 <= place < len(references):
            allowed = f"the places of {len(references)} references, from 0"
            raise BadRow(f"sentence {number} cites {short(one)}: allowed are {allowed}")
        cited.append(place)
    return Sentence(text, tuple(cited))


def marked(sentences: Sequence[Sentence]) -> str:
    """The sentences as one text with marks; [1] is the first reference. `sentences_of` parses it."""
    texts = (one.text + "\u2028" + "".join(f"[{place + 1}]" for place in one.citations) for one in sentences)
    return "\n\n".join(texts)


def sentences_of(text: str) -> tuple[Sentence, ...]:
    """The sentences of an answer with marks, given by the answer or split from its text."""
    found = given_sentences(text)
    given = statements_of(text) if found is None else found
    return tuple(Sentence(one.text, tuple(number - 1 for number in one.cited)) for one in given)
