"""Extracts answers from the context: a stand-in without a language model."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ragauge.answering.frame import answer_frame, queries_of
from ragauge.contract.answering import Generator
from ragauge.contract.checks import require_choice, require_number
from ragauge.contract.component import Tools
from ragauge.contract.identity import later
from ragauge.contract.option import CONF, option
from ragauge.contract.replies import Reply
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import FUNCTION_WORDS, words

LACK_OF_INFORMATION = "The documents do not hold enough information to answer the question."

_WHOLE = re.compile(r"""[.!?…。！？]["'”’»」』）)\]]*\Z""")  # how a sentence that was not cut ends
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NAME = re.compile(
    r"(?<!\w)[A-Z][\w'’-]*(?:(?: | & | of | of the | at | for | and the | in a )(?:[A-Z][\w'’-]*|\d{1,3}\b))*"
)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* "
_DATE = re.compile(rf"(?:(?:\d{{1,2}} )?{_MONTH}(?:\d{{1,2}}, )?)?\b[12]\d{{3}}\b(?!,\d)")
_NUMBER = re.compile(r"\b\d+(?:[,.]\d+)*")
# What a question asks for, by the words that it is put with: the first that fits.
_KINDS = {
    "date": re.compile(r"\bwhen\b|(?:\bin )?\b(?:what|which) (?:(?:is|was) the )?(?:year|date|month)\b(?: of)?", re.I),
    "number": re.compile(r"\bhow (?:many|much|large|big|long|far|tall|high)\b|\bpopulation\b|\bnumber of\b", re.I),
    "place": re.compile(r"\bwhere\b|(?:\b(?:in|to) )?\bwh(?:at|ich) (?:town|city|country|village|place|state)\b", re.I),
    "thing": re.compile(r"\bwhat (?:do|does|did|is|are|was|were)\b", re.I),
    "name": re.compile(""),
}
_WHETHER = re.compile(r"(?:did|do|does|is|are|was|were|has|have|had|can|could)\b", re.I)
# Of two alternatives: whether times are compared (else numbers), and whether the least is asked for.
_IN_TIME = re.compile(r"\b(?:first|last|earlier|later|older|younger|oldest|youngest|newer|before|after)\b", re.I)
_LEAST = re.compile(r"\b(?:first|earlier|older|oldest|before|fewer|less|smaller|lower|shorter)\b", re.I)
# What a name is, directly before it ("the novelist").
_APPOSED = re.compile(r"\bthe (?:(?!(?:of|by|to|with|in|at|for|from|that|which|and|or)\b)[a-z-]+ ){1,2}(?=[A-Z])")
_OR = " or "
_AND = re.compile(rf" and ((?:the )?{_NAME.pattern})")
_AND_THE = re.compile(" and (?=the [A-Z])")  # within what `_NAME` takes for one name
# Another thing by way of a named one ("the town in which X was born"): the words for it, those up to the name, and
# behind it.
_THING = r"the (?:[a-z]+ ){1,3}?(?:((?:of|by|to|with)(?! wh)|that|who|whose)|of|by|to|in|where|whom|which)\b"
_HEAD = re.compile(rf"\b{_THING}")
_BY_WAY = re.compile(rf"({_THING}[^?]*?{_NAME.pattern})((?: (?:is|was|were|has|had|took))? [a-z]+)?")
_CAPITAL = re.compile(r"(?<!\w)[A-Z]")
_ALSO = re.compile(r"(?:, [a-z]| \()[a-z ]*")  # between a name and another for the same
_OBJECT = re.compile(r"\b(?:it|him|them)\b")  # what a sentence before named
_OPENING = re.compile(r"^(?:The [a-z]+|(His|Her|Its|Their)|He|She|It|They)\b")
_BEFORE_PLACE = re.compile(r"\b(?:in|at|near|to|from|of|on) (?:the )?\Z", re.I)
_SHARED = 0.35  # weight of shared words beside that of the cosine
_ELSEWHERE = 0.9  # what a name counts in a sentence about something else
_STARTS = 8  # sentences from which a link is followed


_Names: TypeAlias = "dict[tuple[int, int], frozenset[str]]"  # where names stand in a text, and their words


class _Sentence(NamedTuple):
    text: str
    names: _Names
    about: frozenset[str]  # the words of the name that it, or a sentence before it, opens with


