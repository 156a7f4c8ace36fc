"""llama.cpp, vLLM, Ollama and LM Studio as their APIs are published: what loads, overflows, thinks or is cut."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering.judges import ChatJudge
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
from raw_replies import Body, said, serving

TOPICS = pd.DataFrame({"qid": ["q0"], "query": ["Who?"], "answer": ["Anna"]})
EVIDENCE = pd.DataFrame({"qid": ["q0"], "part": 0, "docno": None, "text": "Anna built it."})
ANSWERS = pd.DataFrame({"qid": ["q0"], "n_tokens": 1, "answer": "Anna"})


@dataclass(frozen=True)
class Kind:
    """A server's own forms: (status, body, headers) while its model is not in memory, and for too long a prompt.

    words: those of `overflow` that an error shows. thoughts: the key of a message's thoughts.
    """

    loading: tuple[Any, ...]
    overflow: tuple[Any, ...]
    words: str
    thoughts: str
    ollama: bool = False

    def chat(self, url: str) -> Body:
        """The settings of a model there."""
        if self.ollama:
            model = {"_target_": "langchain_ollama.ChatOllama", "base_url": url, "num_predict": 9}
        else:
            model = {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{url}/v1", "max_tokens": 9}
        schema = "format" if self.ollama else "response_format"
        limits = {"api_key_env": "NO_KEY", "retries": 1, "backoff": 0.0, "schema": schema}
        return {"chat": {"model": "m", "temperature": 0, **model}, **limits}

    def reply(self, text: str, finish: str = "stop", thoughts: str = "") -> tuple[Any, ...]:
        """The response with a message, in its form."""
        if not self.ollama:
            return 200, said(text, finish, **({self.thoughts: thoughts} if thoughts else {}))
        about = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
        message = {"role": "assistant", "content": text, **({self.thoughts: thoughts} if thoughts else {})}
        last = {**about, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": finish}
        counts = {"prompt_eval_count": 7, "eval_count": 3}
        return 200, "".join(json.dumps(line) + "\n" for line in ({**about, "message": message}, {**last, **counts}))


def error(message: str, **more: Any) -> Body:
    return {"error": {"message": message, **more}}


KINDS = {
    "llama.cpp": Kind(
        (503, error("Loading model", type="unavailable_error", code=503), {"Retry-After": "0"}),
        (400, error("request (1407 tokens) exceeds the available context size (256 tokens), try increasing it",
                    code=400, type="exceed_context_size_error", n_prompt_tokens=1407, n_ctx=256)),
        "request (1407 tokens) exceeds the available context size (256 tokens)", "reasoning_content",
    ),
    "vLLM": Kind(
        (503, "<html><head><title>503 Service Temporarily Unavailable</title></head></html>", {"Retry-After": "0"}),
        (400, {"object": "error", "type": "BadRequestError", "param": None, "code": 400,
               "message": "This model's maximum context length is 256 tokens. However, you requested 1416 tokens "
               "(1407 in the messages, 9 in the completion). Please reduce the length of the messages."}),
        "This model's maximum context length is 256 tokens.", "reasoning",
    ),
    "LM Studio": Kind(
        (400, {"error": "Model is unloaded."}),
        (400, {"error": "Trying to keep the first 1407 tokens when context the overflows. However, the model is loaded "
               "with context length of only 256 tokens, which is not enough."}),
        "Trying to keep the first 1407 tokens when context the overflows.", "reasoning_content",
    ),
    "Ollama": Kind(
        (503, {"error": "server busy, please try again.  maximum pending requests exceeded"}),
        (400, {"error": "request (1407 tokens) exceeds the available context size (256 tokens), try increasing it"}),
        "request (1407 tokens) exceeds the available context size (256 tokens)", "thinking", ollama=True,
    ),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each of the servers."""
    return KINDS[request.param]


def test_a_model_that_is_not_in_memory_is_waited_for(kind: Kind, store: Store) -> None:
    loading = [kind.loading]
    with serving(lambda body: loading.pop() if loading else kind.reply("Paris")) as (url, bodies):
        (reply,) = ChatLLM(**kind.chat(url)).ask(["p"], store, "answers")
    assert (reply.text, len(bodies)) == ("Paris", 2)


def test_a_prompt_beyond_the_context_is_missing_with_the_server_s_words_and_ends_nothing(
    kind: Kind, store: Store
) -> None:
    def respond(body: Body) -> tuple[Any, ...]:
        return kind.overflow if "long" in body["messages"][-1]["content"] else kind.reply("Paris")

    with serving(respond) as (url, bodies):
        long, short = ChatLLM(**kind.chat(url)).ask(["long", "short"], store, "answers")
    assert (long.text, short.text) == (None, "Paris")
    assert kind.words in str(long.error)
    assert len(bodies) == 2


def test_a_reply_without_a_text_is_asked_for_again(kind: Kind, store: Store) -> None:
    texts = ["Paris", ""]
    with serving(lambda body: kind.reply(texts.pop())) as (url, _):
        (reply,) = ChatLLM(**kind.chat(url)).ask(["p"], store, "answers")
    assert (reply.text, reply.usage.calls) == ("Paris", 2)


