"""Texts from corpora, models and colleagues meet the patterns of the code: the time grows as the length does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pumped import pumped, seconds_of, uses
from ragauge.answering.extractive import _alternatives, _steps
from ragauge.contract.redact import redact
from ragauge.datasets.lists import printed_list
from ragauge.llms.prompts import in_language
from ragauge.plugins.benchmarks.sgml import Block, topic
from ragauge.retrieval.queries import parse_queries, question_parts
from ragauge.texts.quotes import find_sentence

_SECONDS = 2.0  # of the processor, where the square of the length would take minutes


def sgml(text: str) -> None:
    topic(Block(f"<num> 1 <title> {text}", "", True), "title")


QUICK: dict[str, tuple[Callable[[str], object], str]] = {
    "alternatives by or": (_alternatives, "Is " + ", or " * 8000),
    "alternatives by and": (_alternatives, "Is " + "A " * 20_000),
    "alternatives by and the": (_alternatives, "Is " + "A and the B " * 4000),
    "things of things": (_steps, "What is " + "the town of " * 4000),
    "clauses": (question_parts, "What is" + " " * 40_000 + "it"),
    "comparisons": (question_parts, "A or " * 8000),
    "list marks": (parse_queries, "query" + " " * 40_000 + "x"),
    "SGML, white space": (sgml, "x" + " " * 40_000 + "y"),
    "SGML, a tag that is not closed": (sgml, "x <" + "a" * 40_000),
    "redaction, a code in an address": (redact, "?code=a" * 6000),
    "redaction, a name in a name": (redact, "code=" * 8000),
    "redaction, an interpolation in a token": (redact, "token=${a}" * 4000),
    "redaction, the beginning of a token": (redact, "-eyJ" * 10_000),
    "redaction, a default": (redact, "${oc.env:" + " " * 40_000),
    "a quoted sentence": (lambda text: find_sentence(f"{text} b", text), "a " * 100_000),
    "a printed list with a quote that never ends": (printed_list, "['" + "\\'" * 20_000 + "]"),
    "marks that never end": (lambda text: in_language(text, "auto"), "<quoted-material-00000000>" * 3000),
}


@pytest.mark.parametrize("name", QUICK)
def test_a_long_text_takes_no_quadratic_time(name: str) -> None:
    work, text = QUICK[name]
    assert seconds_of(lambda text: work(text) and None, text, 2 * _SECONDS) < _SECONDS


# Patterns that see a short piece of a text, whatever its length.
CUT_BEFORE = {
    "texts/sentences.py: _LAST_WORD": "40 characters",
    "texts/languages.py: _ENDS": "a word of 2,000",
    "commands/conf.py: _QUOTED": "what the user types",
}


@pytest.mark.slow
def test_no_pattern_of_the_code_takes_quadratic_time() -> None:
    slow = {}
    for use in (use for use in uses() if use.where not in CUT_BEFORE):
        texts = list(pumped(use.pattern, 400))
        longest = sorted(range(len(texts)), key=lambda at: -seconds_of(use.work, texts[at], 0.3))[:8]
        texts = list(pumped(use.pattern, 3200))
        at = max(longest, key=lambda at: seconds_of(use.work, texts[at], 0.5))
        before = min(seconds_of(use.work, texts[at], 0.5) for _ in range(3))
        if before > 0.002:  # else the square of the length is no trouble, either
            text = list(pumped(use.pattern, 12_800))[at]
            behind = min(seconds_of(use.work, text, 2.0) for _ in range(3))
            if behind > 8 * before or behind == 2.0:  # four times the length: 4 where it is linear, 16 where quadratic
                slow[use.where] = f"{before:.3f} s, then {behind:.3f} s on {text[:20]!r}"
    assert not slow
