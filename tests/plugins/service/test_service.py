"""A service by its URL: what is sent, what of the response is kept, and what is no answer and why."""

from __future__ import annotations

import asyncio
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from plugins.service.service_server import RESPONSES, ServiceServer
from ragauge.contract.component import ChatModel, KeepsReplies
from ragauge.contract.errors import ConfigError, GateError, MissingError
from ragauge.contract.identity import identity
from ragauge.contract.redact import remember
from ragauge.contract.replies import Reply
from ragauge.llms.clients import Redirected, hooks
from ragauge.plugins.service.client import _content_type, _refusal
from ragauge.plugins.service.response import Context, Response, _beginning, _shown, kept_response
from ragauge.plugins.service.service import Service
from ragauge.store import Store

QUICK = {"backoff": 0.01, "retries": 1, "timeout": 60.0, "concurrency": 2}
SCORED = {"score": "score"}


def service(server: ServiceServer | str, budget: str | None = None, **fields: Any) -> Service:
    url = server if isinstance(server, str) else server.address
    return Service.of({"url": url, **QUICK, **fields}, budget)


def ask(asked: Service, store: Store, *questions: str) -> list[Reply]:
    return asked.ask(asked.prompts([f"q-{q}" for q in questions], questions), store, "answers")


# --- what is sent -------------------------------------------------------------------------------------


def test_the_request_is_filled_in_and_keeps_its_types() -> None:
    request = {
        "question": "{question}",
        "id": "topic {qid}",
        "options": {"budget": "{n_tokens}", "note": "at most {n_tokens} tokens", "stream": False},
        "messages": [{"role": "user", "content": "{context}\n{question}"}],
        "top": 3,
        "other": "{unknown}",
    }
    asked = service("http://localhost:1/ask", request=request)
    (prompt,) = asked.prompts(["q1"], ["Who is {qid}?"], [300], ["Anna is {question}."])
    assert json.loads(prompt) == {
        "question": "Who is {qid}?",  # what is filled in is no template
        "id": "topic q1",
        "options": {"budget": 300, "note": "at most 300 tokens", "stream": False},
        "messages": [{"role": "user", "content": "Anna is {question}.\nWho is {qid}?"}],
        "top": 3,
        "other": "{unknown}",
    }
    assert [asked.asks_with(name) for name in ("question", "qid", "n_tokens", "context")] == [True] * 4
    as_text = service("http://localhost:1/ask", request='{"q": "{question}"}')
    assert as_text.prompts(["q1"], ["Who?"]) == ['{"q":"Who?"}']
    assert not as_text.asks_with("n_tokens")


def test_a_request_is_the_body_of_a_post_and_the_query_of_a_get(store: Store) -> None:
    request = {"question": "{question}", "deep": True, "n": 3, "none": None}
    with ServiceServer() as server:
        (posted,) = ask(service(server, request=request), store, "Größe & Gewicht?")
        assert server.bodies[0] | {"messages": 0} == {
            "question": "Größe & Gewicht?", "deep": True, "n": 3, "none": None, "messages": 0,
        }  # fmt: skip
        (got,) = ask(service(server, request=request, method="GET"), store, "Größe & Gewicht?")
        assert server.bodies[1] | {"messages": 0} == {
            "question": "Größe & Gewicht?", "deep": "true", "n": "3", "messages": 0,
        }  # fmt: skip
    assert posted.text is not None
    assert posted.text == got.text


