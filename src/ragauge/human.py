"""Labels that people gave: read from a file, laid beside the judge's, and what they say of all topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ragauge.errors import ConfigError, DataError
from ragauge.estimate import Agreement, asked, judge_agreement, ppi_shares
from ragauge.frames import JUDGE_CLASSES

# Columns of the file that say which answer was labelled; those that are there must fit a row.
_WHICH = ("retriever", "n_tokens", "dataset", "chunker", "llm")


def read_human_labels(path: Path) -> pd.DataFrame:
    """A CSV file of human labels: qid, label (1..5) and of retriever, n_tokens, dataset, chunker, llm any.

    All columns but n_tokens and label are str. Raises ConfigError where there is no such file, DataError
    naming file, line and column of what is wrong.
    """
    if not path.is_file():
        raise ConfigError(f"human_labels: no file {path}")
    try:
        frame = pd.read_csv(path, dtype="str", keep_default_na=False, encoding="utf-8-sig")
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path}: no readable CSV: {error}") from error
    unknown = [c for c in frame.columns if c not in ("qid", *_WHICH, "label")]
    absent = [c for c in ("qid", "label") if c not in frame.columns]
    if unknown or absent:
        wrong = f"column {unknown[0]!r} is unknown" if unknown else f"column {absent[0]!r} is missing"
        raise DataError(f"{path}: {wrong}; there must be qid and label, there may be {', '.join(_WHICH)}")
    classes = {str(c) for c in JUDGE_CLASSES}
    expected = {"label": "a judge class 1..5", "n_tokens": "a number of tokens"}
    for column in frame.columns:
        good = frame[column].isin(classes) if column == "label" else frame[column].ne("")
        if column == "n_tokens":
            good = frame[column].str.fullmatch(r"\d{1,7}")
        if not good.all():
            row = int((~good).to_numpy().argmax())
            raise DataError(
                f"{path}, line {row + 2} (qid={frame['qid'].iloc[row]!r}): {column} is "
                f"{frame[column].iloc[row]!r}, not {expected.get(column, 'a value')}"
            )
    frame = frame.astype({c: "int64" for c in ("n_tokens", "label") if c in frame})
    twice = frame.duplicated([c for c in frame.columns if c != "label"])
    if twice.any():
        row = int(twice.to_numpy().argmax())
        raise DataError(f"{path}, line {row + 2}: a second label for qid={frame['qid'].iloc[row]!r}")
    return frame


def with_human_labels(outcomes: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The outcomes of one job with a column `human_label` (Int8, missing where nobody labelled the answer).

    Rows of the file for another retriever, budget, dataset, chunker or LLM are left aside. Raises DataError
    for a qid that the dataset does not have.
    """
    labels = read_human_labels(path)
    for column in _WHICH:
        if column in labels:
            labels = labels[labels[column] == outcomes[column].iloc[0]]
    unknown = labels.loc[~labels["qid"].isin(outcomes["qid"]), "qid"]
    if len(unknown):
        raise DataError(f"{path}: qid {unknown.iloc[0]!r} is no topic of the dataset")
    given = labels.set_index("qid")["label"]
    return outcomes.assign(human_label=outcomes["qid"].map(given).astype("Int8"))


def human_agreement(
    outcomes: pd.DataFrame, n_boot: int, seed: int, keys: Sequence[str] = ("qid",)
) -> Agreement:
    """How far `label` agrees with `human_label` where an answer has both; `keys` tell the rows apart.

    An answer that was left out of a sample to judge has no verdict to compare.
    """
    rows = asked(outcomes)
    people = rows.loc[rows["human_label"].notna(), [*keys, "human_label"]]
    return judge_agreement(rows, people.rename(columns={"human_label": "label"}), keys, n_boot, seed)


def human_shares(outcomes: pd.DataFrame) -> pd.DataFrame | None:
    """Class shares of all topics as people would judge them (see `ppi_shares`), from the labels of a few.

    The judge's verdict on every topic is the prediction. The labelled topics are taken for a random draw.
    None with fewer than two of them, and where the judge saw a sample only.
    """
    labelled = outcomes["human_label"].notna()
    if len(asked(outcomes)) < len(outcomes) or outcomes.loc[labelled, "qid"].nunique() < 2:
        return None
    verdicts = {f"p{c}": outcomes["label"].eq(c).fillna(False).astype(float) for c in JUDGE_CLASSES}
    frame = outcomes[["qid"]].assign(label=outcomes["human_label"], judged=labelled, **verdicts)
    return ppi_shares(frame)
