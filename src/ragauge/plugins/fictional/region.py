"""Makes a region: entities, look-alikes among them, and facts that link them."""

from __future__ import annotations

from ragauge.plugins.fictional.dice import Dice
from ragauge.plugins.fictional.entities import Entity, Facts, Region, Value, mark_homonyms
from ragauge.plugins.fictional.names import Names
from ragauge.plugins.fictional.words import WORDS

REGION = 500  # articles; the last region of a world takes up to as many again, less one

_SHARES = {"town": 0.13, "firm": 0.15, "work": 0.22, "event": 0.10}  # the rest is people
# How many numbers of each kind of name a region may use: 1,000,000 articles are 2,000 regions.
_STRIDES = {"surname": 360, "town": 140, "firm": 110, "river": 40, "province": 20}
_PROFESSIONS = (
    "actor anatomist architect astronomer balloonist botanist cartographer cellist choirmaster clockmaker "
    "composer "
    "dramatist engineer entomologist essayist explorer geologist glassblower harpist historian "
    "illustrator jurist "
    "landscape_gardener lexicographer mathematician mezzo-soprano mountaineer novelist organist painter "
    "philologist "
    "photographer physician poet potter preacher printer puppeteer sculptor shipbuilder storyteller "
    "surgeon surveyor "
    "translator typographer veterinarian violinist watercolourist weaver zoologist"
)
PROFESSIONS = tuple(word.replace("_", " ") for word in _PROFESSIONS.split())
WORKS = ("novel", "play", "opera", "cantata", "tapestry", "mural", "ballad", "ballet", "symphony", "triptych")
_EVENTS = (
    "Regatta", "Exhibition", "Chess Congress", "Kite Race", "Flower Show", "Ploughing Match", "Song Contest",
    "Beekeepers' Fair", "Sledge Race", "Fencing Tournament", "Baking Contest", "Debating Congress",
)  # fmt: skip
_FIRMS = (
    "& Sons", "Brothers", "Works", "Company", "Mills", "Trading House", "& Daughters", "Foundry",
    "Cooperative",
    "Union", "& Partners", "Manufactory", "Workshops",
)  # fmt: skip
_TOWNS = (
    "Outer", "Upper", "Lower", "New", "Old", "Great", "Little", "North", "South", "Nether", "High", "East",
    "West",
)  # fmt: skip
_ORDINALS = (
    "First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth", "Eleventh",
    "Twelfth", "Thirteenth",
)  # fmt: skip
_ALIASES = ("Old {}", "Doctor {}", "Captain {}", "{}", "Little {}", "Professor {}")
_OF_SEX = {True: ("Mother {}", "Sister {}", "Dame {}"), False: ("Father {}", "Brother {}", "Squire {}")}
_PRODUCTS = WORDS["things"]


