import pytest

from answer_inputs import TOPICS, contexts, generator
from ragauge.answering import ChatGenerator, Extractive, NoLLM, RecordedAnswers
from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.contract.protocols import Tools


@pytest.mark.parametrize("part", [Extractive(), generator(retries=0), RecordedAnswers(path="nowhere.jsonl")])
def test_a_context_of_no_topic_is_an_error(part: Extractive | ChatGenerator | RecordedAnswers, tools: Tools) -> None:
    with pytest.raises(DataError, match="contexts frame: qid 'q9' is in no topic"):
        part.answer(TOPICS, contexts(("q9", 100, "x")), tools)


@pytest.mark.parametrize("part", [Extractive(), NoLLM(), generator(retries=0)])
def test_no_contexts_give_no_answers(part: Extractive | NoLLM | ChatGenerator, tools: Tools) -> None:
    answers = part.answer(TOPICS, contexts(("q1", 1, "x")).iloc[:0], tools)
    assert len(frames.check("answers", answers)) == 0
