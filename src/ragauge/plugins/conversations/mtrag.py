"""`dataset=mtrag`: MTRAG's generation tasks as conversations, with its corpora, qrels and rewritten questions."""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require_text
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.topics import CONVERSATION, HISTORY, STANDALONE, TURN
from ragauge.datasets.fields import BadRow, listed_or_none, string
from ragauge.datasets.files import existing_file, json_rows, lines, parse_json, text_of
from ragauge.datasets.gather import FileSource, Gatherer
from ragauge.plugins.conversations.turns import is_task, task_qid, task_row

log = logging.getLogger(__name__)

_EARLIER = "earlier_evidence"
_ATTRIBUTES = (CONVERSATION, TURN, "domain", "answerability", "question_type", "multi_turn", _EARLIER)


@option("dataset/mtrag")
class MTRAG(FileSource):
    """The turns of MTRAG's conversations (Katsis et al., TACL 2025), as its generation tasks have them.

    path: a file of generation tasks, JSON Lines: the last message of `input` is the question, those before it are its
        history, `targets` the reference answers. A task that is UNANSWERABLE has no reference answer and no evidence.
    domain: a part of the name of a collection, such as clapnq; null reads the tasks of all of them.
    corpus: the passages, JSON Lines with _id (or document_id), title and text; null takes those that stand in tasks.
    qrels: BEIR's table of judged passages. Evidence then are these passages. Without it, the evidence of a task are its
        `contexts` whose feedback says that they are relevant, or all of them where none has feedback.
    rewrites: MTRAG's rewritten questions, JSON Lines with _id and text: the topics' `standalone_question`.
    The attribute `earlier_evidence` of a turn is yes or no: whether any of its evidence was that of an earlier turn.
    """

    component = "mtrag"
    version = 2

    name: str = runtime(CONF)
    path: str | Path | None = runtime(CONF)
    domain: str | None = CONF
    corpus: str | Path | None = runtime(CONF)
    qrels: str | Path | None = runtime(CONF)
    rewrites: str | Path | None = runtime(CONF)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain is not None:
            require_text("dataset.domain", self.domain, "parts of a collection's name")

    def files(self) -> Mapping[str, Path]:
        """The file `path`, and any other given files; ConfigError if one does not exist."""
        others = {key: getattr(self, key) for key in ("corpus", "qrels", "rewrites")}
        given = {"path": self.path, **{key: value for key, value in others.items() if value is not None}}
        return {key: existing_file(key, value) for key, value in given.items()}

    def load(self) -> Dataset:
        """The collection; DataError names file, line, qid and error."""
        files = self.files()
        gather = Gatherer(self)
        if "corpus" in files:
            for where, read in json_rows(files["corpus"]):
                with gather.row(where):
                    _add_document(gather, parse_json(read))
            gather.end_of_documents(files["corpus"])
        judged = _qrels(files["qrels"]) if "qrels" in files else None
        rewrites = _rewrites(files["rewrites"]) if "rewrites" in files else {}
        before: dict[str, set[str]] = {}  # by conversation: the evidence of the turns so far
        unsaid = 0  # tasks whose contexts may be what a retriever found
        for where, read in json_rows(files["path"]):
            with gather.row(where) as at:
                task = parse_json(read)
                if not isinstance(task, Mapping) or not is_task(task):
                    raise BadRow("no task of MTRAG's generation_tasks, with task_id, conversation_id and input")
                row = task_row(task)
                if self.domain is not None and self.domain not in (row["domain"] or ""):
                    continue
                at.qid = row["qid"]
                contexts = listed_or_none(task, "contexts")
                if "corpus" not in files:
                    for one in contexts:
                        if not gather.has_document(one["document_id"]):
                            _add_document(gather, one)
                if gather.full:
                    continue
                said = any("feedback" in one for one in contexts)
                unsaid += judged is None and not said and any("score" in one for one in contexts)
                docnos = row["docnos"] if judged is None else judged.get(row["qid"], [])
                if judged is None and said:
                    docnos = [one["document_id"] for one in contexts if _is_relevant(one.get("feedback") or {})]
                docnos = [] if row["unanswerable"] else docnos
                earlier = before.setdefault(row[CONVERSATION], set())
                if earlier and docnos:
                    row[_EARLIER] = "no" if earlier.isdisjoint(docnos) else "yes"
                gather.add_topic(
                    row["qid"],
                    row["question"],
                    row["references"],
                    [(docno, gather.document_text(docno)) for docno in docnos],
                    {name: row.get(name) for name in _ATTRIBUTES} | {STANDALONE: rewrites.get(row["qid"])},
                    unanswerable=row["unanswerable"],
                    history=row[HISTORY],
                )
                earlier.update(docnos)
        if unsaid:
            log.warning(
                "%s: %s tasks do not say which of their contexts are relevant, so all are evidence; if a retriever "
                "found them, give dataset.qrels", files["path"], f"{unsaid:,}",
            )  # fmt: skip
        return gather.dataset(files.get("corpus", files["path"]), files["path"])


def _add_document(gather: Gatherer, row: Any) -> None:
    """A passage of a corpus, or of a task's contexts."""
    title = string(row, "title") if row.get("title") is not None else ""
    gather.add_document(string(row, "_id" if "_id" in row else "document_id"), title, string(row, "text"))


def _is_relevant(feedback: Mapping[str, Any]) -> bool:
    """Whether the last annotator of a passage marks it as relevant."""
    said = sorted((feedback.get("relevant") or {}).values(), key=lambda one: one.get("timestamp") or 0)
    return bool(said) and said[-1].get("value") == "yes"


def _qrels(file: Path) -> dict[str, list[str]]:
    """The relevant docnos of each qid, from the table query-id, corpus-id, score."""
    found: dict[str, list[str]] = {}
    for where, line in lines(file):
        (cells,) = csv.reader([text_of(line)], delimiter="\t")
        if cells[2:] == ["score"]:
            continue
        if len(cells) != 3 or not cells[2].strip().isdigit():
            raise DataError(f"{where}: expected query-id, corpus-id and a whole number, divided by tabs")
        if int(cells[2]) > 0:
            found.setdefault(task_qid(cells[0]), []).append(cells[1])
    return found


def _rewrites(file: Path) -> dict[str, str]:
    """The rewritten question of each qid."""
    found = {}
    for where, line in json_rows(file):
        try:
            row = parse_json(line)
            found[task_qid(string(row, "_id"))] = string(row, "text").removeprefix("|user|:").strip()
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
    return found
