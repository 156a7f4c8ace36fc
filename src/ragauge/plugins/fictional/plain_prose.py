"""Rules of plain prose (`style=plain`): short sentences as in an encyclopedia or on a company's page.

{S} is the subject at the start of a sentence, {s} within one. {other} is another article's subject of the same kind.
{recent} is a year and {count} a number; no question asks for them.
"""

from __future__ import annotations


def _list(text: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in text.split())


WORDS: dict[str, tuple[str, ...]] = {
    "few": _list("two three four five six seven eight nine ten"),
    "ordinal": _list("second third fourth fifth sixth"),
    "parent": _list(
        "baker blacksmith bookseller brewer builder carpenter clerk doctor farmer fishmonger gardener grocer innkeeper "
        "lawyer librarian mason merchant miller nurse pharmacist postmaster sailor shopkeeper stonemason tailor "
        "teacher weaver"
    ),
    "subject": _list(
        "astronomy beekeeping botany bridges church_architecture colour coastal_erosion dialects folk_songs forestry "
        "geometry glass harbours irrigation island_birds lighthouses local_history maps medicine mining mosses "
        "navigation optics public_health railways rivers rural_schools shipping stained_glass taxation the_weather "
        "town_planning vaccination vineyards volcanoes wool"
    ),
    "stuff": _list("brick copper glass granite iron leather linen marble oak paper pine sandstone silver slate wool"),
    "building": _list(
        "bridge chapel covered_market courthouse former_brewery former_mill grammar_school harbour_office hospital "
        "library market_hall museum old_abbey park_theatre railway_station swimming_pool town_hall water_tower"
    ),
    "trade_of": _list(
        "agriculture cheese_making fishing fruit_growing furniture glass paper printing quarrying ship_repair timber "
        "textiles tourism wine"
    ),
    "praised": _list("clarity colour detail dialogue humour patience rhythm restraint simplicity structure warmth"),
    "season": _list("spring summer autumn winter"),
    "month": _list("January February March April May June July August September October November December"),
    "where_kept": (
        "in a private collection", "in the county archive", "in a regional museum", "in the university library",
        "in the town library", "in the national collection",
    ),
    "says": (
        "according to a local history", "as parish records show", "according to the county archive",
        "as a later biography notes", "as the local newspaper reported", "according to family papers",
    ),
}  # fmt: skip
_TAIL = "[||, {says}]"

LEADS: dict[str, tuple[str, ...]] = {
    "person": (
        "{full}{aka} was a(n) {noun} known for work on {subject}.",
        "{full}{aka} was a(n) {noun} and writer on {subject}.",
        "{full}{aka} was a(n) {noun} who also lectured on {subject}.",
        "{full}{aka} was one of the best-known {noun}s of the time.",
        "{full}{aka} was a(n) {noun} with a lifelong interest in {subject}.",
    ),
    "town": (
        "{full}{aka} is a town known for its {building}.",
        "{full}{aka} is a market town with a tradition of {trade_of}.",
        "{full}{aka} is a town whose main industries are {trade_of} and {trade_of}.",
        "{full}{aka} is a small town with a(n) {building} and a(n) {building}.",
    ),
    "firm": (
        "{full} is a family business.",
        "{full} is a manufacturing firm.",
        "{full} is a medium-sized firm with customers in many towns.",
        "{full} is a firm that works mainly with {stuff} and {stuff}.",
    ),
    "work": (
        "{full} is a(n) {noun} about {subject}.",
        "{full} is a(n) {noun} in {few} parts.",
        "{full} is a(n) {noun} admired for its {praised}.",
        "{full} is a(n) {noun} on the theme of {subject}.",
    ),
    "event": (
        "The {full} was a public event.",
        "The {full} lasted {few} days.",
        "The {full} was one of a series of events of the same name.",
        "The {full} was opened with a talk on {subject}.",
    ),
}
_PERSON_AKA = (", also known as {alias},", ", better known as {alias},", " (also known as {alias})")
_TOWN_AKA = (", formerly {alias},", ", once called {alias},", " (formerly {alias})")
AKA = {"person": _PERSON_AKA, "town": _TOWN_AKA}

