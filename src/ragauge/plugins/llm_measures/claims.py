"""Claims of a text, and their verdicts by passages and a reference answer: requests shared by measures.

A measure that asks for the same thing sends the same prompt, which the ledger pays for once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, get_args

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.replies import Structured
from ragauge.contract.topics import with_history
from ragauge.llms.json_replies import OK, Found, ask_each, json_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TEXT, TRUTH, Schema, fields, list_of, number_in, numbered_fields, one_of
from ragauge.plugins.llm_measures import PROMPTS
from ragauge.texts.sentences import sentence_spans

Stance = Literal["supported", "contradicted", "absent"]
CLAIMS, MATCH, QUESTIONS = "claims", "claims_match", "questions_of_answer"
IN_PASSAGES, IN_SENTENCES = "claims_in_passages", "statements_in_sentences"
_PLACEHOLDERS = {
    CLAIMS: ("question", "text"),
    IN_PASSAGES: ("n_passages", "n_claims", "passages", "claims"),
    IN_SENTENCES: ("n_statements", "sentences", "statements"),
    MATCH: ("question", "statements", "accepted", "claims", "n_claims", "n_statements"),
    QUESTIONS: ("n", "text"),
}
_AT_ONCE = 20  # claims of a request: the reply stays far below the usual limit of completion tokens

Claims = tuple[str, ...]


@dataclass(frozen=True)
class Passage:
    """The part of a passage inside a context."""

    docno: str
    text: str


@dataclass(frozen=True)
class ClaimVerdict:
    """The passages' verdict on a claim, and the passages that it cites (from 0)."""

    stance: Stance
    passages: tuple[int, ...] = ()


@dataclass(frozen=True)
class Match:
    """For each claim whether the reference supports it, for each statement whether the claims contain it."""

    claims: tuple[bool, ...]
    statements: tuple[bool, ...]


@cache
def prompt(name: str) -> str:
    """The text of a prompt shipped with this module, with its placeholders."""
    return load_prompt(None, f"{name}.txt", _PLACEHOLDERS[name], package=PROMPTS)


def prompts(*names: str) -> dict[str, str]:
    """The prompts' texts by name: a measure's field, so that they enter its identity."""
    return {name: prompt(name) for name in names}


def one_line(text: str) -> str:
    """The text on one line, so that no part can pass for the next entry; lone surrogates become ?."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def questions_of(topics: pd.DataFrame) -> dict[str, str]:
    """Each qid's question, preceded by the earlier turns of its conversation."""
    return dict(zip(topics["qid"], with_history(topics)["query"], strict=True))


def passages_by_topic(used: pd.DataFrame) -> dict[str, list[Passage]]:
    """The passages of every context (frame `used_passages`), in order, cut at the context's end."""
    found: dict[str, list[Passage]] = {}
    rows = used.sort_values(["qid", "position"], kind="stable")
    for qid, docno, text, chars in zip(*(rows[c] for c in ("qid", "docno", "text", "chars")), strict=True):
        if shown := one_line(text[: max(chars, 0)]):
            found.setdefault(qid, []).append(Passage(docno, shown))
    return found


def claims_of(texts: Sequence[tuple[str, str]], tools: Tools) -> list[Found[Claims]]:
    """The claims of every (question, answer) or reference answer; () for a text without claims.

    A blank answer is not asked about. A claim that the reply repeats counts once.
    """
    pairs = [(one_line(question), one_line(text)) for question, text in texts]
    requests = {pair: fill(prompt(CLAIMS), question=pair[0], text=pair[1]) for pair in pairs if pair[1]}
    guesses = {request: sentences(text) for (_, text), request in requests.items()}
    readers = dict.fromkeys(guesses, Structured(_read_claims, _CLAIMS))
    found = ask_each(tools.chat, readers, tools.store, "claims", guesses=guesses)
    return [found[requests[pair]] if pair[1] else Found((), OK) for pair in pairs]


