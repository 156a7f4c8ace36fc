"""CRAG's JSON Lines: questions with stable or changing answers, and pages that a search found."""

from __future__ import annotations

import ast
import html
from collections.abc import Mapping
from typing import Any

from ragauge.contract.checks import require_choice
from ragauge.contract.datasets import Dataset
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import Attribute, BadRow, listed, optional_string, string, valid_string
from ragauge.datasets.files import parsed, rows
from ragauge.datasets.gather import Gatherer, OneFile, Paragraphs
from ragauge.plugins.folders.documents import blocks_of_html

_WITHOUT_ANSWER = ("invalid question", "i don't know")  # a false premise; nothing was found
_ATTRIBUTES = {  # ours: CRAG's
    "question_type": "question_type",
    "dynamics": "static_or_dynamic",
    "domain": "domain",
    "popularity": "popularity",
    "query_time": "query_time",
}


@option("dataset/crag")
class CRAG(OneFile):
    """CRAG (Yang et al., 2024) from `path`, without evidence.

    documents: `snippets` or `pages`, what the documents are: the distinct snippets of the search results, or
    the text of their pages. invalid: `unanswerable` or `reference`, what the answer "invalid question" is.
    """

    component = "crag"
    version = 1

    name: str = runtime(CONF)
    documents: str = CONF
    invalid: str = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("dataset.documents", self.documents, ("snippets", "pages"))
        require_choice("dataset.invalid", self.invalid, ("unanswerable", "reference"))

    def load(self) -> Dataset:
        """The collection; DataError names file, line, qid and error."""
        file = self.files()["path"]
        gather = Gatherer(self)
        corpus = Paragraphs(gather)
        questions = []
        for where, line in rows(file):
            with gather.row(where) as at:
                row = parsed(line)
                at.qid = qid = string(row, "interaction_id")
                found = [self._document(n, one) for n, one in enumerate(listed(row, "search_results"))]
                for title, text in found:
                    if text:
                        corpus.add(title, text)
                # The pages of all questions are gigabytes: they go before the next line is read.
                kept = {key: value for key, value in row.items() if key != "search_results"}
                questions.append((where, qid, kept))
        for where, qid, row in questions:
            if gather.full:
                break
            with gather.row(where) as at:
                at.qid = qid
                references = [string(row, "answer").strip(), *_alternatives(row)]
                unanswerable = self.invalid == "unanswerable" and _without_answer(references[0])
                if unanswerable:
                    references = []
                elif self.invalid == "unanswerable":
                    references = [one for one in references if not _without_answer(one)]
                attributes: dict[str, Attribute] = {
                    ours: optional_string(row, theirs) for ours, theirs in _ATTRIBUTES.items()
                }
                query = string(row, "query").strip()
                gather.add_topic(qid, query, references, [], attributes, unanswerable=unanswerable)
        return gather.dataset(file, file)

    def _document(self, number: int, result: Any) -> tuple[str, str]:
        """Title and text of a search result; "" for a missing text."""
        try:
            title = " ".join(html.unescape(optional_string(result, "page_name") or "").split())
            if self.documents == "pages":
                return title, text_of_html(string(result, "page_result"))
            return title, html.unescape(string(result, "page_snippet")).strip()
        except (BadRow, AttributeError) as bad:
            what = bad if isinstance(bad, BadRow) else f"expected a JSON object, found {result!r:.80}"
            raise BadRow(f"entry {number} of 'search_results': {what}") from None


def text_of_html(page: str) -> str:
    """The text of a page, whose HTML may be broken: a paragraph per block, an empty line between two.

    An empty line ends a sentence, so the entries of a menu are not read as one. Scripts, styles and the
    page's title are left out, and what is shown without scripts alone; entities are read.
    """
    return "\n\n".join(text for _, text in blocks_of_html(page))


def _alternatives(row: Mapping[str, Any]) -> list[str]:
    """Other right answers: the list `alt_ans`; in older files `alternative_answers`, which may be a printed list."""
    key = "alt_ans" if "alt_ans" in row else "alternative_answers"
    given = row.get(key)
    if isinstance(given, str):
        try:
            given = ast.literal_eval(given) if given.strip() else []
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise BadRow(f"{key!r} is no printed list: {given!r:.80}") from None
    if given is None:
        return []
    if not isinstance(given, list):
        raise BadRow(f"key {key!r} is not a list: {given!r:.80}")
    # Numbers and yes or no stand in it as such.
    texts = [one if isinstance(one, str) else str(one) for one in given]
    return [valid_string(text, f"an entry of {key!r}").strip() for text in texts if text.strip()]


def _without_answer(answer: str) -> bool:
    return answer.casefold().replace("’", "'").rstrip(".! ") in _WITHOUT_ANSWER
