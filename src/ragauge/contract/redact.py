"""API keys and passwords kept out of configs, logs and errors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from ragauge.contract.errors import ConfigError

_SECRET_KEY = re.compile(
    r"(^|[_-])(api_?key|secret|password|passwd|authorization|bearer|(access|auth|api)[_-]?token|token)$", re.I
)
_SECRET_TEXT = re.compile(r"\bsk-[A-Za-z0-9_-]{8,}|(?<=://)[^/\s@:]*:[^/\s@]+(?=@)|(?<=Bearer )\S+")
_SECRET_ENV = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")


def redact(text: str) -> str:
    """The text without API keys: values of the environment that look like one, and known forms of them."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET_ENV.search(name.upper()):
            text = text.replace(value, "***")
    return _SECRET_TEXT.sub("***", text)


def redact_config(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys and values with what is secret by its key or its form replaced by ***."""
    return {
        key: "***" if _SECRET_KEY.search(key.rpartition(".")[2]) and value
        else redact(value) if isinstance(value, str) else value
        for key, value in flat.items()
    }  # fmt: skip


def refuse_secrets(value: Any, where: str) -> None:
    """ConfigError for anything that is a key by its name or its form: a config is logged and shared."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _SECRET_KEY.search(key) and item is not None:
                raise ConfigError(
                    f"{where}.{key}: keys are not allowed in the config; set the environment variable that "
                    "api_key_env names"
                )
            refuse_secrets(item, f"{where}.{key}")
    elif isinstance(value, list):
        for item in value:
            refuse_secrets(item, where)
    elif isinstance(value, str) and _SECRET_TEXT.search(value):
        raise ConfigError(f"{where}: holds what looks like a key or password; they belong in the environment")
