import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ragauge.answering.extractive as module
from answer_inputs import TOPICS, contexts
from ragauge.answering import Extractive
from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.contract import frames
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError
from ragauge.texts.words import FUNCTION_WORDS

TEXT = (
    "Anna Berg built the red tower in 1911. She was born in Old Karlstad in 1880 and earned 12,500 crowns. "
    "Old Karlstad lies on the river Mura. Old Karlstad has 4,200 inhabitants. "
    "Otto Lind built the blue tower in 1905. New Karlstad has 900 inhabitants. The Blue Inn makes beds, it is said. "
    "Otto Lind, also known as Captain Rhys, was born in New Karlstad."
)


def asked(question: str, text: str, tools: Tools, threshold: float = 0.1) -> str:
    topics = pd.DataFrame({"qid": ["q"], "query": [question], "answer": [""]})
    answers = Extractive(threshold=threshold).answer(topics, contexts(("q", 50, text)), tools)
    frames.check("answers", answers)
    assert not answers[["prompt_tokens", "completion_tokens", "cost_usd"]].any(axis=None)
    return str(answers["answer"][0])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who built the red tower?", "Anna Berg"),
        ("When was the red tower built?", "1911"),
        ("In which year was Anna Berg born?", "1880"),
        ("Where was Anna Berg born?", "Old Karlstad"),
        ("In which town was Captain Rhys born?", "New Karlstad"),
        ("How many crowns earned Anna Berg?", "12,500"),
        ("Which river is Old Karlstad on?", "Mura"),
        ("What does the Blue Inn make?", "beds"),
        # Over a link: her birthplace has an article of its own.
        ("How many inhabitants has the town in which Anna Berg was born?", "4,200"),
        # Of two.
        ("Which has more inhabitants, Old Karlstad or New Karlstad?", "Old Karlstad"),
        ("Which has fewer inhabitants: Old Karlstad or New Karlstad?", "New Karlstad"),
        ("Who built the tower first, Anna Berg or Otto Lind?", "Otto Lind"),
        ("Were Anna Berg and Otto Lind born in the same town?", "no"),
    ],
)
def test_a_span_of_the_kind_that_is_asked_for_is_cut_out(question: str, answer: str, tools: Tools) -> None:
    assert asked(question, TEXT, tools) == answer


TOWNS = (
    "Mora is a town in Dalarna. It lies on Lake Siljan. The bridge, built by Karl Holm on 12 March 1911, is 1,250 "
    "metres long. Karl Holm was born in Falun in 1870. He moved to Mora in 1895. Falun has 37,000 inhabitants, Mora "
    "12,000. Lena Moe (known as Captain Rhys) wrote Winter Light in 1999. Winter Light won the North Prize. The North"
    " Prize is given in Oslo. The Old Mill makes paper, flour and beds. Lena Moe was born in May 1950. Ida Moe was "
    "born in 1948. Ida Moe was born in Falun. Ida Moe of the Blue House met Lena Moe at Lake Siljan in 2001. His mill"
    " burned in 1920"
)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5])
def test_questions_on_towns_are_answered_up_to_their_score(threshold: float, tools: Tools) -> None:
    # With the greatest of the thresholds at which it is answered.
    table = {
        "On what date was the bridge built?": ("12 March 1911", 0.5),
        "Who built the bridge?": ("Karl Holm", 0.5),
        "How long is the bridge?": ("1,250", 0.5),
        "Where was Karl Holm born?": ("Falun", 0.5),
        "In which year was Karl Holm born?": ("1870", 0.5),
        "When did Karl Holm move to Mora?": ("1895", 0.5),  # about whom the sentence before it is
        "Where did Karl Holm move to?": ("Mora", 0.5),
        "What is the population of Falun?": ("37,000", 0.3),
        "What did Captain Rhys write?": ("Lena Moe", 0.3),  # a name that it did not ask for
        "Which prize did Winter Light win?": ("North Prize", 0.5),
        "Where is the prize that Winter Light won given?": ("Oslo", 0.5),
        "When did the novelist Lena Moe write Winter Light?": ("1999", 0.3),
        "What does the Old Mill make?": ("paper", 0.5),
        "Who is older, Lena Moe or Ida Moe?": ("Ida Moe", 0.5),
        "Who is younger, Lena Moe or Ida Moe?": ("Lena Moe", 0.5),
        "Were Karl Holm and Ida Moe born in the same town?": ("yes", 0.5),
        "Did Lena Moe and Ida Moe meet in the same year?": ("no", 0.5),
        "How many inhabitants has the town in which Karl Holm was born?": ("37,000", 0.5),
        "Who wrote the book that won the North Prize?": ("Captain Rhys", 0.3),
        "When was the writer of Winter Light born?": ("May 1950", 0.1),
        "Which has more inhabitants: Falun, or Mora?": ("Falun", 0.5),
        "Falun or Mora has more inhabitants?": ("Falun", 0.5),
        "When did the mill burn?": ("", 0.0),  # the budget cut its sentence
    }
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(len(table))], "query": list(table), "answer": ""})
    rows = contexts(*((qid, 50, TOWNS) for qid in topics["qid"]))
    found = Extractive(threshold=threshold, by="words").answer(topics, rows, replace(tools, embedder=None))  # type: ignore[arg-type]
    wanted = [answer if threshold <= most else LACK_OF_INFORMATION for answer, most in table.values()]
    assert dict(zip(table, found["answer"], strict=True)) == dict(zip(table, wanted, strict=True))


