"""Divides a sweep's jobs into groups whose numbers may be pooled.

Jobs of one group measured the same topics with the same measure, tokenizer, answer measures and judge
(`ragauge.contract.comparable`). They differ in the system, its budget, or how their numbers are estimated. Jobs without
any verdict compare by their IR scores: they join the group of the one judge there is. Beside several judges they are a
group of their own, since no job is pooled twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from ragauge.contract import comparable
from ragauge.contract.groups import ANSWERS
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible

_LONGEST = 40  # characters of a value in a group's name
_NO_VERDICTS = ""
_DIVIDING = ("dataset", *comparable.MEASURED_BY, ANSWERS)


@dataclass(frozen=True)
class Group:
    """Comparable jobs: their records, and what distinguishes them from the sweep's other groups.

    `name` reads `dataset=hotpotqa, judge=lexical`; it is empty where the sweep has no other group, and no two
    groups of a sweep have the same. `dataset` names the collection alone, and `means` is equal for groups
    that differ in nothing else.
    """

    name: str
    dataset: str
    means: Hashable
    records: list[JobRecord]


def divide(records: Sequence[JobRecord]) -> list[Group]:
    """The finished jobs of a sweep by group, in the order of the groups' first jobs."""
    parts = _parts(records)
    keys = [tuple(part.items()) for part in parts]
    members = {key: [i for i, other in enumerate(keys) if other == key] for key in dict.fromkeys(keys)}
    firsts = [parts[indices[0]] for indices in members.values()]
    varied = [name for name in parts[0] if len({first[name] for first in firsts}) > 1]
    shown = {
        name: _labels(name, records, [part[name] for part in parts]) for name in dict.fromkeys(["dataset", *varied])
    }
    return [
        Group(
            name=", ".join(f"{name}={shown[name][parts[indices[0]][name]]}" for name in varied),
            dataset=shown["dataset"][parts[indices[0]]["dataset"]],
            means=tuple((name, text) for name, text in key if name != "dataset"),
            records=[records[i] for i in indices],
        )
        for key, indices in members.items()
    ]


def closest(failed: JobRecord, groups: Sequence[Group]) -> int:
    """Index of the group with most choices and overrides in common with a failed job (the first of ties).

    Those of what divides groups, such as the dataset, count before all others: each group may have the job's retriever.
    The job's own group is often unknown, since it may have failed before that was decided.
    """

    def shared(group: Group) -> tuple[int, int]:
        settings = {o for record in group.records for o in record.overrides} & set(failed.overrides)
        choices = {pair for record in group.records for pair in record.choices.items()}
        names = [re.split("[.=]", setting.lstrip("+~"))[0] for setting in settings]
        names += [name for name, _ in choices & set(failed.choices.items())]
        return sum(name in _DIVIDING for name in names), len(names)

    return max(range(len(groups)), key=lambda i: (shared(groups[i]), -i))


def _parts(records: Sequence[JobRecord]) -> list[dict[str, str]]:
    """The values that determine each job's group: {name: text}, the same names for all."""
    found = comparable.measured_by(
        [record.measured_by for record in records],
        [record.choices for record in records],
        [_overridden(record) for record in records],
    )
    names = comparable.conflicting(found)
    parts = [
        {
            "dataset": record.dataset_digest or str(record.choices.get("dataset", "?")),
            **{name: job[name] for name in ("measure", "tokenizer")},
            **{name: job.get(name, "") for name in names},
        }
        for record, job in zip(records, found, strict=True)
    ]
    judges: dict[Hashable, set[str]] = {}
    for record, part, job in zip(records, parts, found, strict=True):
        judges.setdefault(tuple(part.items()), set()).update([job["judge"]] if _has_verdicts(record) else [])
    judged = [
        job["judge"] if _has_verdicts(record) else _NO_VERDICTS for record, job in zip(records, found, strict=True)
    ]
    for i, part in enumerate(parts):
        of_same = judges[tuple(part.items())]
        judge = min(of_same) if len(of_same) == 1 else judged[i]
        parts[i] = {**part, "judge": judge}
    return parts


def _has_verdicts(record: JobRecord) -> bool:
    return bool(record.metrics.get("judge_share_missing", 1) < 1)


def _overridden(record: JobRecord) -> dict[str, str]:
    """The values of a job's overrides by key."""
    return {key.lstrip("+~"): value for key, _, value in (o.partition("=") for o in record.overrides)}


def _labels(name: str, records: Sequence[JobRecord], texts: Sequence[str]) -> dict[str, str]:
    """A name for each text of a part: the jobs' option of the config group.

    Where one option stands for several texts, the overrides that differ are added; where none do (a file
    changed, a server serves another model), the digest.
    """
    first: dict[str, JobRecord] = {}
    for record, text in sorted(zip(records, texts, strict=True), key=lambda job: not _has_verdicts(job[0])):
        first.setdefault(text, record)
    words = {text: _option(name, text, record) for text, record in first.items()}
    given = {text: {k: v for k, v in _overridden(record).items() if k.startswith(f"{name}.")}
             for text, record in first.items()}  # fmt: skip
    for text in _ambiguous(words):
        alike = [given[other] for other in words if words[other].partition(" (")[0] == words[text]]
        differ = [k for k in given[text] if len({settings.get(k) for settings in alike}) > 1]
        if differ:
            settings = ", ".join(f"{k.removeprefix(f'{name}.')}={_short(given[text][k])}" for k in differ)
            words[text] += f" ({settings})"
    for text in _ambiguous(words):
        words[text] += f" {_mark(text)}"
    return words


def _ambiguous(words: Mapping[str, str]) -> list[str]:
    said = list(words.values())
    return [text for text, word in words.items() if said.count(word) > 1]


def _option(name: str, text: str, record: JobRecord) -> str:
    if name == "judge" and text == _NO_VERDICTS:
        return "no verdicts"
    return _short(record.choices.get(name, "as set" if text else "not measured"))


def _short(value: object) -> str:
    """The end of a value, in characters valid in tags, MLflow queries and terminals."""
    text = re.sub(r"[\\'\"`]+", "", visible(redact(str(value)), one_line=True))
    return text if len(text) <= _LONGEST else "…" + text[1 - _LONGEST :]


def _mark(text: str) -> str:
    """The beginning of the text's digest, or of the text if it is one."""
    return text[:8] if re.fullmatch("[0-9a-f]{16,}", text) else hashlib.sha256(text.encode()).hexdigest()[:8]
