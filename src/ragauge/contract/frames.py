"""The data model: columns and keys of every frame passed between rooms, and their checks.

Names follow PyTerrier (`qid`, `docno`, `query`, `text`, `rank`, `score`), so that its transformers plug in.
Frames are joined by their keys, never by position. Extra columns pass through unchecked.
A frame that may not fit into memory comes as `Batches`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ragauge.contract.errors import DataError

Kind = Literal["str", "str?", "int", "float", "float?", "bool", "label", "list"]


@dataclass(frozen=True)
class Schema:
    """A frame's key columns, its required columns with their kinds, and its optional ones.

    Kinds: `str` (no nulls), `str?` (nulls allowed), `int`, `float` (finite), `float?` (finite or missing),
    `bool`, `label` (1..5 or missing), `list` (one list a row).
    """

    key: tuple[str, ...]
    columns: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)


# What an answer or a verdict took.
USAGE: Mapping[str, Kind] = {
    "prompt_tokens": "int", "completion_tokens": "int", "cost_usd": "float", "seconds": "float", "cached": "bool",
}  # fmt: skip

# Further of `ragauge.contract.usage`, where somebody was asked, or a server reported it for any row.
_TOLD: Mapping[str, Kind] = {
    "calls": "int", "usage_unknown": "int", "cached_tokens": "float?", "written_tokens": "float?",
}  # fmt: skip

SCHEMAS: Mapping[str, Schema] = {
    "docs": Schema(("docno",), {"docno": "str", "title": "str", "text": "str"}),
    # Every further column of topics is an attribute (`ragauge.contract.topics`).
    "topics": Schema(
        ("qid",),
        {"qid": "str", "query": "str", "answer": "str?"},
        {"answers": "list", "unanswerable": "bool", "wrong_answers": "list", "history": "list"},
    ),
    # text is missing where qrels alone are known; relevance is 1 where the column is not there.
    "evidence": Schema(
        ("qid", "part"),
        {"qid": "str", "part": "int", "docno": "str?", "text": "str?"},
        {"relevance": "int"},
    ),
    "chunks": Schema(("docno",), {"docno": "str", "text": "str", "parent": "str", "start": "int", "end": "int"}),
    # What is searched for. Rows of one topic and `search` are one search, the weighted sum of their vectors
    # or of their terms; a topic's searches give a ranked list each. space: any, dense or lexical, where a row
    # is for such retrievers alone. role: query or passage, as embedders tell them apart. origin: who wrote
    # the text; "failed" is the question of a topic whose rewrite failed.
    "queries": Schema(
        ("qid", "query_id"),
        {
            "qid": "str",
            "query_id": "int",
            "search": "int",
            "query": "str",
            "weight": "float",
            "space": "str",
            "role": "str",
            "origin": "str",
        },
    ),
    "run": Schema(("qid", "docno"), {"qid": "str", "docno": "str", "score": "float", "rank": "int"}),
    # What goes into a context where texts are no longer those of chunks: docno is the best chunk within.
    "passages": Schema(("qid", "rank"), {"qid": "str", "rank": "int", "docno": "str", "text": "str", "score": "float"}),
    # One text serves every budget that is a prefix of it; where the order depends on the budget
    # (reorder after the cut) every budget has a layout of its own.
    "layouts": Schema(
        ("qid", "layout"),
        {"qid": "str", "layout": "int", "text": "str", "docnos": "list", "starts": "list"},
    ),
    "prefixes": Schema(
        ("qid", "n_tokens"),
        {"qid": "str", "n_tokens": "int", "layout": "int", "end": "int", "n_used": "int", "n_chunks": "int"},
    ),
    "contexts": Schema(
        ("qid", "n_tokens"),
        {"qid": "str", "n_tokens": "int", "text": "str", "n_used": "int", "docnos": "list"},
    ),
    "scores": Schema(
        ("qid", "n_tokens", "measure"),
        {"qid": "str", "n_tokens": "int", "measure": "str", "value": "float"},
    ),  # no row for a topic without evidence texts, and for an unanswerable one
    # answer is null and status is not "ok" where no answer came; error keeps why. thoughts: what a reasoning model
    # wrote before its answer, where any of the answers has some.
    "answers": Schema(
        ("qid", "n_tokens"),
        {"qid": "str", "n_tokens": "int", "answer": "str?", "status": "str", "error": "str?", **USAGE},
        {"thoughts": "str?", **_TOLD},
    ),
    # The passages of every context in the order in which they stand in it (position, from 0): rank is the
    # place by which the retriever has them, text the whole passage, chars how many of its characters stand in
    # the context.
    "used_passages": Schema(
        ("qid", "n_tokens", "position"),
        {
            "qid": "str",
            "n_tokens": "int",
            "position": "int",
            "rank": "int",
            "docno": "str",
            "text": "str",
            "chars": "int",
        },
    ),
    # value is missing where there is no answer, or it could not be measured: status says why. detail is JSON
    # that shows what the value rests on.
    "answer_values": Schema(
        ("qid", "n_tokens", "measure"),
        {"qid": "str", "n_tokens": "int", "measure": "str", "value": "float?", "status": "str"},
        {"detail": "str?"},
    ),
    # label is missing and status is not "ok" where no verdict could be read; raw keeps the reply.
    "verdicts": Schema(
        ("qid", "n_tokens"),
        {"qid": "str", "n_tokens": "int", "label": "label", "status": "str", "raw": "str?", **USAGE},
        {"thoughts": "str?", **_TOLD},
    ),
}

_EXPECTED: Mapping[Kind, str] = {
    "label": "a judge class 1..5 or nothing",
    "float": "a finite number",
    "float?": "a finite number or nothing",
}

JUDGE_CLASSES: Mapping[int, str] = {
    1: "lack of information",
    2: "partly right with wrong statements",
    3: "partly right, incomplete",
    4: "wrong",
    5: "right",
}
HALLUCINATIONS = (2, 4)
LACK = 1


def check(name: str, frame: pd.DataFrame, source: str | None = None) -> pd.DataFrame:
    """The frame itself, if it has the columns, kinds and unique keys of the schema `name`.

    `source` (a file or a part) is named in the error. Raises DataError with the first offending row.
    """
    return check_schema(f"{name} frame" + (f" from {source}" if source else ""), SCHEMAS[name], frame)


def check_schema(where: str, schema: Schema, frame: pd.DataFrame) -> pd.DataFrame:
    """`check` by a schema of your own; `where` names the frame in the error."""
    missing = [column for column in schema.columns if column not in frame.columns]
    if missing:
        raise DataError(f"{where}: column(s) {', '.join(missing)} missing; it has {', '.join(map(str, frame.columns))}")
    optional = {column: kind for column, kind in schema.optional.items() if column in frame.columns}
    for column, kind in {**schema.columns, **optional}.items():
        problem = _problem(frame[column], kind)
        if problem is not None:
            row, what = problem
            keys = ", ".join(f"{k}={frame[k].iloc[row]!r}" for k in schema.key)
            raise DataError(f"{where}: column {column}, row {row} ({keys}): {what}")
    twice = frame.duplicated(list(schema.key))
    if twice.any():
        row = int(np.flatnonzero(twice.to_numpy())[0])
        keys = ", ".join(f"{k}={frame[k].iloc[row]!r}" for k in schema.key)
        raise DataError(f"{where}: row {row} repeats the key {keys}")
    return frame


def _problem(values: pd.Series, kind: Kind) -> tuple[int, str] | None:
    """The first row whose value is not of the kind, and the problem."""
    if len(values) == 0:
        return None
    null = values.isna().to_numpy()
    if null.any() and kind not in ("str?", "float?", "label", "list"):
        return int(np.flatnonzero(null)[0]), f"no value; expected {kind}"
    if kind in ("str", "str?"):
        if pd.api.types.is_string_dtype(values.dtype) and values.dtype != object:
            return None
        wrong = np.array([not isinstance(v, str) for v in values]) & ~null
    elif kind == "int":
        wrong = np.full(len(values), not pd.api.types.is_integer_dtype(values.dtype))
    elif kind == "bool":
        wrong = np.full(len(values), not pd.api.types.is_bool_dtype(values.dtype))
    elif kind in ("float", "float?"):
        if not pd.api.types.is_numeric_dtype(values.dtype):
            return 0, f"{values.iloc[0]!r} is not a number"
        wrong = ~(null | np.isfinite(values.to_numpy(dtype=float, na_value=np.nan)))
    elif kind == "label":
        wrong = ~(null | values.isin(list(JUDGE_CLASSES)).to_numpy())
    else:
        wrong = np.array([not isinstance(v, (list, tuple, np.ndarray)) for v in values])
    if not wrong.any():
        return None
    row = int(np.flatnonzero(wrong)[0])
    value = values.iloc[row]
    shown = value.item() if isinstance(value, np.generic) else value
    return row, f"{shown!r} is not {_EXPECTED.get(kind, kind)}"


def empty(name: str) -> pd.DataFrame:
    """A frame of the schema `name` with no rows and the right dtypes."""
    dtypes = {
        "str": "str", "str?": "str", "int": "int64", "float": "float64", "float?": "float64", "bool": "bool",
        "label": "Int8", "list": "object",
    }  # fmt: skip
    return pd.DataFrame({c: pd.Series(dtype=dtypes[k]) for c, k in SCHEMAS[name].columns.items()})


_AT_ONCE = 10_000  # values of a column that are hashed together


def content_digest(frame: pd.DataFrame) -> str:
    """SHA-256 (hex) of the frame's columns and values in row order, the same on every machine."""
    return digest_of((str(column), len(frame), [frame[column]]) for column in frame.columns)