@option("llm/extractive")
class Extractive(Generator):
    """Answers with a name, date or number of the context: a stand-in, no language model (docs/llms-and-judges.md).

    A sentence scores the squared share of the question's names in it times a mean of the share of its other words and
    the cosine without names. A question by way of another thing takes two sentences, and the lesser score. threshold:
    the score in [-1, 1] that is needed (a third for each of two alternatives); below it information is lacking.
    by: cosine, or words, which needs no embedder: the share of the other words then stands for the cosine, and 1 for
    that share, or the share for the whole mean where the question has no name.
    """

    component = "extractive"
    version = 5
    kind = "embedded"

    threshold: float = CONF
    by: str = later("cosine")

    def __post_init__(self) -> None:
        require_number("llm.threshold", self.threshold, -1, 1)
        require_choice("llm.by", self.by, ("cosine", "words"))

    @property
    def uses(self) -> frozenset[str]:
        """The embedder, unless words alone are compared."""
        return frozenset({"embedder"} if self.by == "cosine" else ())

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`; every status is ok, no tokens and no cost."""
        queries = [_APPOSED.sub("", query) for query in queries_of(topics, contexts)]
        read = {text: _sentences(text) for text in contexts["text"].unique()}
        whole = [part for query in dict.fromkeys(queries) for part in (query, *_alternatives(query)[1])]
        asked = [_meaning(part, _names(part)) for query in whole for part in (query, *_steps(query))]
        told = [_meaning(s.text, s.names) for found in read.values() for s in found]
        vectors: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
        if self.by == "cosine":
            vectors = (dict(zip(told, tools.embedder.embed(told), strict=True)),
                       dict(zip(asked, tools.embedder.embed(asked, "query"), strict=True)))  # fmt: skip
        replies = [
            _Context(read[text], *vectors).answer(query, self.threshold) if read[text] else None
            for query, text in zip(queries, contexts["text"], strict=True)
        ]
        return answer_frame(contexts, [Reply(reply or LACK_OF_INFORMATION) for reply in replies])


class _Context:
    def __init__(self, sentences: Sequence[_Sentence], told: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        self._sentences, self._asked = sentences, asked
        self._words = [s.about.union(words(s.text)) for s in sentences]
        self._stems = [frozenset(word[:4] for word in found) for found in self._words]
        self._vectors = np.array([told[_meaning(s.text, s.names)] for s in sentences]) if told else None

    def answer(self, question: str, threshold: float) -> str | None:
        alternatives, halves = _alternatives(question)
        if not halves:
            return self._find(question, next(k for k, asks in _KINDS.items() if asks.search(question)), threshold)
        whether, said = _WHETHER.match(question), _meaning(question, _names(question))
        kind = "name" if whether else "date" if _IN_TIME.search(said) else "number"
        left, right = (self._find(half, kind, threshold / 3) for half in halves)
        if left is None or right is None:
            return None
        if whether:
            return "yes" if left == right else "no"
        before, after = (float(_NUMBER.findall(text)[-1].replace(",", "")) for text in (left, right))
        return alternatives[(before < after) != bool(_LEAST.search(said))]

    def _find(self, question: str, kind: str, threshold: float) -> str | None:
        names = frozenset().union(*_names(question).values())
        found = []
        if steps := _steps(question):
            starts = self._scores(steps[0], names)
            for i in np.argsort(-starts, kind="stable")[:_STARTS].tolist():
                links = {self._sentences[i].about, *self._sentences[i].names.values()}
                for link in sorted((link for link in links if not link <= names), key=sorted):
                    ends = np.minimum(self._scores(steps[1], link), starts[i])
                    found += [(end, j, names | link) for j, end in enumerate(ends.tolist()) if j != i]
        else:
            found = [(score, i, names) for i, score in enumerate(self._scores(question, names).tolist())]
        best = (one for one in sorted(found, key=lambda one: -one[0]) if one[0] >= threshold)
        spans = (_cut(self._sentences[i], kind, known, _stems(question)) for _, i, known in best)
        return next((span for span in spans if span), None)

    def _scores(self, question: str, names: frozenset[str]) -> np.ndarray:
        """Score of each sentence for a question about these names, float64 [sentences]."""
        stems = _stems(question)
        rare = np.array([1 / (1 + np.log1p(sum(stem in s for s in self._stems))) for stem in stems] or [1.0])
        named = np.array([[(w in has) * (1 if w in s.about else _ELSEWHERE) for w in names] or [1]
                          for s, has in zip(self._sentences, self._words, strict=True)])  # fmt: skip
        shared = np.array([[stem in s for stem in stems] or [False] for s in self._stems])
        share = (shared @ rare) / rare.sum()
        if self._vectors is None:
            told = _SHARED + (1 - _SHARED) * share if names else share
        else:
            told = _SHARED * share + (1 - _SHARED) * (self._vectors @ self._asked[_meaning(question, _names(question))])
        scores: np.ndarray = named.mean(1) ** 2 * told
        return scores


def _cut(sentence: _Sentence, kind: str, known: frozenset[str], stems: Sequence[str]) -> str | None:
    """The part of a sentence of the given kind that stands next to words of the question, or None."""
    text = sentence.text
    matched = [m.start() for m in _WORD.finditer(text) if m[0].casefold()[:4] in stems]
    dates = [m.span() for m in _DATE.finditer(text)]
    numbers = [m.span() for m in _NUMBER.finditer(text) if m.span() not in dates]
    others = [span for span, name in sentence.names.items() if not name <= known]
    spans = {"date": dates, "number": numbers}.get(kind, others)
    if not spans and kind == "thing" and matched:
        return re.split(r"[,.;:]", text[matched[-1] :])[0].partition(" ")[2]
    spans = sorted(spans, key=lambda span: min((abs(at - span[0]) for at in matched), default=span[0]))
    spans.sort(key=lambda span: bool(_BEFORE_PLACE.search(text[: span[0]])) != (kind == "place"))
    return text[slice(*spans[0])] if spans else None


def _sentences(text: str) -> list[_Sentence]:
    """The distinct sentences of a text in order, less a truncated last one if there are others."""
    found = [" ".join(text[a:b].split()) for a, b in sentence_spans(text)]
    if len(found) > 1 and not _WHOLE.search(found[-1]):
        found.pop()
    within = {word for s in found for (start, _), name in _names(s).items() if start > 0 for word in name}
    out, about = [], frozenset[str]()
    for sentence in dict.fromkeys(found):
        # A capital at the start of a sentence is a name where it goes on, or stands elsewhere.
        names = {at: n for at, n in _names(sentence).items() if at[0] > len("The ") or len(n) > 1 or n <= within}
        (start, end), first = next(iter(names.items()), ((len(sentence), 0), frozenset()))
        if start <= len("The ") and not first <= about and not (about and _OBJECT.search(sentence)):
            about = first.union(*(n for (at, _), n in names.items() if _ALSO.fullmatch(sentence[end:at])))
        out.append(_Sentence(sentence, names, about))
    return out


def _names(text: str) -> _Names:
    """Runs of capitalised words, without function words at their start."""
    found = {}
    for match in _NAME.finditer(text):
        first = next((w for w in _WORD.finditer(text, *match.span()) if w[0].casefold() not in FUNCTION_WORDS), None)
        if first:
            found[first.start(), match.end()] = frozenset(words(text[first.start() : match.end()])) - FUNCTION_WORDS
    return found


def _meaning(text: str, names: _Names) -> str:
    """The text with every name and the opening question words replaced by X, and every number by the same one."""
    for start, end in reversed(names):
        text = text[:start] + "X" + text[end:]
    text = _OPENING.sub(lambda m: "X's" if m[1] else "X", text)
    return _NUMBER.sub("10", _DATE.sub("1900", _KINDS["place"].sub("Where", _KINDS["date"].sub("When", text))))


_Span: TypeAlias = tuple[int, int]


def _alternatives(question: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The two alternatives of a question, and the question with each alone; empty if it has none."""
    spans = _either(question) or (_both(question) if _WHETHER.match(question) else None)
    if not spans:
        return (), ()
    alternatives = tuple(question[start:end] for start, end in spans)
    before, behind = question[: spans[0][0]], question[spans[1][1] :]
    return alternatives, tuple(before + one + behind for one in alternatives)


def _either(question: str) -> tuple[_Span, _Span] | None:
    """Spans of two alternatives around "or", from the last comma or colon before it to the question mark."""
    line = question.partition("\n")[0]
    end = line.rfind("?")
    last = line.rfind(_OR, 0, end - 1) if end > 0 else -1  # with a character behind it
    if last < 1:
        return None
    start = max(line.rfind(", ", 0, last - 1), line.rfind(": ", 0, last - 1)) + 2
    start = start if start > 1 else 0
    between = line.find(_OR, start + 1)
    first_end = between - 1 if line[between - 1] == "," and between - 1 > start else between
    return (start, first_end), (between + len(_OR), end)


def _both(question: str) -> tuple[_Span, _Span] | None:
    """Spans of two names joined by "and", after the first word of a question."""
    first = re.match(r"\w+ ", question)
    line_end = len(question.partition("\n")[0])
    for name in _NAME.finditer(question, first.end()) if first else ():
        if name.start() >= line_end:
            break
        links = list(_AND_THE.finditer(question, name.start(), name.end() + len("the X")))
        second = _AND.match(question, name.end()) or (links and _AND.match(question, links[-1].start())) or None
        if second:
            return (name.start(), second.start()), second.span(1)
    return None


def _steps(question: str) -> tuple[str, ...]:
    """The two parts of a two-hop question: the words for the bridge entity, and the question about it; else empty."""
    if (match := _by_way(question)) is None:
        return ()
    start, end = match.start(1), match.end(1) if match[2] else match.end()
    second = f"{question[:start]}X{question[end:]}"
    return (question[start:end], second) if _stems(second) else ()


def _by_way(question: str) -> re.Match[str] | None:
    """Match of the last "the ... of" before a name in the question's first line, up to that name."""
    capitals = [match.start() for match in _CAPITAL.finditer(question)]
    marks = [at for at, char in enumerate(question) if char == "?"]
    line = question.partition("\n")[0]
    at = len(line)
    while (at := line.rfind("the ", 0, at)) >= 0:
        head = _HEAD.match(question, at)
        if head:
            capital, mark = (bisect_left(places, head.end()) for places in (capitals, marks))
            if capital < len(capitals) and (mark == len(marks) or capitals[capital] < marks[mark]):
                return _BY_WAY.match(question, at)
    return None


def _stems(question: str) -> list[str]:
    """Prefixes of the question's words, except names and words that ask for a date or a place."""
    left_out = FUNCTION_WORDS.union(*_names(question).values())
    told = _KINDS["place"].sub("", _KINDS["date"].sub("", question))
    return list(dict.fromkeys(word[:4] for word in words(told) if word not in left_out))
