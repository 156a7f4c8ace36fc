"""The JSON of HotpotQA and 2WikiMultihopQA: paragraphs of contexts are documents, supporting facts evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import (
    Attribute,
    BadRow,
    listed,
    listed_or_none,
    optional_string,
    string,
    strings,
    valid_string,
)
from ragauge.datasets.files import existing_file, json_list, json_rows, parsed
from ragauge.datasets.gather import FileSource, Gatherer, Paragraphs

AnswersOf = Callable[[Mapping[str, Any]], list[str]]


@option("dataset/hotpotqa")
class HotpotQA(FileSource):
    """HotpotQA (Yang et al., 2018) from `path`, with more passages from `extra`, a list of {title, text}.

    The documents are the distinct paragraphs (title and text) of all contexts, those of dropped or unread topics
    included. After them come the extra passages that are not among them, all in file order.
    """

    component = "hotpotqa"
    version = 1

    name: str = runtime(CONF)
    path: str | Path | None = runtime(CONF)
    extra: str | Path | None = runtime(CONF)

    def files(self) -> Mapping[str, Path]:
        """The files `path` and, if set, `extra`; ConfigError if one does not exist."""
        files = {"path": existing_file("path", self.path)}
        if self.extra is not None:
            files["extra"] = existing_file("extra", self.extra)
        return files

    def load(self) -> Dataset:
        """The collection; DataError names file, row (from 0), qid and error."""
        files = self.files()
        gather = Gatherer(self)
        corpus = Paragraphs(gather)
        questions = []
        for number, row in enumerate(json_list(files["path"])):
            where = f"{files['path']}, row {number}"
            with gather.row(where) as at:
                at.qid = qid = string(row, "_id")
                questions.append((where, qid, row, self._add_context(corpus, row)))
        if "extra" in files:
            for number, row in enumerate(json_list(files["extra"])):
                with gather.row(f"{files['extra']}, row {number}"):
                    corpus.add(string(row, "title"), string(row, "text"))
        answers_of = self._answers_of(files, [row for _, _, row, _ in questions])
        for where, qid, row, paragraphs in questions:
            if gather.full:
                break
            with gather.row(where) as at:
                at.qid = qid
                facts = [_supporting_fact(fact, paragraphs) for fact in self._facts(row)]
                answers = answers_of(row)
                gather.add_topic(qid, string(row, "question"), answers, facts, self._attributes(row))
        return gather.dataset(files["path"], files["path"])

    def _add_context(self, corpus: Paragraphs, row: Mapping[str, Any]) -> dict[str, tuple[str, list[str]]]:
        """Docno and sentences of each paragraph of a question's context, by title."""
        paragraphs = [_paragraph(entry) for entry in listed(row, "context")]
        named: dict[str, tuple[str, list[str]]] = {}
        for title, sentences in paragraphs:
            docno = corpus.add(title, self._text(sentences))
            named.setdefault(title, (docno, sentences))
        return named

    def _text(self, sentences: Sequence[str]) -> str:
        """A paragraph's text: sentences bring their own leading space, if any."""
        return "".join(sentences)

    def _facts(self, row: Mapping[str, Any]) -> list[Any]:
        facts = listed(row, "supporting_facts")
        if not facts:
            raise BadRow("the topic has no evidence")
        return facts

    def _answers_of(self, files: Mapping[str, Path], rows: Sequence[Mapping[str, Any]]) -> AnswersOf:
        """A function that returns the reference answers of a row."""
        return lambda row: [string(row, "answer")]

    def _attributes(self, row: Mapping[str, Any]) -> dict[str, Attribute]:
        return {key: string(row, key) for key in ("type", "level") if row.get(key) is not None}


@option("dataset/2wikimultihopqa")
class TwoWikiMultihopQA(HotpotQA):
    """2WikiMultihopQA (Ho et al., 2020) from `path`, with other names of the answers from `aliases`.

    Documents and evidence are as in HotpotQA. The test file has neither answers nor supporting facts.
    """

    component = "2wikimultihopqa"
    version = 1

    name: str = runtime(CONF)
    aliases: str | Path | None = runtime(CONF)

    def files(self) -> Mapping[str, Path]:
        """The files `path` and, if set, `extra` and `aliases`; ConfigError if one does not exist."""
        files = dict(super().files())
        if self.aliases is not None:
            files["aliases"] = existing_file("aliases", self.aliases)
        return files

    def _text(self, sentences: Sequence[str]) -> str:
        """A paragraph's text: unlike HotpotQA's, its sentences lack the space between them."""
        text = ""
        for sentence in sentences:
            apart = not text or text[-1].isspace() or sentence[:1].isspace()
            text += sentence if apart else f" {sentence}"
        return text

    def _facts(self, row: Mapping[str, Any]) -> list[Any]:
        return listed_or_none(row, "supporting_facts")

    def _answers_of(self, files: Mapping[str, Path], rows: Sequence[Mapping[str, Any]]) -> AnswersOf:
        wanted = {row.get("answer_id") for row in rows}
        others = _aliases(files["aliases"], wanted) if "aliases" in files else {}

        def answers(row: Mapping[str, Any]) -> list[str]:
            if row.get("answer") is None:
                return []
            known = optional_string(row, "answer_id")
            return [string(row, "answer"), *(others.get(known, []) if known is not None else [])]

        return answers

    def _attributes(self, row: Mapping[str, Any]) -> dict[str, Attribute]:
        """The question's type, number of facts, and relations in order ("director + date of death")."""
        relations = [_relation(number, fact) for number, fact in enumerate(listed_or_none(row, "evidences"))]
        facts: dict[str, Attribute] = {}
        if relations:
            facts = {"facts": len(relations), "relations": " + ".join(relations)}
        return {"type": optional_string(row, "type"), **facts}


def _paragraph(entry: Any) -> tuple[str, list[str]]:
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], list)):
        raise BadRow("an entry of 'context' is not a [title, [sentences]]")
    title, sentences = entry
    return valid_string(title, "a title in 'context'"), [
        valid_string(sentence, f"a sentence of {title!r}") for sentence in sentences
    ]


def _supporting_fact(fact: Any, paragraphs: Mapping[str, tuple[str, list[str]]]) -> tuple[str, str]:
    """Docno and sentence of a [title, sentence number]."""
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


def _relation(number: int, fact: Any) -> str:
    if not (isinstance(fact, list) and len(fact) == 3 and all(isinstance(part, str) for part in fact)):
        raise BadRow(f"entry {number} of 'evidences' is not a [subject, relation, object]: {fact!r}")
    return str(fact[1])


def _aliases(file: Path, wanted: set[Any]) -> dict[str, list[str]]:
    """Aliases and demonyms of the wanted ids, from lines {Q_id, aliases, demonyms}."""
    found = {}
    for where, line in json_rows(file):
        try:
            row = parsed(line)
            known = string(row, "Q_id")
            if known in wanted:
                names = strings(row, "aliases") + strings(row, "demonyms")
                found[known] = [name for name in names if name.strip()]
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
    return found