def sentences(text: str) -> Claims:
    """The distinct sentences of a text, each on one line."""
    return tuple(dict.fromkeys(one_line(text[a:b]) for a, b in sentence_spans(text)))


def supports(rows: Sequence[tuple[Claims, Sequence[Passage]]], tools: Tools) -> list[Found[tuple[ClaimVerdict, ...]]]:
    """The verdicts of a context's passages on each claim, in order.

    One request for every distinct (claims, set of passages). They are shown in an order of their own, so that neither
    ranks nor `order` move a verdict, and systems that found the same share it. Where there are more than 20 claims
    there is one request for every 20 of them, and a single one that cannot be read makes the verdicts of all missing.
    Without passages every claim is absent, without a request.
    """
    asked: list[list[str]] = []
    orders: list[list[int]] = []
    readers: dict[str, Callable[[str], tuple[ClaimVerdict, ...] | None]] = {}
    guesses: dict[str, tuple[ClaimVerdict, ...]] = {}
    for claims, passages in rows:
        order = sorted(range(len(passages)), key=lambda i, of=passages: of[i].text)  # type: ignore[misc]
        parts = at_once(claims) if passages else []
        orders.append(order)
        asked.append([_in_passages(part, [passages[i] for i in order]) for part in parts])
        for part, request in zip(parts, asked[-1], strict=True):
            read = partial(_read_verdicts, n_claims=len(part), n_passages=len(passages))
            readers[request] = Structured(read, _verdicts(len(part), len(passages)))
            guesses[request] = (ClaimVerdict("absent"),) * len(part)
    found = ask_each(tools.chat, readers, tools.store, "verdicts on claims", guesses=guesses)
    return [
        _joined([found[request] for request in requests], order)
        if passages
        else Found((ClaimVerdict("absent"),) * len(claims), OK)
        for (claims, passages), requests, order in zip(rows, asked, orders, strict=True)
    ]


def at_once(claims: Claims) -> list[Claims]:
    """The claims in parts of at most 20, one part per request."""
    return [claims[i : i + _AT_ONCE] for i in range(0, len(claims), _AT_ONCE)]


def matches(rows: Sequence[tuple[str, Claims, Claims, Sequence[str]]], tools: Tools) -> list[Found[Match]]:
    """Agreement of an answer's claims with the reference's statements, in both directions.

    rows: (question, claims, statements, other reference answers that count as well). Where the answer has no claims, or
        the reference no statements, there is no request and no match.
    """
    asked = [
        _match_request(question, claims, statements, others) if claims and statements else None
        for question, claims, statements, others in rows
    ]
    readers: dict[str, Callable[[str], Match | None]] = {}
    guesses: dict[str, Match] = {}
    for request, (_, claims, statements, _) in zip(asked, rows, strict=True):
        if request is not None:
            read = partial(_read_match, n_claims=len(claims), n_statements=len(statements))
            schema = fields(
                claims=numbered_fields(len(claims), TRUTH), statements=numbered_fields(len(statements), TRUTH)
            )
            readers[request] = Structured(read, schema)
            guesses[request] = _no_match(claims, statements)
    found = ask_each(tools.chat, readers, tools.store, "claims against the reference", guesses=guesses)
    return [
        Found(_no_match(claims, statements), OK) if request is None else found[request]
        for request, (_, claims, statements, _) in zip(asked, rows, strict=True)
    ]


def numbered(texts: Sequence[str], form: str = "{}. {}") -> str:
    """The texts, one per line, numbered from 1."""
    return "\n".join(form.format(i, one_line(text)) for i, text in enumerate(texts, 1))


def _in_passages(claims: Claims, passages: Sequence[Passage]) -> str:
    return fill(
        prompt(IN_PASSAGES),
        n_passages=str(len(passages)),
        n_claims=str(len(claims)),
        passages=numbered([passage.text for passage in passages], "[{}] {}"),
        claims=numbered(claims),
    )


