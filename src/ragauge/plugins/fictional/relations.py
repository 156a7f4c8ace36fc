"""The relations of the world by kind, and their wordings in questions.

`{x}` is the one spoken of. A relation that leads to another article can stand inside a question (`phrase`),
forwards; or backwards (`inverse`), where one subject alone has that object.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("person", "town", "firm", "work", "event")


@dataclass(frozen=True)
class Relation:
    """One relation: the kind of its `subject`, the kind of its value (or year, number, name), its wordings.

    `count` asks for the number of subjects that share an object, and `set` names them in a question. `same` asks
    whether two subjects share theirs, and `more` which of two has the (greater, smaller) value.
    """

    name: str
    subject: str
    object: str
    asks: tuple[str, ...]
    phrase: tuple[str, ...] = ()
    inverse: tuple[str, ...] = ()
    count: tuple[str, ...] = ()
    set: str = ""
    negated: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    more: tuple[tuple[str, str], ...] = ()  # (wording, "max" or "min")


def _r(name: str, subject: str, object_: str, *asks: str, **rest: object) -> Relation:
    return Relation(name, subject, object_, asks, **rest)  # type: ignore[arg-type]


_ALL = (
    _r(
        "birth_year",
        "person",
        "year",
        "In which year was {x} born?",
        "What is the year of birth of {x}?",
        "When was {x} born?",
        more=(
            ("Who was born earlier, {a} or {b}?", "min"),
            ("Which of the two was born later: {a} or {b}?", "max"),
        ),
    ),
    _r(
        "birthplace",
        "person",
        "town",
        "In which town was {x} born?",
        "Where was {x} born?",
        "Of which town was {x} a native?",
        phrase=("the town in which {x} was born", "the birthplace of {x}", "the native town of {x}"),
        count=(
            "How many people in these articles were born in {x}?",
            "Of how many people was {x} the birthplace?",
        ),
        set="people born in {x}",
        negated=(
            "Which of these three was not born in {x}: {a}, {b} or {c}?",
            "Of {a}, {b} and {c}, who was not a native of {x}?",
        ),
        same=("Were {a} and {b} born in the same town?", "Did {a} and {b} have the same birthplace?"),
    ),
    _r(
        "teacher",
        "person",
        "person",
        "Who taught {x}?",
        "Under whom did {x} study?",
        "Whose pupil was {x}?",
        phrase=("the teacher of {x}", "the person who taught {x}", "the person under whom {x} studied"),
        inverse=("the only pupil of {x}",),
        count=("How many pupils of {x} do the articles name?", "How many people studied under {x}?"),
        set="pupils of {x}",
        negated=(
            "Who did not study under {x}: {a}, {b} or {c}?",
            "Which of {a}, {b} and {c} was not taught by {x}?",
        ),
        same=("Did {a} and {b} study under the same person?", "Were {a} and {b} taught by the same person?"),
    ),
    _r(
        "spouse",
        "person",
        "person",
        "Whom did {x} marry?",
        "Who became the spouse of {x}?",
        phrase=("the person whom {x} married", "the spouse of {x}"),
    ),
    _r(
        "employer",
        "person",
        "firm",
        "For which firm did {x} work?",
        "Which firm employed {x}?",
        phrase=("the firm for which {x} worked", "the employer of {x}"),
        count=("How many people described in the articles worked for {x}?",),
        set="people who worked for {x}",
        negated=("Which of {a}, {b} and {c} did not work for {x}?",),
        same=("Did {a} and {b} work for the same firm?",),
    ),
    _r(
        "residence",
        "person",
        "town",
        "In which town did {x} settle?",
        "Where did {x} settle?",
        phrase=("the town in which {x} settled", "the town where {x} settled", "the later home of {x}"),
        count=("How many people are said to have settled in {x}?",),
        set="people who settled in {x}",
    ),
    _r("prize", "person", "name", "Which prize was {x} given?", "What prize did {x} receive?"),
    _r(
        "prize_year",
        "person",
        "year",
        "In which year was {x} given a prize?",
        "When did {x} receive a prize?",
    ),
    _r(
        "death_year",
        "person",
        "year",
        "In which year did {x} die?",
        "When did {x} die?",
        more=(("Who died first, {a} or {b}?", "min"), ("Who died later, {a} or {b}?", "max")),
    ),
    _r(
        "river",
        "town",
        "name",
        "Which river flows through {x}?",
        "On which river does {x} lie?",
        same=("Do {a} and {b} lie on the same river?",),
    ),
    _r(
        "province",
        "town",
        "name",
        "In which province does {x} lie?",
        "To which province does {x} belong?",
        same=("Do {a} and {b} belong to the same province?",),
    ),
    _r(
        "population",
        "town",
        "number",
        "How many inhabitants does {x} have?",
        "What is the population of {x}?",
        more=(
            ("Which has more inhabitants, {a} or {b}?", "max"),
            ("Which is the smaller by population: {a} or {b}?", "min"),
        ),
    ),
    _r(
        "charter",
        "town",
        "year",
        "In which year did {x} receive its charter?",
        "When was {x} granted its charter?",
        more=(
            ("Which received its charter first, {a} or {b}?", "min"),
            ("Which has the younger charter, {a} or {b}?", "max"),
        ),
    ),
    _r(
        "mayor",
        "town",
        "person",
        "Who was the first mayor of {x}?",
        "Who first held the office of mayor in {x}?",
        phrase=("the first mayor of {x}", "the person who was the first mayor of {x}"),
        inverse=("the town whose first mayor was {x}",),
    ),
    _r(
        "founder",
        "firm",
        "person",
        "Who founded {x}?",
        "By whom was {x} founded?",
        phrase=("the founder of {x}", "the person who founded {x}"),
        inverse=("the firm founded by {x}", "the only firm founded by {x}"),
        count=("How many firms did {x} found?",),
        set="firms founded by {x}",
        negated=("Which of {a}, {b} and {c} was not founded by {x}?",),
        same=("Did the same person found {a} and {b}?",),
    ),
    _r(
        "founded",
        "firm",
        "year",
        "In which year was {x} founded?",
        "When was {x} founded?",
        more=(
            ("Which firm is older, {a} or {b}?", "min"),
            ("Which of the two firms was founded later: {a} or {b}?", "max"),
        ),
    ),
    _r(
        "seat",
        "firm",
        "town",
        "In which town does {x} have its seat?",
        "Where is the seat of {x}?",
        phrase=("the town in which {x} has its seat", "the seat of {x}"),
        inverse=("the only firm with its seat in {x}",),
        count=("How many firms have their seat in {x}?", "Of how many firms is {x} the seat?"),
        set="firms with their seat in {x}",
        negated=(
            "Which of {a}, {b} and {c} does not have its seat in {x}?",
            "Which firm is not seated in {x}: {a}, {b} or {c}?",
        ),
        same=("Do {a} and {b} have their seat in the same town?",),
    ),
    _r(
        "staff",
        "firm",
        "number",
        "How many people does {x} employ?",
        "How large is the workforce of {x}?",
        more=(
            ("Which employs more people, {a} or {b}?", "max"),
            ("Which firm has fewer workers: {a} or {b}?", "min"),
        ),
    ),
    _r(
        "owner",
        "firm",
        "firm",
        "Which firm took over {x}?",
        "By which firm was {x} taken over?",
        phrase=("the firm that took over {x}", "the firm by which {x} was taken over"),
        inverse=("the firm taken over by {x}", "the only firm taken over by {x}"),
    ),
    _r("product", "firm", "name", "What does {x} make?", "What are the products of {x}?"),
    _r(
        "creator",
        "work",
        "person",
        "Who created {x}?",
        "By whom is {x}?",
        phrase=("the creator of {x}", "the person who created {x}"),
        inverse=("the only work created by {x}",),
        count=("How many works by {x} do the articles describe?", "How many works did {x} create?"),
        set="works created by {x}",
        negated=(
            "Which of {a}, {b} and {c} is not by {x}?",
            "Which of these was not created by {x}: {a}, {b} or {c}?",
        ),
        same=("Are {a} and {b} by the same person?",),
    ),
    _r(
        "year",
        "work",
        "year",
        "In which year was {x} finished?",
        "When was {x} finished?",
        more=(
            ("Which was finished first, {a} or {b}?", "min"),
            ("Which is the later work, {a} or {b}?", "max"),
        ),
    ),
    _r(
        "dedicatee",
        "work",
        "person",
        "To whom is {x} dedicated?",
        "Who is the dedicatee of {x}?",
        phrase=("the person to whom {x} is dedicated", "the dedicatee of {x}"),
        inverse=("the work dedicated to {x}", "the only work that is dedicated to {x}"),
        count=("How many works are dedicated to {x}?",),
        set="works dedicated to {x}",
        negated=("Which of {a}, {b} and {c} is not dedicated to {x}?",),
    ),
    _r(
        "setting",
        "work",
        "town",
        "In which town is {x} set?",
        "Where is {x} set?",
        phrase=("the town in which {x} is set", "the setting of {x}"),
        inverse=("the only work set in {x}",),
        count=("How many works are set in {x}?",),
        set="works set in {x}",
        negated=("Which of {a}, {b} and {c} is not set in {x}?",),
        same=("Are {a} and {b} set in the same town?",),
    ),
    _r(
        "backer",
        "work",
        "firm",
        "Which firm paid for {x}?",
        "By which firm was {x} paid for?",
        phrase=("the firm that paid for {x}",),
        inverse=("the only work that {x} paid for", "the only work paid for by {x}"),
        count=("How many works did {x} pay for?",),
        set="works that {x} paid for",
    ),
    _r(
        "place",
        "event",
        "town",
        "Where did {x} take place?",
        "In which town was {x} held?",
        phrase=("the town in which {x} took place", "the town where {x} was held", "the venue of {x}"),
        inverse=("the only event held in {x}",),
        count=("How many events took place in {x}?", "How many of the events described were held in {x}?"),
        set="events held in {x}",
        negated=("Which of {a}, {b} and {c} was not held in {x}?",),
        same=("Were {a} and {b} held in the same town?",),
    ),
    _r(
        "held",
        "event",
        "year",
        "In which year did {x} take place?",
        "When was {x} held?",
        more=(("Which took place first, {a} or {b}?", "min"), ("Which was held later, {a} or {b}?", "max")),
    ),
    _r(
        "organiser",
        "event",
        "person",
        "Who organised {x}?",
        "By whom was {x} organised?",
        phrase=("the organiser of {x}", "the person who organised {x}"),
        inverse=("the event organised by {x}", "the only event organised by {x}"),
        count=("How many events did {x} organise?",),
        set="events organised by {x}",
    ),
    _r(
        "winner",
        "event",
        "person",
        "Who won the first prize at {x}?",
        "To whom did the first prize at {x} go?",
        phrase=("the winner of the first prize at {x}", "the person who won the first prize at {x}"),
        inverse=("the event at which {x} won the first prize", "the event whose first prize went to {x}"),
    ),
    _r(
        "visitors",
        "event",
        "number",
        "How many visitors did {x} have?",
        "How many people visited {x}?",
        more=(
            ("Which drew more visitors, {a} or {b}?", "max"),
            ("Which had fewer visitors, {a} or {b}?", "min"),
        ),
    ),
    _r(
        "sponsor",
        "event",
        "firm",
        "Which firm was the sponsor of {x}?",
        "Which firm sponsored {x}?",
        phrase=("the sponsor of {x}", "the firm that sponsored {x}"),
    ),
)

RELATIONS = {relation.name: relation for relation in _ALL}
OF_KIND = {kind: tuple(r for r in _ALL if r.subject == kind) for kind in KINDS}
LEADS_ON = frozenset(r.name for r in _ALL if r.object in KINDS)
