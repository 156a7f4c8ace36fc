"""A question, how it names its entities, and its accepted answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragauge.plugins.fictional.dice import Dice
from ragauge.plugins.fictional.entities import THOUSANDS, Entity, Fact, Facts, Region, Value
from ragauge.plugins.fictional.plain_prose import ASKS as PLAIN_ASKS
from ragauge.plugins.fictional.plain_prose import PHRASES as PLAIN_PHRASES
from ragauge.plugins.fictional.relations import LEADS_ON, RELATIONS, Relation

_ALIAS = 0.3  # share of the mentions by alias, of those that have one
_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]


@dataclass(frozen=True)
class Question:
    """One question about a region.

    `facts` are the needed ones, in the order of the steps. `solve` gives the possible answers for other facts: exactly
    one where the question has an answer.
    """

    type: str
    query: str
    answers: tuple[str, ...]  # the first is the reference; empty where there is no answer
    facts: tuple[Fact, ...]
    hops: int
    about: Entity
    answer_type: str
    by_alias: bool
    solve: Callable[[Facts], set[Value]]


class Asker:
    """The base of all question makers: a region, dice, and names for entities."""

    def __init__(self, region: Region, dice: Dice) -> None:
        self.region, self.dice = region, dice
        self.facts = region.facts

    def name(self, entity: Entity) -> tuple[str, tuple[Fact, ...]]:
        """How a question names the entity, and the fact needed to recognise it (its alias)."""
        if entity.alias is not None and self.dice.chance(_ALIAS):
            return entity.alias, ((entity.number, "alias"),)
        return _with_article(entity), ()

    def asks(self, relation: Relation) -> str:
        """A question for the value of a relation of {x}."""
        plain = PLAIN_ASKS if self.region.style == "plain" else {}
        return self.dice.pick(plain.get(relation.name, relation.asks))

    def phrases(self, relation: Relation) -> tuple[str, ...]:
        """Words for the value of a relation of {x}."""
        plain = PLAIN_PHRASES if self.region.style == "plain" else {}
        return plain.get(relation.name, relation.phrase)

    def entity(self, number: Value) -> Entity:
        return self.region.entities[int(number)]

    def known(self, relation: str) -> list[int]:
        """The numbers of all entities with a known value of the relation, in order."""
        kind = RELATIONS[relation].subject
        return [e.number for e in self.region.of_kind(kind) if self.facts.get(e.number, relation) is not None]

    def alike(self, entity: Entity) -> list[Entity]:
        """Other entities of its kind with the same stem."""
        return [e for e in self.region.entities if e.stem == entity.stem and e.kind == entity.kind and e is not entity]

    def names(self, number: Value) -> tuple[str, ...]:
        """The accepted names of an entity."""
        return accepted_names(self.entity(number))

    def accepted(self, relation: str, value: Value) -> tuple[str, ...]:
        """All accepted forms of a relation's value, the reference first."""
        if relation in LEADS_ON:
            return accepted_names(self.entity(value))
        if relation in THOUSANDS:
            return (f"{value:,}", str(value))
        if RELATIONS[relation].object == "name" and relation == "river":
            return (str(value), f"the {value}", f"the river {value}")
        return (str(value),)


def accepted_names(entity: Entity) -> tuple[str, ...]:
    """The accepted names of an entity, its usual name in articles first."""
    names = [entity.mention, entity.name, entity.title]
    if entity.kind == "event":
        names.append(f"the {entity.name}")
    if entity.alias is not None:
        names.append(entity.alias)
    return tuple(dict.fromkeys(names))


def accepted_count(number: int) -> tuple[str, ...]:
    """A number in digits and, up to twenty, in words."""
    plain = (f"{number:,}",) if number < 1000 else (f"{number:,}", str(number))
    return (*plain, _WORDS[number]) if number < len(_WORDS) else plain


def _with_article(entity: Entity) -> str:
    return f"the {entity.name}" if entity.kind == "event" else entity.mention
