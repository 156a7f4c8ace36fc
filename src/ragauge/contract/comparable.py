"""Decides which jobs are comparable: those that measured the same topics with the same settings.

Measure, tokenizer, judge and answer measures are what a job is measured by: another one gives other numbers
for the same system. Chunker, embedder, retriever, reranker, llm and n_tokens are the system that is measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragauge.contract.groups import ANSWERS

MEASURED_BY = ("measure", "tokenizer", "judge")
TAG = "ragauge.measured_by"
# Keys that change no score and no label.
_NOT_MEASURED = {
    "threads", "batch_size", "device", "backend", "concurrency", "requests_per_minute", "timeout", "retries",
    "backoff", "max_wait", "give_up_after", "api_key_env", "price", "max_cost_usd", "budget",
    "expected_tokens", "ledger", "repeat", "sample", "sample_design", "looks", "earlier", "prompts_are", "probes",
    "submit", "submit_wait", "submit_poll", "submit_price_factor",
}  # fmt: skip


def digests(identities: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The digest of each identity (see `ragauge.contract.identity`) by its name.

    The names are those of MEASURED_BY, and `answers.<name>` of every answer measure.
    """
    texts = {name: json.dumps(found, sort_keys=True, ensure_ascii=True) for name, found in identities.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def as_tag(found: Mapping[str, str]) -> dict[str, str]:
    """The tag with the measurement settings of a job's MLflow run."""
    return {TAG: json.dumps(dict(found))}


def from_tags(tags: Mapping[str, str]) -> Any:
    """The content of that tag; None if it is absent or unreadable."""
    try:
        return json.loads(tags.get(TAG, "null"))
    except ValueError:
        return None


def measured_by(
    recorded: Sequence[Any], choices: Sequence[Mapping[str, str]], settings: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """The measurement settings of each job, {name: text}; equal texts are equal settings.

    The texts are the digests that the jobs recorded. Where those of one cannot be read (a tag that was edited or
    removed), all jobs use other texts: the option of each config group and its settings (`settings`: flat, as
    `judge.mode`), less those that change no number. Answer measures are then not distinguished.
    """
    if all(_readable(found) for found in recorded):
        return [dict(found) for found in recorded]
    return [
        {part: in_words(part, chosen, given) for part in MEASURED_BY}
        for chosen, given in zip(choices, settings, strict=True)
    ]


def in_words(part: str, choices: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """The chosen option of a config group, and its settings that can change a number."""
    own = {
        key: _in_order(str(value))
        for key, value in settings.items()
        if key.startswith(f"{part}.") and key.rpartition(".")[2] not in _NOT_MEASURED
    }
    return " ".join([choices.get(part, "?"), *(f"{key}={value}" for key, value in sorted(own.items()))])


def _in_order(value: str) -> str:
    """A list of names in sorted order, since their order changes nothing."""
    return ", ".join(sorted(value.strip("[]").split(", "))) if value.startswith("[") else value


def conflicting(found: Sequence[Mapping[str, str]]) -> list[str]:
    """The names of answer measures that jobs compute differently."""
    names = dict.fromkeys(name for job in found for name in job if name.startswith(f"{ANSWERS}."))
    return [name for name in names if len({job[name] for job in found if name in job}) > 1]


def _readable(found: Any) -> bool:
    return (
        isinstance(found, Mapping)
        and set(MEASURED_BY) <= set(found)
        and all(isinstance(text, str) for text in found.values())
    )