def test_answer_contexts_usage_cost_and_seconds_come_from_their_paths(store: Store) -> None:
    def nested(body: dict[str, Any]) -> Any:
        hits = [
            {"doc": {"id": 7, "body": "Anna."}, "sim": 1},
            {"doc": {"id": "b", "body": "Bert."}, "sim": 0.5},
        ]
        time.sleep(0.05)
        return {"data": [{"out": "Anna"}], "hits": hits, "u": {"i": 10, "o": 2.0}, "usd": 0.125}

    paths = {
        "answer": "data[0].out", "contexts": "hits", "text": "doc.body", "docno": "doc.id", "score": "sim",
        "prompt_tokens": "u.i", "completion_tokens": "u.o", "cost_usd": "usd",
    }  # fmt: skip
    with ServiceServer(nested) as server:
        asked = service(server, response=paths)
        assert isinstance(asked, ChatModel)
        assert isinstance(asked, KeepsReplies)
        (reply,) = ask(asked, store, "Who?")
        (again,) = ask(asked, store, "Who?")
    assert asked.response(reply) == Response("Anna", [Context("Anna.", "7", 1.0), Context("Bert.", "b", 0.5)])
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost_usd) == (10, 2, 0.125)
    assert reply.usage.seconds >= 0.05
    assert (reply.cached, reply.usage.usage_unknown) == (False, 0)
    assert (again.cached, again.usage.cost_usd, again.text) == (True, 0.0, reply.text)


def test_texts_alone_with_scores_beside_them(store: Store) -> None:
    with ServiceServer(lambda body: {"answer": "a", "texts": ["x", "y"], "s": [2, 1]}) as server:
        asked = service(server, response={"contexts": "texts", "scores": "s"})
        (reply,) = ask(asked, store, "Who?")
    assert asked.response(reply) == Response("a", [Context("x", None, 2.0), Context("y", None, 1.0)])


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        ("answer", Response(None, [Context("first of Who?", None, None), Context("second", None, None)])),
        ("contexts", Response("answer to Who?", None)),
    ],
)
def test_of_answer_and_contexts_one_is_enough(store: Store, left_out: str, expected: Response) -> None:
    with ServiceServer() as server:
        asked = service(server, response={left_out: None})
        (reply,) = ask(asked, store, "Who?")
    assert asked.response(reply) == expected


# --- what tells requests apart ------------------------------------------------------------------------


def test_two_services_share_no_reply_unless_they_have_one_name(store: Store) -> None:
    with ServiceServer() as one, ServiceServer(lambda body: {"answer": "other", "contexts": []}) as two:
        assert ask(service(one), store, "Who?")[0].text != ask(service(two), store, "Who?")[0].text
        named = [ask(service(server, name="ours"), store, "Who?")[0] for server in (one, two)]
        assert [reply.cached for reply in named] == [False, True]
        assert (one.calls["Who?"], two.calls["Who?"]) == (2, 1)
        assert service(one).served(store) == {"address": one.address}
        assert service(one, name="ours").served(store) == {"name": "ours"}


def test_what_changes_a_reply_asks_again_and_what_does_not_does_not(store: Store) -> None:
    with ServiceServer() as server:
        ask(service(server), store, "Who?")
        for same in ({"timeout": 9.0}, {"headers": {"X-Trace": "1"}}, {"cost_per_request": 1.0}):
            assert ask(service(server, **same), store, "Who?")[0].cached
        for other in ({"version": 2}, {"method": "PUT"}, {"response": SCORED}):
            if other != {"method": "PUT"}:
                assert not ask(service(server, **other), store, "Who?")[0].cached
            assert identity(service(server, **other)) != identity(service(server))
        assert server.calls["Who?"] == 3
    found = service("http://localhost:1/ask", version=2, method="PUT").identity()
    assert (found["component"], found["service"]["version"], found["service"]["method"]) == ("service", 2, "PUT")
    assert found["service"]["request"] == {"question": "{question}"}