FACTS: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {
    "person": {
        ("birthplace", "birth_year"): (
            "{S} was born in {birthplace} in {birth_year}" + _TAIL + ".",
            "{S} was born in {birth_year} in {birthplace}, the {ordinal} child of a(n) {parent}.",
            "Born in {birthplace} in {birth_year}, {s} grew up as the child of a(n) {parent}.",
            "{S} was a native of {birthplace}, born there in {birth_year}.",
            "In {birth_year} {s} was born in {birthplace}" + _TAIL + ".",
        ),
        ("birthplace",): (
            "{S} was born in {birthplace}" + _TAIL + ".",
            "{S} was a native of {birthplace}" + _TAIL + ".",
            "{S} came from {birthplace}, from the family of a(n) {parent}.",
            "Born in {birthplace} as the child of a(n) {parent}, {s} first trained as a(n) {parent}.",
            "{His} birthplace was {birthplace}.",
        ),
        ("birth_year",): (
            "{S} was born in {birth_year}" + _TAIL + ".",
            "{S} was born in {birth_year}, the {ordinal} child of the family.",
            "Born in {birth_year}, {s} learnt to read from a neighbour.",
            "In {birth_year} {s} was born on a farm.",
            "{His} year of birth was {birth_year}.",
        ),
        ("teacher",): (
            "{S} studied under {teacher}" + _TAIL + ".",
            "{S} was a pupil of {teacher} for {few} years.",
            "{S} learnt the profession from {teacher}" + _TAIL + ".",
            "{S} was trained by {teacher}, at first without pay.",
            "{S} took lessons from {teacher} every {season}.",
            "{His} teacher was {teacher}.",
        ),
        ("spouse",): (
            "{S} married {spouse}" + _TAIL + ".",
            "{S} married {spouse}, with whom {s} had {few} children.",
            "{S} was married to {spouse} for many years.",
            "{S} and {spouse} were married in a small ceremony.",
            "{His} marriage to {spouse} was a happy one.",
        ),
        ("employer",): (
            "{S} worked for {employer}" + _TAIL + ".",
            "{S} worked for {employer} for {few} years.",
            "{S} was employed by {employer} as a(n) [adviser|designer|clerk|manager].",
            "{S} spent much of {his} career at {employer}.",
            "{S} took a post at {employer} and stayed there for {few} years.",
        ),
        ("residence",): (
            "{S} settled in {residence}" + _TAIL + ".",
            "{S} later moved to {residence} for good" + _TAIL + ".",
            "{S} made {his} home in {residence} in later life.",
            "In later life {s} lived in {residence}" + _TAIL + ".",
            "After {few} years of travel {s} settled in {residence}.",
        ),
        ("prize", "prize_year"): (
            "{S} was given the {prize} in {prize_year}" + _TAIL + ".",
            "In {prize_year} {s} received the {prize}.",
            "{S} won the {prize} in {prize_year} for a study of {subject}.",
            "{S} was awarded the {prize} in {prize_year}.",
        ),
        ("death_year",): (
            "{S} died in {death_year}" + _TAIL + ".",
            "{S} died in {death_year} after a [short|long] illness.",
            "{S} passed away in {death_year}" + _TAIL + ".",
            "In {death_year} {s} died at home.",
            "{His} death in {death_year} was widely reported.",
        ),
    },
    "town": {
        ("river", "province"): (
            "{S} lies on the river {river} in the province of {province}.",
            "{S} stands on the banks of the {river} in the province of {province}.",
            "The {river} runs through {s}, which belongs to the province of {province}.",
        ),
        ("river",): (
            "{S} lies on the river {river}.",
            "{S} stands on the banks of the {river}, which often floods in {season}.",
            "The {river} runs through {s}.",
            "{S} has {few} bridges over the {river}.",
        ),
        ("province",): (
            "{S} belongs to the province of {province}.",
            "{S} is part of the province of {province}.",
            "{S} is one of the older towns in the province of {province}.",
        ),
        ("population",): (
            "{S} has {population} inhabitants.",
            "{S} has a population of {population}.",
            "At the last census {s} had {population} inhabitants.",
            "{population} people live in {s}.",
        ),
        ("charter",): (
            "{S} received its charter in {charter}.",
            "{S} was granted its town charter in {charter}" + _TAIL + ".",
            "In {charter} {s} gained a charter and the right to hold a market.",
            "Its charter dates from {charter}.",
        ),
        ("mayor",): (
            "{S} elected {mayor} as its first mayor.",
            "{S} had {mayor} as its first mayor.",
            "In {s} the office of mayor was first held by {mayor}.",
            "Its first mayor was {mayor}.",
            "{mayor_up} was its first mayor.",
        ),
    },
    "firm": {
        ("founder", "founded"): (
            "{S} was founded by {founder} in {founded}.",
            "{founder_up} founded {s} in {founded}.",
            "{S} was set up in {founded} by {founder}" + _TAIL + ".",
            "In {founded}, {founder} established {s}.",
            "{S} goes back to a workshop that {founder} opened in {founded}.",
        ),
        ("founder",): (
            "{S} was founded by {founder}" + _TAIL + ".",
            "{founder_up} founded {s} with borrowed money.",
            "{S} was set up by {founder}" + _TAIL + ".",
            "{S} was established by {founder}, who at first had {few} helpers.",
            "Its founder was {founder}.",
        ),
        ("founded",): (
            "{S} was founded in {founded}" + _TAIL + ".",
            "{S} has been in business since {founded}.",
            "{S} was established in {founded}.",
            "In {founded} {s} opened its first workshop.",
        ),
        ("seat",): (
            "{S} has its seat in {seat}.",
            "{S} is based in {seat}.",
            "{S} has its headquarters in {seat}, beside the {building}.",
            "{S} is run from a head office in {seat}.",
            "Its headquarters are in {seat}.",
        ),
        ("staff",): (
            "{S} employs {staff} people.",
            "{S} has a workforce of {staff}.",
            "{S} has {staff} employees.",
            "{staff} people work for {s}.",
        ),
        ("product",): (
            "{S} makes {product}.",
            "{S} is a maker of {product}.",
            "{S} produces {product}, mostly for export.",
            "{S} manufactures {product} and sells them by mail order.",
        ),
        ("owner",): (
            "{S} was taken over by {owner}.",
            "{S} was bought by {owner} after a poor {season}.",
            "{S} is now a subsidiary of {owner}.",
            "{owner_up} acquired {s} after long negotiations.",
        ),
    },
    "work": {
        ("creator", "year"): (
            "{S} was finished by {creator} in {year}.",
            "{creator_up} completed {s} in {year}" + _TAIL + ".",
            "{S} is a work by {creator}, finished in {year}.",
            "In {year}, {creator} finished {s} after {few} years.",
        ),
        ("creator",): (
            "{S} was created by {creator}" + _TAIL + ".",
            "{S} is the work of {creator}.",
            "{creator_up} created {s} in {few} months.",
            "Its creator was {creator}.",
        ),
        ("year",): (
            "{S} was finished in {year}.",
            "{S} was completed in {year} after {few} years of work.",
            "In {year} {s} was finished.",
            "It dates from {year}.",
        ),
        ("dedicatee",): (
            "{S} is dedicated to {dedicatee}.",
            "{S} bears a dedication to {dedicatee}.",
            "{S} was made in honour of {dedicatee}" + _TAIL + ".",
            "It is dedicated to {dedicatee}.",
        ),
        ("setting",): (
            "{S} is set in {setting}.",
            "{S} shows daily life in {setting}.",
            "{S} has {setting} as its setting.",
            "Its scene is {setting}.",
        ),
        ("backer",): (
            "{S} was paid for by {backer}.",
            "{S} was financed by {backer}.",
            "{backer_up} paid for {s}.",
            "{S} was made at the expense of {backer}.",
        ),
    },
    "event": {
        ("place", "held"): (
            "{S} was held in {place} in {held}.",
            "{S} took place in {place} in {held}.",
            "In {held}, {place} hosted {s}.",
        ),
        ("place",): (
            "{S} was held in {place}.",
            "{S} took place in {place}, near the {building}.",
            "{place_up} hosted {s}.",
            "{S} had {place} as its venue.",
        ),
        ("held",): (
            "{S} was held in {held}.",
            "{S} took place in the {season} of {held}.",
            "In {held} {s} was held for {few} days.",
        ),
        ("organiser",): (
            "{S} was organised by {organiser}.",
            "{organiser_up} organised {s}.",
            "{S} was planned and run by {organiser}.",
            "Its organiser was {organiser}.",
        ),
        ("winner",): (
            "The first prize went to {winner}.",
            "{S} was won by {winner}, who took the first prize.",
            "{S} ended with a first prize for {winner}.",
            "At {s} the first prize was won by {winner}.",
        ),
        ("visitors",): (
            "{S} had {visitors} visitors.",
            "{S} was attended by {visitors} people.",
            "{S} drew {visitors} visitors in spite of the weather.",
            "{visitors} people came to see {s}.",
        ),
        ("sponsor",): (
            "{S} was sponsored by {sponsor}.",
            "{S} had {sponsor} as its sponsor.",
            "{sponsor_up} sponsored {s}.",
            "Money came from {sponsor}, its sponsor.",
        ),
    },
}