def _match_request(question: str, claims: Claims, statements: Claims, others: Sequence[str]) -> str:
    told = "; ".join(dict.fromkeys(filter(None, map(one_line, others))))
    return fill(
        prompt(MATCH),
        question=one_line(question),
        statements=numbered(statements),
        accepted=told or "none",
        claims=numbered(claims),
        n_claims=str(len(claims)),
        n_statements=str(len(statements)),
    )


def _no_match(claims: Claims, statements: Claims) -> Match:
    return Match((False,) * len(claims), (False,) * len(statements))


def _joined(found: Sequence[Found[tuple[ClaimVerdict, ...]]], order: Sequence[int]) -> Found[tuple[ClaimVerdict, ...]]:
    """The verdicts of a claim list's parts, concatenated; the first part without verdicts if there is one.

    order: which passage stood at each place of the request; verdicts name passages by it.
    """
    lost = first_lost(*found)
    if lost is not None:
        return Found(None, lost.status, lost.raw)
    verdicts = [verdict for part in found for verdict in part.value or ()]
    return Found(tuple(replace(v, passages=tuple(sorted(order[i] for i in v.passages))) for v in verdicts), OK)


def first_lost(*found: Found[Any] | None) -> Found[Any] | None:
    """The first result without a value; None if all have one."""
    return next((one for one in found if one is not None and one.value is None), None)


def texts_of(reply: object, key: str) -> Claims | None:
    """The list of texts at an object's key, on one line each, without repeats; None for anything else."""
    listed = reply.get(key) if isinstance(reply, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return None
    lines = tuple(dict.fromkeys(map(one_line, listed)))
    return None if "" in lines else lines


_CLAIMS = fields(claims=list_of(TEXT))


def _verdicts(n_claims: int, n_passages: int) -> Schema:
    passages = list_of(number_in(range(1, n_passages + 1)))
    return numbered_fields(n_claims, fields(verdict=one_of(get_args(Stance)), passages=passages))


def _read_claims(reply: str) -> Claims | None:
    found = json_of(reply)
    return texts_of(found, "claims") if isinstance(found, dict) else None


def by_number(value: object, n: int) -> list[Any] | None:
    """The entries of an object with exactly the keys "1" to "n", in order."""
    if not isinstance(value, dict) or set(value) != {str(i) for i in range(1, n + 1)}:
        return None
    return [value[str(i)] for i in range(1, n + 1)]


def _read_verdicts(reply: str, n_claims: int, n_passages: int) -> tuple[ClaimVerdict, ...] | None:
    entries = by_number(json_of(reply), n_claims)
    verdicts = [_verdict(entry, n_passages) for entry in entries or ()]
    return None if entries is None or None in verdicts else tuple(v for v in verdicts if v is not None)


def _verdict(entry: object, n_passages: int) -> ClaimVerdict | None:
    """One verdict; None unless it is one of the three, with existing passages if it is not absent."""
    if not isinstance(entry, dict) or not {"verdict", "passages"} <= set(entry):
        return None
    stance, listed = entry["verdict"], entry["passages"]
    if stance not in get_args(Stance) or not isinstance(listed, list):
        return None
    if not all(type(number) is int and 1 <= number <= n_passages for number in listed):
        return None
    if stance == "absent":
        return ClaimVerdict("absent")
    return ClaimVerdict(stance, tuple(sorted({number - 1 for number in listed}))) if listed else None


def _read_match(reply: str, n_claims: int, n_statements: int) -> Match | None:
    found = json_of(reply)
    if not isinstance(found, dict) or not {"claims", "statements"} <= set(found):
        return None
    claims, statements = by_number(found["claims"], n_claims), by_number(found["statements"], n_statements)
    if claims is None or statements is None or not all(type(v) is bool for v in (*claims, *statements)):
        return None
    return Match(tuple(claims), tuple(statements))
