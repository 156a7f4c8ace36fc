"""Cloze questions of Markdown: what they leave a word out of is a sentence, and no heading."""

from __future__ import annotations

import pytest

from ragauge.plugins.synthesis import cloze
from ragauge.plugins.synthesis.drafts import PASSED, Draft, locate_evidence
from ragauge.plugins.synthesis.units import Unit

SENTENCE = "Visitors reach the old mill of Aldor in 12 minutes."


@pytest.mark.parametrize(
    "text",
    [
        f"# Aldor\n{SENTENCE}",
        f"Aldor\n=====\n{SENTENCE}",
        f"### Ways to the mill ###\r\n{SENTENCE}\r\n",
        f"without an end\n## The mill of Aldor\n## Ways\n{SENTENCE}\n#\n- more",
        f"Way {'very ' * 80}long\n---\n{SENTENCE}",
    ],
    ids=["number signs", "underlined", "closed", "between", "long"],
)
def test_evidence_is_the_sentence_without_its_heading(text: str) -> None:
    drafts = [Draft(n, Unit("one_hop", ("d",)), (text,)) for n in range(9)]
    cloze.write(drafts, {}, seed=0)
    for draft in drafts:
        assert draft.written is not None
        assert draft.written.evidence == ((0, SENTENCE),)
        locate_evidence(draft, lambda docno: text)
        assert draft.results["evidence"] == PASSED


def test_number_signs_within_a_line_are_no_heading() -> None:
    sentence = "The keys of C# and of #12 hang\n#7 beside the door of Aldor."
    draft = Draft(0, Unit("one_hop", ("d",)), (sentence,))
    cloze.write([draft], {}, seed=0)
    assert draft.written is not None
    assert draft.written.evidence == ((0, sentence),)
