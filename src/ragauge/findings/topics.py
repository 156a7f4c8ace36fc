"""Topics worth reading, whose score and verdict disagree, with the LLM's context."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.finding import (
    Article,
    Block,
    Bullets,
    Facts,
    Finding,
    Fold,
    Found,
    Founds,
    Heading,
    Marked,
    Preformatted,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.job_files import DETAILS_FILE, read_table
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import IR_SCORE
from ragauge.contract.output_files import replacing
from ragauge.contract.record import JobRecord
from ragauge.estimate.outcomes import right_of
from ragauge.findings.tables import class_name
from ragauge.retrieval.contexts import contexts_at
from ragauge.show.formats import score, share, whole


class WorthReading(Finding):
    """At most twenty topics whose verdict the IR score does not explain."""

    name = "topics"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The topics with their texts; None if all verdicts agree with their scores."""
        if "thresholds" not in found:
            return None
        of_job = {(s, r.n_tokens): r for s, r in zip(jobs.systems, jobs.records, strict=True)}
        topics = read_topics(worth_reading(jobs.outcomes), of_job)
        return Found(topics) if topics else None

    def show(self, jobs: Jobs, value: Sequence[Topic], found: Founds) -> Shown:
        """An article per topic, with its context in a fold."""
        blocks: list[Block] = [
            Text(
                "Where score and verdict disagree: at least half of the evidence was there and the answer is wrong, or "
                "less than half and it is right. Such topics show a judge that errs, an LLM that knows the answer "
                "anyway, or evidence that is not what is needed. In the contexts, marks are the longest contiguous "
                "match of each evidence part; faint ones are under half of it, and the shortest are not marked."
            )
        ]
        before = None
        for topic in value:
            why = topic.outcome["why"]
            if why != before:
                blocks.append(Heading(why.capitalize()))
            before = why
            blocks.append(_article(topic))
        return Shown([Section(f"{len(value)} topics worth reading", blocks)])


def _article(topic: Topic) -> Article:
    o = topic.outcome
    meta = f"{o['system']} · N = {o['n_tokens']} · {IR_SCORE.label} {score(o['ir_score'])} · qid {o['qid']}"
    answer = o["answer"] if o["answer"] is not None else "no answer"
    facts: list[tuple[str, Any]] = [
        ("Reference", Text(str(o["answer_reference"]))),
        ("Answer", Text(str(answer))),
        ("Verdict", _verdict(o)),
    ]
    if topic.evidence:
        measure = o.get("measure") or "score"
        parts = [
            Tagged(
                part.text,
                below=(f"{measure} {score(part.score)}, " if part.score is not None else "")
                + f"longest match {share(part.share)}",
            )
            for part in topic.evidence
        ]
        facts.append(("Evidence", Bullets(parts, numbered=True)))
    blocks: list[Block] = [Facts(facts)]
    for one in topic.details:
        status = f" ({one.status})" if one.status != "ok" else ""
        blocks.append(Fold(f"What {one.measure} rests on{status}", [Bullets(list(one.lines))]))
    blocks.append(Text(f"No context is shown: {topic.note}.", "note") if topic.note else _context(topic))
    return Article(meta, str(o["query"]), blocks)


def _verdict(o: Any) -> list[Block]:
    verdicts = " · ".join(f"{class_name(c)} {n}×" for c, n in sorted(o["verdicts"].items()))
    tone: Any = "" if right_of(pd.DataFrame([o]))[0] else "bad"
    blocks: list[Block] = [Text(o.get("reason") or "", tag=class_name(o["label"]), tone=tone)]
    blocks.append(Text(f"in all jobs: {verdicts}", "small"))
    if o.get("judge_raw"):
        blocks.append(Fold("The judge's reply", [Preformatted(o["judge_raw"])]))
    return blocks


def _context(topic: Topic) -> Fold:
    size = len(topic.chunks)
    shown: list[Block] = [
        Marked(f"{at} · {docno}" if docno else "", [(p.text, p.parts, p.strong) for p in pieces])
        for at, (docno, pieces) in enumerate(topic.chunks, 1)
    ]
    if not shown:
        shown = [Text("Nothing was retrieved.", "small")]
    if topic.left_out:
        shown.append(Text(f"{whole(topic.left_out)} more characters are not shown.", "small"))
    return Fold(f"Context, {size} {'piece' if size == 1 else 'chunks'}", shown)


HIGH_BUT_WRONG, LOW_BUT_RIGHT = "high score, but wrong", "low score, but right"
HALF = 0.5  # of the evidence: what separates a high score from a low one
_WRONG, _RIGHT = (1, 2, 4), 5
_MAX_CHARS = 20_000  # of one context on the page
_SCORED = ("corrected", "scores")  # the stages with the parts' values, the last first
_MIN_CHARS = 8  # of a match that is marked, unless it is half of its part


