"""`rewriter=recorded`: passages or paraphrases written elsewhere, from a file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ragauge.contract.checks import require, require_choice, require_flag, require_number
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Rewriter
from ragauge.datasets import BadRow, recordings
from ragauge.plugins.rewriting.hyde import passage_rows
from ragauge.retrieval.queries import distinct
from ragauge.retrieval.searching import queries_frame
from ragauge.texts.words import has_words

log = logging.getLogger(__name__)

_KEYS = {"passage": "passage", "passages": "passage", "query": "query", "queries": "query"}


@option("rewriter/recorded")
class Recorded(Rewriter):
    """Texts for each topic from a JSON Lines file: {"qid", "passage"} or {"qid", "query"}, a line each.

    `passages` and `queries` are lists of them; several lines of one qid add up. Passages are one search, as
    `hyde` has them; queries a search each, as in `multi_query`.
    role: `passage` or `query`, what the texts are taken for; None goes by the file's key.
    with_question: the question is searched for, too. union, rrf_constant: see `MultiQuery`.
    """

    component = "recorded"
    kind = "recorded"

    path: str | Path | None = runtime(CONF)
    role: Literal["passage", "query"] | None = CONF
    with_question: bool = CONF
    union: Literal["rrf", "first_seen"] = CONF
    rrf_constant: float = CONF

    def __post_init__(self) -> None:
        require("rewriter.role", self.role, self.role in (None, "passage", "query"), "passage, query, null")
        require_flag("rewriter.with_question", self.with_question)
        require_choice("rewriter.union", self.union, ("rrf", "first_seen"))
        require_number("rewriter.rrf_constant", self.rrf_constant, 0)

    def files(self) -> Mapping[str, Path]:
        """The file; ConfigError if it does not exist."""
        if self.path is None or not str(self.path).strip():
            raise ConfigError("rewriter.path is not set: give the path of a JSON Lines file")
        path = Path(self.path).expanduser()
        if not path.is_file():
            raise ConfigError(f"rewriter.path={self.path}: there is no such file")
        return {"rewritten": path}

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """The queries of every topic; `origin` is question or recorded, failed if the file has none.

        DataError, which names file and line, for a row that cannot be used, and for a file without any of
        the topics.
        """
        path = self.files()["rewritten"]
        role, texts = _read(path, self.role)
        lost = [qid for qid in topics["qid"] if qid not in texts]
        if len(lost) == len(topics):
            raise DataError(f"{path}: no line is of a topic of this dataset, such as qid={lost[0]!r}")
        if lost:
            counts = f"{len(lost)} of {len(topics)}"
            log.warning(
                "recorded: %s topics, such as qid=%r, are not in %s; their question is searched",
                counts, lost[0], path,
            )  # fmt: skip
        return queries_frame(
            row
            for qid, question in zip(topics["qid"], topics["query"], strict=True)
            for row in self._rows(role, qid, question, texts.get(qid, []))
        )

    def _rows(self, role: str, qid: str, question: str, texts: list[str]) -> list[dict[str, Any]]:
        if role == "passage" or not texts:
            return passage_rows(qid, question, texts, "recorded", self.with_question)
        searched = [question] if self.with_question else []
        searched += distinct(texts, but=question if self.with_question else "")
        return [
            {
                "qid": qid,
                "search": search,
                "query": query,
                "origin": "question" if query == question else "recorded",
            }
            for search, query in enumerate(searched)
        ]


def _read(path: Path, role: str | None) -> tuple[str, dict[str, list[str]]]:
    """The kind of the texts, and each qid's texts in line order."""
    found: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}  # where each kind was first seen
    for where, row in _rows_of(path):
        qid = row.get("qid")
        if not isinstance(qid, str) or not qid:
            raise DataError(f"{where}: 'qid' must be a text, found {qid!r}")
        keys = [key for key in _KEYS if key in row]
        if len(keys) != 1:
            raise DataError(f"{where} (qid={qid!r}): give one of {', '.join(_KEYS)}, found {list(row)}")
        kinds.setdefault(_KEYS[keys[0]], where)
        value = row[keys[0]]
        texts = value if isinstance(value, list) and keys[0].endswith("s") else [value]
        for text in texts or [""]:
            if not isinstance(text, str):
                raise DataError(f"{where} (qid={qid!r}): a {_KEYS[keys[0]]} must be a text, found {text!r}")
            if not has_words(text):
                raise DataError(f"{where} (qid={qid!r}): {keys[0]!r} holds a text without a word")
            found.setdefault(qid, []).append(text)
    if role is None and len(kinds) > 1:
        places = " and ".join(f"a {kind} at {where}" for kind, where in kinds.items())
        raise DataError(f"{places}: give one kind, or rewriter.role=passage or query")
    return role or next(iter(kinds), "query"), found


def _rows_of(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The place of each row, and the row; DataError for an unreadable one."""
    for entry in recordings.entries(path):
        try:
            yield entry.where, entry.read()
        except BadRow as bad:
            raise DataError(f"{entry.where}: {bad}") from None
