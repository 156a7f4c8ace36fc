"""Documents that a dataset repeats under many topics: each distinct title and text is one, with one docno."""

from __future__ import annotations

import re

from ragauge.datasets._gather import PASSAGE_MARK, Gatherer


class Paragraphs:
    """Adds distinct paragraphs to what is gathered, and gives each a docno that can be read.

    Docnos depend on the paragraphs alone, in their order: not on `limit`, nor on which topics are dropped.
    """

    def __init__(self, gather: Gatherer) -> None:
        self._gather = gather
        self._docnos: dict[tuple[str, str], str] = {}
        self._named: dict[str, int] = {}  # how many paragraphs a name has had so far

    def known(self, title: str, text: str) -> str | None:
        """The docno of a paragraph that was added; None if it was not."""
        return self._docnos.get((title, text))

    def add(self, title: str, text: str, name: str | None = None) -> str:
        """The docno of the paragraph, which becomes a document if there is none of its title and text.

        It is the name (the title where none is given) with underscores for white space; a further paragraph
        of the same name has ~2, ~3 … behind it.
        """
        known = self.known(title, text)
        if known is not None:
            return known
        slug = identifier(title if name is None else name)
        docno = slug
        while self._gather.has_document(docno):
            self._named[slug] = self._named.get(slug, 1) + 1
            docno = f"{slug}~{self._named[slug]}"
        self._gather.add_document(docno, title, text)
        self._docnos[title, text] = docno
        return docno


def identifier(name: str) -> str:
    """The name without what no docno or qid may hold; `untitled` where nothing is left."""
    return re.sub(r"[\s\0]+", "_", name.strip()).replace(PASSAGE_MARK, "%25p") or "untitled"
