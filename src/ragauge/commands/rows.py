"""Turns Python samples of any kind into JSON rows."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragauge.contract.errors import DataError
from ragauge.datasets import BadRow
from ragauge.datasets.lists import is_null
from ragauge.datasets.recordings import NAMES, entries, opened_row, systems_in
from ragauge.texts.surrogates import without_surrogates

log = logging.getLogger(__name__)

_DEEPEST = 100  # lists and mappings within each other that a value may have


def rows_of(samples: Any) -> list[dict[str, Any]]:
    """The rows of a list, a frame, another tool's dataset, or a file; DataError if there are none."""
    rows = [_as_row(one, number) for number, one in enumerate(_listed(samples), 1)]
    if not rows:
        raise DataError("samples: there is none; allowed are rows with a question, an answer, contexts, ...")
    return rows


def _listed(samples: Any) -> Iterable[Any]:
    """The rows in a container."""
    if isinstance(samples, (str, os.PathLike)):
        found: Iterable[Any] = _of_file(Path(samples).expanduser())
    elif hasattr(samples, "to_dicts"):  # a frame of Polars
        found = samples.to_dicts()
    elif hasattr(samples, "to_dict") and hasattr(samples, "columns"):  # a DataFrame
        if not samples.columns.is_unique:
            twice = samples.columns[samples.columns.duplicated()][0]
            raise DataError(f"samples: column {twice!r} stands twice")
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


def nested_too_deep(value: Any) -> bool:
    """Whether lists and mappings stand more than 100 deep in each other; one that holds itself does."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        inner = (one.values() if isinstance(one, Mapping) else one for one in map(_as_list, level) if _holds(one))
        level = list({id(item): item for items in inner for item in items}.values())
    return bool(level)


def _as_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _holds(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def without_deep(rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    """The rows without values that are nested too deep, and in how many rows there was one.

    Such a row has no answer, and an `error` that names the value. A warning counts them. DataError where it is the
    question or the qid of a row, and where all rows are such.
    """
    found, first, n = [], "", 0
    for number, row in enumerate(rows, 1):
        kept, error = _shallow(row)
        if error is not None:
            if any(nested_too_deep(opened_row(row).get(name)) for name in (*NAMES["question"], *NAMES["qid"])):
                raise DataError(f"sample {number}: {error}")
            first, n = first or f"sample {number}: {error}", n + 1
        found.append(kept)
    if n == len(rows):
        raise DataError(f"{first}; so are all samples" if n > 1 else first)
    if n:
        log.warning("the answers of %d of %d samples count as missing; the first: %s", n, len(rows), first)
    return found, n


def _shallow(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """The row, those of its systems included, without what is nested too deep; and the error that names it."""
    if not any(map(nested_too_deep, row.values())):
        return row, None
    kept = dict(opened_row(row))
    error: str | None = None
    systems = [name for name in systems_in(kept) if isinstance(kept.get(name), Mapping)]
    for name in systems:
        kept[name], of_system = _shallow(kept[name])
        error = error or of_system
    deep = [name for name, value in kept.items() if name not in systems and nested_too_deep(value)]
    if deep:
        error = f"{deep[0]!r} is nested too deep"
        for name in (*deep, *NAMES["answer"]):
            kept.pop(name, None)
        kept["error"] = error
    return kept, error


def line_of(row: Mapping[str, Any], number: int) -> str:
    """The row as a line of JSON without nulls; DataError names a value that JSON cannot hold."""
    try:
        return json.dumps({plain(str(k)): v for k, v in plain(row).items() if v is not None}, ensure_ascii=False)
    except RecursionError:
        raise DataError(f"sample {number}: its values are nested too deep") from None
    except (TypeError, ValueError) as error:
        raise DataError(f"sample {number}: {error}; allowed are texts, numbers, and lists and dicts of these") from None


def plain(value: Any) -> Any:
    """A value in JSON's types, within lists and dicts, too.

    Half a character is U+FFFD, arrays and tuples are lists, numpy's numbers Python's, Documents of LangChain their
    texts, times their ISO form, and NaN and missing values of pandas null. RecursionError where it is nested too deep.
    """
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(text := getattr(value, "page_content", None), str):
        return text
    if is_null(value) or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
