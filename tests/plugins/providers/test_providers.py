"""Every provider by its own client: what is sent where, with which key, and what a user reads who lacks something."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from ragauge.contract.errors import ConfigError
from ragauge.experiment.setup import config as configs
from ragauge.experiment.stages.components import instantiate_components
from ragauge.llms.prices import Price
from ragauge.store import Store

ROOT = Path(__file__).resolve().parents[3]
ROLES = {"llm": 256, "judge": 256, "evaluator": 1024}
# Host of the config's address, variable of the key, path of a request below that address, and whether it has a seed.
BY_OPENAI = {
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", False),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY", False),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", False),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY", True),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", True),
    "vllm": ("http://localhost:8000/v1", "RAGAUGE_API_KEY", True),
    "lm_studio": ("http://localhost:1234/v1", "RAGAUGE_API_KEY", True),
}
OTHERS = ("anthropic", "azure", "bedrock")
PRICED = {
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "deepseek": "deepseek-chat",
    "groq": "llama-3.3-70b-versatile",
    "openrouter": "meta-llama/llama-3.3-70b-instruct",
}
SAID = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}
BY_ANTHROPIC = {
    "id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None,
    "content": [{"type": "text", "text": "Paris"}], "usage": {"input_tokens": 7, "output_tokens": 3},
}  # fmt: skip
BY_BEDROCK = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Paris"}]}}, "stopReason": "end_turn",
    "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}, "metrics": {"latencyMs": 1},
}  # fmt: skip


def composed(*overrides: str) -> DictConfig:
    """The config of a command line."""
    configs.register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", ["retriever=bm25", "chunker=tokens", *overrides])


def model(name: str, *overrides: str) -> Any:
    """The llm of a job."""
    return instantiate_components(composed(f"llm={name}", *overrides)).llm


@contextmanager
def answering(body: dict[str, Any]) -> Iterator[tuple[str, list[tuple[str, dict[str, str], dict[str, Any]]]]]:
    """A server that says one thing, with path, headers and body of every request."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, dict(self.headers.items()), sent))
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(404)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("name", BY_OPENAI)
def test_a_compatible_provider_is_sent_its_key_and_nothing_that_it_refuses(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, variable, has_seed = BY_OPENAI[name]
    monkeypatch.setenv(variable, "a-key")
    assert composed(f"llm={name}").llm.chat.base_url == address
    with answering(SAID) as (url, requests):
        llm = model(name, "llm.chat.model=m", "llm.price=null", f"llm.chat.base_url={url}/v1")
        (reply,) = llm.ask(["Where?"], Store(tmp_path), "answers")
    (path, headers, sent), *more = requests
    assert (reply.text, reply.usage.prompt_tokens, more) == ("Paris", 7, [])
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer a-key")
    expected = {"model": "m", "messages": [{"role": "user", "content": "Where?"}], "temperature": 0, "max_tokens": 256}
    assert {key: value for key, value in sent.items() if value is not False} == expected | (
        {"seed": 0} if has_seed else {}
    )


def test_anthropic_is_asked_by_its_own_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    with answering(BY_ANTHROPIC) as (url, requests):
        llm = model(
            "anthropic", "llm.chat.model=m", "llm.price={prompt: 1, completion: 5}", f"+llm.chat.base_url={url}"
        )
        (reply,) = llm.ask(["Where?"], Store(tmp_path), "answers")
    ((path, headers, sent),) = requests
    assert (reply.text, path, sent["model"], sent["max_tokens"]) == ("Paris", "/v1/messages", "m", 256)
    assert headers["Authorization"] == "Bearer a-key"
    assert reply.usage.cost_usd == pytest.approx((7 * 1 + 3 * 5) / 1e6)


def test_azure_is_asked_for_the_deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
    with answering(SAID) as (url, requests):
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", url)
        (reply,) = model("azure", "llm.chat.model=ours").ask(["Where?"], Store(tmp_path), "answers")
    ((path, headers, _),) = requests
    assert (reply.text, path) == (
        "Paris",
        "/openai/deployments/ours/chat/completions?api-version=2024-10-21",
    )
    assert {name.lower(): value for name, value in headers.items()}["api-key"] == "a-key"


def test_bedrock_is_asked_with_the_credentials_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_aws")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    with answering(BY_BEDROCK) as (url, requests):
        given = ["llm.chat.model='amazon.nova-lite-v1:0'", "llm.chat.region_name=eu-central-1"]
        (reply,) = model("bedrock", *given, f"+llm.chat.endpoint_url={url}").ask(["Where?"], Store(tmp_path), "answers")
    ((path, headers, sent),) = requests
    assert (reply.text, reply.usage.prompt_tokens) == ("Paris", 7)
    assert path == "/model/amazon.nova-lite-v1%3A0/converse"
    assert sent["inferenceConfig"] == {"temperature": 0.0, "maxTokens": 256}
    assert "Credential=an-id/" in headers["Authorization"]


@pytest.mark.parametrize("name", [*BY_OPENAI, *OTHERS])
def test_every_role_is_the_same_model_with_its_own_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://ours.openai.azure.com")
    cfg = composed(*(f"{role}={name}" for role in ROLES))
    given = {role: OmegaConf.to_container(cfg[role], resolve=True) for role in ROLES}
    limits = {role: option["chat"].pop("max_tokens") for role, option in given.items()}
    assert limits == ROLES
    for key in ("chat", "api_key_env", "price", "schema"):
        assert given["judge"][key] == given["evaluator"][key] == given["llm"][key]


@pytest.mark.parametrize("name", PRICED)
def test_prices_are_found_under_the_provider_s_address(name: str) -> None:
    given = composed(f"llm={name}").llm
    price = Price.of(given.price, PRICED[name], given.chat.get("base_url"))
    provider = {"gemini": "google"}.get(name, name)
    assert price is not None
    assert f", {provider}/" in price.table


@pytest.mark.parametrize("name", [name for name, (url, _, _) in BY_OPENAI.items() if url.startswith("https")])
def test_a_provider_without_its_key_is_one_line_before_any_call(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, variable, _ = BY_OPENAI[name]
    monkeypatch.delenv(variable, raising=False)
    llm = model(name, "llm.chat.model=m", "llm.price=null")
    with pytest.raises(ConfigError, match=rf"^api_key_env: the environment variable {variable} is not set$"):
        llm.check_ready(Store(tmp_path))


@pytest.mark.parametrize(("name", "package", "extra"), [
    ("anthropic", "langchain_anthropic", "anthropic"), ("bedrock", "langchain_aws", "bedrock"),
    ("groq", "langchain_openai", "openai"), ("azure", "langchain_openai", "openai"),
])  # fmt: skip
def test_a_provider_without_its_package_names_the_install_command(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("ragauge.contract.extras.find_spec", lambda module: None if module == package else object())
    with pytest.raises(ConfigError, match=rf"{package}, which is not installed: pip install 'ragauge\[{extra}\]'"):
        model(name, "llm.chat.model=m")
