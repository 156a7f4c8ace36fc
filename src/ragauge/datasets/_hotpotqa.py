"""HotpotQA's own JSON: the paragraphs of all contexts are the documents, supporting facts the evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset
from ragauge.datasets._gather import (
    PASSAGE_MARK,
    BadRow,
    FileSource,
    Gatherer,
    existing_file,
    optional_columns,
    string,
    valid_string,
)


@dataclass(frozen=True)
class HotpotQA(FileSource):
    """HotpotQA (Yang et al., 2018) from `path`, with more passages from `extra`, a list of {title, text}.

    The documents are the distinct paragraphs (title and text) of all contexts, those of dropped or unread
    topics included, then the extra passages that are not among them, all in file order.
    """

    component: ClassVar[str] = "hotpotqa"
    version: ClassVar[int] = 1

    name: str = runtime("hotpotqa")
    path: str | Path | None = runtime(None)
    extra: str | Path | None = runtime(None)

    def files(self) -> Mapping[str, Path]:
        """The files `path` and, where set, `extra`; ConfigError if one is not there."""
        files = {"path": existing_file("path", self.path)}
        if self.extra is not None:
            files["extra"] = existing_file("extra", self.extra)
        return files

    def load(self) -> Dataset:
        """The collection; DataError names file, row (from 0), qid and what is wrong."""
        files = self.files()
        gather = Gatherer(self)
        corpus = _Corpus(gather)
        questions = []
        for number, row in enumerate(_read_list(files["path"])):
            where = f"{files['path']}, row {number}"
            with gather.row(where) as at:
                at.qid = qid = string(row, "_id")
                questions.append((where, qid, row, corpus.add_context(row)))
        if "extra" in files:
            for number, row in enumerate(_read_list(files["extra"])):
                with gather.row(f"{files['extra']}, row {number}"):
                    corpus.add(string(row, "title"), string(row, "text"))
        for where, qid, row, paragraphs in questions:
            if gather.full:
                break
            with gather.row(where) as at:
                at.qid = qid
                facts = [_supporting_fact(fact, paragraphs) for fact in _list(row, "supporting_facts")]
                if not facts:
                    raise BadRow("the topic has no evidence")
                gather.add_topic(
                    qid, string(row, "question"), string(row, "answer"), facts, optional_columns(row)
                )
        return gather.dataset(files["path"], files["path"])


class _Corpus:
    """Gives every distinct paragraph a docno that is read off its title."""

    def __init__(self, gather: Gatherer) -> None:
        self._gather = gather
        self._docnos: dict[tuple[str, str], str] = {}
        self._titled: dict[str, int] = {}  # how many paragraphs a slug has named so far

    def add_context(self, row: Mapping[str, Any]) -> dict[str, tuple[str, list[str]]]:
        """Docno and sentences of each paragraph of a question's context, by title."""
        paragraphs = [_paragraph(entry) for entry in _list(row, "context")]
        named: dict[str, tuple[str, list[str]]] = {}
        for title, sentences in paragraphs:
            # Sentences bring their own leading space, and where one has none there was none in the page.
            docno = self.add(title, "".join(sentences))
            named.setdefault(title, (docno, sentences))
        return named

    def add(self, title: str, text: str) -> str:
        """The docno of the paragraph, which becomes a document if it is new."""
        known = self._docnos.get((title, text))
        if known is not None:
            return known
        slug = re.sub(r"[\s\0]+", "_", title.strip()).replace(PASSAGE_MARK, "%25p") or "untitled"
        docno = slug
        while self._gather.has_document(docno):
            self._titled[slug] = self._titled.get(slug, 1) + 1
            docno = f"{slug}~{self._titled[slug]}"
        self._gather.add_document(docno, title, text)
        self._docnos[title, text] = docno
        return docno


def _read_list(file: Path) -> list[Any]:
    try:
        rows = json.loads(file.read_bytes())
    except ValueError as error:  # no JSON, or no UTF-8
        raise DataError(f"{file}: not a JSON file: {error}") from None
    if not isinstance(rows, list):
        raise DataError(f"{file}: expected a JSON list of objects, found {type(rows).__name__}")
    return rows


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(row.get(key), list):
        raise BadRow(f"key {key!r} {'is not a list' if key in row else 'is missing'}")
    return list(row[key])


def _paragraph(entry: Any) -> tuple[str, list[str]]:
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], list)):
        raise BadRow("an entry of 'context' is not a [title, [sentences]]")
    title, sentences = entry
    return valid_string(title, "a title in 'context'"), [
        valid_string(sentence, f"a sentence of {title!r}") for sentence in sentences
    ]


def _supporting_fact(fact: Any, paragraphs: Mapping[str, tuple[str, list[str]]]) -> tuple[str, str]:
    """Docno and sentence that a [title, sentence number] points to."""
    if not (isinstance(fact, list) and len(fact) == 2 and isinstance(fact[0], str) and type(fact[1]) is int):
        raise BadRow(f"supporting fact {fact!r} is not a [title, sentence number]")
    title, number = fact
    if title not in paragraphs:
        raise BadRow(f"supporting fact {fact!r}: no paragraph of the context has that title")
    docno, sentences = paragraphs[title]
    if not 0 <= number < len(sentences):
        raise BadRow(f"supporting fact {fact!r} points past its paragraph of {len(sentences)} sentences")
    if not sentences[number].strip():
        raise BadRow(f"supporting fact {fact!r} points to an empty sentence")
    return docno, sentences[number]