def sizes(documents: int) -> list[int]:
    """The number of articles per region: REGION each, the last the rest (below 2 x REGION)."""
    full = max(documents // REGION - 1, 0)
    return [REGION] * full + [documents - REGION * full]


def make_region(
    names: Names, seed: int, number: int, size: int, look_alikes: int, pronouns: float = 1.0, style: str = "hard"
) -> Region:
    """The region of this number, determined by the arguments alone."""
    maker = _Maker(names, Dice(seed, number, "region", look_alikes), number, look_alikes)
    counts = {kind: int(size * share) for kind, share in _SHARES.items()}
    maker.towns(counts["town"])
    maker.people(size - sum(counts.values()))
    maker.firms(counts["firm"])
    maker.works(counts["work"])
    maker.events(counts["event"])
    mark_homonyms(maker.entities)
    return Region(seed, number, tuple(maker.entities), Facts(maker.facts), pronouns, style)


class _Maker:
    def __init__(self, names: Names, dice: Dice, region: int, look_alikes: int) -> None:
        self.entities: list[Entity] = []
        self.facts: dict[tuple[int, str], Value] = {}
        self._names, self._dice, self._region = names, dice, region
        self._group = look_alikes + 1
        self._used = dict.fromkeys(_STRIDES, 0)
        self._provinces = [self._fresh("province") for _ in range(5)]
        self._rivers = [self._fresh("river") for _ in range(12)]
        givers = [self._fresh("surname") for _ in range(6)]
        kinds = ("Medal", "Prize", "Ribbon", "Chain", "Cup", "Laurel")
        self._prizes = [f"{giver} {kind}" for giver, kind in zip(givers, kinds, strict=True)]
        self._towns: list[Entity] = []
        self._people: list[Entity] = []
        self._born: dict[int, int] = {}
        self._died: dict[int, int] = {}  # also of those whose death no article tells
        self._founded: dict[int, int] = {}
        self._firms: list[Entity] = []

    def _fresh(self, kind: str) -> str:
        """A name unused elsewhere in the world."""
        at = self._used[kind]
        if at >= _STRIDES[kind] * 2:
            raise AssertionError(f"a region needs more names of a {kind} than it has")
        self._used[kind] = at + 1
        return self._names.name(kind, self._region * _STRIDES[kind] + at)

    def _add(self, kind: str, name: str, noun: str, stem: str, female: bool = False) -> Entity:
        entity = Entity(len(self.entities), kind, name, noun, stem, female)
        self.entities.append(entity)
        return entity

    def _say(self, entity: Entity, p: float = 1.0, **values: Value | None) -> None:
        """Adds facts of the entity, all of them with probability p."""
        if self._dice.chance(p):
            for relation, value in values.items():
                if value is not None:
                    self.facts[entity.number, relation] = value

    def towns(self, n: int) -> None:
        dice = self._dice
        while len(self._towns) < n:
            stem = self._fresh("town")
            # A town alone may go without a prefix; no name is to be a part of another.
            prefixes = dice.shuffled(_TOWNS) if self._group > 1 else [dice.pick(("", *_TOWNS))]
            for prefix in prefixes[: min(self._group, n - len(self._towns))]:
                self._towns.append(self._add("town", f"{prefix} {stem}".strip(), "town", stem))
        for town in self._towns:
            if dice.chance(0.3):
                town.alias = self._fresh("town")
            self._say(town, 0.85, river=dice.pick(self._rivers))
            self._say(town, 0.8, province=dice.pick(self._provinces))
            self._say(town, 0.85, population=dice.between(400, 90_000))
            self._say(town, 0.75, charter=dice.between(1180, 1680))

    def people(self, n: int) -> None:
        dice = self._dice
        while len(self._people) < n:
            stem = self._fresh("surname")
            for given, female, noun in self._family(min(self._group, n - len(self._people))):
                self._people.append(self._add("person", f"{given} {stem}", noun, stem, female))
        born, named = self._born, 0
        for person in self._people:
            born[person.number] = year = dice.between(1690, 1940)
            self._died[person.number] = end = year + dice.between(36, 90)
            self._say(person, 0.85, birth_year=year)
            self._say(person, 0.8, death_year=end if end < 2000 else None)
            if dice.chance(0.35) and named < n // 2:
                named += 1
                person.alias = dice.pick((*_ALIASES, *_OF_SEX[person.female])).format(self._fresh("surname"))
            self._say(person, 0.85, birthplace=self._town())
            self._say(person, 0.4, residence=self._town())
            self._say(person, 0.4, prize=dice.pick(self._prizes), prize_year=year + dice.between(26, 33))
        married: set[int] = set()
        teaching = dice.sample(self._people, max(len(self._people) // 3, 4))
        for person in self._people:
            number = person.number
            older = [
                t.number
                for t in teaching
                if born[number] - born[t.number] >= 12 and born[number] + 12 <= self._died[t.number]
            ]
            if older:
                self._say(person, 0.7, teacher=dice.pick(older))
            others = [
                p.number
                for p in self._people
                if p.female != person.female and abs(born[p.number] - born[number]) <= 12 and p.stem != person.stem
            ]
            free = [p for p in others if p not in married]
            if number not in married and free and dice.chance(0.4):
                spouse = dice.pick(free)
                if self.facts.get((number, "teacher")) != spouse:
                    married |= {number, spouse}
                    self._say(person, spouse=spouse)
        for town in self._towns:
            self._say(town, 0.65, mayor=self._person())

    def _family(self, n: int) -> list[tuple[str, bool, str]]:
        """Given name, sex and profession of n people of one surname; the first two may share their name."""
        dice = self._dice
        pool = [(name, False) for name in self._names.male] + [(name, True) for name in self._names.female]
        pool.sort()
        start = dice.below(len(pool))
        nouns = dice.sample(PROFESSIONS, n)
        # Neighbours in the alphabet begin alike.
        members = [pool[(start + i * dice.between(1, 2)) % len(pool)] for i in range(n)]
        taken: list[tuple[str, bool, str]] = []
        for i, (given, female) in enumerate(members):
            if any(given == name for name, _, _ in taken):
                given, female = dice.pick(pool)
            if i == 1 and dice.chance(0.35):
                given, female = taken[0][:2]
            taken.append((given, female, nouns[i]))
        return taken

    def firms(self, n: int) -> None:
        dice = self._dice
        while len(self._firms) < n:
            stem = self._fresh("firm")
            for suffix in dice.sample(_FIRMS, min(self._group, n - len(self._firms))):
                self._firms.append(self._add("firm", f"{stem} {suffix}", "firm", stem))
        seats = dice.sample(self._towns, max(len(self._towns) // 2, 4))
        for firm in self._firms:
            founder = self._person()
            self._say(firm, 0.85, founder=founder)
            self._founded[firm.number] = founded = self._year_of(founder, 20, 60)
            self._say(firm, 0.8, founded=founded)
            self._say(firm, 0.85, seat=dice.pick(seats).number)
            self._say(firm, 0.8, staff=dice.between(40, 6_000))
            self._say(firm, 0.7, product=dice.pick(_PRODUCTS))
            self._say(firm, 0.4, owner=dice.pick([f.number for f in self._firms if f is not firm]))
        for person in self._people:
            self._say(person, 0.4, employer=self._firm_of(self._year_of(person.number, 25, 60)))

    def works(self, n: int) -> None:
        dice = self._dice
        makers = dice.sample(self._people, max(n // 3, 3))
        settings = dice.sample(self._towns, max(len(self._towns) // 2, 4))
        taken: set[tuple[str, str]] = set()
        made = 0
        while made < n:
            words = {
                "thing": dice.pick(WORDS["thing"]), "trade": dice.pick(WORDS["trade"]),
                "adj": dice.pick(WORDS["adj"]), "season": dice.pick(WORDS["season"]),
                "name": dice.pick(self._towns).stem,
            }  # fmt: skip
            pattern = dice.pick(_TITLES)
            for i in range(min(self._group, n - made)):
                if i == 1 and dice.chance(0.5):
                    pass  # the same title, of another kind of work
                elif i:
                    key = dice.pick([key for key in ("thing", "trade", "adj", "season") if f"{{{key}}}" in pattern])
                    words[key] = dice.pick(WORDS[key])
                title, noun = _title(pattern, words), dice.pick(WORKS)
                if (title, noun) in taken:
                    continue
                taken.add((title, noun))
                made += 1
                maker = dice.pick(makers)
                work = self._add("work", title, noun, words["name"])
                self._say(work, 0.9, creator=maker.number)
                year = self._year_of(maker.number, 20, 75)
                self._say(work, 0.85, year=year)
                self._say(work, 0.5, dedicatee=self._person())
                self._say(work, 0.7, setting=dice.pick(settings).number)
                self._say(work, 0.5, backer=self._firm_of(year))

    def events(self, n: int) -> None:
        dice = self._dice
        places = dice.sample(self._towns, max(len(self._towns) // 2, 4))
        made = 0
        while made < n:
            stem, type_ = self._fresh("surname"), dice.pick(_EVENTS)
            group = min(self._group, n - made)
            for ordinal in _ORDINALS[:group]:
                made += 1
                event = self._add("event", f"{ordinal} {stem} {type_}", "event", stem)
                organiser = self._person()
                self._say(event, 0.85, organiser=organiser)
                held = self._year_of(organiser, 22, 75)
                self._say(event, 0.85, held=held)
                self._say(event, 0.85, place=dice.pick(places).number)
                self._say(event, 0.6, winner=self._person_of(held, organiser))
                self._say(event, 0.75, visitors=dice.between(150, 40_000))
                self._say(event, 0.5, sponsor=self._firm_of(held))

    def _town(self) -> int:
        return self._dice.pick(self._towns).number

    def _person(self) -> int:
        return self._dice.pick(self._people).number

    def _year_of(self, person: int, youngest: int, oldest: int) -> int:
        """A year within a person's life."""
        born = self._born[person]
        return self._dice.between(born + youngest, min(born + oldest, self._died[person]))

    def _person_of(self, year: int, but: int) -> int | None:
        """An adult alive in a year, other than `but`."""
        alive = [n for n, born in self._born.items() if born + 15 <= year <= self._died[n] and n != but]
        return self._dice.pick(alive) if alive else None

    def _firm_of(self, year: int) -> int | None:
        """A firm that existed in a year."""
        there = [n for n, founded in self._founded.items() if founded <= year]
        return self._dice.pick(there) if there else None


_TITLES = (
    "The {trade} of {name}", "The {adj} {thing} of {name}", "A {thing} for {name}",
    "The {thing} and the {trade} of {name}",
    "{name} in a {adj} {season}", "The {trade}'s {thing} at {name}", "The Last {trade} of {name}",
)  # fmt: skip


def _title(pattern: str, words: dict[str, str]) -> str:
    small = {"of", "the", "a", "and", "in", "for", "at"}
    text = pattern.format(**words).split()
    text = [w if i and w in small else w[:1].upper() + w[1:] for i, w in enumerate(text)]
    for i, word in enumerate(text[:-1]):
        if word.lower() == "a" and text[i + 1][0] in "AEIOU":
            text[i] += "n"
    return " ".join(text)