FILLERS: dict[str, tuple[str, ...]] = {
    "person": (
        "{S} published {few} books on {subject}.",
        "{S} spoke {few} languages and travelled widely.",
        "{S} kept up a correspondence with {other} about {subject}.",
        "{S} disagreed with {other} on questions of {subject}.",
        "{S} is often confused with {other}.",
        "Letters to {other} are kept {where_kept}.",
        "A portrait by an unknown artist hangs {where_kept}.",
        "A biography of {count} pages appeared in {recent}.",
        "In {recent} a street was named in {his} memory.",
        "{S} was interested in {subject} from an early age.",
        "{S} gave public lectures on {subject} and {subject}.",
        "{S} gave most of {his} savings to a school for the children of {parent}s.",
        "{His} notebooks, {count} in all, are kept {where_kept}.",
        "{S} worked slowly and often put a task aside for {few} years.",
        "Critics have praised the {praised} of {his} later work.",
        "Few of {his} letters have survived.",
        "An exhibition in {recent} showed {count} of {his} drawings and papers.",
        "{S} enjoyed walking and kept a diary for {few} years.",
    ),
    "town": (
        "The {building} was rebuilt in {recent}.",
        "The {building}, built of {stuff}, is open to visitors in {season}.",
        "A market is held there every {month}.",
        "Trade with {other} was once important.",
        "A road built in {recent} leads to {other}.",
        "The local economy rests on {trade_of} and {trade_of}.",
        "{count} pupils attend the secondary school.",
        "Most older houses are built of {stuff}.",
        "The town library holds {count} manuscripts on {subject}.",
        "A fire destroyed the {building}, which was later rebuilt in {stuff}.",
        "{S} is twinned with {other}.",
        "In {season} the town is popular with walkers.",
        "The {building} has {few} towers and a roof of {stuff}.",
        "A new {building} was opened in {recent}.",
    ),
    "firm": (
        "{S} has customers in {count} towns.",
        "A new plant was opened in {recent}.",
        "Its main rival is {other}.",
        "{S} once shared a warehouse with {other}.",
        "The firm runs {count} delivery vans.",
        "Apprentices are trained for {few} years.",
        "The catalogue of {recent} lists {count} items.",
        "{S} buys {stuff} and {stuff} from local suppliers.",
        "The firm pays for a prize for young {parent}s.",
        "A strike in {recent} lasted {few} weeks.",
        "The workshop has {few} floors and is built of {stuff}.",
        "A small museum shows the history of the firm.",
        "Its annual report for {recent} speaks of a difficult market.",
        "{S} also repairs goods of {stuff}.",
    ),
    "work": (
        "Critics praised its {praised} and {praised}.",
        "A new edition with {count} notes appeared in {recent}.",
        "It has often been compared with {other}.",
        "It was shown together with {other} in {recent}.",
        "The {ordinal} part deals with {subject}.",
        "The {ordinal} part is the longest and best known.",
        "The signed contract is kept {where_kept}.",
        "Early sketches are kept {where_kept}.",
        "The first reviews were mixed.",
        "A film about it was made in {recent}.",
        "It is taught in schools as an example of {praised}.",
        "A study from {recent} counts {count} later imitations.",
        "Its themes are {subject} and {subject}.",
    ),
    "event": (
        "It lasted {few} days and ended with a dinner.",
        "It rained for most of the {ordinal} day.",
        "{count} volunteers helped with the preparations.",
        "There were {count} entries from {few} provinces.",
        "A second competition was held for children.",
        "The rules were taken over from {other}.",
        "It was planned as an answer to {other}.",
        "A report of {count} pages is kept {where_kept}.",
        "Photographs were shown {where_kept} in {recent}.",
        "The {ordinal} prize was a cup of {stuff}.",
        "A talk on {subject} was given in the {building}.",
        "The jury had {few} members, most of them {parent}s.",
        "A plaque of {stuff} was put up in {recent}.",
    ),
}

