"""Labels that people gave: read from a file and laid beside the answers of a job."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.groups import GROUPS
from ragauge.contract.judge_questions import QUESTIONS, labelled_as
from ragauge.datasets._gather import check_separator

# Columns of the file that say which answer was labelled; those that are there must fit a row.
_WHICH = ("n_tokens", *GROUPS)


def read_human_labels(path: Path) -> pd.DataFrame:
    """A CSV file of human labels: qid, what was said, and any of n_tokens and the config groups.

    What was said is a class (label, 1..5), or 1 or 0 in columns named as the questions of a trained judge
    (`ragauge.contract.judge_questions`), or both; where there are such columns, an empty cell is one that
    nobody filled. All columns but n_tokens, label (Int64) and the questions (float64) are str. Raises
    ConfigError where there is no such file, DataError naming file, line and column of what is wrong.
    """
    if not path.is_file():
        raise ConfigError(f"human_labels: no file {path}")
    try:
        frame = pd.read_csv(path, dtype="str", keep_default_na=False, encoding="utf-8-sig")
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path}: no readable CSV: {error}") from error
    check_separator(path, list(frame.columns))
    unknown = [c for c in frame.columns if c not in ("qid", *_WHICH, "label", *QUESTIONS)]
    asked = [c for c in QUESTIONS if c in frame.columns]
    absent = [c for c in ("qid", *([] if asked else ["label"])) if c not in frame.columns]
    if unknown or absent:
        wrong = f"column {unknown[0]!r} is unknown" if unknown else f"column {absent[0]!r} is missing"
        raise DataError(
            f"{path}: {wrong}; there must be qid and label, or one of {', '.join(QUESTIONS)} in place of "
            f"label, there may be {', '.join(_WHICH)}"
        )
    classes = {str(c) for c in JUDGE_CLASSES} | ({""} if asked else set())
    expected = {"label": "a judge class 1..5", "n_tokens": "a number of tokens"}
    expected |= dict.fromkeys(QUESTIONS, "1, 0 or empty")
    for column in frame.columns:
        good = frame[column].isin(classes) if column == "label" else frame[column].ne("")
        if column == "n_tokens":
            good = frame[column].str.fullmatch(r"\d{1,7}")
        if column in QUESTIONS:
            good = frame[column].isin(("0", "1", ""))
        if not good.all():
            row = int((~good).to_numpy().argmax())
            raise DataError(
                f"{path}, line {row + 2} (qid={frame['qid'].iloc[row]!r}): {column} is "
                f"{frame[column].iloc[row]!r}, not {expected.get(column, 'a value')}"
            )
    for column in ("label", *asked):
        if column in frame:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64" if column == "label" else "float64")
    frame = frame.astype({c: "int64" for c in ("n_tokens",) if c in frame})
    twice = frame.duplicated([c for c in frame.columns if c not in ("label", *QUESTIONS)])
    if twice.any():
        row = int(twice.to_numpy().argmax())
        raise DataError(f"{path}, line {row + 2}: a second label for qid={frame['qid'].iloc[row]!r}")
    return frame


def with_human_labels(outcomes: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The outcomes of one job with what people said of its answers, as far as the file has columns of it.

    `human_label` (Int8) is a class, `human_<question>` (float64) 1 or 0; both are missing where nobody
    labelled the answer. Rows of the file for another retriever, budget, LLM or whatever else its columns name
    are left aside. Raises DataError for a qid that the dataset does not have.
    """
    labels = read_human_labels(path)
    for column in _WHICH:
        if column in labels:
            labels = labels[labels[column] == outcomes[column].iloc[0]]
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
    return outcomes.assign(human_label=outcomes["qid"].map(given["label"]).astype("Int8"))
