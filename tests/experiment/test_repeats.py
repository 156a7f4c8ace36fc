"""Several answers to every topic and several verdicts on them: what is paid, kept, counted, and joined to outcomes."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections import Counter
from typing import Any

import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering import ChatGenerator, Extractive, RecordedAnswers
from ragauge.answering.judges import ChatJudge
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.estimate.board import share_estimates
from ragauge.estimate.prompts import by_prompt
from ragauge.experiment.dry_run import needs
from ragauge.experiment.need_sums import added_up
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.experiment.stages.repeating import Repeats, checked_repeats
from ragauge.findings.cost import costs_of_replies
from ragauge.measures.answers import ExactMatch
from small_pipeline import SmallPipelines


def chat_generator(chat: dict[str, Any], **fields: Any) -> ChatGenerator:
    return ChatGenerator(chat=chat, **{"backoff": 0.01, "retries": 1, **fields})


class SeededServer(ChatServer):
    """A server whose replies and counts tell requests apart by their seed, too."""

    def begin(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[str, str | None]:
        prompt, fault = super().begin(body, headers)
        return f"{prompt}\nseed {body.get('seed')}", fault

    @property
    def asked(self) -> tuple[int, int]:
        """Answers and verdicts that were given whole; no request twice."""
        assert set(self.whole.values()) <= {1}
        verdicts = sum('"label"' in prompt for prompt in self.whole)
        return len(self.whole) - verdicts, verdicts


def reply(prompt: str) -> str:
    """An answer by the dice of its question and seed, and a verdict by those of what is judged."""
    dice = random.Random(prompt)
    if '"label"' in prompt:
        return json.dumps({"label": dice.randint(1, 5), "reason": "by dice"})
    return f"Number {dice.randint(0, 3)} of {len(prompt)}."


def job(small: SmallPipelines, url: str, answers: int = 1, verdicts: int = 1, **others: Any) -> Pipeline:
    """A job over three questions that asks the server, with a temperature and a seed."""
    chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{url}/v1", "api_key": "none"}
    llm = chat_generator({**chat, "temperature": 1, "seed": 0}, **others)
    judge = ChatJudge(chat={**chat, "temperature": 0, "seed": 0}, backoff=0.01)
    if not hasattr(small, "data"):
        small.data = small.source()  # type: ignore[attr-defined]
    made = small(llm=llm, judge=judge, dataset=small.data, answers={"em": ExactMatch()})  # type: ignore[attr-defined]
    return dataclasses.replace(made, repeats=checked_repeats(answers, verdicts, made.components))


def test_further_repeats_are_paid_alone_and_a_single_answer_keeps_its_key(small: SmallPipelines) -> None:
    with SeededServer(reply) as server:
        once = job(small, server.url)
        first = once.outcomes
        assert "label_2" not in first
        keys = {stage: once.key(stage).digest for stage in ("answers", "answer_values", "verdicts")}
        assert server.asked == (3, 3)
        told = added_up(needs(job(small, server.url, 3)))
        assert (told["llm"]["calls"], told["llm"]["calls_cached"]) == (6, 3)
        thrice = job(small, server.url, 3)
        rows = thrice.outcomes
        answers, verdicts = server.asked
        assert answers == 9
        assert {stage: thrice.key(stage).digest for stage in keys} == keys
        pd.testing.assert_series_equal(rows["label"], first["label"])
        distinct = thrice.repeated.drop_duplicates(["qid", "answer"])
        assert verdicts == len(distinct)  # equal answers to a topic are one request
        assert costs_of_replies(thrice.all_answers)["llm_calls"] == 6
        assert costs_of_replies(thrice.all_verdicts, "judge_")["judge_llm_calls"] == verdicts - 3
        twice_judged = job(small, server.url, 3, 2)
        labels = twice_judged.outcomes
        assert server.asked == (9, 2 * len(distinct))
        assert [c for c in labels if c.startswith("label")] == ["label", *(f"label_{k}" for k in range(2, 7))]
        assert {stage: twice_judged.key(stage).digest for stage in keys} == keys
    assert sorted({body.get("seed") for body in server.bodies if "seed" in body}) == [0, 1, 2]


def test_shares_and_measures_are_means_over_repeats_with_the_topic_as_unit(small: SmallPipelines) -> None:
    with SeededServer(reply) as server:
        made = job(small, server.url, 3)
        rows, frame = made.outcomes, made.repeated
    of_repeats = ["qid", "n_tokens", "sample", "repeat"]
    assert list(frame) == [*of_repeats, "answer", "answer_status", "label", "judge_status", "em"]
    assert len(frame) == 9
    shares = share_estimates(rows)
    assert shares["correct_share"].value == pytest.approx(frame["label"].eq(5).mean())
    assert shares["correct_share"].n == 3
    five = sum(shares[f"judge_share_{c}"].value for c in range(1, 6)) + shares["judge_share_missing"].value
    assert five == pytest.approx(1)
    means = frame.groupby("qid")["em"].mean()
    assert rows.set_index("qid")["em"].to_dict() == pytest.approx(means.to_dict())
    assert rows["prompts_are"].eq("repeats").all()


def test_a_run_that_broke_off_goes_on_without_paying_twice(small: SmallPipelines) -> None:
    calls: Counter[bool] = Counter()

    def breaks(prompt: str, n: int) -> str | None:
        calls[True] += 1
        return "404" if 7 <= calls[True] <= 12 else None  # in the second answers of the topics

    with SeededServer(reply, breaks) as server:
        with pytest.raises(RagaugeError):
            _ = job(small, server.url, 3, concurrency=1).outcomes
        calls[True] = 100
        rows = job(small, server.url, 3, concurrency=1).outcomes
        assert server.asked[0] == 9
    assert rows["label_3"].notna().all()


def test_a_verdict_that_is_missing_in_one_repeat_is_missing_there_alone() -> None:
    frame = pd.DataFrame({"qid": ["a", "b"], "label": pd.array([5, 1], "Int8"), "label_2": pd.array([0, None], "Int8")})
    first, second = by_prompt(frame)
    assert first["label"].tolist() == [5, 1]
    assert second["label"].isna().tolist() == [True, False]
    shares = share_estimates(frame)
    assert (shares["correct_share"].value, shares["judge_share_missing"].value) == (0.25, 0.25)


def test_without_a_seed_a_salt_tells_repeats_apart() -> None:
    llm = chat_generator({"_target_": "langchain_openai.ChatOpenAI", "model": "m", "temperature": 0.5})
    again, third = llm.repeated(1), llm.repeated(2)
    assert len({json.dumps(one.identity(), sort_keys=True) for one in (llm, again, third)}) == 3
    assert "repeat" not in llm.identity()
    assert again.identity()["repeat"] == "again"


@pytest.mark.parametrize("setting", [{"temperature": 0}, {"temperature": 0, "seed": 1}, {"temperature": 1, "top_k": 1}])
def test_a_model_that_cannot_differ_is_refused_before_it_is_paid(
    small: SmallPipelines, setting: dict[str, Any]
) -> None:
    llm = chat_generator({"_target_": "langchain_ollama.ChatOllama", "model": "m", **setting})
    with pytest.raises(ConfigError, match=r"llm\.repeat: with llm\.chat\.(temperature=0|top_k=1) a model"):
        checked_repeats(3, 1, small.components(llm=llm))


def test_stand_ins_are_equal_and_recorded_answers_follow_each_other(small: SmallPipelines, caplog: Any) -> None:
    with caplog.at_level("INFO"):
        assert checked_repeats(3, 1, small.components(llm=Extractive())) == Repeats()
    assert "llm.repeat=3: extractive gives the same each time" in caplog.text
    recorded = RecordedAnswers(path="x.jsonl")
    assert checked_repeats(2, None, small.components(llm=recorded)) == Repeats(2, 1)
    assert recorded.repeated(1).answer_number == 1


@pytest.mark.parametrize(
    ("answers", "verdicts", "judge", "told"),
    [
        (0, 1, {}, "llm.repeat=0"),
        (2, 1, {"mode": "batch"}, "use judge.mode=single"),
        (2, 1, {"prompts": ["a", "b"]}, "judge.prompts"),
        (17, 2, {}, "at most 32"),
    ],
)
def test_what_cannot_be_repeated_is_refused_in_one_line(
    small: SmallPipelines, answers: int, verdicts: int, judge: dict[str, Any], told: str
) -> None:
    chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "temperature": 1}
    parts = small.components(llm=chat_generator(chat), judge=ChatJudge(chat=chat, **judge))
    with pytest.raises(ConfigError, match=re.escape(told)) as error:
        checked_repeats(answers, verdicts, parts)
    assert "\n" not in str(error.value)
