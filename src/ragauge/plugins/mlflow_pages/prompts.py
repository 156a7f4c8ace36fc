"""Prompts in MLflow's prompt registry: a version for every text that jobs used, identified by its digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from string import Template
from typing import TYPE_CHECKING, Any

from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.redact import redact
from ragauge.contract.settings import Settings
from ragauge.contract.stages import Components
from ragauge.plugins.mlflow_pages.registry import dollars, is_prompt_uri, registered
from ragauge.track.connection import pages

if TYPE_CHECKING:
    from mlflow import MlflowClient

LINKED = "mlflow.linkedPrompts"  # MLflow's tag of the prompts of a run or a model
_DIGEST = "ragauge.sha256"  # on a version: of the text
_EXPERIMENTS = "_mlflow_experiment_ids"  # MLflow's tag on a prompt: the experiments on whose pages it stands

Version = tuple[str, str]  # name and version in the registry
_known: dict[tuple[str, str, str, str], str] = {}  # (store, experiment, name, digest): version, of this process


def linked_prompts(
    client: MlflowClient, settings: Settings, components: Components, experiment_id: str
) -> dict[str, Version]:
    """The versions of a job's prompts in the registry by config key, such as judge.prompt.

    One that the config names by URI is that version. Any other text is registered under the name of its key, as
    `ragauge-judge`, unless a version there has its digest. So are the prompts of measures that no key changes.
    """
    parts = {group: getattr(components, group) for group in GROUPS}
    parts |= {f"{ANSWERS}.{name}": measure for name, measure in components.answers.items()}
    found = {}
    for group, component in parts.items():
        for name, key, text in _prompts_of(component):
            given = _configured(settings, f"{group}.{key}")
            if is_prompt_uri(given):
                version = registered(client, given, f"{group}.{key}")
                found[f"{group}.{key}"] = version.name, str(version.version)
            else:
                called = "-".join(["ragauge", *group.split("."), *name])
                found[f"{group}.{key}"] = called, _version(client, called, redact(text), experiment_id)
    return found


def _configured(settings: Settings, path: str) -> Any:
    """The value at a path such as judge.prompts[0]; None where there is none."""
    node: Any = vars(settings)
    for at in re.findall(r"[^.\[\]]+", path):
        node = node[int(at)] if isinstance(node, list) else (node or {}).get(at)
    return node


def _prompts_of(component: Any) -> Iterator[tuple[list[str], str, str]]:
    """The purpose ([] if its component has one prompt), key and text of every prompt field."""
    names = [one.name for one in fields(component)] if is_dataclass(component) else []
    for name in names:
        value = getattr(component, name)
        if name == "prompts" and isinstance(value, Mapping):  # those of a measure, by their name
            yield from (([at], f"{name}.{at}", text) for at, text in value.items())
        elif name == "prompts":
            yield from (([], f"{name}[{at}]", text) for at, text in enumerate(value or ()))
        elif name.startswith("prompt") and isinstance(value, str) and not getattr(component, "prompts", None):
            yield [name.removeprefix("prompt_")] if name != "prompt" else [], name, value


def as_tag(prompts: Mapping[str, Version]) -> str:
    """The prompts as the value of MLflow's tag `LINKED`."""
    return json.dumps([{"name": name, "version": version} for name, version in dict.fromkeys(prompts.values())])


def braces(text: str) -> str:
    """A prompt's text with {{question}} for $question, as in MLflow's editor; unchanged if that would not load
    as the same text."""
    made = Template.pattern.sub(
        lambda found: "$" if found["escaped"] else "{{" + (found["named"] or found["braced"]) + "}}", text
    )
    return made if dollars(made) == text else text


def _version(client: MlflowClient, name: str, text: str, experiment_id: str) -> str:
    """The version of the prompt with this text, created if there is none.

    Where several processes wrote it at the same time, the first counts.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    key = client.tracking_uri, experiment_id, name, digest
    if key not in _known:
        _show_in(client, name, experiment_id)
        query = f"name = '{name}' and tag.`mlflow.prompt.is_prompt` = 'true' and tag.`{_DIGEST}` = '{digest}'"
        search = partial(client.search_model_versions, query)
        if not list(pages(search)):
            client.create_prompt_version(name, braces(text), tags={_DIGEST: digest})
        _known[key] = str(min(int(one.version) for one in pages(search)))
    return _known[key]


def _show_in(client: MlflowClient, name: str, experiment_id: str) -> None:
    """Shows the prompt on the experiment's page of prompts; creates it if missing."""
    from mlflow.exceptions import MlflowException

    prompt = client.get_prompt(name)
    if prompt is None:
        try:
            client.create_prompt(name, tags={_EXPERIMENTS: f",{experiment_id},"})
        except MlflowException:
            if client.get_prompt(name) is None:  # no other process made it meanwhile
                raise
        return
    shown = prompt.tags.get(_EXPERIMENTS, ",")
    if f",{experiment_id}," not in shown:
        client.set_prompt_tag(name, _EXPERIMENTS, f"{shown}{experiment_id},")
