import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from chat_server import COMPLAINT, UNTOLD, ChatServer, faults_at, first_of
from ragauge.answering.judges import ChatJudge, NoJudge
from ragauge.answering.judges._chat import VERDICT, cut_verdict
from ragauge.answering.judges.frame import truths
from ragauge.contract import frames, identity
from ragauge.contract.component import Tools
from ragauge.contract.current_job import run_begins
from ragauge.contract.errors import ConfigError, DataError
from ragauge.findings.cost import costs_of_replies
from scripted_chat import unframed

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["Who built it?", "Where is it?"], "answer": ["Anna", "in Graz"]})
EVIDENCE = pd.DataFrame(
    {
        "qid": ["q2", "q1", "q1"],
        "part": [0, 1, 0],
        "docno": None,
        "text": ["It stands in Graz.", "Anna was\nborn in Graz.", "Anna built it."],
    }
)


def answers(*rows: tuple[str, int, str | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["qid", "n_tokens", "answer"])


def candidates(*rows: tuple[str, str, str | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["qid", "candidate", "answer"])


def judge(url: str = "http://localhost", kind: str = "ollama", **fields: Any) -> ChatJudge:
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "judge", "base_url": url}
    if kind == "openai":
        chat |= {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{url}/v1"}
        fields = {"api_key_env": "RAGAUGE_API_KEY", **fields}
    return ChatJudge(chat=chat, **{"backoff": 0.01, "timeout": 60.0, "retries": 2, **fields})


def shown(prompt: str) -> list[str]:
    """The answers that a batch prompt shows, in order."""
    block = unframed(prompt).split("one a line:\n")[1].split("\n\n")[0]
    return [line.split(". ", 1)[1] for line in block.split("\n")]


def honest(prompt: str) -> str:
    """A judge that knows the classes of answers like `right 5`, in either mode."""
    if "one a line:" in prompt:
        return ", ".join(answer[-1] for answer in shown(prompt))
    label = int(re.findall(r"Answer to grade: .*(\d)", unframed(prompt))[0])
    return json.dumps({"label": label, "reason": f"it is {label}"})


# --- single -------------------------------------------------------------------------------------------


def test_one_answer_a_request_with_its_reason(tools: Tools) -> None:
    given = answers(("q2", 200, "right 5"), ("q1", 200, "wrong 4"), ("q1", 100, None))
    with ChatServer(reply=honest) as server:
        verdicts = judge(server.url).judge(TOPICS, EVIDENCE, given, tools)
        assert sum(server.calls.values()) == 2
    frames.check("verdicts", verdicts)
    assert verdicts[["qid", "n_tokens"]].equals(given[["qid", "n_tokens"]])
    assert verdicts["label"].tolist() == [5, 4, pd.NA]
    assert verdicts["status"].tolist() == ["ok", "ok", "no answer"]
    assert verdicts["reason"].tolist()[:2] == ["it is 5", "it is 4"]
    assert json.loads(verdicts["raw"][0]) == {"label": 5, "reason": "it is 5"}
    about_q1 = next(unframed(prompt) for prompt in server.calls if "Who built it?" in prompt)
    assert "- Anna built it.\n- Anna was born in Graz.\n" in about_q1
    assert "Reference answer: Anna\n" in about_q1


@pytest.mark.parametrize(
    ("kind", "schema", "where"),
    [
        ("ollama", "format", "format"),
        ("openai", "response_format", "response_format"),
        ("openai", "none", None),
    ],
)
def test_the_schema_goes_where_the_server_takes_it(kind: str, schema: Any, where: str | None, tools: Tools) -> None:
    with ChatServer(reply=honest) as server:
        part = judge(server.url, kind, schema=schema)
        verdicts = part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
    assert verdicts["label"].tolist() == [5]
    body = server.bodies[0]
    if where is None:
        assert "response_format" not in body
    elif where == "format":
        assert body["format"] == VERDICT
    else:
        assert body["response_format"]["json_schema"]["schema"] == VERDICT


def _faulty_replies(bad: str, times: int) -> Callable[[str], str]:
    asked: dict[str, int] = {}

    def reply(prompt: str) -> str:
        first = first_of(prompt)
        asked[first] = asked.get(first, 0) + 1
        return bad if asked[first] <= times else honest(first)

    return reply


@pytest.mark.parametrize("mode", ["single", "batch"])
@pytest.mark.parametrize("bad", ["5, 5, 5, 5", "7", "The score is fine.", '{"label": 9, "reason": "x"}', "{"])
def test_an_unreadable_reply_is_asked_for_once_more(mode: Any, bad: str, tools: Tools) -> None:
    with ChatServer(reply=_faulty_replies(bad, 1)) as server:
        part = judge(server.url, mode=mode)
        verdicts = part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
        assert sum(server.calls.values()) == 2
        assert verdicts["label"].tolist() == [5]
        assert verdicts["prompt_tokens"].tolist() == [sum(len(prompt.split()) for prompt in server.calls)]
        again = part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
        assert sum(server.calls.values()) == 2
    assert again["label"].tolist() == [5]
    assert again["cached"].all()


@pytest.mark.parametrize("mode", ["single", "batch"])
def test_a_reply_that_stays_unreadable_is_a_missing_verdict_with_its_text(mode: Any, tools: Tools) -> None:
    with ChatServer(reply=lambda prompt: "I would say 5") as server:
        verdicts = judge(server.url, mode=mode).judge(TOPICS, EVIDENCE, answers(("q1", 1, "x")), tools)
        assert sum(server.calls.values()) == 2
    frames.check("verdicts", verdicts)
    assert verdicts["label"].isna().all()
    assert verdicts["status"].tolist() == ["unreadable"]
    assert verdicts["raw"].tolist() == ["I would say 5"]
    form = {"single": '{"label": 1 to 5, "reason": "..."}', "batch": "1 class(es) 1 to 5 with commas between them"}
    assert verdicts["error"].tolist() == verdicts["reason"].tolist() == [f"I would say 5; expected {form[mode]}"]


def test_a_readable_reply_that_was_cut_does_not_count_and_a_later_run_asks_again(tools: Tools) -> None:
    with ChatServer(reply=lambda prompt: honest(first_of(prompt)), faults=lambda prompt, n: "length") as server:
        part = judge(server.url, mode="batch")
        verdicts = part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
        assert sum(server.calls.values()) == 2
        assert [COMPLAINT + "it is too long." in prompt for prompt in server.calls] == [False, True]
        assert verdicts["status"].tolist() == ["unreadable"]
        assert "cut" in verdicts["error"][0].partition(": ")[0]
        run_begins()
        server.faults = lambda prompt, n: None
        verdicts = part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
        assert sum(server.calls.values()) == 3
    assert verdicts["label"].tolist() == [5]


def test_a_verdict_that_was_cut_in_its_reason_has_its_class(tools: Tools) -> None:
    endless = '{\n  "label": 4,\n  "reason": "The answer is not the reference answer. The answer is not the re'
    with ChatServer(reply=lambda prompt: endless, faults=lambda prompt, n: "length") as server:
        verdicts = judge(server.url).judge(TOPICS, EVIDENCE, answers(("q1", 1, "wrong")), tools)
        assert sum(server.calls.values()) == 1
    assert verdicts[["label", "status"]].to_numpy().tolist() == [[4, "ok"]]
    assert verdicts["reason"][0].endswith("is not the re")
    assert cut_verdict('```json\n{"label": "5", "reason": "It') == (5, "It")
    assert cut_verdict('{"label": 5, "reason": "It is \\"so\\".", "note": "') == (5, 'It is \\"so\\".')
    for unclear in (
        '{"label": 5',
        '{"reason": "It',
        '{"label": 6, "reason": "',
        '{"label": 4, "reason": "a", "label": 5, ',
    ):
        assert cut_verdict(unclear) is None


def test_a_call_that_fails_is_a_missing_verdict_with_its_error(tools: Tools) -> None:
    with ChatServer(reply=honest, faults=lambda p, n: "500" if "Where" in p else None) as server:
        given = answers(("q1", 1, "right 5"), ("q2", 1, "right 5"))
        verdicts = judge(server.url).judge(TOPICS, EVIDENCE, given, tools)
    frames.check("verdicts", verdicts)
    assert verdicts["status"].tolist() == ["ok", "missing"]
    assert "500" in verdicts["error"][1]
    assert pd.isna(verdicts["raw"][1])


# --- batch --------------------------------------------------------------------------------------------


def test_all_candidates_of_a_topic_are_one_request(tools: Tools) -> None:
    given = candidates(
        ("q1", "a", "right 5"), ("q2", "a", "lack 1"), ("q1", "b", "wrong 4"), ("q1", "c", None),
        ("q1", "d", "right 5"), ("q1", "e", "half\n2. right 3"), ("q1", "f", " "),
    )  # fmt: skip
    price = {"prompt": 1e6, "completion": 1e7}
    with ChatServer(reply=lambda prompt: f"<think>Hm.</think>{honest(prompt)}") as server:
        part = judge(server.url, mode="batch", price=price)
        verdicts = part.judge_candidates(TOPICS, EVIDENCE, given, tools)
        one, two = sorted(server.calls, key=lambda prompt: "Where is it?" in prompt)
        assert sum(server.calls.values()) == 2
    assert verdicts[["qid", "candidate"]].equals(given[["qid", "candidate"]])
    # What a request took is divided by the places of its answers, and adds up; each reply is three words or one.
    words = len(one.split())
    part_of = {answer: (words + place) // 3 for place, answer in enumerate(shown(one))}
    cost = words / 3 + 10
    a, b, e = (part_of[answer] for answer in ("right 5", "wrong 4", "half 2. right 3"))
    assert a + b + e == words
    calls = verdicts[["label", "status", "prompt_tokens", "completion_tokens", "cached", "calls", "thoughts"]]
    assert calls.astype(object).where(calls.notna(), None).to_numpy().tolist() == [
        [5, "ok", a, 1, False, 1, "Hm."],
        [1, "ok", len(two.split()), 1, False, 1, "Hm."],
        [4, "ok", b, 1, False, 0, None],
        [None, "no answer", 0, 0, False, 0, None],
        [5, "ok", a, 1, True, 0, None],  # the equal answer is one candidate
        [3, "ok", e, 1, False, 0, None],
        [1, "ok", 0, 0, False, 0, None],
    ]
    assert verdicts["cost_usd"].tolist() == pytest.approx([cost, len(two.split()) + 10, cost, 0, 0, cost, 0])
    assert verdicts["seconds"].gt(0).tolist() == [True, True, True, False, False, True, False]
    assert verdicts.loc[[0, 2], "seconds"].nunique() == 1
    assert verdicts["request"].nunique() == 2
    assert verdicts["request"].isna().tolist() == [False, False, False, True, False, False, True]


@pytest.mark.parametrize("mode", ["single", "batch"])
def test_an_answer_that_says_nothing_is_a_lack_of_information_and_nobody_is_asked(mode: Any, tools: Tools) -> None:
    with ChatServer(reply=honest) as server:
        one = judge(server.url, mode=mode)
        found = one.judge_candidates(TOPICS, EVIDENCE, candidates(("q1", "a", ""), ("q1", "b", None)), tools)
    assert found["label"].tolist()[0] == 1
    assert found["reason"].tolist()[0] == "says nothing"
    assert found["label"].isna().tolist() == [False, True]
    assert not server.calls


def test_a_request_that_several_jobs_share_is_counted_in_one_of_them(tools: Tools) -> None:
    given = candidates(*[("q1", str(job), f"right {job} 5") for job in range(5)])
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode="batch")
        of_jobs = [
            costs_of_replies(rows, "judge_")
            for _, rows in part.judge_candidates(TOPICS, EVIDENCE, given, tools).groupby("candidate")
        ]
        assert sum(server.calls.values()) == 1
    assert [found["judge_llm_calls"] for found in of_jobs] == [1, 0, 0, 0, 0]
    assert [found["judge_llm_calls_cached"] for found in of_jobs] == [0, 1, 1, 1, 1]
    assert sum(found["judge_prompt_tokens"] for found in of_jobs) == len(next(iter(server.calls)).split())


def test_verdicts_are_counted_where_the_server_tells_no_usage(tools: Tools) -> None:
    with ChatServer(reply=honest, usage=lambda prompt, n, told: UNTOLD) as server:
        given = answers(("q1", 1, "right 5"), ("q2", 1, "right 5"))
        found = costs_of_replies(judge(server.url).judge(TOPICS, EVIDENCE, given, tools), "judge_")
    assert (found["judge_llm_calls"], found["judge_llm_usage_unknown"]) == (2, 2)


def test_of_a_reply_that_is_asked_for_once_more_only_what_is_paid_now_counts(tools: Tools) -> None:
    with ChatServer(reply=_faulty_replies("unreadable", 1)) as server:
        part = judge(server.url, concurrency=1, retries=0)
        server.faults = lambda prompt, n: "500" if COMPLAINT in prompt else None
        part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
        server.faults = lambda prompt, n: None
        again = part.judge(TOPICS, EVIDENCE, answers(("q1", 1, "right 5")), tools)
        words = len(list(server.calls)[-1].split())
    assert costs_of_replies(again, "judge_")["judge_prompt_tokens"] == words
    assert costs_of_replies(again, "judge_")["judge_llm_calls"] == 1


def test_the_order_of_candidates_depends_on_the_topic_and_moves_when_judged_again(tools: Tools) -> None:
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(30)], "query": "?", "answer": "x"})
    topics["query"] = topics["qid"]
    evidence = pd.DataFrame({"qid": topics["qid"], "part": 0, "docno": None, "text": "x"})
    given = candidates(*[(q, c, f"{c} 5") for q in topics["qid"] for c in "abcd"])
    asked: dict[str, list[str]] = {}
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode="batch", repeat=30, concurrency=1)
        part.judge_candidates(topics, evidence, given, tools)
        part.judge_again(topics, evidence, given, tools)
    for body in server.bodies:
        prompt = body["messages"][-1]["content"]
        qid = re.findall(r"Question: (\w+)", unframed(prompt))[0]
        asked.setdefault(qid, []).append("".join(answer[0] for answer in shown(prompt)))
    assert {orders[0] for orders in asked.values()} == {"abcd", "bcda", "cdab", "dabc"}
    assert all(orders == [o := orders[0], o, o[2:] + o[:2]] for orders in asked.values())