@pytest.mark.parametrize(
    ("question", "score"),
    [
        ("Who built the red tower?", 1.0),  # no names: the share of red, tower and built
        ("Who built the red castle?", 2 / 3.6931),  # castle, in no sentence, weighs 1, red and built 1 / (1 + log 2)
        ("When did Anna Berg bake?", 0.35),  # all names of a sentence that is about them, none of the other words
        ("When did Anna Berg build?", 1.0),
        ("When did Otto Berg build?", 0.25),  # half of the names, squared
    ],
)
def test_words_alone_are_compared_without_an_embedder(question: str, score: float, tools: Tools) -> None:
    topics = pd.DataFrame({"qid": ["q"], "query": [question], "answer": [""]})
    rows = contexts(("q", 50, "Anna Berg built the red tower in 1911. Rain fell."))
    assert Extractive(by="words").uses == frozenset()

    def answer(threshold: float) -> str:
        llm = Extractive(threshold=threshold, by="words")
        return str(llm.answer(topics, rows, replace(tools, embedder=None))["answer"][0])  # type: ignore[arg-type]

    assert answer(score - 0.001) == ("1911" if question.startswith("When") else "Anna Berg")
    assert answer(min(score + 0.001, 1)) == (LACK_OF_INFORMATION if score < 1 else answer(1))
    with pytest.raises(ConfigError, match=r"llm\.by='letters'"):
        Extractive(by="letters")


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Who drew the bridge?", "The bridge in Falun was drawn by hand by Karl Holm.", "Karl Holm"),
        ("Where is the bridge?", "Karl Holm drew the bridge, which stands far away in Falun.", "Falun"),
    ],
)
def test_a_name_behind_a_word_of_place_is_a_place_however_near_it_stands(
    question: str, text: str, answer: str, tools: Tools
) -> None:
    assert asked(question, text, tools) == answer


def test_names_dates_and_numbers_are_one_word_each_for_the_embedder(tools: Tools) -> None:
    class Heard(Embedder):
        """An embedder to which all texts are alike."""

        def __init__(self) -> None:
            self.texts: dict[str, list[str]] = {}

        def embed(self, texts: list[str], role: str = "passage") -> np.ndarray:
            self.texts[role] = texts
            return np.ones((len(texts), 2)) / np.sqrt(2)

    heard = Heard()
    topics = pd.DataFrame({"qid": ["q"], "query": ["In which town was the writer of Winter Light born?"], "answer": ""})
    text = "Lena Moe wrote Winter Light in 1999. Her sisters earned 12,500 crowns in Falun. She left it."
    Extractive().answer(topics, contexts(("q", 50, text)), replace(tools, embedder=heard))  # type: ignore[arg-type]
    assert heard.texts == {
        "passage": ["X wrote X in 10.", "X's sisters earned 10 crowns in X.", "X left it."],
        "query": ["Where was the writer of X born?", "the writer of X", "Where was X born?"],
    }


def test_a_sentence_about_the_name_comes_before_one_that_mentions_it(tools: Tools) -> None:
    text = "Otto Lind met Anna Berg in 1905. Anna Berg met Otto Lind in 1911."
    assert [asked(f"In which year did {name} meet?", text, tools) for name in ("Otto Lind", "Anna Berg")] == [
        "1905", "1911",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["Bread is baked. Rain fell.", "", " \n", "Otto Lind baked bread."])
def test_without_a_sentence_that_fits_information_is_lacking(text: str, tools: Tools) -> None:
    assert asked("Who built the red tower of Anna Berg?", text, tools, 0.3) == LACK_OF_INFORMATION


def test_a_higher_threshold_finds_less(tools: Tools) -> None:
    assert asked("Who built the red tower?", TEXT, tools, 1.0) == LACK_OF_INFORMATION


def test_many_rows_equal_each_row_alone(tools: Tools) -> None:
    rng = np.random.default_rng(0)
    words = ["red", "tower", "built", "Anna", "blue", "whales", "live", "sea", "bread", "rain"]

    def sentence() -> str:
        return "The " + " ".join(rng.choice(words, 4)) + "."

    rows = [(f"q{1 + i % 2}", i, " ".join(sentence() for _ in range(i % 7))) for i in range(40)]
    part = Extractive(threshold=0.2)
    together = part.answer(TOPICS, contexts(*rows), tools)["answer"].tolist()
    assert together == [part.answer(TOPICS, contexts(row), tools)["answer"][0] for row in rows]
    assert {LACK_OF_INFORMATION, "Anna"} <= set(together)


@pytest.mark.parametrize("fields", [{"threshold": 1.5}, {"threshold": None}])
def test_values_out_of_range_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(fields))):
        Extractive(**fields)


def test_the_reader_and_the_generated_world_share_no_module_and_no_words() -> None:
    """It knows English question words and nothing of what the world's articles and questions are made of."""
    world = pytest.importorskip("ragauge.plugins.fictional.plain_prose")
    reader, folder = Path(module.__file__).read_text(encoding="utf-8"), Path(world.__file__).parent
    assert "fictional" not in reader
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("ragauge.answering"), file
    known = set(re.findall(r"[a-z]{4,}", " ".join(re.findall(r'r[f]?"(.*)"', reader))))
    told = [text for facts in world.FACTS.values() for texts in facts.values() for text in texts]
    told += [word for words in world.WORDS.values() for word in words]
    of_world = set(re.findall(r"[a-z]{4,}", " ".join(told).lower()))
    # Words that any English question on time, place or number is put with.
    general = {"town", "place", "later", "last", "first", "year", "long", "took", "near", "older", "large", "late"}
    assert known & of_world - FUNCTION_WORDS <= general


def test_a_sentence_that_the_budget_cut_is_read_only_where_there_is_no_other(tools: Tools) -> None:
    cut = "Bob Berg built the red"
    assert asked("Who built the red tower?", f"Anna Berg saw the red tower. {cut}", tools) == "Anna Berg"
    assert asked("Who built the red tower?", cut, tools) == "Bob Berg"
