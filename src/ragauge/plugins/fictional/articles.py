"""Writes an entity's article: one sentence per fact and filler sentences, in random order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ragauge.plugins.fictional.dice import Dice
from ragauge.plugins.fictional.entities import Entity, Facts, Region
from ragauge.plugins.fictional.grammar import Template, Writer, slots_of
from ragauge.plugins.fictional.names import street
from ragauge.plugins.fictional.prose import STYLES, Prose

# Facts that are told together (with this probability) where the entity has both.
_TOGETHER = {
    "person": (("birthplace", "birth_year", 0.6),),
    "town": (("river", "province", 0.4),),
    "firm": (("founder", "founded", 0.5),),
    "work": (("creator", "year", 0.5),),
    "event": (("place", "held", 0.5),),
}
_ALWAYS = (("prize", "prize_year"),)
# At least and at most so many sentences of which no question asks.
_FILLERS = {"plain": (3, 5), "hard": (2, 5)}
_SUBJECT = "\x00"
_MARKED = {"S": _SUBJECT, "s": _SUBJECT}
_SELF = {"town": "town", "firm": "firm", "event": "event"}


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the facts of its article's subject that it states ("alias" among them)."""

    text: str
    tells: tuple[str, ...] = ()


def text_of(article: Sequence[Sentence]) -> str:
    """The article's text in the corpus."""
    return " ".join(sentence.text for sentence in article)


def write_article(region: Region, entity: Entity, facts: Facts | None = None) -> list[Sentence]:
    """The sentences of an entity's article; exactly one states each fact.

    With other `facts` of the same relations the article is the same but for their values.
    """
    known = (facts or region.facts).known(entity.number)
    dice = Dice(region.seed, region.number, "article", entity.number)
    style = STYLES[region.style]
    prose, writer = style.prose[entity.kind], Writer(style.rules, dice)
    values = {relation: region.shown(relation, value) for relation, value in known.items()}
    names = _Names(region, entity, dice)
    out = [_lead(prose, entity, writer, dice, names)]
    groups = _groups(entity.kind, set(known), dice)
    plan = [_told(region, entity.kind, group, dice) for group in groups]
    fillers = dice.sample(prose.fillers, dice.between(*_FILLERS[region.style]))
    for told in _ordered(dice, [*plan, *(_Told((), filler) for filler in fillers)]):
        tells = told.tells
        given = {**names.slots(), **{r: values[r] for r in tells}}
        given |= {f"{r}_up": values[r] for r in tells}
        given |= {f"{r}_s": f"{values[r]}'s" for r in tells}
        text = writer.write(told.template, given | (_MARKED if told.by_name else {}))
        out.append(Sentence(_named(text, names.full, given["s"]) if told.by_name else text, tells))
    return out


@dataclass(frozen=True)
class _Told:
    """The fact of a sentence, its words, and whether it names its subject in full."""

    tells: tuple[str, ...]
    template: Template
    by_name: bool = False


def _told(region: Region, kind: str, group: tuple[str, ...], dice: Dice) -> _Told:
    """Words for some facts; with few pronouns, mostly words that name the subject."""
    templates = STYLES[region.style].prose[kind].facts[group]
    if region.pronouns == 1 or dice.chance(region.pronouns):
        return _Told(group, dice.pick(templates))
    naming = _naming(region.style, kind, group)
    return _Told(group, dice.pick(naming or templates), bool(naming))


@cache
def _naming(style: str, kind: str, group: tuple[str, ...]) -> tuple[Template, ...]:
    """The templates that name their subject, for some facts."""
    templates = STYLES[style].prose[kind].facts[group]
    return tuple(t for t in templates if slots_of(t) & _MARKED.keys())


def _named(text: str, name: str, pronoun: str) -> str:
    """The text with the subject's name at its first mention, and pronouns after that."""
    text = text.replace(_SUBJECT, name, 1).replace(_SUBJECT, pronoun)
    return text[:1].upper() + text[1:]


def _lead(prose: Prose, entity: Entity, writer: Writer, dice: Dice, names: _Names) -> Sentence:
    given = {"full": entity.name, "noun": entity.noun, **names.slots(), "aka": "", "aka_end": ""}
    template = dice.pick(prose.leads)
    tells: tuple[str, ...] = ()
    if entity.alias is not None:
        option = dice.below(len(prose.aka))
        with_alias = {**given, "alias": entity.alias}
        # The phrase stands within a sentence: its first letter is no capital.
        given["aka"] = writer.write(prose.aka[option], with_alias)
        given["aka_end"] = given["aka"] if prose.aka is prose.aka_end else given["aka"].removesuffix(",")
        tells = ("alias",)
    # An apposition behind a name ends in a comma of its own.
    return Sentence(writer.write(template, given).replace(",,", ","), tells)


def _groups(kind: str, known: set[str], dice: Dice) -> list[tuple[str, ...]]:
    left = dict.fromkeys(sorted(known))
    groups: list[tuple[str, ...]] = []
    for first, second, p in _TOGETHER[kind]:
        together = dice.chance(p)
        if together and first in left and second in left:
            groups.append((first, second))
            del left[first], left[second]
    for pair in _ALWAYS:
        if pair[0] in left:
            groups.append(pair)
            for relation in pair:
                del left[relation]
    return [*groups, *((relation,) for relation in left)]


def _ordered(dice: Dice, body: Sequence[_Told]) -> list[_Told]:
    """Birth usually first, death last, the rest in random order."""

    def place(tells: tuple[str, ...]) -> float:
        at = dice.random()
        if "birth_year" in tells or "birthplace" in tells:
            return at - 0.6
        return at + 1.0 if "death_year" in tells else at

    return [entry for _, entry in sorted(((place(e.tells), e) for e in body), key=lambda pair: pair[0])]


class _Names:
    """The words for the subject in a sentence: a pronoun, its name, or its kind."""

    def __init__(self, region: Region, entity: Entity, dice: Dice) -> None:
        self._region, self._entity, self._dice = region, entity, dice
        plain_event = region.style == "plain" and entity.kind == "event"
        self.full = f"the {entity.name}" if plain_event else entity.name

    def slots(self) -> Mapping[str, str]:
        entity, dice = self._entity, self._dice
        if entity.kind == "person":
            pronoun, his, him = ("she", "her", "her") if entity.female else ("he", "his", "him")
            short = entity.stem
        else:
            pronoun, his, him, short = "it", "its", "it", f"the {_SELF.get(entity.kind, entity.noun)}"
        noun = f"the {_SELF.get(entity.kind, entity.noun)}"
        subject = dice.pick((pronoun, pronoun, short, noun))
        name = entity.name if entity.kind in ("town", "firm") else short if entity.kind == "person" else noun
        slots = {
            "S": subject[:1].upper() + subject[1:],
            "s": pronoun,
            "s_name": name,
            "his": his,
            "him": him,
            "His": his.capitalize(),
            "noun": _SELF.get(entity.kind, entity.noun),
        }
        return slots | (self._mentions() if self._region.style == "plain" else {"street": street(dice)})

    def _mentions(self) -> dict[str, str]:
        """Another entity of the subject's kind, a year and a number, which no question asks for."""
        dice = self._dice
        others = [entity for entity in self._region.of_kind(self._entity.kind) if entity is not self._entity]
        other = dice.pick(others)
        name = f"the {other.name}" if other.kind == "event" else other.mention
        return {"other": name, "recent": str(dice.between(1995, 2019)), "count": str(dice.between(12, 900))}
