"""Keys and passwords: removed from what is written, refused in what is read."""

from __future__ import annotations

import os
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redact, redact_config, refuse_secrets


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment whose own secrets cannot stand in the texts below."""
    for name in os.environ:
        if any(word in name.upper() for word in ("KEY", "TOKEN", "SECRET", "PASSWORD")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "key",
    [
        "llm.chat.api_key", "llm.chat.openai_api_key", "apikey", "db.password", "db.passwd", "client_secret",
        "llm.chat.headers.Authorization", "headers.Bearer", "hub.access_token", "auth-token", "api_token",
        "hub.token", "HF_TOKEN",
    ],
)  # fmt: skip
def test_values_under_a_secret_key_are_masked(key: str) -> None:
    assert redact_config({key: "harmless"}) == {key: "***"}
    # That there is none may be known.
    assert redact_config({key: None}) == {key: None}
    assert redact_config({key: ""}) == {key: ""}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("llm.chat.max_tokens", 256),
        ("n_tokens", 1000),
        ("tokenizer.model", "all-MiniLM-L6-v2"),
        ("llm.api_key_env", "OPENAI_API_KEY"),
        ("llm.expected_tokens", 60),
        ("token.limit", 5),
        ("gate", {}),
        ("n_grid", [100, 200]),
    ],
)
def test_other_values_stay_as_they_are(key: str, value: Any) -> None:
    assert redact_config({key: value}) == {key: value}


def test_secrets_are_found_by_their_form_and_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "plain-looking")
    flat = {
        "note": "with plain-looking inside",
        "model": "sk-0123456789abcdef",
        "tracking.uri": "postgresql://user:word@host/db",
        "header": "Bearer abc.def",
        "path": "/data/sk-short",
    }
    assert redact_config(flat) == {
        "note": "with *** inside",
        "model": "***",
        "tracking.uri": "postgresql://***@host/db",
        "header": "Bearer ***",
        "path": "/data/sk-short",
    }


def test_short_values_and_other_variables_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "a")
    monkeypatch.setenv("SOME_NAME", "long-enough")
    assert redact("a long-enough text") == "a long-enough text"


def test_the_given_mapping_is_not_changed() -> None:
    flat = {"token": "x"}
    assert redact_config(flat) is not flat
    assert flat == {"token": "x"}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"api_key": "x"}, r"chat\.api_key: keys are not allowed"),
        ({"a": {"b": {"password": "x"}}}, r"chat\.a\.b\.password"),
        ({"a": [{"token": "x"}]}, r"chat\.a\.token"),
        ({"a": ["Bearer planted-value"]}, r"chat\.a: holds what looks like a key"),
        ({"url": "https://me:planted-value@host"}, r"chat\.url: holds"),
    ],
)
def test_a_config_with_a_key_is_refused_without_repeating_it(value: Any, where: str) -> None:
    with pytest.raises(ConfigError, match=where) as caught:
        refuse_secrets(value, "chat")
    assert "planted-value" not in str(caught.value)


def test_a_config_without_keys_passes() -> None:
    refuse_secrets({"api_key": None, "max_tokens": 5, "url": "http://host:80/v1", "stop": ["a", 1]}, "chat")
