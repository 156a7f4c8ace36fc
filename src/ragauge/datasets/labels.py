"""CSV tables of what others found: outcomes that were measured elsewhere, and labels that people gave."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_text
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import JUDGE_CLASSES, LABEL_OF
from ragauge.contract.groups import GROUPS
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset
from ragauge.contract.topics import QUESTIONS, labelled_as
from ragauge.datasets._files import check_separator, existing_file

_STUDY = Path(__file__).parent / "study" / "outcomes.csv"
_OUTCOME_COLUMNS = ("system", "qid", "label", "ir_score", "count")
# Columns of the file that say which answer was labelled; those that are there must fit a row.
_WHICH = ("n_tokens", *GROUPS)


@dataclass(frozen=True)
class RecordedOutcomes:
    """A CSV file of outcomes, `ir_score` and `label` in every row; a job of it only estimates.

    Further columns: `system` (whose answers; "recorded" without it), `qid` (without it every row is a topic
    of its own) and `count` (so many equal rows; not beside qid). A label is a judge class, or empty where
    there is no verdict. `judged_shares` are the shares of classes 1 to 5 that are known of systems whose rows
    have no label.
    """

    component: ClassVar[str] = "recorded_outcomes"
    version: ClassVar[int] = 1

    name: str = runtime("outcomes")
    path: str | Path | None = runtime(None)
    judged_shares: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text("dataset.name", self.name, "names")
        for system, shares in self.judged_shares.items():
            ok = len(shares) == len(JUDGE_CLASSES) and all(0 <= share <= 1 for share in shares)
            ok = ok and abs(sum(shares) - 1) <= 0.03
            what = "five shares, of classes 1 to 5, that add up to 1 but for rounding"
            require(f"dataset.judged_shares.{system}", list(shares), ok, what)

    def files(self) -> Mapping[str, Path]:
        """The file `outcomes`; ConfigError if it is not there."""
        return {"outcomes": existing_file("path", self.path)}

    def load(self) -> Dataset:
        """ConfigError: there are no documents and questions."""
        raise ConfigError(
            f"dataset {self.name} holds outcomes alone, no documents or questions: nothing can be retrieved"
        )

    def outcomes(self) -> pd.DataFrame:
        """A row per answer: [qid, system, ir_score, label]; DataError names file, line and what is wrong.

        Equal qids of two systems are one topic. Of a row without a qid, the qid has the system's name in it,
        so that nothing is taken for an answer to the same question.
        """
        file = self.files()["outcomes"]
        table = _read_texts(file)
        _require_columns(file, table, ("ir_score", "label"), None, f"columns are {', '.join(_OUTCOME_COLUMNS)}")
        score = pd.to_numeric(table["ir_score"], errors="coerce")
        classes = {"": 0, **{str(c): c for c in JUDGE_CLASSES}}
        counts = table["count"] if "count" in table else pd.Series("1", index=table.index)
        whole = counts.str.fullmatch(r"[1-9][0-9]{0,6}")
        for column, ok, allowed in (
            ("ir_score", score.between(0, 1), "a number in [0, 1]"),
            ("label", table["label"].isin(list(classes)), "a judge class 1 to 5, or nothing"),
            ("count", whole, "a whole number from 1"),
            ("qid", table["qid"] != "" if "qid" in table else whole, "a value"),
        ):
            _require_cells(file, table, column, ok, allowed)
        if "qid" in table:
            _require_once(file, table, [column for column in ("system", "qid") if column in table])
        if "qid" in table and "count" in table:
            raise DataError(f"{file}: columns qid and count: a row that has a qid is one answer")
        rows = pd.DataFrame(
            {
                "system": table.get("system", "recorded"),
                "ir_score": score.astype(float),
                "label": table["label"].map(classes),
                "qid": table.get("qid", ""),
            }
        )
        rows = rows.loc[np.repeat(rows.index, counts.astype(int))].reset_index(drop=True)
        if rows.empty:
            raise DataError(f"{file}: no outcome in it")
        if "qid" not in table:
            number = rows.groupby("system").cumcount() + 1
            rows["qid"] = rows["system"] + "/" + number.astype(str)
        rows["label"] = rows["label"].astype("Int8").mask(rows["label"] == 0)
        return rows[["qid", "system", "ir_score", "label"]].astype({"qid": "str", "system": "str"})


@dataclass(frozen=True)
class StudyOutcomes(RecordedOutcomes):
    """The study that the method comes from: 7,404 HotpotQA questions, Llama 3 8B, GPT-4o as judge, N = 1,000.

    The scores were read off the study's figures of sorted scores, to 0.003; they are facts of these figures
    and no file of the study. Of BM25 every answer has its class, but classes 2, 3 and 4 share one colour
    there: all of them stand as 4. Of the four other retrievers there are scores alone. The order of the
    questions is lost: rows of two retrievers cannot be told to be about the same one.
    """

    component: ClassVar[str] = "study_outcomes"

    def files(self) -> Mapping[str, Path]:
        """The shipped file."""
        return {"outcomes": _STUDY if self.path is None else existing_file("path", self.path)}


def read_human_labels(path: Path) -> pd.DataFrame:
    """A CSV file of human labels: qid, what was said, and any of n_tokens and the config groups.

    What was said is a class (label, 1..5), or 1 or 0 in columns named as the questions of a trained judge
    (`ragauge.contract.topics`), or both; where there are such columns, an empty cell is one that
    nobody filled. All columns but n_tokens, label (Int64) and the questions (float64) are str. Raises
    ConfigError where there is no such file, DataError naming file, line and column of what is wrong.
    """
    if not path.is_file():
        raise ConfigError(f"human_labels: no file {path}")
    frame = _read_texts(path)
    asked = [c for c in QUESTIONS if c in frame.columns]
    needed = ("qid", *([] if asked else ["label"]))
    _require_columns(
        path, frame, needed, ("qid", *_WHICH, "label", *QUESTIONS),
        f"there must be qid and label, or one of {', '.join(QUESTIONS)} in place of label, there may be "
        f"{', '.join(_WHICH)}",
    )  # fmt: skip
    classes = {str(c) for c in JUDGE_CLASSES} | ({""} if asked else set())
    for column, cells in frame.items():
        if column == "label":
            _require_cells(path, frame, column, cells.isin(classes), "a judge class 1..5")
        elif column == "n_tokens":
            _require_cells(path, frame, column, cells.str.fullmatch(r"\d{1,7}"), "a number of tokens")
        elif column in QUESTIONS:
            _require_cells(path, frame, column, cells.isin(("0", "1", "")), "1, 0 or empty")
        else:
            _require_cells(path, frame, str(column), cells.ne(""), "a value")
    _require_once(path, frame, [c for c in frame.columns if c not in ("label", *QUESTIONS)])
    for column in ("label", *asked):
        if column in frame:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64" if column == "label" else "float64")
    return frame.astype({c: "int64" for c in ("n_tokens",) if c in frame})


def with_human_labels(outcomes: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The outcomes of one job with what people said of its answers, as far as the file has columns of it.

    `human_label` (Int8) is a class, `human_<question>` (float64) 1 or 0; both are missing where nobody
    labelled the answer. `human_label_of` (str) says which answers the file's rows are of, such as
    `retriever=bm25`. Rows of the file for another retriever, budget, LLM or whatever else its columns name
    are left aside. Raises DataError for a qid that the dataset does not have.
    """
    labels = read_human_labels(path)
    which = {column: outcomes[column].iloc[0] for column in _WHICH if column in labels}
    for column, value in which.items():
        labels = labels[labels[column] == value]
    unknown = labels.loc[~labels["qid"].isin(outcomes["qid"]), "qid"]
    if len(unknown):
        raise DataError(f"{path}: qid {unknown.iloc[0]!r} is no topic of the dataset")
    given = labels.set_index("qid")
    for question in QUESTIONS:
        if question in given:
            said = outcomes["qid"].map(given[question]).astype("float64")
            outcomes = outcomes.assign(**{labelled_as(question): said})
    if "label" not in given:
        return outcomes
    named = ", ".join(f"{column}={value}" for column, value in which.items())
    return outcomes.assign(human_label=outcomes["qid"].map(given["label"]).astype("Int8"), **{LABEL_OF: named})


