"""The sheet filled in by people: their evidence for a random sample of topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.labels import read_texts, require_columns
from ragauge.plugins.annotate.grading import GRADES
from ragauge.plugins.annotate.records import SEPARATOR
from ragauge.texts.quotes import find_sentence

_MIN_GRADE = 2  # of a row that does not say
_NEEDED = ("qid", "docno", "grade", "quotes")


@dataclass(frozen=True)
class Row:
    """A sheet row graded by a person. quotes: theirs, else those of the evaluator; number: from 1.

    answers: whether the grade reaches the least of one that answers.
    """

    number: int
    qid: str
    docno: str
    grade: int
    answers: bool
    quotes: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """The rows of completed topics, by qid; unfinished: topics with an ungraded row."""

    file: Path
    rows: Mapping[str, list[Row]]
    unfinished: int


def read_sheet(path: str | Path) -> Sheet:
    """The sheet; ConfigError if the file does not exist, DataError names file, row and allowed values.

    A row without `quotes` has those in `model_quotes`. A row that people added needs qid, docno, grade and quotes; its
    `min_grade` is 2 unless it says otherwise.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise ConfigError(f"human_evidence={path}: there is no such file")
    table = read_texts(file)
    require_columns(file, table, _NEEDED, None, f"it has {', '.join(map(str, table))}")
    rows: dict[str, list[Row]] = {}
    unfinished: set[str] = set()
    for number, cells in enumerate(table.to_dict("records"), start=1):
        qid, docno, given = (str(cells[name] or "").strip() for name in ("qid", "docno", "grade"))
        if not qid and not given:
            continue
        if not given:
            unfinished.add(qid)
            continue
        if given not in {str(one) for one in GRADES}:
            raise DataError(
                f"{file}, row {number}, qid {qid!r}: grade is {given!r}; allowed are 0, 1, 2, 3 and nothing"
            )
        own = str(cells["quotes"] or cells.get("model_quotes") or "").strip()
        quotes = tuple(one.strip() for one in own.split(SEPARATOR.strip()) if one.strip())
        least = str(cells.get("min_grade") or _MIN_GRADE).strip()
        if least not in {str(one) for one in GRADES[1:]}:
            raise DataError(f"{file}, row {number}, qid {qid!r}: min_grade is {least!r}; allowed are 1, 2 and 3")
        rows.setdefault(qid, []).append(Row(number, qid, docno, int(given), int(given) >= int(least), quotes))
    done = {qid: of_topic for qid, of_topic in rows.items() if qid not in unfinished}
    if not done:
        raise DataError(f"{file}: no topic has a grade in every row; the column grade takes 0, 1, 2 and 3")
    return Sheet(file, done, len(unfinished))


def evidence_of(sheet: Sheet, docs: pd.DataFrame, qids: pd.Series) -> pd.DataFrame:
    """Frame `evidence` of the sheet's topics, each text once; topics without evidence have no row.

    A row that answers brings its quotes, which stand in its document character by character, white space aside.
    DataError that names the row of a quote that does not, of a grade without quotes, of an unknown qid or docno.
    """
    texts = dict(zip(docs["docno"], docs["text"], strict=True))
    known = set(qids)
    found = []
    for qid, rows in sheet.rows.items():
        parts: dict[str, str] = {}
        for row in rows:
            where = f"{sheet.file}, row {row.number}, qid {qid!r}"
            if qid not in known:
                raise DataError(f"{where}: the dataset has no such topic")
            if row.docno not in texts:
                raise DataError(f"{where}: docno {row.docno!r} is no document of the dataset")
            if not row.answers:
                continue
            if not row.quotes:
                raise DataError(f"{where}: grade {row.grade} takes the sentences that answer in the column quotes")
            for quote in row.quotes:
                text = texts[row.docno]
                at = find_sentence(quote, text) or find_sentence(quote.removeprefix("'"), text)
                if at is None:
                    raise DataError(
                        f"{where}: {quote!r} does not stand in document {row.docno!r}; allowed are its sentences "
                        f"(three words or more) as they stand there, several with{SEPARATOR}between them"
                    )
                quoted = text[slice(*at)]
                parts.setdefault(" ".join(quoted.split()), row.docno)
        kept = [key for key in parts if not any(key in other and key != other for other in parts)]
        found += [(qid, number, parts[key], key) for number, key in enumerate(kept)]
    frame = pd.DataFrame(found, columns=["qid", "part", "docno", "text"])
    return frame.astype({"qid": "str", "part": "int64", "docno": "str", "text": "str"})
