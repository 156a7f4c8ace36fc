"""The written files: JSON Lines that dataset=jsonl reads, rejected drafts, and a sheet for people."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.errors import ConfigError, full_disk
from ragauge.contract.visible import csv_text
from ragauge.plugins.synthesis.documents import Documents
from ragauge.plugins.synthesis.drafts import Draft
from ragauge.plugins.synthesis.rounds import Result

DECISION, COMMENT = "decision", "comment"  # the columns of the sheet that people fill in
_SHEET = ("qid", "kind", "stand_in", "question", "answer", "evidence", "documents", "round_trip_rank")


@dataclass(frozen=True)
class Files:
    """The paths of the questions, the rejected drafts, and the sheet."""

    questions: Path

    @property
    def rejected(self) -> Path:
        return self.questions.with_suffix(".rejected.jsonl")

    @property
    def sheet(self) -> Path:
        return self.questions.with_suffix(".sheet.csv")

    def refuse_existing(self, overwrite: bool) -> None:
        """ConfigError if a file exists and must not be overwritten, or its folder is a file."""
        for file in (self.questions, self.rejected, self.sheet):
            if file.is_dir():
                raise ConfigError(f"out={self.questions}: {file} is a folder")
            if file.exists() and not overwrite:
                raise ConfigError(f"out={self.questions}: {file} is there; overwrite=true writes it again")


def checked_files(out: str | None, overwrite: bool) -> Files:
    """The files of `out`; ConfigError if they exist or cannot be written."""
    if out is None or not str(out).strip():
        raise ConfigError("out is not set: give the file that questions go to, such as out=questions.jsonl")
    path = Path(out).expanduser()
    if path.suffix != ".jsonl":
        raise ConfigError(f"out={out}: allowed are names that end in .jsonl")
    files = Files(path)
    files.refuse_existing(overwrite)
    make_folder(path)
    return files


@dataclass(frozen=True)
class Provenance:
    """Fields of all records of one synthesis: its writer, its seed, and the version of ragauge."""

    model: str
    seed: int
    stand_in: bool
    version: str


def record(draft: Draft, documents: Documents, of: Provenance) -> dict[str, Any]:
    """One draft in the form of dataset=jsonl; a rejected one also has `rejected_by` and the reason."""
    written = draft.written
    unit = draft.unit
    answerable = written is not None and written.answer is not None
    return {
        "qid": draft.qid,
        **({"query": written.question} if written else {}),
        **({"answer": written.answer} if written and answerable else {}),
        **({"unanswerable": True} if draft.unanswerable else {}),
        "evidence": [
            {"docno": span.docno, "text": span.text, "start": span.start, "end": span.end}
            for span in draft.spans
        ],
        "kind": unit.kind,
        "stand_in": of.stand_in,
        "provenance": {
            "model": of.model,
            "prompt_sha256": None if draft.prompt is None else _sha256(draft.prompt),
            "seed": of.seed,
            "ragauge": of.version,
            "draft": draft.number,
            "documents": list(unit.docnos),
            **({"shared": unit.about} if unit.about else {}),
            "strata": {documents.by: [documents.in_order[docno].stratum for docno in unit.docnos]},
            "filters": draft.results,
        },
        **(
            {} if draft.rejected_by is None else {"rejected_by": draft.rejected_by, **_lost_evidence(draft)}
        ),
    }  # fmt: skip


def _lost_evidence(draft: Draft) -> dict[str, Any]:
    written = draft.written
    found = {"raw": draft.raw} if draft.raw is not None else {}
    if written is not None and written.evidence and not draft.spans:
        found["evidence_given"] = [sentence for _, sentence in written.evidence]  # type: ignore[assignment]
    return found


def write(result: Result, documents: Documents, files: Files, of: Provenance) -> list[Path]:
    """Writes each file whole or not at all; returns the nonempty ones.

    Where no question was accepted the rejected drafts alone are written.
    """
    accepted = [record(draft, documents, of) for draft in result.accepted]
    rejected = [record(draft, documents, of) for draft in result.rejected]
    texts = {files.rejected: json_lines(rejected)} if rejected else {}
    if accepted:
        texts[files.questions] = json_lines(accepted)
        texts[files.sheet] = sheet_text(accepted)
    for file in (files.rejected, files.questions, files.sheet):
        if file not in texts:
            file.unlink(missing_ok=True)  # of a run before, which is overwritten
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def sheet_text(records: Sequence[Mapping[str, Any]]) -> str:
    """The sheet: a row per question, and empty columns for decision (accept or reject) and comment."""
    rows = [
        {
            "qid": row["qid"],
            "kind": row["kind"],
            "stand_in": "yes" if row["stand_in"] else "no",
            "question": row["query"],
            "answer": row.get("answer", ""),
            "evidence": " […] ".join(part["text"] for part in row["evidence"]),
            "documents": ", ".join(row["provenance"]["documents"]),
            "round_trip_rank": row["provenance"]["filters"].get("round_trip_rank"),
            DECISION: "",
            COMMENT: "",
        }
        for row in records
    ]
    frame = pd.DataFrame(rows, columns=[*_SHEET, DECISION, COMMENT])
    return csv_text(frame.astype({"round_trip_rank": "Int64"}))


def write_text(file: Path, text: str) -> None:
    """Writes a file whole or not at all; ConfigError if it cannot, OSError if the disk is full."""
    make_folder(file)
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        if full_disk(error):
            raise
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def make_folder(file: Path) -> None:
    """Makes the folder of a file; ConfigError if it is not writable."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.filename}: {error.strerror}") from error
    if not os.access(file.parent, os.W_OK):
        raise ConfigError(f"{file} cannot be written: no right to write into its folder")


def json_lines(records: Sequence[Mapping[str, Any]]) -> str:
    """The records as JSON Lines."""
    return "".join(f"{_json(row)}\n" for row in records)


def _json(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character in a reply
        return json.dumps(row)
    return text


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