def test_user_password_and_key_are_no_part_of_the_address(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://user:pass-word-17@Host.example:8443/ask/?index=v2&api_key=Qz7Rk2Wm9Xt4Lb8N"
    told = service(url).served(store)["address"]
    assert told == "https://host.example:8443/ask?index=v2&api_key=***"


# --- what is no answer --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", RESPONSES)
def test_another_shape_is_a_missing_answer_that_names_the_path_and_what_came(store: Store, fault: str) -> None:
    def one_is_wrong(question: str, n: int) -> str | None:
        return fault if question == "attacked" else None

    with ServiceServer(faults=one_is_wrong) as server:
        asked = service(server, response=SCORED)
        before, attacked, after = ask(asked, store, "before", "attacked", "after")
        assert server.calls["attacked"] == 2  # retried, as an empty reply of a chat model
        assert asked.known(asked.prompts(["q"], ["attacked"]), store) == [None]
    assert asked.response(before) == Response(
        "answer to before", [Context("first of before", None, 2.0), Context("second", None, 1.0)]
    )
    assert after.text is not None
    assert attacked.text is None
    assert attacked.error is not None
    assert re.search(RESPONSES[fault][1], attacked.error), attacked.error
    assert "\n" not in attacked.error
    assert len(attacked.error) < 600


@pytest.mark.parametrize("absurd", [-3, 1e10, "many", [1], True])
def test_tokens_that_are_no_number_are_not_known_and_the_answer_is_kept(store: Store, absurd: Any) -> None:
    with ServiceServer(lambda body: {"answer": "a", "contexts": [], "n": absurd}) as server:
        (reply,) = ask(service(server, response={"prompt_tokens": "n"}), store, "Who?")
    assert (kept_response(str(reply.text)).answer, reply.usage.prompt_tokens) == ("a", None)


@pytest.mark.parametrize(
    ("said", "paths", "says"),
    [
        ({"contexts": [{"text": "x"}]}, {"docno": "id"}, r"response.docno='id' finds nothing in contexts"),
        ({"contexts": [{"text": "x", "id": []}]}, {"docno": "id"}, r"contexts\[0\] is no name"),
        ({"contexts": [{"text": "x"}]}, SCORED, r"response.score='score' finds nothing in contexts\[0\]"),
        ({"contexts": [{"text": 5}]}, {}, r"response.text='text' of contexts\[0\] is no text: 5"),
        ({"contexts": ["x", "y"], "s": [1]}, {"scores": "s"}, r"response.scores='s' is no list of 2"),
        ({"contexts": ["x"], "s": [None]}, {"scores": "s"}, "is no finite number: null"),
        ({"contexts": [], "usd": -1}, {"cost_usd": "usd"}, "no cost of one request, 0 to 10000 US .*: -1"),
        ({"contexts": [], "usd": 1e300}, {"cost_usd": "usd"}, "no cost of one request.*: 1e[+]300"),
        ({"contexts": [], "failure": "busy"}, {"error": "failure"}, 'tells an error: "busy"'),
        ({"contexts": [], "n": 3}, {"contexts": "sort(n)"}, r"contexts='sort\(n\)' cannot be used on"),
    ],
)  # fmt: skip
def test_a_path_that_is_named_has_to_find_what_it_says(
    store: Store, said: dict[str, Any], paths: dict[str, str], says: str
) -> None:
    with ServiceServer(lambda body: {"answer": "a", **said}) as server:
        (reply,) = ask(service(server, response=paths), store, "Who?")
    assert reply.text is None
    assert reply.error is not None
    assert re.search(says, reply.error), reply.error


@pytest.mark.parametrize(("fault", "calls"), [("500", 2), ("429", 2), ("reset", 2), ("422", 1)])
def test_statuses_and_lost_connections_are_tried_again_as_those_of_chat_models(
    store: Store, fault: str, calls: int
) -> None:
    def at_first(question: str, n: int) -> str | None:
        return fault if n == 0 or calls == 1 else None

    with ServiceServer(faults=at_first) as server:
        (reply,) = ask(service(server), store, "Who?")
        assert server.calls["Who?"] == calls
    assert (reply.text is None) == (calls == 1)
    if fault == "422":  # what the service says of it is told
        assert re.search(r"422[^:]*: .*refused with 422; you sent", str(reply.error)), reply.error


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_service_that_never_ends_is_left_after_the_time_limit(store: Store, fault: str) -> None:
    with ServiceServer(faults=lambda question, n: fault, hang=3600) as server:
        began = time.monotonic()
        (reply,) = ask(service(server, timeout=1.0, retries=0), store, "Who?")
    assert str(reply.error).startswith("1 attempt(s) (the service at http://127.0.0.1:")
    assert str(reply.error).endswith("), the last: no reply within 1 s")
    assert time.monotonic() - began < 60


def test_retry_after_is_waited_for_and_one_that_is_too_long_is_not(store: Store) -> None:
    with ServiceServer(faults=lambda question, n: "429" if n == 0 else None, retry_after="0.3") as server:
        began = time.monotonic()
        assert ask(service(server), store, "Who?")[0].text is not None
        assert time.monotonic() - began >= 0.3
    with ServiceServer(faults=lambda question, n: "429", retry_after="3600") as server:
        (reply,) = ask(service(server, retries=5), store, "Whom?")
        assert server.calls["Whom?"] == 1
    assert reply.text is None


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("404", "answers: the service at http://127.0.0.1:[0-9]+/ask refuses with 404"),
        ("405", "refuses with 405"),
        ("401", "refuses with 401"),
        ("away", "/ask sends to http://127.0.0.1:[0-9]+/elsewhere .status 307.; give the address itself"),
    ],
)
def test_what_would_fail_every_time_is_a_config_error_that_names_the_address(
    store: Store, fault: str, says: str
) -> None:
    with ServiceServer(faults=lambda question, n: fault) as server:
        with pytest.raises(ConfigError, match=says):
            ask(service(server, concurrency=1), store, "Who?", "Whom?")
        assert sum(server.calls.values()) == 1


