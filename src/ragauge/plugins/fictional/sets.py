"""Questions over several entities: comparison, aggregation, negation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ragauge.plugins.fictional.asking import Asker, Question, accepted_count, accepted_names
from ragauge.plugins.fictional.entities import Entity, Fact, Facts, Value
from ragauge.plugins.fictional.relations import RELATIONS

_MORE = [r for r in RELATIONS.values() if r.more]
_SAME = [r for r in RELATIONS.values() if r.same]
_COUNT = [r for r in RELATIONS.values() if r.count]
_NEGATED = [r for r in RELATIONS.values() if r.negated]
_MOST_COUNTED = 8
# Of a set: which has the least or greatest value.
_EXTREMES = {
    "birth_year": (
        ("Of the {set}, who was born first?", "min"),
        ("Who is the youngest of the {set}?", "max"),
    ),
    "founded": (
        ("Which of the {set} is the oldest?", "min"),
        ("Of the {set}, which was founded last?", "max"),
    ),
    "staff": (
        ("Which of the {set} employs the most people?", "max"),
        ("Of the {set}, which has the fewest workers?", "min"),
    ),
    "year": (
        ("Which of the {set} was finished first?", "min"),
        ("Of the {set}, which was finished last?", "max"),
    ),
    "held": (("Which of the {set} took place first?", "min"), ("Of the {set}, which was held last?", "max")),
    "visitors": (("Which of the {set} had the most visitors?", "max"),),
}
_SUMS = {
    "staff": "How many people do the {set} employ together?",
    "visitors": "How many visitors did the {set} have together?",
}


def comparison(asker: Asker) -> Question | None:
    """Which of two has more, or whether two have the same; sometimes the two are only described."""
    return _same(asker) if asker.dice.chance(0.35) else _more(asker)


def _more(asker: Asker) -> Question | None:
    dice = asker.dice
    relation = dice.pick(_MORE)
    kind = relation.subject
    first = asker.entity(dice.pick(asker.known(relation.name)))
    alike = [e for e in asker.alike(first) if asker.facts.get(e.number, relation.name) is not None]
    described = kind in ("person", "firm", "town") and dice.chance(0.3)
    if alike and not described and dice.chance(0.6):
        second = dice.pick(alike)
    else:
        second = asker.entity(dice.pick(asker.known(relation.name)))
    if first is second:
        return None
    sides = [_side(asker, e, described) for e in (first, second)]
    if sides[0] is None or sides[1] is None:
        return None
    (a, told_a), (b, told_b) = sides[0], sides[1]
    wording, which = dice.pick(relation.more)
    solve = partial(_extreme, numbers=(first.number, second.number), relation=relation.name, which=which)
    found = solve(asker.facts)
    if len(found) != 1:
        return None
    facts = (*told_a, (first.number, relation.name), *told_b, (second.number, relation.name))
    if len(set(facts)) != len(facts):
        return None
    answers = accepted_names(asker.entity(found.pop()))
    by_alias = any(name == "alias" for _, name in facts)
    return Question("comparison", wording.format(a=a, b=b), answers, facts, 1 + described, first, kind, by_alias, solve)


def _side(asker: Asker, entity: Entity, described: bool) -> tuple[str, tuple[Fact, ...]] | None:
    """The entity's name, or a description by a fact of another article."""
    if not described:
        return asker.name(entity)
    ways = _ways_to(asker, entity)
    if not ways:
        return None
    name, at = asker.dice.pick(ways)
    text, facts = asker.name(asker.entity(at))
    return asker.dice.pick(asker.phrases(RELATIONS[name])).format(x=text), (*facts, (at, name))


def _ways_to(asker: Asker, entity: Entity) -> list[tuple[str, int]]:
    return [
        (relation.name, holder)
        for relation in RELATIONS.values()
        if relation.phrase and relation.object == entity.kind
        for holder in asker.facts.holders(relation.name, entity.number)
    ]


def _same(asker: Asker) -> Question | None:
    dice = asker.dice
    relation = dice.pick(_SAME)
    first = dice.pick(asker.known(relation.name))
    value = asker.facts.get(first, relation.name)
    assert value is not None
    yes = [n for n in asker.facts.holders(relation.name, value) if n != first]
    no = [n for n in asker.known(relation.name) if asker.facts.get(n, relation.name) != value]
    pool = yes if dice.chance(0.5) else no
    if not pool:
        return None
    second = dice.pick(pool)
    (a, told_a), (b, told_b) = (asker.name(asker.entity(n)) for n in (first, second))
    solve = partial(_equal, numbers=(first, second), relation=relation.name)
    (found,) = solve(asker.facts)
    facts = (*told_a, (first, relation.name), *told_b, (second, relation.name))
    query = dice.pick(relation.same).format(a=a, b=b)
    about = asker.entity(first)
    return Question("comparison", query, (str(found),), facts, 1, about, "yes_no", bool(told_a + told_b), solve)