def test_a_request_holds_no_more_than_max_candidates(tools: Tools) -> None:
    given = candidates(*[("q1", str(i), f"answer {i} {1 + i % 5}") for i in range(11)])
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode="batch", max_candidates=4)
        verdicts = part.judge_candidates(TOPICS, EVIDENCE, given, tools)
    assert sorted(len(shown(prompt)) for prompt in server.calls) == [3, 4, 4]
    assert verdicts["label"].tolist() == [1 + i % 5 for i in range(11)]


def test_with_faults_every_candidate_has_its_class_or_none(tools: Tools) -> None:
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(20)], "query": "?", "answer": "x"})
    evidence = pd.DataFrame({"qid": topics["qid"], "part": 0, "docno": None, "text": "x"})
    given = candidates(*[(q, str(c), f"{q} {c} {c}") for q in topics["qid"] for c in range(1, 6)])
    wrong_at_times = [0]

    def sometimes_wrong(prompt: str) -> str:
        wrong_at_times[0] += 1
        return honest(prompt) if wrong_at_times[0] % 4 else "1, 2"

    faults = faults_at(0.3, 7, ("500", "reset", "cut", "empty"))
    with ChatServer(reply=sometimes_wrong, faults=faults) as server:
        part = judge(server.url, mode="batch", retries=8)
        verdicts = part.judge_candidates(topics, evidence, given, tools)
    read = verdicts["status"] == "ok"
    assert read.mean() > 0.8
    assert (verdicts["label"][read].astype(str) == given["answer"][read].str[-1]).all()
    assert verdicts["label"][~read].isna().all()
    assert verdicts["raw"][~read].isin(["1, 2"]).all()


