"""Turns Python samples of any kind into JSON rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.errors import DataError
from ragauge.datasets import BadRow
from ragauge.datasets.lists import is_null
from ragauge.datasets.recordings import entries
from ragauge.texts.surrogates import without_surrogates


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