def aggregation(asker: Asker) -> Question | None:
    """How many there are, which of them is first or last, or their total."""
    dice = asker.dice
    relation = dice.pick(_COUNT)
    value = asker.facts.get(dice.pick(asker.known(relation.name)), relation.name)
    assert value is not None
    holders = sorted(asker.facts.holders(relation.name, value))
    if not 2 <= len(holders) <= _MOST_COUNTED:
        return None
    about = asker.entity(value)
    name, told = asker.name(about)
    facts = (*told, *((n, relation.name) for n in holders))
    if dice.chance(0.5):
        query = dice.pick(relation.count).format(x=name)
        solve = partial(_count, relation=relation.name, value=value)
        return _aggregated(asker, query, solve, facts, 1, about, "number")
    measures = [m for m in _EXTREMES if RELATIONS[m].subject == relation.subject]
    if not measures:
        return None
    measure = dice.pick(measures)
    facts = (*facts, *((n, measure) for n in holders))
    group = relation.set.format(x=name)
    if measure in _SUMS and dice.chance(0.5):
        solve = partial(_sum, relation=relation.name, value=value, measure=measure)
        return _aggregated(asker, _SUMS[measure].format(set=group), solve, facts, 2, about, "number")
    wording, which = dice.pick(_EXTREMES[measure])
    solve = partial(_extreme_of, relation=relation.name, value=value, measure=measure, which=which)
    return _aggregated(asker, wording.format(set=group), solve, facts, 2, about, relation.subject)


def _aggregated(
    asker: Asker,
    query: str,
    solve: Callable[[Facts], set[Value]],
    facts: tuple[Fact, ...],
    hops: int,
    about: Entity,
    answer_type: str,
) -> Question | None:
    found = solve(asker.facts)
    if len(found) != 1:
        return None
    (value,) = found
    answers = accepted_count(int(value)) if answer_type == "number" else asker.names(value)
    by_alias = any(relation == "alias" for _, relation in facts)
    return Question("aggregation", query, answers, facts, hops, about, answer_type, by_alias, solve)


def negation(asker: Asker) -> Question | None:
    """Which of three lacks a property of the other two."""
    dice = asker.dice
    relation = dice.pick(_NEGATED)
    value = asker.facts.get(dice.pick(asker.known(relation.name)), relation.name)
    assert value is not None
    holders = sorted(asker.facts.holders(relation.name, value))
    if len(holders) < 2:
        return None
    two = dice.sample(holders, 2)
    others = [n for n in asker.known(relation.name) if asker.facts.get(n, relation.name) != value]
    if not others:
        return None
    alike = [e.number for n in two for e in asker.alike(asker.entity(n)) if e.number in others]
    three = dice.shuffled([*two, dice.pick(alike or others)])
    about = asker.entity(value)
    name, told = asker.name(about)
    a, b, c = (asker.name(asker.entity(n)) for n in three)
    solve = partial(_odd_one, numbers=tuple(three), relation=relation.name, value=value)
    found = solve(asker.facts)
    if len(found) != 1:
        return None
    facts = list(told)
    for number, (_, known_as) in zip(three, (a, b, c), strict=True):
        facts += [*known_as, (number, relation.name)]
    query = dice.pick(relation.negated).format(x=name, a=a[0], b=b[0], c=c[0])
    answers = accepted_names(asker.entity(found.pop()))
    by_alias = any(which == "alias" for _, which in facts)
    return Question("negation", query, answers, tuple(facts), 1, about, relation.subject, by_alias, solve)


def _extreme(facts: Facts, numbers: tuple[int, ...], relation: str, which: str) -> set[Value]:
    values = {n: facts.get(n, relation) for n in numbers}
    known = [int(v) for v in values.values() if v is not None]
    if len(known) < len(numbers) or not known:
        return set()
    best = min(known) if which == "min" else max(known)
    return {n for n, value in values.items() if value == best}


def _equal(facts: Facts, numbers: tuple[int, int], relation: str) -> set[Value]:
    return {"yes" if facts.get(numbers[0], relation) == facts.get(numbers[1], relation) else "no"}


def _count(facts: Facts, relation: str, value: Value) -> set[Value]:
    return {len(facts.holders(relation, value))}


def _extreme_of(facts: Facts, relation: str, value: Value, measure: str, which: str) -> set[Value]:
    return _extreme(facts, tuple(facts.holders(relation, value)), measure, which)


def _sum(facts: Facts, relation: str, value: Value, measure: str) -> set[Value]:
    values = [facts.get(n, measure) for n in facts.holders(relation, value)]
    return set() if None in values else {sum(int(v) for v in values if v is not None)}


def _odd_one(facts: Facts, numbers: tuple[int, ...], relation: str, value: Value) -> set[Value]:
    return {n for n in numbers if facts.get(n, relation) != value}
