"""Questions of one to four hops: from a named entity along facts to the answer."""

from __future__ import annotations

from functools import partial

from ragauge.plugins.fictional.asking import Asker, Question
from ragauge.plugins.fictional.entities import Entity, Fact, Facts, Value
from ragauge.plugins.fictional.relations import LEADS_ON, OF_KIND, RELATIONS

_BACKWARDS = 0.35  # share of the steps that are taken from a value to the only one that has it
Step = tuple[str, bool]  # a relation, and whether it is taken backwards


def solve_chain(facts: Facts, start: int, steps: tuple[Step, ...]) -> set[Value]:
    """All values that the steps lead to."""
    at: set[Value] = {start}
    for relation, backwards in steps:
        if backwards:
            at = {holder for value in at for holder in facts.holders(relation, value)}
        else:
            values = {facts.get(int(number), relation) for number in at}
            at = {value for value in values if value is not None}
    return at


def chain(asker: Asker, hops: int) -> Question | None:
    """A question of so many hops, or None if the random walk ends early."""
    start = asker.dice.pick(asker.region.entities)
    text, facts = asker.name(start)
    walk = _walk(asker, start, text, hops - 1)
    if walk is None:
        return None
    end, text, steps, told, passed = walk
    last = [r for r in OF_KIND[end.kind] if asker.facts.get(end.number, r.name) is not None]
    last = [r for r in last if r.name not in LEADS_ON or asker.facts.get(end.number, r.name) not in passed]
    if not last:
        return None
    relation = asker.dice.pick(last)
    steps = (*steps, (relation.name, False))
    solve = partial(solve_chain, start=start.number, steps=steps)
    found = solve(asker.facts)
    if len(found) != 1:
        return None
    query = asker.asks(relation).format(x=text)
    answers = asker.accepted(relation.name, found.pop())
    told = (*facts, *told, (end.number, relation.name))
    return Question("chain", query, answers, told, hops, start, relation.object, bool(facts), solve)


def _walk(
    asker: Asker, start: Entity, text: str, n: int
) -> tuple[Entity, str, tuple[Step, ...], tuple[Fact, ...], set[int]] | None:
    """A walk of n steps to an entity: its end, words, steps, facts, and the entities passed."""
    at, passed = start, {start.number}
    steps: tuple[Step, ...] = ()
    told: tuple[Fact, ...] = ()
    for _ in range(n):
        backwards = asker.dice.chance(_BACKWARDS)
        ways = backward_ways(asker, at) if backwards else forward_ways(asker, at)
        ways = [way for way in ways if way[1] not in passed]
        if not ways:
            return None
        name, to = asker.dice.pick(ways)
        relation = RELATIONS[name]
        wordings = relation.inverse if backwards else asker.phrases(relation)
        # Several relative clauses within each other cannot be read: words that end with their object nest.
        plain = [wording for wording in wordings if wording.endswith("{x}")] if n > 1 else []
        text = asker.dice.pick(plain or wordings).format(x=text)
        told = (*told, (to if backwards else at.number, name))
        steps = (*steps, (name, backwards))
        passed.add(to)
        at = asker.entity(to)
    return at, text, steps, told, passed


def forward_ways(asker: Asker, at: Entity) -> list[tuple[str, int]]:
    """(relation, entity) of an entity's facts that lead to another entity."""
    ways = []
    for relation in OF_KIND[at.kind]:
        value = asker.facts.get(at.number, relation.name)
        if relation.phrase and value is not None:
            ways.append((relation.name, int(value)))
    return ways


def backward_ways(asker: Asker, at: Entity) -> list[tuple[str, int]]:
    """(relation, entity) of facts whose value is this entity and that have one subject only."""
    ways = []
    for relation in RELATIONS.values():
        if relation.inverse and relation.object == at.kind:
            holders = asker.facts.holders(relation.name, at.number)
            if len(holders) == 1:
                ways.append((relation.name, holders[0]))
    return ways
