"""TREC run files, line by line."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from ragauge.contract.errors import DataError


def read_trec_run(path: Path) -> pd.DataFrame:
    """[qid, docno, score, line] of a run file; DataError names the line that is none, or a pair that repeats.

    Fields are divided by white space; empty lines are passed over. Lines are counted from 1.
    """
    rows: list[tuple[str, str, float, int]] = []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: not UTF-8 at byte {error.start}") from None
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 6:
            raise DataError(f"{path.name}, line {number}: {len(fields)} fields; a line is: qid Q0 docno rank score tag")
        try:
            score = float(fields[4])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise DataError(f"{path.name}, line {number}: score {fields[4]!r} is no finite number")
        rows.append((fields[0], fields[2], score, number))
    found = pd.DataFrame(rows, columns=["qid", "docno", "score", "line"])
    twice = found.duplicated(["qid", "docno"])
    if twice.any():
        row = found[twice].iloc[0]
        raise DataError(f"{path.name}, line {row['line']}: docno {row['docno']!r} stands twice for qid {row['qid']!r}")
    return found
