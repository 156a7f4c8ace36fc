"""A stand-in for a chat model, to show the flow: a sentence with a name or a number left out."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from ragauge.plugins.synthesis.drafts import NO_SENTENCE, Draft, Written
from ragauge.plugins.synthesis.names import names
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import words

BLANK = "____"
MODEL = "stand-in by rules (cloze)"
_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,]*(?<![.,])(?!\w)")
# A line of Markdown that is a heading: after number signs, or with the line below that underlines it.
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:[ \t].*)?\r?$|^.*\n {0,3}(?:={2,}|-{2,})[ \t]*\r?$", re.MULTILINE)
_LEAST, _MOST = 6, 60  # words of a sentence


def write(drafts: Sequence[Draft], before: Mapping[str, list[str]], seed: int) -> None:
    """Fills in a cloze question for every draft; rejects drafts whose documents have none left."""
    for draft in drafts:
        docno = draft.unit.docnos[0]
        known = set(before.get(f"{draft.unit.kind}/{docno}", ()))
        found = [one for one in _possible(draft.shown[0]) if one.question not in known]
        if found:
            draft.written = random.Random(f"{seed}/cloze/{docno}/{draft.unit.use}").choice(found)
        else:
            draft.rejected_by = NO_SENTENCE
            draft.raw = "no sentence with a name or number to leave out"


def _possible(text: str) -> list[Written]:
    """The cloze questions of a text: one per sentence and per name or number that occurs in it once.

    A heading of Markdown is no sentence, and no part of one.
    """
    found = []
    pieces = _HEADING.split(text)
    for sentence in (piece[start:end] for piece in pieces for start, end in sentence_spans(piece)):
        if not _LEAST <= len(words(sentence)) <= _MOST:
            continue
        spans = [*names(sentence), *(match.group() for match in _NUMBER.finditer(sentence))]
        for answer in dict.fromkeys(spans):
            if len(re.findall(rf"(?<!\w){re.escape(answer)}(?!\w)", sentence)) != 1:
                continue
            blanked = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", BLANK, sentence)
            question = f"What stands in the blank? {' '.join(blanked.split())}"
            found.append(Written(question, answer, ((0, sentence),)))
    return found
