"""Values of Python as a command line takes them: values as texts, and samples as a file."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Quote, QuotedString

from ragauge.commands.conf import OWN
from ragauge.contract import loading
from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets._fields import BadRow
from ragauge.datasets.recordings import NAMES, entries, systems_in
from ragauge.experiment.setup.config import Config
from ragauge.experiment.setup.packages import owners

# A text that Hydra reads as this text; any other one gets quotes.
_BARE = re.compile(r"(?!(?:true|false|yes|no|on|off|null|nan|inf)$)[A-Za-z_][\w/-]*", re.ASCII | re.IGNORECASE)

# Keys whose keys anybody chooses: Hydra has to be asked to add them.
_OPEN = tuple(f"{key.name}." for key in fields(Config) if key.type == "dict[str, Any]")


def overrides(given: Sequence[str] | Mapping[str, Any], settings: Mapping[str, Any], swept: bool) -> list[str]:
    """The overrides of a command line: texts as they are, values of keys written for Hydra.

    {"llm": {"chat": {"model": "m"}}} is llm.chat.model=m. With `swept` a list, tuple or range stands for the values
    that jobs take in turn. So a value that is a list stands in another list. ConfigError for any other value.
    """
    if isinstance(given, str) or not (isinstance(given, Mapping) or all(isinstance(one, str) for one in given)):
        raise ConfigError(
            "overrides are a list of texts as on the command line, ['retriever=bm25', 'n_tokens=300'], or values "
            "by key, retriever='bm25', n_tokens=300"
        )
    texts, values = ([], given) if isinstance(given, Mapping) else ([*given], {})
    flat = {**_flat(values), **_flat(settings)}
    return texts + [
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
    names = [_text(key, one) for one in several]
    if any(map(callable, several)) and len(set(names)) < len(names):
        raise ConfigError(f"{key}={','.join(names)}: two functions have the same name; give one of them another")
    return ",".join(names)


def _option(group: str, function: Callable[..., Any]) -> str:
    """The name of a function, which is an option of its group from here on, in this process.

    ragauge cannot see the data that a function reads, such as an index. Results of a retriever are therefore kept
    for one call of `run` or `sweep`; replies of an llm are kept by the function's name and code.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not name.isidentifier():
        raise ConfigError(f"{group}: a function is shown by its name, and {name!r} is none; define it with def")
    if f"{group}/{name}" in owners(next(folder for folder in OWN if folder.is_dir())):
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
        return repr(value.item() if hasattr(value, "item") else value)
    if isinstance(value, (list, tuple, range)):
        return f"[{','.join(_text(key, one) for one in value)}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{_text(key, name)}:{_text(key, one)}' for name, one in value.items())}}}"
    raise ConfigError(f"{key}: {type(value).__name__} is none of text, number, true or false, None, list and dict")


def sample_file(samples: Any, app: Callable[[str], Any] | None, folder: Path) -> tuple[Path, list[str]]:
    """The file of samples, and the systems that its rows name.

    samples: rows as dicts or objects, a DataFrame, a RAGAS or DeepEval dataset, or the path of a file. Samples that are
        no file, or that an app adds to, become one in `folder`, which is named by its content.
    app: a function that gets the question of each row without an answer. It returns the answer, (answer, contexts), or
        a dict of a row's keys; an exception is that row's error. DataError names a row by its number.
    """
    rows = [_as_row(one, number) for number, one in enumerate(_listed(samples), 1)]
    if not rows:
        raise DataError("samples: there is none; allowed are rows with a question, an answer, contexts, ...")
    systems = list(dict.fromkeys(system for row in rows for system in systems_in(row)))
    if isinstance(samples, (str, os.PathLike)) and app is None:
        return Path(samples).expanduser().absolute(), systems
    try:
        if app is not None:
            for place, row in enumerate(rows):
                rows[place] = _asked(app, row, place + 1)
    finally:  # what an app has answered is kept, whatever stops it
        content = "".join(f"{_line(row, number)}\n" for number, row in enumerate(rows, 1))
        file = folder.absolute() / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return file, systems


def _listed(samples: Any) -> Iterable[Any]:
    """The rows of what holds some."""
    if isinstance(samples, (str, os.PathLike)):
        found: Iterable[Any] = _of_file(Path(samples).expanduser())
    elif hasattr(samples, "to_dict") and hasattr(samples, "columns"):  # a DataFrame
        found = samples.to_dict("records")
    elif hasattr(samples, "to_list"):  # RAGAS's EvaluationDataset, Hugging Face's Dataset
        found = samples.to_list()
    elif hasattr(samples, "test_cases"):  # DeepEval's EvaluationDataset
        found = samples.test_cases or samples.goldens
    elif isinstance(samples, Iterable) and not isinstance(samples, Mapping):
        found = samples
    else:
        raise DataError(
            f"samples: {type(samples).__name__} is none of a list of rows, a DataFrame, a RAGAS or DeepEval dataset "
            "and the path of a file"
        )
    return found


def _of_file(file: Path) -> Iterator[Mapping[str, Any]]:
    if not file.is_file():
        raise DataError(f"samples: there is no file {file}")
    for entry in entries(file):
        try:
            yield entry.read()
        except BadRow as bad:
            raise DataError(f"{entry.where}: {bad}") from None


def _as_row(one: Any, number: int) -> dict[str, Any]:
    if isinstance(one, Mapping):
        return dict(one)
    if not hasattr(one, "__dict__"):
        raise DataError(f"sample {number} is no row: allowed are dicts, and objects of RAGAS and DeepEval")
    return dict(one.model_dump() if hasattr(one, "model_dump") else vars(one))


def _asked(app: Callable[[str], Any], row: dict[str, Any], number: int) -> dict[str, Any]:
    names = NAMES["question"]
    question = next((row[name] for name in names if row.get(name)), None)
    if question is None:
        raise DataError(f"sample {number} has no question; allowed names are {', '.join(names)}")
    if any(row.get(name) for name in NAMES["answer"]):
        return row
    row = {name: value for name, value in row.items() if name not in NAMES["error"]}  # of an earlier call
    try:
        given = app(question)
    except Exception as error:
        return {**row, "retrieved_contexts": [], "error": f"{type(error).__name__}: {error}"}
    if isinstance(given, Mapping):
        return {**row, **given}
    answer, contexts = given if isinstance(given, tuple) else (given, None)
    return {**row, "response": answer, **({} if contexts is None else {"retrieved_contexts": contexts})}


def _line(row: Mapping[str, Any], number: int) -> str:
    try:
        return json.dumps({str(k): _plain(v) for k, v in row.items() if v is not None}, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample {number}: {error}; allowed are texts, numbers, and lists and dicts of these") from None


def _plain(value: Any) -> Any:
    """A value as JSON holds it: arrays as lists, numpy's numbers as Python's, NaN as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and math.isnan(value) else value
