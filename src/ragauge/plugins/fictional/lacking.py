"""Questions that the articles do not answer: with a false premise, or for a fact that no article states."""

from __future__ import annotations

from functools import partial

from ragauge.plugins.fictional.asking import Asker, Question, accepted_names
from ragauge.plugins.fictional.chains import Step, forward_ways, solve_chain
from ragauge.plugins.fictional.relations import LEADS_ON, OF_KIND, RELATIONS

# Relation: a question that takes a wrong value for granted, and what is right.
_PREMISES = {
    "founder": ("In which year did {wrong} found {x}?", "{x} was founded by {right}, not by {wrong}."),
    "creator": ("In which year did {wrong} finish {x}?", "{x} is by {right}, not by {wrong}."),
    "teacher": ("Where did {wrong} teach {x}?", "{x} was taught by {right}, not by {wrong}."),
    "birthplace": ("In which year was {x} born in {wrong}?", "{x} was born in {right}, not in {wrong}."),
    "seat": (
        "How many people work at the seat of {x} in {wrong}?",
        "{x} has its seat in {right}, not in {wrong}.",
    ),
    "owner": ("Why did {wrong} take over {x}?", "{x} was taken over by {right}, not by {wrong}."),
    "place": ("How many visitors came to {wrong} for {x}?", "{x} took place in {right}, not in {wrong}."),
    "winner": (
        "How did {wrong} win the first prize at {x}?",
        "The first prize at {x} went to {right}, not to {wrong}.",
    ),
    "organiser": ("In which year did {wrong} organise {x}?", "{x} was organised by {right}, not by {wrong}."),
    "mayor": (
        "When did {wrong} become the first mayor of {x}?",
        "The first mayor of {x} was {right}, not {wrong}.",
    ),
    "setting": ("In which part of {wrong} is {x} set?", "{x} is set in {right}, not in {wrong}."),
    "dedicatee": ("Why is {x} dedicated to {wrong}?", "{x} is dedicated to {right}, not to {wrong}."),
    "river": (
        "Where in {x} does one cross the {wrong}?",
        "The river of {x} is the {right}, not the {wrong}.",
    ),
    "backer": ("How much did {wrong} pay for {x}?", "{x} was paid for by {right}, not by {wrong}."),
}


def false_premise(asker: Asker) -> Question | None:
    """A question that assumes something an article contradicts; its answer is the correction."""
    dice = asker.dice
    relation = dice.pick(list(_PREMISES))
    number = dice.pick(asker.known(relation))
    right = asker.facts.get(number, relation)
    assert right is not None
    about = asker.entity(number)
    name, told = asker.name(about)
    if relation in LEADS_ON:
        held = asker.entity(right)
        alike = asker.alike(held) or asker.region.of_kind(held.kind)
        wrong_one = dice.pick([e for e in alike if e is not held and e is not about] or [about])
        if wrong_one is about:
            return None
        wrong, rights, truth = wrong_one.mention, accepted_names(held), held.mention
    else:
        values = sorted({str(v) for (_, r), v in asker.facts.values.items() if r == relation and v != right})
        wrong, rights, truth = dice.pick(values), (str(right), f"the {right}"), str(right)
    query, correction = (text.format(x=name, wrong=wrong, right=truth) for text in _PREMISES[relation])
    answers = (correction[:1].upper() + correction[1:], *rights)
    facts = (*told, (number, relation))
    solve = partial(solve_chain, start=number, steps=((relation, False),))
    return Question("false_premise", query, answers, facts, 1, about, "correction", bool(told), solve)


def unanswerable(asker: Asker) -> Question | None:
    """A question for a fact that no article states, about an entity that has an article."""
    dice = asker.dice
    about = dice.pick(asker.region.entities)
    name, told = asker.name(about)
    end, hops = about, 1
    steps: tuple[Step, ...] = ()
    ways = forward_ways(asker, about)
    if ways and dice.chance(0.4):
        by, to = dice.pick(ways)
        end, hops, steps = asker.entity(to), 2, ((by, False),)
        name = dice.pick(asker.phrases(RELATIONS[by])).format(x=name)
    absent = [r for r in OF_KIND[end.kind] if asker.facts.get(end.number, r.name) is None]
    # Who is married stands in one of the two articles only.
    if asker.facts.holders("spouse", end.number):
        absent = [r for r in absent if r.name != "spouse"]
    if not absent:
        return None
    relation = dice.pick(absent)
    solve = partial(solve_chain, start=about.number, steps=(*steps, (relation.name, False)))
    if solve(asker.facts):
        return None
    query = asker.asks(relation).format(x=name)
    return Question("unanswerable", query, (), (), hops, about, relation.object, bool(told), solve)