def _read_texts(file: Path) -> pd.DataFrame:
    """The table of a CSV file; every cell is a text, an empty one "". DataError where it is no such file."""
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except ValueError as error:  # UTF-8 and CSV alike
        raise DataError(f"{file}: no CSV file in UTF-8: {error}") from None
    check_separator(file, list(table.columns))
    return table


def _require_columns(
    file: Path, table: pd.DataFrame, needed: Sequence[str], known: Collection[str] | None, rule: str
) -> None:
    """DataError, which ends with the rule, for a column that is not among `known`, or one that is missing."""
    unknown = [] if known is None else [column for column in table if column not in known]
    absent = [column for column in needed if column not in table]
    if unknown or absent:
        wrong = f"column {unknown[0]!r} is unknown" if unknown else f"column {absent[0]!r} is missing"
        raise DataError(f"{file}: {wrong}; {rule}")


def _require_cells(file: Path, table: pd.DataFrame, column: str, good: pd.Series, allowed: str) -> None:
    """DataError for the first row whose cell is not good: it names line, qid, column, cell and what is allowed."""
    if not good.all():
        row = int(np.flatnonzero(~good.to_numpy(dtype=bool))[0])
        raise DataError(f"{_place(file, table, row)}: {column} is {table[column].iloc[row]!r}, not {allowed}")


def _require_once(file: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """DataError for the first row that has in these columns what a row above it has."""
    twice = table.duplicated([*columns])
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        raise DataError(f"{_place(file, table, row)}: a second row of the same {', '.join(columns)}")


def _place(file: Path, table: pd.DataFrame, row: int) -> str:
    return f"{file}, line {row + 2}" + (f" (qid={table['qid'].iloc[row]!r})" if "qid" in table else "")