def test_a_candidate_that_occurs_twice_is_an_error(tools: Tools) -> None:
    given = candidates(("q1", "a", "x"), ("q1", "a", "y"), ("q2", "b", "x"), ("q2", "b", "y"))
    with pytest.raises(DataError, match="'q1', candidate 'a'"):
        judge().judge_candidates(TOPICS, EVIDENCE, given, tools)


# --- stability ----------------------------------------------------------------------------------------


def repeated(
    part: ChatJudge, topics: pd.DataFrame, evidence: pd.DataFrame, given: pd.DataFrame, tools: Tools
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The labels of what is judged again: [first, order, second], and the second verdicts."""
    verdicts = part.judge_candidates(topics, evidence, given, tools)
    again = part.judge_again(topics, evidence, given, tools)
    keys = ["qid", "candidate"]
    labels = verdicts[[*keys, "label"]].merge(again[[*keys, "order", "label"]], on=keys)
    return labels.rename(columns={"label_x": "first", "label_y": "second"}), again


def many_topics(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    qids = [f"q{i}" for i in range(n)]
    topics = pd.DataFrame({"qid": qids, "query": qids, "answer": "x"})
    return topics, pd.DataFrame({"qid": qids, "part": 0, "docno": None, "text": "x"})


def test_a_judge_that_looks_at_the_position_is_found_out(tools: Tools) -> None:
    topics, evidence = many_topics(12)
    given = candidates(*[(q, c, f"{c} 5") for q in topics["qid"] for c in "ab"], ("q0", "c", None))

    def first_is_right(prompt: str) -> str:
        return ", ".join(["5", *["4"] * (len(shown(prompt)) - 1)])

    with ChatServer(reply=first_is_right) as server:
        part = judge(server.url, mode="batch", repeat=5)
        part.judge_candidates(topics, evidence, given, tools)
        before = sum(server.calls.values())
        labels, again = repeated(part, topics, evidence, given, tools)
        assert sum(server.calls.values()) == before + 10
        assert again["calls"].sum() == 10
        assert again.index.tolist() == list(range(20))
        able = np.array(sorted(topics["qid"]), dtype=object)
        assert set(again["qid"]) == set(np.random.default_rng(0).choice(able, 5, replace=False))
        assert repeated(part, topics, evidence, given, tools)[0].equals(labels)
        assert sum(server.calls.values()) == before + 10
    same, other = (labels[labels["order"] == order] for order in ("same", "other"))
    assert len(same) == len(other) == 10
    assert (same["first"] == same["second"]).all()
    assert (other["first"] != other["second"]).all()


def test_a_repeat_is_no_reply_of_the_ledger_and_the_same_order_is_the_same_prompt(tools: Tools) -> None:
    given = candidates(*[("q1", c, f"{c} 5") for c in "abc"])
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode="batch", repeat=1)
        part.judge_candidates(TOPICS, EVIDENCE, given, tools)
        (prompt,) = server.calls
        part.judge_again(TOPICS, EVIDENCE, given, tools)
    # The first prompt twice, and one in which the candidates stand elsewhere.
    assert server.calls[prompt] == 2
    assert sum(server.calls.values()) == 3
    (moved,) = set(server.calls) - {prompt}
    assert sorted(shown(moved)) == sorted(shown(prompt))


@pytest.mark.parametrize("mode", ["batch", "single"])
def test_what_was_paid_before_there_were_two_orders_is_still_found(mode: Any, tools: Tools) -> None:
    given = candidates(("q1", "a", "x 5"), ("q1", "b", "y 4"))
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode=mode, repeat=1)
        part.judge_candidates(TOPICS, EVIDENCE, given, tools)
        prompts = list(server.calls)
        if mode == "batch":
            (prompt,) = prompts
            texts = shown(prompt)
            truth = truths(TOPICS, EVIDENCE, given["qid"])["q1"]
            prompts = [part._prompt(str(part.prompt), truth, texts[::-1])]
        # As version 0.1.0 asked once more.
        part.ask(prompts, tools.store, "verdicts", salt="again")
        before = sum(server.calls.values())
        part.judge_again(TOPICS, EVIDENCE, given, tools)
        assert sum(server.calls.values()) == before + (mode == "batch")  # the repeat in the same order


@pytest.mark.parametrize("mode", ["single", "batch"])
def test_an_honest_judge_is_stable(mode: Any, tools: Tools) -> None:
    given = candidates(("q1", "a", "right 5"), ("q1", "b", "wrong 4"), ("q2", "a", "lack 1"))
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode=mode, repeat=9)
        labels, _ = repeated(part, TOPICS, EVIDENCE, given, tools)
    # One candidate has no other position, and one answer a request has no order.
    assert labels["order"].tolist() == ["same"] * 3 if mode == "single" else ["same", "other"] * 2
    assert (labels["first"] == labels["second"]).all()


def test_an_answer_alone_in_its_request_is_not_repeated(tools: Tools) -> None:
    # Two a request: of three answers the first is alone.
    given = candidates(*[("q1", c, f"{c} 5") for c in "abc"], ("q2", "a", "x 5"))
    with ChatServer(reply=honest) as server:
        part = judge(server.url, mode="batch", repeat=9, max_candidates=2)
        again = part.judge_again(TOPICS, EVIDENCE, given, tools)
        assert sorted(again["candidate"]) == ["b", "b", "c", "c"]
        assert (
            judge(server.url, mode="batch", repeat=9, max_candidates=1)
            .judge_again(TOPICS, EVIDENCE, given, tools)
            .empty
        )


def test_nothing_is_repeated_unless_asked_for(tools: Tools) -> None:
    given = candidates(("q1", "a", "x"), ("q1", "b", "y"))
    for mode in ("single", "batch"):
        assert judge(mode=mode).judge_again(TOPICS, EVIDENCE, given, tools).empty


# --- cost and config ----------------------------------------------------------------------------------


def test_needs_are_told_without_answers_and_nobody_is_asked(tools: Tools) -> None:
    given = candidates(("q1", "a", None), ("q1", "b", None), ("q2", "a", "x"), ("q2", "b", None))
    batch = judge(mode="batch").needs(TOPICS, EVIDENCE, given, tools)
    assert batch["completion_tokens"].tolist() == [4, 4]
    assert batch["exact"].tolist() == [False, False]
    single = judge(repeat=9).needs(TOPICS, EVIDENCE, given, tools, repeat=True)
    # Which topics are judged again depends on all answers, so no such request is known.
    assert single["exact"].tolist() == [False, False, True, False, *[False] * 4]
    assert single["again"].tolist() == [False] * 4 + [True] * 4
    assert single["key"].nunique() == 8
    assert not single["known"].any()
    several = judge(prompts=PROMPTS["single"][:2]).needs(TOPICS, EVIDENCE, given, tools)
    assert several["exact"].tolist() == [False, False, True, False] * 2


@pytest.mark.parametrize("mode", ["single", "batch"])
def test_needs_are_the_requests_that_judging_then_makes(mode: Any, tools: Tools) -> None:
    given = candidates(*[(q, c, f"right {q}{c} 5") for q in ("q1", "q2") for c in "abc"])
    unreadable = {"n": 0}

    def reply(prompt: str) -> str:
        unreadable["n"] += 1
        return "no verdict" if unreadable["n"] == 1 else honest(prompt)

    with ChatServer(reply=reply) as server:
        part = judge(server.url, mode=mode, repeat=2, concurrency=1, retries=0)
        assert (~part.needs(TOPICS, EVIDENCE, given, tools, repeat=True)["known"]).sum() == {
            "single": 6 + 6, "batch": 2 + 2 * 2,
        }[mode]  # fmt: skip
        # One reply that cannot be read comes, then the server fails: one request is asked for once more.
        server.faults = lambda prompt, n: "500" if n > 0 else None
        first = given[given["qid"] == "q1"]
        part.judge_candidates(TOPICS, EVIDENCE, first, tools)
        server.faults = lambda prompt, n: None
        needed = part.needs(TOPICS, EVIDENCE, given, tools, repeat=True)
        before = sum(server.calls.values())
        part.judge_candidates(TOPICS, EVIDENCE, given, tools)
        part.judge_again(TOPICS, EVIDENCE, given, tools)
        assert sum(server.calls.values()) - before == (~needed["known"]).sum()
        assert part.needs(TOPICS, EVIDENCE, given, tools, repeat=True)["known"].all()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"mode": "both"}, "judge.mode='both'"),
        ({"schema": "json"}, "schema='json'"),
        ({"max_candidates": 0}, "judge.max_candidates=0"),
        ({"repeat": -1}, "judge.repeat=-1"),
        ({"prompt": "$question"}, "prompt"),
    ],
)
def test_values_out_of_range_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        judge(**fields)


def test_mode_and_prompt_are_part_of_the_identity() -> None:
    assert identity.identity(judge()) == identity.identity(judge("http://elsewhere", repeat=3))
    others = [judge(mode="batch"), judge(schema="format"), judge(mode="batch", max_candidates=3)]
    assert len({json.dumps(identity.identity(part)) for part in [judge(), *others]}) == 4


def test_no_judge_gives_no_verdicts(tools: Tools) -> None:
    verdicts = NoJudge().judge(TOPICS, EVIDENCE, answers(("q1", 1, "x"), ("q2", 1, None)), tools)
    frames.check("verdicts", verdicts)
    assert verdicts["label"].isna().all()
    assert verdicts["status"].tolist() == ["none", "none"]


# --- several prompts ----------------------------------------------------------------------------------


PROMPTS = {
    "single": [
        f"{word}: $question $reference $evidence Answer to grade: $answer" for word in ("kind", "harsh", "mute")
    ],
    "batch": [f"{word}: $question $reference $evidence one a line: $answers $count" for word in ("kind", "harsh")],
}


def by_wording(prompt: str) -> str:
    """Class 5 by the kind prompt, 4 by the harsh one, and nothing that can be read by the mute one."""
    label = {"kind": 5, "harsh": 4}.get(prompt.split(":")[0])
    if "one a line:" in prompt:
        return ", ".join([str(label)] * int(prompt.split()[-1]))
    return "..." if label is None else json.dumps({"label": label, "reason": "so"})


def test_every_answer_is_judged_by_every_prompt_and_each_is_paid_once(tools: Tools) -> None:
    given = answers(("q1", 100, "Anna"), ("q2", 100, "in Linz"), ("q2", 200, None))
    price = {"prompt": 1e6, "completion": 1e7}
    with ChatServer(reply=by_wording) as server:
        several = judge(server.url, prompts=PROMPTS["single"][:2], price=price)
        judge(server.url, prompt=PROMPTS["single"][0]).judge(TOPICS, EVIDENCE, given.iloc[:1], tools)
        asked = candidates(("q1", "a", "Anna"), ("q2", "a", "in Linz"))
        needed = several.needs(TOPICS, EVIDENCE, asked, tools)
        assert needed["known"].tolist() == [True, False, False, False]
        found = several.judge(TOPICS, EVIDENCE, given, tools)
        again = several.judge(TOPICS, EVIDENCE, given, tools)
        assert sum(server.calls.values()) == 4
    for verdicts in (found, again):
        frames.check("verdicts", verdicts)
        assert verdicts["label"].tolist() == [5, 5, pd.NA]
        assert verdicts["label_2"].tolist() == [4, 4, pd.NA]
        assert verdicts["status"].tolist() == ["ok", "ok", "no answer"]
    # Of q1 the harsh prompt alone was asked just now; a row that is cached throughout has what all once took. Each
    # reply is four words.
    words = {(prompt[0], "built" in prompt): len(prompt.split()) for prompt in server.calls}
    q1, q2 = (words["h", topic] for topic in (True, False))
    every = [words["k", True] + q1, words["k", False] + q2]
    columns = ["prompt_tokens", "completion_tokens", "cost_usd", "calls", "cached"]
    assert found[columns].to_numpy().tolist() == [
        [q1, 4, q1 + 40, 1, False], [every[1], 8, every[1] + 80, 2, False], [0, 0, 0, 0, False],
    ]  # fmt: skip
    assert again[[*columns[:2], "cached"]].to_numpy().tolist() == [
        [every[0], 8, True],
        [every[1], 8, True],
        [0, 0, False],
    ]
    assert (found.loc[:1, "seconds"] > 0).all()


def test_a_verdict_that_one_prompt_lacks_is_missing_by_all(tools: Tools) -> None:
    fails = lambda prompt, n: "500" if prompt.startswith("harsh") and "Where" in prompt else None  # noqa: E731
    with ChatServer(reply=by_wording, faults=fails) as server:
        several = judge(server.url, prompts=PROMPTS["single"], retries=0)
        found = several.judge(TOPICS, EVIDENCE, answers(("q1", 1, "A"), ("q2", 1, "A")), tools)
    assert found[["label", "label_2", "label_3"]].isna().all(axis=None)
    # The status, the reply and the reason are those of the first prompt that lacks one.
    assert found["status"].tolist() == ["unreadable", "missing"]
    assert found["raw"].fillna("-").tolist() == ["...", "-"]
    assert found["reason"].isna().tolist() == [False, True]
    assert ["500" in error for error in found["error"]] == [False, True]


def test_all_candidates_go_into_one_request_a_prompt(tools: Tools) -> None:
    asked = candidates(("q1", "a", "Anna"), ("q1", "b", "Bea"), ("q2", "a", "in Graz"))
    with ChatServer(reply=by_wording) as server:
        several = judge(server.url, mode="batch", prompts=PROMPTS["batch"], repeat=1)
        found = several.judge_candidates(TOPICS, EVIDENCE, asked, tools)
        assert sum(server.calls.values()) == 4
        again = several.judge_again(TOPICS, EVIDENCE, asked, tools)
    assert found[["label", "label_2"]].to_numpy().tolist() == [[5, 4]] * 3
    assert set(again["label"]) == {5}
    assert "label_2" not in again


def test_the_shipped_wordings_are_three_and_the_first_is_that_of_one_prompt() -> None:
    for mode in ("single", "batch"):
        found = judge(mode=mode, prompts=["a", "b", "c"])
        assert len(set(found.prompts)) == 3
        assert found.prompt == found.prompts[0] == judge(mode=mode).prompt
        assert identity.identity(found)["prompts"] == list(found.prompts)
    assert "prompts" not in identity.identity(judge())


@pytest.mark.parametrize("prompts", [["a"], ["a", "a"], "a", []])
def test_prompts_that_are_not_several_are_refused(prompts: Any) -> None:
    with pytest.raises(ConfigError, match=r"^judge\.prompts=.*allowed are lists of 2 to 9 different prompts"):
        judge(prompts=prompts)
    with pytest.raises(ConfigError, match=r"^judge\.prompt='b'"):
        judge(prompt="b", prompts=["a", "b"])
