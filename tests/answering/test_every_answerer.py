from typing import Any

import pytest

from answer_inputs import TOPICS, contexts, generator
from ragauge.answering import Extractive, NoLLM, RecordedAnswers
from ragauge.answering.judges import LexicalJudge, NoJudge, RecordedJudge
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity


@pytest.mark.parametrize("part", [Extractive(), generator(retries=0), RecordedAnswers(path="nowhere.jsonl")])
def test_a_context_of_no_topic_is_an_error(part: Any, tools: Tools) -> None:
    with pytest.raises(DataError, match="contexts frame: qid 'q9' is in no topic"):
        part.answer(TOPICS, contexts(("q9", 100, "x")), tools)


@pytest.mark.parametrize("part", [Extractive(), NoLLM(), generator(retries=0), RecordedAnswers(path="nowhere.jsonl")])
def test_no_contexts_give_no_answers(part: Any, tools: Tools) -> None:
    answers = part.answer(TOPICS, contexts(("q1", 1, "x")).iloc[:0], tools)
    assert len(frames.check("answers", answers)) == 0


def test_what_each_answerer_and_judge_is_known_by_and_uses() -> None:
    cosine = ("extractive", "embedded", 5, {"embedder"})
    known = [
        (generator(), ("chat", "chat", 5, set())),
        (Extractive(), cosine),
        (Extractive(by="words"), (*cosine[:3], set())),
        (RecordedAnswers(), ("recorded", "recorded", 4, set())),
        (NoLLM(), ("none", "none", 1, set())),
        (LexicalJudge(), ("lexical", "embedded", 5, set())),
        (RecordedJudge(), ("recorded", "recorded", 1, set())),
        (NoJudge(), ("none", "none", 1, set())),
    ]
    for part, told in known:
        said = identity(part)
        assert (said["component"], part.kind, said["version"], set(part.uses)) == told