def test_thoughts_are_no_part_of_the_answer(kind: Kind, store: Store) -> None:
    with serving(lambda body: kind.reply("Paris", thoughts="Hm.")) as (url, _):
        (reply,) = ChatLLM(**kind.chat(url)).ask(["p"], store, "answers")
    assert (reply.text, reply.thoughts) == ("Paris", "Hm.")


def test_a_verdict_that_is_cut_is_asked_for_with_twice_the_limit(kind: Kind, tools: Tools) -> None:
    verdicts = ['{"label": 5, "reason": "it is"}', '{"label": 5, "rea']
    ends = ["stop", "length"]
    with serving(lambda body: kind.reply(verdicts.pop(), ends.pop())) as (url, bodies):
        found = ChatJudge(**kind.chat(url)).judge(TOPICS, EVIDENCE, ANSWERS, tools)
    assert found["label"].tolist() == [5]
    limits = [body["options"]["num_predict"] if kind.ollama else body["max_tokens"] for body in bodies]
    assert limits == [9, 18]


def test_a_reply_that_only_says_that_ollama_loaded_the_model_is_asked_for_again(store: Store) -> None:
    replies = [("Paris", "stop"), ("", "load")]
    with serving(lambda body: KINDS["Ollama"].reply(*replies.pop())) as (url, bodies):
        (reply,) = ChatLLM(**KINDS["Ollama"].chat(url)).ask(["p"], store, "answers")
    assert (reply.text, len(bodies)) == ("Paris", 2)


def test_a_model_that_is_not_given_is_one_line_with_those_that_the_server_lists() -> None:
    about = {
        "/v1/models": {"object": "list", "data": [{"id": "small"}, {"id": "large"}]},
        "/api/tags": {"models": [{"name": "small"}, {"name": "large"}]},
    }
    with ChatServer(about=about) as server:
        for ollama in (False, True):
            given = Kind((), (), "", "", ollama).chat(server.url)
            given["chat"]["model"] = None
            with pytest.raises(
                ConfigError, match=r"^chat\.model is not given: .* server\.model .* lists: small, large$"
            ):
                ChatLLM(**given)


def test_an_account_of_openai_without_money_is_asked_once(store: Store) -> None:
    told = "You exceeded your current quota, please check your plan and billing details."
    refusal = 429, error(told, type="insufficient_quota", param=None, code="insufficient_quota")
    with serving(lambda body: refusal) as (url, bodies):
        given = Kind((), (), "", "").chat(url) | {"retries": 5}
        with pytest.raises(ConfigError, match=rf"refuses with 429: .*{told}"):
            ChatLLM(**given, concurrency=1).ask(["p", "q", "r"], store, "answers")
    assert len(bodies) == 1


def test_stop_texts_end_answers_alone_and_without_any_the_class_is_given_none(kind: Kind, store: Store) -> None:
    with serving(lambda body: kind.reply("Paris")) as (url, bodies):
        for stop in (["\n\n"], None):
            given = kind.chat(url)
            given["chat"]["stop"] = stop
            ChatLLM(**given).ask(["p"], store, "answers")
            ChatLLM(**given).beside_answers(None, "rewriter.max_tokens").ask(["q"], store, "queries")
        assert ChatLLM(**given).chat_identity() == ChatLLM(**kind.chat(url)).chat_identity()
    sent = [(body["options"] if kind.ollama else body).get("stop") for body in bodies]
    assert sent == [["\n\n"], None, None]


def test_another_limit_is_another_model_and_its_key_stands_in_errors(kind: Kind, store: Store) -> None:
    with serving(lambda body: kind.reply("", "length")) as (url, bodies):
        llm = ChatLLM(**kind.chat(url))
        limited = llm.beside_answers(5, "rewriter.max_tokens")
        (reply,) = limited.ask(["p"], store, "queries")
    assert limited.chat_identity() != llm.chat_identity()
    assert "(rewriter.max_tokens=5; a reply needs more)" in str(reply.error)
    assert [body["options"]["num_predict"] if kind.ollama else body["max_tokens"] for body in bodies] == [5, 10]
    with pytest.raises(ConfigError, match=r"rewriter\.max_tokens=0: "):
        llm.beside_answers(0, "rewriter.max_tokens")


def test_prompts_that_ollama_would_cut_without_a_word_are_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    kind = KINDS["Ollama"]
    with serving(lambda body: kind.reply("Paris")) as (url, _):
        given = kind.chat(url)
        given["chat"]["num_ctx"] = 100
        ChatLLM(**given).ask(["p" * 364], store, "answers")
        assert "num_ctx" not in caplog.text
        ChatLLM(**given).ask(["p" * 365], store, "answers")
    assert [line.partition(": Ollama")[0] for line in caplog.messages if "num_ctx" in line] == [
        "answers: prompts of up to about 92 tokens and their replies need more than chat.num_ctx=100"
    ]
