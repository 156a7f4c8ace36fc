"""Sufficient context: three verdicts, one request per question and context, every topic before it is answered."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from chat_server import ChatServer
from plugins.llm_measures.test_asked_measures import asking, calls
from ragauge.answering import NoLLM
from ragauge.contract.component import Tools
from ragauge.contract.frames import check
from ragauge.contract.measures import MeasuresRanking
from ragauge.plugins.llm_measures.sufficient_context import Sufficiency, SufficientContext, read_verdict
from scripted_chat import ScriptedChat, unframed
from small_pipeline import SmallPipelines

TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4"], "query": ["Who built it?", "Where?", "Why?", "When?"]})
RUN = pd.DataFrame({"qid": [], "docno": [], "rank": []})


def verdict(prompt: str) -> str:
    """By words of the passages: Anna suffices, Anna and Bob contradict each other, nonsense for Graz."""
    shown = unframed(prompt).split("Passages, each a JSON string:\n")[1].split("\n\nThe JSON")[0]
    text = " ".join(map(json.loads, shown.split("\n")))
    if "Graz" in text:
        return "yes"
    said = "contradictory" if "Bob" in text else "sufficient" if "Anna" in text else "insufficient"
    return json.dumps({"reason": "so", "verdict": said})


def used(*rows: tuple[str, str, int]) -> pd.DataFrame:
    """Frame `used_passages`: [qid, text, characters that stand in the context]."""
    found = [(qid, 9, i, i, f"d{i}", text, chars) for i, (qid, text, chars) in enumerate(rows)]
    return pd.DataFrame(found, columns=["qid", "n_tokens", "position", "rank", "docno", "text", "chars"])


def test_the_context_as_it_stands_is_judged_as_a_whole(tools: Tools) -> None:
    measure = SufficientContext()
    assert isinstance(measure, MeasuresRanking)
    chat = ScriptedChat(lambda prompt, n: verdict(prompt))
    passages = used(
        ("q1", "Anna did.", 9), ("q1", "Or so.", 6), ("q2", "Bob did.", 8), ("q2", "Anna did.", 9),
        ("q3", "Hm. Anna.", 3), ("q4", "In Graz.", 8),
    )  # fmt: skip
    topics = pd.concat([TOPICS, pd.DataFrame({"qid": ["q5"], "query": ["What?"]})], ignore_index=True)
    found = check("answer_values", measure.measure_ranking(topics, RUN, passages, 9, chat.tools(tools)))
    values = found.pivot(index="qid", columns="measure", values="value")
    assert values["sufficient_context"].tolist()[:3] == [1, 0, 0]  # of q3 the budget cuts the name
    assert values["contradictory_context"].tolist()[:3] == [0, 1, 0]
    status = found[found["measure"] == "sufficient_context"].set_index("qid")["status"]
    assert status[["q4", "q5"]].tolist() == ["unreadable", "no context"]
    assert json.loads(found["detail"][0]) == {"verdict": "sufficient", "reason": "so"}


def test_a_verdict_is_one_of_three_words() -> None:
    assert read_verdict('{"verdict": "sufficient", "reason": "a\\nb"}') == Sufficiency("sufficient", "a b")
    for wrong in ('{"verdict": "yes"}', '{"verdict": ["sufficient"]}', "sufficient", "[]"):
        assert read_verdict(wrong) is None


def test_a_job_without_answers_asks_once_and_tells_the_requests_before(small: SmallPipelines) -> None:
    with ChatServer(verdict) as server:
        parts = {"evaluator": asking(server), "answers": {"sufficient_context": SufficientContext()}, "llm": NoLLM()}
        assert calls(small(**parts)) == {"answers.sufficient_context": 3}
        job = small(**parts)
        assert job.foreseeing["sufficient_context"].notna().all()
        assert sum(server.calls.values()) == 3
        assert sum(calls(small(**parts)).values()) == 0


def test_a_prompt_of_your_own_needs_both_placeholders() -> None:
    with pytest.raises(Exception, match=r"answers\.sufficient_context\.prompt"):
        SufficientContext(prompt="$question alone")
