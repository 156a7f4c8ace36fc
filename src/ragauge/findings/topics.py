"""Topics worth reading: score and verdict disagree, and here is what the LLM was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from ragauge.contract.jobs import Jobs
from ragauge.findings.names import class_name
from ragauge.findings.topic_texts import Topic, read_topics, worth_reading
from ragauge.show.formats import score, share, whole


class WorthReading(Finding):
    """At most twenty topics whose verdict the IR score does not explain."""

    name = "topics"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The topics with their texts; None where no verdict is out of line with its score."""
        if "thresholds" not in found:
            return None
        of_job = {(s, int(r["n_tokens"])): r for s, r in zip(jobs.systems, jobs.records, strict=True)}
        topics = read_topics(worth_reading(jobs.outcomes), of_job)
        return Found(topics) if topics else None

    def show(self, jobs: Jobs, value: Sequence[Topic], found: Founds) -> Shown:
        """An article for each, the context behind a click."""
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
    meta = f"{o['system']} · N = {o['n_tokens']} · IR score {score(o['ir_score'])} · qid {o['qid']}"
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
    tone: Any = "" if o["label"] == 5 else "bad"
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
