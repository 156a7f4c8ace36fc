from answer_inputs import TOPICS, contexts
from ragauge.answering import NoLLM
from ragauge.contract import frames
from ragauge.contract.component import Tools


def test_no_llm_gives_no_answers(tools: Tools) -> None:
    answers = NoLLM().answer(TOPICS, contexts(("q1", 100, "x"), ("q2", 100, "y")), tools)
    frames.check("answers", answers)
    assert answers["answer"].isna().all()
    assert (answers["status"] == "none").all()
