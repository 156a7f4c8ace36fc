"""2WikiMultihopQA: HotpotQA's shape with facts as triples, and the answers' aliases in another file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.datasets._fields import listed_or_none, optional_string, strings
from ragauge.datasets._gather import Attribute, BadRow, existing_file, string
from ragauge.datasets._hotpotqa import AnswersOf, HotpotQA
from ragauge.datasets._lines import json_rows
from ragauge.datasets._tables import parsed


@dataclass(frozen=True)
class TwoWikiMultihopQA(HotpotQA):
    """2WikiMultihopQA (Ho et al., 2020) from `path`, with other names of the answers from `aliases`.

    Documents and evidence are as in HotpotQA. The test file has neither answers nor supporting facts.
    """

    component: ClassVar[str] = "2wikimultihopqa"
    version: ClassVar[int] = 1

    name: str = runtime("2wikimultihopqa")
    aliases: str | Path | None = runtime(None)

    def files(self) -> Mapping[str, Path]:
        """The files `path` and, where set, `extra` and `aliases`; ConfigError if one is not there."""
        files = dict(super().files())
        if self.aliases is not None:
            files["aliases"] = existing_file("aliases", self.aliases)
        return files

    def _text(self, sentences: Sequence[str]) -> str:
        """A paragraph's text: unlike HotpotQA's, the sentences have lost the space between them."""
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
        """Its type, the number of facts, and their relations in order ("director + date of death")."""
        relations = [_relation(number, fact) for number, fact in enumerate(listed_or_none(row, "evidences"))]
        facts: dict[str, Attribute] = {}
        if relations:
            facts = {"facts": len(relations), "relations": " + ".join(relations)}
        return {"type": optional_string(row, "type"), **facts}


def _relation(number: int, fact: Any) -> str:
    if not (isinstance(fact, list) and len(fact) == 3 and all(isinstance(part, str) for part in fact)):
        raise BadRow(f"entry {number} of 'evidences' is not a [subject, relation, object]: {fact!r}")
    return str(fact[1])


def _aliases(file: Path, wanted: set[Any]) -> dict[str, list[str]]:
    """Aliases and demonyms of the wanted ids, from a line {Q_id, aliases, demonyms} each."""
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
