"""Names in a text, found by their capitals, and documents that share a rare one.

In German, which writes every noun with a capital, a single word that stands behind an article somewhere is no name. In
scripts without capitals what two documents share is the longest run of words, or of characters, that few others hold.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ragauge.texts.languages import language_of
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import FUNCTION_WORDS, MARKS, STOP_WORDS, UNSPACED, words

_TOKEN = re.compile(r"[^\W_][\w'’-]*")
_MOST_SHARED = 10  # documents that hold a name at most, for it to be rare
_RARE_WORD = 5  # letters of a term, at least
_PARTNERS = 20  # of a document that are remembered
# Languages of scripts without capitals, and the characters of a piece where words have no spaces between them, or
# particles behind them; 0: a piece is a word.
_PIECE = {
    "arabic": 0, "persian": 0, "urdu": 0, "hebrew": 0, "hindi": 0, "chinese": 3, "japanese": 3, "korean": 2, "thai": 5,
}  # fmt: skip
_SHORTEST = 3  # letters of a word that can be a piece
_WORD = re.compile(rf"(?:[^\W_][{MARKS}]*)+")
_RUN = re.compile(f"[{UNSPACED}]+")
_BEHIND_ARTICLE = re.compile(
    r"\b(?i:der|die|das|dem|den|des|(?:k?ein|dies|jed|ihr|sein)(?:e[mnrs]?)?|im|am|zum|zur|vom|beim|ins|ans) "
    r"([A-ZÄÖÜ]\w*)"
)


def names(text: str) -> dict[str, tuple[int, int]]:
    """The names of a text, by spelling, and the first position of each.

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
    """{docno: [(docno of another document, shared name)]}, rarest names first.

    Rare: held by at most _MOST_SHARED of the documents, and by at most a quarter of them.
    Documents without a name use the rare terms of at least _RARE_WORD letters, and those in scripts without capitals
    the runs that they share (`_shared_runs`).
    """
    languages = {docno: str(language_of(text)) for docno, text in texts.items()}
    german = [texts[docno] for docno, language in languages.items() if language == "german"]
    nouns = {noun for text in german for noun in _BEHIND_ARTICLE.findall(text)}
    holders: dict[str, list[str]] = defaultdict(list)
    for docno, text in texts.items():
        for name in _terms(text, languages[docno], nouns):
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
    caseless = {docno: text for docno, text in texts.items() if languages[docno] in _PIECE}
    for one, other, n, run in _shared_runs(caseless, languages, most):
        rank = n, -len(run), run
        if rank < best[one].get(other, (len(texts) + 1, 0, "")):
            best[one][other] = rank
    return {
        docno: [(other, rank[2]) for other, rank in sorted(by.items(), key=_by_rank)[:_PARTNERS]]
        for docno, by in best.items()
    }


def _by_rank(item: tuple[str, tuple[int, int, str]]) -> tuple[tuple[int, int, str], str]:
    return item[1], item[0]


def _terms(text: str, language: str, nouns: Collection[str]) -> Sequence[str]:
    found = list(names(text))
    if language == "german":
        found = [name for name in found if name not in nouns]
    if found or language in _PIECE:
        return found
    return sorted({word for word in words(text) if len(word) >= _RARE_WORD})


def _pieces(text: str, language: str) -> Iterator[list[tuple[int, int]]]:
    """The positions of a text's pieces, in runs of consecutive ones."""
    if size := _PIECE[language]:
        for run in _RUN.finditer(text):
            yield [(i, i + size) for i in range(run.start(), run.end() - size + 1)]
        return
    row: list[tuple[int, int]] = []
    for word in _WORD.finditer(text):
        counts = len(word[0]) >= _SHORTEST and word[0] not in STOP_WORDS.get(language, ())
        if row and (not counts or text[row[-1][1] : word.start()] != " "):
            yield row
            row = []
        if counts:
            row.append(word.span())
    yield row


def _shared_runs(
    texts: Mapping[str, str], languages: Mapping[str, str], most: int
) -> Iterator[tuple[str, str, int, str]]:
    """(docno, another one, documents that hold it, run): the runs of rare pieces in both documents."""
    rows = {docno: list(_pieces(text, languages[docno])) for docno, text in texts.items()}
    found = {docno: {texts[docno][a:b] for row in of for a, b in row} for docno, of in rows.items()}
    count = Counter(piece for pieces in found.values() for piece in pieces)
    holders: dict[str, set[str]] = defaultdict(set)
    for docno, pieces in found.items():
        for piece in pieces:
            if 2 <= count[piece] <= most:
                holders[piece].add(docno)
    for docno, of in rows.items():
        for row in of:
            runs: dict[str, tuple[int, int, int]] = {}  # by the other document: start, end, documents
            for start, end in [*row, (0, 0)]:
                held = holders.get(texts[docno][start:end], set())
                others = held - {docno}
                for other in sorted(runs.keys() - others):
                    first, last, n = runs.pop(other)
                    yield docno, other, n, texts[docno][first:last]
                for other in others:
                    first, _, n = runs.get(other, (start, end, len(held)))
                    runs[other] = first, end, min(n, len(held))