def test_a_service_that_is_gone_is_given_up(store: Store) -> None:
    gone = service("http://127.0.0.1:9/ask", retries=0, give_up_after=2, concurrency=1)
    with pytest.raises(
        MissingError, match=r"1 request\(s\) in a row failed at the service at http://127\.0\.0\.1:9/ask"
    ):
        ask(gone, store, "a", "b", "c")


# --- money --------------------------------------------------------------------------------------------

TOLD = {"prompt_tokens": "usage.input", "completion_tokens": "usage.output"}


@pytest.mark.parametrize(
    ("fields", "cost", "unknown"),
    [
        ({}, 0.0, 0),
        ({"response": {"cost_usd": "cost"}}, 0.25, 0),
        ({"response": {"cost_usd": "cost"}, "cost_per_request": 1.0}, 0.25, 0),
        ({"response": {"cost_usd": "nowhere"}, "cost_per_request": 1.0}, 1.0, 1),
        ({"cost_per_request": 0.5}, 0.5, 0),
        ({"response": TOLD, "cost_per_request": 0.5}, 0.5, 0),
        ({"response": TOLD, "price": {"prompt": 1e6, "completion": 2e6}}, 10 + 2 * 5, 0),
        ({"response": {**TOLD, "completion_tokens": "no"}, "price": {"prompt": 1e6, "completion": 2e6}}, 0.0, 1),
    ],
)
def test_a_request_costs_what_the_service_says_else_its_tokens_else_what_the_config_says(
    store: Store, fields: dict[str, Any], cost: float, unknown: int
) -> None:
    with ServiceServer() as server:
        asked = service(server, budget="ours", **fields)
        (reply,) = ask(asked, store, "Who?")
    assert (reply.usage.cost_usd, reply.usage.usage_unknown) == (cost, unknown)
    assert asked.spent(store) == cost


KEPT = pd.DataFrame({"prompt_tokens": [3, 0, 4], "completion_tokens": [1, 2, 0]})


