"""Turns Python values into command-line arguments: values into texts, samples into a file."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Quote, QuotedString

from ragauge.commands.asking import ask_app
from ragauge.commands.rows import line_of, rows_of, without_deep
from ragauge.contract import loading
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.option import FOLDERS
from ragauge.contract.settings import Settings
from ragauge.datasets.recordings import opened_row, systems_in
from ragauge.experiment.setup.packages import owners

# A text that Hydra reads as this text; any other one gets quotes.
_BARE = re.compile(r"(?!(?:true|false|yes|no|on|off|null|nan|inf)$)[A-Za-z_][\w/-]*", re.ASCII | re.IGNORECASE)

# Keys whose keys anybody chooses: Hydra has to be asked to add them.
_OPEN = tuple(f"{key.name}." for key in fields(Settings) if key.type == "dict[str, Any]")


def overrides(given: Sequence[str] | Mapping[str, Any], settings: Mapping[str, Any], swept: bool) -> list[str]:
    """Command-line overrides: texts unchanged, values of keys written for Hydra.

    {"llm": {"chat": {"model": "m"}}} is llm.chat.model=m. With `swept` a list, tuple or range stands for the values
    that jobs take in turn. So a value that is a list stands in another list. ConfigError for any other value.
    """
    if isinstance(given, str) or not (isinstance(given, Mapping) or all(isinstance(one, str) for one in given)):
        raise ConfigError(
            "overrides are a list of texts as on the command line, ['retriever=bm25', 'n_tokens=300'], or values "
            "by key, retriever='bm25', n_tokens=300"
        )
    texts, values = ([], given) if isinstance(given, Mapping) else ([*given], {})
    try:
        return texts + _written({**_flat(values), **_flat(settings)}, swept)
    except RecursionError:
        raise ConfigError("overrides: a value is nested too deep") from None


def _written(flat: Mapping[str, Any], swept: bool) -> list[str]:
    return [
        f"{'++' if key.startswith(_OPEN) else ''}{key}={_swept(key, value) if swept else _text(key, value)}"
        for key, value in flat.items()
    ]


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, Mapping) and value
        found |= _flat(value, f"{above}{key}.") if inner else {f"{above}{key}": value}
    return found


def _swept(key: str, value: Any) -> str:
    several = value if isinstance(value, (list, tuple, range)) else [value]
    if not several:
        raise ConfigError(f"{key}={value}: holds no value, so there is no job to run; an empty list is given as [[]]")
    names = [_text(key, one) for one in several]
    if any(map(callable, several)) and len(set(names)) < len(names):
        raise ConfigError(f"{key}={','.join(names)}: two functions have the same name; give one of them another")
    return ",".join(names)


def _option(group: str, function: Callable[..., Any]) -> str:
    """The name of a function, which becomes an option of its group in this process.

    ragauge cannot see the data that a function reads, such as an index. Results of a retriever are therefore kept
    for one call of `run` or `sweep`; replies of an llm are kept by the function's name and code.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not name.isidentifier():
        raise ConfigError(f"{group}: a function is shown by its name, and {name!r} is none; define it with def")
    if f"{group}/{name}" in owners(next(folder for folder in FOLDERS if folder.is_dir())):
        raise ConfigError(f"{group}={name}: there is an option of that name; give the function another one")
    path = f"{function.__module__}.{name}"
    loading.GIVEN[path] = function
    try:
        code = hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):  # typed in, or no Python function
        code = uuid.uuid4().hex
    node: dict[str, Any] = {"chat": {"function": path, "model": name, "code": code}}
    if group == "retriever":
        node = {"function": {"_target_": path}, "call": uuid.uuid4().hex}
    ConfigStore.instance().store(group=group, name=name, node={"defaults": ["function", "_self_"], **node})
    return name


def _text(key: str, value: Any) -> str:
    if key in ("retriever", "llm") and callable(value):
        return _option(key, value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) else QuotedString(value, Quote.single).with_quotes()
    if isinstance(value, (int, float)) or hasattr(value, "item"):
        try:
            return repr(value.item() if hasattr(value, "item") else value)
        except ValueError as error:  # a whole number of more than 4,300 digits, or an array
            raise ConfigError(f"{key}: {error}") from None
    if isinstance(value, (list, tuple, range)):
        return f"[{','.join(_text(key, one) for one in value)}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{_text(key, name)}:{_text(key, one)}' for name, one in value.items())}}}"
    raise ConfigError(f"{key}: {type(value).__name__} is none of text, number, true or false, None, list and dict")


class SampleFile(NamedTuple):
    """A file of samples, the systems in its rows, and whether a value was nested too deep to be kept."""

    path: Path
    systems: Sequence[str]
    lacks_values: bool = False


def sample_file(samples: Any, app: Callable[[str], Any] | None, folder: Path) -> SampleFile:
    """The file of samples.

    samples: rows as dicts or objects, a DataFrame, a RAGAS or DeepEval dataset, or the path of a file. Samples that are
        no file, or that an app adds to, become one in `folder`, which is named by its content.
    app: a function that gets the question of each row without an answer (`ragauge.commands.asking`). DataError names a
        row by its number.
    """
    rows = rows_of(samples)
    systems = list(dict.fromkeys(system for row in rows for system in systems_in(opened_row(row))))
    if isinstance(samples, (str, os.PathLike)) and app is None:
        return SampleFile(Path(samples).expanduser().absolute(), systems)
    failed = None
    try:
        if app is not None:
            failed = ask_app(app, rows)
    finally:  # what an app has answered is kept, whatever stops it
        kept, n_deep = without_deep(rows)
        content = "".join(f"{line_of(row, number)}\n" for number, row in enumerate(kept, 1))
        file = folder.absolute() / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    if failed is not None:
        raise DataError(f"{failed}; the rows: {file}")
    return SampleFile(file, systems, lacks_values=n_deep > 0)
