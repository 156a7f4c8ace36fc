"""Applies the sheet that people filled in: keeps the accepted questions."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.visible import spreadsheet_cell, visible
from ragauge.datasets.labels import read_texts, require_columns
from ragauge.plugins.synthesis.records import COMMENT, DECISION, write_text

log = logging.getLogger(__name__)

_ACCEPT, _REJECT = "accept", "reject"


@dataclass(frozen=True)
class Applied:
    """The questions of a file by decision: `undecided` ones have no decision, or no row in the sheet."""

    accepted: int
    rejected: int
    undecided: int


def apply_sheet(sheet: str, questions: str | None, out: str | None, overwrite: bool) -> Applied:
    """Writes into `out` the questions that the sheet accepts, unchanged, with the decision.

    ConfigError for a path that cannot be used; DataError that names file, row and what is allowed.
    """
    if questions is None:
        raise ConfigError(f"sheet={sheet}: give questions=<the file of questions that it is the sheet of>")
    if out is None or not out.strip():
        raise ConfigError("out is not set: give the file that the accepted questions go to")
    for key, value in (("sheet", sheet), ("questions", questions)):
        if not Path(value).is_file():
            raise ConfigError(f"{key}={value}: there is no such file")
    target = Path(out)
    if target.exists() and target.samefile(questions):
        raise ConfigError(f"out={out} is the file of questions itself: give another")
    if target.exists() and not overwrite:
        raise ConfigError(f"out={out} is there; overwrite=true writes it again")
    rows = _questions(Path(questions))
    decided = _decisions(Path(sheet), rows)
    kept = []
    for qid, row in rows.items():
        decision, comment = decided.get(qid, ("", ""))
        if decision == _ACCEPT:
            kept.append({**row, "review": {"decision": decision, "comment": comment}})
    n_rejected = sum(decision == _REJECT for decision, _ in decided.values())
    if not kept:
        raise DataError(f"{sheet}: it accepts no question; the column {DECISION!r} takes accept and reject")
    write_text(target, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in kept))
    return Applied(len(kept), n_rejected, len(rows) - len(kept) - n_rejected)


def _questions(file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            qid, _ = row["qid"], row["query"]
        except (ValueError, RecursionError, TypeError, KeyError):
            raise DataError(f"{file}, line {number}: not a JSON object with qid and query") from None
        if not isinstance(qid, str) or qid in found:
            raise DataError(f"{file}, line {number}: qid {qid!r} is no text, or stands twice")
        found[qid] = row
    return found


def _decisions(file: Path, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """The decision ("accept", "reject" or "") and the comment by qid."""
    table = read_texts(file)
    require_columns(file, table, ("qid", DECISION), None, f"it has {', '.join(map(str, table))}")
    found: dict[str, tuple[str, str]] = {}
    changed = 0
    for number, row in enumerate(table.to_dict("records"), start=1):
        qid, decision = (str(row[name] or "").strip() for name in ("qid", DECISION))
        if not qid and not decision:
            continue
        if qid not in rows or qid in found:
            what = "stands twice" if qid in found else "is no question of the file"
            raise DataError(f"{file}, row {number}: qid {qid!r} {what}")
        decision = decision.casefold()
        if decision not in (_ACCEPT, _REJECT, ""):
            raise DataError(
                f"{file}, row {number}, qid {qid!r}: {DECISION} is {decision!r}; allowed are accept, reject "
                "and an empty cell"
            )
        shown = spreadsheet_cell(visible(rows[qid]["query"], one_line=True))
        changed += "question" in row and row["question"] != shown
        found[qid] = (decision, str(row.get(COMMENT) or "").strip())
    if changed:
        log.warning("%s: %d rows have another question than the file of questions; its texts are kept", file, changed)
    return found
