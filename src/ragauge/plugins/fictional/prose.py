"""The compiled rules of all articles: vocabulary, and sentences for the facts of each kind."""

from __future__ import annotations

from dataclasses import dataclass

from ragauge.plugins.fictional import plain_prose as plain
from ragauge.plugins.fictional import prose_people as people
from ragauge.plugins.fictional import prose_places as places
from ragauge.plugins.fictional import prose_things as things
from ragauge.plugins.fictional.grammar import Template, compile_rules, compile_template
from ragauge.plugins.fictional.words import PHRASES, WORDS

_MORE: dict[str, tuple[str, ...]] = {
    "act_firm": (
        "ships {things} and {food} {often}",
        "sells {np} to {who}",
        "lends {things} to {trades}",
        "bottles {food} and {food}",
        "prints catalogues on {topic}",
        "keeps {n} {animals} in {spot}",
        "buys {material} and {material}",
        "repairs {things} for {who}",
        "advertises {manner} on {colour} [paper|posters|canvas|tin plates]",
        "stores {food} {near}",
        "hires {who} {often}",
        "pays for {np}",
        "sends {np} to {who}",
    ),
    "act_bare": (
        "ship {things}",
        "sell {adj} {things}",
        "repair {things} of {material}",
        "store {food} or {food}",
        "advertise {things}",
        "buy {material}",
    ),
    "act2": (
        "lost {np}",
        "quarrelled with {who}",
        "sold {n} {animals}",
        "studied {topic} {manner}",
        "inherited {np} from {who}",
        "given up {doing}",
        "read {n} books on {topic}",
        "bought {spot}",
        "lived {near}",
        "refused {np}",
    ),
    "shows": (
        "dwells on",
        "shows",
        "mocks",
        "makes fun of",
        "describes",
        "ends with",
        "praises",
        "returns to",
        "turns on",
    ),
    "shows2": (
        "opened with",
        "ended with",
        "was to honour",
        "cost the town",
        "made do with",
        "earned its guests",
        "left behind",
    ),
    "smells": ("smells", "reeks", "has long smelt", "still smells"),
    "topic_illness": (
        "a [cold|chill|cough] caught [while|when] {doing}",
        "a fever",
        "a fall from {spot}",
        "eating {food}",
        "old age {near}",
    ),
}


def _templates(texts: tuple[str, ...]) -> tuple[Template, ...]:
    return tuple(map(compile_template, texts))


def _all_rules() -> dict[str, tuple[Template, ...]]:
    plain = {**WORDS, **PHRASES, **_MORE}
    # Rules that stand at the start of a sentence: the writer sets the capital.
    for name in ("why", "when", "n", "who", "animals", "colour", "trades"):
        plain[{"why": "Why", "when": "When"}.get(name, f"{name}_up")] = plain[name]
    plain["when_up"] = plain["when"]
    return compile_rules(plain)


@dataclass(frozen=True)
class Prose:
    """The sentence templates of one kind: opening sentences, sentences that hold facts, and others."""

    leads: tuple[Template, ...]
    facts: dict[tuple[str, ...], tuple[Template, ...]]
    fillers: tuple[Template, ...]
    aka: tuple[Template, ...] = ()
    aka_end: tuple[Template, ...] = ()


def _prose(
    leads: tuple[str, ...],
    facts: dict[tuple[str, ...], tuple[str, ...]],
    fillers: tuple[str, ...],
    aka: tuple[str, ...] = (),
    aka_end: tuple[str, ...] = (),
) -> Prose:
    told = {relations: _templates(texts) for relations, texts in facts.items()}
    return Prose(_templates(leads), told, _templates(fillers), _templates(aka), _templates(aka_end))


@dataclass(frozen=True)
class Style:
    """A writing style: the sentences of each kind, and the rules that its words come from."""

    prose: dict[str, Prose]
    rules: dict[str, tuple[Template, ...]]


_HARD = {
    "person": _prose(people.LEADS, people.FACTS, people.FILLERS, people.AKA, people.AKA),
    "town": _prose(places.TOWN_LEADS, places.TOWN_FACTS, places.TOWN_FILLERS, places.TOWN_AKA, places.TOWN_AKA_END),
    "event": _prose(places.EVENT_LEADS, places.EVENT_FACTS, places.EVENT_FILLERS),
    "firm": _prose(things.FIRM_LEADS, things.FIRM_FACTS, things.FIRM_FILLERS),
    "work": _prose(things.WORK_LEADS, things.WORK_FACTS, things.WORK_FILLERS),
}
_PLAIN = {
    kind: _prose(
        plain.LEADS[kind], plain.FACTS[kind], plain.FILLERS[kind], plain.AKA.get(kind, ()), plain.AKA.get(kind, ())
    )
    for kind in plain.FACTS
}
STYLES = {"plain": Style(_PLAIN, compile_rules(plain.WORDS)), "hard": Style(_HARD, _all_rules())}
