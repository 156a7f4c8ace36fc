"""The names of systems: the values that a sweep varied, each in its short form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import yaml

from ragauge.contract.errors import ConfigError

_UNITS = {"chunker.size": "tokens", "chunker.max_tokens": "tokens"}  # of keys whose number says more with its unit
_OF_FILES = re.compile(r"(^|[._])(path|file|prompt|template)($|_)")  # keys whose values are files
_NO_NAME = re.compile(r"[-+.\d\[{]|.*\s|(true|false|null|default)$", re.IGNORECASE)  # says nothing without its key


def system_names(overrides: Sequence[Sequence[str]]) -> list[str]:
    """Names that distinguish jobs apart from n_tokens: the values of differing overrides, in their short forms.

    `["retriever.top_k=5"], ["retriever.top_k=9"]` give `top_k=5` and `top_k=9`. Jobs with other values have other
    names. They include `llm.sample` only if nothing else distinguishes the jobs.
    """
    chosen = [{k: given_value(k, v) for k, v in (o.split("=", 1) for o in job if "=" in o)} for job in overrides]
    keys = list(dict.fromkeys(k for job in chosen for k in job if k != "n_tokens"))
    varied = [k for k in keys if len({job.get(k) for job in chosen}) > 1]
    others = [k for k in varied if k != "llm.sample"]
    if len({tuple(map(job.get, ("n_tokens", *others))) for job in chosen}) == len(chosen):
        varied = others
    if not varied:
        varied = [k for k in keys if k == "retriever"]
    forms = {k: short_forms(k, (job.get(k, "default") for job in chosen), varied) for k in varied}
    return [" · ".join(forms[k][job.get(k, "default")] for k in varied) or "all" for job in chosen]


def in_short(own: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> str:
    """The values of some settings in their short forms, as those of the others allow."""
    every = list(others)
    forms = {key: short_forms(key, (of[key] for of in every if key in of), own) for key in own}
    return " · ".join(forms[key].get(value, value) for key, value in own.items())


def short_forms(key: str, values: Iterable[str], keys: Iterable[str] = ()) -> dict[str, str]:
    """The short form of each value of a key, no two alike: `a` for `retriever.path=runs/a.trec`.

    keys: the others that vary; where one of them ends as this one does, the forms have the whole key.
    """
    key, found = key.lstrip("+"), list(dict.fromkeys(values))
    last = key.rpartition(".")[2]
    if "." not in key or key == "recorded.system":
        return {value: value for value in found}
    if any(other.lstrip("+") != key and other.rpartition(".")[2] == last for other in keys):
        return {value: f"{key}={value}" for value in found}
    if key in _UNITS and all(value.isdecimal() for value in found):
        return {value: f"{value} {_UNITS[key]}" for value in found}
    if any(map(_NO_NAME.match, found)):
        return {value: f"{last}={value}" for value in found}
    plain = [value.strip("'\"") for value in found]
    shorter: list[Callable[[str], str]] = [_last_part]
    if _OF_FILES.search(key):
        shorter.insert(0, lambda value: PurePath(value).stem)
    for form in shorter:
        forms = [*map(form, plain)]
        if len(set(forms)) == len(forms) and all(forms):
            return dict(zip(found, forms, strict=True))
    return dict(zip(found, plain if len(set(plain)) == len(plain) else found, strict=True))


def given_names(given: Any) -> dict[str, str]:
    """Other names of systems: {name: other name}, from such a mapping or the path of a YAML file.

    Raises ConfigError for anything else.
    """
    if isinstance(given, str):
        try:
            given = yaml.safe_load(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ConfigError(f"names={given}: {' '.join(str(error).split())}") from None
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(str(name).strip() for name in given.values()):
        raise ConfigError(
            f"names={given}: allowed is a name for each system, as in '{{bm25: By words}}', or a YAML file"
        )
    return {str(system): " ".join(str(name).split()) for system, name in given.items()}


def renamed(names: Sequence[str], others: dict[str, str]) -> list[str]:
    """Replaces the names that have another one.

    Raises ConfigError for a name that two systems would have.
    """
    found = [others.get(name, name) for name in names]
    of: dict[str, str] = {}
    for name, other in zip(names, found, strict=True):
        if of.setdefault(other, name) != name:
            raise ConfigError(f"names: {of[other]!r} and {name!r} would both be called {other!r}; give each its own")
    return found


def _last_part(value: str) -> str:
    return PurePath(value).name


def given_value(key: str, text: str) -> str:
    """The value of an override; the name of a recorded system without the quotes that Hydra asks for ('v1.2')."""
    if key == "recorded.system" and len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(f"\\{text[0]}", text[0])
    return text
