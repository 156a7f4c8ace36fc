"""The written files: the topics with their evidence, graded qrels, the whole pool, the sheet for people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import csv_text
from ragauge.estimate.sampling import choose_topics, random_order
from ragauge.plugins.annotate.grading import Graded, Part

BY = "evidence_by"  # attribute of every topic
DATASET, EVALUATOR = "dataset", "evaluator"
SEPARATOR = " | "  # between the quotes in a cell
_OWN = ("qid", "query", "answer", "answers", "unanswerable", "wrong_answers", BY)
_SHEET = (
    "qid", "question", "answer", "passage", "docno", "rank", "text", "model_grade", "model_quotes", "min_grade",
    "grade", "quotes", "comment",
)  # fmt: skip


@dataclass(frozen=True)
class Files:
    """The paths of the topics and of the files beside them."""

    topics: Path
    corpus: Path | None

    @property
    def qrels(self) -> Path:
        return self.topics.with_suffix(".qrels")

    @property
    def pool(self) -> Path:
        return self.topics.with_suffix(".pool.jsonl")

    @property
    def sheet(self) -> Path:
        return self.topics.with_suffix(".sheet.csv")


def checked_files(out: str | None, corpus: str | None, overwrite: bool) -> Files:
    """The files of `out` and `corpus`; ConfigError if one exists, is a folder, or has another ending."""
    if out is None or not out.strip():
        raise ConfigError("out is not set: give the file that topics and evidence go to, such as out=annotated.jsonl")
    for key, name in (("out", out), ("corpus", corpus)):
        if name is not None and Path(name).suffix != ".jsonl":
            raise ConfigError(f"{key}={name}: allowed are names that end in .jsonl")
    files = Files(Path(out).expanduser(), None if corpus is None else Path(corpus).expanduser())
    for file in (files.topics, files.qrels, files.pool, files.sheet, files.corpus):
        if file is None:
            continue
        if file.is_dir():
            raise ConfigError(f"out={out}: {file} is a folder")
        if file.exists() and not overwrite:
            raise ConfigError(f"out={out}: {file} is there; overwrite=true writes it again")
    return files


@dataclass(frozen=True)
class Provenance:
    """The evaluator, its prompt, the pool and the version, shared by all annotated topics."""

    model: str
    prompt: str
    pool: Sequence[str]
    depth: int
    min_grade: int
    version: str

    def of(self, graded: Sequence[Graded]) -> dict[str, Any]:
        """The entry of one topic, with its number of graded passages."""
        return {
            "model": self.model,
            "prompt_sha256": sha256(self.prompt),
            "retrievers": list(self.pool),
            "depth": self.depth,
            "min_grade": self.min_grade,
            "passages": len(graded),
            "ungraded": sum(one.grade is None for one in graded),
            "unverified_quotes": sum(len(one.unverified) for one in graded),
            "ragauge": self.version,
        }


def topic_records(
    topics: pd.DataFrame,
    evidence: pd.DataFrame,
    graded: Mapping[str, Sequence[Graded]],
    parts: Mapping[str, Sequence[Part]],
    provenance: Provenance,
) -> list[dict[str, Any]]:
    """All topics in the form of dataset=jsonl; topics not annotated keep their evidence."""
    given = {str(qid): rows for qid, rows in evidence.groupby("qid")}
    records = []
    for row in topics.to_dict("records"):
        qid = str(row["qid"])
        record: dict[str, Any] = {"qid": qid, "query": row["query"]}
        if _known(row.get("answers")) and len(row["answers"]) > 1:
            record["answers"] = list(row["answers"])
        elif _known(row["answer"]):
            record["answer"] = row["answer"]
        if row.get("unanswerable") is True:
            record["unanswerable"] = True
        if _known(row.get("wrong_answers")) and len(row["wrong_answers"]):
            record["wrong_answers"] = list(row["wrong_answers"])
        record |= {str(key): value for key, value in row.items() if key not in _OWN and _known(value)}
        if qid in graded:
            made = [_of_part(part) for part in parts[qid]]
            texts = {part.docno for part in parts[qid]}
            documents = _documents(graded[qid], provenance.min_grade)
            made += [{"docno": docno, "relevance": grade} for docno, grade in documents.items() if docno not in texts]
            record |= {"evidence": made, BY: EVALUATOR, "provenance": provenance.of(graded[qid])}
        else:
            record |= {"evidence": _given(given.get(qid)), BY: DATASET}
        records.append(record)
    return records


def _known(value: Any) -> bool:
    return value is not None and not (pd.api.types.is_scalar(value) and pd.isna(value))


def _of_part(part: Part) -> dict[str, Any]:
    return {
        "docno": part.docno,
        "text": part.text,
        "relevance": part.grade,
        "start": part.start,
        "end": part.start + len(part.text),
        "passages": list(part.passages),
        "ranks": dict(part.ranks),
        "prompt_sha256": [sha256(prompt) for prompt in part.prompts],
    }


def _given(rows: pd.DataFrame | None) -> list[dict[str, Any]]:
    if rows is None:
        return []
    columns = [column for column in ("docno", "text", "relevance") if column in rows]
    return [
        {str(key): int(value) if key == "relevance" else value for key, value in row.items() if _known(value)}
        for row in rows[columns].to_dict("records")
    ]


def _documents(graded: Sequence[Graded], least: int) -> dict[str, int]:
    """The highest grade of each document that has a passage of grade `least` or above."""
    found: dict[str, int] = {}
    for one in graded:
        if one.grade is not None and one.grade >= least:
            found[one.passage.docno] = max(one.grade, found.get(one.passage.docno, 0))
    return found


def qrels_text(graded: Mapping[str, Sequence[Graded]]) -> str:
    """TREC's qrels of all graded documents, including grade 0; a document has its best passage's grade."""
    rows = [(qid, *one) for qid, of_topic in graded.items() for one in _documents(of_topic, 0).items()]
    return "".join(f"{qid} 0 {docno} {grade}\n" for qid, docno, grade in rows)


def pool_records(graded: Mapping[str, Sequence[Graded]]) -> list[dict[str, Any]]:
    """Every passage of every pool: its ranks, its grade (null if the reply is missing), its quotes."""
    return [
        {
            "qid": qid,
            "passage": one.passage.passage,
            "docno": one.passage.docno,
            "ranks": dict(one.passage.ranks),
            "grade": one.grade,
            "quotes": one.quotes,
            "unverified": list(one.unverified),
            "status": one.status,
            "prompt_sha256": sha256(one.prompt),
        }
        for qid, of_topic in graded.items()
        for one in of_topic
    ]


def sheet_text(
    topics: pd.DataFrame, graded: Mapping[str, Sequence[Graded]], n: int, seed: int, min_grade: int = 2
) -> str:
    """The sheet for people: the passages of n uniformly drawn topics, the topics in random order.

    A file that people filled from the top is therefore a random sample, too.
    """
    qids = [qid for qid, of_topic in graded.items() if of_topic]
    if len(qids) > n:
        drawn = choose_topics(pd.Series(0.5, index=pd.Index(qids)), max(n, 2), seed=seed)
        qids = drawn.loc[drawn["judged"], "qid"].tolist()
    qids = [qids[at] for at in random_order(qids, seed)]
    of = topics.set_index("qid")
    rows = [
        {
            "qid": qid,
            "question": of.at[qid, "query"],
            "answer": of.at[qid, "answer"],
            "passage": one.passage.passage,
            "docno": one.passage.docno,
            "rank": one.passage.rank,
            "text": one.passage.text,
            "model_grade": one.grade,
            "model_quotes": SEPARATOR.join(one.quotes),
            "min_grade": min_grade,
        }
        for qid in qids
        for one in graded[qid]
    ]
    return csv_text(pd.DataFrame(rows, columns=list(_SHEET)).astype({"model_grade": "Int64"}))


def corpus_text(docs: pd.DataFrame) -> str:
    """The documents in the form of dataset=jsonl."""
    rows = zip(docs["docno"], docs["title"], docs["text"], strict=True)
    return "".join(
        json.dumps({"docno": docno, "title": title, "text": text}, ensure_ascii=False) + "\n"
        for docno, title, text in rows
    )


def sha256(text: str) -> str:
    """The digest of a prompt."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
