"""Prompts of MLflow's registry by URI: prompts:/<name>/<version>, prompts:/<name>@<alias>."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError
from ragauge.llms.prompts import NamedPrompt
from ragauge.track.connection import connect, quiet, reachable

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import PromptVersion

_URI = re.compile(r"prompts:/(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>[\w.-]+))")
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")


def is_prompt_uri(value: Any) -> bool:
    """Whether this is the URI of a prompt in MLflow's registry."""
    return isinstance(value, str) and value.startswith("prompts:/")


def with_prompts(spec: Mapping[str, Any], uri: str, key: str) -> dict[str, Any]:
    """The spec of a component with prompt URIs replaced by the prompts' texts, alone or in a list.

    ConfigError, which names the config key, where MLflow at `uri` has no such prompt, or it is no text.
    """

    def read(value: Any, name: str) -> Any:
        if isinstance(value, list):
            return [read(one, name) for one in value]
        if not is_prompt_uri(value):
            return value
        with quiet(), reachable(uri):
            template = registered(connect(uri), value, name).template
        if not isinstance(template, str) or "{%" in template:
            kind = "a Jinja template" if isinstance(template, str) else "a chat prompt, a list of messages"
            raise ConfigError(
                f"{name}={value}: is {kind}; allowed are texts with placeholders such as {{{{question}}}}"
            )
        return NamedPrompt(dollars(template), value)

    return {name: read(value, f"{key}.{name}") for name, value in spec.items()}


def registered(client: MlflowClient, prompt: str, key: str) -> PromptVersion:
    """The prompt version of a URI; ConfigError, which names the config key, if there is none."""
    from mlflow.exceptions import MlflowException

    found, where = _URI.fullmatch(prompt), f"{key}={prompt}"
    if found is None:
        raise ConfigError(f"{where}: allowed are prompts:/<name>/<version> and prompts:/<name>@<alias>")
    name, version = found["name"], found["version"] or found["alias"]
    if client.get_prompt(name) is None:
        raise ConfigError(f"{where}: MLflow's registry has no prompt {name!r}")
    try:
        known = client.get_prompt_version(name, version)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise
        known = None
    if known is None:
        there = ", ".join(map(str, sorted(int(one.version) for one in client.search_prompt_versions(name))))
        raise ConfigError(f"{where}: {name!r} has no version {version}; allowed are {there or 'none'}")
    return known


def dollars(template: str) -> str:
    """The text with {{question}}, the form of MLflow's editor, as $question; unchanged without {{}}."""
    texts, names = (_VARIABLE.split(template)[start::2] for start in (0, 1))
    if not names:
        return template
    texts = [text.replace("$", "$$") for text in texts]
    marks = [
        f"${{{name}}}" if re.match(r"\w", after) else f"${name}" for name, after in zip(names, texts[1:], strict=True)
    ]
    return "".join(text + mark for text, mark in zip(texts, [*marks, ""], strict=True))