def digest_of(columns: Iterable[tuple[str, int, Iterable[pd.Series]]]) -> str:
    """`content_digest` of a frame given by column: name, number of rows, and values in pieces.

    Different texts, missing values and lists never give the same bytes: values stand between separators, and a text is
    marked where it could be taken for a separator, a missing value or a list. Ordinary texts and numbers are as they
    always were, so that what is stored under their digests is found.
    """
    sha = hashlib.sha256()
    for column, n_rows, pieces in columns:
        sha.update(f"{column}\x1f{n_rows}\x1e".encode())
        for values in pieces:
            if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
                sha.update(values.to_numpy().tobytes())
            else:
                listed = values.tolist()
                for first in range(0, len(listed), _AT_ONCE):
                    text = _joined(listed[first : first + _AT_ONCE])
                    sha.update(f"{text}\x1f".encode("utf-8", "surrogatepass"))
    return sha.hexdigest()


# What a missing value is written as; a text that says the same is marked.
_MISSING_WORDS = frozenset({"nan", "None", "<NA>", "NaT"})


def _joined(values: list[Any]) -> str:
    """The values as one unambiguous text."""
    if set(map(type, values)) <= {str} and _MISSING_WORDS.isdisjoint(values):
        text = "\x1f".join(values)
        if "\x1e" not in text and text.count("\x1f") == len(values) - 1:
            return text
    return "\x1f".join(map(_written, values))


