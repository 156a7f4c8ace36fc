"""Reads CSV tables of human labels, and checks such tables."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.groups import GROUPS
from ragauge.contract.outcomes import DRAWN_WITH, LABEL_OF
from ragauge.contract.topics import QUESTIONS, labelled_as
from ragauge.contract.visible import spreadsheet_cell
from ragauge.datasets.fields import BadRow, valid_string
from ragauge.datasets.files import csv_rows, named_cells, require_distinct
from ragauge.datasets.packing import opened_text

# Columns of the file that say which answer was labelled; those that are there must fit a row.
WHICH = ("n_tokens", *GROUPS)
# Columns of a sheet that people read, beside `answer`, which says what was labelled, too.
TO_READ = ("system", "query", "answer_reference", "answer", "judge_class")
LEAST_PROBABILITY = 1e-9  # of an answer to be drawn: of a billion answers the sheet holds one


def read_human_labels(path: Path) -> pd.DataFrame:
    """A CSV file of human labels: qid, the label, and any of n_tokens and the config groups.

    A label is a class (label, 1..5), or 1 or 0 in columns named as the questions of a trained judge
    (`ragauge.contract.topics`), or both. Where there are such columns, an empty cell has no label. A sheet
    (`ragauge labels`) has columns TO_READ, and `probability`, that of the answer to be drawn; labels may be empty
    there. All columns but n_tokens, label (Int64), probability and the questions (float64) are str. Raises ConfigError
    where there is no such file, DataError naming file, line and column of what is wrong.
    """
    if not path.is_file():
        raise ConfigError(f"human_labels: no file {path}")
    frame = read_texts(path)
    asked = [c for c in QUESTIONS if c in frame.columns]
    needed = ("qid", *([] if asked else ["label"]))
    require_columns(
        path, frame, needed, ("qid", *WHICH, *TO_READ, "label", *(QUESTIONS if asked else ["probability"])),
        f"there must be qid and label, or one of {', '.join(QUESTIONS)} in place of label, there may be "
        f"{', '.join(WHICH)}",
    )  # fmt: skip
    classes = {str(c) for c in JUDGE_CLASSES} | ({""} if asked or "probability" in frame else set())
    for column, cells in list(frame.items()):
        if column == "label":
            require_cells(path, frame, column, cells.isin(classes), "a judge class 1..5")
        elif column == "n_tokens":
            require_cells(path, frame, column, cells.str.fullmatch(r"\d{1,7}"), "a number of tokens")
        elif column in QUESTIONS:
            require_cells(path, frame, column, cells.isin(("0", "1", "")), "1, 0 or empty")
        elif column == "probability":
            numbers = pd.to_numeric(cells.str.replace(",", "."), errors="coerce")
            require_cells(path, frame, column, numbers.between(LEAST_PROBABILITY, 1), "from 0.000000001 to 1")
            frame[column] = numbers
        elif column not in TO_READ:
            require_cells(path, frame, str(column), cells.ne(""), "a value")
    no_keys = ("label", "probability", *QUESTIONS, *(c for c in TO_READ if c != "answer"))
    require_once(path, frame, [c for c in frame.columns if c not in no_keys])
    for column in ("label", *asked):
        if column in frame:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64" if column == "label" else "float64")
    return frame.astype({c: "int64" for c in ("n_tokens",) if c in frame})


def with_human_labels(outcomes: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The outcomes of one job with the file's human labels of its answers.

    `human_label` (Int8) is a class, `human_<question>` (float64) 1 or 0; both are missing for an answer without a
    label. `human_label_of` (str) says which answers the file's rows are of, such as `retriever=bm25`. Rows of the file
    for another retriever, budget, LLM or whatever else its columns name are left aside, those of another answer, too.
    DRAWN_WITH (float64) is the probability of an answer to have a label: that of the file, times the share of the job's
    rows there that have one. Raises DataError for a qid that the dataset does not have, and where the file has answers
    to a topic of the job, but not the job's.
    """
    return join_labels(outcomes, read_human_labels(path), path)


def join_labels(outcomes: pd.DataFrame, labels: pd.DataFrame, path: Path | str) -> pd.DataFrame:
    """The outcomes joined with labels from `read_human_labels`; `path` names them in errors."""
    written = {spreadsheet_cell(qid): qid for qid in outcomes["qid"]}  # in a sheet no cell is a formula
    labels = labels.assign(qid=labels["qid"].map(lambda qid: written.get(qid, qid)))
    which = {column: outcomes[column].iloc[0] for column in WHICH if column in labels}
    for column, value in which.items():
        labels = labels[labels[column] == value]
    unknown = labels.loc[~labels["qid"].isin(outcomes["qid"]), "qid"]
    if len(unknown):
        raise DataError(f"{path}: qid {unknown.iloc[0]!r} is no topic of the dataset")
    named = ", ".join(f"{column}={value}" for column, value in which.items())
    if "answer" in labels:
        labels = _of_the_answers(labels, outcomes, path)
    if "probability" in labels:
        labels = labels.assign(probability=labels["probability"] * labels["label"].notna().mean())
        labels = labels[labels["label"].notna()]
    given = labels.set_index("qid")
    for question in QUESTIONS:
        if question in given:
            said = outcomes["qid"].map(given[question]).astype("float64")
            outcomes = outcomes.assign(**{labelled_as(question): said})
    if "label" not in given:
        return outcomes
    if "probability" in given:
        outcomes = outcomes.assign(**{DRAWN_WITH: outcomes["qid"].map(given["probability"]).astype("float64")})
    whose = named + outcomes["answer"].map(_words_digest) if "answer" in given else named
    return outcomes.assign(human_label=outcomes["qid"].map(given["label"]).astype("Int8"), **{LABEL_OF: whose})