@pytest.mark.parametrize(
    ("fields", "kept", "expected", "most"),
    [
        ({}, 0.0, 0.0, 0.0),
        ({"cost_per_request": 0.5}, 1.5, 0.5, 0.5),
        ({"response": TOLD, "price": {"prompt": 1e6, "completion": 2e6}}, 7 + 2 * 3, 10 + 2 * 5, 0.0),
        ({"response": TOLD, "price": {"prompt": 1e6, "completion": 2e6}, "cost_per_request": 9}, 7 + 2 * 3, 9, 9),
        ({"response": {"cost_usd": "cost"}, "cost_per_request": 0.5}, float("nan"), 0.5, 0.5),  # nobody knows
    ],
)
def test_what_replies_cost_when_they_were_asked_for_and_what_one_would_cost(
    fields: dict[str, Any], kept: float, expected: float, most: float
) -> None:
    asked = service("http://localhost:1/ask", **fields)
    assert asked.cost_of_kept(KEPT) == pytest.approx(kept, nan_ok=True)
    assert asked.cost_of_kept(KEPT[:0]) == 0.0
    assert (asked.expected_cost(10, 5), asked.cost_bound("?")) == (expected, most)


def test_the_money_limit_holds_before_a_request_starts(store: Store) -> None:
    with ServiceServer() as server:
        limits = {"cost_per_request": 1.0, "max_cost_usd": 3.5, "concurrency": 4}
        asked = service(server, "ours", **limits)
        with pytest.raises(GateError, match=r"max_cost_usd: 3\.0000 of 3.5 USD are spent"):
            ask(asked, store, *"abcdefgh")
        assert sum(server.calls.values()) == 3
        assert asked.spent(store) == 3.0


def test_a_request_that_may_have_cost_counts_at_its_most(store: Store) -> None:
    with ServiceServer(faults=lambda question, n: "reset") as server:
        asked = service(server, "ours", cost_per_request=1.0, retries=0)
        (reply,) = ask(asked, store, "Who?")
    assert (reply.text, reply.usage.cost_usd, reply.usage.usage_unknown) == (None, 1.0, 1)
    assert asked.spent(store) == 1.0


def test_a_request_that_may_have_cost_its_tokens_counts_at_its_most(store: Store) -> None:
    with ServiceServer(faults=lambda question, n: "reset") as server:
        fields = {"response": TOLD, "price": {"prompt": 1e6, "completion": 2e6}, "cost_per_request": 1.5}
        (reply,) = ask(service(server, "ours", retries=0, **fields), store, "Who?")
    assert (reply.text, reply.usage.cost_usd, reply.usage.usage_unknown) == (None, 1.5, 1)


def test_a_cost_above_the_most_is_charged_as_told_and_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with ServiceServer() as server:
        limits = {"cost_per_request": 0.1, "max_cost_usd": 1.0, "response": {"cost_usd": "cost"}}
        (reply,) = ask(service(server, "ours", **limits), store, "Who?")
    assert reply.usage.cost_usd == 0.25
    assert "0.25 USD where 0.1 were the most" in caplog.text


# --- keys ---------------------------------------------------------------------------------------------


def test_no_part_of_a_key_is_left_where_an_error_cuts_what_a_service_said() -> None:
    key = "Qz7Rk2Wm9Xt4Lb8N"
    remember({"headers": {"X-Api-Key": key}})
    for pad in range(60, 320):
        text = "." * pad + key
        told = [_refusal(httpx.Response(500, text=text)), _shown([text]), _beginning(text.encode())]
        told.append(_content_type(httpx.Response(200, headers={"content-type": text[30:]})))
        with pytest.raises(Redirected) as away:
            asyncio.run(hooks()["response"][0](httpx.Response(302, headers={"location": text})))
        assert "Qz7" not in f"{told} {away.value}", pad