def _written(value: Any) -> str:
    """A value as text without a separator in it."""
    if isinstance(value, str):
        if value in _MISSING_WORDS:
            return f"\x1em{value}"
        return value.replace("\x1e", "\x1ee").replace("\x1f", "\x1es")
    if isinstance(value, (list, tuple, np.ndarray, dict)):
        # Whole and exact; numpy's own text leaves out the middle of what is long, and digits.
        return f"\x1ej{json.dumps(value, default=_plain, sort_keys=True)}"
    return f"{value}"


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else f"{value}"


BATCH_ROWS = 50_000  # of a batch, or of a row group, at most


@dataclass(frozen=True)
class Batches:
    """A frame read in batches, in row order.

    read: starts again from the first row at every call, and gives frames of the same columns and dtypes. The maker of a
        Batches sees to it that keys are unique over all of them.
    """

    read: Callable[[], Iterator[pd.DataFrame]]

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return self.read()

    def frame(self) -> pd.DataFrame:
        """All rows as one frame; ValueError where there is no batch."""
        return pd.concat(self, ignore_index=True)

    @property
    def n_rows(self) -> int:
        """Total number of rows."""
        return sum(map(len, self))

    def columns(self, names: Sequence[str]) -> pd.DataFrame:
        """All rows as one frame with these columns."""
        return pd.concat([batch[list(names)] for batch in self], ignore_index=True)

    def where(self, column: str, values: Collection[str]) -> pd.DataFrame:
        """The rows whose `column` is one of `values`, in order, indexed by row number."""
        return _one_frame(batch[_is_in(batch[column], values)] for batch in _numbered(self))

    def at(self, rows: np.ndarray) -> pd.DataFrame:
        """The rows with these distinct numbers, in their order, indexed by them."""
        return _one_frame(batch[batch.index.isin(rows)] for batch in _numbered(self)).loc[rows]


