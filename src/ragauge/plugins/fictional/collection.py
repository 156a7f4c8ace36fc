"""The world of `dataset=fictional` as frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ragauge.contract.changed import changed_docno
from ragauge.contract.datasets import Dataset
from ragauge.contract.frames import Batches
from ragauge.datasets.gather import document_frame
from ragauge.plugins.fictional.parameters import TYPES, Parameters
from ragauge.plugins.fictional.twins import Twin
from ragauge.plugins.fictional.world import Blueprint, Topic, interleaved, shards

Document = tuple[str, str, str]  # docno, title, text
_BATCH = 10_000  # documents of a batch of a larger world


def collection(world: Parameters) -> Dataset:
    """The collection; ConfigError if it cannot form so many questions of a kind.

    The documents of a large world come in batches, and are written again for each reading of them.
    """
    large = world.documents > _BATCH
    docs: list[Document] = []
    topics: list[Topic] = []
    for shard in shards(_plan(world), twins=world.twins):
        twins = (_answered_by(topic) for topic in shard.topics)
        docs.extend([shard.document(twin.entity) for twin in twins if twin] if large else shard.docs)
        topics.extend(shard.topics)
    chosen = interleaved(topics)[: world.limit]
    more = _changed_articles(docs, chosen) if world.twins else []
    found = Batches(lambda: _batches(world, more)) if large else document_frame([*docs, *more])
    return Dataset(found, _topic_frame(chosen), _evidence_frame(chosen))


def _batches(world: Parameters, more: Sequence[Document]) -> Iterator[pd.DataFrame]:
    """Frames `docs` of 10,000 documents each: the world's, by region, then other documents."""
    held: list[Document] = []
    for shard in shards(replace(_plan(world), types=()), twins=False):
        held.extend(shard.docs)
        while len(held) >= _BATCH:
            yield document_frame(held[:_BATCH])
            held = held[_BATCH:]
    if held or more:
        yield document_frame([*held, *more])


def counterfactuals(world: Parameters) -> pd.DataFrame:
    """Topics with one fact of one document changed, and the truth beside it.

    Columns: qid; docno and relation of the fact; sentence, as it stands in the document; changed, its replacement;
    answer and changed_answer, and all accepted forms of both (answers, changed_answers). Types other than chain,
    comparison and aggregation have none, nor has a topic for which no single change leads to exactly one other answer.
    """
    found = [topic for shard in shards(_plan(world)) for topic in shard.topics]
    rows = [_twin_row(topic) for topic in interleaved(found)[: world.limit] if topic.twin is not None]
    return pd.DataFrame(rows, columns=list(_TWIN_COLUMNS))


def _plan(world: Parameters) -> Blueprint:
    types = tuple(type_ for type_ in TYPES if not world.types or type_ in world.types)
    alike, pronouns = world.look_alikes, float(world.pronouns)
    return Blueprint(world.documents, world.seed, alike, pronouns, world.style, world.max_hops, world.questions, types)


def _changed_articles(docs: Sequence[Document], topics: Sequence[Topic]) -> list[Document]:
    """The articles of the topics' twins, with the changed sentence in place of the original."""
    known = {docno: (title, text) for docno, title, text in docs}
    found = []
    for topic in topics:
        if (twin := _answered_by(topic)) is not None:
            title, text = known[twin.entity.docno]
            docno = changed_docno(topic.qid, twin.entity.docno)
            found.append((docno, title, text.replace(twin.sentence, twin.changed, 1)))
    return found


def _answered_by(topic: Topic) -> Twin | None:
    """The topic's twin, if its changed sentence alone leads to the other answer.

    Not so in a chain whose changed fact is not the last one: the way leads on to an article that the evidence
    does not name.
    """
    twin = topic.twin
    if twin is None or (topic.question.type == "chain" and twin.relation != topic.question.facts[-1][1]):
        return None
    return twin


_TWIN_COLUMNS = (
    "qid", "docno", "relation", "sentence", "changed", "answer", "changed_answer", "answers",
    "changed_answers",
)  # fmt: skip


def _twin_row(topic: Topic) -> dict[str, Any]:
    twin = topic.twin
    assert twin is not None
    before, after = list(twin.answers), list(twin.changed_answers)
    values = (topic.qid, twin.entity.docno, twin.relation, twin.sentence, twin.changed, before[0], after[0])
    return dict(zip(_TWIN_COLUMNS, (*values, before, after), strict=True))


def _question_row(topic: Topic) -> dict[str, Any]:
    question = topic.question
    return {
        "qid": topic.qid,
        "query": question.query,
        "answer": question.answers[0] if question.answers else None,
        "answers": list(question.answers),
        "unanswerable": not question.answers,
        **topic.attributes(),
    }


def _topic_frame(topics: Sequence[Topic]) -> pd.DataFrame:
    rows = [_question_row(topic) for topic in topics]
    frame = pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype="str") for name in ("qid", "query", "answer")}
    )
    frame["answers"] = pd.Series([row["answers"] for row in rows], dtype=object)
    frame["unanswerable"] = [bool(row["unanswerable"]) for row in rows]
    wrong = [list(twin.changed_answers) if (twin := _answered_by(topic)) else [] for topic in topics]
    if any(wrong):
        frame["wrong_answers"] = pd.Series(wrong, dtype=object)
    for name in topics[0].attributes():
        values = [row[name] for row in rows]
        frame[name] = pd.Series(values, dtype="float64" if isinstance(values[0], float) else "str")
    return frame


def _evidence_frame(topics: Sequence[Topic]) -> pd.DataFrame:
    rows = [(topic.qid, part, docno, text) for topic in topics for part, (docno, text) in enumerate(topic.evidence)]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    types = {"qid": "str", "part": "int64", "docno": "str", "text": "str"}
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=types[name])  # type: ignore[call-overload]
            for name, values in zip(types, columns, strict=True)
        }
    )
