"""Log perplexity of a context: by hand, through the real client, ledger and job; servers that tell no probability."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pandas as pd
import pytest

from plugins.llm_measures.test_asked_measures import calls
from ragauge.answering import NoLLM
from ragauge.contract.component import Tools
from ragauge.contract.frames import check
from ragauge.contract.measures import MeasuresRanking
from ragauge.llms.chat import Evaluator
from ragauge.plugins.llm_measures.context_perplexity import ContextPerplexity
from ragauge.plugins.llm_measures.prompt_tokens import PromptTokens, Told, read_told
from scripted_chat import ScriptedChat
from small_pipeline import SmallPipelines

TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["Who built it?", "Where?", "Why?"]})


def logprobs(prompt: str) -> list[float | None]:
    """Of the prompt's words: -len/10, with the first unknown, as servers give it."""
    return [None, *(-len(word) / 10 for word in prompt.split()[1:])]


@contextmanager
def served(telling: Any = lambda found: [*found, -0.5]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a server of /completions that tells of the tokens and one that it writes; its requests."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({"path": self.path, "key": self.headers["Authorization"], **request})
            found = logprobs(request["prompt"])
            logged = {"token_logprobs": telling(found)}
            reply = {
                "choices": [{"text": "", "finish_reason": "length", "logprobs": logged}],
                "usage": {"prompt_tokens": len(found), "completion_tokens": 1},
            }
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def model(address: str, **settings: Any) -> Evaluator:
    target = f"{PromptTokens.__module__}.{PromptTokens.__name__}"
    return Evaluator(
        chat={"_target_": target, "model": "toy", "base_url": address}, api_key_env="NO_SUCH_KEY", **settings
    )


def test_the_value_is_the_mean_surprise_of_the_contexts_tokens_given_the_question(tools: Tools) -> None:
    def reply(prompt: str, n: int) -> str:
        told = [value for value in logprobs(prompt) if value is not None]
        return json.dumps({"logprob": sum(told), "tokens": len(told)})

    measure = ContextPerplexity(llm=None)
    assert isinstance(measure, MeasuresRanking)
    assert ContextPerplexity(llm="asked").own_chat == "asked"
    columns = ["qid", "n_tokens", "position", "rank", "docno", "text", "chars"]
    used = [("q1", 9, 0, 0, "d0", "Anna did.", 9), ("q1", 9, 1, 1, "d1", "Or so.", 3), ("q2", 9, 0, 0, "d0", "Ok", 2)]
    passages = pd.DataFrame(used, columns=columns)
    run = pd.DataFrame({"qid": [], "docno": [], "rank": []})
    chat = ScriptedChat(reply)
    found = check("answer_values", measure.measure_ranking(TOPICS, run, passages, 9, chat.tools(tools)))
    # "Anna did. Or" has words of 4, 4 and 2 letters; "Ok" one of 2; q3 has no context.
    assert found["value"].tolist()[:2] == pytest.approx([(0.4 + 0.4 + 0.2) / 3, 0.2])
    assert found["status"].tolist() == ["ok", "ok", "no context"]


def test_a_job_without_answers_pays_each_prompt_once(small: SmallPipelines) -> None:
    with served() as (address, asked):
        parts = {"answers": {"context_perplexity": ContextPerplexity(llm=model(address))}, "llm": NoLLM()}
        told = calls(small(**parts))
        values = small(**parts).foreseeing["context_log_perplexity"]
        assert values.notna().all()
        assert (values > 0).all()
        assert told == {"answers.context_perplexity": len(asked)}
        assert len(asked) == len({one["prompt"] for one in asked})
        assert sum(calls(small(**parts)).values()) == 0
    assert {one["path"] for one in asked} == {"/v1/completions"}
    assert {(one["key"], one["echo"], one["max_tokens"], one["model"]) for one in asked} == {
        ("Bearer EMPTY", True, 1, "toy")
    }


@pytest.mark.parametrize(
    "telling",
    [
        lambda found: [-0.5],  # of written tokens alone, as llama.cpp
        lambda found: found[:-1],
        lambda found: [*found[:-1], 0.25],
        lambda found: [*found[:-1], float("-inf")],
        lambda found: None,
    ],
)
def test_a_server_that_tells_no_probability_of_a_prompt_is_named_as_such(
    telling: Any, small: SmallPipelines, caplog: pytest.LogCaptureFixture
) -> None:
    with served(telling) as (address, _):
        measure = ContextPerplexity(llm=model(address, retries=0))
        job = small(answers={"context_perplexity": measure}, llm=NoLLM())
        assert job.foreseeing["context_log_perplexity"].isna().all()
    assert re.search(r"no log probabilities of a prompt: POST /completions with echo", caplog.text)


@pytest.mark.parametrize("reply", ["", "[]", "3", '{"logprob": "x", "tokens": 1}', '{"logprob": -1.0}'])
def test_what_is_no_such_reply_is_not_read(reply: str) -> None:
    assert read_told(reply) is None
    assert read_told('{"logprob": -1.5, "tokens": 3}') == Told(-1.5, 3)