def as_frame(rows: pd.DataFrame | Batches) -> pd.DataFrame:
    """The rows as one frame, from a frame or batches."""
    return rows.frame() if isinstance(rows, Batches) else rows


def batches_of(rows: pd.DataFrame | Batches) -> Iterator[pd.DataFrame]:
    """The batches of rows; a frame is a single batch."""
    return iter(rows) if isinstance(rows, Batches) else iter([rows])


def count_rows(rows: pd.DataFrame | Batches) -> int:
    """Number of rows."""
    return rows.n_rows if isinstance(rows, Batches) else len(rows)


def columns_of(rows: pd.DataFrame | Batches, names: Sequence[str]) -> pd.DataFrame:
    """`Batches.columns`, also for a frame."""
    return rows.columns(names) if isinstance(rows, Batches) else rows[list(names)]


def rows_where(rows: pd.DataFrame | Batches, column: str, values: Collection[str]) -> pd.DataFrame:
    """`Batches.where`, also for a frame; the index is the row number."""
    if isinstance(rows, Batches):
        return rows.where(column, values)
    at = np.flatnonzero(_is_in(rows[column], values))
    return rows.iloc[at].set_axis(at)


def rows_at(rows: pd.DataFrame | Batches, numbers: np.ndarray) -> pd.DataFrame:
    """`Batches.at`, also for a frame; the index is the row number."""
    return rows.at(numbers) if isinstance(rows, Batches) else rows.iloc[numbers].set_axis(numbers)


def in_pieces(rows: pd.DataFrame | Batches, size: int) -> Iterator[pd.DataFrame]:
    """The rows in order, in frames of at most `size` rows; no frame without rows."""
    held: list[pd.DataFrame] = []
    n_held = 0
    for batch in batches_of(rows):
        start = 0
        while start < len(batch):
            taken = batch.iloc[start : start + size - n_held]
            held.append(taken)
            start, n_held = start + len(taken), n_held + len(taken)
            if n_held == size:
                yield pd.concat(held, ignore_index=True)
                held, n_held = [], 0
    if held:
        yield pd.concat(held, ignore_index=True)


def _is_in(column: pd.Series, values: Collection[str]) -> np.ndarray:
    """Whether each row's text is one of `values`, bool [rows], five times as fast as `Series.isin`."""
    there = pc.is_in(pa.array(column, type=pa.large_string()), pa.array(list(values), type=pa.large_string()))
    return there.to_numpy(zero_copy_only=False)


def _numbered(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The batches, indexed by row number over all of them."""
    first = 0
    for batch in batches:
        yield batch.set_axis(pd.RangeIndex(first, first + len(batch)))
        first += len(batch)


def _one_frame(batches: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The concatenated batches; empty ones contribute only columns."""
    found = list(batches)
    return pd.concat([batch for batch in found if len(batch)] or found[:1])