def words_of(answer: object) -> str:
    """An answer's text for comparison, since spreadsheets change line ends."""
    return " ".join(answer.split()) if isinstance(answer, str) else ""


def _words_digest(answer: object) -> str:
    return ", answer " + hashlib.sha256(words_of(answer).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _of_the_answers(labels: pd.DataFrame, outcomes: pd.DataFrame, path: Path | str) -> pd.DataFrame:
    """The rows of the file with the job's answers, one per topic.

    A sheet of several systems holds answers of others, too, which no column may tell apart: all rows of one of its
    systems must have the job's answers.
    """
    own = outcomes.set_index("qid")["answer"].map(words_of)
    given = labels["answer"].map(words_of)
    same = (given == labels["qid"].map(own)) | (given == labels["qid"].map(own.map(spreadsheet_cell)))
    answered = labels["qid"].map(own).ne("")
    other = ~labels["qid"].isin(labels.loc[same, "qid"]) & answered
    if other.any() and not _of_one_system(labels, ~same & answered):
        raise DataError(
            f"{path}: qid {labels.loc[other, 'qid'].iloc[0]!r} has another answer in this job than those of the file "
            f"({int(other.sum())} of {len(labels)} rows): give labels of the job's own answers (ragauge labels)"
        )
    return labels[same].drop_duplicates("qid")


def _of_one_system(labels: pd.DataFrame, other: pd.Series) -> bool:
    """Whether a system of the sheet has no row with another answer (`other`, bool by row)."""
    if "system" not in labels:
        return False
    systems = labels["system"].str.split("; ").explode()  # systems with equal answers share a row
    return not other[systems.index].groupby(systems.to_numpy()).any().all()


def read_texts(file: Path) -> pd.DataFrame:
    """The table of a CSV file, every cell a text, empty ones ""; DataError for any other file.

    Spreadsheets of some languages write semicolons: cells end at what the first line has most of `,`, `;` and tabs.
    Rows that end early have "" in their last columns.
    """
    try:
        with opened_text(file, "utf-8-sig") as lines:
            separator = max(",;\t", key=next(lines, "").count)
    except UnicodeError as error:
        raise DataError(f"{file}: no CSV file in UTF-8: {error}") from None
    columns: list[str] = []
    rows: list[dict[str, str]] = []

    def check(header: list[str]) -> None:
        require_distinct(file, header)
        columns.extend(name for name in header if name)

    for number, header, cells in csv_rows(file, check, separator):
        try:
            row = named_cells(header, [*cells, *[""] * (len(header) - len(cells))])
            rows.append({name: valid_string(cell, f"column {name!r}") for name, cell in row.items()})
        except BadRow as bad:
            raise DataError(f"{file}, row {number}: {bad}") from None
    if not columns:
        raise DataError(f"{file}: the file is empty; its first line must name the columns")
    return pd.DataFrame(rows, columns=columns, dtype="str")


def require_columns(
    file: Path, table: pd.DataFrame, needed: Sequence[str], known: Collection[str] | None, rule: str
) -> None:
    """DataError, ending with the rule, for an unknown or missing column."""
    unknown = [] if known is None else [column for column in table if column not in known]
    absent = [column for column in needed if column not in table]
    if unknown or absent:
        wrong = f"column {unknown[0]!r} is unknown" if unknown else f"column {absent[0]!r} is missing"
        raise DataError(f"{file}: {wrong}; {rule}")


def require_cells(file: Path, table: pd.DataFrame, column: str, good: pd.Series, allowed: str) -> None:
    """DataError for the first bad cell, naming line, qid, column, cell and allowed values."""
    if not good.all():
        row = int(np.flatnonzero(~good.to_numpy(dtype=bool))[0])
        raise DataError(f"{_place(file, table, row)}: {column} is {table[column].iloc[row]!r}, not {allowed}")


def require_once(file: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """DataError for the first row that repeats the values of an earlier one in these columns."""
    twice = table.duplicated([*columns])
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        raise DataError(f"{_place(file, table, row)}: a second row of the same {', '.join(columns)}")


def _place(file: Path, table: pd.DataFrame, row: int) -> str:
    return f"{file}, line {row + 2}" + (f" (qid={table['qid'].iloc[row]!r})" if "qid" in table else "")
