"""Counterfactual twins: one fact of one article changed, with the answer before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragauge.plugins.fictional.articles import write_article
from ragauge.plugins.fictional.asking import Asker, Question, accepted_count
from ragauge.plugins.fictional.dice import Dice
from ragauge.plugins.fictional.entities import THOUSANDS, Entity, Fact, Facts, Region, Value
from ragauge.plugins.fictional.relations import LEADS_ON, RELATIONS

WITH_TWINS = ("chain", "comparison", "aggregation")
_TRIES = 30
_YEARS = 4  # by which a date may move: near enough that a life stays in order


@dataclass(frozen=True)
class Twin:
    """A sentence before and after one fact is changed, with both answers."""

    entity: Entity
    relation: str
    sentence: str
    changed: str
    answers: tuple[str, ...]
    changed_answers: tuple[str, ...]


def twin_of(region: Region, question: Question, qid: str) -> Twin | None:
    """A twin of the question, by the last of its facts that can be changed; None if none can.

    Under the changed fact the question has exactly one answer again, another one. The article differs in one
    sentence. Negations have none (with one fact changed two of the three would be the odd one), and nor have
    questions whose answer is a correction or missing.
    """
    if question.type not in WITH_TWINS:
        return None
    asker = Asker(region, Dice(region.seed, region.number, "twin", qid))
    passed = {number for number, _ in question.facts}
    for fact in reversed(question.facts):
        if fact[1] == "alias":
            continue
        peers = [asker.facts.get(n, r) for n, r in question.facts if r == fact[1] and n != fact[0]]
        for _ in range(_TRIES):
            value = _another(asker, fact, peers)
            if value is None or (fact[1] in LEADS_ON and value in passed):
                continue
            changed = region.facts.changed(fact, value)
            answers = _answers(asker, question, changed)
            if answers and not set(answers) & set(question.answers):
                return _written(region, question, fact, changed, answers)
    return None


def _another(asker: Asker, fact: Fact, peers: Sequence[Value | None]) -> Value | None:
    """Another possible value of the fact, sometimes a peer's or an adjacent one."""
    number, relation = fact
    value, dice = asker.facts.get(number, relation), asker.dice
    peer = dice.pick(peers) if peers and dice.chance(0.5) else None
    if relation in LEADS_ON:
        pick = peer if peer is not None else dice.pick(asker.region.of_kind(RELATIONS[relation].object)).number
        return None if pick in (value, number) else pick
    if RELATIONS[relation].object == "name":
        values = sorted({str(v) for (_, r), v in asker.facts.values.items() if r == relation and v != value})
        return peer if peer not in (None, value) else dice.pick(values) if values else None
    assert isinstance(value, int)
    assert peer is None or isinstance(peer, int)
    if relation in THOUSANDS and peer is None:
        return max(30, round(value * (0.3 + 2.0 * dice.random())) + dice.between(1, 9))
    return (value if peer is None else peer) + dice.pick((-1, 1)) * dice.between(1, _YEARS)


def _answers(asker: Asker, question: Question, facts: Facts) -> tuple[str, ...]:
    found = question.solve(facts)
    if len(found) != 1:
        return ()
    (value,) = found
    if question.answer_type == "yes_no":
        return (str(value),)
    if question.type == "aggregation" and question.answer_type == "number":
        return accepted_count(int(value))
    if question.type == "chain":
        return asker.accepted(question.facts[-1][1], value)
    return asker.names(value)


def _written(region: Region, question: Question, fact: Fact, changed: Facts, answers: tuple[str, ...]) -> Twin | None:
    entity = region.entities[fact[0]]
    before, after = write_article(region, entity), write_article(region, entity, changed)
    differ = [(a.text, b.text) for a, b in zip(before, after, strict=True) if a.text != b.text]
    if len(differ) != 1:
        raise AssertionError(f"{entity.title}: {fact[1]} stands in {len(differ)} sentences")
    return Twin(entity, fact[1], *differ[0], question.answers, answers)
