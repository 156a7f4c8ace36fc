"""F1 of HotpotQA's script and the measures of SQuAD 2's: values by hand, and a plain twin of each script."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ragauge.answering import RecordedAnswers
from ragauge.contract.component import Tools
from ragauge.plugins.benchmarks.answer_scripts import HotpotF1, Squad2
from small_pipeline import DOCS, TOPICS, SmallPipelines, own_values

SAID = ["yes", "Yes.", "no", "No!", "noanswer", "yes it is", "the cat", "a cat sat", "cat", "", "The"]


def plain(text: str) -> str:
    letters = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())


def f1(answer: str, reference: str) -> float:
    common = sum((Counter(plain(answer).split()) & Counter(plain(reference).split())).values())
    return 2 * common / (len(plain(answer).split()) + len(plain(reference).split())) if common else 0.0


def twin_of_hotpot(answer: str, reference: str) -> float:
    whole = {plain(answer), plain(reference)} & {"yes", "no", "noanswer"}
    return 0.0 if whole and plain(answer) != plain(reference) else f1(answer, reference)


def twin_of_squad2(answer: str, reference: str) -> float:
    empty = not plain(answer) or not plain(reference)
    return float(plain(answer) == plain(reference)) if empty else f1(answer, reference)


def test_yes_and_no_count_whole_or_not_at_all(tools: Tools) -> None:
    def value(answer: str, reference: str) -> float:
        return float(HotpotF1().compared([answer], [reference], tools)["hotpotqa_f1"][0])

    assert value("yes it is", "yes") == 0.0  # 0.5 as F1
    assert value("Yes.", "yes") == 1.0
    assert value("no", "no more war") == 0.0
    assert value("the cat sat", "cat") == pytest.approx(2 / 3)


def test_the_values_are_those_of_the_scripts(tools: Tools) -> None:
    answers, references = zip(*product(SAID, SAID), strict=True)
    hotpot = HotpotF1().compared(answers, references, tools)["hotpotqa_f1"]
    squad = Squad2().compared(answers, references, tools)
    pairs = list(zip(answers, references, strict=True))
    assert hotpot.tolist() == pytest.approx([twin_of_hotpot(*pair) for pair in pairs])
    assert squad["squad2_f1"].tolist() == pytest.approx([twin_of_squad2(*pair) for pair in pairs])
    assert squad["squad2_em"].tolist() == [float(plain(a) == plain(r)) for a, r in pairs]


def test_no_answer_to_an_impossible_question_is_right_and_is_a_rejection(small: SmallPipelines, tmp_path: Path) -> None:
    open_ = {"unanswerable": True, "answer": None, "evidence": []}
    topics: list[Any] = [TOPICS[0], {**TOPICS[1], **open_}, {**TOPICS[2], **open_}]
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps({"q1": "Anna", "q2": "", "q3": "Snow"}))
    parts = {"llm": RecordedAnswers(path=file), "answers": {"squad2": Squad2()}}
    job = small(docs=DOCS, topics=topics, max_missing_share=0.0, **parts)
    assert job.verdicts["label"].tolist() == [5, 1, 4]
    values = own_values(job)
    assert values["measure"].tolist() == ["squad2_em"] * 3 + ["squad2_f1"] * 3
    assert values["value"].tolist() == [1.0, 1.0, 0.0] * 2