def test_keys_are_sent_and_kept_nowhere(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key, other = "Qz7Rk2Wm9Xt4Lb8N", "Hs5Vd3Pc6Yf1Jg0K"
    monkeypatch.setenv("OUR_SERVICE", key)

    def echo(body: dict[str, Any]) -> Any:
        repeated = f"password=swordfish, {key}"  # only the second is a secret of this configuration
        return {"answer": repeated, "contexts": [f"x {other}"], "request_headers": server.headers[-1]}

    def refuse(question: str, n: int) -> str | None:
        return "500" if question == "refused" else None

    with ServiceServer(echo, refuse) as server:
        fields = {"api_key_env": "OUR_SERVICE", "headers": {"X-Api-Key": other}}
        good, refused = ask(service(server, **fields), store, "Who?", "refused")
        (wrong,) = ask(service(server, response={"answer": "no_answer"}, **fields), store, "Who?")
        assert server.headers[0]["Authorization"] == f"Bearer {key}"
        assert server.headers[0]["X-Api-Key"] == other
        own = service(server, api_key_env="OUR_SERVICE", headers={"authorization": "Basic x"}, version=2)
        ask(own, store, "Who?")
        assert server.headers[-1]["authorization"] == "Basic x"
    assert good.text is not None
    response = kept_response(good.text)
    assert response == Response("password=swordfish, ***", [Context("x ***", None, None)])
    assert "1 reply(s) repeat a key of the configuration; *** stands in its place" in caplog.text
    assert "refused with 500; you sent" in str(refused.error)
    assert "finds nothing" in str(wrong.error)
    told = f"{refused.error} {wrong.error} {caplog.text}"
    kept = b"".join(path.read_bytes() for path in Path(store.root).rglob("*") if path.is_file())
    for secret in (key, other):
        assert secret not in told
        assert secret.encode() not in kept


def test_a_key_that_is_not_there_is_an_error_before_any_request(store: Store) -> None:
    with ServiceServer() as server:
        with pytest.raises(ConfigError, match="api_key_env: the environment variable NOT_SET_HERE is not set"):
            ask(service(server, api_key_env="NOT_SET_HERE"), store, "Who?")
        assert not server.calls


# --- configuration ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"url": None}, r"service.url=None: allowed are addresses such as http://localhost"),
        ({"url": "localhost:8000/ask"}, r"service.url='localhost:8000/ask'"),
        ({"url": "http://localhost:99999/ask"}, "service.url="),
        ({"method": "FETCH"}, "service.method='FETCH': allowed are POST, GET, PUT"),
        ({"response": {"answer": "data["}}, r"service.response.answer='data\[': no JMESPath: "),
        ({"response": {"answer": 5}}, "service.response.answer=5: allowed are JMESPath"),
        ({"response": {"anwser": "a"}}, "service.response.anwser: unknown; allowed are answer, contexts"),
        ({"response": ["a"]}, r"service.response=\['a'\]: allowed are mappings"),
        ({"response": {"answer": None, "contexts": None}}, "service.response: neither answer nor contexts"),
        ({"response": {"text": None}}, "service.response: contexts need text or docno"),
        (
            {"response": {"score": "s", "scores": "t"}},
            "service.response: scores come from score or from scores",
        ),
        (
            {"request": {"q": "{query}"}},
            r"service.request: holds neither .*{query} is filled in with nothing",
        ),
        ({"request": "q={question}"}, "service.request: a text must be JSON"),
        ({"request": ["{question}"]}, "service.request=.*allowed are mappings"),
        ({"request": {"q": ["{question}"]}, "method": "GET"}, "service.request: method=GET takes no lists"),
        (
            {"request": {"q": "{question}", "api_key": "Qz7Rk2Wm9Xt4Lb8N"}},
            "service.request.api_key: holds a key, and what is asked is kept: send keys in service.headers",
        ),
        ({"headers": {"X-Key": "a\nb"}}, "service.headers.X-Key: its value is not one line"),
        ({"headers": "X-Key: 1"}, "service.headers="),
        ({"timeout": 0}, "service.timeout: 0 is not a number above 0"),
        ({"retries": -1}, "service.retries: -1"),
        ({"max_cost_usd": 1.0}, "service.max_cost_usd: needs cost_per_request"),
        ({"cost_per_request": -1}, "service.cost_per_request=-1"),
        ({"price": {"prompt": 1, "completion": 1}}, "service.price: needs response.prompt_tokens"),
        ({"version": []}, r"service.version=\[\]"),
        ({"version": True}, "service.version=True"),
        ({"name": " "}, "service.name=' '"),
        ({"nmae": "ours"}, "service.nmae: unknown; allowed are url"),
    ],
)
def test_a_bad_value_is_an_error_before_any_work_that_names_its_key(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        Service.of({"url": "http://localhost:1/ask", **fields})
    assert "\n" not in str(raised.value)
    assert "Qz7Rk2Wm9Xt4Lb8N" not in str(raised.value)


def test_budget_and_ledger_of_the_job_come_before_the_service_s(tmp_path: Path, store: Store) -> None:
    settings = {"url": "http://localhost:1/ask", "budget": "ours", "ledger": str(tmp_path / "a.db")}
    assert Service.of(settings).budget_name == "ours"
    assert Service.of(settings, "sweep", "b.db").budget_name == "sweep"
    assert (Service.of(settings).ledger, Service.of(settings, ledger="b.db").ledger) == (
        str(tmp_path / "a.db"), "b.db",
    )  # fmt: skip
    assert Service.of({**settings, "version": 1.5}).chat_identity()["version"] == 1.5


def test_a_missing_service_is_told() -> None:
    with pytest.raises(ConfigError, match="service=None: allowed is a mapping with url"):
        Service.of(None)


def test_a_reply_that_is_packed_unasked_is_read(store: Store) -> None:
    with ServiceServer(faults=lambda question, n: "packed") as server:
        (reply,) = ask(asked := service(server, retries=0), store, "Who?")
        assert server.headers[0]["Accept-Encoding"] == "identity"
    assert asked.response(reply).answer == "answer to Who?"


# 0.20 USD hold 6 requests of 0.03; without what is learned, 8 in flight at 0.01 each cost 0.27 and more.
@pytest.mark.parametrize("batches", [1, 4])
def test_a_service_that_bills_thrice_its_bound_stays_within_the_limit(store: Store, batches: int) -> None:
    settings = {
        "backoff": 0.01, "concurrency": 8, "cost_per_request": 0.01, "max_cost_usd": 0.2,
        "response": {"cost_usd": "cost"},
    }  # fmt: skip
    said = {"answer": "a", "contexts": [], "cost": 0.03}
    with ServiceServer(lambda body: said, delay=0.05) as server:
        asked = Service.of({"url": server.address, **settings}, "b")

        def ask(number: int) -> str:
            questions = [f"{number}-{i}" for i in range(30)]
            with pytest.raises(GateError) as error:
                asked.ask(asked.prompts(questions, questions), store, "answers")
            return str(error.value)

        with ThreadPoolExecutor(batches) as pool:
            errors = list(pool.map(ask, range(batches)))
        assert sum(server.calls.values()) == 6
    assert asked.spent(store) == pytest.approx(0.18)
    assert all("0.1800 of 0.2 USD are spent and the next" in error for error in errors)
    assert all("can cost 0.0300" in error for error in errors)


def test_earlier_turns_are_sent_where_the_request_has_a_place(caplog: pytest.LogCaptureFixture) -> None:
    topics = pd.DataFrame({"qid": ["a", "b"], "history": [[], ["Who built it?", "Anna."]]})
    given = ["a", "b"], ["Why?", "When?"]
    before = [{"role": "user", "content": "Who built it?"}, {"role": "assistant", "content": "Anna."}]
    asked = service("http://localhost:1/ask", request={"messages": "{messages}", "before": "{history}"})
    sent = [json.loads(one) for one in asked.prompts(*given, topics=topics)]
    assert sent[0] == {"messages": [{"role": "user", "content": "Why?"}], "before": []}
    assert sent[1] == {"messages": [*before, {"role": "user", "content": "When?"}], "before": before}
    assert not caplog.records
    service("http://localhost:1/ask").prompts(*given, topics=topics)
    assert "is not sent earlier turns" in caplog.text
    with pytest.raises(ConfigError, match="method=GET takes no lists"):
        service("http://localhost:1/ask", method="GET", request={"m": "{messages}"})
