"""A whole world, region by region: articles, and questions with the sentences that answer them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragauge.contract.errors import ConfigError
from ragauge.plugins.fictional.articles import Sentence, text_of, write_article
from ragauge.plugins.fictional.asking import Question
from ragauge.plugins.fictional.entities import Entity, Region
from ragauge.plugins.fictional.names import Names
from ragauge.plugins.fictional.questions import kinds, questions_of
from ragauge.plugins.fictional.region import make_region, sizes
from ragauge.plugins.fictional.twins import Twin, twin_of


@dataclass(frozen=True)
class Topic:
    """A question under its qid, with the needed sentences (docno, sentence) and attributes for slices."""

    qid: str
    question: Question
    evidence: tuple[tuple[str, str], ...]
    look_alikes: int
    twin: Twin | None

    def attributes(self) -> dict[str, str | float]:
        """The topic's attributes by name (docs/fictional.md)."""
        question = self.question
        return {
            "type": question.type,
            "hops": float(question.hops),
            "domain": question.about.kind,
            "answer_type": question.answer_type,
            "named_by": "alias" if question.by_alias else "name",
            "look_alikes": float(self.look_alikes),
            "n_evidence": float(len(self.evidence)),
        }


class Articles:
    """The articles of a region by entity number, each written on first use."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._written: dict[int, list[Sentence]] = {}

    def __getitem__(self, number: int) -> list[Sentence]:
        if number not in self._written:
            self._written[number] = write_article(self._region, self._region.entities[number])
        return self._written[number]


@dataclass(frozen=True)
class Shard:
    """One region: its topics, and its documents (docno, title, text), each written on first use."""

    topics: tuple[Topic, ...]
    entities: tuple[Entity, ...]
    articles: Articles

    @property
    def docs(self) -> list[tuple[str, str, str]]:
        """All documents of the region."""
        return [self.document(entity) for entity in self.entities]

    def document(self, entity: Entity) -> tuple[str, str, str]:
        """The document of an entity of the region."""
        return entity.docno, entity.title, text_of(self.articles[entity.number])


@dataclass(frozen=True)
class Blueprint:
    """The settings of a world; `questions` is the number of each kind."""

    documents: int
    seed: int
    look_alikes: int
    pronouns: float
    style: str
    max_hops: int
    questions: int
    types: tuple[str, ...]


def shards(plan: Blueprint, twins: bool = True) -> Iterator[Shard]:
    """The world's regions in order, one in memory at a time; `twins` adds the counterfactuals.

    A region's documents follow from the seed, its number, its size, look-alikes, pronouns and style alone. So a larger
    world of a seed has those of a smaller one, except for the last region. Questions are spread over all regions.
    Raises ConfigError where the world has too few questions of a kind.
    """
    names, layout = Names(plan.seed), sizes(plan.documents)
    asked = dict.fromkeys(kinds(plan.types, plan.max_hops), 0)
    for number, size in enumerate(layout):
        region = make_region(names, plan.seed, number, size, plan.look_alikes, plan.pronouns, plan.style)
        articles = Articles(region)
        topics: list[Topic] = []
        for kind, already in asked.items():
            # As many as the regions that are left must bring on average.
            wanted = -(-(plan.questions - already) // (len(layout) - number))
            for question in questions_of(region, kind, wanted, plan.max_hops):
                qid = f"{kind}-{asked[kind] + 1:04d}"
                asked[kind] += 1
                topics.append(_topic(region, articles, question, qid, twins))
        yield Shard(tuple(topics), region.entities, articles)
    for kind, found in asked.items():
        if found < plan.questions:
            raise ConfigError(
                f"dataset.questions={plan.questions}: a world of {plan.documents} documents with "
                f"{plan.look_alikes} look-alikes and seed {plan.seed} has {found} questions of the kind "
                f"{kind}; "
                f"allowed are at most {found}, or more documents"
            )


def interleaved(topics: list[Topic]) -> list[Topic]:
    """The first question of every kind, then the second of every kind, and so on."""
    return sorted(topics, key=lambda topic: (topic.qid.rpartition("-")[2], topic.qid))


def _topic(region: Region, articles: Articles, question: Question, qid: str, twins: bool) -> Topic:
    parts: dict[tuple[str, str], None] = {}
    for number, relation in question.facts:
        told = [sentence.text for sentence in articles[number] if relation in sentence.tells]
        if len(told) != 1:
            raise AssertionError(f"{relation} of {region.entities[number].title} is told {len(told)} times")
        parts[region.entities[number].docno, told[0]] = None
    twin = twin_of(region, question, qid) if twins else None
    return Topic(qid, question, tuple(parts), _alike(region, question.about), twin)


def _alike(region: Region, entity: Entity) -> int:
    return sum(e.stem == entity.stem and e.kind == entity.kind for e in region.entities) - 1
