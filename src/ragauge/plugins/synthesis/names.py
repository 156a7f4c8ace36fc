"""Names that a text holds, by their capitals, and which documents share a rare one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import FUNCTION_WORDS, words

_TOKEN = re.compile(r"[^\W_][\w'’-]*")
_MOST_SHARED = 10  # documents that hold a name at most, for it to be rare
_RARE_WORD = 5  # letters of a term, at least
_PARTNERS = 20  # of a document that are remembered


def names(text: str) -> dict[str, tuple[int, int]]:
    """The names of a text, by spelling, and where each first stands.

    A name is a run of capitalised words, or of numbers among them, with a single space between; function
    words at its beginning (The, In) are not part of it. A single word that opens a sentence is one only if it
    stands in another name of the text, too: every word has a capital there.
    """
    found: dict[str, tuple[int, int]] = {}
    opening: dict[str, tuple[int, int]] = {}
    for start, end in sentence_spans(text):
        for first, run in _runs(text, start, end):
            while run and run[0].group().casefold() in FUNCTION_WORDS:
                run, first = run[1:], False
            if not run or not any(token.group()[0].isupper() for token in run):
                continue
            span = run[0].start(), run[-1].end()
            name = text[slice(*span)].removesuffix("'s").removesuffix("’s")
            if len(name) < 2:
                continue
            alone = opening if first and len(run) == 1 else found
            alone.setdefault(name, (span[0], span[0] + len(name)))
    inside = {word for name in found for word in name.split()}
    return found | {name: span for name, span in opening.items() if name in inside and name not in found}


def _runs(text: str, start: int, end: int) -> list[tuple[bool, list[re.Match[str]]]]:
    """The runs of capitalised words and numbers in a sentence, and whether each opens it."""
    runs: list[tuple[bool, list[re.Match[str]]]] = []
    run: list[re.Match[str]] = []
    opens = True
    for at, token in enumerate(_TOKEN.finditer(text, start, end)):
        counts = token.group()[0].isupper() or (bool(run) and token.group()[0].isdigit())
        if run and (not counts or text[run[-1].end() : token.start()] != " "):
            runs.append((opens, run))
            run = []
        if counts:
            opens = at == 0 if not run else opens
            run.append(token)
    return [*runs, (opens, run)] if run else runs


def shared_names(texts: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """{docno: [(docno of another document, a name that both hold)]}, those that share the rarest name first.

    Rare: held by at most _MOST_SHARED of the documents, and by at most a quarter of them.
    Documents without a name (in scripts without capitals, say) use the rare terms of at least _RARE_WORD letters.
    """
    holders: dict[str, list[str]] = defaultdict(list)
    for docno, text in texts.items():
        for name in _terms(text):
            holders[name].append(docno)
    most = max(2, min(_MOST_SHARED, len(texts) // 4))
    rare = {name: docnos for name, docnos in holders.items() if 2 <= len(docnos) <= most}
    best: dict[str, dict[str, tuple[int, int, str]]] = defaultdict(dict)
    for name, docnos in rare.items():
        rank = len(docnos), -len(name), name  # rare before frequent, long before short
        for one in docnos:
            for other in docnos:
                if one != other and rank < best[one].get(other, (len(texts) + 1, 0, "")):
                    best[one][other] = rank
    return {
        docno: [(other, rank[2]) for other, rank in sorted(by.items(), key=_by_rank)[:_PARTNERS]]
        for docno, by in best.items()
    }


def _by_rank(item: tuple[str, tuple[int, int, str]]) -> tuple[tuple[int, int, str], str]:
    return item[1], item[0]


def _terms(text: str) -> Sequence[str]:
    found = list(names(text))
    return found or sorted({word for word in words(text) if len(word) >= _RARE_WORD})
