"""The entities and facts of a region."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ragauge.plugins.fictional.relations import LEADS_ON

# An entity's number in its region, a year, a count, or a name that no article is about.
Value: TypeAlias = "int | str"
Fact: TypeAlias = "tuple[int, str]"  # whose (number of an entity), which relation


@dataclass
class Entity:
    """The subject of an article.

    `noun` is its kind (a painter, a novel); `stem` is shared by look-alikes.
    """

    number: int
    kind: str
    name: str
    noun: str
    stem: str
    female: bool = False
    alias: str | None = None
    homonym: bool = False

    @property
    def title(self) -> str:
        """The article's title: the name, followed by the kind if another entity has the same name."""
        return f"{self.name} ({self.noun})" if self.homonym else self.name

    @property
    def docno(self) -> str:
        return self.title.replace(" ", "_")

    @property
    def mention(self) -> str:
        """The unique name of the entity in other articles and in questions."""
        return f"the {self.noun} {self.name}" if self.homonym else self.name


@dataclass
class Facts:
    """The facts of a world: one value per fact. `holders` is the inverse."""

    values: dict[Fact, Value] = field(default_factory=dict)
    _holders: dict[tuple[str, Value], list[int]] | None = None
    _known: dict[int, dict[str, Value]] | None = None

    def get(self, number: int, relation: str) -> Value | None:
        """The value, or None if the world has no such fact."""
        return self.values.get((number, relation))

    def known(self, number: int) -> dict[str, Value]:
        """{relation: value} of one entity."""
        if self._known is None:
            found: dict[int, dict[str, Value]] = defaultdict(dict)
            for (at, relation), value in self.values.items():
                found[at][relation] = value
            self._known = dict(found)
        return self._known.get(number, {})

    def holders(self, relation: str, value: Value) -> list[int]:
        """All entities whose relation has this value."""
        if self._holders is None:
            found: dict[tuple[str, Value], list[int]] = defaultdict(list)
            for (number, name), at in self.values.items():
                found[name, at].append(number)
            self._holders = dict(found)
        return self._holders.get((relation, value), [])

    def changed(self, fact: Fact, value: Value) -> Facts:
        """A copy with one fact changed."""
        return Facts({**self.values, fact: value})


@dataclass(frozen=True)
class Region:
    """A closed part of the world: no fact leads out of it, and no name in it is used elsewhere.

    pronouns: the share of its sentences with a fact that need not name their subject in full. style: how its
    articles and questions are worded, plain or hard.
    """

    seed: int
    number: int
    entities: tuple[Entity, ...]
    facts: Facts
    pronouns: float = 1.0
    style: str = "hard"

    def of_kind(self, kind: str) -> list[Entity]:
        return [entity for entity in self.entities if entity.kind == kind]

    def shown(self, relation: str, value: Value) -> str:
        """The value as articles write it."""
        if relation in LEADS_ON:
            return self.entities[int(value)].mention
        return f"{value:,}" if relation in THOUSANDS else str(value)


THOUSANDS = frozenset(("population", "staff", "visitors"))


def mark_homonyms(entities: Iterable[Entity]) -> None:
    """Marks every entity that shares its name with another."""
    named: Mapping[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        named[entity.name].append(entity)
    for same in named.values():
        for entity in same:
            entity.homonym = len(same) > 1
