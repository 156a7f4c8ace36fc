"""The topics worth reading: where score and verdict disagree, and what the LLM was given there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.findings.details import Detail, details_of
from ragauge.retrieval.contexts import contexts_at

HIGH_BUT_WRONG, LOW_BUT_RIGHT = "high score, but wrong", "low score, but right"
HALF = 0.5  # of the evidence: what separates a high score from a low one
_WRONG, _RIGHT = (1, 2, 4), 5
_MAX_CHARS = 20_000  # of one context on the page
_SCORED = ("corrected", "scores")  # the stages with the parts' values, the last first
_MIN_CHARS = 8  # of a match that is marked, unless it is half of its part


def worth_reading(outcomes: pd.DataFrame, n: int = 20) -> pd.DataFrame:
    """At most n rows of the outcomes, one a topic, whose verdict the IR score does not explain.

    `outcomes` has qid, system, n_tokens, ir_score, label. Added columns: `why`, `high score, but wrong` (half
    of the evidence or more is in the context, and the class is 1, 2 or 4) or `low score, but right`; and
    `verdicts`, the topic's classes in all rows ({class: rows}, 0 where there is none). One half each, or more
    of the one where the other has too few topics. The furthest off come first, each system in turn; of equals
    the smallest budget among high scores and the largest among low ones.
    """
    label = outcomes["label"].astype("Int64").fillna(0)
    score = outcomes["ir_score"].astype(float)
    halves = []
    for why, chosen, direction in (
        (HIGH_BUT_WRONG, (score >= HALF) & label.isin(_WRONG), -1),
        (LOW_BUT_RIGHT, (score < HALF) & label.eq(_RIGHT), 1),
    ):
        rows = outcomes[chosen].assign(
            why=why, _off=direction * score[chosen], _n=-direction * outcomes.loc[chosen, "n_tokens"]
        )
        rows = rows.sort_values(["_off", "_n", "qid"], kind="stable")
        rows["_turn"] = rows.groupby("system", sort=False).cumcount()
        rows = rows.sort_values(["_turn", "system"], kind="stable").drop_duplicates("qid")
        halves.append(rows.assign(_place=np.arange(len(rows))))
    both = pd.concat(halves).sort_values(["_place", "why"], kind="stable")
    chosen_rows = both.drop_duplicates("qid").head(n).sort_values(["why", "_place"], ignore_index=True)
    counts = label.groupby([outcomes["qid"], label]).size()
    verdicts = [{int(c): int(k) for c, k in counts[qid].items()} for qid in chosen_rows["qid"]]
    return chosen_rows.drop(columns=["_off", "_n", "_turn", "_place"]).assign(
        verdicts=pd.Series(verdicts, dtype=object)
    )


@dataclass(frozen=True)
class TopicTexts:
    """The evidence of a topic, and its context as one text.

    `docnos` and `starts` are its chunks and the characters where they begin; both empty where not known.
    `scores` are the values of the job's own measure for the evidence parts, None where one has none; empty
    where not known.
    """

    evidence: Sequence[str]
    context: str
    docnos: Sequence[str] = ()
    starts: Sequence[int] = ()
    scores: Sequence[float | None] = ()


def contexts_of(record: Mapping[str, Any], qids: Sequence[str]) -> dict[str, TopicTexts]:
    """Evidence and context of topics of one job at its n_tokens, from the store that its `job.json` names.

    Only the rows of these topics are read. Raises DataError where the record names no store, and where the
    store no longer holds the entries.
    """
    if "entries" not in record or "store" not in record:
        raise DataError(f"job.json of {record.get('name', 'a job')} names no store entries")
    store, only = Path(record["store"]), [("qid", "in", list(qids))]

    def read(stage: str, frame: str) -> pd.DataFrame:
        folder = store / stage / record["entries"][stage]
        try:
            return pd.read_parquet(folder / f"{frame}.parquet", filters=only)
        except (OSError, ValueError) as error:
            raise DataError(f"the store holds no readable {stage}/{folder.name[:12]} ({frame})") from error

    evidence = read("dataset", "evidence").dropna(subset="text").sort_values(["qid", "part"])
    layouts, prefixes = read("context", "layouts"), read("context", "prefixes")
    contexts = contexts_at(layouts, prefixes, record["n_tokens"])
    here = prefixes[prefixes["n_tokens"] == record["n_tokens"]]
    starts = here.merge(layouts, on=["qid", "layout"], validate="one_to_one").set_index("qid")["starts"]
    stage = next((name for name in _SCORED if name in record["entries"]), None)
    if stage is not None:
        scores = read(stage, "part_scores")
        own = scores.loc[scores["n_tokens"] == record["n_tokens"], ["qid", "part", "value"]]
        evidence = evidence.merge(own, on=["qid", "part"], how="left", validate="one_to_one")
        evidence["value"] = evidence["value"].astype(object).where(evidence["value"].notna(), None)
    by_topic = evidence.groupby("qid")
    parts = by_topic["text"].agg(list)
    values: Any = by_topic["value"].agg(list) if "value" in evidence else {}
    return {
        (qid := row["qid"]): TopicTexts(
            parts[qid],
            row["text"],
            row["docnos"],
            list(starts[qid])[: len(row["docnos"])],
            values[qid] if len(values) else (),
        )
        for row in contexts.to_dict("records")
    }


@dataclass(frozen=True)
class EvidencePart:
    """One evidence text and its longest contiguous match in the context.

    `share`: matched characters over all of the part's, white space folded; `span`: where the match stands in
    the context as it is, None where nothing matches. `score`: what the job's own measure says of the part,
    None where that is not known.
    """

    text: str
    share: float
    span: tuple[int, int] | None
    score: float | None = None

    @property
    def strong(self) -> bool:
        """True if at least half of the evidence part matches."""
        return self.share >= HALF

    @property
    def marked(self) -> bool:
        """Whether the match is shown: a strong one, or one long enough to be more than chance."""
        return self.span is not None and (self.strong or self.span[1] - self.span[0] >= _MIN_CHARS)


@dataclass(frozen=True)
class Piece:
    """A stretch of a context, and the numbers (from 1) of the evidence parts whose matches it is in.

    `strong` where one of these matches is.
    """

    text: str
    parts: tuple[int, ...]
    strong: bool


@dataclass(frozen=True)
class Topic:
    """A topic as the report shows it: its outcome, its evidence, and its context chunk by chunk.

    `chunks`: (docno, pieces); `left_out`: characters of the context that are not shown; `note`: why there is
    no context. `details`: what the values of its answer measures rest on.
    """

    outcome: Mapping[str, Any]
    evidence: Sequence[EvidencePart] = ()
    chunks: Sequence[tuple[str, Sequence[Piece]]] = ()
    left_out: int = 0
    note: str = ""
    details: Sequence[Detail] = ()


def read_topics(chosen: pd.DataFrame, records: Mapping[tuple[str, int], Mapping[str, Any]]) -> list[Topic]:
    """The rows that `worth_reading` chose, with their texts; `records` are the jobs by (system, n_tokens).

    Texts come from columns `evidence` (a list of parts) and `context` where the rows have them, else from
    the store. Where neither has them, the topic's note says why.
    """
    rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in chosen.astype(object).where(chosen.notna(), None).to_dict("records"):
        rows.setdefault((row["system"], row["n_tokens"]), []).append({str(k): v for k, v in row.items()})
    topics: dict[str, Topic] = {}
    for job, of_job in rows.items():
        texts: Mapping[str, TopicTexts] = {}
        note = "its texts were not found"
        if all(row.get("context") is not None and row.get("evidence") is not None for row in of_job):
            texts = {row["qid"]: TopicTexts(list(row["evidence"]), row["context"]) for row in of_job}
        else:
            try:
                texts = contexts_of(records[job], [row["qid"] for row in of_job])
            except DataError as error:
                note = str(error)
        details = details_of(records[job], [row["qid"] for row in of_job]) if job in records else {}
        for of_topic in of_job:
            topic = _topic(of_topic, texts.get(of_topic["qid"]), note)
            topics[of_topic["qid"]] = replace(topic, details=details.get(of_topic["qid"], ()))
    return [topics[qid] for qid in chosen["qid"]]


def _topic(outcome: Mapping[str, Any], texts: TopicTexts | None, note: str) -> Topic:
    if texts is None:
        return Topic(outcome, note=note)
    evidence = match_evidence(texts.evidence, texts.context)
    if texts.scores:
        pairs = zip(evidence, texts.scores, strict=True)
        evidence = [replace(part, score=score) for part, score in pairs]
    shown = texts.context[:_MAX_CHARS]
    return Topic(outcome, evidence, _chunks(shown, texts, evidence), len(texts.context) - len(shown))


def _chunks(shown: str, texts: TopicTexts, evidence: Sequence[EvidencePart]) -> list[tuple[str, list[Piece]]]:
    """The context cut where chunks begin and where matches begin and end."""
    starts = list(texts.starts) or [0]
    docnos = list(texts.docnos) or [""]
    marked = {number: part for number, part in enumerate(evidence, 1) if part.marked}
    edges = {edge for part in marked.values() for edge in part.span or ()}
    chunks = []
    for docno, start, stop in zip(docnos, starts, [*starts[1:], len(shown)], strict=True):
        stop = min(stop, len(shown))
        if start >= stop:
            continue
        cuts = sorted({start, stop, *(e for e in edges if start < e < stop)})
        chunks.append((docno, [_piece(shown, a, b, marked) for a, b in pairwise(cuts)]))
    return chunks


def _piece(text: str, start: int, stop: int, marked: Mapping[int, EvidencePart]) -> Piece:
    inside = [n for n, part in marked.items() if part.span and part.span[0] <= start and stop <= part.span[1]]
    return Piece(text[start:stop], tuple(inside), any(marked[n].strong for n in inside))


def match_evidence(evidence: Iterable[str], context: str) -> list[EvidencePart]:
    """Every evidence part with its longest common substring in the context, as the IR score matches it."""
    folded, at = _fold(context)
    parts = []
    for text in evidence:
        needed, _ = _fold(text)
        start, size = longest_match(needed, folded)
        span = (at[start], at[start + size - 1] + 1) if size else None
        parts.append(EvidencePart(text, size / len(needed) if needed else 0.0, span))
    return parts


def longest_match(part: str, text: str) -> tuple[int, int]:
    """Start in the text and length of the longest common substring, the first of equals; length 0 if none.

    A common substring of length L has one of every shorter length in it, so L is found by bisection.
    """
    known, lo, hi = (0, 0), 0, min(len(part), len(text))
    while lo < hi:
        size = (lo + hi + 1) // 2
        grams = {part[i : i + size] for i in range(len(part) - size + 1)}
        start = next((j for j in range(len(text) - size + 1) if text[j : j + size] in grams), None)
        if start is None:
            hi = size - 1
        else:
            known, lo = (start, size), size
    return known


def _fold(text: str) -> tuple[str, np.ndarray]:
    """The text with every run of white space as one space and none at its ends, and where each came from."""
    symbols: list[str] = []
    at: list[int] = []
    for i, symbol in enumerate(text):
        if not symbol.isspace():
            symbols.append(symbol)
        elif symbols and symbols[-1] != " ":
            symbols.append(" ")
        else:
            continue
        at.append(i)
    if symbols and symbols[-1] == " ":
        symbols.pop()
        at.pop()
    return "".join(symbols), np.array(at, dtype=int)