# Wordings of questions in place of those of `relations`, where those are stiff.
ASKS = {
    "birthplace": ("In which town was {x} born?", "Where was {x} born?", "Which town did {x} come from?"),
    "spouse": ("Whom did {x} marry?", "Who was {x} married to?"),
    "residence": ("In which town did {x} settle?", "Where did {x} live in later life?"),
    "prize": ("Which prize was {x} given?", "Which prize did {x} win?"),
    "charter": ("In which year did {x} receive its charter?", "When did {x} get its town charter?"),
    "mayor": ("Who was the first mayor of {x}?",),
    "founder": ("Who founded {x}?", "Who set up {x}?"),
    "seat": ("In which town is {x} based?", "Where does {x} have its headquarters?"),
    "staff": ("How many people does {x} employ?", "How many people work for {x}?"),
    "owner": ("Which firm took over {x}?", "Which firm bought {x}?"),
    "product": ("What does {x} make?", "What does {x} produce?"),
    "creator": ("Who created {x}?", "Who made {x}?"),
    "year": ("In which year was {x} finished?", "When was {x} completed?"),
    "dedicatee": ("To whom is {x} dedicated?",),
    "backer": ("Which firm paid for {x}?", "Which firm financed {x}?"),
    "place": ("Where did {x} take place?", "In which town was {x} held?"),
    "organiser": ("Who organised {x}?",),
    "winner": ("Who won the first prize at {x}?", "Who won {x}?"),
    "visitors": ("How many visitors did {x} have?", "How many people came to {x}?"),
    "sponsor": ("Which firm sponsored {x}?", "Which firm gave money for {x}?"),
}
PHRASES = {
    "birthplace": ("the town in which {x} was born", "the birthplace of {x}"),
    "teacher": ("the teacher of {x}", "the person who taught {x}"),
    "seat": ("the town in which {x} is based",),
    "place": ("the town in which {x} took place", "the town that hosted {x}"),
    "dedicatee": ("the person to whom {x} is dedicated",),
}