def worth_reading(outcomes: pd.DataFrame, n: int = 20) -> pd.DataFrame:
    """At most n outcomes, one per topic, whose verdict the IR score does not explain.

    `outcomes` has qid, system, n_tokens, ir_score, label. Added columns: `why` and `verdicts`. `why` is `high score,
    but wrong` (half of the evidence or more is in the context, and the class is 1, 2 or 4) or `low score, but right`.
    `verdicts` are the topic's classes in all rows ({class: rows}, 0 where there is none). One half each, or more of the
    one where the other has too few topics. The furthest off come first, each system in turn; of equals the smallest
    budget among high scores and the largest among low ones.
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


def contexts_of(record: JobRecord, qids: Sequence[str]) -> dict[str, TopicTexts]:
    """Evidence and context of topics of one job at its n_tokens, from the store in its `job.json`.

    Only the rows of these topics are read. Raises DataError where the record names no store, and where the
    store no longer holds the entries.
    """
    if not record.entries or not record.store:
        raise DataError(f"job.json of {record.name} names no store entries")
    store, only = Path(record.store), [("qid", "in", list(qids))]

    def read(stage: str, frame: str) -> pd.DataFrame:
        digest = record.entries.get(stage, "")
        try:
            return read_table(store / stage / digest, f"{frame}.parquet", only)
        except (OSError, DataError) as error:
            raise DataError(f"the store holds no readable {stage}/{digest[:12]} ({frame})") from error

    evidence = read("dataset", "evidence").dropna(subset="text").sort_values(["qid", "part"])
    layouts, prefixes = read("context", "layouts"), read("context", "prefixes")
    contexts = contexts_at(layouts, prefixes, record.n_tokens)
    here = prefixes[prefixes["n_tokens"] == record.n_tokens]
    starts = here.merge(layouts, on=["qid", "layout"], validate="one_to_one").set_index("qid")["starts"]
    stage = next((name for name in _SCORED if name in record.entries), None)
    if stage is not None:
        scores = read(stage, "part_scores")
        own = scores.loc[scores["n_tokens"] == record.n_tokens, ["qid", "part", "value"]]
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
    the context as it is, None where nothing matches. `score`: the part's value by the job's own measure, None where
    that is not known.
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
        """Whether to show the match: a strong one, or one too long for chance."""
        return self.span is not None and (self.strong or self.span[1] - self.span[0] >= _MIN_CHARS)


@dataclass(frozen=True)
class Piece:
    """A stretch of a context, and the numbers (from 1) of the evidence parts that match it.

    `strong` where one of these matches is.
    """

    text: str
    parts: tuple[int, ...]
    strong: bool


@dataclass(frozen=True)
class Topic:
    """A topic for the report: its outcome, evidence, and context by chunk.

    `chunks`: (docno, pieces); `left_out`: characters of the context that are not shown; `note`: why there is
    no context. `details`: the grounds of the values of its answer measures.
    """

    outcome: Mapping[str, Any]
    evidence: Sequence[EvidencePart] = ()
    chunks: Sequence[tuple[str, Sequence[Piece]]] = ()
    left_out: int = 0
    note: str = ""
    details: Sequence[Detail] = ()


def read_topics(chosen: pd.DataFrame, records: Mapping[tuple[str, int], JobRecord]) -> list[Topic]:
    """The rows of `worth_reading` with their texts; `records` are the jobs by (system, n_tokens).

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
    """The context cut at starts of chunks and at both ends of matches."""
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
    """The text with folded white space, stripped, and each character's original offset."""
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


_MOST_LINES = 100  # of one value on the page


@dataclass(frozen=True)
class Detail:
    """The grounds of one value: the measure's name, its status, and lines such as one for every claim."""

    measure: str
    status: str
    lines: Sequence[str]


def details_of(record: JobRecord, qids: Iterable[str]) -> dict[str, list[Detail]]:
    """The details of topics of one job by qid, from its folder; {} without any."""
    path = record.folder / DETAILS_FILE
    if not path.is_file():
        return {}
    rows = pd.read_parquet(path, filters=[("qid", "in", list(qids))])
    found: dict[str, list[Detail]] = {}
    for qid, measure, status, detail in zip(*(rows[c] for c in _COLUMNS), strict=True):
        found.setdefault(qid, []).append(Detail(measure, status, detail_lines(detail)))
    return found


_COLUMNS = ("qid", "measure", "status", "detail")


def write_details(values: pd.DataFrame, folder: Path) -> None:
    """Writes the details of a frame `answer_values`, if any, into a job's folder."""
    if "detail" in values and values["detail"].notna().any():
        kept = values.loc[values["detail"].notna(), list(_COLUMNS)]
        with replacing(folder / DETAILS_FILE) as draft:
            kept.to_parquet(draft, index=False)


def detail_lines(detail: str) -> list[str]:
    """A line per entry of a detail: its text, then its properties; [] if the detail is no object."""
    try:
        content = json.loads(detail)
    except ValueError:
        return []
    lines: list[str] = []
    for key, value in content.items() if isinstance(content, dict) else ():
        lines += map(_line, value) if isinstance(value, list) else [f"{key.replace('_', ' ')}: {_said(value)}"]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"and {more} more"] if more > 0 else lines


def _line(entry: object) -> str:
    if not isinstance(entry, dict):
        return _said(entry)
    (_, text), *rest = entry.items() or [("", "")]
    said = [f"{key.replace('_', ' ')} {_said(value)}" for key, value in rest if value not in (None, [])]
    return " · ".join([_said(text), *said])


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_said, value)) if isinstance(value, list) else str(value)
