"""`dataset=conversations`: generated towns, and conversations whose later questions depend on earlier ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from ragauge.contract.checks import require, require_count
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.topics import CONVERSATION, HISTORY, STANDALONE, TURN

_FIRST = "Orrin Tamber Welk Dorn Hasp Ilver Quen Rusk Sollen Tarv Ulmer Vask Wyre Brac Calder Edrin Folk Garr Hind Jarr"
_SECOND = "ford mere stead wick holm by combe gate ley thorpe"
_GIVEN = "Tessa Aldo Mirre Joost Ina Bram Sela Ode Rurik Nell"
_FAMILY = "Holm Varga Teale Brandt Osk Rennick Dahl Pryor Lunde Marsh"
_RIVERS = "Arl Ousel Tavin Mede Lorn Sarre Wend Ister Yarrel Cope"
_TRADES = ("glass", "rope", "honey", "slate", "lace", "cider", "paper", "bells", "salt", "barrels")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ARMS = ("a heron", "two keys", "a salmon", "an oak", "a plough", "three stars", "a boar", "a windmill")
# What a document says of its town, and the question about it: {town} is its name, or a pronoun in a later turn.
_FACTS = (
    ("{town} was founded by {value}.", "Who founded {town}?", "Who founded it?"),
    ("{town} was given its charter in {value}.", "In which year was {town} given its charter?",
     "In which year was it given its charter?"),
    ("The river {value} runs through {town}.", "Which river runs through {town}?", "Which river runs through it?"),
    ("The chief trade of {town} is {value}.", "What is the chief trade of {town}?", "What is its chief trade?"),
    ("The bridge of {town} has {value} arches.", "How many arches does the bridge of {town} have?",
     "How many arches does its bridge have?"),
    ("The market of {town} is held on {value}.", "On which day is the market of {town} held?",
     "On which day is its market held?"),
    ("The clock tower of {town} is {value} metres tall.", "How tall is the clock tower of {town}?",
     "How tall is its clock tower?"),
    ("The arms of {town} show {value}.", "What do the arms of {town} show?", "What do its arms show?"),
)  # fmt: skip


@option("dataset/conversations")
class MadeConversations(Source):
    """Documents on towns that do not exist, and conversations on two of them each, a fact a turn.

    The first turn names the first town, and the turn after half of them the second one; the others say it and its.
    `standalone_question` is the question with the name. The answers in a turn's history are the right ones. The same
    parameters give the same world on every machine.

    conversations: 2 to 1,000. turns: 2 to 8 of each. towns: 4 to 200 documents. seed: another world.
    """

    component = "conversations"

    name: str = runtime(CONF)
    conversations: int = CONF
    turns: int = CONF
    towns: int = CONF
    seed: int = CONF

    def __post_init__(self) -> None:
        for key, low, high in (("conversations", 2, 1000), ("turns", 2, len(_FACTS)), ("towns", 4, 200)):
            value = getattr(self, key)
            require_count(f"dataset.{key}", value)
            require(f"dataset.{key}", value, low <= value <= high, f"whole numbers from {low} to {high:,}")
        require_count("dataset.seed", self.seed, 0)

    def files(self) -> Mapping[str, Path]:
        """None: it reads no files."""
        return {}

    def load(self) -> Dataset:
        """The collection."""
        dice = _Dice(self.seed)
        names = dice.some([first + second for first in _FIRST.split() for second in _SECOND.split()], self.towns)
        towns = {name: _values(dice) for name in names}
        said = {
            name: [fact[0].format(town=name, value=value) for fact, value in zip(_FACTS, values, strict=True)]
            for name, values in towns.items()
        }
        texts = [" ".join(said[name]) for name in names]
        docs = pd.DataFrame({"docno": names, "title": names, "text": texts}, dtype="str")
        topics, evidence = [], []
        for number in range(1, self.conversations + 1):
            for topic, town, fact in self._turns(dice, f"c{number}", towns):
                topics.append(topic)
                evidence.append({"qid": topic["qid"], "part": 0, "docno": town, "text": said[town][fact]})
        return Dataset(docs, pd.DataFrame(topics), pd.DataFrame(evidence))

    def _turns(
        self, dice: _Dice, conversation: str, towns: Mapping[str, list[str]]
    ) -> Iterator[tuple[dict[str, object], str, int]]:
        """The topics of one conversation, each with its town and the number of its fact."""
        about, facts = dice.some(list(towns), 2), dice.some(list(range(len(_FACTS))), self.turns)
        half = (self.turns + 1) // 2
        history: list[str] = []
        for turn, fact in enumerate(facts, 1):
            town = about[turn > half]
            _, named, leaning = _FACTS[fact]
            whole = named.format(town=town)
            question = whole if turn in (1, half + 1) else leaning
            answer = towns[town][fact]
            yield {
                "qid": f"{conversation}-{turn}", "query": question, "answer": answer, HISTORY: list(history),
                CONVERSATION: conversation, TURN: float(turn), STANDALONE: whole,
            }, town, fact  # fmt: skip
            history += [question, answer]


def _values(dice: _Dice) -> list[str]:
    """The facts of a town, in the order of _FACTS."""
    founder = f"{dice.one(_GIVEN.split())} {dice.one(_FAMILY.split())}"
    year, arches, metres = (str(low + dice.below(n)) for low, n in ((1100, 700), (2, 18), (15, 60)))
    river, trade, day, arms = map(dice.one, (_RIVERS.split(), _TRADES, _DAYS, _ARMS))
    return [founder, year, river, trade, arches, day, metres, arms]


class _Dice:
    """Choices by `random.random`, whose sequence for a seed Python keeps stable."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        return int(self._random() * n)

    def one(self, items: object) -> str:
        return items[self.below(len(items))]  # type: ignore[index,arg-type,no-any-return]

    def some(self, items: list, n: int) -> list:  # type: ignore[type-arg]
        """n different items in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(n)]
