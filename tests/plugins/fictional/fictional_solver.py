"""Answers questions on the fictional world by reading: it shares no code with what generates it.

What articles say is found by patterns of their sentences, what questions ask by patterns of theirs, both
written by hand from texts that were read. It is given a question and the sentences that are said to be
needed (with the title of the article that each stands in), and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_T = r"((?:[A-Z][a-z]+ )?[A-Z][a-z]+)"  # a town, at times with a word before it
_P = r"((?:[Tt]he [a-z][a-z -]+ )?[A-Z][a-z]+ [A-Z][a-z]+)"  # a person, at times with a profession
_F = r"([A-Z][a-z]+ (?:& )?[A-Z][a-z]+(?: [A-Z][a-z]+)?)"  # a firm
_W = r"([A-Z][a-z]+)"
_Y = r"(\d{4})"
_N = r"(\d[\d,]*)"
_SHE = r"(?:s?he|[Tt]he [a-z -]+|[A-Z][a-z]+(?: [A-Z][a-z]+)?)"
_NAME = r"[A-Z][\w' &-]+"  # of anybody or anything

# What a sentence says: relation, and patterns whose group is the value.
SAYS: dict[str, tuple[str, ...]] = {
    "alias": (
        r"(?:known|signed|everybody called|remembered|formerly|once called|until lately|older maps call)"
        r"(?: \w+)? as ([A-Z]\w+(?: [A-Z]\w+)?)",
        r"(?:everybody called|formerly|once called|until lately|older maps call) ([A-Z]\w+(?: [A-Z]\w+)?)",
    ),
    "birthplace": (
        rf"[Bb]orn (?:in \d{{4}} )?in {_T}",
        rf"moved to {_T}, and there, in",
        rf"born to .* in {_T}, where, in",
        rf"^{_T}, in \d{{4}} .* (?:where {_SHE} was born|(?:his|her) birthplace)\.$",
        rf"[Nn]ative of {_T}",
        rf"birthplace was {_T},",
        rf"^It was in {_T}, .* that {_SHE} was born",
    ),
    "birth_year": (
        rf"[Bb]orn in {_Y}",
        rf"[Bb]orn in {_T[:-1]}) in {_Y}",
        rf"^In {_Y} {_SHE} was born",
        rf"and there, in {_Y}, {_SHE} was born",
        rf"born to .*, where, in {_Y},",
        rf"was born in .*, and that .* in {_Y}\.$",
        rf"^{_T}, in {_Y} .* (?:born|birthplace)\.$",
        rf"birth in {_Y} was met",
        rf"was born, in {_Y},",
    ),
    "teacher": (
        rf"studied under {_P}",
        rf"became {_P}'s pupil",
        rf"pupil of {_P}",
        rf"It was {_P} who taught",
        rf"learnt [a-z ]+ from {_P}, who",
        rf"teacher was {_P}",
        rf"Taught by {_P}",
        rf"(?:years|winters|summers) {_P} taught h",
    ),
    "spouse": (
        rf"[Mm]arried (?:to )?{_P}",
        rf"marriage to {_P}",
        rf"wedding of [A-Z][a-z]+ and {_P}",
    ),
    "employer": (
        rf"worked for {_F}, where",
        rf"(?:service of|a post at) {_F}",
        rf"^{_F} employed h",
        rf"In the pay of {_F}",
        rf"earned [a-z ]+ at {_F}",
        rf"Work for {_F} left",
    ),
    "residence": (
        rf"[Ss]ettled (?:for good |\w+ )?in {_T}",
        rf"(?:Later|In the end|At last|Afterwards) {_SHE} moved to {_T}",
        rf"made an? \w+ home in {_T}",
        rf"later home was {_T}",
        rf"^A house in {_T},",
    ),
    "prize": (r"[Tt]he ([A-Z]\w+ (?:Medal|Prize|Ribbon|Chain|Cup|Laurel))",),
    "prize_year": (
        rf"^In {_Y}.* the [A-Z]\w+ (?:Medal|Prize|Ribbon|Chain|Cup|Laurel)",
        rf"(?:Medal|Prize|Ribbon|Chain|Cup|Laurel)(?: went to h\w+)? in {_Y}",
    ),
    "death_year": (
        rf"died in {_Y}",
        rf"death in {_Y}",
        rf"died, in {_Y}",
        rf"^In {_Y}, .* {_SHE} died of",
        rf"lived until {_Y}",
    ),
    "river": (
        rf"(?:[Tt]he|[Oo]n the) {_W},? .*flows through",
        rf"stand on the {_W},",
        rf"lies on the {_W}[ ,]",
        rf"flows the {_W}, ",
        rf"the {_W} flows through",
        rf"^On the {_W}, on which",
    ),
    "province": (rf"province of {_W}", rf"{_W} province"),
    "population": (rf"{_N} inhabitants", rf"population is {_N},", rf"{_N} people live there"),
    "charter": (
        rf"charter in {_Y}",
        rf"granted in {_Y}",
        rf"^In {_Y}, .* charter\.",
        rf"charter of {_Y}",
        rf"charter came in {_Y}",
    ),
    "mayor": (
        rf"first mayor was {_P}",
        rf"^{_P}, its first mayor",
        rf"As first mayor {_P} had",
        rf"{_P} became its first mayor",
        rf"Its first mayor, {_P},",
    ),
    "founder": (
        rf"founded (?:in \d{{4}} )?by {_P}",
        rf"^{_P} founded it",
        rf"Founded by {_P}",
        rf"goes back to {_P}, who",
        rf", {_P} founded ",
        rf"Its founder, {_P},",
        rf"It was {_P} who founded",
    ),
    "founded": (
        rf"founded (?:it )?in {_Y}",
        rf"^In {_Y}, .* founded",
        rf"Founded by .* in {_Y},",
        rf"who in {_Y} rented",
        rf"Founded in {_Y}",
        rf"founded .* in {_Y}, in ",
        rf"founding, {_Y}\.",
    ),
    "seat": (rf"seat (?:is )?in {_T}", rf"Seated in {_T},", rf"office, .* is in {_T}\.$"),
    "staff": (
        rf"employs {_N} people",
        rf"With {_N} workers",
        rf"workforce of {_N}",
        rf"^{_N} people,",
        rf"lists {_N} people",
    ),
    "owner": (
        rf"taken over by {_F}[ ,]",
        rf"{_F} took over the firm",
        rf"Now that {_F} has taken",
        rf"Taken over by {_F} ",
        rf"belongs to {_F}, which",
    ),
    "product": (
        r" makes (\w+)[,.]",
        r"products are (\w+),",
        r"^(\w+) are (?:its trade|what it makes|all it makes)",
        r"by making (\w+),",
    ),
    "creator": (
        rf"finished in \d{{4}} by {_P}",
        rf"^{_P} finished it",
        rf" is by {_P}, who",
        rf", {_P} (?:finished|created) the",
        rf"Its creator, {_P},",
        rf" is (?:the work of|by) {_P},",
        rf"Created by {_P} in",
        rf"^{_P} created it",
    ),
    "year": (rf"[Ff]inished (?:it )?in {_Y}", rf"^In {_Y}, .* finished the"),
    "dedicatee": (
        rf"dedicated to {_P}",
        rf"dedication, .* is to {_P}\.$",
        rf"Dedicated to {_P},",
        rf"dedicates it to {_P}\.",
    ),
    "setting": (rf"[Ss]et in {_T}[,.]", rf"setting is {_T},", rf"plays in {_T},"),
    "backer": (
        rf"[Pp]aid for by {_F}[,.]",
        rf"^{_F} paid for",
        rf"borne by {_F}\.",
        rf"It was {_F} that paid",
    ),
    "place": (rf"[Hh]eld (?:in \d{{4}} )?in {_T}[,. ]", rf"took place in {_T}[, ]", rf"The scene was {_T},"),
    "held": (
        rf"[Hh]eld in (?:{_T[1:-1]} in )?{_Y}",
        rf"took place in (?:{_T[1:-1]} in )?{_Y}",
        rf"^In {_Y}, .* was held",
        rf"^{_Y}, ",
    ),
    "organiser": (
        rf"organised by {_P}",
        rf"^{_P} organised it",
        rf"organiser was {_P},",
        rf"Organised by {_P} ",
        rf", {_P} had organised",
    ),
    "winner": (
        rf"[Ff]irst prize went to {_P},",
        rf"^{_P} won the first prize",
        rf"won by {_P}\.",
        rf"first prize to {_P}\.",
        rf"^With .*, {_P} won the first prize\.",
    ),
    "visitors": (rf"{_N} (?:\w+ )?visitors", rf"{_N} people visited"),
    "sponsor": (
        rf"sponsor was {_F},",
        rf"^{_F} sponsored",
        rf"Sponsored by {_F},",
        rf", {_F} acted as sponsor",
        rf"Its sponsor, {_F},",
    ),
}

# What a question asks of x.
ASKS = {
    "birth_year": (r"(?:In which year|When) was (.+) born\?", r"What is the year of birth of (.+)\?"),
    "birthplace": (r"(?:In which town|Where) was (.+) born\?", r"Of which town was (.+) a native\?"),
    "teacher": (r"Who taught (.+)\?", r"Under whom did (.+) study\?", r"Whose pupil was (.+)\?"),
    "spouse": (r"Whom did (.+) marry\?", r"Who became the spouse of (.+)\?"),
    "employer": (r"For which firm did (.+) work\?", r"Which firm employed (.+)\?"),
    "residence": (r"(?:In which town|Where) did (.+) settle\?",),
    "prize": (r"Which prize was (.+) given\?", r"What prize did (.+) receive\?"),
    "prize_year": (r"In which year was (.+) given a prize\?", r"When did (.+) receive a prize\?"),
    "death_year": (r"(?:In which year|When) did (.+) die\?",),
    "river": (r"Which river flows through (.+)\?", r"On which river does (.+) lie\?"),
    "province": (r"In which province does (.+) lie\?", r"To which province does (.+) belong\?"),
    "population": (r"How many inhabitants does (.+) have\?", r"What is the population of (.+)\?"),
    "charter": (r"In which year did (.+) receive its charter\?", r"When was (.+) granted its charter\?"),
    "mayor": (r"Who was the first mayor of (.+)\?", r"Who first held the office of mayor in (.+)\?"),
    "founder": (r"Who founded (.+)\?", r"By whom was (.+) founded\?"),
    "founded": (r"(?:In which year|When) was (.+) founded\?",),
    "seat": (r"In which town does (.+) have its seat\?", r"Where is the seat of (.+)\?"),
    "staff": (r"How many people does (.+) employ\?", r"How large is the workforce of (.+)\?"),
    "owner": (r"Which firm took over (.+)\?", r"By which firm was (.+) taken over\?"),
    "product": (r"What does (.+) make\?", r"What are the products of (.+)\?"),
    "creator": (r"Who created (.+)\?", r"By whom is (.+)\?"),
    "year": (r"(?:In which year|When) was (.+) finished\?",),
    "dedicatee": (r"To whom is (.+) dedicated\?", r"Who is the dedicatee of (.+)\?"),
    "setting": (r"(?:In which town|Where) is (.+) set\?",),
    "backer": (r"Which firm paid for (.+)\?", r"By which firm was (.+) paid for\?"),
    "place": (r"Where did (.+) take place\?", r"In which town was (.+) held\?"),
    "held": (r"In which year did (.+) take place\?", r"When was (.+) held\?"),
    "organiser": (r"Who organised (.+)\?", r"By whom was (.+) organised\?"),
    "winner": (r"Who won the first prize at (.+)\?", r"To whom did the first prize at (.+) go\?"),
    "visitors": (r"How many visitors did (.+) have\?", r"How many people visited (.+)\?"),
    "sponsor": (r"Which firm was the sponsor of (.+)\?", r"Which firm sponsored (.+)\?"),
}

# Words for somebody or something by way of another: forwards (the value of x), backwards (whose value is x).
FORWARDS = {
    "birthplace": (r"the town in which (.+) was born", r"the (?:birthplace|native town) of (.+)"),
    "teacher": (r"the teacher of (.+)", r"the person who taught (.+)", r"the person under whom (.+) studied"),
    "spouse": (r"the person whom (.+) married", r"the spouse of (.+)"),
    "employer": (r"the firm for which (.+) worked", r"the employer of (.+)"),
    "residence": (r"the town (?:in which|where) (.+) settled", r"the later home of (.+)"),
    "mayor": (r"the (?:person who was the )?first mayor of (.+)",),
    "founder": (r"the founder of (.+)", r"the person who founded (.+)"),
    "seat": (r"the town in which (.+) has its seat", r"the seat of (.+)"),
    "owner": (r"the firm that took over (.+)", r"the firm by which (.+) was taken over"),
    "creator": (r"the creator of (.+)", r"the person who created (.+)"),
    "dedicatee": (r"the person to whom (.+) is dedicated", r"the dedicatee of (.+)"),
    "setting": (r"the town in which (.+) is set", r"the setting of (.+)"),
    "backer": (r"the firm that paid for (.+)",),
    "place": (r"the town in which (.+) took place", r"the town where (.+) was held", r"the venue of (.+)"),
    "organiser": (r"the organiser of (.+)", r"the person who organised (.+)"),
    "winner": (r"the (?:person who won|winner of) the first prize at (.+)",),
    "sponsor": (r"the sponsor of (.+)", r"the firm that sponsored (.+)"),
}
BACKWARDS = {
    "teacher": (r"the only pupil of (.+)",),
    "mayor": (r"the town whose first mayor was (.+)",),
    "founder": (r"the (?:only )?firm founded by (.+)",),
    "seat": (r"the only firm with its seat in (.+)",),
    "owner": (r"the (?:only )?firm taken over by (.+)",),
    "creator": (r"the only work created by (.+)",),
    "dedicatee": (r"the (?:only )?work (?:that is )?dedicated to (.+)",),
    "setting": (r"the only work set in (.+)",),
    "backer": (r"the only work that (.+) paid for", r"the only work paid for by (.+)"),
    "place": (r"the only event held in (.+)",),
    "organiser": (r"the (?:only )?event organised by (.+)",),
    "winner": (r"the event at which (.+) won the first prize", r"the event whose first prize went to (.+)"),
}

# Which of two: relation, whether the least is asked for.
CHOICES = {
    r"Who was born earlier, (.+)\?": ("birth_year", True),
    r"Which of the two was born later: (.+)\?": ("birth_year", False),
    r"Who died first, (.+)\?": ("death_year", True),
    r"Who died later, (.+)\?": ("death_year", False),
    r"Which has more inhabitants, (.+)\?": ("population", False),
    r"Which is the smaller by population: (.+)\?": ("population", True),
    r"Which received its charter first, (.+)\?": ("charter", True),
    r"Which has the younger charter, (.+)\?": ("charter", False),
    r"Which firm is older, (.+)\?": ("founded", True),
    r"Which of the two firms was founded later: (.+)\?": ("founded", False),
    r"Which employs more people, (.+)\?": ("staff", False),
    r"Which firm has fewer workers: (.+)\?": ("staff", True),
    r"Which was finished first, (.+)\?": ("year", True),
    r"Which is the later work, (.+)\?": ("year", False),
    r"Which took place first, (.+)\?": ("held", True),
    r"Which was held later, (.+)\?": ("held", False),
    r"Which drew more visitors, (.+)\?": ("visitors", False),
    r"Which had fewer visitors, (.+)\?": ("visitors", True),
}
SAME = {
    r"Were (.+) born in the same town\?": "birthplace",
    r"Did (.+) have the same birthplace\?": "birthplace",
    r"Did (.+) study under the same person\?": "teacher",
    r"Were (.+) taught by the same person\?": "teacher",
    r"Did (.+) work for the same firm\?": "employer",
    r"Do (.+) lie on the same river\?": "river",
    r"Do (.+) belong to the same province\?": "province",
    r"Did the same person found (.+)\?": "founder",
    r"Do (.+) have their seat in the same town\?": "seat",
    r"Are (.+) by the same person\?": "creator",
    r"Are (.+) set in the same town\?": "setting",
    r"Were (.+) held in the same town\?": "place",
}
# All that have x as their value.
GROUPS = {
    "birthplace": (
        r"people (?:in these articles were )?born in (.+)",
        r"Of how many people was (.+) the birthplace",
    ),
    "teacher": (r"pupils of (.+?)(?: do the articles name)?", r"people studied under (.+)"),
    "employer": (r"people described in the articles worked for (.+)", r"people who worked for (.+)"),
    "residence": (r"people (?:who|are said to have) settled in (.+)",),
    "founder": (r"firms did (.+) found", r"firms founded by (.+)"),
    "seat": (
        r"firms have their seat in (.+)",
        r"Of how many firms is (.+) the seat",
        r"firms with their seat in (.+)",
    ),
    "creator": (
        r"works by (.+) do the articles describe",
        r"works did (.+) create",
        r"works created by (.+)",
    ),
    "dedicatee": (r"works (?:are )?dedicated to (.+)",),
    "setting": (r"works (?:are )?set in (.+)",),
    "backer": (r"works did (.+) pay for", r"works that (.+) paid for"),
    "place": (
        r"events (?:took place in|of the events described were held in|held in) (.+)",
        r"of the events described were held in (.+)",
    ),
    "organiser": (r"events did (.+) organise", r"events organised by (.+)"),
}
SUPERLATIVES = {
    r"Of the (.+), who was born first\?": ("birth_year", True),
    r"Who is the youngest of the (.+)\?": ("birth_year", False),
    r"Which of the (.+) is the oldest\?": ("founded", True),
    r"Of the (.+), which was founded last\?": ("founded", False),
    r"Which of the (.+) employs the most people\?": ("staff", False),
    r"Of the (.+), which has the fewest workers\?": ("staff", True),
    r"Which of the (.+) was finished first\?": ("year", True),
    r"Of the (.+), which was finished last\?": ("year", False),
    r"Which of the (.+) took place first\?": ("held", True),
    r"Of the (.+), which was held last\?": ("held", False),
    r"Which of the (.+) had the most visitors\?": ("visitors", False),
}
SUMS = {
    r"How many people do the (.+) employ together\?": "staff",
    r"How many visitors did the (.+) have together\?": "visitors",
}
# The odd one of three: (names, x) or (x, names), by the groups' names.
ODD = {
    "birthplace": (
        r"Which of these three was not born in (?P<x>.+): (?P<of>.+)\?",
        r"Of (?P<of>.+), who was not a native of (?P<x>.+)\?",
    ),
    "teacher": (
        r"Who did not study under (?P<x>.+): (?P<of>.+)\?",
        r"Which of (?P<of>.+) was not taught by (?P<x>.+)\?",
    ),
    "employer": (r"Which of (?P<of>.+) did not work for (?P<x>.+)\?",),
    "founder": (r"Which of (?P<of>.+) was not founded by (?P<x>.+)\?",),
    "seat": (
        r"Which of (?P<of>.+) does not have its seat in (?P<x>.+)\?",
        r"Which firm is not seated in (?P<x>.+): (?P<of>.+)\?",
    ),
    "creator": (
        r"Which of (?P<of>.+) is not by (?P<x>.+)\?",
        r"Which of these was not created by (?P<x>.+): (?P<of>.+)\?",
    ),
    "dedicatee": (r"Which of (?P<of>.+) is not dedicated to (?P<x>.+)\?",),
    "setting": (r"Which of (?P<of>.+) is not set in (?P<x>.+)\?",),
    "place": (r"Which of (?P<of>.+) was not held in (?P<x>.+)\?",),
}
# Questions that take something for granted of x, with a wrong value.
PREMISES = {
    "founder": r"In which year did (?P<wrong>.+) found (?P<x>.+)\?",
    "creator": r"In which year did (?P<wrong>.+) finish (?P<x>.+)\?",
    "teacher": r"Where did (?P<wrong>.+) teach (?P<x>.+)\?",
    "birthplace": r"In which year was (?P<x>.+) born in (?P<wrong>.+)\?",
    "seat": r"How many people work at the seat of (?P<x>.+) in (?P<wrong>.+)\?",
    "owner": r"Why did (?P<wrong>.+) take over (?P<x>.+)\?",
    "place": r"How many visitors came to (?P<wrong>.+) for (?P<x>.+)\?",
    "winner": r"How did (?P<wrong>.+) win the first prize at (?P<x>.+)\?",
    "organiser": r"In which year did (?P<wrong>.+) organise (?P<x>.+)\?",
    "mayor": r"When did (?P<wrong>.+) become the first mayor of (?P<x>.+)\?",
    "setting": r"In which part of (?P<wrong>.+) is (?P<x>.+) set\?",
    "dedicatee": r"Why is (?P<x>.+) dedicated to (?P<wrong>.+)\?",
    "river": r"Where in (?P<x>.+) does one cross the (?P<wrong>.+)\?",
    "backer": r"How much did (?P<wrong>.+) pay for (?P<x>.+)\?",
}


class Sentence(NamedTuple):
    """A sentence and the title of its article."""

    title: str
    text: str


Patterns = Mapping[str, tuple[str, ...]]
NONE: Patterns = MappingProxyType({})


class Reader:
    """What the sentences say: for each relation the value of each title.

    says, asks, forwards: patterns that are tried before those of this module.
    """

    def __init__(
        self, sentences: Sequence[Sentence], says: Patterns = NONE, asks: Patterns = NONE, forwards: Patterns = NONE
    ) -> None:
        self._asks = {name: (*asks.get(name, ()), *patterns) for name, patterns in ASKS.items()}
        self._forwards = {name: (*forwards.get(name, ()), *patterns) for name, patterns in FORWARDS.items()}
        self.said: dict[str, dict[str, str]] = {}
        for title, text in sentences:
            for relation, patterns in SAYS.items():
                for pattern in (*says.get(relation, ()), *patterns):
                    match = re.search(pattern, text)
                    if match:
                        value = match.groups()[-1]
                        if value.startswith("The ") or relation == "product":
                            value = value[0].lower() + value[1:]  # it stood at the start of the sentence
                        self.said.setdefault(relation, {}).setdefault(title, value)
                        break

    def solve(self, query: str) -> str:
        """The answer; LookupError where the sentences do not give one."""
        for way in (self._premise, self._odd_one, self._choice, self._same, self._of_group, self._plain):
            answer = way(query)
            if answer is not None:
                return answer
        raise LookupError(query)

    def title(self, name: str) -> str:
        """The article's title of a name, a mention or an alias, and the name itself where none is known."""
        for alias_of, alias in self.said.get("alias", {}).items():
            if alias == name:
                return alias_of
        match = re.fullmatch(r"[Tt]he ([a-z][a-z -]*) ([A-Z].*)", name)
        if match:
            return f"{match[2]} ({match[1]})"
        return name.removeprefix("the ")

    def _described(self, text: str) -> str | None:
        """The title that a description comes to, or None where it comes to none by what is said."""
        for relation, patterns in self._forwards.items():
            for pattern in patterns:
                match = re.fullmatch(pattern, text)
                inner = self._described(match[1]) if match else None
                value = self.said.get(relation, {}).get(inner or "")
                if value is not None:
                    return self.title(value)
        for relation, patterns in BACKWARDS.items():
            for pattern in patterns:
                match = re.fullmatch(pattern, text)
                inner = self._described(match[1]) if match else None
                found = [t for t, v in self.said.get(relation, {}).items() if self.title(v) == inner]
                if inner is not None and len(found) == 1:
                    return found[0]
        return self.title(text)

    def _value(self, relation: str, name: str) -> str | None:
        return self.said.get(relation, {}).get(self._described(name) or "")

    def _plain(self, query: str) -> str | None:
        for relation, patterns in self._asks.items():
            for pattern in patterns:
                match = re.fullmatch(pattern, query)
                value = self._value(relation, match[1]) if match else None
                if value is not None:
                    return value[0].lower() + value[1:] if value.startswith("The ") or relation == "product" else value
        return None

    def _several(self, text: str, relation: str, last: str, n: int) -> dict[str, str] | None:
        """{title: value} of n names in a row, the last behind the word `last`."""
        for at in (m.start() for m in re.finditer(f" {last} ", text)):
            head, tail = text[:at], text[at + len(last) + 2 :]
            names = [*(head.split(", ") if n > 2 else [head]), tail]
            values = {self._described(name) or "": self._value(relation, name) for name in names}
            if len(names) == n and len(values) == n and None not in values.values():
                return values  # type: ignore[return-value]
        return None

    def _choice(self, query: str) -> str | None:
        for pattern, (relation, least) in CHOICES.items():
            match = re.fullmatch(pattern, query)
            values = self._several(match[1], relation, "or", 2) if match else None
            if values:
                return _extreme(values, least)
        return None

    def _same(self, query: str) -> str | None:
        for pattern, relation in SAME.items():
            match = re.fullmatch(pattern, query)
            values = self._several(match[1], relation, "and", 2) if match else None
            if values:
                return "yes" if len(set(values.values())) == 1 else "no"
        return None

    def _odd_one(self, query: str) -> str | None:
        for relation, patterns in ODD.items():
            for pattern in patterns:
                match = re.fullmatch(pattern, query)
                if match is None:
                    continue
                values = self._several(match["of"], relation, "or", 3) or self._several(match["of"], relation, "and", 3)
                x = self._described(match["x"])
                odd = [t for t, v in (values or {}).items() if self.title(v) != x]
                if len(odd) == 1:
                    return odd[0]
        return None

    def _group(self, text: str) -> set[str]:
        for relation, patterns in GROUPS.items():
            for pattern in patterns:
                match = re.fullmatch(pattern, text)
                if match:
                    x = self._described(match[1])
                    found = {t for t, v in self.said.get(relation, {}).items() if self.title(v) == x}
                    if found:
                        return found
        return set()

    def _of_group(self, query: str) -> str | None:
        for pattern, (relation, least) in SUPERLATIVES.items():
            match = re.fullmatch(pattern, query)
            group = self._group(match[1]) if match else set()
            values = {t: self.said.get(relation, {}).get(t, "") for t in group}
            if group and all(values.values()):
                return _extreme(values, least)
        for pattern, relation in SUMS.items():
            match = re.fullmatch(pattern, query)
            group = self._group(match[1]) if match else set()
            if group:
                return str(sum(_number(self.said[relation][t]) for t in group))
        if query.startswith(("How many ", "Of how many ")):
            group = self._group(query.removeprefix("How many ").removesuffix("?"))
            return str(len(group)) if group else None
        return None

    def _premise(self, query: str) -> str | None:
        """What is right, where the question takes something else for granted."""
        for relation, pattern in PREMISES.items():
            match = re.fullmatch(pattern, query)
            value = self._value(relation, match["x"]) if match else None
            if match and value is not None and self.title(value) != self.title(match["wrong"]):
                return value
        return None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _extreme(values: dict[str, str], least: bool) -> str:
    numbers = {title: _number(value) for title, value in values.items()}
    best = min(numbers.values()) if least else max(numbers.values())
    (title,) = [t for t, v in numbers.items() if v == best]
    return title
